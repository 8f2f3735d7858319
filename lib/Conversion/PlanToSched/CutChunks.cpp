#include "CutChunks.h"

#include "ChunkFlow.h"
#include "ChunkPrograms.h"
#include "ChunkUpdates.h"
#include "SplitBackward.h"
#include "TiedGradients.h"

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/PipelineStep.h"
#include "windlass/Dialect/Sched/IR/RunningStatistics.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Support/Printable.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace {

// A forward and an evaluation load their inputs, so these are never called: only a backward has arguments.
constexpr auto kIsOfNoChunk = [](BlockArgument) { return false; };
constexpr auto kIsMadeByNone = [](LoadOp) -> std::optional<int64_t> { return std::nullopt; };
constexpr auto kProvidesNothing = [](BlockArgument, int64_t) -> int64_t {
  llvm_unreachable("only a backward has arguments");
};

class ChunkCutter {
public:
  ChunkCutter(ModuleOp module, ProgramOp whole, schedule::Pipeline step)
      : module(module), whole(whole), step(std::move(step)), chunkCount(this->step.placement.countChunks()),
        programs(whole, this->step.placement) {}

  LogicalResult run() {
    if (failed(cutMicrobatch()) || failed(cutEvaluation()) || failed(buildInits()) || failed(buildUpdates()))
      return failure();
    programs.declareResources();
    if (schedule::hasSplitBackwards(step))
      splitAll();
    for (auto [position, schedule] : llvm::enumerate(step.positions)) {
      ProgramOp program = programs.getPrograms()[position];
      OpBuilder builder = OpBuilder::atBlockEnd(program.getBody());
      createSchedule(builder, whole.getLoc(), schedule::compress(schedule));
    }
    module->setAttr(kPlacementAttr, PlacementAttr::get(module.getContext(), step.placement.positionOf, {}));
    whole.erase();
    return success();
  }

private:
  void splitAll() {
    for (int64_t chunk = 0; chunk < chunkCount; ++chunk) {
      func::FuncOp backward = getStepFunction(programs.getProgram(chunk), StepRole::backward, chunk);
      splitBackward(backward, programs.createFunction(backward.getLoc(), StepRole::weight_gradient, chunk));
    }
  }

  static void finish(func::FuncOp function, ValueRange results = {}) {
    OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
    func::ReturnOp::create(builder, function.getLoc(), results);
    function.setFunctionType(builder.getFunctionType(function.front().getArgumentTypes(), results.getTypes()));
  }

  /// Finds the chunks of each trained parameter: of those that make its gradient.
  void findParameterChunks(const ChunkFlow &backward) {
    func::FuncOp function = backward.getFunction();
    for (auto add : function.front().getOps<AddToOp>())
      if (FlatSymbolRefAttr parameter = programs.getResource(add.getResourceAttr()).getOfAttr())
        parameterChunks[parameter.getAttr()].push_back(*backward.getChunk(add));
    for (auto &[parameter, chunks] : parameterChunks)
      llvm::sort(chunks);
  }

  bool isOnPositionOf(int64_t chunk, ArrayRef<int64_t> others) const {
    ArrayRef<int64_t> positionOf = step.placement.positionOf;
    return llvm::any_of(others, [&](int64_t other) { return positionOf[other] == positionOf[chunk]; });
  }

  /// Checks that the trained weights which an operator reads are trained on the position of its chunk.
  LogicalResult checkWeights(const ChunkFlow &flow) {
    func::FuncOp function = flow.getFunction();
    for (auto load : function.front().getOps<LoadOp>()) {
      FlatSymbolRefAttr parameter = programs.getResource(load.getResourceAttr()).getOfAttr();
      auto found = parameter ? parameterChunks.find(parameter.getAttr()) : parameterChunks.end();
      if (found == parameterChunks.end())
        continue;
      for (int64_t chunk = 0; chunk < chunkCount; ++chunk)
        if (flow.isIn(load, chunk) && !isOnPositionOf(chunk, found->second))
          return load.emitOpError("reads weight ")
                 << printable(programs.getResource(load.getResourceAttr()).getLogicalName().value_or(""))
                 << " in chunk " << chunk << " on position " << step.placement.positionOf[chunk]
                 << ", which makes no part of its "
                 << "gradient: it is trained in chunk " << found->second.front() << " on position "
                 << step.placement.positionOf[found->second.front()] << "; choose other chunks";
    }
    return success();
  }

