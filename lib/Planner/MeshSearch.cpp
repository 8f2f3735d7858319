#include "MeshSearch.h"

#include "windlass/Dialect/Plan/Transforms/PipelineStep.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// Recompute is tried for plans whose cost exceeds their cost without a limit of memory by at least 1 /
/// `kWorthRecompute` of it.
static constexpr int64_t kWorthRecompute = 100;
/// Meshes whose plans cost more than the best one by at least 1 / `kWorthTrying` of it are not searched to the end: no
/// schedule makes up for that.
static constexpr int64_t kWorthTrying = 50;
/// Rows count up to 1 / `kRowSlack` more than a schedule takes, so the bound of all steps counts with that much memory
/// besides.
static constexpr int64_t kRowSlack = 32;
/// The share 1 / `kQuickShare` of the work is spent before anything is known of other meshes.
static constexpr int64_t kQuickShare = 20;

/// Returns how many stashes of a whole micro-batch the position that holds the most has room for, where all chunks
/// leave as much; 1 where the schedule does not suit the micro-batches.
static double countStashes(plan::PipelineAttr pipeline, int64_t microBatches) {
  llvm::Expected<schedule::Pipeline> step = plan::makeStep(pipeline, microBatches);
  if (!step) {
    llvm::consumeError(step.takeError());
    return 1;
  }
  int64_t chunks = pipeline.countChunks(), most = chunks;
  for (auto [position, its] : llvm::enumerate(step->positions)) {
    int64_t slots = 0;
    for (int64_t chunk = 0; chunk < step->placement.countChunks(); ++chunk)
      if (step->placement.positionOf[chunk] == static_cast<int64_t>(position))
        slots += its.getSlots(chunk);
    most = std::max(most, slots);
  }
  return static_cast<double>(most) / static_cast<double>(chunks);
}

RangeSetting planner::makeStepSetting(func::FuncOp function, plan::MeshAttr mesh, const CostModel &costs, int threads) {
  RangeSetting setting;
  auto module = function->getParentOfType<ModuleOp>();
  auto hasAny = [&](StringRef label) {
    return llvm::any_of(module.getOps<train::ParameterOp>(), [&](train::ParameterOp op) { return op->hasAttr(label); });
  };
  if (costs.overlapsCollectives()) {
    // The host may update beside the last backward pass.
    bool hasHostStates = hasAny(plan::kStateMemoryAttr) || hasAny(plan::kMayOffloadAttr);
    setting.windows = StepWindows::withCollectives(hasHostStates || hasAny(plan::kGradientMemoryAttr),
                                                   hasHostStates || hasAny(plan::kComputeMemoryAttr), hasHostStates);
  }
  int64_t microBatches = train::getMergedMicroBatches(module);
  setting.accumulationSteps = std::max<int64_t>(1, microBatches / mesh.sizeOf(plan::AxisRole::replica));
  if (auto pipeline = module->getAttrOfType<plan::PipelineAttr>(plan::kPipelineAttr)) {
    setting.positions = pipeline.getPositions();
    setting.inFlight = countStashes(pipeline, setting.accumulationSteps);
  }
  setting.threads = threads;
  return setting;
}

/// Whether all operators of each group are split alike, and the copies of all its parameters have the same layouts.
static bool areRepeatsAlike(const Groups &groups, const Counterparts &planned) {
  for (const OperatorGroup &group : groups.getOperators()) {
    Operation *front = planned.find(group.front());
    for (Operation *original : group.ops) {
      Operation *op = planned.find(original);
      // The part of a strategy that is no split says what is recomputed.
      auto getSplits = [](Operation *op) {
        return op->getAttrOfType<plan::StrategyAttr>(plan::kStrategyAttr).getSplits();
      };
      if (getSplits(op) != getSplits(front))
        return false;
      for (auto [a, b] : llvm::zip_equal(op->getResults(), front->getResults()))
        if (plan::getLayout(a) != plan::getLayout(b))
          return false;
    }
  }
  for (const ParameterGroup &group : groups.getParameters()) {
    Operation *front = planned.find(group.parameters.front());
    for (train::ParameterOp parameter : group.parameters)
      for (StringRef name : {plan::kLayoutAttr, plan::kMasterLayoutAttr, plan::kGradientLayoutAttr}) {
        // The axes over which a gradient is still to be summed follow from its operators.
        auto getParts = [&](Operation *its) {
          auto layout = its->getAttrOfType<plan::LayoutAttr>(name);
          return layout ? plan::dropUnreduced(layout) : layout;
        };
        if (getParts(planned.find(parameter)) != getParts(front))
          return false;
      }
  }
  return true;
}

