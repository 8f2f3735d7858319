#include "windlass/Planner/ChoosePlan.h"

#include "MeshProblem.h"

#include "windlass/Search/Solver.h"

#include <numeric>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// Plans whose cost is above what it is without a limit by less than one part in so many are not worth running
/// anything again.
static constexpr int64_t kWorthRerun = 100;
/// Of the work, one part in so many is spent before anything is known of other meshes.
static constexpr int64_t kQuickShare = 20;

/// The batch that all inputs of the graph have in common; 0 where there are none.
static int64_t getBatch(func::FuncOp microbatch) {
  int64_t batch = 0;
  for (BlockArgument argument : microbatch.getArguments())
    if (auto type = llvm::dyn_cast<RankedTensorType>(argument.getType());
        type && type.getRank() > 0 && microbatch.getArgAttr(argument.getArgNumber(), train::kInputAttr))
      batch = std::gcd(batch, type.getDimSize(0));
  return batch;
}

/// All ways to share ranks among groups, parts of the batch and parts of the model.
static std::vector<plan::StrategyChoice> listMeshes(func::FuncOp microbatch, int64_t ranks) {
  int64_t microBatches = plan::getMicroBatches(microbatch->getParentOfType<ModuleOp>()), batch = getBatch(microbatch);
  std::vector<plan::StrategyChoice> meshes;
  for (int64_t model = 1; model <= ranks; ++model)
    for (int64_t parts = 1; ranks % model == 0 && parts <= ranks / model; ++parts) {
      int64_t rest = ranks / model;
      if (rest % parts != 0 || batch % parts != 0 || (batch == 0 && parts > 1) || microBatches % (rest / parts) != 0)
        continue;
      plan::StrategyChoice &choice = meshes.emplace_back();
      choice.groups = rest / parts;
      choice.batchParts = parts;
      choice.modelRanks = model;
    }
  return meshes;
}

/// "zero1*megatron=2", as `--strategy` takes it.
static std::string getName(const plan::StrategyChoice &mesh, int zeroLevel) {
  std::string data = zeroLevel > 0 ? "zero" + std::to_string(zeroLevel) : "ddp";
  if (mesh.modelRanks == 1)
    return data;
  bool isAlone = mesh.groups * mesh.batchParts == 1;
  return isAlone ? "megatron" : data + "*megatron=" + std::to_string(mesh.modelRanks);
}

namespace {
/// A solution of a mesh's problem without reruns.
struct NamedSolution {
  NamedCost cost;
  search::Solution solution;
};
} // namespace

/// The named strategies that lead to this mesh. Leaves the module planned by one of them.
static std::vector<NamedSolution> solveByName(ModuleOp module, const plan::StrategyChoice &mesh,
                                              const MeshProblem &problem, const search::Problem &built) {
  std::vector<NamedSolution> found;
  if (mesh.groups != std::gcd(mesh.groups * mesh.batchParts, plan::getMicroBatches(module)))
    return found;
  plan::StrategyChoice choice = mesh;
  choice.splitsMatmuls = true;
  if (failed(plan::applyStrategy(module, choice, 1)))
    return found;
  // The ranks' shares change nothing of what operators see.
  for (int level = 0; level <= (mesh.groups * mesh.batchParts > 1 ? 3 : 0); ++level) {
    choice.zeroLevel = level;
    if (std::optional<search::Solution> solution = problem.encode(choice)) {
      search::Evaluation evaluation = search::evaluate(built, *solution);
      if (evaluation.cost < search::kForbidden)
        found.push_back({{getName(mesh, level), evaluation.cost, evaluation.excess}, std::move(*solution)});
    }
  }
  return found;
}

/// At first with a small part of the work: most meshes are worse than the best one by more than what is open then.
static search::SolveResult solve(const search::Problem &problem, const SearchLimits &limits, int64_t best) {
  search::SolveOptions options;
  options.threads = limits.threads;
  options.workLimit = limits.workLimit / kQuickShare;
  search::SolveResult quick = search::solve(problem, options);
  if (quick.bound >= std::min(quick.cost, best))
    return quick;
  options.workLimit = limits.workLimit;
  return search::solve(problem, options);
}

