#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"
#include "windlass/Dialect/Plan/Transforms/Offload.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Propagation.h"
#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"
#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/FunctionAttributes.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/TensorBytes.h"
#include "windlass/Support/Words.h"

#include <numeric>

namespace windlass::plan {
#define GEN_PASS_DEF_APPLYSTRATEGY
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace windlass::plan

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

/// A unit exceeds a weight by 1 / `kBiasShare` of it: a bias is a smaller share of any matrix with more rows.
static constexpr int64_t kBiasShare = 8;

namespace {

bool isInput(func::FuncOp function, BlockArgument argument) {
  return function.getArgAttr(argument.getArgNumber(), train::kInputAttr) != nullptr;
}

class StrategyApplier {
public:
  StrategyApplier(ModuleOp module, const StrategyChoice &choice)
      : module(module), context(module.getContext()), choice(choice), pinned(choice.pins) {}

  LogicalResult run() {
    mesh = choice.mesh;
    module->setAttr(kMeshAttr, mesh);
    reads = getPinnedReads();
    for (auto &[name, layout] : choice.reads)
      reads[name] = layout;
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      LayoutAttr whole = LayoutAttr::getWhole(parameter.getTensorType());
      parameter->setAttr(kLayoutAttr, whole);
      parameter->setAttr(kMasterLayoutAttr, whole);
      parameter->removeAttr(kGradientLayoutAttr);
    }
    for (func::FuncOp function : getPlannedFunctions(module)) {
      LogicalResult done =
          function.getName() == train::kMicrobatchFunction ? planMicrobatch(function) : planFunction(function);
      if (failed(done))
        return failure();
    }
    return success();
  }

private:
  /// Plans `@microbatch`, which decides how weights are split among the model's ranks: as all their readers in the
  /// forward pass want them. A changed split changes what operators read, so planning is repeated until nothing
  /// changes.
  LogicalResult planMicrobatch(func::FuncOp function) {
    const Seeds seeds = findSeeds(function);
    for (int round = 0; round < 4; ++round) {
      if (failed(propagate(function, seeds)))
        return failure();
      if (mesh.sizeOf(AxisRole::model) == 1 && pinned.empty())
        break;
      ReadLayouts wanted;
      if (failed(findWanted(function, wanted)))
        return failure();
      for (auto &[name, layout] : getPinnedReads())
        wanted[name] = layout;
      for (auto &[name, layout] : choice.reads)
        wanted[name] = layout;
      if (llvm::all_of(wanted, [&](auto &entry) { return reads.lookup(entry.first) == entry.second; }))
        break;
      reads = std::move(wanted);
    }
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (LayoutAttr layout = reads.lookup(parameter.getSymNameAttr()))
        parameter->setAttr(kLayoutAttr, layout);
    if (failed(checkPinnedLayouts(function)) || failed(layOutResults(function)))
      return failure();
    if (failed(setCopyLayouts(function)))
      return failure();
    setUnits(function);
    return success();
  }

  /// Sets the size of units, so that the largest sharded weight of a repeated block fits with its bias, and the
  /// prefetch window, where weights are gathered, or copied from the host, or gradients scattered for operators, to
  /// twice as much for these: while one unit is used, the next may be gathered, and its gradients scattered. So units
  /// need little more memory than weights.
  void setUnits(func::FuncOp microbatch) {
    auto getUnit = [&](ArrayRef<StringRef> copies) {
      int64_t largest = getLargestShards(microbatch, copies);
      return largest + largest / kBiasShare;
    };
    auto set = [&](StringRef name, int64_t bytes) {
      if (bytes > 0)
        module->setAttr(name, IntegerAttr::get(IntegerType::get(context, 64), bytes));
    };
    set(kUnitBytesAttr, getUnit({kLayoutAttr, kGradientLayoutAttr, kMasterLayoutAttr}));
    set(kPrefetchBytesAttr, 2 * getUnit({kLayoutAttr, kGradientLayoutAttr}));
  }

