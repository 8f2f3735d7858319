#include "../../lib/Planner/MeshSearch.h"

#include "windlass/Dialect/Plan/Transforms/Offload.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/InitAllDialects.h"
#include "windlass/Pipeline/Compile.h"
#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Profile/Profile.h"
#include "windlass/Search/Certificate.h"

#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>
#include <set>

using namespace mlir;
using namespace windlass;

namespace {

/// A small model, the cluster that it is planned for, and its settings. Without launches, the bytes and FLOPs of
/// kernels decide, as they do in large models.
struct BoundCase {
  std::string model, cluster, precision;
  bool clips = false, hasLaunches = true;
  planner::PipelineChoice pipeline = {};
  /// The rates of devices and links, as shares of those of the cluster. On slow devices operators take longer than
  /// launches and messages do, as in large models; on slow links too, bytes take longer than operators.
  double deviceRate = 1, linkRate = 1;
  int64_t microBatches = 8;
  /// The share of a step that the least time of some plan is at least: a bound that is too high by more than the rest
  /// fails.
  double tightest = 0;
  plan::Offload offload = plan::Offload::none;
  /// The rate of the host's memory and of the link to it, as a share of those of the cluster.
  double hostRate = 1;
};

void PrintTo(const BoundCase &its, std::ostream *out) {
  *out << its.model << " on " << its.cluster << " in " << its.precision << (its.clips ? ", clipped" : "")
       << (its.hasLaunches ? "" : ", without launches");
  if (!its.pipeline.hasOnePosition())
    *out << ", " << its.pipeline.positions << " stages by " << its.pipeline.schedule << "="
         << its.pipeline.chunksPerPosition;
  if (its.offload != plan::Offload::none)
    *out << ", offload " << plan::stringifyOffload(its.offload).str();
}

/// The share of a rate at which operators or bytes decide.
constexpr double kSlow = 1e-4;

/// The number of plans that are drawn of each mesh, more where each parameter has several labels for its memories; a
/// longer run takes it from the environment.
int getDraws(plan::Offload offload) {
  const char *draws = std::getenv("WINDLASS_BOUND_DRAWS");
  return draws ? std::atoi(draws) : offload == plan::Offload::some ? 20 : 6;
}

class StepBoundTest : public testing::TestWithParam<BoundCase> {
protected:
  StepBoundTest() {
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Imports the model, differentiates it and finds all meshes.
  void prepare() {
    settings.microBatches = GetParam().microBatches;
    settings.precision = GetParam().precision;
    settings.clip = GetParam().clips;
    std::string folder = std::string(MODELS) + "/" + GetParam().model, path = folder + "/model.onnx";
    compilation =
        std::make_unique<Compilation>(context, llvm::sys::fs::exists(path) ? path : folder + "/graph.onnx.gz");
    ASSERT_TRUE(succeeded(compilation->import(settings)) && succeeded(compilation->buildFunctions(settings)));
    module = compilation->getPlanned();
    plan::applyOffload(module, GetParam().offload);
    cluster = llvm::cantFail(findCluster(GetParam().cluster));
    auto slow = [](int64_t &rate, double share) { rate = std::max<int64_t>(1, std::llround(rate * share)); };
    for (auto &[name, device] : cluster.deviceTypes) {
      if (device.memoryBytesPerSecond)
        slow(*device.memoryBytesPerSecond, GetParam().deviceRate);
      for (auto &[type, flops] : device.peakFlopsPerSecond)
        slow(flops, GetParam().deviceRate);
    }
    for (LinkTier &tier : cluster.linkTiers)
      slow(*tier.link.bytesPerSecond, GetParam().linkRate);
    if (GetParam().offload != plan::Offload::none)
      for (HostGroup &group : cluster.hosts) {
        slow(*group.memoryBytesPerSecond, GetParam().hostRate);
        slow(*group.deviceLink.bytesPerSecond, GetParam().hostRate);
      }
    profile.cluster = cluster;
    profile.device = DeviceModel();
    profile.device->launchSeconds = 0;
    costs = std::make_unique<CostModel>(cluster, GetParam().hasLaunches ? nullptr : &profile, GetParam().precision);
    microbatch = train::getMicrobatchFunction(module);
    groups = std::make_unique<planner::Groups>(planner::OperatorRange(microbatch), plan::Pins());
    recompute = std::make_unique<planner::RecomputeClasses>(*groups);
    stages = GetParam().pipeline.positions;
    int64_t ranks = cluster.getDevices() / stages;
    for (int64_t model = 1; model <= ranks; model *= 2)
      if (int64_t replicas = ranks / model; settings.microBatches % replicas == 0) {
        plan::StrategyChoice choice;
        choice.mesh = plan::makeMesh(&context, replicas, 1, model);
        meshes.push_back(std::make_unique<planner::MeshSearch>(choice, *groups, *recompute, *costs, 1));
      }
  }

  /// Draws a plan of a mesh: the best one for random costs of labels.
  plan::StrategyChoice draw(planner::MeshSearch &mesh) {
    search::Problem problem = mesh.getProblem(0, search::kUnlimitedBytes);
    std::uniform_int_distribution<int64_t> cost(0, 1'000'000);
    for (search::Node &node : problem.nodes)
      for (int64_t &each : node.costs)
        if (each < search::kForbidden)
          each = cost(random);
    search::SolveOptions options;
    options.workLimit = 2'000'000;
    search::SolveResult result = search::solve(problem, options);
    EXPECT_TRUE(result.isFeasible());
    return mesh.getBuilder().decode(result.solution);
  }

  static int64_t certify(planner::MeshSearch &mesh, int64_t memoryBytes, plan::PipelineAttr pipeline) {
    return search::certify(mesh.buildBound(memoryBytes, pipeline), search::kForbidden, 2'000'000).bound;
  }

  /// Returns the pipeline of the case, cut at random operators.
  plan::PipelineAttr cutAtRandom() {
    const planner::PipelineChoice &pipeline = GetParam().pipeline;
    SmallVector<StringAttr> ids;
    for (Operation &op : microbatch.front())
      if (auto id = op.getAttrOfType<StringAttr>(train::kIdAttr);
          id && llvm::isa<train::TrainOpInterface>(op) && !op.hasAttr(train::kForwardAttr))
        ids.push_back(id);
    std::set<size_t> places;
    for (auto chunks = static_cast<size_t>(stages * pipeline.chunksPerPosition); places.size() + 1 < chunks;)
      places.insert(1 + random() % (ids.size() - 1));
    SmallVector<StringAttr> begins;
    for (size_t place : places)
      begins.push_back(ids[place]);
    return plan::PipelineAttr::get(&context, stages, StringAttr::get(&context, pipeline.schedule), begins, {});
  }

  /// Returns the pipeline without a schedule: its bound only adds up what each position does.
  plan::PipelineAttr dropSchedule(plan::PipelineAttr pipeline) {
    return pipeline
               ? plan::PipelineAttr::get(&context, stages, StringAttr::get(&context, "none"), pipeline.getBegins(), {})
               : pipeline;
  }

  /// Schedules a plan; returns false where its cut is none that programs can run.
  bool schedule(ModuleOp planned, Schedule &schedule) {
    ScopedDiagnosticHandler silent(&context, [&](Diagnostic &) { return success(stages > 1); });
    PlanChoice choice;
    choice.cluster = cluster;
    choice.threads = 1;
    return succeeded(makeSchedule(planned, choice, Code::strategy, Purpose::trial, schedule));
  }

  /// The nanoseconds that all positions take: for which they are busy, which leaves no gap, and those of the step.
  struct Times {
    double busy = 0, step = 0;
  };
  Times simulate(ModuleOp scheduled) {
    StepPrediction prediction = predictStep(scheduled, *costs);
    Times times;
    times.step = static_cast<double>(stages) * prediction.seconds * 1e9;
    for (const PositionPrediction &position : prediction.positions) {
      EXPECT_LE(position.busySeconds, prediction.seconds * (1 + 1e-9));
      times.busy += position.busySeconds * 1e9;
    }
    return times;
  }

  /// Returns the bytes that the rows of the bound of a pipeline count for a plan that recomputes nothing: of all
  /// positions, and of the first one if there is a second row.
  std::vector<int64_t> countRowBytes(planner::MeshSearch &mesh, const plan::StrategyChoice &choice,
                                     const planner::Counterparts &counterparts, plan::PipelineAttr pipeline) {
    planner::RangeProblem &builder = mesh.getBuilder();
    search::Problem problem = builder.buildBoundWithRecompute(recompute->count(0), pipeline);
    search::Solution solution = *planner::encodeAlike(builder, *groups, choice, counterparts);
    // The nodes behind those of the plan are reshards, which take no memory.
    solution.resize(problem.nodes.size(), 0);
    std::vector<int64_t> usage = search::rowUsage(problem, solution);
    usage.resize(problem.capacity.size());
    return usage;
  }
  /// Returns the bytes of the arenas of all positions, and of that of the first one.
  static std::vector<int64_t> countArenaBytes(ModuleOp scheduled) {
    std::vector<int64_t> bytes = {0};
    for (sched::ProgramOp program : sched::getPrograms(scheduled)) {
      bytes.push_back(static_cast<int64_t>(sched::getDeviceArena(program).getBytes()));
      bytes.front() += bytes.back();
    }
    return bytes;
  }

  std::mt19937_64 random{7};
  DialectRegistry registry;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  CompileSettings settings;
  std::unique_ptr<Compilation> compilation;
  ModuleOp module;
  func::FuncOp microbatch;
  Cluster cluster;
  int64_t stages = 1;
  Profile profile;
  std::unique_ptr<CostModel> costs;
  std::unique_ptr<planner::Groups> groups;
  std::unique_ptr<planner::RecomputeClasses> recompute;
  std::vector<std::unique_ptr<planner::MeshSearch>> meshes;
};

TEST_P(StepBoundTest, NoPlanIsSimulatedBelowItsLeastTimeOrTheBound) {
  ASSERT_NO_FATAL_FAILURE(prepare());
  plan::PipelineAttr searched;
  if (stages > 1) {
    auto chosen = planner::chooseCut(module, GetParam().pipeline, cluster.getDevices() / stages, *costs);
    ASSERT_TRUE(succeeded(chosen));
    searched = *chosen;
  }
  std::vector<int64_t> bounds;
  for (auto &mesh : meshes)
    bounds.push_back(certify(*mesh, search::kUnlimitedBytes, searched));
  double tightest = 0;
  int plans = 0;
  for (int i = 0; i < getDraws(GetParam().offload); ++i)
    for (size_t k = 0; k < meshes.size(); ++k) {
      planner::MeshSearch &mesh = *meshes[k];
      plan::StrategyChoice choice = draw(mesh);
      OwningOpRef<ModuleOp> planned(module.clone());
      bool hasRandomCut = stages > 1 && i % 3 != 0;
      plan::PipelineAttr pipeline = hasRandomCut ? cutAtRandom() : searched;
      if (stages > 1)
        planned.get()->setAttr(plan::kPipelineAttr, pipeline);
      planner::Counterparts counterparts(module, *planned);
      int64_t bucket = plan::kLeastBucketBytes << (random() % 6);
      ASSERT_TRUE(succeeded(plan::applyStrategy(*planned, counterparts.translate(choice), bucket)));
      plan::RecomputeSteps steps(*planned);
      size_t recomputed = random() % 3 == 0 ? random() % (steps.size() + 1) : 0;
      steps.apply(*planned, recomputed);
      if (random() % 2 == 0)
        planned.get()->removeAttr(plan::kPrefetchBytesAttr);
      auto evaluate = [&](plan::PipelineAttr its) {
        return planner::evaluateLeastOn(mesh.getBuilder(), *groups, choice, counterparts, its);
      };
      std::optional<int64_t> least = evaluate(pipeline);
      Schedule its;
      if (bool isScheduled = schedule(*planned, its); !isScheduled) {
        ASSERT_TRUE(hasRandomCut) << "mesh " << k << ", draw " << i;
        continue;
      }
      auto [busy, step] = simulate(*its.module);
      ASSERT_GT(step, 0);
      if (!hasRandomCut)
        EXPECT_LE(static_cast<double>(bounds[k]), step) << "mesh " << k << ", draw " << i;
      // With no more memory than the plan takes, the bound holds for it too, whatever it recomputes.
      std::vector<int64_t> arenas = countArenaBytes(*its.module);
      int64_t most = *std::max_element(arenas.begin() + 1, arenas.end());
      EXPECT_LE(static_cast<double>(certify(mesh, most, pipeline)), step) << "mesh " << k << ", draw " << i;
      if (!least)
        continue; // the plan has something that the search would not choose
      if (stages > 1 && recomputed == 0) {
        for (auto [row, bytes] : llvm::enumerate(countRowBytes(mesh, choice, counterparts, pipeline)))
          EXPECT_LE(bytes, arenas[row]) << "row " << row << ", mesh " << k << ", draw " << i;
      }
      ++plans;
      tightest = std::max(tightest, static_cast<double>(*least) / step);
      EXPECT_LE(static_cast<double>(*least), step) << "mesh " << k << ", draw " << i;
      if (stages > 1)
        EXPECT_LE(static_cast<double>(*evaluate(dropSchedule(pipeline))), busy) << "mesh " << k << ", draw " << i;
      if (!hasRandomCut)
        EXPECT_GE(*least, bounds[k]) << "mesh " << k << ", draw " << i;
    }
  EXPECT_GT(plans, 0);
  EXPECT_GE(tightest, GetParam().tightest);
  RecordProperty("plans", plans);
  RecordProperty("percent", static_cast<int>(100 * tightest));
}

std::string nameOf(const testing::TestParamInfo<BoundCase> &info) {
  const planner::PipelineChoice &pipeline = info.param.pipeline;
  std::string name =
      info.param.model + "_" + info.param.cluster + "_" + info.param.precision +
      (info.param.hasLaunches ? "" : "_bytes") +
      (pipeline.hasOnePosition() ? "" : "_" + std::to_string(pipeline.positions) + "_" + pipeline.schedule) +
      (info.param.linkRate < 1 ? "_links" : "") +
      (info.param.offload == plan::Offload::none
           ? ""
           : "_" + plan::stringifyOffload(info.param.offload).str() + (info.param.clips ? "_clipped" : ""));
  for (char &each : name)
    if (!isalnum(each))
      each = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Models, StepBoundTest,
    testing::Values(BoundCase{"gpt2-tiny", "h100:2x2", "bf16"}, BoundCase{"gpt2-tiny", "cpu:4", "f32"},
                    BoundCase{"llama-tiny", "a100-40g:1x4", "bf16", true}, BoundCase{"llama-tiny", "h100:8x1", "f32"},
                    BoundCase{"bert-tiny", "h100:1x4", "bf16"}, BoundCase{"bert-tiny", "cpu:2", "f32", true},
                    BoundCase{"opt-tiny", "l4:2x2", "f16"}, BoundCase{"vit-tiny", "h200:1x4", "f32"},
                    BoundCase{"resnet-tiny", "h100:2x2", "bf16"}, BoundCase{"resnet-tiny", "cpu:4", "f32", true},
                    BoundCase{"moe-tiny", "h100:2x2", "bf16"}, BoundCase{"mixtral-tiny", "h100:1x4", "f32"},
                    BoundCase{"mlp", "h100:1x8", "f32"}, BoundCase{"gpt2-tiny-dropout", "h100:1x4", "bf16"},
                    BoundCase{"gpt2-tiny", "h100:1x2", "bf16", true, false},
                    BoundCase{"llama-tiny", "h100:1x2", "bf16", false, false},
                    BoundCase{"bert-tiny", "h100:1x2", "bf16", false, false},
                    BoundCase{"opt-tiny", "h100:1x2", "f32", false, false},
                    BoundCase{"vit-tiny", "h100:1x2", "bf16", false, false},
                    BoundCase{"mixtral-tiny", "h100:1x2", "bf16", false, false},
                    BoundCase{"moe-tiny", "h100:1x2", "f16", false, false},
                    BoundCase{"gpt2-tiny-dropout", "h100:1x2", "bf16", false, false}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Pipelines, StepBoundTest,
    testing::Values(BoundCase{"gpt2-tiny", "h100:2x2", "bf16", false, true, {2, "1f1b", 1}},
                    BoundCase{"gpt2-tiny", "cpu:4", "f32", false, true, {2, "gpipe", 1}},
                    BoundCase{"gpt2-tiny", "h100:1x8", "bf16", true, false, {2, "interleaved", 2}, kSlow, 1},
                    BoundCase{"gpt2-tiny", "h100:1x8", "bf16", true, false, {2, "1f1b", 1}, kSlow, kSlow},
                    BoundCase{"llama-tiny", "a100-40g:1x4", "bf16", true, true, {2, "1f1b", 1}},
                    BoundCase{"llama-tiny", "h100:1x4", "bf16", false, false, {2, "1f1b", 1}, kSlow, 1, 64, 0.8},
                    BoundCase{"llama-tiny", "h100:1x4", "f32", false, false, {2, "gpipe", 1}, kSlow, kSlow},
                    BoundCase{"llama-tiny", "h100:4x2", "f32", false, false, {4, "1f1b", 1}, kSlow, 1},
                    BoundCase{"llama-tiny", "h100:8x1", "f32", false, true, {2, "interleaved", 2}},
                    BoundCase{"bert-tiny", "h100:1x4", "bf16", false, false, {2, "1f1b", 1}, kSlow, 1, 64},
                    BoundCase{"bert-tiny", "cpu:4", "f32", true, true, {2, "interleaved", 2}},
                    BoundCase{"opt-tiny", "l4:2x2", "f16", false, true, {2, "gpipe", 1}},
                    BoundCase{"opt-tiny", "h100:1x8", "f32", false, false, {4, "gpipe", 1}, kSlow, 1},
                    BoundCase{"vit-tiny", "h200:1x4", "f32", false, false, {2, "1f1b", 1}, kSlow, 1, 64, 0.8},
                    BoundCase{"moe-tiny", "h100:2x2", "bf16", false, false, {2, "interleaved", 2}, kSlow, kSlow},
                    BoundCase{"mixtral-tiny", "h100:1x4", "bf16", false, false, {2, "1f1b", 1}, kSlow, 1, 64, 0.85},
                    BoundCase{"mlp", "h100:1x8", "f32", false, false, {2, "1f1b", 1}, kSlow, kSlow, 4},
                    BoundCase{
                        "gpt2-tiny-dropout", "h100:1x2", "bf16", false, false, {2, "gpipe", 1}, kSlow, 1, 64, 0.8}),
    nameOf);

using plan::Offload;
const planner::PipelineChoice kOneStage;

/// Updates of the host beside the last backward pass and, with clipping, behind it.
INSTANTIATE_TEST_SUITE_P(
    Offloads, StepBoundTest,
    testing::Values(
        BoundCase{"gpt2-tiny", "h100:1x2", "bf16", false, false, kOneStage, kSlow, 1, 8, 0.75, Offload::some, kSlow},
        BoundCase{"gpt2-tiny", "h100:1x2", "bf16", true, false, kOneStage, kSlow, 1, 8, 0.8, Offload::some, kSlow},
        BoundCase{"llama-tiny", "a100-40g:1x4", "f32", false, true, kOneStage, 1, 1, 4, 0, Offload::optimizer},
        BoundCase{"opt-tiny", "h100:1x2", "bf16", false, false, kOneStage, kSlow, 1, 2, 0.5, Offload::weights, kSlow},
        BoundCase{"bert-tiny", "h100:1x2", "bf16", false, false, kOneStage, kSlow, 1, 4, 0.5, Offload::disk, kSlow},
        BoundCase{"gpt2-tiny", "h100:1x4", "bf16", false, false, {2, "1f1b", 1}, kSlow, 1, 8, 0, Offload::some, kSlow},
        BoundCase{"llama-tiny",
                  "h100:1x8",
                  "bf16",
                  false,
                  false,
                  {2, "interleaved", 2},
                  kSlow,
                  1,
                  8,
                  0,
                  Offload::optimizer,
                  kSlow}),
    nameOf);

} // namespace
