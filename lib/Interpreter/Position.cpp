#include "Position.h"

#include "windlass/Dialect/Sched/IR/RunningStatistics.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;
using sched::ResourceKind;
using sched::ResourceOp;

static StringRef getShownName(ResourceOp resource) { return resource.getLogicalName().value_or(resource.getSymName()); }

static LogicalResult reportAt(ResourceOp resource, llvm::Error error) {
  return resource.emitError("cannot be executed: ") << llvm::toString(std::move(error));
}

Position::Position(sched::ProgramOp program, const RunInputs &inputs, std::unique_ptr<Machine> machine)
    : program(program), inputs(inputs), mesh(program.getMesh()), machine(std::move(machine)),
      everyone(getEveryone(mesh)), replicas(getReplicas(mesh)) {}

LogicalResult Position::prepare() {
  auto schedules = program.getOps<sched::ScheduleOp>();
  if (schedules.empty())
    return program.emitOpError("has no sched.schedule");
  FailureOr<schedule::Schedule> expanded = sched::expandSchedule(*schedules.begin());
  if (failed(expanded))
    return failure();
  actions = std::move(expanded->actions);
  if (inputs.microBatches % countReplicas())
    return program.emitOpError() << countReplicas() << " data-parallel replicas cannot share " << inputs.microBatches
                                 << " micro-batches: choose a multiple";
  return success();
}

FailureOr<Placement> Position::placementOf(ResourceOp resource, bool isReduced) {
  plan::LayoutAttr layout = resource.getLayout();
  if (isReduced)
    layout = layout.withUnreduced({});
  llvm::Expected<Placement> placement = Placement::create(layout, mesh, resource.getGlobalTensorType().getShape());
  if (placement)
    return std::move(*placement);
  return reportAt(resource, placement.takeError());
}

LogicalResult Position::writeWhole(ResourceOp resource, llvm::Expected<Tensor> whole) {
  if (!whole)
    return reportAt(resource, whole.takeError());
  FailureOr<Placement> placement = placementOf(resource, false);
  if (failed(placement))
    return failure();
  RankValues parts;
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
    parts.push_back(placement->cut(*whole, rank));
  return machine->write(resource, parts, /*slot=*/0);
}

LogicalResult Position::loadParameters() {
  for (auto [kind, role] :
       {std::pair(ResourceKind::parameter, train::Role::weight), std::pair(ResourceKind::master, train::Role::weight),
        std::pair(ResourceKind::state, train::Role::state)})
    for (ResourceOp resource : resources(kind))
      if (failed(writeWhole(resource, inputs.parameter(getShownName(resource), resource.getGlobalTensorType(), role))))
        return failure();
  return success();
}

LogicalResult Position::writeScalars(int64_t step, const LossScaling &scaling) {
  for (ResourceOp resource : resources(ResourceKind::scalar)) {
    if (!resource.getScalar())
      return resource.emitError("cannot be executed: names no hyperparameter");
    llvm::Expected<double> value = inputs.hyperparameter(*resource.getScalar(), step, scaling);
    if (!value)
      return reportAt(resource, value.takeError());
    if (failed(writeWhole(resource, Tensor::filled(inputs.floatKind(), {}, *value))))
      return failure();
  }
  return success();
}

LogicalResult Position::writeInputs(int64_t chunk, int64_t slot, int64_t firstK) {
  machine->waitForCompute();
  for (ResourceOp resource : resources(ResourceKind::input)) {
    if (resource.getChunkNumber() != chunk)
      continue;
    FailureOr<Placement> placement = placementOf(resource, false);
    if (failed(placement))
      return failure();
    RankValues parts(mesh.getRanks());
    for (auto [j, replica] : llvm::enumerate(replicas)) {
      llvm::Expected<Tensor> whole = inputs.input(getShownName(resource), resource.getGlobalTensorType(),
                                                  resource->getAttrDictionary(), firstK + static_cast<int64_t>(j));
      if (!whole)
        return reportAt(resource, whole.takeError());
      for (int64_t rank : replica)
        parts[rank] = placement->cut(*whole, rank);
    }
    if (failed(machine->write(resource, parts, slot)))
      return failure();
  }
  return success();
}

FailureOr<bool> Position::runFunction(sched::StepRole role, int64_t chunk, const FunctionCall &call) {
  func::FuncOp function = sched::getStepFunction(program, role, chunk);
  if (!function)
    return program.emitOpError("has no function of the step with the role ")
           << stringifyStepRole(role) << " and chunk " << chunk;
  return machine->run(function, call);
}

FailureOr<Tensor> Position::wholeOf(ResourceOp resource) {
  FailureOr<Placement> placement = placementOf(resource, true);
  if (failed(placement))
    return failure();
  llvm::Expected<Tensor> whole = placement->assemble(machine->read(resource, /*slot=*/0), everyone.front());
  if (whole)
    return std::move(*whole);
  return reportAt(resource, whole.takeError());
}

FailureOr<SmallVector<Tensor>> Position::wholesOf(ResourceOp resource) {
  FailureOr<Placement> placement = placementOf(resource, false);
  if (failed(placement))
    return failure();
  RankValues parts = machine->read(resource, /*slot=*/0);
  SmallVector<Tensor> wholes;
  for (const SmallVector<int64_t> &replica : replicas) {
    llvm::Expected<Tensor> whole = placement->assemble(parts, replica);
    if (!whole)
      return reportAt(resource, whole.takeError());
    wholes.push_back(std::move(*whole));
  }
  return wholes;
}

LogicalResult Position::dump(ResourceOp resource, const Twine &prefix, RunResult &result) {
  FailureOr<Tensor> whole = wholeOf(resource);
  if (failed(whole))
    return failure();
  result.tensors[(prefix + getShownName(resource)).str()] = std::move(*whole);
  return success();
}

bool Position::isReplaced(ResourceOp resource, ResourceKind kind) {
  return resource.getKind() != kind &&
         llvm::any_of(resources(kind), [&](ResourceOp other) { return other.getOfAttr() == resource.getOfAttr(); });
}

LogicalResult Position::dumpGradients(int64_t step, const LossScaling &scaling, RunResult &result) {
  for (ResourceKind kind : {ResourceKind::gradient, ResourceKind::reduced})
    for (ResourceOp resource : resources(kind)) {
      if (isReplaced(resource, ResourceKind::reduced) || isOfRunningStatistic(resource))
        continue;
      FailureOr<Tensor> whole = wholeOf(resource);
      if (failed(whole))
        return failure();
      result.tensors[("gradient." + Twine(step) + "." + getShownName(resource)).str()] =
          scaling.unscale(std::move(*whole));
    }
  return success();
}

LogicalResult Position::dumpParameters(const Twine &prefix, RunResult &result) {
  for (ResourceOp resource : resources(ResourceKind::parameter))
    if (failed(dump(resource, prefix, result)))
      return failure();
  return success();
}

LogicalResult Position::dumpState(RunResult &result) {
  RunResult own;
  // The compute copy first, which checks that its replicas agree; a master replaces it.
  if (failed(dumpParameters("parameter.", own)))
    return failure();
  for (ResourceOp resource : resources(ResourceKind::master))
    if (failed(dump(resource, "parameter.", own)))
      return failure();
  for (ResourceOp resource : resources(ResourceKind::state))
    if (failed(dump(resource, "state.", own)))
      return failure();
  for (const auto &[name, tensor] : own.tensors)
    if (auto [known, isNew] = result.tensors.try_emplace(name, tensor); !isNew && !known->second.isSameAs(tensor))
      return program.emitError("cannot be executed: holds another ") << name << " than an earlier position";
  return success();
}
