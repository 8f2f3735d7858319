#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Support/Printable.h"

#include <map>
#include <numeric>

namespace windlass::plan {
#define GEN_PASS_DEF_APPLYSTRATEGY
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace windlass::plan

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

constexpr char kDataAxis[] = "data";
constexpr char kBatchAxis[] = "batch";

/// Spreads the splits of a function's arguments over its ops.
class Propagation {
public:
  Propagation(func::FuncOp function, MeshAttr mesh) : function(function), mesh(mesh), context(function.getContext()) {}

  LogicalResult run() {
    for (Operation &op : function.front().without_terminator())
      if (failed(choose(op)))
        return failure();
    for (Operation &op : llvm::reverse(function.front().without_terminator()))
      if (failed(followConsumers(op)))
        return failure();
    for (Operation &op : function.front().without_terminator())
      if (failed(layOut(op)))
        return failure();
    return success();
  }

private:
  /// Axes per factor of an op, by index of the factor.
  using Splits = std::map<unsigned, SmallVector<StringAttr, 1>>;

  /// Whether the op may carry `axes` on a factor besides what it already carries.
  bool canSplit(const train::OpFactors &factors, unsigned index, ArrayRef<StringAttr> axes,
                const Splits &splits) const {
    const train::Factor &factor = factors.factors[index];
    if (factor.kind != train::FactorKind::Parallel && factor.kind != train::FactorKind::Reduction)
      return false;
    int64_t ranks = 1;
    for (StringAttr axis : axes) {
      ranks *= mesh.sizeOf(axis.getValue());
      for (auto &[other, used] : splits)
        if (other != index && llvm::is_contained(used, axis))
          return false;
    }
    if (factor.size % ranks != 0)
      return false;
    // Every result must have the factor or leave it unreduced.
    return factor.kind == train::FactorKind::Reduction ||
           llvm::all_of(factors.results, [&](const train::ValueFactors &result) {
             return llvm::any_of(result, [&](const train::DimFactors &dim) { return llvm::is_contained(dim, index); });
           });
  }

  StrategyAttr getStrategy(const train::OpFactors &factors, const Splits &splits) const {
    SmallVector<FactorAxesAttr> attributes;
    for (auto &[index, axes] : splits)
      if (!axes.empty())
        attributes.push_back(FactorAxesAttr::get(context, StringAttr::get(context, factors.factors[index].name), axes));
    return StrategyAttr::get(context, attributes, 0, -1);
  }

  /// Takes over the axes with which a dim arrives (or is wanted), where its factors can say them.
  void takeAxes(const train::OpFactors &factors, const train::DimFactors &dim, DimLayoutAttr layout,
                Splits &splits) const {
    SmallVector<int64_t> sizes;
    for (unsigned index : dim)
      sizes.push_back(factors.factors[index].size);
    auto axes = mapAxes(layout, sizes, mesh);
    if (!axes)
      return;
    for (auto [index, wanted] : llvm::zip_equal(dim, *axes))
      if (!wanted.empty() && !splits.count(index) && canSplit(factors, index, wanted, splits))
        splits[index] = wanted;
  }

  SmallVector<LayoutAttr> getOperandLayouts(Operation &op) const {
    SmallVector<LayoutAttr> layouts;
    for (Value operand : op.getOperands())
      layouts.push_back(getLayout(operand));
    return layouts;
  }

  /// Gives the op the splits of its operands.
  LogicalResult choose(Operation &op) {
    StrategyAttr strategy = getWholeStrategy(context);
    if (auto compute = llvm::dyn_cast<train::TrainOpInterface>(op)) {
      train::OpFactors factors = compute.getFactors();
      Splits splits;
      if (factors.operands.size() == op.getNumOperands())
        for (auto [operand, value] : llvm::zip_equal(op.getOperands(), factors.operands)) {
          LayoutAttr layout = getLayout(operand);
          if (layout && layout.getDims().size() == value.size())
            for (auto [dim, dimLayout] : llvm::zip_equal(value, layout.getDims()))
              takeAxes(factors, dim, dimLayout, splits);
        }
      strategy = getStrategy(factors, splits);
    }
    op.setAttr(kStrategyAttr, strategy);
    return layOut(op);
  }

  LogicalResult layOut(Operation &op) {
    FailureOr<OpLayouts> layouts = inferLayouts(&op, getOperandLayouts(op), mesh);
    if (failed(layouts))
      return failure();
    setLayouts(&op, layouts->results);
    return success();
  }

