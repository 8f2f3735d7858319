#include "windlass/Planner/ChoosePlan.h"

#include "MeshSearch.h"

#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"
#include "windlass/Dialect/Plan/Transforms/PipelineStep.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/RunTasks.h"
#include "windlass/Support/Words.h"

#include <functional>
#include <numeric>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

std::array<int64_t, 3> planner::getSizes(plan::MeshAttr mesh) {
  return {mesh.sizeOf(plan::AxisRole::replica), mesh.sizeOf(plan::AxisRole::batch), mesh.sizeOf(plan::AxisRole::model)};
}

/// Returns all ways to divide ranks into replicas, parts of the batch and parts of the model.
static std::vector<plan::StrategyChoice> listMeshes(func::FuncOp microbatch, int64_t ranks) {
  int64_t microBatches = train::getMergedMicroBatches(microbatch->getParentOfType<ModuleOp>()),
          batch = plan::getBatch(microbatch);
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

/// Returns why no plan on a mesh can have the pipeline: its schedule is not made for the number of micro-batches that
/// each rank runs there. Empty where there may be plans.
static std::string findMisfit(plan::PipelineAttr pipeline, ModuleOp module, plan::MeshAttr mesh) {
  if (!pipeline)
    return "";
  llvm::Expected<schedule::Pipeline> step =
      plan::makeStep(pipeline, train::getMergedMicroBatches(module) / mesh.sizeOf(plan::AxisRole::replica));
  return step ? "" : llvm::toString(step.takeError());
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
  // A single rank that works on the data has nobody to shard copies with: all strategies equal the first.
  if (dataRanks == 1)
    forData = {modelRanks == 1 ? forData.front() : nullptr};
  std::vector<plan::StrategyTerms> terms;
  for (const plan::NamedStrategy *model : forModel)
    for (const plan::NamedStrategy *data : forData)
      terms.push_back({data, model, dataRanks, modelRanks});
  return terms;
}

PlanSearch::PlanSearch(ModuleOp module) : module(module) {}
PlanSearch::~PlanSearch() = default;

/// Gives each mesh its pins, and drops meshes that lack something which a pin names. Fails, with what the first pin
/// breaks on the mesh of the most axes, where no mesh is left.
static LogicalResult readPinsOnMeshes(ModuleOp module, ArrayRef<std::string> pins,
                                      std::vector<plan::StrategyChoice> &choices) {
  if (pins.empty())
    return success();
  auto read = [&](plan::StrategyChoice &choice) {
    FailureOr<plan::Pins> pinned = plan::readPins(module, choice.mesh, pins);
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
  auto microbatch = train::getMicrobatchFunction(module);
  if (!microbatch)
    return module.emitError("has no @microbatch to plan");
  std::vector<plan::StrategyChoice> choices = listMeshes(microbatch, ranks);
  if (!only.empty())
    llvm::erase_if(choices, [&](const plan::StrategyChoice &its) { return only != ArrayRef(getSizes(its.mesh)); });
  if (choices.empty())
    return module.emitError() << countOf(ranks, "rank") << (ranks == 1 ? " does" : " do") << " not fit "
                              << countOf(train::getMergedMicroBatches(module), "micro-batch", "micro-batches")
                              << " of batch " << plan::getBatch(microbatch)
                              << " on any mesh; change the ranks or the micro-batches";
  auto pipeline = module->getAttrOfType<plan::PipelineAttr>(plan::kPipelineAttr);
  std::string misfit;
  llvm::erase_if(choices, [&](const plan::StrategyChoice &its) {
    std::string why = findMisfit(pipeline, module, its.mesh);
    misfit = why.empty() ? misfit : why;
    return !why.empty();
  });
  if (choices.empty())
    return module.emitError("has no mesh with which its schedule can run: ") << misfit;
  if (failed(readPinsOnMeshes(module, pins, choices)))
    return failure();
  std::unique_ptr<PlanSearch> search(new PlanSearch(module));
  // A pin matches the same operators on all meshes.
  search->groups = std::make_unique<Groups>(OperatorRange(microbatch), choices.front().pins);
  search->recompute = std::make_unique<RecomputeClasses>(*search->groups);
  // Either meshes run on threads side by side, or one mesh uses the threads.
  if (!module.getContext()->isMultithreadingEnabled())
    threads = 1;
  search->threads = threads;
  int own = choices.size() > 1 ? 1 : threads;
  search->meshes.resize(choices.size());
  runTasks(threads, static_cast<int>(choices.size()), [&](int i) {
    search->meshes[i] = std::make_unique<MeshSearch>(choices[i], *search->groups, *search->recompute, costs, own);
  });
  std::string unmet = search->meshes.front()->findUnmetPin();
  llvm::erase_if(search->meshes, [](auto &mesh) { return !mesh->findUnmetPin().empty(); });
  if (search->meshes.empty())
    return emitError(module.getLoc(), Code::pin)
           << "pin " << printable(unmet) << " leaves nothing that is searched: change it, or name a strategy";
  return search;
}

void PlanSearch::setBesideBytes(llvm::function_ref<int64_t(const plan::StrategyChoice &)> expect) {
  for (const std::unique_ptr<MeshSearch> &mesh : meshes)
    mesh->setBesideBytes(expect(mesh->getChoice()));
}

std::vector<SearchedMesh> PlanSearch::getProblems(int64_t memoryBytes, plan::PipelineAttr pipeline) const {
  std::vector<MeshSearch *> bounded;
  for (const std::unique_ptr<MeshSearch> &mesh : meshes)
    if (findMisfit(pipeline, module, mesh->getChoice().mesh).empty())
      bounded.push_back(mesh.get());
  std::vector<SearchedMesh> problems(bounded.size());
  int64_t stages = pipeline ? pipeline.getPositions() : 1;
  runTasks(threads, static_cast<int>(bounded.size()), [&](int i) {
    problems[i] = {bounded[i]->getChoice(), stages, bounded[i]->buildBound(memoryBytes, pipeline)};
  });
  return problems;
}

MeshSearch *PlanSearch::findMesh(const plan::StrategyChoice &choice) const {
  auto found = llvm::find_if(
      meshes, [&](const std::unique_ptr<MeshSearch> &its) { return its->getChoice().mesh == choice.mesh; });
  return found == meshes.end() ? nullptr : found->get();
}

search::Problem PlanSearch::getProblem(const plan::StrategyChoice &choice, int recomputeParts,
                                       int64_t memoryBytes) const {
  return findMesh(choice)->getProblem(recomputeParts, memoryBytes);
}

void PlanSearch::addNamed(MeshSearch &mesh, ModuleOp copy, const Counterparts &counterparts) const {
  auto [replicas, batchParts, modelRanks] = getSizes(mesh.getChoice().mesh);
  int64_t dataRanks = replicas * batchParts;
  if (replicas != std::gcd(dataRanks, train::getMergedMicroBatches(module)))
    return;
  plan::StrategyChoice choice = counterparts.translate(mesh.getChoice());
  const plan::NamedStrategy *applied = nullptr;
  bool isApplied = false, suits = false;
  for (const plan::StrategyTerms &terms : listComparedTerms(dataRanks, modelRanks)) {
    // The choice of sharded copies does not change what operators see.
    if (!isApplied || applied != terms.model) {
      choice.splitModel = terms.model ? terms.model->splitModel : nullptr;
      suits = (!terms.model || terms.model->suits(copy, choice.mesh)) &&
              succeeded(plan::applyStrategy(copy, choice, /*bucketBytes=*/1));
      applied = terms.model;
      isApplied = true;
    }
    choice.shardedCopies = terms.data ? terms.data->shardedCopies : plan::ShardedCopies();
    if (std::optional<search::Solution> solution =
            suits ? mesh.getBuilder().encode(choice, counterparts) : std::nullopt)
      mesh.addKnown(terms.getText(), std::move(*solution));
  }
}

void PlanSearch::addNamed(int64_t hostDevices) {
  std::vector<MeshSearch *> fresh;
  for (const std::unique_ptr<MeshSearch> &mesh : meshes)
    if (mesh->getChoice().mesh.sizeOf(plan::AxisRole::model) <= hostDevices && named.insert(mesh.get()).second)
      fresh.push_back(mesh.get());
  // A pin may contradict a strategy.
  ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
  int copies = std::min<int>(threads, fresh.size());
  runTasks(copies, copies, [&](int first) {
    OwningOpRef<ModuleOp> copy(module.clone());
    Counterparts counterparts(module, *copy);
    for (size_t i = first; i < fresh.size(); i += copies)
      addNamed(*fresh[i], *copy, counterparts);
  });
}

bool PlanSearch::startFrom(ModuleOp planned, const std::string &name) {
  plan::StrategyChoice choice = readChoice(planned);
  MeshSearch *mesh = findMesh(choice);
  if (!mesh)
    return false;
  std::optional<search::Solution> solution =
      encodeAlike(mesh->getBuilder(), *groups, choice, Counterparts(module, planned));
  return solution && mesh->addKnown(name, std::move(*solution));
}

/// Splits the operators of `@evaluate` as those of the forward pass, so that evaluation needs no more memory.
static void splitEvaluation(ModuleOp copy, plan::StrategyChoice &choice) {
  func::FuncOp evaluate = train::getEvaluateFunction(copy);
  if (!evaluate)
    return;
  llvm::DenseMap<Attribute, Operation *> forward;
  for (Operation &op : copy.lookupSymbol<func::FuncOp>(train::kMicrobatchFunction).front())
    if (Attribute id = op.getAttr(train::kIdAttr); id && !op.hasAttr(train::kForwardAttr))
      forward.try_emplace(id, &op);
  for (Operation &op : evaluate.front()) {
    Operation *found = forward.lookup(op.getAttr(train::kIdAttr));
    auto pinned = choice.pins.ops.find(found);
    if (found && pinned != choice.pins.ops.end() && found->getName() == op.getName() &&
        found->getOperandTypes() == op.getOperandTypes() && found->getResultTypes() == op.getResultTypes()) {
      plan::PinnedOp its = pinned->second;
      choice.pins.ops.try_emplace(&op, std::move(its));
    }
  }
}

LogicalResult PlanSearch::apply(const plan::StrategyChoice &choice, ModuleOp copy, int64_t bucketBytes) const {
  plan::StrategyChoice own = Counterparts(module, copy).translate(choice);
  splitEvaluation(copy, own);
  return plan::applyStrategy(copy, own, bucketBytes);
}

/// Calls `task` with each number below `count` and the least cost so far, always `atOnce` calls side by side, so that
/// the answer does not depend on the number of threads. `task` returns a cost that it found.
static void runInWaves(int threads, size_t atOnce, size_t count, int64_t &best,
                       const std::function<int64_t(size_t, int64_t)> &task) {
  for (size_t begin = 0; begin < count; begin += atOnce) {
    std::vector<int64_t> found(std::min(atOnce, count - begin));
    runTasks(threads, static_cast<int>(found.size()), [&](int i) { found[i] = task(begin + i, best); });
    best = std::min(best, *llvm::min_element(found));
  }
}

/// Sorts candidates; ties keep the order of meshes.
static void sortCandidates(std::vector<Candidate> &candidates) {
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
    auto toKey = [](const Candidate &its) {
      auto [replicas, batchParts, modelRanks] = getSizes(its.choice.mesh);
      return std::make_tuple(its.guessNanoseconds, modelRanks, batchParts, its.peakBytes);
    };
    return toKey(a) < toKey(b);
  });
}

