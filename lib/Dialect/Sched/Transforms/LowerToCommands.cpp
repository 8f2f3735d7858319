#include "FunctionLowering.h"
#include "Program.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_LOWERTOCOMMANDS
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// `backward` with the collectives of the buckets, each as soon as its last gradient is complete, then `rest`.
std::vector<Command> composeBackwardReduce(Program &program, std::vector<Command> backward, std::vector<Command> rest,
                                           Location loc) {
  // The copy has events of its own, so that no event is recorded at two places.
  DenseMap<int64_t, int64_t> events;
  for (Command &command : backward)
    if (command.kind == Command::Kind::Record || command.kind == Command::Kind::Wait) {
      auto [it, isNew] = events.try_emplace(command.event, program.events);
      program.events += isNew;
      command.event = it->second;
    }

  // Position before which a bucket's collective is issued: after the last command that writes to it, and then at the
  // border of the repeated block, so that repeats keep equal commands.
  std::vector<std::pair<size_t, Bucket *>> issues;
  for (Bucket &bucket : program.buckets) {
    size_t position = 0;
    for (size_t i = 0; i < backward.size(); ++i)
      if (llvm::any_of(backward[i].outs, [&](const View &view) { return view.storage == bucket.storage; }))
        position = i + 1;
    while (position > 0 && position < backward.size() && backward[position - 1].repeat &&
           backward[position].repeat == backward[position - 1].repeat)
      ++position;
    issues.push_back({position, &bucket});
  }
  // Buckets stand in a vector in the order of @reduce, which decides at equal positions.
  llvm::sort(issues);

  std::vector<Command> result;
  auto pushEvent = [&](Command::Kind kind, int64_t stream, int64_t event) {
    Command command(kind, loc);
    command.stream = stream;
    command.event = event;
    result.push_back(std::move(command));
  };
  auto issue = issues.begin();
  for (size_t i = 0; i <= backward.size(); ++i) {
    // Buckets that are complete at one place share the event.
    llvm::SmallDenseMap<unsigned, int64_t> ready;
    for (; issue != issues.end() && issue->first == i; ++issue) {
      Bucket &bucket = *issue->second;
      int64_t stream = Program::getStream(bucket.communicator);
      auto [it, isNew] = ready.try_emplace(bucket.communicator, program.events);
      if (isNew) {
        ++program.events;
        pushEvent(Command::Kind::Record, kComputeStream, it->second);
        pushEvent(Command::Kind::Wait, stream, it->second);
      }
      Command command(Command::Kind::Collective, bucket.op.getLoc());
      command.stream = stream;
      command.communicator = bucket.communicator;
      command.reduction = bucket.op.getKind();
      command.id = bucket.op->getAttr(train::kIdAttr);
      Type element = getElementTypeOrSelf(bucket.op.getInputs().front());
      View whole = View::dense(
          bucket.storage,
          RankedTensorType::get({program.storages[bucket.storage].bytes / getElementBytes(element)}, element));
      command.ins.push_back(whole);
      command.outs.push_back(whole);
      result.push_back(std::move(command));
    }
    if (i < backward.size())
      result.push_back(std::move(backward[i]));
  }
  std::set<unsigned> used;
  for (const Bucket &bucket : program.buckets)
    used.insert(bucket.communicator);
  for (unsigned communicator : used) {
    int64_t done = program.events++;
    pushEvent(Command::Kind::Record, Program::getStream(communicator), done);
    pushEvent(Command::Kind::Wait, kComputeStream, done);
  }
  llvm::move(rest, std::back_inserter(result));
  return result;
}

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