  /// Returns the bytes of the largest weight, in repeated blocks where there is one in any, of whose copies one of
  /// `copies` is sharded, or which is on the host.
  int64_t getLargestShards(func::FuncOp microbatch, ArrayRef<StringRef> copies) {
    SymbolTable symbols(module);
    int64_t largest = 0, largestRepeated = 0;
    for (auto read : microbatch.getOps<train::ReadOp>()) {
      auto parameter = symbols.lookup<train::ParameterOp>(read.getParameter());
      LayoutAttr used = getLayout(read.getResult());
      auto isSharded = [&](StringRef copy) {
        auto kept = parameter->getAttrOfType<LayoutAttr>(copy);
        return kept && !haveSameParts(dropUnreduced(kept), used, mesh);
      };
      if (!parameter || (llvm::none_of(copies, isSharded) && getComputeMemory(parameter) == MemoryKind::device))
        continue;
      int64_t bytes = getTensorBytes(used.getLocalType(parameter.getTensorType(), mesh));
      largest = std::max(largest, bytes);
      if (llvm::any_of(read->getUsers(), [](Operation *user) { return user->hasAttr(kRepeatAttr); }))
        largestRepeated = std::max(largestRepeated, bytes);
    }
    return largestRepeated > 0 ? largestRepeated : largest;
  }

  LogicalResult planFunction(func::FuncOp function) {
    if (failed(propagate(function, findSeeds(function))) || failed(checkPinnedLayouts(function)))
      return failure();
    return layOutResults(function);
  }

  LayoutAttr getPinnedCopy(train::ParameterOp parameter, const std::string &copy) const {
    auto found = pinned.parameters.find(parameter.getSymNameAttr());
    if (found == pinned.parameters.end() || !found->second.count(copy))
      return nullptr;
    return found->second.at(copy).first;
  }

  /// Returns the layouts in which operators find the weights whose compute copies are pinned.
  ReadLayouts getPinnedReads() {
    ReadLayouts layouts;
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (LayoutAttr compute = getPinnedCopy(parameter, "compute"))
        layouts[parameter.getSymNameAttr()] = gatherShards(compute, mesh);
    return layouts;
  }

  /// Checks that each value can be brought to the layout of its pin.
  LogicalResult checkPinnedLayouts(func::FuncOp function) {
    for (Operation &op : function.front().without_terminator()) {
      auto found = pinned.ops.find(&op);
      if (found == pinned.ops.end())
        continue;
      FailureOr<OpLayouts> layouts = inferLayouts(&op, getOperandLayouts(&op), mesh);
      if (failed(layouts))
        return failure();
      for (auto [result, made, pin] : llvm::zip(op.getResults(), layouts->results, found->second.layouts))
        if (pin && failed(checkReshard(&op, llvm::cast<RankedTensorType>(result.getType()), made, pin,
                                       found->second.layoutPin)))
          return failure();
    }
    return success();
  }

  LogicalResult checkReshard(Operation *op, RankedTensorType type, LayoutAttr from, LayoutAttr to, StringRef pin) {
    if (haveSameParts(from, to, mesh))
      return success();
    if (llvm::Error error = planReshard(type.getShape(), from, to, mesh).takeError())
      return emitError(op->getLoc(), Code::pin)
             << "pin " << printable(pin) << " cannot be met: " << llvm::toString(std::move(error));
    return success();
  }

  using Seeds = llvm::DenseMap<Operation *, Splits>;

  Seeds findSeeds(func::FuncOp function) const {
    bool isCompute = function.getName() != train::kUpdateFunction && function.getName() != train::kInitFunction;
    if (!choice.splitModel || mesh.sizeOf(AxisRole::model) == 1 || !isCompute)
      return Seeds();
    return choice.splitModel(function, mesh.axesOf(AxisRole::model), mesh, pinned);
  }

  LogicalResult propagate(func::FuncOp function, const Seeds &seeds) {
    SmallVector<Attribute> layouts;
    for (BlockArgument argument : function.getArguments())
      if (failed(layOutArgument(function, argument, layouts)))
        return failure();
    setEachArgAttr(function, kLayoutAttr, layouts);
    return Propagation(function, mesh, reads, seeds, pinned).run();
  }

