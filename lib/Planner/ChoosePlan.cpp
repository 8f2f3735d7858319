#include "windlass/Planner/ChoosePlan.h"

#include "MeshProblem.h"

#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"
#include "windlass/Search/Solver.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/RunTasks.h"
#include "windlass/Support/Words.h"

#include <functional>
#include <numeric>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// Plans whose cost is above what it is without a limit by less than one part in so many are not worth running
/// anything again.
static constexpr int64_t kWorthRerun = 100;
/// Meshes whose plans cost more than the best one by one part in so many are not searched to the end: no schedule makes
/// up for that.
static constexpr int64_t kWorthTrying = 50;
/// Of the work, one part in so many is spent before anything is known of other meshes.
static constexpr int64_t kQuickShare = 20;

std::array<int64_t, 3> planner::getSizes(plan::MeshAttr mesh) {
  return {mesh.sizeOf(plan::AxisRole::replica), mesh.sizeOf(plan::AxisRole::batch), mesh.sizeOf(plan::AxisRole::model)};
}

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
      meshes.emplace_back().mesh = plan::makeMesh(microbatch.getContext(), rest / parts, parts, model);
    }
  return meshes;
}

/// Lists the named strategies that are compared on a mesh with `dataRanks` ranks for the data and `modelRanks` for the
/// model.
static std::vector<plan::StrategyTerms> listComparedTerms(int64_t dataRanks, int64_t modelRanks) {
  std::vector<const plan::NamedStrategy *> forData, forModel;
  for (const plan::NamedStrategy &strategy : plan::getNamedStrategies()) {
    std::vector<const plan::NamedStrategy *> &strategies = strategy.isForModel() ? forModel : forData;
    if (strategy.isCompared)
      strategies.push_back(&strategy);
  }
  if (modelRanks == 1)
    forModel = {nullptr};
  // One rank that works on the data has nobody to share it with: no strategy differs from the first.
  if (dataRanks == 1)
    forData = {modelRanks == 1 ? forData.front() : nullptr};
  std::vector<plan::StrategyTerms> terms;
  for (const plan::NamedStrategy *model : forModel)
    for (const plan::NamedStrategy *data : forData)
      terms.push_back({data, model, dataRanks, modelRanks});
  return terms;
}

namespace {
/// A named strategy in a mesh's problem without reruns.
struct NamedSolution {
  std::string name;
  search::Solution solution;
};
} // namespace

/// At first with a small part of the work: most meshes are worse than the best one by more than what is open then.
static search::SolveResult solveOrGiveUp(const search::Problem &problem, const SearchLimits &limits, int64_t best) {
  search::Shrunk shrunk = search::shrink(problem);
  search::SolveOptions options;
  options.threads = limits.threads;
  options.cutoff = best + best / kWorthTrying;
  options.workLimit = limits.workLimit / kQuickShare;
  search::SolveResult quick = search::solve(problem, shrunk, options);
  if (quick.bound >= std::min(quick.cost, best))
    return quick;
  options.workLimit = limits.workLimit;
  return search::solve(problem, shrunk, options);
}

struct PlanSearch::Mesh {
  Mesh(const plan::StrategyChoice &choice, const Groups &groups, const Reruns &reruns, const CostModel &costs,
       int threads)
      : choice(choice), reshards(choice.mesh, costs), labels(groups, reshards, costs, this->choice.pins, threads),
        builder(groups, reruns, labels, reshards, costs, choice, threads) {
    if (labels.findUnmetPin().empty())
      problems[0] = builder.build(0);
  }

  Candidate makeCandidate(int rerunParts, const search::Solution &solution) const {
    const search::Problem &problem = problems[rerunParts];
    Candidate candidate;
    candidate.solution = solution;
    candidate.choice = builder.decode(solution);
    candidate.rerunParts = rerunParts;
    candidate.costNanoseconds = search::evaluate(problems[0], solution).cost;
    candidate.guessNanoseconds = search::evaluate(problem, solution).cost;
    candidate.besideBytes = besideBytes;
    candidate.peakBytes = getPeak(problem, solution) + besideBytes;
    candidate.keptPeakBytes = getPeak(problems[0], solution) + besideBytes;
    return candidate;
  }

