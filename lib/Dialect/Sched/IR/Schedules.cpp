#include "windlass/Dialect/Sched/IR/Schedules.h"

#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/PositionCollectives.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include <set>

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

/// Returns the step of a module whose other positions do nothing; reports errors at `op`.
static FailureOr<schedule::Pipeline> expandTables(ScheduleOp op, ArrayRef<schedule::ActionTable> tables) {
  schedule::Placement placement = getPlacement(op->getParentOfType<ModuleOp>());
  llvm::Expected<schedule::Pipeline> expanded = schedule::expandPipeline(placement, tables);
  if (!expanded)
    return op.emitOpError(llvm::toString(expanded.takeError()));
  return std::move(*expanded);
}

FailureOr<schedule::Schedule> windlass::sched::expandSchedule(ScheduleOp op) {
  schedule::ActionTable table = llvm::cantFail(getActionTable(op));
  int64_t own = op->getParentOfType<ProgramOp>().getPosition();
  SmallVector<schedule::ActionTable> tables(getPlacement(op->getParentOfType<ModuleOp>()).positions);
  if (own >= static_cast<int64_t>(tables.size()))
    return op.emitOpError("is of position ")
           << own << ", but chunks are placed on " << tables.size() << " positions only";
  tables[own] = std::move(table);
  FailureOr<schedule::Pipeline> step = expandTables(op, tables);
  if (failed(step))
    return failure();
  return std::move(step->positions[own]);
}

FailureOr<schedule::Pipeline> windlass::sched::expandSteps(ModuleOp module) {
  SmallVector<schedule::ActionTable> tables;
  ScheduleOp first;
  for (ProgramOp program : getPrograms(module)) {
    auto schedules = program.getOps<ScheduleOp>();
    if (schedules.empty())
      return program.emitOpError("has no sched.schedule");
    ScheduleOp schedule = *schedules.begin();
    tables.push_back(llvm::cantFail(getActionTable(schedule)));
    if (!first)
      first = schedule;
  }
  return expandTables(first, tables);
}

LogicalResult windlass::sched::checkSteps(ModuleOp module) {
  FailureOr<schedule::Pipeline> step = expandSteps(module);
  if (failed(step))
    return failure();
  llvm::Error error = schedule::checkPipeline(*step);
  if (!error)
    return checkPositionCollectives(module, *step);
  ScheduleOp schedule = *getPrograms(module).front().getOps<ScheduleOp>().begin();
  InFlightDiagnostic diagnostic = schedule.emitOpError(llvm::toString(std::move(error)));
  if (step->positions.size() == 1)
    diagnostic << " in '" << schedule::printTable(schedule::compress(step->positions.front())) << "'";
  return diagnostic;
}

FailureOr<bool> windlass::sched::hasOneMicroBatch(ProgramOp program) {
  bool hasOne = false;
  for (ScheduleOp op : program.getOps<ScheduleOp>()) {
    FailureOr<schedule::Schedule> step = expandSchedule(op);
    if (failed(step))
      return failure();
    hasOne = llvm::all_of(step->actions, [](const schedule::Action &its) { return its.microBatch <= 0; });
  }
  return hasOne;
}

LogicalResult windlass::sched::checkSlots(ScheduleOp op) {
  FailureOr<schedule::Schedule> step = expandSchedule(op);
  if (failed(step))
    return failure();
  auto program = op->getParentOfType<ProgramOp>();
  std::set<int64_t> chunks;
  for (const schedule::Action &action : step->actions) {
    if (!chunks.insert(action.chunk).second)
      continue;
    SlotsOp slots = getSlots(program, action.chunk), handed = getHandedSlots(program, action.chunk);
    int64_t given = slots ? slots.getCount() : 1;
    if (step->getSlots(action.chunk) > given)
      return op.emitOpError("keeps ") << step->getSlots(action.chunk) << " micro-batches of chunk " << action.chunk
                                      << " in flight, but the chunk has " << given << (given == 1 ? " slot" : " slots");
    if (handed && step->getHandedSlots(action.chunk) > static_cast<int64_t>(handed.getCount()))
      return op.emitOpError("hands on ") << step->getHandedSlots(action.chunk) << " backwards of chunk " << action.chunk
                                         << " at a time, but @" << handed.getSymName() << " has room for "
                                         << handed.getCount();
  }
  return success();
}

bool windlass::sched::runsIn(Operation *command, bool isLast) { return isLast || !command->hasAttr(kInLastAttr); }