  /// Finds the layouts in which the forward pass wants its weights, where all their readers agree.
  LogicalResult findWanted(func::FuncOp function, ReadLayouts &wanted) {
    const llvm::DenseMap<Operation *, Splits> noSeeds;
    Propagation propagation(function, mesh, reads, noSeeds, pinned);
    for (auto read : function.getOps<train::ReadOp>()) {
      if (read->hasAttr(train::kForwardAttr))
        continue;
      FailureOr<LayoutAttr> layout = propagation.getWanted(read.getResult());
      if (failed(layout))
        return failure();
      LayoutAttr whole = LayoutAttr::getWhole(llvm::cast<RankedTensorType>(read.getType()));
      LayoutAttr own = *layout && !haveSameParts(*layout, whole, mesh) ? *layout : whole;
      auto [it, isNew] = wanted.try_emplace(read.getParameterAttr().getAttr(), own);
      if (!isNew && !haveSameParts(it->second, own, mesh))
        it->second = whole;
    }
    return success();
  }

  LogicalResult layOutArgument(func::FuncOp function, BlockArgument argument, SmallVectorImpl<Attribute> &layouts) {
    auto type = llvm::dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      return function.emitError("argument ") << argument.getArgNumber() << " is no tensor";
    LayoutAttr layout = getArgumentLayout(function, argument, mesh);
    if (function.getName() == train::kUpdateFunction) {
      auto name = function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kGradientAttr);
      auto parameter = name ? SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(function, name) : nullptr;
      if (!parameter)
        return function.emitError("argument ") << argument.getArgNumber() << " of @update names no weight";
      if (auto accumulated = parameter->getAttrOfType<LayoutAttr>(kGradientLayoutAttr))
        layout = accumulated;
      else
        return function.emitError("argument ")
               << argument.getArgNumber() << " is the gradient of " << name << ", which @microbatch does not return";
    }
    layouts.push_back(layout);
    return success();
  }

  /// Sets the layouts of results. The results of `@init`, `@update` and `@evaluate` are whole. Those of `@microbatch`
  /// stay partial sums, so that gradients and losses are reduced once a step; gradients are split as their weights are.
  LogicalResult layOutResults(func::FuncOp function) {
    bool isMicrobatch = function.getName() == train::kMicrobatchFunction;
    SmallVector<Attribute> layouts;
    for (OpOperand &operand : function.front().getTerminator()->getOpOperands()) {
      unsigned i = operand.getOperandNumber();
      auto type = llvm::dyn_cast<RankedTensorType>(operand.get().getType());
      LayoutAttr made = getLayout(operand.get());
      if (!type || !made)
        return function.emitError("result ") << i << " has no layout";
      LayoutAttr layout = LayoutAttr::getWhole(type);
      if (auto name = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr)) {
        auto parameter = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(function, name);
        if (!parameter)
          return function.emitError("result ")
                 << i << " is the gradient of " << name << ", which is no train.parameter";
        layout = parameter->getAttrOfType<LayoutAttr>(kLayoutAttr);
      }
      if (isMicrobatch) {
        llvm::SmallDenseSet<StringAttr> used;
        for (DimLayoutAttr dim : layout.getDims())
          for (FactorLayoutAttr factor : dim.getFactors())
            used.insert(factor.getAxes().begin(), factor.getAxes().end());
        for (UnreducedAttr unreduced : made.getUnreduced())
          if (!used.contains(unreduced.getAxis()))
            layout = addUnreduced(layout, unreduced, mesh);
      }
      layouts.push_back(layout);
    }
    setEachResultAttr(function, kLayoutAttr, layouts);
    return success();
  }

  /// Gives each weight the layouts of its three copies.
  LogicalResult setCopyLayouts(func::FuncOp microbatch) {
    for (unsigned i = 1; i < microbatch.getNumResults(); ++i) {
      auto name = microbatch.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr);
      auto parameter = name ? SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(microbatch, name) : nullptr;
      if (!parameter)
        return microbatch.emitError("result ") << i << " is the gradient of no train.parameter";
      auto whole = parameter->getAttrOfType<LayoutAttr>(kLayoutAttr);
      ParameterLayouts copies = getCopies(choice, parameter.getSymNameAttr(), whole, mesh);
      LayoutAttr made = addReplicaSum(microbatch.getResultAttrOfType<LayoutAttr>(i, kLayoutAttr), module);
      if (getPinnedCopy(parameter, "gradient")) {
        const std::string &text = pinned.parameters[parameter.getSymNameAttr()]["gradient"].second;
        if (failed(checkReshard(parameter, parameter.getTensorType(), made, copies.gradient, text)) ||
            failed(checkReshard(parameter, parameter.getTensorType(), copies.gradient, copies.master, text)))
          return failure();
      } else {
        copies.gradient = keepUnreduced(copies.gradient, made);
      }
      parameter->setAttr(kLayoutAttr, copies.compute);
      parameter->setAttr(kGradientLayoutAttr, copies.gradient);
      parameter->setAttr(kMasterLayoutAttr, copies.master);
    }
    for (auto parameter : module.getOps<train::ParameterOp>())
      for (auto [copy, attribute] : {std::pair("compute", kLayoutAttr), {"master", kMasterLayoutAttr}})
        if (LayoutAttr pin = getPinnedCopy(parameter, copy))
          parameter->setAttr(attribute, pin);
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      auto layoutOf = [&](StringRef copy) { return parameter->getAttrOfType<LayoutAttr>(copy); };
      if (parameter->hasAttr(kGradientMemoryAttr) &&
          !isReadAsAccumulated(layoutOf(kGradientLayoutAttr), layoutOf(kMasterLayoutAttr), mesh))
        parameter->removeAttr(kGradientMemoryAttr);
      if (parameter->hasAttr(kComputeMemoryAttr) &&
          !haveSameParts(layoutOf(kLayoutAttr), layoutOf(kMasterLayoutAttr), mesh))
        parameter->removeAttr(kComputeMemoryAttr);
    }
    setStateLayouts(module);
    return success();
  }

  /// Returns `layout`, partial over those axes of `made` over which it may stay so: the axes of the data over which it
  /// is partial already, and all others.
  LayoutAttr keepUnreduced(LayoutAttr layout, LayoutAttr made) {
    LayoutAttr kept = dropUnreduced(layout);
    for (UnreducedAttr unreduced : made.getUnreduced())
      if (!mesh.isDataAxis(unreduced.getAxis()) || llvm::is_contained(layout.getUnreduced(), unreduced))
        kept = addUnreduced(kept, unreduced, mesh);
    return kept;
  }

  ModuleOp module;
  MLIRContext *context;
  const StrategyChoice &choice;
  MeshAttr mesh;
  Pins pinned;
  /// The layouts in which operators want weights, split among the model's ranks only.
  ReadLayouts reads;
};