  static int64_t getPeak(const search::Problem &problem, const search::Solution &solution) {
    std::vector<int64_t> usage = search::rowUsage(problem, solution);
    return *std::max_element(usage.begin(), usage.begin() + static_cast<int64_t>(problem.capacity.size()));
  }

  void setMemory(int rerunParts, int64_t bytes) {
    llvm::fill(problems[rerunParts].capacity, std::max<int64_t>(bytes - besideBytes, 0));
  }

  void build(int rerunParts) {
    if (problems[rerunParts].nodes.empty())
      problems[rerunParts] = builder.build(rerunParts);
  }

  /// Solves the problem for the limit of memory. What was found before for more memory bounds it, and is the answer
  /// where that fits and nothing better is left.
  void solve(int rerunParts, const SearchLimits &limits, int64_t best) {
    std::optional<search::SolveResult> &result = results[rerunParts];
    if (limits.memoryBytes > solvedBytes[rerunParts])
      result.reset();
    setMemory(rerunParts, limits.memoryBytes);
    solvedBytes[rerunParts] = limits.memoryBytes;
    if (result && !(result->isFeasible() && search::evaluate(problems[rerunParts], result->solution).isFeasible()))
      result = search::SolveResult{{}, search::kForbidden, result->bound};
    if (!result || result->bound < std::min(result->cost, best))
      result = solveOrGiveUp(problems[rerunParts], limits, best);
  }

  /// With nothing run again. Without a limit first: where that fits, it is the answer with one too.
  void solveKept(const SearchLimits &limits, int64_t best) {
    if (!free) {
      setMemory(0, SearchLimits::kUnlimited);
      free = solveOrGiveUp(problems[0], limits, best);
    }
    setMemory(0, limits.memoryBytes);
    if (!free->isFeasible() || !search::evaluate(problems[0], free->solution).isFeasible())
      return solve(0, limits, best);
    results[0] = *free;
    solvedBytes[0] = limits.memoryBytes;
  }

  plan::StrategyChoice choice;
  int64_t besideBytes = 0;
  Reshards reshards;
  Labels labels;
  MeshProblem builder;
  /// By how many parts of the blocks are run again; all but that with none are built where they are wanted.
  search::Problem problems[kRerunParts + 1];
  /// Of plans that are known before the search: of named strategies, once they were looked for, and of older ones.
  std::vector<NamedSolution> named;
  bool isSolvedByName = false;
  /// Without a limit of memory.
  std::optional<search::SolveResult> free;
  /// With a limit of `solvedBytes`, where they were solved.
  std::optional<search::SolveResult> results[kRerunParts + 1];
  int64_t solvedBytes[kRerunParts + 1] = {};
};

PlanSearch::PlanSearch(ModuleOp module) : module(module) {}
PlanSearch::~PlanSearch() = default;

/// Gives each mesh what is pinned on it, and leaves those out on which pins say nothing that there is. Fails, with what
/// the first pin breaks on the mesh of the most axes, where none is left.
static LogicalResult readPinsOnMeshes(ModuleOp module, ArrayRef<std::string> pins,
                                      std::vector<plan::StrategyChoice> &choices) {
  if (pins.empty())
    return success();
  auto read = [&](plan::StrategyChoice &choice) {
    module->setAttr(plan::kMeshAttr, choice.mesh);
    FailureOr<plan::Pins> pinned = plan::readPins(module, pins);
    if (succeeded(pinned))
      choice.pins = std::move(*pinned);
    return LogicalResult(pinned);
  };
  auto countAxes = [](const plan::StrategyChoice &its) { return its.mesh.getAxes().size(); };
  plan::StrategyChoice most = *std::max_element(
      choices.begin(), choices.end(),
      [&](const plan::StrategyChoice &a, const plan::StrategyChoice &b) { return countAxes(a) < countAxes(b); });
  {
    ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
    llvm::erase_if(choices, [&](plan::StrategyChoice &choice) { return failed(read(choice)); });
  }
  return choices.empty() ? read(most) : success();
}