std::optional<search::Solution> planner::encodeAlike(const RangeProblem &problem, const Groups &groups,
                                                     const plan::StrategyChoice &choice, const Counterparts &planned) {
  return areRepeatsAlike(groups, planned) ? problem.encode(choice, planned) : std::nullopt;
}

std::optional<int64_t> planner::evaluateOn(RangeProblem &problem, const Groups &groups,
                                           const plan::StrategyChoice &choice, const Counterparts &planned) {
  search::Problem built = problem.buildWithRecompute(countChosenRecompute(groups, planned));
  std::optional<search::Solution> solution = encodeAlike(problem, groups, choice, planned);
  return solution ? std::optional(search::evaluate(built, *solution).cost) : std::nullopt;
}

/// Gives labels to the nodes behind those of `solution`, each of which has one label that its neighbours before it
/// allow.
static void followLinks(const search::Problem &problem, search::Solution &solution) {
  auto known = static_cast<int32_t>(solution.size());
  solution.resize(problem.nodes.size(), 0);
  std::vector<std::vector<bool>> allowed(problem.nodes.size());
  for (int32_t node = known; node < static_cast<int32_t>(problem.nodes.size()); ++node)
    allowed[node].resize(problem.nodes[node].costs.size(), true);
  for (const search::Edge &edge : problem.edges) {
    int32_t node = std::max(edge.from, edge.to), other = std::min(edge.from, edge.to);
    if (node < known || other >= known)
      continue;
    const std::vector<int64_t> &table = problem.tables[edge.table];
    size_t columns = problem.nodes[edge.to].costs.size();
    for (size_t label = 0; label < allowed[node].size(); ++label) {
      size_t row = edge.from == node ? label : solution[other], column = edge.from == node ? solution[other] : label;
      allowed[node][label] = allowed[node][label] && table[row * columns + column] < search::kForbidden;
    }
  }
  for (int32_t node = known; node < static_cast<int32_t>(problem.nodes.size()); ++node)
    solution[node] = static_cast<int32_t>(llvm::find(allowed[node], true) - allowed[node].begin());
}

std::optional<int64_t> planner::evaluateLeastOn(RangeProblem &problem, const Groups &groups,
                                                const plan::StrategyChoice &choice, const Counterparts &planned,
                                                plan::PipelineAttr pipeline) {
  search::Problem built = problem.buildBoundWithRecompute(countChosenRecompute(groups, planned), pipeline);
  std::optional<search::Solution> solution = encodeAlike(problem, groups, choice, planned);
  if (!solution)
    return std::nullopt;
  followLinks(built, *solution);
  return search::evaluate(built, *solution).cost;
}

/// Solves a problem, at first with a small part of the work: most meshes are worse than the best one by more than the
/// gap that is open then.
static search::SolveResult solveOrGiveUp(const search::Problem &problem, const SearchLimits &limits, int64_t best) {
  search::Solver solver(problem);
  search::SolveOptions options;
  options.threads = limits.threads;
  options.cutoff = best + best / kWorthTrying;
  options.workLimit = limits.workLimit / kQuickShare;
  search::SolveResult quick = solver.solve(options);
  if (quick.bound >= std::min(quick.cost, best))
    return quick;
  options.workLimit = limits.workLimit;
  return solver.solve(options);
}

MeshSearch::MeshSearch(const plan::StrategyChoice &choice, const Groups &groups, const RecomputeClasses &recompute,
                       const CostModel &costs, int threads)
    : builder(groups, recompute, costs, choice, makeStepSetting(groups.getFunction(), choice.mesh, costs, threads)) {
  if (findUnmetPin().empty())
    build(0);
}

void MeshSearch::build(int parts) {
  if (problems[parts].nodes.empty())
    problems[parts] = builder.build(parts);
}

void MeshSearch::setMemory(int parts, int64_t bytes) {
  llvm::fill(problems[parts].capacity, std::max<int64_t>(bytes - besideBytes, 0));
}

const search::Problem &MeshSearch::getProblem(int parts, int64_t memoryBytes) {
  build(parts);
  setMemory(parts, memoryBytes);
  return problems[parts];
}

search::Problem MeshSearch::buildBound(int64_t memoryBytes, plan::PipelineAttr pipeline) {
  search::Problem problem = builder.buildBound(pipeline);
  int64_t stages = pipeline ? pipeline.getPositions() : 1;
  // The communicators of a pipeline depend on its cut, so the bound expects none.
  int64_t bytes = std::max<int64_t>(stages > 1 ? memoryBytes : memoryBytes - besideBytes, 0);
  bytes = std::min(bytes, search::kUnlimitedBytes / stages);
  llvm::fill(problem.capacity, bytes + bytes / kRowSlack);
  // The first row of a pipeline is of one rank of each position.
  problem.capacity.front() *= stages;
  return problem;
}