struct ApplyStrategy : windlass::plan::impl::ApplyStrategyBase<ApplyStrategy> {
  using ApplyStrategyBase::ApplyStrategyBase;

  void runOnOperation() override {
    if (failed(apply()))
      signalPassFailure();
  }

  LogicalResult apply() {
    ModuleOp module = getOperation();
    if (ranks < 1 || ranks > (1 << 20))
      return module.emitError("cannot plan for ") << int64_t(ranks) << " ranks: use between 1 and " << (1 << 20);
    if (bucketBytes < 1)
      return module.emitError("buckets of ") << int64_t(bucketBytes) << " bytes hold nothing: use at least 1";
    llvm::Expected<StrategyTerms> named = parseStrategy(strategy, ranks);
    if (!named)
      return module.emitError() << llvm::toString(named.takeError());
    StrategyChoice choice;
    if (named->data)
      choice.shardedCopies = named->data->shardedCopies;
    if (named->model)
      choice.splitModel = named->model->splitModel;
    FailureOr<MeshAttr> mesh = shareRanks(module, *named);
    if (failed(mesh))
      return failure();
    choice.mesh = *mesh;
    if (named->model && named->model->checkModel)
      if (llvm::Error error = named->model->checkModel(module, *mesh))
        return module.emitError("strategy ") << printable(strategy) << " " << llvm::toString(std::move(error));
    FailureOr<Pins> pinned = readPins(module, *mesh, SmallVector<std::string>(pins.begin(), pins.end()));
    if (failed(pinned))
      return failure();
    choice.pins = std::move(*pinned);
    std::optional<Offload> held = parseOffload(offload);
    if (!held)
      return module.emitError("offload takes one of ") << listOffloads();
    if (*held != Offload::none)
      applyOffload(module, *held);
    return applyWithTiers(module, *named, choice);
  }

