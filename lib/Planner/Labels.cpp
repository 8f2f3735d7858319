#include "Labels.h"

#include "Epilogues.h"
#include "WholeWork.h"

#include "windlass/Dialect/Plan/Transforms/Propagation.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Support/RunTasks.h"
#include "windlass/Support/TensorBytes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// The most equal blocks in which a factor is split: a fused projection has three, and more where its heads are
/// grouped.
static constexpr int64_t kMostBlocks = 64;

/// The copies of a weight that may be shards: none at first, then one more in each entry. The last one reduces the
/// gradient once for a step instead of once for each micro-batch, and gathers weights for each. It is a label only
/// where a replica has at most `kFewMicroBatches`: there it makes steps of GPT-2 1.5B on 32 devices shorter by 2.6 %,
/// with its larger units. With many, it is cheaper for small weights than its steps are: these of OPT-30B became 2 %
/// longer.
static constexpr plan::ShardedCopies kShardedCopies[] = {
    {}, {false, false, true}, {false, true, true}, {true, true, true}, {true, false, true}};
static constexpr int64_t kFewMicroBatches = 2;

static RankedTensorType typeOf(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

Labels::Labels(const Groups &groups, const Reshards &reshards, const CostModel &costs, const plan::Pins &pins,
               int threads)
    : groups(groups), reshards(reshards), costs(costs), pins(pins), mesh(reshards.getMesh()) {
  for (plan::AxisAttr axis : mesh.getAxes())
    if (axis.getRole() != plan::AxisRole::replica)
      workAxes.push_back(axis.getName());
  for (const OperatorGroup &group : groups.getOperators())
    factors.push_back(llvm::cast<train::TrainOpInterface>(group.front()).getFactors());
  findSplits();
  operators.resize(groups.getOperators().size());
  runTasks(threads, static_cast<int>(operators.size()), [&](int group) { makeOperatorLabels(group); });
  parameters.resize(groups.getParameters().size());
  for (unsigned group = 0; group < parameters.size(); ++group)
    makeParameterLabels(group);
}

/// Splits every factor in one block, fused projections in as many blocks as they are taken apart into, and operators
/// that read their results in the blocks that follow from that.
void Labels::findSplits() {
  splits.resize(factors.size());
  std::set<int64_t> counts;
  for (const OperatorGroup &group : groups.getOperators())
    if (int64_t parts = plan::countParts(group.front()); parts > 1)
      counts.insert(parts);
  for (unsigned group = 0; group < factors.size(); ++group)
    for (unsigned index = 0; index < factors[group].factors.size(); ++index) {
      if (factors[group].factors[index].kind != train::FactorKind::Replicated)
        splits[group].insert({index, 1});
      if (llvm::isa<train::MatmulOp>(groups.getOperators()[group].front()))
        for (int64_t count : counts)
          if (factors[group].factors[index].size % count == 0)
            splits[group].insert({index, count});
    }
  if (workAxes.empty())
    return;
  // The size of the axis matters only for what it divides.
  StringAttr axis = workAxes.back();
  auto spread = [&](const train::DimFactors &dim, plan::DimLayoutAttr layout, unsigned to) {
    plan::Splits taken;
    plan::takeAxes(factors[to], dim, layout, taken, mesh);
    for (auto &[index, split] : taken)
      if (split.blocks <= kMostBlocks)
        splits[to].insert({index, split.blocks});
  };
  auto follow = [&](unsigned group, bool isForward) {
    Operation *op = groups.getOperators()[group].front();
    for (Split split : std::set<Split>(splits[group])) {
      plan::FactorSplit own{{axis}, split.second};
      if (!plan::canSplit(factors[group], split.first, own, {}, mesh))
        continue;
      SmallVector<plan::LayoutAttr> none(op->getNumOperands());
      FailureOr<plan::OpLayouts> layouts = plan::inferLayouts(
          op, factors[group], plan::getStrategy(op->getContext(), factors[group], {{split.first, own}}), none, mesh);
      if (failed(layouts))
        continue;
      if (isForward) {
        for (OpResult result : op->getResults())
          for (auto &[use, count] : groups.getUses(group, result.getResultNumber()))
            for (auto [dim, layout] : llvm::zip(factors[use.group].operands[use.operand],
                                                layouts->results[result.getResultNumber()].getDims()))
              spread(dim, layout, use.group);
      } else {
        for (OpOperand &operand : op->getOpOperands()) {
          auto result = llvm::dyn_cast<OpResult>(operand.get());
          std::optional<unsigned> from = result ? groups.getGroup(result.getOwner()) : std::nullopt;
          if (from)
            for (auto [dim, layout] : llvm::zip(factors[*from].results[result.getResultNumber()],
                                                layouts->operands[operand.getOperandNumber()].getDims()))
              spread(dim, layout, *from);
        }
      }
    }
  };
  for (unsigned group = 0; group < factors.size(); ++group)
    follow(group, true);
  for (unsigned group = factors.size(); group-- > 0;)
    follow(group, false);
  // The backward pass takes values from the stash of operators that were visited on the way back.
  for (unsigned group = 0; group < factors.size(); ++group)
    follow(group, true);
}

/// Lists all ways to put each axis on one factor or on none.
std::vector<plan::Splits> Labels::listSplits(unsigned group) const {
  const train::OpFactors &own = factors[group];
  std::vector<plan::Splits> choices(1);
  for (StringAttr axis : workAxes) {
    std::vector<plan::Splits> next = choices;
    for (const plan::Splits &before : choices)
      for (auto [index, blocks] : splits[group]) {
        plan::FactorSplit split{{}, blocks};
        plan::Splits others = before;
        if (auto it = before.find(index); it != before.end()) {
          if (it->second.blocks != blocks)
            continue;
          split = it->second;
          others.erase(index);
        }
        split.axes.push_back(axis);
        if (!plan::canSplit(own, index, split, others, mesh))
          continue;
        others[index] = split;
        next.push_back(others);
      }
    choices = std::move(next);
  }
  return choices;
}

static plan::Splits toSplits(plan::StrategyAttr strategy, const train::OpFactors &factors) {
  plan::Splits splits;
  for (auto [index, factor] : llvm::enumerate(factors.factors))
    if (plan::FactorAxesAttr split = strategy.splitOf(factor.name))
      splits[index] = {SmallVector<StringAttr, 1>(split.getAxes()), split.getBlocks()};
  return splits;
}

void Labels::makeOperatorLabels(unsigned group) {
  Operation *op = groups.getOperators()[group].front();
  const train::OpFactors &own = factors[group];
  train::OpCost whole = llvm::cast<train::TrainOpInterface>(op).getCost();
  double wholeBytes = 0;
  for (Value value : llvm::concat<Value>(SmallVector<Value>(op->getOperands()), SmallVector<Value>(op->getResults())))
    wholeBytes += static_cast<double>(getTensorBytes(typeOf(value)));

  std::vector<OperatorLabel> &labels = operators[group];
  const bool isEpilogue = costs.fusesEpilogues() && mayBeEpilogue(op);
  auto add = [&](const plan::Splits &choice, ArrayRef<plan::LayoutAttr> available) {
    OperatorLabel label;
    label.strategy = plan::getStrategy(op->getContext(), own, choice);
    FailureOr<plan::OpLayouts> layouts = plan::inferLayouts(op, own, label.strategy, available, mesh);
    if (failed(layouts))
      return;
    label.operands.assign(layouts->operands.begin(), layouts->operands.end());
    label.results.assign(layouts->results.begin(), layouts->results.end());
    for (const OperatorLabel &other : labels)
      if (other.strategy == label.strategy && other.operands == label.operands && other.results == label.results)
        return;
    int64_t parts = 1;
    for (auto &[index, split] : choice)
      for (StringAttr axis : split.axes)
        parts *= mesh.sizeOf(axis.getValue());
    double bytes = 0;
    for (auto [value, layout] : llvm::zip_equal(op->getOperands(), label.operands))
      bytes += static_cast<double>(getTensorBytes(layout.getLocalType(typeOf(value), mesh)));
    for (auto [value, layout] : llvm::zip_equal(op->getResults(), label.results))
      bytes += static_cast<double>(getTensorBytes(layout.getLocalType(typeOf(value), mesh)));
    if (!plan::Recomputation::isFree(op) && !plan::Recomputation::isView(op)) {
      OperatorWork &work = label.work = getWholeWork(op);
      work.flops = whole.flops / static_cast<double>(parts);
      work.bytes = wholeBytes > 0 ? whole.bytes * bytes / wholeBytes : 0;
      label.picoseconds =
          (isEpilogue ? 0 : costs.getPicoseconds(work)) + getInnerCost(op, own, label) + getHaloCost(op, own, label);
    }
    labels.push_back(std::move(label));
  };
  auto pinned = pins.ops.find(op);
  bool isPinned = pinned != pins.ops.end() && pinned->second.strategy;
  for (const plan::Splits &choice :
       isPinned ? std::vector{toSplits(*pinned->second.strategy, own)} : listSplits(group)) {
    SmallVector<plan::LayoutAttr> none(op->getNumOperands());
    add(choice, none);
    // Linear operators may pass on incomplete sums.
    SmallVector<StringAttr> unused(workAxes);
    for (auto &[index, split] : choice)
      llvm::erase_if(unused, [&, &axes = split.axes](StringAttr axis) { return llvm::is_contained(axes, axis); });
    for (ArrayRef<unsigned> set : own.unreducedTogether)
      for (unsigned mask = 1; mask < 1u << unused.size(); ++mask) {
        SmallVector<plan::UnreducedAttr> sums;
        for (auto [i, axis] : llvm::enumerate(unused))
          if (mask >> i & 1)
            sums.push_back(plan::UnreducedAttr::get(op->getContext(), axis, train::ReductionKind::sum));
        SmallVector<plan::LayoutAttr> available = none;
        for (unsigned operand : set)
          available[operand] =
              plan::addUnreduced(plan::LayoutAttr::getWhole(typeOf(op->getOperand(operand))), sums, mesh);
        add(choice, available);
      }
  }
}

/// Returns the cost of combining partial results of a reduction: a row's statistics, or the operator's results where
/// these do not have the factor. It counts three times, as for a softmax and its gradient: the largest, the sum, the
/// product.
int64_t Labels::getInnerCost(Operation *op, const train::OpFactors &own, const OperatorLabel &label) const {
  for (auto [index, factor] : llvm::enumerate(own.factors)) {
    ArrayRef<StringAttr> axes = label.strategy.axesOf(factor.name);
    if (axes.empty() || factor.kind != train::FactorKind::Inner)
      continue;
    int64_t most = 0;
    for (auto [value, uses, layout] : llvm::zip_equal(op->getResults(), own.results, label.results)) {
      int64_t bytes = getTensorBytes(layout.getLocalType(typeOf(value), mesh));
      bool hasFactor =
          llvm::any_of(uses, [&, i = index](const train::DimFactors &dim) { return llvm::is_contained(dim, i); });
      most = std::max(most, hasFactor ? bytes / std::max<int64_t>(1, factor.size / mesh.sizeOf(axes.front().getValue()))
                                      : bytes);
    }
    return 3 * 2 * reshards.getGatherCost(axes, most, /*unitBytes=*/0);
  }
  return 0;
}

/// Returns the cost of bringing the edges of parts to their neighbours, for which the edges of all parts are gathered,
/// and of the copy that has a part beside its halo.
int64_t Labels::getHaloCost(Operation *op, const train::OpFactors &own, const OperatorLabel &label) const {
  for (auto [index, factor] : llvm::enumerate(own.factors)) {
    plan::FactorAxesAttr split = label.strategy.splitOf(factor.name);
    if (factor.halo == 0 || !split || split.getAxes().empty())
      continue;
    int64_t parts = split.getBlocks();
    for (StringAttr axis : split.getAxes())
      parts *= mesh.sizeOf(axis.getValue());
    double most = 0;
    auto see = [&, i = index](Value value, const train::ValueFactors &uses, plan::LayoutAttr layout) {
      if (llvm::any_of(uses, [&](const train::DimFactors &dim) { return llvm::is_contained(dim, i); }))
        most = std::max(most, static_cast<double>(getTensorBytes(layout.getLocalType(typeOf(value), mesh))));
    };
    for (auto [value, uses, layout] : llvm::zip_equal(op->getOperands(), own.operands, label.operands))
      see(value, uses, layout);
    for (auto [value, uses, layout] : llvm::zip_equal(op->getResults(), own.results, label.results))
      see(value, uses, layout);
    // A part has `size / parts` elements along the factor, and its edges have `halo` of them.
    double edges = most * factor.halo / static_cast<double>(factor.size);
    OperatorWork copy;
    copy.bytes = 2 * most;
    return reshards.getGatherCost(split.getAxes(), std::llround(edges * static_cast<double>(parts * parts)),
                                  /*unitBytes=*/0) +
           costs.getPicoseconds(copy);
  }
  return 0;
}

/// Whether the copies that a label chooses to have on the host have layouts with which they can be there.
static bool mayKeep(const ParameterLabel &label, plan::MeshAttr mesh) {
  return (label.memories.gradient == plan::MemoryKind::device || label.accumulatesAsRead(mesh)) &&
         (label.memories.compute == plan::MemoryKind::device || label.keepsWhatItUpdates(mesh));
}

void Labels::makeParameterLabels(unsigned group) {
  train::ParameterOp parameter = groups.getParameters()[group].parameters.front();
  SmallVector<plan::LayoutAttr> reads = {plan::LayoutAttr::getWhole(parameter.getTensorType())};
  if (plan::LayoutAttr pinned = getPinnedRead(group))
    reads.push_back(pinned);
  for (auto &[use, count] : groups.getParameterUses(group))
    for (const OperatorLabel &label : operators[use.group]) {
      plan::LayoutAttr layout = plan::dropUnreduced(label.operands[use.operand]);
      // The layouts of a weight's copies say what data-parallel ranks hold of it.
      if (!plan::usesDataAxes(layout, mesh) &&
          llvm::none_of(reads, [&](plan::LayoutAttr other) { return plan::haveSameParts(layout, other, mesh); }))
        reads.push_back(layout);
    }
  int64_t microBatches = train::getMergedMicroBatches(parameter->getParentOfType<ModuleOp>());
  bool repeatsGathers = microBatches > kFewMicroBatches * mesh.sizeOf(plan::AxisRole::replica);
  plan::CopyMemories own = plan::getCopyMemories(parameter);
  SmallVector<plan::CopyMemories> memories = {own};
  // Each copy that may be on the host needs those before it there.
  constexpr plan::MemoryKind device = plan::MemoryKind::device, host = plan::MemoryKind::host;
  bool isWish = !parameter->hasAttr(plan::kMayOffloadAttr); // what is asked for of all parameters
  if (!isWish)
    memories.append({{host, device, device},
                     {host, host, device},
                     {host, host, host},
                     {host, device, device, /*updatesOnDevice=*/true}});
  else if (own.state != device && costs.overlapsCollectives())
    memories.push_back({own.state, own.gradient, own.compute, !own.updatesOnDevice});
  for (plan::LayoutAttr read : reads)
    for (plan::ShardedCopies sharded : kShardedCopies) {
      if (repeatsGathers && sharded.compute && !sharded.gradient)
        break;
      ParameterLabel label{read, plan::layOutCopies(read, sharded, mesh)};
      // A copy that no axis cuts is no shard, nor is one of a weight that does not train.
      if ((sharded.master && (!parameter.getTrainable() || !label.shardsMaster())) ||
          (sharded.compute && !label.shardsCompute()))
        break;
      if (!obeyPins(group, label))
        continue;
      for (const plan::CopyMemories &each : memories) {
        label.memories = each;
        if (isWish || mayKeep(label, mesh))
          parameters[group].push_back(label);
      }
    }
}

plan::LayoutAttr Labels::getPinnedRead(unsigned group) const {
  const ParameterGroup &its = groups.getParameters()[group];
  if (auto found = pins.ops.find(its.reads.front()); found != pins.ops.end() && !found->second.layouts.empty())
    return found->second.layouts.front();
  auto found = pins.parameters.find(train::ParameterOp(its.parameters.front()).getSymNameAttr());
  if (found == pins.parameters.end() || !found->second.count("compute"))
    return nullptr;
  return plan::gatherShards(found->second.at("compute").first, mesh);
}

bool Labels::obeyPins(unsigned group, ParameterLabel &label) const {
  if (plan::LayoutAttr pinned = getPinnedRead(group); pinned && !plan::haveSameParts(pinned, label.read, mesh))
    return false;
  auto found =
      pins.parameters.find(train::ParameterOp(groups.getParameters()[group].parameters.front()).getSymNameAttr());
  if (found == pins.parameters.end())
    return true;
  RankedTensorType type = groups.getParameters()[group].getType();
  auto isPinned = [&](const char *copy) { return found->second.count(copy) > 0; };
  auto obey = [&](const char *copy, plan::LayoutAttr &layout) {
    if (!isPinned(copy))
      return true;
    plan::LayoutAttr wanted = found->second.at(copy).first;
    if (plan::haveSameParts(layout, wanted, mesh))
      return true;
    // Shards of another dimension are just as good.
    bool isAsGood =
        layout != label.read && wanted.getFlat().empty() &&
        plan::haveSameParts(plan::gatherShards(wanted, mesh), label.read, mesh) &&
        wanted.getLocalType(type, mesh).getNumElements() == layout.getLocalType(type, mesh).getNumElements();
    if (isAsGood)
      layout = wanted;
    return isAsGood;
  };
  // The axes over which a gradient is still to be summed follow from its operators.
  if (isPinned("gradient") && !plan::haveSameParts(plan::dropUnreduced(label.copies.gradient),
                                                   plan::dropUnreduced(found->second.at("gradient").first), mesh))
    return false;
  const plan::ParameterLayouts free = label.copies;
  if (!obey("compute", label.copies.compute) || !obey("master", label.copies.master))
    return false;
  // Other shards have the layout of the master.
  if (label.copies.master != free.master) {
    if (label.shardsGradient() && !isPinned("gradient"))
      label.copies.gradient = label.copies.master;
    if (label.shardsCompute() && !isPinned("compute"))
      label.copies.compute = label.copies.master;
  }
  return true;
}

std::string Labels::findUnmetPin() const {
  auto getPinOf = [&](Operation *op) -> std::string {
    auto found = pins.ops.find(op);
    return found == pins.ops.end() ? "" : found->second.strategy ? found->second.strategyPin : found->second.layoutPin;
  };
  for (auto [group, labels] : llvm::zip_equal(groups.getOperators(), operators))
    if (labels.empty())
      return getPinOf(group.front());
  for (auto [group, labels] : llvm::zip_equal(groups.getParameters(), parameters)) {
    if (!labels.empty())
      continue;
    auto found = pins.parameters.find(train::ParameterOp(group.parameters.front()).getSymNameAttr());
    return found == pins.parameters.end() ? getPinOf(group.reads.front()) : found->second.begin()->second.second;
  }
  return "";
}
