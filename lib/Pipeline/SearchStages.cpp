#include "SearchStages.h"

#include "windlass/Pipeline/Claims.h"
#include "windlass/Support/RunTasks.h"
#include "windlass/Support/ThreadedContext.h"

#include <chrono>
#include <cmath>

using namespace mlir;
using namespace windlass;

using Begin = llvm::function_ref<LogicalResult(planner::PlanSearch &)>;
using Meshes = std::vector<planner::SearchedMesh>;

static void append(Meshes &meshes, Meshes more) {
  meshes.insert(meshes.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Searches a plan of several stages. Its `planned` is null where no plan fits, or none is likely to beat `mustBeat`.
static FailureOr<FoundPlan> searchPipeline(ModuleOp module, const PlanChoice &choice, StringRef precision,
                                           double mustBeat) {
  OwningOpRef<ModuleOp> cut(module.clone());
  CostModel costs(choice.cluster, choice.profile.get(), precision.str());
  CodeScope scope(module.getContext(), Code::strategy);
  if (failed(planner::cutModel(*cut, choice.pipeline, choice.getPositionRanks(), costs)))
    return failure();
  return searchPlan(*cut, choice, precision, nullptr, mustBeat);
}

/// Searches plans of several stages, and replaces `best` where one has a shorter step. Adds the problems that bound the
/// plans of each number of stages to `bounded`. Two numbers are searched side by side, with any number of threads, so
/// that this does not change the answer.
static void tryPipelines(ModuleOp module, const PlanChoice &choice, StringRef precision, double mustBeat,
                         std::optional<FoundPlan> &best, std::vector<std::pair<int64_t, std::optional<double>>> &tried,
                         Meshes &bounded) {
  constexpr size_t kAtOnce = 2;
  int64_t devices = choice.cluster.getDevices();
  std::vector<int64_t> counts;
  for (int64_t stages = 2; stages <= std::min(devices, kMostSearchedStages); ++stages)
    if (devices % stages == 0)
      counts.push_back(stages);
  // A model may have too few blocks for as many stages, or a mesh no plan that suits the micro-batches.
  ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
  for (size_t begin = 0; begin < counts.size(); begin += kAtOnce) {
    ArrayRef<int64_t> wave = ArrayRef(counts).drop_front(begin).take_front(kAtOnce);
    double shortest = best ? std::min(best->summary.stepSeconds, mustBeat) : mustBeat;
    std::vector<FailureOr<FoundPlan>> found(wave.size());
    runTasks(static_cast<int>(choice.searchThreads), static_cast<int>(wave.size()), [&](int i) {
      PlanChoice its = choice;
      its.pipeline.positions = wave[i];
      its.searchThreads = std::max<int64_t>(1, choice.searchThreads / static_cast<int64_t>(wave.size()));
      found[i] = searchPipeline(module, its, precision, shortest);
    });
    for (auto [stages, its] : llvm::zip_equal(wave, found)) {
      if (failed(its))
        continue;
      append(bounded, std::move(its->bounded));
      bool isFound = bool(its->planned);
      tried.push_back({stages, isFound ? std::optional(its->summary.stepSeconds) : std::nullopt});
      if (isFound && (!best || its->summary.stepSeconds < best->summary.stepSeconds))
        best = std::move(*its);
    }
  }
}

/// Searches a plan for the number of stages of `choice`; `bounded` are the problems that bound all of them.
static FailureOr<FoundPlan> searchGivenStages(ModuleOp module, const PlanChoice &choice, StringRef precision,
                                              Begin begin, double mustBeat, Meshes &bounded) {
  FailureOr<FoundPlan> found = choice.pipeline.hasOnePosition() ? searchPlan(module, choice, precision, begin, mustBeat)
                                                                : searchPipeline(module, choice, precision, mustBeat);
  if (succeeded(found))
    bounded = std::move(found->bounded);
  return found;
}

/// Searches plans of each number of stages; `bounded` are the problems that bound the plans of those that were tried.
static FailureOr<FoundPlan> searchAllStages(ModuleOp module, const PlanChoice &choice, StringRef precision, Begin begin,
                                            double mustBeat, Meshes &bounded) {
  MLIRContext *context = module.getContext();
  std::optional<FoundPlan> best;
  std::vector<std::pair<int64_t, std::optional<double>>> tried;
  // What does not suit one stage may suit several, so its error is reported where there is no plan at all.
  std::vector<Diagnostic> errors;
  FoundPlan whole;
  {
    ScopedDiagnosticHandler keep(context, [&](Diagnostic &error) {
      errors.push_back(std::move(error));
      return success();
    });
    FailureOr<FoundPlan> found = searchPlan(module, choice, precision, begin, mustBeat);
    bool isFound = succeeded(found) && found->planned;
    tried.push_back({1, isFound ? std::optional(found->summary.stepSeconds) : std::nullopt});
    if (isFound) {
      append(bounded, std::move(found->bounded));
      best = std::move(*found);
    } else if (succeeded(found)) {
      whole = std::move(*found);
    }
  }
  tryPipelines(module, choice, precision, mustBeat, best, tried, bounded);
  if (!best && (whole.refuse || (mustBeat < INFINITY && errors.empty())))
    return whole;
  if (!best) {
    for (Diagnostic &error : errors)
      context->getDiagEngine().emit(std::move(error));
    return failure();
  }
  best->summary.triedStages = std::move(tried);
  return std::move(*best);
}

FailureOr<FoundPlan> windlass::searchStages(ModuleOp module, const PlanChoice &choice, StringRef precision, Begin begin,
                                            double mustBeat) {
  auto start = std::chrono::steady_clock::now();
  ThreadedContext threaded(module.getContext());
  Meshes bounded;
  auto search = choice.searchesStages ? searchAllStages : searchGivenStages;
  FailureOr<FoundPlan> found = search(module, choice, precision, begin, mustBeat, bounded);
  if (failed(found) || !found->planned)
    return found;
  certify(bounded, found->mesh, static_cast<int>(choice.searchThreads), found->summary);
  found->summary.searchSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return found;
}
