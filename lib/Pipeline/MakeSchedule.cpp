#include "windlass/Pipeline/MakeSchedule.h"

#include "Reserve.h"
#include "RunPasses.h"

#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"

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

LogicalResult windlass::makeSchedule(ModuleOp planned, const Cluster &cluster, int64_t threads, Code code,
                                     Purpose purpose, Schedule &schedule) {
  schedule.recompute = reportRecompute(planned);
  schedule.module = planned.clone();
  schedule.isVerified = false;
  if (failed(materialize(*schedule.module, code)) ||
      failed(runPhases(*schedule.module, Code::lowering, {Phase::distribute, Phase::fuse, Phase::lowerToCommands})))
    return failure();
  FailureOr<sched::ProgramOp> program = sched::getOnlyProgram(*schedule.module);
  if (failed(program))
    return failure();
  schedule.program = *program;
  schedule.reserve = declareReserve(*program, cluster, threads);
  schedule.bytes = schedule.liveBytes = schedule.reserve.total();
  sched::ArenaOp arena = sched::getDeviceArena(*program);
  schedule.bytes += arena.getBytes();
  schedule.liveBytes += arena->getAttrOfType<IntegerAttr>(sched::kLargestLiveSetAttr).getInt();
  return purpose == Purpose::program ? verifySchedule(schedule) : success();
}

LogicalResult windlass::verifySchedule(Schedule &schedule) {
  if (!schedule.isVerified)
    schedule.isVerified = succeeded(runPhases(*schedule.module, Code::lowering, {Phase::verifyCommands}));
  return success(schedule.isVerified);
}
