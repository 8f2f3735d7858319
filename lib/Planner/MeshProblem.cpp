#include "MeshProblem.h"

#include "StepCosts.h"

#include "windlass/Planner/ChoosePlan.h"
#include "windlass/Support/RunTasks.h"
#include "windlass/Support/TensorBytes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// Of what runs beside operators, one part in so many is exposed all the same: no schedule hides all of it, and of
/// plans that hide as much the one that moves less is better.
static constexpr int64_t kExposedShare = 20;

static RankedTensorType typeOf(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

/// What the costs of a group's parameters depend on beside their layouts: the members are alike.
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

MeshProblem::MeshProblem(const Groups &groups, const Reruns &reruns, const Labels &labels, Reshards &reshards,
                         const CostModel &costs, const plan::StrategyChoice &choice, int threads)
    : groups(groups), reruns(reruns), labels(labels), reshards(reshards), base(choice), mesh(reshards.getMesh()),
      threads(threads) {
  func::FuncOp function = groups.getFunction();
  rounds = std::max<int64_t>(1, plan::getMicroBatches(function->getParentOfType<ModuleOp>()) /
                                    mesh.sizeOf(plan::AxisRole::replica));
  if (costs.overlapsCollectives())
    windows = StepWindows::withCollectives();
  // The gradients of a small model share one bucket.
  int64_t bucketBytes = 0;
  for (const ParameterGroup &group : groups.getParameters())
    for (train::ParameterOp parameter : group.parameters)
      if (parameter.getTrainable() && bucketBytes < plan::kBucketBytes)
        bucketBytes = std::min(plan::kBucketBytes, bucketBytes + getTensorBytes(parameter.getTensorType()));
  for (const ParameterGroup &group : groups.getParameters())
    parameterCosts.emplace_back(getTraits(group), reshards, costs, StepCounts{rounds, bucketBytes});
}

search::Problem MeshProblem::build(int rerunParts) {
  return build(Lifetimes(groups, rerunParts), reruns.count(rerunParts), /*choosesReruns=*/false);
}

search::Problem MeshProblem::buildWithReruns(const RerunCounts &counts) {
  return build(Lifetimes(groups, 0), counts, /*choosesReruns=*/false);
}

search::Problem MeshProblem::buildWithRerunChoice() {
  return build(Lifetimes(groups, 0), reruns.count(0), /*choosesReruns=*/true);
}

search::Problem MeshProblem::build(const Lifetimes &lifetimes, const RerunCounts &counts, bool choosesReruns) {
  begin(lifetimes.getRows());
  addOperators(counts);
  addParameters(lifetimes);
  addValues(lifetimes, choosesReruns);
  addArguments();
  fillTables();
  if (choosesReruns)
    addRerunChoice();
  return std::move(problem);
}

void MeshProblem::begin(int32_t rows) {
  problem = {};
  values.clear();
  chosenMemory.clear();
  wantedTables.clear();
  problem.capacity.assign(std::max(rows, 1), SearchLimits::kUnlimited);
  windows.addTo(problem);
}

void MeshProblem::addLoad(search::Node &node, int32_t stream, std::vector<int64_t> load) {
  if (llvm::all_of(load, [](int64_t each) { return each == 0; }))
    return;
  // The sum of all loads stays within what rows may hold: operators run again have nodes of their own.
  int64_t most =
      (int64_t(1) << 58) / static_cast<int64_t>(2 * groups.getOperators().size() + groups.getParameters().size());
  for (int64_t &each : load)
    each = std::min(each, most);
  int32_t row = static_cast<int32_t>(problem.capacity.size()) + stream;
  node.pieces.push_back({row, row + 1, std::move(load)});
}

void MeshProblem::addBackwardLoad(search::Node &node, const std::vector<Work> &works) {
  std::optional<int32_t> before = windows.find(WindowKind::backward, StreamKind::compute),
                         last = windows.find(WindowKind::lastBackward, StreamKind::compute);
  std::vector<int64_t> loadBefore, loadLast;
  for (auto [label, work] : llvm::enumerate(works)) {
    int64_t exposed = (before ? 0 : rounds - 1) + (last ? 0 : 1);
    if (exposed > 0)
      node.costs[label] = search::addCosts(node.costs[label], toCost(exposed * work.count, work.picoseconds));
    loadBefore.push_back(toCost((rounds - 1) * work.count, work.picoseconds));
    loadLast.push_back(toCost(work.count, work.picoseconds));
  }
  if (before)
    addLoad(node, *before, std::move(loadBefore));
  if (last)
    addLoad(node, *last, std::move(loadLast));
}

void MeshProblem::addOperators(const RerunCounts &counts) {
  for (auto [group, its] : llvm::enumerate(groups.getOperators())) {
    auto members = static_cast<int64_t>(its.ops.size());
    bool isBackward = its.front()->hasAttr(train::kForwardAttr);
    std::vector<int64_t> forward;
    std::vector<Work> backward;
    for (const OperatorLabel &label : labels.ofOperator(group)) {
      forward.push_back(isBackward ? 0 : toCost(rounds * members, label.picoseconds));
      backward.push_back({isBackward ? members : counts[group], label.picoseconds});
    }
    search::Node &node = problem.nodes.emplace_back();
    std::optional<int32_t> stream = windows.find(WindowKind::forward, StreamKind::compute);
    node.costs = stream ? std::vector<int64_t>(forward.size(), 0) : forward;
    if (stream)
      addLoad(node, *stream, std::move(forward));
    addBackwardLoad(node, backward);
  }
}

void MeshProblem::addPieces(search::Node &node, const std::vector<LiveRun> &runs, const std::vector<int64_t> &bytes) {
  for (LiveRun run : runs) {
    search::Piece &piece = node.pieces.emplace_back();
    piece.begin = run.begin;
    piece.end = run.end;
    for (int64_t each : bytes)
      piece.usage.push_back(run.parts * each / kRerunParts);
  }
}

void MeshProblem::addParameters(const Lifetimes &lifetimes) {
  firstParameter = static_cast<int32_t>(problem.nodes.size());
  for (auto [group, its] : llvm::enumerate(groups.getParameters())) {
    const ParameterCosts &own = parameterCosts[group];
    int64_t members = static_cast<int64_t>(its.parameters.size());
    const std::vector<ParameterLabel> &choices = labels.ofParameter(group);
    search::Node &node = problem.nodes.emplace_back();
    std::vector<int64_t> kept, gathered;
    // By stream.
    std::map<int32_t, std::vector<int64_t>> loads;
    for (auto [label, choice] : llvm::enumerate(choices)) {
      ParameterTimes times = own.getTimes(choice);
      int64_t exposed = times.exposed;
      for (auto [window, nanoseconds] : times.collectives) {
        std::optional<int32_t> stream = windows.find(window, StreamKind::communicator, own.getSpan());
        exposed += stream ? nanoseconds / kExposedShare : nanoseconds;
        if (stream)
          loads.try_emplace(*stream, choices.size(), 0).first->second[label] = multiplyCost(members, nanoseconds);
      }
      node.costs.push_back(multiplyCost(members, exposed));
      kept.push_back(own.getCopyBytes(choice)[plan::MemoryKind::device]);
      gathered.push_back(own.getGatheredBytes(choice));
    }
    addPieces(node, {{0, static_cast<int32_t>(problem.capacity.size()), members * kRerunParts}}, kept);
    if (llvm::any_of(gathered, [](int64_t bytes) { return bytes > 0; }))
      addPieces(node, lifetimes.getReadRuns(group), gathered);
    for (auto &[stream, load] : loads)
      addLoad(node, stream, load);
  }
}

int64_t MeshProblem::getReadCost(int64_t count, RankedTensorType type, plan::LayoutAttr found, plan::LayoutAttr wanted,
                                 bool isStashed) {
  return toCost(count * rounds, reshards.getCost(type, isStashed ? plan::dropUnreduced(found) : found, wanted));
}

void MeshProblem::addEdge(int32_t from, int32_t to, RankedTensorType type, PairCost cost) {
  if (from == to) {
    std::vector<int64_t> &own = problem.nodes[from].costs;
    for (size_t i = 0; i < own.size(); ++i)
      own[i] = search::addCosts(own[i], cost(i, i));
    return;
  }
  reshards.prepare(type);
  problem.edges.push_back({from, to, 0});
  wantedTables.push_back({type, std::move(cost)});
}

void MeshProblem::fillTables() {
  if (knownTables.empty()) {
    knownTables.resize(wantedTables.size());
    llvm::MapVector<Type, std::vector<size_t>> byType;
    for (auto [i, wanted] : llvm::enumerate(wantedTables))
      byType[wanted.type].push_back(i);
    runTasks(threads, static_cast<int>(byType.size()), [&](int t) {
      for (size_t edge : (byType.begin() + t)->second) {
        size_t rows = problem.nodes[problem.edges[edge].from].costs.size(),
               columns = problem.nodes[problem.edges[edge].to].costs.size();
        knownTables[edge].reserve(rows * columns);
        for (size_t i = 0; i < rows; ++i)
          for (size_t j = 0; j < columns; ++j)
            knownTables[edge].push_back(wantedTables[edge].cost(i, j));
      }
    });
  }
  std::vector<search::Edge> edges;
  for (auto [edge, table] : llvm::zip_equal(problem.edges, knownTables))
    if (llvm::any_of(table, [](int64_t each) { return each != 0; })) {
      edges.push_back({edge.from, edge.to, static_cast<int32_t>(problem.tables.size())});
      problem.tables.push_back(table);
    }
  problem.edges = std::move(edges);
  wantedTables.clear();
}

void MeshProblem::addLink(int32_t from, int32_t to, const std::function<bool(size_t, size_t)> &belong) {
  problem.edges.push_back({from, to, static_cast<int32_t>(problem.tables.size())});
  std::vector<int64_t> &table = problem.tables.emplace_back();
  for (size_t i = 0; i < problem.nodes[from].costs.size(); ++i)
    for (size_t j = 0; j < problem.nodes[to].costs.size(); ++j)
      table.push_back(belong(i, j) ? 0 : search::kForbidden);
}

void MeshProblem::addValues(const Lifetimes &lifetimes, bool choosesReruns) {
  for (auto [group, its] : llvm::enumerate(groups.getOperators()))
    for (unsigned result = 0; result < its.front()->getNumResults(); ++result) {
      std::vector<int64_t> bytes;
      int32_t source = addValue(group, result, bytes);
      if (!choosesReruns) {
        addPieces(problem.nodes[source], lifetimes.getRuns(group, result), bytes);
        continue;
      }
      std::vector<std::vector<LiveRun>> runs = lifetimes.getRunsByLabel(group, result, reruns);
      if (llvm::all_equal(runs))
        addPieces(problem.nodes[source], runs.front(), bytes);
      else
        chosenMemory.push_back({source, *reruns.getClass(its), std::move(bytes), std::move(runs)});
    }
  // What operators read of parameters.
  for (auto [group, its] : llvm::enumerate(groups.getParameters())) {
    RankedTensorType type = its.getComputeType();
    for (auto &[use, count] : groups.getParameterUses(group))
      addEdge(firstParameter + static_cast<int32_t>(group), static_cast<int32_t>(use.group), type,
              [this, type, use = use, count = count, group = group](size_t i, size_t j) {
                plan::LayoutAttr read = labels.ofParameter(group)[i].read;
                plan::LayoutAttr wanted = labels.ofOperator(use.group)[j].operands[use.operand];
                return getReadCost(count, type, read, wanted, false);
              });
  }
}

plan::LayoutAttr MeshProblem::getPinnedLayout(unsigned group, unsigned result) const {
  auto found = base.pins.ops.find(groups.getOperators()[group].front());
  return found == base.pins.ops.end() || found->second.layouts.empty() ? nullptr : found->second.layouts[result];
}

std::vector<plan::LayoutAttr> MeshProblem::listLayouts(unsigned group, unsigned result, const Uses &uses) const {
  std::vector<plan::LayoutAttr> layouts;
  auto add = [&](plan::LayoutAttr layout) {
    if (llvm::none_of(layouts, [&](plan::LayoutAttr other) { return plan::haveSameParts(layout, other, mesh); }))
      layouts.push_back(layout);
  };
  for (const OperatorLabel &label : labels.ofOperator(group))
    add(label.results[result]);
  for (auto &[use, count] : uses)
    for (const OperatorLabel &label : labels.ofOperator(use.group))
      add(label.operands[use.operand]);
  return layouts;
}

int32_t MeshProblem::addValue(unsigned group, unsigned result, std::vector<int64_t> &bytes) {
  Uses uses = groups.getUses(group, result);
  std::map<unsigned, int64_t> gradients = groups.getGradients(group, result);
  Value value = groups.getOperators()[group].front()->getResult(result);
  RankedTensorType type = typeOf(value);
  const std::vector<OperatorLabel> &makers = labels.ofOperator(group);
  int32_t source = static_cast<int32_t>(group);
  std::vector<plan::LayoutAttr> found;
  plan::LayoutAttr pinned = getPinnedLayout(group, result);
  if (!pinned && uses.size() + gradients.size() <= 1) {
    for (const OperatorLabel &label : makers)
      found.push_back(label.results[result]);
  } else {
    found = pinned ? std::vector{pinned} : listLayouts(group, result, uses);
    source = static_cast<int32_t>(problem.nodes.size());
    search::Node &node = problem.nodes.emplace_back();
    bool isStashed = llvm::any_of(uses, [](auto &entry) { return entry.first.isStashed; });
    int64_t members = static_cast<int64_t>(groups.getOperators()[group].ops.size());
    for (plan::LayoutAttr layout : found)
      node.costs.push_back(
          isStashed ? toCost(members * rounds, reshards.getCost(type, layout, plan::dropUnreduced(layout))) : 0);
    values.push_back({group, result, found, source});
    addEdge(static_cast<int32_t>(group), source, type, [=, &makers](size_t i, size_t j) {
      return toCost(members * rounds, reshards.getCost(type, makers[i].results[result], found[j]));
    });
  }
  for (plan::LayoutAttr layout : found)
    bytes.push_back(getTensorBytes(layout.getLocalType(type, mesh)));
  for (auto &[use, count] : uses)
    addEdge(source, static_cast<int32_t>(use.group), type, [=, use = use, count = count](size_t i, size_t j) {
      return getReadCost(count, type, found[i], labels.ofOperator(use.group)[j].operands[use.operand], use.isStashed);
    });
  for (auto [parameter, count] : gradients)
    addEdge(source, firstParameter + static_cast<int32_t>(parameter), groups.getParameters()[parameter].getType(),
            [=, parameter = parameter, count = count](size_t i, size_t j) {
              return parameterCosts[parameter].getGradientCost(count, found[i], labels.ofParameter(parameter)[j]);
            });
  return source;
}

/// Each of some numbers once, in order.
static std::vector<int64_t> makeDistinct(std::vector<int64_t> numbers) {
  llvm::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

void MeshProblem::addRerunChoice() {
  for (auto [index, its] : llvm::enumerate(reruns.getClasses())) {
    auto choice = static_cast<int32_t>(problem.nodes.size());
    problem.nodes.emplace_back().costs.assign(its.labels.size(), 0);
    for (auto &[group, counts] : its.counts)
      addRerunLoad(its, group, counts, choice);
    for (const ChosenMemory &memory : chosenMemory)
      if (memory.rerunClass == index)
        addChosenMemory(memory, choice);
  }
}

void MeshProblem::addRerunLoad(const RerunClass &its, unsigned group, std::vector<int64_t> counts, int32_t choice) {
  std::vector<int64_t> picoseconds;
  if (its.blocks.size() > 1)
    for (int64_t &count : counts)
      count = std::max<int64_t>(count - 1, 0);
  for (const OperatorLabel &label : labels.ofOperator(group))
    picoseconds.push_back(label.picoseconds);
  std::vector<Work> works;
  for (int64_t each : makeDistinct(picoseconds))
    for (int64_t count : makeDistinct(counts))
      works.push_back({count, each});
  if (llvm::all_of(works, [](const Work &work) { return work.count == 0 || work.picoseconds == 0; }))
    return;
  auto load = static_cast<int32_t>(problem.nodes.size());
  problem.nodes.emplace_back().costs.assign(works.size(), 0);
  addBackwardLoad(problem.nodes.back(), works);
  addLink(static_cast<int32_t>(group), load,
          [&](size_t i, size_t j) { return works[j].picoseconds == picoseconds[i]; });
  addLink(load, choice, [&](size_t i, size_t j) { return works[i].count == counts[j]; });
}

void MeshProblem::addChosenMemory(const ChosenMemory &memory, int32_t choice) {
  std::vector<std::vector<LiveRun>> runs;
  for (const std::vector<LiveRun> &each : memory.runs)
    if (!llvm::is_contained(runs, each))
      runs.push_back(each);
  std::vector<int64_t> bytes = makeDistinct(memory.bytes);
  auto node = static_cast<int32_t>(problem.nodes.size());
  problem.nodes.emplace_back().costs.assign(runs.size() * bytes.size(), 0);
  for (size_t k = 0; k < runs.size(); ++k) {
    std::vector<int64_t> usage(runs.size() * bytes.size(), 0);
    llvm::copy(bytes, usage.begin() + static_cast<int64_t>(k * bytes.size()));
    addPieces(problem.nodes.back(), runs[k], usage);
  }
  addLink(memory.source, node, [&](size_t i, size_t j) { return memory.bytes[i] == bytes[j % bytes.size()]; });
  addLink(node, choice, [&](size_t i, size_t j) { return memory.runs[j] == runs[i / bytes.size()]; });
}

void MeshProblem::addArguments() {
  func::FuncOp function = groups.getFunction();
  for (BlockArgument argument : function.getArguments()) {
    plan::LayoutAttr layout = plan::getArgumentLayout(function, argument, mesh);
    for (auto &[use, count] : groups.getUses(argument)) {
      std::vector<int64_t> &node = problem.nodes[use.group].costs;
      for (auto [i, label] : llvm::enumerate(labels.ofOperator(use.group)))
        node[i] = search::addCosts(
            node[i], getReadCost(count, typeOf(argument), layout, label.operands[use.operand], use.isStashed));
    }
  }
}

plan::StrategyChoice MeshProblem::decode(const search::Solution &solution) const {
  plan::StrategyChoice choice = base;
  auto labelOf = [&](unsigned group) -> const OperatorLabel & { return labels.ofOperator(group)[solution[group]]; };
  for (auto [group, its] : llvm::enumerate(groups.getOperators())) {
    const OperatorLabel &label = labelOf(group);
    SmallVector<plan::LayoutAttr, 2> layouts(label.results);
    for (unsigned result = 0; result < layouts.size(); ++result) {
      Uses uses = groups.getUses(group, result);
      // Read in one place, it is found as it is taken there.
      if (uses.size() == 1 && !uses.begin()->first.isStashed && groups.getGradients(group, result).empty())
        layouts[result] = labelOf(uses.begin()->first.group).operands[uses.begin()->first.operand];
    }
    for (Operation *op : its.ops)
      choice.pins.ops[op] = {label.strategy, layouts, "", ""};
  }
  for (const ValueNode &value : values)
    for (Operation *op : groups.getOperators()[value.group].ops)
      choice.pins.ops[op].layouts[value.result] = value.layouts[solution[value.node]];
  for (auto [group, its] : llvm::enumerate(groups.getParameters())) {
    const ParameterLabel &label = labels.ofParameter(group)[solution[firstParameter + group]];
    for (train::ParameterOp parameter : its.parameters) {
      choice.reads[parameter.getSymNameAttr()] = label.read;
      choice.parameters[parameter.getSymNameAttr()] = label.copies;
    }
  }
  return choice;
}

std::optional<search::Solution> MeshProblem::encode(const plan::StrategyChoice &choice) const {
  search::Solution solution(firstParameter + groups.getParameters().size() + values.size(), -1);
  auto areEqual = [&](ArrayRef<plan::LayoutAttr> a, ArrayRef<plan::LayoutAttr> b) {
    return llvm::all_of(llvm::zip_equal(a, b),
                        [&](auto pair) { return plan::haveSameParts(std::get<0>(pair), std::get<1>(pair), mesh); });
  };
  auto place = [&](int32_t node, const auto &candidates, const auto &isIt) {
    auto found = llvm::find_if(candidates, isIt);
    if (found != candidates.end())
      solution[node] = static_cast<int32_t>(found - candidates.begin());
    return found != candidates.end();
  };
  for (auto [group, its] : llvm::enumerate(groups.getOperators())) {
    FailureOr<plan::OpLayouts> layouts = plan::inferLayouts(its.front(), plan::getOperandLayouts(its.front()), mesh);
    if (failed(layouts) ||
        !place(static_cast<int32_t>(group), labels.ofOperator(group), [&](const OperatorLabel &label) {
          return areEqual(label.operands, layouts->operands) && areEqual(label.results, layouts->results);
        }))
      return std::nullopt;
  }
  for (auto [group, its] : llvm::enumerate(groups.getParameters())) {
    plan::LayoutAttr read = plan::getLayout(train::ReadOp(its.reads.front()).getResult());
    train::ParameterOp parameter = its.parameters.front();
    plan::ParameterLayouts copies = plan::getCopies(choice, parameter.getSymNameAttr(), read, mesh);
    // Which axes a gradient is still to be summed over follows from its operators.
    auto getParts = [](const plan::ParameterLayouts &its) {
      return std::array{its.compute, plan::dropUnreduced(its.gradient), its.master};
    };
    if (!place(firstParameter + static_cast<int32_t>(group), labels.ofParameter(group),
               [&](const ParameterLabel &label) {
                 return plan::haveSameParts(label.read, read, mesh) &&
                        (!parameter.getTrainable() || areEqual(getParts(label.copies), getParts(copies)));
               }))
      return std::nullopt;
  }
  for (const ValueNode &value : values) {
    plan::LayoutAttr layout = plan::getLayout(groups.getOperators()[value.group].front()->getResult(value.result));
    if (!place(value.node, value.layouts,
               [&](plan::LayoutAttr other) { return plan::haveSameParts(other, layout, mesh); }))
      return std::nullopt;
  }
  return solution;
}
