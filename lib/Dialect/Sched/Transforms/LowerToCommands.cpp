#include "BucketReduction.h"
#include "FunctionLowering.h"
#include "ProgramLowering.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_LOWERTOCOMMANDS
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

struct LowerToCommands : sched::impl::LowerToCommandsBase<LowerToCommands> {
  using LowerToCommandsBase::LowerToCommandsBase;

  void runOnOperation() override {
    if (failed(lower(getOperation())))
      signalPassFailure();
  }

  LogicalResult lower(ProgramOp op) {
    if (failed(checkStepFunctions(op)))
      return failure();
    for (func::FuncOp function : getStepFunctions(op))
      if (!function.getBody().hasOneBlock())
        return function.emitOpError("must have one block");
    if (op.lookupSymbol(kDeviceArena))
      return op.emitError("is at the level of commands already");

    FailureOr<llvm::MapVector<int64_t, Slots>> slots = makeSlots(op);
    FailureOr<bool> hasOne = hasOneMicroBatch(op);
    if (failed(slots) || failed(hasOne))
      return failure();
    ProgramLowering program(op, std::move(*slots), *hasOne);
    for (int64_t chunk : getChunks(op))
      if (failed(lowerChunk(program, chunk)))
        return failure();
    program.numberEvents();
    program.shareStorages();
    program.assignSlots();
    program.placeStorages();
    program.emit();
    return success();
  }

  /// Returns the slots of each chunk; none where one chunk has one micro-batch in flight.
  static FailureOr<llvm::MapVector<int64_t, Slots>> makeSlots(ProgramOp op) {
    llvm::MapVector<int64_t, Slots> slots;
    SmallVector<int64_t> chunks = getChunks(op);
    for (int64_t chunk : chunks)
      slots[chunk];
    for (ScheduleOp schedule : op.getOps<ScheduleOp>()) {
      FailureOr<schedule::Schedule> step = expandSchedule(schedule);
      if (failed(step))
        return failure();
      for (int64_t chunk : chunks)
        slots[chunk] = {{step->getSlots(chunk)}, {step->getHandedSlots(chunk)}};
    }
    if (chunks.size() == 1 && slots.front().second.own.count == 1)
      slots.clear();
    return slots;
  }

  LogicalResult lowerChunk(ProgramLowering &program, int64_t chunk) {
    ProgramOp op = program.program;
    func::FuncOp forward = getStepFunction(op, StepRole::forward, chunk),
                 backward = getStepFunction(op, StepRole::backward, chunk),
                 weightGradient = getStepFunction(op, StepRole::weight_gradient, chunk),
                 reduce = getStepFunction(op, StepRole::reduce, chunk);
    if (!forward != !backward)
      return op.emitError("has one of @forward and @backward: a step needs both");
    if (weightGradient && !backward)
      return weightGradient.emitOpError("is a part of a backward, but there is no @backward");
    auto lowerFunction = [&](StepRole role, ArrayRef<View> arguments, SmallVectorImpl<View> &results) {
      func::FuncOp function = getStepFunction(op, role, chunk);
      if (!function)
        return success();
      FunctionLowering lowering(program, function);
      if (failed(lowering.run(arguments, results)))
        return failure();
      program.functions[function] = std::move(lowering.commands);
      return success();
    };

    SmallVector<View> none, stash, handed;
    if (failed(lowerFunction(StepRole::init, {}, none)) || failed(lowerFunction(StepRole::forward, {}, stash)) ||
        failed(lowerFunction(StepRole::backward, stash, handed)))
      return failure();
    llvm::append_range(stash, handed);
    if (failed(lowerFunction(StepRole::weight_gradient, stash, none)))
      return failure();
    std::vector<Command> rest;
    if (reduce) {
      DenseSet<Operation *> inBuckets;
      for (Bucket &bucket : program.buckets) {
        if (bucket.chunk != chunk)
          continue;
        inBuckets.insert(bucket.op);
        for (Value input : bucket.op.getInputs())
          inBuckets.insert(input.getDefiningOp());
        for (Operation *store : bucket.op->getUsers())
          inBuckets.insert(store);
      }
      FunctionLowering lowering(program, reduce);
      if (failed(lowering.run({}, none, inBuckets)))
        return failure();
      rest = std::move(lowering.commands);
    }
    if (backward) {
      func::FuncOp last = getLastBackward(op, chunk);
      std::vector<Command> &commands = program.functions[last];
      commands = composeReduction(program, std::move(commands), std::move(rest), chunk, last.getLoc());
    } else if (reduce) {
      return reduce.emitOpError("reduces gradients, but there is no @backward");
    }
    return success(succeeded(lowerFunction(StepRole::update, {}, none)) &&
                   succeeded(lowerFunction(StepRole::evaluate, {}, none)));
  }
};

} // namespace
