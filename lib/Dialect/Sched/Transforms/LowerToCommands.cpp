#include "BucketReduction.h"
#include "FunctionLowering.h"
#include "Program.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
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

  LogicalResult lower(ModuleOp module) {
    auto get = [&](StringRef name) { return module.lookupSymbol<func::FuncOp>(name); };
    func::FuncOp forward = get(kForwardFunction), backward = get(kBackwardFunction), reduce = get(kReduceFunction);
    if (!forward != !backward)
      return module.emitError("has one of @forward and @backward: a step needs both");
    for (StringRef name :
         {kInitFunction, kForwardFunction, kBackwardFunction, kReduceFunction, kUpdateFunction, kEvaluateFunction})
      if (auto function = get(name); function && !function.getBody().hasOneBlock())
        return function.emitOpError("must have one block");
    if (module.lookupSymbol(kDeviceArena))
      return module.emitError("is at the level of commands already");

    Program program(module, reduce);
    auto lowerFunction = [&](StringRef name, ArrayRef<View> arguments, SmallVectorImpl<View> &results) {
      auto function = get(name);
      if (!function)
        return success();
      FunctionLowering lowering(program, function);
      if (failed(lowering.run(arguments, results)))
        return failure();
      program.functions[function.getSymNameAttr()] = std::move(lowering.commands);
      return success();
    };

    SmallVector<View> none, stash;
    if (failed(lowerFunction(kInitFunction, {}, none)) || failed(lowerFunction(kForwardFunction, {}, stash)) ||
        failed(lowerFunction(kBackwardFunction, stash, none)))
      return failure();
    std::vector<Command> rest;
    if (reduce) {
      DenseSet<Operation *> inBuckets;
      for (Bucket &bucket : program.buckets) {
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
      std::vector<Command> &commands = program.functions[backward.getSymNameAttr()];
      commands = composeReduction(program, std::move(commands), std::move(rest), backward.getLoc());
    } else if (reduce) {
      return reduce.emitOpError("reduces gradients, but there is no @backward");
    }
    if (failed(lowerFunction(kUpdateFunction, {}, none)) || failed(lowerFunction(kEvaluateFunction, {}, none)))
      return failure();
    for (ScheduleOp schedule : module.getOps<ScheduleOp>())
      if (failed(expandStep(schedule)))
        return failure();

    program.numberEvents();
    program.shareStorages();
    program.placeStorages();
    program.emit();
    return success();
  }
};

} // namespace