  /// Applies the strategy with what its rule keeps on the host. A rule that measures a plan has labelled the parameters
  /// before.
  LogicalResult applyWithTiers(ModuleOp module, const StrategyTerms &named, const StrategyChoice &choice) {
    const TierRule *rule = named.data && named.data->tiers ? &*named.data->tiers : nullptr;
    if (!rule || rule->measure != TierMeasure::nothing)
      return applyStrategy(module, choice, bucketBytes);
    TierFacts facts;
    facts.share = named.share;
    facts.stride = named.stride;
    facts.ranks = named.dataRanks;
    llvm::Expected<TierChoice> chosen = rule->choose ? rule->choose(module, facts) : TierChoice();
    if (!chosen)
      return module.emitError("strategy ") << printable(strategy) << " " << llvm::toString(chosen.takeError());
    labelTiers(module, *rule, *chosen);
    if (failed(applyStrategy(module, choice, bucketBytes)))
      return failure();
    applyTiers(module, *rule, *chosen);
    return success();
  }

  /// Returns a mesh with as many data-parallel replicas as micro-batches allow, and the batch split among the members
  /// of each.
  FailureOr<MeshAttr> shareRanks(ModuleOp module, const StrategyTerms &terms) {
    int64_t microBatches = train::getMergedMicroBatches(module), dataRanks = terms.dataRanks;
    if (microBatches < 1)
      return module.emitError("has ") << microBatches << " micro-batches per step: use at least 1";
    for (func::FuncOp function : getPlannedFunctions(module)) {
      const int64_t batch = getBatch(function);
      if (canShare(dataRanks, microBatches, batch))
        continue;
      SmallVector<int64_t> fitting = listDataRanks(dataRanks, microBatches, batch);
      for (int64_t &ranks : fitting)
        ranks *= terms.modelRanks;
      int64_t more = microBatches + 1;
      while (!canShare(dataRanks, more, batch))
        ++more;
      return function.emitError() << countOf(dataRanks * terms.modelRanks, "rank") << " cannot share "
                                  << countOf(microBatches, "micro-batch", "micro-batches") << " of batch " << batch
                                  << " evenly: use " << listOf(fitting) << " ranks, or --micro-batches " << more;
    }
    int64_t replicas = std::gcd(dataRanks, microBatches);
    return makeMesh(module.getContext(), replicas, dataRanks / replicas, terms.modelRanks);
  }

  /// Whether gcd(`dataRanks`, `microBatches`) data-parallel replicas can each split the batch evenly among their
  /// members.
  static bool canShare(int64_t dataRanks, int64_t microBatches, int64_t batch) {
    return batch % (dataRanks / std::gcd(dataRanks, microBatches)) == 0;
  }

  /// Returns the numbers of ranks for which `canShare` holds, in order: at most four up to `near` and four above it.
  static SmallVector<int64_t> listDataRanks(int64_t near, int64_t microBatches, int64_t batch) {
    constexpr int64_t mostListed = 4, mostTried = 1 << 16;
    SmallVector<int64_t> found;
    for (int64_t ranks = std::min(near, mostTried); ranks > 0 && static_cast<int64_t>(found.size()) < mostListed;
         --ranks)
      if (canShare(ranks, microBatches, batch))
        found.push_back(ranks);
    std::reverse(found.begin(), found.end());
    int64_t listed = found.size() + mostListed;
    for (int64_t ranks = near + 1;
         ranks <= std::min(microBatches * batch, mostTried) && static_cast<int64_t>(found.size()) < listed; ++ranks)
      if (canShare(ranks, microBatches, batch))
        found.push_back(ranks);
    return found;
  }
};

} // namespace

int64_t plan::getBatch(func::FuncOp function) {
  int64_t batch = 0;
  for (BlockArgument argument : function.getArguments())
    if (auto type = llvm::dyn_cast<RankedTensorType>(argument.getType());
        type && isInput(function, argument) && type.getRank() > 0)
      batch = std::gcd(batch, type.getDimSize(0));
  return batch;
}

MeshAttr plan::makeMesh(MLIRContext *context, int64_t replicas, int64_t batchParts, int64_t modelRanks) {
  SmallVector<AxisAttr> axes;
  for (auto [name, size, role] : {std::tuple("data", replicas, AxisRole::replica),
                                  {"batch", batchParts, AxisRole::batch},
                                  {"model", modelRanks, AxisRole::model}})
    if (size > 1)
      axes.push_back(AxisAttr::get(context, StringAttr::get(context, name), size, role));
  return MeshAttr::get(context, axes);
}

