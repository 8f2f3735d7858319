#include "BackwardReduce.h"
#include "FunctionLowering.h"
#include "Program.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_LOWERTOCOMMANDS
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// The action list with `repeat` taken apart; bounded, because counts come from outside.
LogicalResult expandActions(ScheduleOp schedule, SmallVectorImpl<ActionKind> &expanded) {
  ArrayRef<Attribute> actions = schedule.getActions().getValue();
  for (size_t i = 0; i < actions.size(); ++i) {
    auto action = cast<ActionAttr>(actions[i]);
    if (action.getKind() != ActionKind::repeat) {
      expanded.push_back(action.getKind());
      continue;
    }
    if (action.getCount() < 0 || action.getCount() > (1 << 20) || action.getLength() < 1 ||
        action.getLength() > static_cast<int64_t>(actions.size() - i - 1))
      return schedule.emitOpError("repeats ")
             << action.getLength() << " actions " << action.getCount() << " times, which it does not hold";
    for (int64_t n = 0; n < action.getCount(); ++n)
      for (int64_t k = 1; k <= action.getLength(); ++k) {
        if (cast<ActionAttr>(actions[i + k]).getKind() == ActionKind::repeat)
          return schedule.emitOpError("nests one repeat in another");
        expanded.push_back(cast<ActionAttr>(actions[i + k]).getKind());
      }
    i += action.getLength();
  }
  return success();
}

/// (forward, backward) m times, reduce, update becomes the same with the last backward and reduce as one action.
LogicalResult rewriteSchedule(ScheduleOp schedule) {
  SmallVector<ActionKind> expanded;
  if (failed(expandActions(schedule, expanded)))
    return failure();
  size_t count = 0;
  while (2 * count + 1 < expanded.size() && expanded[2 * count] == ActionKind::forward &&
         expanded[2 * count + 1] == ActionKind::backward)
    ++count;
  if (count == 0 || expanded.size() != 2 * count + 2 || expanded[2 * count] != ActionKind::reduce ||
      expanded[2 * count + 1] != ActionKind::update)
    return schedule.emitOpError("must be forward and backward of each micro-batch, then reduce and update");

  MLIRContext *context = schedule.getContext();
  SmallVector<Attribute> actions;
  auto add = [&](ActionKind kind, int64_t repeats = 1, int64_t length = 0) {
    actions.push_back(ActionAttr::get(context, kind, /*chunk=*/0, repeats, length));
  };
  if (count > 2)
    add(ActionKind::repeat, count - 1, 2);
  if (count > 1) {
    add(ActionKind::forward);
    add(ActionKind::backward);
  }
  add(ActionKind::forward);
  add(ActionKind::backward_reduce);
  add(ActionKind::update);
  schedule.setActionsAttr(ArrayAttr::get(context, actions));
  return success();
}

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
    if (module.lookupSymbol(kDeviceArena) || module.lookupSymbol(kBackwardReduceFunction))
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
      auto name = StringAttr::get(&getContext(), kBackwardReduceFunction);
      std::vector<Command> commands = composeBackwardReduce(program, program.functions[backward.getSymNameAttr()],
                                                            std::move(rest), backward.getLoc());
      program.functions[name] = std::move(commands);
    }
    if (failed(lowerFunction(kUpdateFunction, {}, none)) || failed(lowerFunction(kEvaluateFunction, {}, none)))
      return failure();
    for (ScheduleOp schedule : module.getOps<ScheduleOp>())
      if (failed(rewriteSchedule(schedule)))
        return failure();

    program.numberEvents();
    program.shareStorages();
    program.placeStorages();
    if (reduce)
      reduce.erase();
    if (backward) {
      OpBuilder builder(backward);
      builder.setInsertionPointAfter(backward);
      auto both =
          func::FuncOp::create(builder, backward.getLoc(), kBackwardReduceFunction, builder.getFunctionType({}, {}));
      both.setVisibility(backward.getVisibility());
    }
    program.emit();
    return success();
  }
};

} // namespace