SearchReport PlanSearch::choose(const SearchLimits &limits) {
  SearchReport report;
  int64_t best = search::kForbidden;
  // Known plans come first: a mesh that is worse than one of them needs no search.
  addNamed(limits.hostDevices);
  std::vector<std::pair<int64_t, size_t>> order;
  for (auto [i, mesh] : llvm::enumerate(meshes)) {
    order.push_back({mesh->evaluateKnown(limits.memoryBytes, report.named), i});
    best = std::min(best, order.back().first);
  }
  llvm::sort(order);

  // Threads serve meshes side by side, or the two searches of one solver.
  SearchLimits own = limits;
  own.threads = meshes.size() > 1 ? 1 : limits.threads;
  const size_t atOnce = meshes.size() > 1 ? 2 : 1;
  runInWaves(limits.threads, atOnce, order.size(), best,
             [&](size_t i, int64_t least) { return meshes[order[i].second]->solveKept(own, least); });

  // Where scarce memory makes a plan dearer, recompute may pay.
  std::vector<std::pair<MeshSearch *, int>> tasks;
  for (auto &[least, i] : order)
    for (int parts = 1; parts <= kRecomputeParts; ++parts)
      if (meshes[i]->mayRecompute(best)) {
        meshes[i]->build(parts);
        tasks.push_back({meshes[i].get(), parts});
      }
  runInWaves(limits.threads, atOnce, tasks.size(), best, [&](size_t i, int64_t least) {
    auto [mesh, parts] = tasks[i];
    mesh->solve(parts, own, least);
    // It is known whether the plan fits once it is scheduled.
    return search::kForbidden;
  });

  for (const std::unique_ptr<MeshSearch> &mesh : meshes)
    mesh->report(limits.memoryBytes, report);
  sortCandidates(report.candidates);
  sortCandidates(report.fittingNamed);
  return report;
}