  /// Splits a whole op where all its consumers want parts only: less to compute, and no communication.
  LogicalResult followConsumers(Operation &op) {
    auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
    if (!compute)
      return success();
    train::OpFactors factors = compute.getFactors();
    Splits splits;
    auto strategy = op.getAttrOfType<StrategyAttr>(kStrategyAttr);
    for (auto [i, factor] : llvm::enumerate(factors.factors))
      if (ArrayRef<StringAttr> axes = strategy.axesOf(factor.name); !axes.empty())
        splits[i] = SmallVector<StringAttr, 1>(axes);
    size_t before = splits.size();
    for (OpResult result : op.getResults()) {
      FailureOr<LayoutAttr> common = getWanted(result);
      if (failed(common))
        return failure();
      LayoutAttr wanted = *common;
      if (!wanted)
        continue;
      const train::ValueFactors &value = factors.results[result.getResultNumber()];
      for (auto [dim, layout] : llvm::zip_equal(value, wanted.getDims()))
        takeAxes(factors, dim, layout, splits);
    }
    if (splits.size() == before)
      return success();
    op.setAttr(kStrategyAttr, getStrategy(factors, splits));
    return layOut(op);
  }

  /// The layout in which all consumers take a value; null where they differ, or take any. A stash wants what the
  /// backward pass does.
  FailureOr<LayoutAttr> getWanted(Value value) {
    LayoutAttr wanted;
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      LayoutAttr layout;
      if (auto stash = llvm::dyn_cast<train::StashOp>(op)) {
        FailureOr<LayoutAttr> common = getWanted(stash.getResult());
        if (failed(common))
          return failure();
        layout = *common;
      } else if (llvm::isa<train::TrainOpInterface>(op)) {
        FailureOr<OpLayouts> layouts = inferLayouts(op, getOperandLayouts(*op), mesh);
        if (failed(layouts))
          return failure();
        layout = dropUnreduced(layouts->operands[use.getOperandNumber()]);
      }
      if (!layout || (wanted && !haveSameParts(wanted, layout, mesh)))
        return LayoutAttr();
      wanted = layout;
    }
    return wanted;
  }

  func::FuncOp function;
  MeshAttr mesh;
  MLIRContext *context;
};

struct ApplyStrategy : windlass::plan::impl::ApplyStrategyBase<ApplyStrategy> {
  using ApplyStrategyBase::ApplyStrategyBase;

  void runOnOperation() override {
    if (failed(apply()))
      signalPassFailure();
  }

  LogicalResult apply() {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    if (strategy != "ddp" && strategy != "auto")
      return module.emitError("strategy ") << printable(strategy) << " is not known: use ddp, or auto, which is ddp";
    if (ranks < 1 || ranks > (1 << 20))
      return module.emitError("cannot plan for ") << int64_t(ranks) << " ranks: use between 1 and " << (1 << 20);
    if (bucketBytes < 1)
      return module.emitError("buckets of ") << int64_t(bucketBytes) << " bytes hold nothing: use at least 1";
    const int64_t ranks = this->ranks;
    int64_t microBatches = 1;
    if (auto settings = module->getAttrOfType<DictionaryAttr>(train::kSettingsAttr))
      if (auto attribute = settings.getAs<IntegerAttr>("micro_batches"))
        microBatches = attribute.getInt();
    if (microBatches < 1)
      return module.emitError("has ") << microBatches << " micro-batches per step: use at least 1";

    int64_t groups = std::gcd<int64_t>(ranks, microBatches), parts = ranks / groups;
    if (failed(checkBatch(module, ranks, microBatches, groups, parts)))
      return failure();
    SmallVector<AxisAttr> axes;
    if (groups > 1)
      axes.push_back(AxisAttr::get(context, StringAttr::get(context, kDataAxis), groups));
    if (parts > 1)
      axes.push_back(AxisAttr::get(context, StringAttr::get(context, kBatchAxis), parts));
    auto mesh = MeshAttr::get(context, axes);
    module->setAttr(kMeshAttr, mesh);
    if (groups > 1)
      module->setAttr(kDataAxisAttr, StringAttr::get(context, kDataAxis));
    module->setAttr(kBucketBytesAttr, IntegerAttr::get(IntegerType::get(context, 64), bucketBytes));

    for (auto parameter : module.getOps<train::ParameterOp>()) {
      LayoutAttr whole = LayoutAttr::getWhole(parameter.getTensorType());
      parameter->setAttr(kLayoutAttr, whole);
      parameter->setAttr(kMasterLayoutAttr, whole);
      parameter->removeAttr(kGradientLayoutAttr);
    }
    for (func::FuncOp function : getPlannedFunctions(module)) {
      for (BlockArgument argument : function.getArguments())
        if (failed(layOutArgument(function, argument, mesh)))
          return failure();
      if (failed(Propagation(function, mesh).run()) || failed(layOutResults(function, mesh)))
        return failure();
    }
    return success();
  }

