#include "Machine.h"

#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;
using sched::ResourceKind;
using sched::ResourceOp;
using schedule::ActionKind;

namespace {

class ScheduleRunner {
public:
  ScheduleRunner(sched::ProgramOp program, const RunInputs &inputs, Machine &machine)
      : program(program), inputs(inputs), scaling(program->getParentOfType<ModuleOp>(), inputs.options),
        mesh(program.getMesh()), machine(machine) {
    groups = getReplicas(mesh);
    everyone = getEveryone(mesh);
  }

  FailureOr<RunResult> run();

private:
  FailureOr<Placement> placementOf(ResourceOp resource, bool isReduced);
  LogicalResult writeWhole(ResourceOp resource, llvm::Expected<Tensor> whole);
  LogicalResult writeInputs(int64_t firstK);
  LogicalResult writeScalars(int64_t step);
  LogicalResult loadParameters();
  LogicalResult runFunction(sched::StepRole role, int64_t chunk, int64_t index, bool isLast);
  LogicalResult runAction(const schedule::Action &action, int64_t step, RunResult &result);
  /// Losses of the first G micro-batches with the parameters that the steps have left.
  LogicalResult evaluate(RunResult &result);
  /// The whole value, after reductions.
  FailureOr<Tensor> wholeOf(ResourceOp resource);
  LogicalResult dump(ResourceOp resource, const Twine &prefix, RunResult &result);

  auto resources(ResourceKind kind) {
    return llvm::make_filter_range(program.getOps<ResourceOp>(),
                                   [kind](ResourceOp resource) { return resource.getKind() == kind; });
  }

  /// Whether another resource, of that kind, holds what counts for the same parameter.
  bool isReplaced(ResourceOp resource, ResourceKind kind) {
    return resource.getKind() != kind &&
           llvm::any_of(resources(kind), [&](ResourceOp other) { return other.getOfAttr() == resource.getOfAttr(); });
  }

  sched::ProgramOp program;
  const RunInputs &inputs;
  LossScaling scaling;
  plan::MeshAttr mesh;
  Machine &machine;
  std::vector<SmallVector<int64_t>> everyone, groups;
};

} // namespace

FailureOr<Placement> ScheduleRunner::placementOf(ResourceOp resource, bool isReduced) {
  plan::LayoutAttr layout = resource.getLayout();
  if (isReduced)
    layout = layout.withUnreduced({});
  llvm::Expected<Placement> placement = Placement::create(layout, mesh, resource.getGlobalTensorType().getShape());
  if (placement)
    return std::move(*placement);
  return resource.emitError("cannot be executed: ") << llvm::toString(placement.takeError());
}

LogicalResult ScheduleRunner::writeWhole(ResourceOp resource, llvm::Expected<Tensor> whole) {
  if (!whole)
    return resource.emitError("cannot be executed: ") << llvm::toString(whole.takeError());
  FailureOr<Placement> placement = placementOf(resource, false);
  if (failed(placement))
    return failure();
  RankValues parts;
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
    parts.push_back(placement->cut(*whole, rank));
  return machine.write(resource, parts);
}

static StringRef nameOf(ResourceOp resource) { return resource.getLogicalName().value_or(resource.getSymName()); }

LogicalResult ScheduleRunner::loadParameters() {
  for (auto [kind, role] :
       {std::pair(ResourceKind::parameter, train::Role::weight), std::pair(ResourceKind::master, train::Role::weight),
        std::pair(ResourceKind::state, train::Role::state)})
    for (ResourceOp resource : resources(kind))
      if (failed(writeWhole(resource, inputs.parameter(nameOf(resource), resource.getGlobalTensorType(), role))))
        return failure();
  return success();
}

LogicalResult ScheduleRunner::writeInputs(int64_t firstK) {
  machine.waitForCompute();
  for (ResourceOp resource : resources(ResourceKind::input)) {
    FailureOr<Placement> placement = placementOf(resource, false);
    if (failed(placement))
      return failure();
    RankValues parts(mesh.getRanks());
    for (auto [j, group] : llvm::enumerate(groups)) {
      llvm::Expected<Tensor> whole = inputs.input(nameOf(resource), resource.getGlobalTensorType(),
                                                  resource->getAttrDictionary(), firstK + static_cast<int64_t>(j));
      if (!whole)
        return resource.emitError("cannot be executed: ") << llvm::toString(whole.takeError());
      for (int64_t rank : group)
        parts[rank] = placement->cut(*whole, rank);
    }
    if (failed(machine.write(resource, parts)))
      return failure();
  }
  return success();
}

LogicalResult ScheduleRunner::writeScalars(int64_t step) {
  for (ResourceOp resource : resources(ResourceKind::scalar)) {
    if (!resource.getScalar())
      return resource.emitError("cannot be executed: names no hyperparameter");
    llvm::Expected<double> value = inputs.hyperparameter(*resource.getScalar(), step, scaling);
    if (!value)
      return resource.emitError("cannot be executed: ") << llvm::toString(value.takeError());
    if (failed(writeWhole(resource, Tensor::filled(inputs.floatKind(), {}, *value))))
      return failure();
  }
  return success();
}

LogicalResult ScheduleRunner::runFunction(sched::StepRole role, int64_t chunk, int64_t index, bool isLast) {
  func::FuncOp function = sched::getStepFunction(program, role, chunk);
  if (!function)
    return program.emitOpError("has no function of the step with the role ")
           << stringifyStepRole(role) << " and chunk " << chunk;
  return machine.run(function, index, isLast);
}