bool MeshSearch::addKnown(const std::string &name, search::Solution solution) {
  if (search::evaluate(problems[0], solution).cost >= search::kForbidden)
    return false;
  known.push_back({name, std::move(solution)});
  return true;
}

int64_t MeshSearch::evaluateKnown(int64_t memoryBytes, std::vector<NamedCost> &named) {
  setMemory(0, memoryBytes);
  int64_t least = search::kForbidden;
  for (const KnownPlan &each : known) {
    search::Evaluation evaluation = search::evaluate(problems[0], each.solution);
    named.push_back({each.name, evaluation.cost, evaluation.excess});
    if (evaluation.isFeasible())
      least = std::min(least, evaluation.cost);
  }
  return least;
}

void MeshSearch::solve(int parts, const SearchLimits &limits, int64_t best) {
  std::optional<search::SolveResult> &result = results[parts];
  if (limits.memoryBytes > solvedBytes[parts])
    result.reset();
  setMemory(parts, limits.memoryBytes);
  solvedBytes[parts] = limits.memoryBytes;
  if (result && !(result->isFeasible() && search::evaluate(problems[parts], result->solution).isFeasible()))
    result = search::SolveResult{{}, search::kForbidden, result->bound};
  if (!result || result->bound < std::min(result->cost, best))
    result = solveOrGiveUp(problems[parts], limits, best);
}

int64_t MeshSearch::solveKept(const SearchLimits &limits, int64_t best) {
  if (!free) {
    setMemory(0, search::kUnlimitedBytes);
    free = solveOrGiveUp(problems[0], limits, best);
  }
  setMemory(0, limits.memoryBytes);
  if (free->isFeasible() && search::evaluate(problems[0], free->solution).isFeasible()) {
    results[0] = *free;
    solvedBytes[0] = limits.memoryBytes;
  } else {
    solve(0, limits, best);
  }
  for (const KnownPlan &each : known) {
    search::Evaluation evaluation = search::evaluate(problems[0], each.solution);
    if (evaluation.isFeasible() && evaluation.cost < results[0]->cost) {
      results[0]->cost = evaluation.cost;
      results[0]->solution = each.solution;
    }
  }
  return results[0]->cost;
}

bool MeshSearch::mayRecompute(int64_t best) const {
  bool isNearFree = results[0]->isFeasible() && results[0]->cost <= free->bound + free->bound / kWorthRecompute;
  return !isNearFree && free->bound < best;
}

static int64_t getPeak(const search::Problem &problem, const search::Solution &solution) {
  std::vector<int64_t> usage = search::rowUsage(problem, solution);
  return *std::max_element(usage.begin(), usage.begin() + static_cast<int64_t>(problem.capacity.size()));
}

Candidate MeshSearch::makeCandidate(int parts, const search::Solution &solution) const {
  const search::Problem &problem = problems[parts];
  Candidate candidate;
  candidate.solution = solution;
  candidate.choice = builder.decode(solution);
  candidate.recomputeParts = parts;
  candidate.costNanoseconds = search::evaluate(problems[0], solution).cost;
  candidate.guessNanoseconds = search::evaluate(problem, solution).cost;
  candidate.besideBytes = besideBytes;
  candidate.peakBytes = getPeak(problem, solution) + besideBytes;
  candidate.keptPeakBytes = getPeak(problems[0], solution) + besideBytes;
  return candidate;
}

void MeshSearch::report(int64_t memoryBytes, SearchReport &report) const {
  for (int parts = 0; parts <= kRecomputeParts; ++parts)
    if (const std::optional<search::SolveResult> &result = results[parts];
        result && result->isFeasible() && solvedBytes[parts] == memoryBytes) {
      report.candidates.push_back(makeCandidate(parts, result->solution));
      report.candidates.back().boundNanoseconds = result->bound;
    }
  // With the least recompute with which they fit, among the problems that were solved for this memory.
  for (const KnownPlan &each : known)
    for (int parts = 0; parts <= kRecomputeParts; ++parts)
      if (solvedBytes[parts] == memoryBytes && search::evaluate(problems[parts], each.solution).isFeasible()) {
        report.fittingNamed.push_back(makeCandidate(parts, each.solution));
        break;
      }
}