  static bool isInput(func::FuncOp function, BlockArgument argument) {
    return function.getArgAttr(argument.getArgNumber(), train::kInputAttr) != nullptr;
  }

  LogicalResult checkBatch(ModuleOp module, int64_t ranks, int64_t microBatches, int64_t groups, int64_t parts) {
    for (func::FuncOp function : getPlannedFunctions(module))
      for (BlockArgument argument : function.getArguments()) {
        auto type = llvm::dyn_cast<RankedTensorType>(argument.getType());
        if (!type || !isInput(function, argument) || type.getRank() == 0)
          continue;
        int64_t batch = type.getDimSize(0);
        if (batch % parts != 0)
          return function.emitError() << ranks << " ranks do not fit " << microBatches << " micro-batches of batch "
                                      << batch << ": gcd(" << ranks << ", " << microBatches << ") = " << groups
                                      << " micro-batches run at once and the batch would be split " << parts
                                      << " ways; change the ranks, the micro-batches or the graph's batch";
      }
    return success();
  }

  LogicalResult layOutArgument(func::FuncOp function, BlockArgument argument, MeshAttr mesh) {
    MLIRContext *context = &getContext();
    auto type = llvm::dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      return function.emitError("argument ") << argument.getArgNumber() << " is no tensor";
    LayoutAttr layout = LayoutAttr::getWhole(type);
    if (function.getName() == train::kUpdateFunction) {
      auto name = function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kGradientAttr);
      auto parameter = name ? SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(function, name) : nullptr;
      if (!parameter)
        return function.emitError("argument ") << argument.getArgNumber() << " of @update names no weight";
      // The layout in which `@microbatch` leaves the gradient, summed over the groups at the end of the step only.
      if (auto accumulated = parameter->getAttrOfType<LayoutAttr>(kGradientLayoutAttr))
        layout = accumulated;
      else
        return function.emitError("argument ")
               << argument.getArgNumber() << " is the gradient of " << name << ", which @microbatch does not return";
    } else if (isInput(function, argument) && type.getRank() > 0 && mesh.indexOf(kBatchAxis) >= 0) {
      SmallVector<DimLayoutAttr> dims(layout.getDims());
      dims[0] = DimLayoutAttr::get(
          context, {FactorLayoutAttr::get(context, type.getDimSize(0), {StringAttr::get(context, kBatchAxis)})});
      layout = LayoutAttr::get(context, dims, {}, MemoryKind::device);
    }
    function.setArgAttr(argument.getArgNumber(), kLayoutAttr, layout);
    return success();
  }

  /// Results stay as they are made, so that gradients and losses are reduced once a step; those of `@init`, `@update`
  /// and `@evaluate` are whole.
  LogicalResult layOutResults(func::FuncOp function, MeshAttr mesh) {
    MLIRContext *context = &getContext();
    auto module = function->getParentOfType<ModuleOp>();
    bool isMicrobatch = function.getName() == train::kMicrobatchFunction;
    SmallVector<UnreducedAttr> overGroups;
    if (auto axis = module->getAttrOfType<StringAttr>(kDataAxisAttr))
      overGroups.push_back(UnreducedAttr::get(context, axis, train::ReductionKind::sum));
    for (OpOperand &operand : function.front().getTerminator()->getOpOperands()) {
      unsigned i = operand.getOperandNumber();
      auto type = llvm::dyn_cast<RankedTensorType>(operand.get().getType());
      LayoutAttr made = getLayout(operand.get());
      if (!type || !made)
        return function.emitError("result ") << i << " has no layout";
      LayoutAttr layout = LayoutAttr::getWhole(type);
      if (isMicrobatch)
        layout = addUnreduced(layout, made.getUnreduced(), mesh);
      function.setResultAttr(i, kLayoutAttr, layout);
      auto name = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr);
      if (!isMicrobatch || !name)
        continue;
      auto parameter = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(function, name);
      if (!parameter)
        return function.emitError("result ") << i << " is the gradient of " << name << ", which is no train.parameter";
      parameter->setAttr(kGradientLayoutAttr, addUnreduced(layout, overGroups, mesh));
    }
    return success();
  }
};

} // namespace