  LogicalResult cutMicrobatch() {
    ChunkFlow forward(getStepFunction(whole, StepRole::forward), step.placement.positionOf, /*isBackward=*/false);
    // What no chunk makes is added up where the loss is, or the gradient of a weight that nothing reads.
    forward.assign([&](FlatSymbolRefAttr) { return chunkCount - 1; }, kIsOfNoChunk, kIsMadeByNone);
    Operation *results = forward.getFunction().front().getTerminator();
    auto assignBackward = [&] {
      ChunkFlow flow(getStepFunction(whole, StepRole::backward), step.placement.positionOf, /*isBackward=*/true);
      flow.assign([&](FlatSymbolRefAttr) { return int64_t(0); },
                  [&](BlockArgument argument) {
                    Value result = results->getOperand(argument.getArgNumber());
                    return forward.getChunk(result.getDefiningOp()).has_value();
                  },
                  kIsMadeByNone);
      return flow;
    };
    splitTiedGradients(assignBackward(), step.placement.positionOf);
    ChunkFlow backward = assignBackward();
    findParameterChunks(backward);

    func::FuncOp oldForward = forward.getFunction(), oldBackward = backward.getFunction();
    // What a later forward has made has the same layout where a backward passes it on.
    for (BlockArgument argument : oldBackward.getArguments())
      if (plan::LayoutAttr layout = plan::getLayout(results->getOperand(argument.getArgNumber())))
        oldBackward.setArgAttr(argument.getArgNumber(), plan::kLayoutAttr, layout);
    std::vector<llvm::DenseSet<unsigned>> stash(chunkCount);
    LogicalResult isPossible = success();
    // A backward reads what its own forward has made or was given; what a later forward has made comes with gradients.
    auto provide = [&](BlockArgument argument, int64_t chunk) {
      Value value = results->getOperand(argument.getArgNumber());
      std::optional<int64_t> made = forward.getChunk(value.getDefiningOp());
      int64_t from = made ? std::max(*made, chunk) : chunk;
      stash[from].insert(argument.getArgNumber());
      if (failed(forward.require(value, from, value.getDefiningOp(), kProvidesNothing)))
        isPossible = failure();
      return from;
    };
    if (failed(forward.requireOperands(kProvidesNothing)) || failed(backward.requireOperands(provide)) ||
        failed(isPossible) || failed(checkWeights(forward)) || failed(checkWeights(backward)))
      return failure();

    for (int64_t chunk = 0; chunk < chunkCount; ++chunk) {
      IRMapping made, given;
      func::FuncOp ownForward = programs.createFunction(oldForward.getLoc(), StepRole::forward, chunk);
      if (failed(programs.fill(ownForward, forward, chunk, made)))
        return failure();
      func::FuncOp ownBackward = programs.createFunction(oldBackward.getLoc(), StepRole::backward, chunk);
      SmallVector<Value> kept;
      for (BlockArgument argument : oldBackward.getArguments())
        if (stash[chunk].contains(argument.getArgNumber())) {
          kept.push_back(made.lookup(results->getOperand(argument.getArgNumber())));
          given.map(argument, ownBackward.front().addArgument(argument.getType(), argument.getLoc()));
        }
      finish(ownForward, kept);
      if (failed(programs.fill(ownBackward, backward, chunk, given)))
        return failure();
      finish(ownBackward);
    }
    return success();
  }

  LogicalResult cutEvaluation() {
    func::FuncOp old = getStepFunction(whole, StepRole::evaluate);
    if (!old)
      return success();
    ChunkFlow flow(old, step.placement.positionOf, /*isBackward=*/false);
    // A running statistic is where training makes the batch's, so that what follows is in the same chunks as there.
    auto findStatistic = [&](LoadOp load) -> std::optional<int64_t> {
      ResourceOp resource = programs.getResource(load.getResourceAttr());
      if (!isOfRunningStatistic(resource))
        return std::nullopt;
      auto found = parameterChunks.find(resource.getOfAttr().getAttr());
      return found != parameterChunks.end() ? std::optional(found->second.front()) : std::nullopt;
    };
    flow.assign([&](FlatSymbolRefAttr) { return chunkCount - 1; }, kIsOfNoChunk, findStatistic);
    for (auto load : old.front().getOps<LoadOp>())
      if (flow.getChunk(load))
        plan::setLayouts(load, {programs.getResource(load.getResourceAttr()).getLayout()});
    if (failed(flow.requireOperands(kProvidesNothing)) || failed(checkWeights(flow)))
      return failure();
    for (int64_t chunk = 0; chunk < chunkCount; ++chunk) {
      func::FuncOp function = programs.createFunction(old.getLoc(), StepRole::evaluate, chunk);
      IRMapping mapping;
      if (failed(programs.fill(function, flow, chunk, mapping)))
        return failure();
      finish(function);
    }
    return success();
  }

