#include "RangeAssembly.h"

#include "windlass/Support/TensorBytes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

static RankedTensorType typeOf(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

search::Problem RangeAssembly::build(const Lifetimes &lifetimes, const RecomputeCounts &counts, bool choosesRecompute) {
  nodes.clearValues();
  chosenMemory.clear();
  // Recomputed operators have nodes of their own.
  builder.begin(lifetimes.getRows(),
                static_cast<int64_t>(2 * groups.getOperators().size() + groups.getParameters().size()));
  addOperators(counts);
  for (unsigned group = 0; group < groups.getParameters().size(); ++group)
    addParameter(group, lifetimes);
  addValues(lifetimes, choosesRecompute);
  addBorder(lifetimes, choosesRecompute);
  addReads();
  addArguments();
  builder.fillTables();
  if (choosesRecompute)
    addRecomputeChoice(builder, prices, groups, recompute, lifetimes, chosenMemory);
  return builder.take();
}

void RangeAssembly::addOperators(const RecomputeCounts &counts) {
  for (unsigned group = 0; group < groups.getOperators().size(); ++group) {
    int32_t node = builder.addNode(std::vector<int64_t>(labels.ofOperator(group).size(), 0));
    prices.addOperators(node, group, counts[group]);
  }
}

void RangeAssembly::addParameter(unsigned group, const Lifetimes &lifetimes) {
  const ParameterCosts &own = parameterCosts[group];
  const std::vector<ParameterLabel> &choices = labels.ofParameter(group);
  auto members = static_cast<int64_t>(groups.getParameters()[group].parameters.size());
  int32_t node = builder.addNode(std::vector<int64_t>(choices.size(), 0));
  prices.addParameters(node, group);
  std::vector<int64_t> gathered;
  std::map<plan::MemoryKind, std::vector<int64_t>> kept;
  for (auto [label, choice] : llvm::enumerate(choices)) {
    for (auto [memory, bytes] : own.getCopyBytes(choice))
      kept.try_emplace(memory, choices.size(), 0).first->second[label] =
          llvm::divideCeil(members * bytes, builder.getSetting().positions);
    gathered.push_back(own.getGatheredBytes(choice));
  }
  for (auto &[memory, bytes] : kept)
    if (builder.getSetting().limits(memory))
      addHeldBytes(node, group, memory, bytes, lifetimes);
  if (llvm::any_of(gathered, [](int64_t bytes) { return bytes > 0; }))
    builder.addBytes(node, plan::MemoryKind::device, lifetimes.getReadRuns(group), gathered);
}

void RangeAssembly::addHeldBytes(int32_t node, unsigned group, plan::MemoryKind memory, std::vector<int64_t> bytes,
                                 const Lifetimes &lifetimes) {
  if (!lifetimes.hasFirst())
    return builder.addHeldBytes(node, memory, bytes);
  builder.addBytes(node, memory, {{0, 1, kRecomputeParts}}, bytes);
  auto members = static_cast<int64_t>(groups.getParameters()[group].parameters.size());
  for (int64_t &each : bytes)
    each = each / members * lifetimes.countParametersOnFirst(group);
  builder.addBytes(node, memory, {{1, 2, kRecomputeParts}}, bytes);
}

std::vector<int64_t> RangeAssembly::getLocalBytes(RankedTensorType type,
                                                  const std::vector<plan::LayoutAttr> &layouts) const {
  std::vector<int64_t> bytes;
  for (plan::LayoutAttr layout : layouts)
    bytes.push_back(getTensorBytes(layout.getLocalType(type, base.mesh)));
  return bytes;
}

void RangeAssembly::addValues(const Lifetimes &lifetimes, bool choosesRecompute) {
  for (auto [group, its] : llvm::enumerate(groups.getOperators()))
    for (unsigned result = 0; result < its.front()->getNumResults(); ++result) {
      std::vector<int64_t> bytes;
      int32_t source = addResult(group, result, bytes);
      if (!choosesRecompute) {
        builder.addBytes(source, plan::MemoryKind::device, lifetimes.getRuns(group, result), bytes);
        continue;
      }
      addChosenBytes(source, its, bytes, lifetimes.getRunsByLabel(group, result), /*isOfFirst=*/false);
      if (lifetimes.hasFirst())
        addChosenBytes(source, its, bytes, lifetimes.getRunsOfFirst(group, result), /*isOfFirst=*/true);
    }
}

void RangeAssembly::addChosenBytes(int32_t source, const OperatorGroup &group, const std::vector<int64_t> &bytes,
                                   std::vector<std::vector<LiveRun>> runs, bool isOfFirst) {
  if (llvm::all_equal(runs))
    builder.addBytes(source, plan::MemoryKind::device, runs.front(), bytes);
  else
    chosenMemory.push_back({source, *recompute.getClass(group), bytes, std::move(runs), isOfFirst});
}

void RangeAssembly::addBorder(const Lifetimes &lifetimes, bool choosesRecompute) {
  for (Value value : groups.getBorder()) {
    Uses uses = groups.getUses(value);
    std::vector<plan::LayoutAttr> layouts = listLayouts({plan::LayoutAttr::getWhole(typeOf(value))}, uses);
    int32_t node = addValueNode(typeOf(value), {{value}, layouts, -1}, uses);
    addUses(node, std::nullopt, typeOf(value), layouts, uses);
    builder.addBytes(node, plan::MemoryKind::device,
                     choosesRecompute ? lifetimes.getBorderRunsByLabel(value).front() : lifetimes.getBorderRuns(value),
                     getLocalBytes(typeOf(value), layouts));
  }
}

void RangeAssembly::addReads() {
  for (auto [group, its] : llvm::enumerate(groups.getParameters())) {
    std::vector<plan::LayoutAttr> found;
    for (const ParameterLabel &label : labels.ofParameter(group))
      found.push_back(label.read);
    for (auto &[use, count] : groups.getParameterUses(group))
      prices.addReshards(nodes.ofParameter(group), ProblemNodes::ofOperator(use.group),
                         {ReshardSite::Kind::read, std::nullopt, use, count, its.getComputeType()},
                         {found, getWanted(use)});
  }
}

std::vector<plan::LayoutAttr> RangeAssembly::getWanted(const Use &use) const {
  std::vector<plan::LayoutAttr> wanted;
  for (const OperatorLabel &label : labels.ofOperator(use.group))
    wanted.push_back(label.operands[use.operand]);
  return wanted;
}

plan::LayoutAttr RangeAssembly::getPinnedLayout(unsigned group, unsigned result) const {
  auto found = base.pins.ops.find(groups.getOperators()[group].front());
  return found == base.pins.ops.end() || found->second.layouts.empty() ? nullptr : found->second.layouts[result];
}

std::vector<plan::LayoutAttr> RangeAssembly::listLayouts(std::vector<plan::LayoutAttr> made, const Uses &uses) const {
  std::vector<plan::LayoutAttr> layouts;
  auto add = [&](plan::LayoutAttr layout) {
    if (llvm::none_of(layouts, [&](plan::LayoutAttr other) { return plan::haveSameParts(layout, other, base.mesh); }))
      layouts.push_back(layout);
  };
  llvm::for_each(made, add);
  for (auto &[use, count] : uses)
    for (const OperatorLabel &label : labels.ofOperator(use.group))
      add(label.operands[use.operand]);
  return layouts;
}

int32_t RangeAssembly::addValueNode(RankedTensorType type, ProblemNodes::ValueNode value, const Uses &uses) {
  bool isStashed = llvm::any_of(uses, [](auto &entry) { return entry.first.isStashed; });
  auto count = static_cast<int64_t>(value.values.size());
  std::vector<int64_t> costs;
  for (plan::LayoutAttr layout : value.layouts)
    costs.push_back(isStashed ? prices.getStashCost(count, type, layout) : 0);
  value.node = builder.addNode(std::move(costs));
  nodes.addValue(value);
  return value.node;
}

void RangeAssembly::addUses(int32_t source, std::optional<std::pair<unsigned, unsigned>> result, RankedTensorType type,
                            const std::vector<plan::LayoutAttr> &found, const Uses &uses) {
  std::vector<plan::LayoutAttr> stashed = found;
  llvm::transform(found, stashed.begin(), plan::dropUnreduced);
  for (auto &[use, count] : uses)
    prices.addReshards(source, ProblemNodes::ofOperator(use.group), {ReshardSite::Kind::used, result, use, count, type},
                       {use.isStashed ? stashed : found, getWanted(use)});
}

int32_t RangeAssembly::addResult(unsigned group, unsigned result, std::vector<int64_t> &bytes) {
  Uses uses = groups.getUses(group, result);
  std::map<unsigned, int64_t> gradients = groups.getGradients(group, result);
  const OperatorGroup &its = groups.getOperators()[group];
  RankedTensorType type = typeOf(its.front()->getResult(result));
  int32_t source = ProblemNodes::ofOperator(group);
  std::vector<plan::LayoutAttr> made;
  for (const OperatorLabel &label : labels.ofOperator(group))
    made.push_back(label.results[result]);
  std::vector<plan::LayoutAttr> found = made;
  plan::LayoutAttr pinned = getPinnedLayout(group, result);
  if (pinned || uses.size() + gradients.size() > 1) {
    found = pinned ? std::vector{pinned} : listLayouts(std::move(found), uses);
    ProblemNodes::ValueNode value{{}, found, -1};
    for (Operation *op : its.ops)
      value.values.push_back(op->getResult(result));
    source = addValueNode(type, std::move(value), uses);
    prices.addReshards(
        ProblemNodes::ofOperator(group), source,
        {ReshardSite::Kind::made, std::pair(group, result), {}, static_cast<int64_t>(its.ops.size()), type},
        {made, found});
  }
  bytes = getLocalBytes(type, found);
  addUses(source, std::pair(group, result), type, found, uses);
  for (auto [parameter, count] : gradients)
    prices.addGradients(source, nodes.ofParameter(parameter), parameter, count, found);
  return source;
}

void RangeAssembly::addArguments() {
  func::FuncOp function = groups.getFunction();
  auto add = [&](Value value, plan::LayoutAttr layout) {
    for (auto &[use, count] : groups.getUses(value))
      prices.addArgument({ReshardSite::Kind::argument, std::nullopt, use, count, typeOf(value)},
                         use.isStashed ? plan::dropUnreduced(layout) : layout);
  };
  for (BlockArgument argument : function.getArguments())
    add(argument, plan::getArgumentLayout(function, argument, base.mesh));
  // Every rank has the hyperparameters as a whole.
  for (auto parameter : function.getOps<train::HyperparameterOp>())
    add(parameter.getResult(), plan::LayoutAttr::getWhole(typeOf(parameter.getResult())));
}
