#include "windlass/Dialect/Sched/IR/Schedules.h"

#include "windlass/Dialect/Sched/IR/StepFunctions.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

llvm::Expected<schedule::ActionTable> windlass::sched::getActionTable(ScheduleOp op) {
  SmallVector<schedule::TableRow> rows;
  for (auto action : op.getActions().getAsRange<ActionAttr>())
    rows.push_back({action.getKind(), action.getChunk(), action.getCount(), action.getLength(), action.getPeerChunk(),
                    action.getMicroBatch()});
  return schedule::readRows(rows);
}

static ArrayAttr makeAttribute(MLIRContext *context, const schedule::ActionTable &table) {
  SmallVector<Attribute> actions;
  for (const schedule::TableRow &row : schedule::writeRows(table))
    actions.push_back(
        ActionAttr::get(context, row.kind, row.chunk, row.count, row.length, row.peerChunk, row.microBatch));
  return ArrayAttr::get(context, actions);
}

ScheduleOp windlass::sched::createSchedule(OpBuilder &builder, Location location, const schedule::ActionTable &table) {
  return ScheduleOp::create(builder, location, makeAttribute(builder.getContext(), table));
}

/// Why no function of a program runs the action; empty where one does.
static std::string explainRefusal(const schedule::TableItem &action) {
  if (!getRole(action.kind))
    return "no function of a program does";
  if (action.chunk != 0)
    return "a stage has one chunk";
  // The first backward is that of micro-batch 0: it overwrites the gradients.
  if (action.microBatch >= 0)
    return "programs run micro-batches in turn";
  return {};
}

/// Reports the first action of the table that no function of a program runs.
static LogicalResult checkItems(ScheduleOp op, const schedule::ActionTable &table) {
  for (const schedule::TableItem &item : table) {
    if (item.isRepeat()) {
      if (failed(checkItems(op, item.body)))
        return failure();
      continue;
    }
    if (std::string why = explainRefusal(item); !why.empty())
      return op.emitOpError("runs '") << schedule::printTable({item}) << "', but " << why;
  }
  return success();
}

/// Expands the step as a pipeline of one position with one chunk.
static FailureOr<schedule::Pipeline> expandAlone(ScheduleOp op) {
  schedule::ActionTable table = llvm::cantFail(getActionTable(op));
  if (failed(checkItems(op, table)))
    return failure();
  llvm::Expected<schedule::Pipeline> expanded = schedule::expandPipeline({}, table);
  if (!expanded)
    return op.emitOpError(llvm::toString(expanded.takeError()));
  if (int64_t slots = expanded->positions.front().getSlots(); slots > 1)
    return op.emitOpError("keeps ") << slots << " micro-batches in flight, but there is one slot for the stash";
  return std::move(*expanded);
}

FailureOr<schedule::Schedule> windlass::sched::expandSchedule(ScheduleOp op) {
  FailureOr<schedule::Pipeline> step = expandAlone(op);
  if (failed(step))
    return failure();
  return std::move(step->positions.front());
}

FailureOr<schedule::Schedule> windlass::sched::expandStep(ScheduleOp op) {
  FailureOr<schedule::Pipeline> step = expandAlone(op);
  if (failed(step))
    return failure();
  schedule::Schedule &alone = step->positions.front();
  if (llvm::Error error = schedule::checkPipeline(*step))
    return op.emitOpError(llvm::toString(std::move(error)))
           << " in '" << schedule::printTable(schedule::compress(alone)) << "'";
  return std::move(alone);
}

bool windlass::sched::runsIn(Operation *command, bool isLast) { return isLast || !command->hasAttr(kInLastAttr); }