/// Calls `visit` with each mesh, its problem, and what that is built from.
static LogicalResult forEachMesh(ModuleOp module, int64_t ranks, const CostModel &costs, int64_t memoryBytes,
                                 llvm::function_ref<void(SearchedMesh, MeshProblem &)> visit) {
  auto microbatch = module.lookupSymbol<func::FuncOp>(train::kMicrobatchFunction);
  if (!microbatch)
    return module.emitError("has no @microbatch to plan");
  std::vector<plan::StrategyChoice> meshes = listMeshes(microbatch, ranks);
  if (meshes.empty())
    return module.emitError() << ranks << " ranks do not fit " << plan::getMicroBatches(module)
                              << " micro-batches of batch " << getBatch(microbatch)
                              << " on any mesh; change the ranks or the micro-batches";
  Groups groups(microbatch);
  for (const plan::StrategyChoice &mesh : meshes) {
    Reshards reshards(plan::setMesh(module, mesh), costs);
    Labels labels(groups, reshards, costs);
    MeshProblem problem(groups, labels, reshards, costs, mesh);
    visit({mesh, problem.build(memoryBytes, false)}, problem);
  }
  return success();
}

FailureOr<std::vector<SearchedMesh>> planner::buildProblems(ModuleOp module, int64_t ranks, const CostModel &costs,
                                                            int64_t memoryBytes) {
  std::vector<SearchedMesh> meshes;
  if (failed(forEachMesh(module, ranks, costs, memoryBytes,
                         [&](SearchedMesh mesh, MeshProblem &) { meshes.push_back(std::move(mesh)); })))
    return failure();
  return meshes;
}

FailureOr<SearchReport> planner::choosePlans(ModuleOp module, int64_t ranks, const CostModel &costs,
                                             const SearchLimits &limits) {
  SearchReport report;
  report.boundNanoseconds = report.freeBoundNanoseconds = search::kForbidden;
  int64_t best = search::kForbidden;
  auto visit = [&](SearchedMesh searched, MeshProblem &problem) {
    const plan::StrategyChoice &mesh = searched.choice;
    const search::Problem &built = searched.problem;
    auto keep = [&](const search::Problem &solved, const search::Solution &solution, bool rerunsBlocks, int64_t bound) {
      std::vector<int64_t> usage = search::rowUsage(solved, solution);
      Candidate &candidate = report.candidates.emplace_back();
      candidate.choice = problem.decode(solution);
      candidate.rerunsBlocks = rerunsBlocks;
      candidate.costNanoseconds = search::evaluate(solved, solution).cost;
      candidate.leastNanoseconds = search::evaluate(built, solution).cost;
      candidate.peakBytes =
          *std::max_element(usage.begin(), usage.begin() + static_cast<int64_t>(solved.capacity.size()));
      candidate.boundNanoseconds = bound;
      best = std::min(best, candidate.costNanoseconds);
      candidate.problem = solved;
    };
    // Without a limit first: where that fits, it is the answer with one too.
    search::SolveResult free = solve(problem.build(SearchLimits::kUnlimited, false), limits, best), result = free;
    if (!free.isFeasible() || !search::evaluate(built, free.solution).isFeasible())
      result = solve(built, limits, best);
    // Before anything replaces the problem that names are looked up in.
    if (mesh.modelRanks <= limits.hostDevices)
      for (NamedSolution &named : solveByName(module, mesh, problem, built)) {
        if (named.cost.excessBytes <= 0 && named.cost.costNanoseconds < result.cost) {
          result.cost = named.cost.costNanoseconds;
          result.solution = std::move(named.solution);
        }
        report.named.push_back(std::move(named.cost));
      }
    report.freeBoundNanoseconds = std::min(report.freeBoundNanoseconds, free.bound);
    report.boundNanoseconds = std::min(report.boundNanoseconds, result.bound);
    if (result.isFeasible())
      keep(built, result.solution, false, result.bound);
    // Memory is what makes it dearer: what is run again may pay.
    if (!result.isFeasible() || result.cost > free.bound + free.bound / kWorthRerun) {
      search::Problem rerun = problem.build(limits.memoryBytes, true);
      search::SolveResult again = solve(rerun, limits, best);
      if (again.isFeasible())
        keep(rerun, again.solution, true, again.bound);
    }
    report.meshes.push_back(std::move(searched));
  };
  if (failed(forEachMesh(module, ranks, costs, limits.memoryBytes, visit)))
    return failure();
  // Ties are broken by the order of meshes.
  std::vector<size_t> order(report.candidates.size());
  std::iota(order.begin(), order.end(), size_t(0));
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(report.candidates[a].leastNanoseconds, a) < std::pair(report.candidates[b].leastNanoseconds, b);
  });
  std::vector<Candidate> sorted;
  for (size_t i : order)
    sorted.push_back(std::move(report.candidates[i]));
  report.candidates = std::move(sorted);
  return report;
}