FailureOr<std::unique_ptr<PlanSearch>> PlanSearch::create(ModuleOp module, int64_t ranks, const CostModel &costs,
                                                          int threads, ArrayRef<std::string> pins,
                                                          ArrayRef<int64_t> only) {
  auto microbatch = module.lookupSymbol<func::FuncOp>(train::kMicrobatchFunction);
  if (!microbatch)
    return module.emitError("has no @microbatch to plan");
  std::vector<plan::StrategyChoice> choices = listMeshes(microbatch, ranks);
  if (!only.empty())
    llvm::erase_if(choices, [&](const plan::StrategyChoice &its) { return only != ArrayRef(getSizes(its.mesh)); });
  if (choices.empty())
    return module.emitError() << countOf(ranks, "rank") << (ranks == 1 ? " does" : " do") << " not fit "
                              << countOf(plan::getMicroBatches(module), "micro-batch", "micro-batches") << " of batch "
                              << getBatch(microbatch) << " on any mesh; change the ranks or the micro-batches";
  if (failed(readPinsOnMeshes(module, pins, choices)))
    return failure();
  std::unique_ptr<PlanSearch> search(new PlanSearch(module));
  // What a pin matches is the same on all meshes.
  search->groups = std::make_unique<Groups>(microbatch, choices.front().pins);
  search->reruns = std::make_unique<Reruns>(*search->groups);
  // Threads beside each other, or those of one mesh.
  if (!module.getContext()->isMultithreadingEnabled())
    threads = 1;
  int own = choices.size() > 1 ? 1 : threads;
  search->meshes.resize(choices.size());
  runTasks(threads, static_cast<int>(choices.size()), [&](int i) {
    search->meshes[i] = std::make_unique<Mesh>(choices[i], *search->groups, *search->reruns, costs, own);
  });
  std::string unmet = search->meshes.front()->labels.findUnmetPin();
  llvm::erase_if(search->meshes, [](auto &mesh) { return !mesh->labels.findUnmetPin().empty(); });
  if (search->meshes.empty())
    return emitError(module.getLoc(), Code::pin)
           << "pin " << printable(unmet) << " leaves nothing that is searched: change it, or name a strategy";
  return search;
}

void PlanSearch::setBesideBytes(llvm::function_ref<int64_t(const plan::StrategyChoice &)> expect) {
  for (const std::unique_ptr<Mesh> &mesh : meshes)
    mesh->besideBytes = expect(mesh->choice);
}

std::vector<SearchedMesh> PlanSearch::getProblems(int64_t memoryBytes) const {
  std::vector<SearchedMesh> problems;
  for (const std::unique_ptr<Mesh> &mesh : meshes) {
    problems.push_back({mesh->choice, mesh->builder.buildWithRerunChoice()});
    llvm::fill(problems.back().problem.capacity, std::max<int64_t>(memoryBytes - mesh->besideBytes, 0));
  }
  return problems;
}

PlanSearch::Mesh *PlanSearch::findMesh(const plan::StrategyChoice &choice) const {
  auto found = llvm::find_if(meshes, [&](const std::unique_ptr<Mesh> &its) { return its->choice.mesh == choice.mesh; });
  return found == meshes.end() ? nullptr : found->get();
}

search::Problem PlanSearch::getProblem(const plan::StrategyChoice &choice, int rerunParts, int64_t memoryBytes) const {
  Mesh *mesh = findMesh(choice);
  mesh->build(rerunParts);
  mesh->setMemory(rerunParts, memoryBytes);
  return mesh->problems[rerunParts];
}

