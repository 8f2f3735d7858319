#include "windlass/Dialect/Sched/IR/Schedules.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

StringRef windlass::sched::getFunctionName(schedule::ActionKind kind) {
  switch (kind) {
  case schedule::ActionKind::Forward:
    return kForwardFunction;
  case schedule::ActionKind::Backward:
    return kBackwardFunction;
  case schedule::ActionKind::Reduce:
    return kReduceFunction;
  case schedule::ActionKind::Update:
    return kUpdateFunction;
  default:
    return {};
  }
}

FailureOr<schedule::ActionTable> windlass::sched::getActionTable(ScheduleOp op) {
  SmallVector<schedule::TableRow> rows;
  for (auto action : op.getActions().getAsRange<ActionAttr>())
    rows.push_back({action.getKind(), action.getChunk(), action.getCount(), action.getLength()});
  llvm::Expected<schedule::ActionTable> table = schedule::readRows(rows);
  if (!table)
    return op.emitOpError(llvm::toString(table.takeError()));
  return std::move(*table);
}

static ArrayAttr makeAttribute(MLIRContext *context, const schedule::ActionTable &table) {
  SmallVector<Attribute> actions;
  for (const schedule::TableRow &row : schedule::writeRows(table))
    actions.push_back(ActionAttr::get(context, row.kind, row.chunk, row.count, row.length));
  return ArrayAttr::get(context, actions);
}

ScheduleOp windlass::sched::createSchedule(OpBuilder &builder, Location location, const schedule::ActionTable &table) {
  return ScheduleOp::create(builder, location, makeAttribute(builder.getContext(), table));
}

FailureOr<schedule::Schedule> windlass::sched::expandSchedule(ScheduleOp op) {
  FailureOr<schedule::ActionTable> table = getActionTable(op);
  if (failed(table))
    return failure();
  llvm::Expected<schedule::Schedule> expanded = schedule::expand(*table);
  if (!expanded)
    return op.emitOpError(llvm::toString(expanded.takeError()));
  for (const schedule::Action &action : expanded->actions)
    if (action.chunk != 0)
      return op.emitOpError("runs chunk ") << action.chunk << ", but a stage has one chunk";
  if (int64_t slots = expanded->getSlots(); slots > 1)
    return op.emitOpError("keeps ") << slots << " micro-batches in flight, but there is one slot for the stash";
  return std::move(*expanded);
}

FailureOr<schedule::Schedule> windlass::sched::expandStep(ScheduleOp op) {
  FailureOr<schedule::Schedule> step = expandSchedule(op);
  if (failed(step))
    return failure();
  if (llvm::Error error = schedule::checkOrder(*step))
    return op.emitOpError(llvm::toString(std::move(error)))
           << " in '" << schedule::printTable(schedule::compress(*step)) << "'";
  return step;
}

bool windlass::sched::runsIn(Operation *command, bool isLast) { return isLast || !command->hasAttr(kInLastAttr); }