LayoutAttr plan::getArgumentLayout(func::FuncOp function, BlockArgument argument, MeshAttr mesh) {
  auto type = llvm::cast<RankedTensorType>(argument.getType());
  LayoutAttr whole = LayoutAttr::getWhole(type);
  SmallVector<StringAttr> axes = mesh.axesOf(AxisRole::batch);
  if (type.getRank() == 0 || axes.empty() || !isInput(function, argument))
    return whole;
  MLIRContext *context = type.getContext();
  SmallVector<DimLayoutAttr> dims(whole.getDims());
  dims[0] = DimLayoutAttr::get(context, {FactorLayoutAttr::get(context, type.getDimSize(0), axes)});
  return LayoutAttr::get(context, dims, {}, MemoryKind::device);
}

LayoutAttr plan::shardLayout(LayoutAttr layout, MeshAttr mesh) {
  MLIRContext *context = layout.getContext();
  SmallVector<StringAttr> axes = mesh.getDataAxes();
  auto countMembers = [&](ArrayRef<StringAttr> choice) {
    int64_t members = 1;
    for (StringAttr axis : choice)
      members *= mesh.sizeOf(axis.getValue());
    return members;
  };
  SmallVector<ArrayRef<StringAttr>> choices;
  for (size_t count = axes.size(); count > 0; --count)
    for (size_t first = 0; first + count <= axes.size(); ++first)
      choices.push_back(ArrayRef(axes).slice(first, count));
  // The axes with the most members come first; among equals, outer axes do.
  auto toKey = [&](ArrayRef<StringAttr> choice) { return std::make_pair(-countMembers(choice), choice.data()); };
  llvm::sort(choices, [&](ArrayRef<StringAttr> a, ArrayRef<StringAttr> b) { return toKey(a) < toKey(b); });
  // Axes on which pins have split the layout already do not split it again.
  llvm::erase_if(choices, [&](ArrayRef<StringAttr> choice) {
    return llvm::any_of(choice, [&](StringAttr axis) { return usesAxis(layout, axis); });
  });
  for (ArrayRef<StringAttr> choice : choices)
    for (auto [d, dim] : llvm::enumerate(layout.getDims()))
      for (auto [f, factor] : llvm::enumerate(dim.getFactors())) {
        if (factor.getSize() % (countMembers(factor.getAxes()) * countMembers(choice)) != 0)
          continue;
        SmallVector<StringAttr> axes(factor.getAxes());
        llvm::append_range(axes, choice);
        SmallVector<FactorLayoutAttr> factors(dim.getFactors());
        factors[f] = FactorLayoutAttr::get(context, factor.getSize(), axes);
        SmallVector<DimLayoutAttr> dims(layout.getDims());
        dims[d] = DimLayoutAttr::get(context, factors);
        return LayoutAttr::get(context, dims, layout.getUnreduced(), layout.getMemory());
      }
  return layout;
}

LayoutAttr plan::gatherShards(LayoutAttr layout, MeshAttr mesh) {
  MLIRContext *context = layout.getContext();
  SmallVector<DimLayoutAttr> dims;
  for (DimLayoutAttr dim : layout.getDims()) {
    SmallVector<FactorLayoutAttr> factors;
    for (FactorLayoutAttr factor : dim.getFactors()) {
      SmallVector<StringAttr> axes(factor.getAxes());
      llvm::erase_if(axes, [&](StringAttr axis) { return mesh.isDataAxis(axis); });
      factors.push_back(FactorLayoutAttr::get(context, factor.getSize(), axes));
    }
    dims.push_back(DimLayoutAttr::get(context, factors));
  }
  return LayoutAttr::get(context, dims, {}, layout.getMemory());
}