plan::StrategyChoice planner::readChoice(ModuleOp module) {
  plan::StrategyChoice choice;
  choice.mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  for (auto read : train::getMicrobatchFunction(module).getOps<train::ReadOp>()) {
    StringAttr name = read.getParameterAttr().getAttr();
    auto parameter = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(module, name);
    auto getCopy = [&](StringRef copy) { return parameter->getAttrOfType<plan::LayoutAttr>(copy); };
    if (parameter.getTrainable())
      choice.parameters[name] = {getCopy(plan::kLayoutAttr), getCopy(plan::kGradientLayoutAttr),
                                 getCopy(plan::kMasterLayoutAttr)};
    choice.memories[name] = plan::getCopyMemories(parameter);
  }
  return choice;
}

std::optional<int64_t> PlanSearch::evaluate(ModuleOp planned, const plan::StrategyChoice &choice) const {
  MeshSearch *mesh = findMesh(choice);
  return mesh ? evaluateOn(mesh->getBuilder(), *groups, choice, Counterparts(module, planned)) : std::nullopt;
}

std::optional<int64_t> PlanSearch::evaluateLeast(ModuleOp planned, const plan::StrategyChoice &choice) const {
  MeshSearch *mesh = findMesh(choice);
  return mesh
             ? evaluateLeastOn(mesh->getBuilder(), *groups, choice, Counterparts(module, planned), /*pipeline=*/nullptr)
             : std::nullopt;
}

std::optional<int64_t> planner::evaluatePlan(ModuleOp module, const plan::StrategyChoice &choice,
                                             const CostModel &costs) {
  auto function = train::getMicrobatchFunction(module);
  Groups groups(OperatorRange(function), choice.pins);
  RecomputeClasses recompute(groups);
  RangeProblem problem(groups, recompute, costs, choice, makeStepSetting(function, choice.mesh, costs, /*threads=*/1));
  if (!problem.findUnmetPin().empty())
    return std::nullopt;
  return evaluateOn(problem, groups, choice, Counterparts(module, module));
}
