#include "RangeProblem.h"

#include "StepCosts.h"

#include "windlass/Support/TensorBytes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// The share 1 / `kExposedShare` of what runs beside operators counts as exposed: no schedule hides all of it, and of
/// plans that hide as much, the one that moves less is better.
static constexpr int64_t kExposedShare = 20;

static RankedTensorType typeOf(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

/// Returns the traits on which the costs of a group's parameters depend besides their layouts; all members have the
/// same.
static ParameterTraits getTraits(const ParameterGroup &group) {
  ParameterTraits traits;
  traits.type = group.getType();
  traits.computeType = group.getComputeType();
  traits.isTrainable = train::ParameterOp(group.parameters.front()).getTrainable();
  traits.states = group.states;
  auto members = static_cast<int64_t>(group.parameters.size());
  int64_t backward = llvm::count_if(group.reads, [](train::ReadOp read) { return read->hasAttr(train::kForwardAttr); });
  traits.backwardReads = backward / members;
  traits.forwardReads = static_cast<int64_t>(group.reads.size()) / members - traits.backwardReads;
  return traits;
}

/// Returns the bytes of gradients whose rate a reduction is priced at: those of a small model share one bucket. Where
/// the search chooses the size of buckets, none has a better rate than the largest, so that no plan costs less.
static int64_t getBucketBytes(const Groups &groups, const CostModel &costs) {
  int64_t bytes = 0, most = costs.overlapsCollectives() ? plan::kMostBucketBytes : plan::kBucketBytes;
  for (const ParameterGroup &group : groups.getParameters())
    for (train::ParameterOp parameter : group.parameters)
      if (parameter.getTrainable() && bytes < most)
        bytes = std::min(most, bytes + getTensorBytes(parameter.getTensorType()));
  return bytes;
}

RangeProblem::RangeProblem(const Groups &groups, const RecomputeClasses &recompute, const CostModel &costs,
                           const plan::StrategyChoice &choice, const RangeSetting &setting)
    : groups(groups), recompute(recompute), base(choice), reshards(base.mesh, costs),
      labels(groups, reshards, costs, base.pins, setting.threads), builder(setting, reshards),
      nodes(groups, labels, base) {
  int64_t bucketBytes = getBucketBytes(groups, costs);
  for (const ParameterGroup &group : groups.getParameters())
    parameterCosts.emplace_back(getTraits(group), reshards, costs, StepCounts{setting.accumulationSteps, bucketBytes});
}

search::Problem RangeProblem::build(int parts) {
  return build(Lifetimes(groups, recompute, parts, builder.getSetting().inFlight), recompute.count(parts),
               /*choosesRecompute=*/false);
}

search::Problem RangeProblem::buildWithRecompute(const RecomputeCounts &counts) {
  return build(Lifetimes(groups, recompute, 0, builder.getSetting().inFlight), counts, /*choosesRecompute=*/false);
}

search::Problem RangeProblem::buildWithRecomputeChoice() {
  return build(Lifetimes(groups, recompute, 0, builder.getSetting().inFlight), recompute.count(0),
               /*choosesRecompute=*/true);
}

search::Problem RangeProblem::build(const Lifetimes &lifetimes, const RecomputeCounts &counts, bool choosesRecompute) {
  nodes.clearValues();
  chosenMemory.clear();
  // Recomputed operators have nodes of their own.
  builder.begin(lifetimes.getRows(),
                static_cast<int64_t>(2 * groups.getOperators().size() + groups.getParameters().size()));
  addOperators(counts);
  addParameters(lifetimes);
  addValues(lifetimes, choosesRecompute);
  addBorder(lifetimes, choosesRecompute);
  addReads();
  addArguments();
  builder.fillTables();
  if (choosesRecompute)
    addRecomputeChoice(builder, recompute, labels, chosenMemory);
  return builder.take();
}

void RangeProblem::addOperators(const RecomputeCounts &counts) {
  const RangeSetting &setting = builder.getSetting();
  std::optional<int32_t> stream = setting.windows.find(WindowKind::forward, StreamKind::compute);
  for (auto [group, its] : llvm::enumerate(groups.getOperators())) {
    auto members = static_cast<int64_t>(its.ops.size());
    bool isBackward = its.front()->hasAttr(train::kForwardAttr);
    std::vector<int64_t> forward;
    std::vector<ProblemBuilder::Work> backward;
    for (const OperatorLabel &label : labels.ofOperator(group)) {
      forward.push_back(isBackward ? 0 : toCost(setting.accumulationSteps * members, label.picoseconds));
      backward.push_back({isBackward ? members : counts[group], label.picoseconds});
    }
    int32_t node = builder.addNode(stream ? std::vector<int64_t>(forward.size(), 0) : forward);
    if (stream)
      builder.addLoad(node, *stream, std::move(forward));
    builder.addBackwardWork(node, backward);
  }
}

void RangeProblem::addParameters(const Lifetimes &lifetimes) {
  for (unsigned group = 0; group < groups.getParameters().size(); ++group)
    addParameter(group, lifetimes);
}

void RangeProblem::addParameter(unsigned group, const Lifetimes &lifetimes) {
  const RangeSetting &setting = builder.getSetting();
  const ParameterCosts &own = parameterCosts[group];
  const std::vector<ParameterLabel> &choices = labels.ofParameter(group);
  auto members = static_cast<int64_t>(groups.getParameters()[group].parameters.size());
  std::vector<int64_t> costs, gathered;
  std::map<plan::MemoryKind, std::vector<int64_t>> kept;
  std::map<int32_t, std::vector<int64_t>> loads;
  for (auto [label, choice] : llvm::enumerate(choices)) {
    ParameterTimes times = own.getTimes(choice);
    int64_t exposed = times.exposed;
    for (auto [window, nanoseconds] : times.collectives) {
      std::optional<int32_t> stream = setting.windows.find(window, StreamKind::communicator, own.getSpan());
      exposed += stream ? nanoseconds / kExposedShare : nanoseconds;
      if (stream)
        loads.try_emplace(*stream, choices.size(), 0).first->second[label] += multiplyCost(members, nanoseconds);
    }
    costs.push_back(multiplyCost(members, exposed));
    for (auto [memory, bytes] : own.getCopyBytes(choice))
      kept.try_emplace(memory, choices.size(), 0).first->second[label] = members * bytes;
    gathered.push_back(own.getGatheredBytes(choice));
  }
  int32_t node = builder.addNode(std::move(costs));
  for (auto &[memory, bytes] : kept)
    builder.addHeldBytes(node, memory, bytes);
  if (llvm::any_of(gathered, [](int64_t bytes) { return bytes > 0; }))
    builder.addBytes(node, plan::MemoryKind::device, lifetimes.getReadRuns(group), gathered);
  for (auto &[stream, load] : loads)
    builder.addLoad(node, stream, load);
}

int64_t RangeProblem::getReadCost(int64_t count, RankedTensorType type, plan::LayoutAttr found, plan::LayoutAttr wanted,
                                  bool isStashed) {
  return toCost(count * builder.getSetting().accumulationSteps,
                reshards.getCost(type, isStashed ? plan::dropUnreduced(found) : found, wanted));
}

std::vector<int64_t> RangeProblem::getLocalBytes(RankedTensorType type,
                                                 const std::vector<plan::LayoutAttr> &layouts) const {
  std::vector<int64_t> bytes;
  for (plan::LayoutAttr layout : layouts)
    bytes.push_back(getTensorBytes(layout.getLocalType(type, base.mesh)));
  return bytes;
}

void RangeProblem::addValues(const Lifetimes &lifetimes, bool choosesRecompute) {
  for (auto [group, its] : llvm::enumerate(groups.getOperators()))
    for (unsigned result = 0; result < its.front()->getNumResults(); ++result) {
      std::vector<int64_t> bytes;
      int32_t source = addResult(group, result, bytes);
      if (!choosesRecompute) {
        builder.addBytes(source, plan::MemoryKind::device, lifetimes.getRuns(group, result), bytes);
        continue;
      }
      std::vector<std::vector<LiveRun>> runs = lifetimes.getRunsByLabel(group, result);
      if (llvm::all_equal(runs))
        builder.addBytes(source, plan::MemoryKind::device, runs.front(), bytes);
      else
        chosenMemory.push_back({source, *recompute.getClass(its), std::move(bytes), std::move(runs)});
    }
}

void RangeProblem::addBorder(const Lifetimes &lifetimes, bool choosesRecompute) {
  for (Value value : groups.getBorder()) {
    Uses uses = groups.getUses(value);
    std::vector<plan::LayoutAttr> layouts = listLayouts({plan::LayoutAttr::getWhole(typeOf(value))}, uses);
    int32_t node = addValueNode(typeOf(value), {{value}, layouts, -1}, uses);
    addUses(node, typeOf(value), layouts, uses);
    builder.addBytes(node, plan::MemoryKind::device,
                     choosesRecompute ? lifetimes.getBorderRunsByLabel(value).front() : lifetimes.getBorderRuns(value),
                     getLocalBytes(typeOf(value), layouts));
  }
}

void RangeProblem::addReads() {
  for (auto [group, its] : llvm::enumerate(groups.getParameters())) {
    RankedTensorType type = its.getComputeType();
    for (auto &[use, count] : groups.getParameterUses(group))
      builder.addEdge(nodes.ofParameter(group), ProblemNodes::ofOperator(use.group), type,
                      [this, type, use = use, count = count, group = group](size_t i, size_t j) {
                        plan::LayoutAttr read = labels.ofParameter(group)[i].read;
                        plan::LayoutAttr wanted = labels.ofOperator(use.group)[j].operands[use.operand];
                        return getReadCost(count, type, read, wanted, false);
                      });
  }
}

plan::LayoutAttr RangeProblem::getPinnedLayout(unsigned group, unsigned result) const {
  auto found = base.pins.ops.find(groups.getOperators()[group].front());
  return found == base.pins.ops.end() || found->second.layouts.empty() ? nullptr : found->second.layouts[result];
}

std::vector<plan::LayoutAttr> RangeProblem::listLayouts(std::vector<plan::LayoutAttr> made, const Uses &uses) const {
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

int32_t RangeProblem::addValueNode(RankedTensorType type, ProblemNodes::ValueNode value, const Uses &uses) {
  bool isStashed = llvm::any_of(uses, [](auto &entry) { return entry.first.isStashed; });
  int64_t count = static_cast<int64_t>(value.values.size()) * builder.getSetting().accumulationSteps;
  std::vector<int64_t> costs;
  for (plan::LayoutAttr layout : value.layouts)
    costs.push_back(isStashed ? toCost(count, reshards.getCost(type, layout, plan::dropUnreduced(layout))) : 0);
  value.node = builder.addNode(std::move(costs));
  nodes.addValue(value);
  return value.node;
}

void RangeProblem::addUses(int32_t source, RankedTensorType type, const std::vector<plan::LayoutAttr> &found,
                           const Uses &uses) {
  for (auto &[use, count] : uses)
    builder.addEdge(source, ProblemNodes::ofOperator(use.group), type,
                    [this, type, found, use = use, count = count](size_t i, size_t j) {
                      return getReadCost(count, type, found[i], labels.ofOperator(use.group)[j].operands[use.operand],
                                         use.isStashed);
                    });
}

int32_t RangeProblem::addResult(unsigned group, unsigned result, std::vector<int64_t> &bytes) {
  Uses uses = groups.getUses(group, result);
  std::map<unsigned, int64_t> gradients = groups.getGradients(group, result);
  const OperatorGroup &its = groups.getOperators()[group];
  RankedTensorType type = typeOf(its.front()->getResult(result));
  const std::vector<OperatorLabel> &makers = labels.ofOperator(group);
  int32_t source = ProblemNodes::ofOperator(group);
  std::vector<plan::LayoutAttr> found;
  for (const OperatorLabel &label : makers)
    found.push_back(label.results[result]);
  plan::LayoutAttr pinned = getPinnedLayout(group, result);
  if (pinned || uses.size() + gradients.size() > 1) {
    found = pinned ? std::vector{pinned} : listLayouts(std::move(found), uses);
    ProblemNodes::ValueNode value{{}, found, -1};
    for (Operation *op : its.ops)
      value.values.push_back(op->getResult(result));
    source = addValueNode(type, std::move(value), uses);
    int64_t count = static_cast<int64_t>(its.ops.size()) * builder.getSetting().accumulationSteps;
    builder.addEdge(ProblemNodes::ofOperator(group), source, type,
                    [this, count, type, result, found, &makers](size_t i, size_t j) {
                      return toCost(count, reshards.getCost(type, makers[i].results[result], found[j]));
                    });
  }
  bytes = getLocalBytes(type, found);
  addUses(source, type, found, uses);
  for (auto [parameter, count] : gradients)
    builder.addEdge(source, nodes.ofParameter(parameter), groups.getParameters()[parameter].getType(),
                    [this, found, parameter = parameter, count = count](size_t i, size_t j) {
                      return parameterCosts[parameter].getGradientCost(count, found[i],
                                                                       labels.ofParameter(parameter)[j]);
                    });
  return source;
}

void RangeProblem::addArguments() {
  func::FuncOp function = groups.getFunction();
  for (BlockArgument argument : function.getArguments()) {
    plan::LayoutAttr layout = plan::getArgumentLayout(function, argument, base.mesh);
    for (auto &[use, count] : groups.getUses(argument))
      for (auto [i, label] : llvm::enumerate(labels.ofOperator(use.group)))
        builder.addCost(ProblemNodes::ofOperator(use.group), i,
                        getReadCost(count, typeOf(argument), layout, label.operands[use.operand], use.isStashed));
  }
}