/// The named strategies that lead to this mesh.
void PlanSearch::solveByName(Mesh &mesh) {
  auto [replicas, batchParts, modelRanks] = getSizes(mesh.choice.mesh);
  int64_t dataRanks = replicas * batchParts;
  mesh.isSolvedByName = true;
  if (replicas != std::gcd(dataRanks, plan::getMicroBatches(module)))
    return;
  plan::StrategyChoice choice = mesh.choice;
  // What is pinned may contradict it.
  ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
  const plan::NamedStrategy *applied = nullptr;
  bool isApplied = false, suits = false;
  for (const plan::StrategyTerms &terms : listComparedTerms(dataRanks, modelRanks)) {
    // The ranks' shares change nothing of what operators see.
    if (!isApplied || applied != terms.model) {
      choice.splitModel = terms.model ? terms.model->splitModel : nullptr;
      suits = succeeded(plan::applyStrategy(module, choice, 1));
      applied = terms.model;
      isApplied = true;
    }
    choice.sharedCopies = terms.data ? terms.data->sharedCopies : plan::SharedCopies();
    std::optional<search::Solution> solution = suits ? mesh.builder.encode(choice) : std::nullopt;
    if (solution && search::evaluate(mesh.problems[0], *solution).cost < search::kForbidden)
      mesh.named.push_back({terms.getText(), std::move(*solution)});
  }
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

/// The labels of the plan that the module has; nothing where repeats differ, or it has something that is not searched.
static std::optional<search::Solution> encodeAlike(MeshProblem &problem, const Groups &groups,
                                                   const plan::StrategyChoice &choice) {
  return areRepeatsAlike(groups) ? problem.encode(choice) : std::nullopt;
}

bool PlanSearch::startFrom(const std::string &name) {
  plan::StrategyChoice choice = readChoice(module);
  Mesh *mesh = findMesh(choice);
  if (!mesh)
    return false;
  std::optional<search::Solution> solution = encodeAlike(mesh->builder, *groups, choice);
  if (!solution || search::evaluate(mesh->problems[0], *solution).cost >= search::kForbidden)
    return false;
  mesh->named.push_back({name, std::move(*solution)});
  return true;
}

/// Calls `task` with each number below `count` and the least cost so far, `atOnce` of them beside each other: always as
/// many, so that the answer does not depend on the threads. What a task returns is a cost that was found.
static void runInWaves(int threads, size_t atOnce, size_t count, int64_t &best,
                       const std::function<int64_t(size_t, int64_t)> &task) {
  for (size_t begin = 0; begin < count; begin += atOnce) {
    std::vector<int64_t> found(std::min(atOnce, count - begin));
    runTasks(threads, static_cast<int>(found.size()), [&](int i) { found[i] = task(begin + i, best); });
    best = std::min(best, *llvm::min_element(found));
  }
}

SearchReport PlanSearch::choose(const SearchLimits &limits) {
  SearchReport report;
  int64_t best = search::kForbidden;
  // Named strategies first: what is worse than one of them needs no search.
  std::vector<std::pair<int64_t, size_t>> order;
  for (auto [i, mesh] : llvm::enumerate(meshes)) {
    if (!mesh->isSolvedByName && mesh->choice.mesh.sizeOf(plan::AxisRole::model) <= limits.hostDevices)
      solveByName(*mesh);
    mesh->setMemory(0, limits.memoryBytes);
    int64_t least = search::kForbidden;
    for (const NamedSolution &named : mesh->named) {
      search::Evaluation evaluation = search::evaluate(mesh->problems[0], named.solution);
      report.named.push_back({named.name, evaluation.cost, evaluation.excess});
      if (evaluation.isFeasible())
        least = std::min(least, evaluation.cost);
    }
    order.push_back({least, i});
    best = std::min(best, least);
  }
  llvm::sort(order);

  // Meshes beside each other, or the two searches of one solver.
  SearchLimits own = limits;
  own.threads = meshes.size() > 1 ? 1 : limits.threads;
  const size_t atOnce = meshes.size() > 1 ? 2 : 1;
  runInWaves(limits.threads, atOnce, order.size(), best, [&](size_t i, int64_t known) {
    Mesh &mesh = *meshes[order[i].second];
    mesh.solveKept(own, known);
    for (const NamedSolution &named : mesh.named) {
      search::Evaluation evaluation = search::evaluate(mesh.problems[0], named.solution);
      if (evaluation.isFeasible() && evaluation.cost < mesh.results[0]->cost) {
        mesh.results[0]->cost = evaluation.cost;
        mesh.results[0]->solution = named.solution;
      }
    }
    return mesh.results[0]->cost;
  });

  // Memory is what makes it dearer: what is run again may pay.
  std::vector<std::pair<Mesh *, int>> tasks;
  for (auto &[least, i] : order)
    for (int parts = 1; parts <= kRerunParts; ++parts) {
      Mesh &mesh = *meshes[i];
      if (mesh.results[0]->isFeasible() && mesh.results[0]->cost <= mesh.free->bound + mesh.free->bound / kWorthRerun)
        continue;
      if (mesh.free->bound >= best)
        continue;
      mesh.build(parts);
      tasks.push_back({&mesh, parts});
    }
  runInWaves(limits.threads, atOnce, tasks.size(), best, [&](size_t i, int64_t known) {
    auto [mesh, parts] = tasks[i];
    mesh->solve(parts, own, known);
    // Whether it fits is known once it is scheduled.
    return search::kForbidden;
  });

  for (const std::unique_ptr<Mesh> &mesh : meshes) {
    for (int parts = 0; parts <= kRerunParts; ++parts)
      if (const std::optional<search::SolveResult> &result = mesh->results[parts];
          result && result->isFeasible() && mesh->solvedBytes[parts] == limits.memoryBytes) {
        report.candidates.push_back(mesh->makeCandidate(parts, result->solution));
        report.candidates.back().boundNanoseconds = result->bound;
      }
    for (const NamedSolution &named : mesh->named)
      if (search::evaluate(mesh->problems[0], named.solution).isFeasible())
        report.fittingNamed.push_back(mesh->makeCandidate(0, named.solution));
  }
  // Ties are broken by the order of meshes.
  for (std::vector<Candidate> *candidates : {&report.candidates, &report.fittingNamed})
    llvm::sort(*candidates, [](const Candidate &a, const Candidate &b) {
      auto toKey = [](const Candidate &its) {
        auto [replicas, batchParts, modelRanks] = getSizes(its.choice.mesh);
        return std::make_tuple(its.guessNanoseconds, modelRanks, batchParts, its.peakBytes);
      };
      return toKey(a) < toKey(b);
    });
  return report;
}

plan::StrategyChoice planner::readChoice(ModuleOp module) {
  plan::StrategyChoice choice;
  choice.mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  for (auto read : module.lookupSymbol<func::FuncOp>(train::kMicrobatchFunction).getOps<train::ReadOp>()) {
    StringAttr name = read.getParameterAttr().getAttr();
    auto parameter = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(module, name);
    auto getCopy = [&](StringRef copy) { return parameter->getAttrOfType<plan::LayoutAttr>(copy); };
    if (parameter.getTrainable())
      choice.parameters[name] = {getCopy(plan::kLayoutAttr), getCopy(plan::kGradientLayoutAttr),
                                 getCopy(plan::kMasterLayoutAttr)};
  }
  return choice;
}

static std::optional<int64_t> evaluateOn(MeshProblem &problem, const Groups &groups,
                                         const plan::StrategyChoice &choice) {
  search::Problem built = problem.buildWithReruns(countChosenReruns(groups));
  std::optional<search::Solution> solution = encodeAlike(problem, groups, choice);
  return solution ? std::optional(search::evaluate(built, *solution).cost) : std::nullopt;
}

std::optional<int64_t> PlanSearch::evaluate(const plan::StrategyChoice &choice) {
  Mesh *mesh = findMesh(choice);
  return mesh ? evaluateOn(mesh->builder, *groups, choice) : std::nullopt;
}

std::optional<int64_t> planner::evaluatePlan(ModuleOp module, const plan::StrategyChoice &choice,
                                             const CostModel &costs) {
  Groups groups(module.lookupSymbol<func::FuncOp>(train::kMicrobatchFunction), choice.pins);
  Reshards reshards(module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr), costs);
  Labels labels(groups, reshards, costs, choice.pins, /*threads=*/1);
  if (!labels.findUnmetPin().empty())
    return std::nullopt;
  Reruns reruns(groups);
  MeshProblem problem(groups, reruns, labels, reshards, costs, choice, /*threads=*/1);
  return evaluateOn(problem, groups, choice);
}
