#include "windlass/Pipeline/MakeSchedule.h"

#include "Reserve.h"
#include "RunPasses.h"

#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/Transforms/RouteRows.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Profile/Kernels/ChooseEpilogues.h"

using namespace mlir;
using namespace windlass;

size_t RecomputeReport::countBlocks() const {
  return llvm::count_if(segments, [](const auto &entry) { return entry.second != plan::kKeptLabel; });
}

static RecomputeReport reportRecompute(ModuleOp planned) {
  RecomputeReport report;
  for (const plan::SegmentBlock &block : plan::getSegmentBlocks(planned))
    report.segments.push_back({block.name, *block.getLabel()});
  plan::Recomputation recompute(train::getMicrobatchFunction(planned));
  recompute.addChosen();
  report.stashBytesBefore = recompute.getStashBytes();
  report.stashBytes = report.stashBytesBefore - recompute.getFreedBytes();
  report.flops = recompute.getFlops();
  report.flopsBefore = recompute.getAllFlops();
  return report;
}

LogicalResult windlass::materialize(ModuleOp module, Code code) {
  return runPhases(module, code, {Phase::materializeLayouts});
}

/// Moves rows of tokens to the ranks with their experts only, where that is faster on the cluster.
static void routeRows(ModuleOp module, const PlanChoice &choice) {
  if (module.walk([](train::ExpertsOp) { return WalkResult::interrupt(); }) == WalkResult::advance())
    return;
  CostModel costs(choice.cluster);
  for (sched::ProgramOp program : sched::getPrograms(module))
    sched::routeRows(program, [&](const sched::GatheredRows &rows) {
      SmallVector<StringAttr> axes(rows.axes.getAsRange<StringAttr>());
      return costs.routesRows({plan::getGroup(program.getMesh(), axes), static_cast<double>(rows.bytes), rows.share});
    });
}

/// Takes a module from L3b to L4, where operators are fused but collectives are no units yet.
static LogicalResult distribute(ModuleOp module, const PlanChoice &choice, Code code) {
  // What a pipeline cannot run, such as a weight on two positions, is found when the model is cut.
  if (failed(runPhases(module, module->hasAttr(plan::kPipelineAttr) ? code : Code::lowering, {Phase::distribute})))
    return failure();
  routeRows(module, choice);
  return runPhases(module, Code::lowering, {Phase::fuse});
}

/// Takes the module of a schedule from there to L5, and finds the memory that it needs.
static LogicalResult makeCommands(const PlanChoice &choice, Schedule &schedule) {
  if (failed(runPhases(*schedule.module, Code::lowering, {Phase::overlap, Phase::lowerToCommands})))
    return failure();
  schedule.bytes = 0;
  bool fuses = choice.fusesEpilogues && choice.cluster.getBackend() == "cuda";
  const Profile *profile = choice.profile.get();
  for (sched::ProgramOp program : sched::getPrograms(*schedule.module)) {
    if (fuses)
      chooseEpilogues(program, profile && profile->products ? &*profile->products : nullptr);
    rt::reserve reserve = declareReserve(program, choice.cluster, choice.threads);
    sched::ArenaOp arena = sched::getDeviceArena(program);
    int64_t bytes = reserve.total() + static_cast<int64_t>(arena.getBytes());
    if (bytes <= schedule.bytes)
      continue;
    schedule.program = program;
    schedule.reserve = reserve;
    schedule.bytes = bytes;
    schedule.liveBytes = reserve.total() + arena->getAttrOfType<IntegerAttr>(sched::kLargestLiveSetAttr).getInt();
  }
  return success();
}

LogicalResult windlass::makeSchedule(ModuleOp planned, const PlanChoice &choice, Code code, Purpose purpose,
                                     Schedule &schedule) {
  schedule.recompute = reportRecompute(planned);
  schedule.module = planned.clone();
  schedule.isVerified = false;
  if (failed(materialize(*schedule.module, code)) || failed(distribute(*schedule.module, choice, code)))
    return failure();
  if (purpose == Purpose::trial && planned->hasAttr(plan::kUnitBytesAttr))
    schedule.distributed = schedule.module->clone();
  if (failed(makeCommands(choice, schedule)))
    return failure();
  return purpose == Purpose::program ? verifySchedule(schedule) : success();
}

LogicalResult windlass::changeUnits(const Schedule &trial, int64_t unitBytes, const PlanChoice &choice,
                                    Schedule &schedule) {
  schedule.recompute = trial.recompute;
  schedule.module = ModuleOp(*trial.distributed).clone();
  Builder builder(schedule.module->getContext());
  for (sched::ProgramOp program : sched::getPrograms(*schedule.module))
    program->setAttr(plan::kUnitBytesAttr, builder.getI64IntegerAttr(unitBytes));
  return makeCommands(choice, schedule);
}

LogicalResult windlass::verifySchedule(Schedule &schedule) {
  if (!schedule.isVerified)
    schedule.isVerified = succeeded(runPhases(*schedule.module, Code::lowering, {Phase::verifyCommands}));
  return success(schedule.isVerified);
}