FailureOr<Tensor> ScheduleRunner::wholeOf(ResourceOp resource) {
  FailureOr<Placement> placement = placementOf(resource, true);
  if (failed(placement))
    return failure();
  RankValues parts;
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
    parts.push_back(machine.peek(resource, rank));
  llvm::Expected<Tensor> whole = placement->assemble(parts, everyone.front());
  if (whole)
    return std::move(*whole);
  return resource.emitError("cannot be executed: ") << llvm::toString(whole.takeError());
}

LogicalResult ScheduleRunner::dump(ResourceOp resource, const Twine &prefix, RunResult &result) {
  FailureOr<Tensor> whole = wholeOf(resource);
  if (failed(whole))
    return failure();
  bool isGradient = resource.getKind() == ResourceKind::gradient || resource.getKind() == ResourceKind::reduced;
  result.tensors[(prefix + nameOf(resource)).str()] = isGradient ? scaling.unscale(std::move(*whole)) : *whole;
  return success();
}

LogicalResult ScheduleRunner::runAction(const schedule::Action &action, int64_t step, RunResult &result) {
  int64_t total = inputs.microBatches, groupCount = groups.size(), perGroup = total / groupCount;
  if (action.kind == ActionKind::Forward) {
    if (action.microBatch >= perGroup)
      return program.emitOpError("has more forward actions than the ") << perGroup << " micro-batches of a rank's step";
    if (failed(writeInputs(step * total + action.microBatch * groupCount)))
      return failure();
  }
  if (action.kind == ActionKind::Update)
    for (ResourceKind kind : {ResourceKind::gradient, ResourceKind::reduced})
      for (ResourceOp resource : resources(kind))
        if (!isReplaced(resource, ResourceKind::reduced) &&
            failed(dump(resource, "gradient." + Twine(step) + ".", result)))
          return failure();
  std::optional<sched::StepRole> role = sched::getRole(action.kind);
  if (!role)
    return program.emitOpError("cannot be executed: actions ") << schedule::getName(action.kind) << " have no function";
  return runFunction(*role, action.chunk, action.microBatch, action.isLast);
}

LogicalResult ScheduleRunner::evaluate(RunResult &result) {
  auto outputs = resources(ResourceKind::evaluate);
  if (outputs.empty() || !sched::getStepFunction(program, sched::StepRole::evaluate))
    return success();
  ResourceOp output = *outputs.begin();
  int64_t groupCount = groups.size();
  for (int64_t k = 0; k + groupCount <= inputs.microBatches; k += groupCount) {
    if (failed(writeInputs(k)) || failed(runFunction(sched::StepRole::evaluate, 0, 0, true)) ||
        failed(machine.finishStep({output})))
      return failure();
    FailureOr<Placement> placement = placementOf(output, false);
    if (failed(placement))
      return failure();
    RankValues parts;
    for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
      parts.push_back(machine.peek(output, rank));
    for (auto [j, group] : llvm::enumerate(groups)) {
      llvm::Expected<Tensor> loss = placement->assemble(parts, group);
      if (!loss)
        return output.emitError("cannot be executed: ") << llvm::toString(loss.takeError());
      result.tensors["evaluate." + std::to_string(k + static_cast<int64_t>(j))] = std::move(*loss);
    }
  }
  return success();
}

FailureOr<RunResult> ScheduleRunner::run() {
  auto schedules = program.getOps<sched::ScheduleOp>();
  if (schedules.empty())
    return program.emitOpError("has no sched.schedule");
  FailureOr<schedule::Schedule> expanded = sched::expandSchedule(*schedules.begin());
  if (failed(expanded))
    return failure();
  if (inputs.microBatches % static_cast<int64_t>(groups.size()))
    return program.emitOpError() << groups.size() << " groups cannot share " << inputs.microBatches
                                 << " micro-batches: choose a multiple";
  SmallVector<ResourceOp> outputs;
  for (ResourceKind kind : {ResourceKind::loss, ResourceKind::grad_norm})
    llvm::append_range(outputs, resources(kind));

  RunResult result;
  result.ranks = mesh.getRanks();
  if (failed(loadParameters()))
    return failure();
  if (func::FuncOp init = sched::getStepFunction(program, sched::StepRole::init))
    if (failed(machine.run(init, 0, true)))
      return failure();
  for (int64_t step = 0; step < inputs.options.steps; ++step) {
    if (inputs.options.keepsTrajectory)
      for (ResourceOp resource : resources(ResourceKind::parameter))
        if (failed(dump(resource, "before." + Twine(step) + ".", result)))
          return failure();
    if (failed(writeScalars(step)))
      return failure();
    for (const schedule::Action &action : expanded->actions)
      if (failed(runAction(action, step, result)))
        return failure();
    if (failed(machine.finishStep(outputs)))
      return failure();
    for (ResourceOp resource : outputs) {
      FailureOr<Tensor> whole = wholeOf(resource);
      if (failed(whole))
        return failure();
      (resource.getKind() == ResourceKind::loss ? result.losses : result.gradientNorms).push_back(whole->at(0));
      if (resource.getKind() == ResourceKind::grad_norm &&
          failed(scaling.finishStep(program.getLoc(), step, whole->at(0))))
        return failure();
    }
  }
  if (failed(evaluate(result)))
    return failure();
  // The compute copy first, which checks that its replicas agree; a master replaces it.
  for (ResourceKind kind : {ResourceKind::parameter, ResourceKind::master})
    for (ResourceOp resource : resources(kind))
      if (failed(dump(resource, "parameter.", result)))
        return failure();
  for (ResourceOp resource : resources(ResourceKind::state))
    if (failed(dump(resource, "state.", result)))
      return failure();
  return result;
}

FailureOr<RunResult> windlass::interpreter::runSchedule(sched::ProgramOp program, const RunInputs &inputs,
                                                        Machine &machine) {
  return ScheduleRunner(program, inputs, machine).run();
}