  /// Lets the first chunk of each position compute what the functions of its position read of `@init`.
  LogicalResult buildInits() {
    func::FuncOp old = getStepFunction(whole, StepRole::init);
    if (!old)
      return success();
    for (auto [position, program] : llvm::enumerate(programs.getPrograms())) {
      int64_t chunk = llvm::find(step.placement.positionOf, position) - step.placement.positionOf.begin();
      llvm::DenseSet<Operation *> needed;
      SmallVector<Operation *> open;
      for (auto store : old.front().getOps<StoreOp>())
        if (programs.isUsed(store.getResourceAttr(), chunk))
          open.push_back(store);
      if (open.empty())
        continue;
      while (!open.empty()) {
        Operation *op = open.pop_back_val();
        if (needed.insert(op).second)
          for (Value operand : op->getOperands())
            open.push_back(operand.getDefiningOp());
      }
      func::FuncOp function = programs.createFunction(old.getLoc(), StepRole::init, chunk);
      OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
      IRMapping mapping;
      for (Operation &op : old.front().without_terminator())
        if (needed.contains(&op))
          programs.clone(builder, op, mapping, chunk);
      finish(function);
    }
    return success();
  }

  LogicalResult buildUpdates() {
    ChunkUpdates updates(whole, programs, step.placement, parameterChunks);
    for (const schedule::Schedule &schedule : step.positions) {
      func::FuncOp lastReduce;
      bool isFirst = true;
      for (const schedule::Action &action : schedule.actions)
        if (action.kind == schedule::ActionKind::Reduce)
          lastReduce = updates.buildReduce(action.chunk);
      updates.buildTiedSums(lastReduce);
      for (const schedule::Action &action : schedule.actions)
        if (action.kind == schedule::ActionKind::Update) {
          if (failed(updates.buildUpdate(action.chunk, isFirst)))
            return failure();
          isFirst = false;
        }
    }
    return success();
  }

  ModuleOp module;
  ProgramOp whole;
  schedule::Pipeline step;
  int64_t chunkCount;
  ChunkPrograms programs;
  ParameterChunks parameterChunks;
};

} // namespace

/// Returns the step of a pipeline for as many micro-batches as the whole program runs. Chunks that follow each other on
/// one position are one.
static FailureOr<schedule::JoinedPipeline> makeStep(ModuleOp module, ProgramOp whole, plan::PipelineAttr pipeline) {
  int64_t microBatches = 0;
  for (auto schedule : whole.getOps<ScheduleOp>()) {
    FailureOr<schedule::Schedule> actions = expandSchedule(schedule);
    if (failed(actions))
      return failure();
    microBatches = llvm::count_if(
        actions->actions, [](const schedule::Action &action) { return action.kind == schedule::ActionKind::Forward; });
  }
  llvm::Expected<schedule::Pipeline> step = plan::makeStep(pipeline, microBatches);
  if (!step)
    return module.emitError("has no schedule: ") << llvm::toString(step.takeError());
  if (step->placement.chains.size() > 1)
    return module.emitError("has the schedule ") << printable(pipeline.getSchedule().getValue())
                                                 << ", which programs cannot run yet: it runs the model in two "
                                                    "directions";
  if (schedule::hasSplitBackwards(*step))
    schedule::splitBackwards(*step);
  llvm::Expected<schedule::JoinedPipeline> joined = schedule::joinNeighbours(*step);
  if (!joined)
    return module.emitError("has no schedule: ") << llvm::toString(joined.takeError());
  return std::move(*joined);
}

/// Numbers the chunks of a program's operators anew.
static void renumberChunks(ProgramOp whole, ArrayRef<int64_t> numberOf) {
  whole.walk([&](Operation *op) {
    if (auto chunk = op->getAttrOfType<IntegerAttr>(plan::kChunkAttr))
      op->setAttr(plan::kChunkAttr, IntegerAttr::get(chunk.getType(), numberOf[chunk.getInt()]));
  });
}

LogicalResult windlass::sched::cutChunks(ModuleOp module, ProgramOp whole, plan::PipelineAttr pipeline) {
  FailureOr<schedule::JoinedPipeline> step = makeStep(module, whole, pipeline);
  if (failed(step))
    return failure();
  renumberChunks(whole, step->numberOf);
  return ChunkCutter(module, whole, std::move(step->pipeline)).run();
}
