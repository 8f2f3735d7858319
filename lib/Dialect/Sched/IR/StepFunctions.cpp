#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "windlass/Dialect/Sched/IR/Schedules.h"

#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

StepAttr windlass::sched::getStep(func::FuncOp function) { return function->getAttrOfType<StepAttr>(kStepAttr); }

bool windlass::sched::hasRole(func::FuncOp function, StepRole role) {
  StepAttr step = getStep(function);
  return step && step.getRole() == role;
}

func::FuncOp windlass::sched::getStepFunction(ProgramOp program, StepRole role, int64_t chunk) {
  for (auto function : program.getOps<func::FuncOp>())
    if (StepAttr step = getStep(function); step && step.getRole() == role && step.getChunk() == chunk)
      return function;
  return {};
}

bool windlass::sched::isOfBackward(StepRole role) {
  return role == StepRole::backward || role == StepRole::weight_gradient;
}

func::FuncOp windlass::sched::getLastBackward(ProgramOp program, int64_t chunk) {
  func::FuncOp weightGradient = getStepFunction(program, StepRole::weight_gradient, chunk);
  return weightGradient ? weightGradient : getStepFunction(program, StepRole::backward, chunk);
}

SmallVector<func::FuncOp> windlass::sched::getStepFunctions(ProgramOp program) {
  SmallVector<func::FuncOp> functions;
  for (auto function : program.getOps<func::FuncOp>())
    if (getStep(function))
      functions.push_back(function);
  auto getKey = [](func::FuncOp function) {
    StepAttr step = getStep(function);
    return std::pair(step.getChunk(), step.getRole());
  };
  llvm::sort(functions, [&](func::FuncOp a, func::FuncOp b) { return getKey(a) < getKey(b); });
  return functions;
}

SmallVector<int64_t> windlass::sched::getChunks(ProgramOp program) {
  SmallVector<int64_t> chunks;
  for (func::FuncOp function : getStepFunctions(program))
    if (int64_t chunk = getStep(function).getChunk(); chunks.empty() || chunks.back() != chunk)
      chunks.push_back(chunk);
  return chunks;
}

LogicalResult windlass::sched::checkStepFunctions(ProgramOp program) {
  llvm::SmallDenseMap<StepAttr, func::FuncOp> known;
  for (auto function : program.getOps<func::FuncOp>())
    if (StepAttr step = getStep(function))
      if (auto [found, isNew] = known.try_emplace(step, function); !isNew)
        return function.emitOpError("is ") << step << ", as is @" << found->second.getName();
  return success();
}

std::optional<StepRole> windlass::sched::getRole(schedule::ActionKind kind) {
  switch (kind) {
  case schedule::ActionKind::Forward:
    return StepRole::forward;
  case schedule::ActionKind::Backward:
  case schedule::ActionKind::InputGradient:
    return StepRole::backward;
  case schedule::ActionKind::WeightGradient:
    return StepRole::weight_gradient;
  case schedule::ActionKind::Reduce:
    return StepRole::reduce;
  case schedule::ActionKind::Update:
    return StepRole::update;
  case schedule::ActionKind::Send:
  case schedule::ActionKind::Receive:
    return std::nullopt;
  }
  return std::nullopt;
}

LogicalResult windlass::sched::checkActions(ScheduleOp schedule) {
  FailureOr<schedule::Schedule> step = expandSchedule(schedule);
  if (failed(step))
    return failure();
  auto program = schedule->getParentOfType<ProgramOp>();
  std::set<std::pair<schedule::ActionKind, int64_t>> found;
  for (const schedule::Action &action : step->actions) {
    if (!found.emplace(action.kind, action.chunk).second)
      continue;
    std::optional<StepRole> role = getRole(action.kind);
    if (role && !getStepFunction(program, *role, action.chunk))
      return schedule.emitOpError("runs ")
             << schedule::getName(action.kind) << " of chunk " << action.chunk << ", of which there is no function";
    if (action.kind == schedule::ActionKind::Backward &&
        getStepFunction(program, StepRole::weight_gradient, action.chunk))
      return schedule.emitOpError("runs a whole backward of chunk ")
             << action.chunk << ", but the chunk has two functions for it";
  }
  return success();
}

std::string windlass::sched::getFunctionName(StepAttr step) {
  std::string name = stringifyStepRole(step.getRole()).str();
  return step.getChunk() == 0 ? name : name + "_" + std::to_string(step.getChunk());
}

ArrayRef<StepRole> windlass::sched::getStepRoles() {
  static constexpr StepRole roles[] = {
      StepRole::init,   StepRole::forward, StepRole::backward, StepRole::weight_gradient,
      StepRole::reduce, StepRole::update,  StepRole::evaluate};
  return roles;
}
