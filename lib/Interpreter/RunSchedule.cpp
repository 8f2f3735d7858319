// The steps of a module at L4 or L5: each position is a cursor over its actions, and waits where it receives what has
// not been sent.
#include "Position.h"

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include <cmath>
#include <deque>
#include <map>

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;
using sched::ResourceKind;
using sched::ResourceOp;
using schedule::ActionKind;

namespace {

class ScheduleRunner {
public:
  ScheduleRunner(ModuleOp module, const RunInputs &inputs, std::vector<Position> positions)
      : module(module), inputs(inputs), scaling(module, inputs.options), placement(sched::getPlacement(module)),
        positions(std::move(positions)) {}

  FailureOr<RunResult> run();

private:
  LogicalResult prepare();
  /// Runs a function that is of no step, in slot 0.
  LogicalResult runAlone(Position &position, sched::StepRole role, int64_t chunk);
  LogicalResult runStep(int64_t step, RunResult &result);
  LogicalResult finishStep(int64_t step, RunResult &result);
  /// Runs an action; false where it waits for a message.
  FailureOr<bool> runAction(Position &position, const schedule::Action &action, int64_t step, RunResult &result);
  /// Sends what `chunk` has for its neighbour `peer`, from a slot.
  void send(int64_t chunk, int64_t peer, int64_t slot);
  /// Receives the oldest message from `peer` into a slot of `chunk`; false where none has been sent.
  FailureOr<bool> receive(int64_t chunk, int64_t peer, int64_t slot);
  /// Losses of the first G micro-batches with the parameters that the steps have left.
  LogicalResult evaluate(RunResult &result);
  /// The loss of micro-batches `k` to `k` + P - 1.
  LogicalResult evaluate(int64_t k, RunResult &result);

  Position &positionOf(int64_t chunk) { return positions[placement.positionOf[chunk]]; }
  int64_t countReplicas() const { return positions.front().countReplicas(); }

  ModuleOp module;
  const RunInputs &inputs;
  LossScaling scaling;
  schedule::Placement placement;
  std::vector<Position> positions;
  /// What has been sent from a chunk to another and not received: the values of the border, by rank.
  std::map<std::pair<int64_t, int64_t>, std::deque<SmallVector<RankValues>>> messages;
};

} // namespace

LogicalResult ScheduleRunner::runAlone(Position &position, sched::StepRole role, int64_t chunk) {
  FailureOr<bool> isDone = position.runFunction(role, chunk, FunctionCall());
  if (succeeded(isDone) && !*isDone)
    return position.getProgram().emitOpError("combines over positions outside of a step");
  return isDone;
}

LogicalResult ScheduleRunner::prepare() {
  for (Position &position : positions) {
    if (failed(position.prepare()))
      return failure();
    if (position.countReplicas() != countReplicas())
      return position.getProgram().emitOpError("has ")
             << position.countReplicas() << " data-parallel replicas, but position 0 has " << countReplicas();
    if (failed(position.loadParameters()))
      return failure();
    for (int64_t chunk : sched::getChunks(position.getProgram()))
      if (sched::getStepFunction(position.getProgram(), sched::StepRole::init, chunk))
        if (failed(runAlone(position, sched::StepRole::init, chunk)))
          return failure();
  }
  return success();
}

void ScheduleRunner::send(int64_t chunk, int64_t peer, int64_t slot) {
  Position &position = positionOf(chunk);
  position.getMachine().waitForCompute();
  SmallVector<RankValues> &message = messages[{chunk, peer}].emplace_back();
  for (ResourceOp value : sched::getBorder(position.getProgram(), ResourceKind::sent, chunk, peer))
    message.push_back(position.getMachine().read(value, slot));
}

FailureOr<bool> ScheduleRunner::receive(int64_t chunk, int64_t peer, int64_t slot) {
  std::deque<SmallVector<RankValues>> &sent = messages[{peer, chunk}];
  if (sent.empty())
    return false;
  Position &position = positionOf(chunk);
  SmallVector<ResourceOp> border = sched::getBorder(position.getProgram(), ResourceKind::received, chunk, peer);
  if (border.size() != sent.front().size())
    return position.getProgram().emitOpError("receives ")
           << border.size() << " values of chunk " << peer << ", which sends " << sent.front().size();
  position.getMachine().waitForCompute();
  for (auto [value, parts] : llvm::zip_equal(border, sent.front()))
    if (failed(position.getMachine().write(value, parts, slot)))
      return failure();
  sent.pop_front();
  return true;
}

FailureOr<bool> ScheduleRunner::runAction(Position &position, const schedule::Action &action, int64_t step,
                                          RunResult &result) {
  int64_t perReplica = inputs.microBatches / countReplicas();
  if (action.kind == ActionKind::Receive)
    return receive(action.chunk, action.peerChunk, action.slot);
  if (action.kind == ActionKind::Send) {
    send(action.chunk, action.peerChunk, action.slot);
    return true;
  }
  if (action.kind == ActionKind::Forward) {
    if (action.microBatch >= perReplica)
      return position.getProgram().emitOpError("has more forward actions than the ")
             << perReplica << " micro-batches of a rank's step";
    int64_t firstK = step * inputs.microBatches + action.microBatch * countReplicas();
    if (failed(position.writeInputs(action.chunk, action.slot, firstK)))
      return failure();
  }
  if (action.kind == ActionKind::Update && failed(position.dumpGradients(step, scaling, result)))
    return failure();
  // What is expanded has actions that functions run, and transfers.
  return position.runFunction(*sched::getRole(action.kind), action.chunk,
                              {!action.isFirst, action.slot, action.handedSlot, action.isLast});
}