plan::StrategyChoice planner::readChoice(ModuleOp module) {
  auto mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  plan::StrategyChoice choice;
  choice.groups = mesh.sizeOf(plan::kDataAxis);
  choice.batchParts = mesh.sizeOf(plan::kBatchAxis);
  choice.modelRanks = mesh.sizeOf(plan::kModelAxis);
  for (auto read : module.lookupSymbol<func::FuncOp>(train::kMicrobatchFunction).getOps<train::ReadOp>()) {
    StringAttr name = read.getParameterAttr().getAttr();
    auto parameter = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(module, name);
    auto gradient = parameter->getAttrOfType<plan::LayoutAttr>(plan::kGradientLayoutAttr);
    auto master = parameter->getAttrOfType<plan::LayoutAttr>(plan::kMasterLayoutAttr);
    plan::LayoutAttr found = plan::getLayout(read.getResult());
    // As the strategy's levels make the copies, one after the other.
    int level = master != found;
    if (level > 0 && gradient && plan::dropUnreduced(gradient) == master)
      level = parameter->getAttrOfType<plan::LayoutAttr>(plan::kLayoutAttr) == found ? 2 : 3;
    choice.zeroLevels[name] = level;
  }
  return choice;
}

/// Whether all operators of a group are split alike, and all its parameters' copies lie alike.
static bool areRepeatsAlike(const Groups &groups) {
  for (const OperatorGroup &group : groups.getOperators())
    for (Operation *op : group.ops) {
      // What of a strategy is no split says what is run again.
      auto getSplits = [](Operation *op) {
        return op->getAttrOfType<plan::StrategyAttr>(plan::kStrategyAttr).getSplits();
      };
      if (getSplits(op) != getSplits(group.front()))
        return false;
      for (auto [a, b] : llvm::zip_equal(op->getResults(), group.front()->getResults()))
        if (plan::getLayout(a) != plan::getLayout(b))
          return false;
    }
  for (const ParameterGroup &group : groups.getParameters())
    for (train::ParameterOp parameter : group.parameters)
      for (StringRef name : {plan::kLayoutAttr, plan::kMasterLayoutAttr, plan::kGradientLayoutAttr})
        if (parameter->getAttr(name) != train::ParameterOp(group.parameters.front())->getAttr(name))
          return false;
  return true;
}

std::optional<int64_t> planner::evaluatePlan(ModuleOp module, const plan::StrategyChoice &choice,
                                             const CostModel &costs) {
  Groups groups(module.lookupSymbol<func::FuncOp>(train::kMicrobatchFunction));
  Reshards reshards(module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr), costs);
  Labels labels(groups, reshards, costs);
  MeshProblem problem(groups, labels, reshards, costs, choice);
  search::Problem built = problem.build(SearchLimits::kUnlimited, false);
  std::optional<search::Solution> solution = problem.encode(choice);
  if (!solution || !areRepeatsAlike(groups))
    return std::nullopt;
  return search::evaluate(built, *solution).cost;
}