LayoutAttr plan::shardLayoutFlat(LayoutAttr layout, MeshAttr mesh) {
  SmallVector<StringAttr> axes = mesh.getDataAxes();
  llvm::erase_if(axes, [&](StringAttr axis) { return usesAxis(layout, axis); });
  LayoutAttr byDims = shardLayout(layout, mesh);
  int64_t elements = 1;
  for (DimLayoutAttr dim : layout.getDims())
    if (std::optional<Digits> digits = getDigits(dim, mesh))
      for (const Digit &digit : *digits)
        elements *= digit.axis ? 1 : digit.size;
  bool takesAll = llvm::all_of(axes, [&](StringAttr axis) { return usesAxis(byDims, axis); });
  LayoutAttr flat = layout.withFlat(axes);
  return takesAll || elements < flat.getFlatParts(mesh) ? byDims : flat;
}

ParameterLayouts plan::layOutCopies(LayoutAttr read, ShardedCopies shardedCopies, MeshAttr mesh) {
  SmallVector<UnreducedAttr> sums;
  for (StringAttr axis : mesh.getDataAxes())
    if (!usesAxis(read, axis))
      sums.push_back(UnreducedAttr::get(read.getContext(), axis, train::ReductionKind::sum));
  LayoutAttr sharded = shardLayoutFlat(read, mesh);
  return {shardedCopies.compute ? shardLayout(read, mesh) : read,
          shardedCopies.gradient ? sharded : addUnreduced(read, sums, mesh), shardedCopies.master ? sharded : read};
}

ParameterLayouts plan::getCopies(const StrategyChoice &choice, StringAttr symbol, LayoutAttr read, MeshAttr mesh) {
  if (auto found = choice.parameters.find(symbol); found != choice.parameters.end())
    return found->second;
  ParameterLayouts copies = layOutCopies(read, choice.shardedCopies, mesh);
  auto pinned = choice.pins.parameters.find(symbol);
  if (pinned == choice.pins.parameters.end())
    return copies;
  auto getPin = [&](const char *copy) {
    auto pin = pinned->second.find(copy);
    return pin == pinned->second.end() ? LayoutAttr() : pin->second.first;
  };
  // Sharded copies are sharded like the master.
  if (LayoutAttr pin = getPin("master")) {
    copies.master = pin;
    if (choice.shardedCopies.gradient)
      copies.gradient = pin;
    if (choice.shardedCopies.compute)
      copies.compute = pin.withFlat({});
  }
  if (LayoutAttr pin = getPin("compute"))
    copies.compute = pin;
  if (LayoutAttr pin = getPin("gradient"))
    copies.gradient = pin;
  return copies;
}

CopyMemories plan::getCopyMemories(train::ParameterOp weight) {
  return {getStateMemory(weight), getGradientMemory(weight), getComputeMemory(weight),
          weight->hasAttr(kUpdatesOnDeviceAttr)};
}

bool plan::choosesMemories(train::ParameterOp weight) {
  return weight->hasAttr(kMayOffloadAttr) || getStateMemory(weight) != MemoryKind::device;
}

/// Labels the parameters with the memories that the search chose, and with where it updates what the host holds.
static void applyMemories(ModuleOp module, const StrategyChoice &choice) {
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    bool choosesAll = parameter->removeAttr(kMayOffloadAttr) != nullptr;
    auto found = choice.memories.find(parameter.getSymNameAttr());
    if (found == choice.memories.end())
      continue;
    const CopyMemories &memories = found->second;
    if (memories.updatesOnDevice)
      parameter->setAttr(kUpdatesOnDeviceAttr, UnitAttr::get(module.getContext()));
    else
      parameter->removeAttr(kUpdatesOnDeviceAttr);
    if (!choosesAll)
      continue;
    for (auto [attribute, memory] : {std::pair(kStateMemoryAttr, memories.state),
                                     {kGradientMemoryAttr, memories.gradient},
                                     {kComputeMemoryAttr, memories.compute}})
      if (memory != MemoryKind::device)
        parameter->setAttr(attribute, MemoryKindAttr::get(module.getContext(), memory));
  }
}

LogicalResult plan::applyStrategy(ModuleOp module, const StrategyChoice &choice, int64_t bucketBytes) {
  applyMemories(module, choice);
  module->removeAttr(kPrefetchBytesAttr);
  module->removeAttr(kKeepsGathersAttr);
  module->removeAttr(kUnitBytesAttr);
  module->setAttr(kBucketBytesAttr, IntegerAttr::get(IntegerType::get(module.getContext(), 64), bucketBytes));
  return StrategyApplier(module, choice).run();
}