LogicalResult ScheduleRunner::runStep(int64_t step, RunResult &result) {
  std::vector<size_t> cursors(positions.size());
  for (bool hasRun = true; hasRun;) {
    hasRun = false;
    for (auto [position, cursor] : llvm::zip_equal(positions, cursors))
      for (; cursor < position.getActions().size(); ++cursor) {
        FailureOr<bool> done = runAction(position, position.getActions()[cursor], step, result);
        if (failed(done))
          return failure();
        if (!*done)
          break;
        hasRun = true;
      }
  }
  for (auto [position, cursor] : llvm::zip_equal(positions, cursors))
    if (cursor < position.getActions().size()) {
      InFlightDiagnostic error = position.getProgram().emitOpError("waits at action ") << cursor;
      int64_t peer = position.getActions()[cursor].peerChunk;
      return peer < 0 ? error << " for the other positions, which do not come to its collective"
                      : error << " for chunk " << peer << ", which sends nothing more";
    }
  return success();
}

LogicalResult ScheduleRunner::finishStep(int64_t step, RunResult &result) {
  SmallVector<double> norms;
  for (Position &position : positions) {
    SmallVector<ResourceOp> outputs;
    for (ResourceKind kind : {ResourceKind::loss, ResourceKind::grad_norm})
      llvm::append_range(outputs, position.resources(kind));
    if (failed(position.getMachine().finishStep(outputs)))
      return failure();
    for (ResourceOp resource : outputs) {
      FailureOr<Tensor> whole = position.wholeOf(resource);
      if (failed(whole))
        return failure();
      if (resource.getKind() == ResourceKind::loss) {
        result.losses.push_back(whole->at(0));
        continue;
      }
      norms.push_back(whole->at(0));
    }
  }
  if (norms.empty())
    return success();
  // Each position has the norm of all gradients.
  for (auto [position, norm] : llvm::zip(positions, norms))
    if (norm != norms.front() && !(std::isnan(norm) && std::isnan(norms.front())))
      return position.getProgram().emitOpError("has the gradient norm ")
             << norm << ", but position 0 has " << norms.front() << ": a norm is that of all positions";
  result.gradientNorms.push_back(norms.front());
  return scaling.finishStep(module.getLoc(), step, norms.front());
}

LogicalResult ScheduleRunner::evaluate(int64_t k, RunResult &result) {
  std::optional<int64_t> chunk = 0;
  for (; chunk; chunk = placement.getNext(*chunk)) {
    Position &position = positionOf(*chunk);
    std::optional<int64_t> previous = placement.getPrevious(*chunk);
    if (previous && placement.crossesPositions(*previous, *chunk)) {
      send(*previous, *chunk, /*slot=*/0);
      if (failed(receive(*chunk, *previous, /*slot=*/0)))
        return failure();
    }
    if (failed(position.writeInputs(*chunk, /*slot=*/0, k)) ||
        failed(runAlone(position, sched::StepRole::evaluate, *chunk)))
      return failure();
    if (placement.getNext(*chunk))
      continue;
    SmallVector<ResourceOp> outputs(position.resources(ResourceKind::evaluate));
    if (failed(position.getMachine().finishStep(outputs)))
      return failure();
    if (outputs.empty())
      continue;
    FailureOr<SmallVector<Tensor>> losses = position.wholesOf(outputs.front());
    if (failed(losses))
      return failure();
    for (auto [j, loss] : llvm::enumerate(*losses))
      inputs.addEvaluation(k + static_cast<int64_t>(j), loss, result);
  }
  return success();
}

LogicalResult ScheduleRunner::evaluate(RunResult &result) {
  for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
    if (!sched::getStepFunction(positionOf(chunk).getProgram(), sched::StepRole::evaluate, chunk))
      return success();
  for (int64_t k = 0; k + countReplicas() <= inputs.microBatches; k += countReplicas())
    if (failed(evaluate(k, result)))
      return failure();
  return success();
}

FailureOr<RunResult> ScheduleRunner::run() {
  RunResult result;
  result.ranks = countRanks(module);
  if (failed(prepare()))
    return failure();
  for (int64_t step = 0; step < inputs.options.steps; ++step) {
    for (Position &position : positions)
      if ((inputs.options.keepsTrajectory && failed(position.dumpParameters("before." + Twine(step) + ".", result))) ||
          failed(position.writeScalars(step, scaling)))
        return failure();
    if (failed(runStep(step, result)) || failed(finishStep(step, result)))
      return failure();
  }
  if (failed(evaluate(result)))
    return failure();
  for (Position &position : positions)
    if (failed(position.dumpState(result)))
      return failure();
  return result;
}

FailureOr<RunResult> windlass::interpreter::runSchedule(ModuleOp module, const RunInputs &inputs,
                                                        const MachineFactory &makeMachine) {
  if (failed(sched::checkPrograms(module)))
    return failure();
  Crossings crossings;
  std::vector<Position> positions;
  for (sched::ProgramOp program : sched::getPrograms(module)) {
    FailureOr<std::unique_ptr<Machine>> machine = makeMachine(program, crossings);
    if (failed(machine))
      return failure();
    positions.emplace_back(program, inputs, std::move(*machine));
  }
  return ScheduleRunner(module, inputs, std::move(positions)).run();
}
