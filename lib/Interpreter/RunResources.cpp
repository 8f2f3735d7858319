// Level L4: functions on local tensors and resources, with collectives between ranks that run in lock step.
#include "Collectives.h"
#include "Machine.h"
#include "Runners.h"
#include "ScalarFunctions.h"
#include "SpmdEvaluator.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include <map>

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;

namespace {

class TensorMachine : public Machine {
public:
  TensorMachine(sched::ProgramOp program, Precision precision, Crossings &crossings)
      : program(program), mesh(program.getMesh()), precision(precision), crossings(crossings) {}

  RankValues read(sched::ResourceOp resource, int64_t slot) override {
    RankValues &parts = contents[{resource.getSymNameAttr(), slot}];
    if (!parts.empty())
      return parts;
    // Never written: there is nothing that it should hold.
    Tensor none(kindOf(resource.getTensorType().getElementType(), precision).value_or(ElementKind::f32),
                resource.getTensorType().getShape());
    return RankValues(mesh.getRanks(), none);
  }
  LogicalResult write(sched::ResourceOp resource, const RankValues &parts, int64_t slot) override {
    contents[{resource.getSymNameAttr(), slot}] = parts;
    return success();
  }
  FailureOr<bool> run(func::FuncOp function, const FunctionCall &call) override;

private:
  /// What a resource holds, for a function that runs for a micro-batch in `slot`.
  RankValues &contentsOf(FlatSymbolRefAttr name, int64_t slot) {
    auto resource = program.lookupSymbol<sched::ResourceOp>(name.getAttr());
    return contents[{name.getAttr(), resource.isOfSlot() ? slot : 0}];
  }
  LogicalResult begin(func::FuncOp function, std::pair<int64_t, int64_t> place);
  LogicalResult keepStash(func::FuncOp function, std::pair<int64_t, int64_t> place, SpmdValues results);
  FailureOr<Progress> runSpecial(Operation &op, ArrayRef<RankValues> operands, SpmdValues &results,
                                 const FunctionCall &call);
  FailureOr<Progress> runAllReduce(sched::AllReduceOp op, ArrayRef<RankValues> operands, SpmdValues &results);
  /// Runs `collective(members' operands) -> members' results` in every communicator over the axes.
  template <class Function>
  LogicalResult onMembers(Operation &op, ArrayAttr axes, const RankValues &operand, OpResult made, RankValues &result,
                          Function collective);
  /// Does so with each operand, which makes the result of its number.
  template <class Function>
  LogicalResult onEach(Operation &op, ArrayAttr axes, ArrayRef<RankValues> operands, SpmdValues &results,
                       Function collective);
  template <class Op, class Function>
  LogicalResult exchangeRows(Op op, ArrayRef<RankValues> operands, RankValues &result, Function exchange);
  LogicalResult runMap(sched::MapOp op, ArrayRef<RankValues> operands, SpmdValues &results);

  sched::ProgramOp program;
  plan::MeshAttr mesh;
  Precision precision;
  /// By resource and slot.
  DenseMap<std::pair<StringAttr, int64_t>, RankValues> contents;
  /// By chunk and slot: what a forward has handed to a backward that is still to come, and the first part of a backward
  /// in two to the second.
  std::map<std::pair<int64_t, int64_t>, SpmdValues> stash;
  Crossings &crossings;
  /// The function that waits for other positions.
  std::optional<FunctionRun> current;
};

} // namespace

LogicalResult TensorMachine::begin(func::FuncOp function, std::pair<int64_t, int64_t> place) {
  SpmdValues arguments;
  if (sched::isOfBackward(sched::getStep(function).getRole())) {
    auto handed = stash.find(place);
    if (handed == stash.end() || handed->second.size() != function.getNumArguments())
      return function.emitError("cannot be executed: nothing has handed over its stash in slot ") << place.second;
    if (function == sched::getLastBackward(program, place.first)) {
      arguments = std::move(handed->second);
      stash.erase(handed);
    } else {
      arguments = handed->second;
    }
  }
  current.emplace(function, mesh.getRanks(), precision);
  return current->begin(std::move(arguments));
}

/// Keeps what a function returns for those of its chunk and slot that follow.
LogicalResult TensorMachine::keepStash(func::FuncOp function, std::pair<int64_t, int64_t> place, SpmdValues results) {
  if (!sched::hasRole(function, sched::StepRole::forward)) {
    if (!results.empty())
      llvm::move(results, std::back_inserter(stash[place]));
    return success();
  }
  if (!stash.try_emplace(place, std::move(results)).second)
    return function.emitError("cannot be executed: slot ")
           << place.second << " still holds the stash of another micro-batch";
  return success();
}

FailureOr<bool> TensorMachine::run(func::FuncOp function, const FunctionCall &call) {
  std::pair<int64_t, int64_t> place(sched::getStep(function).getChunk(), call.slot);
  if (!current && failed(begin(function, place)))
    return failure();
  FailureOr<bool> isDone =
      current->advance([&](Operation &op, ArrayRef<RankValues> operands,
                           SpmdValues &results) { return runSpecial(op, operands, results, call); },
                       [](OpResult result) { return llvm::cast<RankedTensorType>(result.getType()); });
  if (failed(isDone) || !*isDone)
    return isDone;
  SpmdValues results = current->takeResults();
  current.reset();
  if (failed(keepStash(function, place, std::move(results))))
    return failure();
  return true;
}

FailureOr<Progress> TensorMachine::runAllReduce(sched::AllReduceOp op, ArrayRef<RankValues> operands,
                                                SpmdValues &results) {
  if (!op.getPositions()) {
    if (failed(onEach(*op, op.getAxes(), operands, results,
                      [&](ArrayRef<Tensor> members) { return allReduce(members, op.getKind()); })))
      return failure();
    return Progress::done;
  }
  if (operands.size() != 1)
    return op.emitError("cannot be executed: combines ") << operands.size() << " values over positions at once";
  auto combined =
      allReduceOverPositions(op, mesh, op.getAxes(), op.getKind(), crossings, program.getPosition(), operands[0]);
  if (failed(combined))
    return failure();
  if (combined->empty())
    return Progress::waits;
  results[0] = std::move(*combined);
  return Progress::done;
}

template <class Function>
LogicalResult TensorMachine::onMembers(Operation &op, ArrayAttr axes, const RankValues &operand, OpResult made,
                                       RankValues &result, Function collective) {
  auto communicators = communicatorsOver(mesh, axes);
  if (!communicators)
    return op.emitError("cannot be executed: the mesh ") << mesh << " has not all of the axes " << axes;
  result.resize(mesh.getRanks());
  for (const SmallVector<int64_t> &members : *communicators) {
    SmallVector<Tensor> parts;
    for (int64_t rank : members)
      parts.push_back(operand[rank]);
    SmallVector<Tensor> combined = collective(parts);
    for (auto [rank, tensor] : llvm::zip_equal(members, combined))
      result[rank] = std::move(tensor);
  }
  // The op's type says what a member receives: a dim that the members do not divide shows here.
  auto type = llvm::dyn_cast<RankedTensorType>(made.getType());
  if (type && result.front().getShape() != type.getShape())
    return op.emitError("cannot be executed: members do not receive parts of the type ") << type;
  return success();
}

template <class Function>
LogicalResult TensorMachine::onEach(Operation &op, ArrayAttr axes, ArrayRef<RankValues> operands, SpmdValues &results,
                                    Function collective) {
  for (auto [operand, made, result] : llvm::zip_equal(operands, op.getResults(), results))
    if (failed(onMembers(op, axes, operand, made, result, collective)))
      return failure();
  return success();
}

template <class Op, class Function>
LogicalResult TensorMachine::exchangeRows(Op op, ArrayRef<RankValues> operands, RankValues &result, Function exchange) {
  auto communicators = communicatorsOver(mesh, op.getAxes());
  if (!communicators || communicators->front().size() != static_cast<size_t>(op.getMembers()))
    return op.emitError("cannot be executed: the mesh ") << mesh << " has no such members over " << op.getAxes();
  result.resize(mesh.getRanks());
  for (const SmallVector<int64_t> &members : *communicators) {
    SmallVector<Tensor> rows;
    for (int64_t rank : members)
      rows.push_back(operands[0][rank]);
    SmallVector<Tensor> exchanged = exchange(rows, operands[1][members.front()], op.getExperts());
    for (auto [rank, tensor] : llvm::zip_equal(members, exchanged))
      result[rank] = std::move(tensor);
  }
  return success();
}

LogicalResult TensorMachine::runMap(sched::MapOp op, ArrayRef<RankValues> operands, SpmdValues &results) {
  FailureOr<func::FuncOp> function = scalarFunctionOf(op, op.getFunctionAttr(), operands.size(), op.getNumResults());
  if (failed(function))
    return failure();
  auto space = llvm::cast<RankedTensorType>(op.getResult(0).getType()).getShape();
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
    SmallVector<Tensor> inputs;
    for (auto [operand, attribute] : llvm::zip_equal(operands, op.getOperandDims())) {
      const Tensor &input = operand[rank];
      int64_t bytes = bytesOf(input.getKind());
      SmallVector<int64_t, 4> dense = denseStrides(input.getShape(), bytes), strides(space.size(), 0);
      for (auto [i, dim] : llvm::enumerate(llvm::cast<DenseI64ArrayAttr>(attribute).asArrayRef()))
        strides[dim] = dense[i];
      Tensor whole(input.getKind(), space);
      copyElements(whole.mutableData(), denseStrides(space, bytes), input.data(), strides, space, bytes);
      inputs.push_back(std::move(whole));
    }
    FailureOr<SmallVector<Tensor>> computed = applyScalarFunction(*function, inputs, space, precision);
    if (failed(computed))
      return failure();
    for (auto [result, tensor] : llvm::zip_equal(results, *computed))
      result.push_back(std::move(tensor));
  }
  return success();
}

FailureOr<Progress> TensorMachine::runSpecial(Operation &op, ArrayRef<RankValues> operands, SpmdValues &results,
                                              const FunctionCall &call) {
  auto done = [](LogicalResult result) -> FailureOr<Progress> {
    if (failed(result))
      return failure();
    return Progress::done;
  };
  if (auto load = llvm::dyn_cast<sched::LoadOp>(op)) {
    results[0] = contentsOf(load.getResourceAttr(), call.slot);
    if (results[0].empty())
      return op.emitError("reads ") << load.getResourceAttr() << " before anything wrote it";
    return Progress::done;
  }
  if (auto store = llvm::dyn_cast<sched::StoreOp>(op)) {
    contentsOf(store.getResourceAttr(), call.slot) = operands[0];
    return Progress::done;
  }
  if (auto add = llvm::dyn_cast<sched::AddToOp>(op)) {
    RankValues &held = contentsOf(add.getResourceAttr(), call.slot);
    if (!call.adds || held.empty()) {
      held = operands[0];
      return Progress::done;
    }
    for (auto [sum, value] : llvm::zip_equal(held, operands[0]))
      sum = combineAll({sum, value}, train::ReductionKind::sum);
    return Progress::done;
  }
  if (llvm::isa<sched::MoveOp>(op)) {
    results[0] = operands[0];
    return Progress::done;
  }
  if (auto map = llvm::dyn_cast<sched::MapOp>(op))
    return done(runMap(map, operands, results));
  if (auto reduce = llvm::dyn_cast<sched::AllReduceOp>(op))
    return runAllReduce(reduce, operands, results);
  auto isDim = [&](uint64_t dim) {
    return llvm::all_of(
        operands, [&](const RankValues &operand) { return dim < static_cast<uint64_t>(operand.front().getRank()); });
  };
  if (auto gather = llvm::dyn_cast<sched::AllGatherOp>(op); gather && isDim(gather.getDim()))
    return done(onEach(op, gather.getAxes(), operands, results,
                       [&](ArrayRef<Tensor> members) { return allGather(members, gather.getDim()); }));
  if (auto scatter = llvm::dyn_cast<sched::ReduceScatterOp>(op); scatter && isDim(scatter.getDim()))
    return done(onEach(op, scatter.getAxes(), operands, results, [&](ArrayRef<Tensor> members) {
      return reduceScatter(members, scatter.getDim(), train::ReductionKind::sum);
    }));
  if (auto exchange = llvm::dyn_cast<sched::AllToAllOp>(op);
      exchange && isDim(exchange.getSplitDim()) && isDim(exchange.getConcatDim()))
    return done(
        onMembers(op, exchange.getAxes(), operands[0], op.getResult(0), results[0], [&](ArrayRef<Tensor> members) {
          return allToAll(members, exchange.getSplitDim(), exchange.getConcatDim());
        }));
  if (auto permutation = llvm::dyn_cast<sched::PermuteOp>(op)) {
    auto communicators = communicatorsOver(mesh, permutation.getAxes());
    if (communicators && communicators->front().size() != permutation.getDestinations().size())
      return op.emitError("cannot be executed: sends for ")
             << permutation.getDestinations().size() << " members, but there are " << communicators->front().size();
    return done(onMembers(op, permutation.getAxes(), operands[0], op.getResult(0), results[0],
                          [&](ArrayRef<Tensor> members) { return permute(members, permutation.getDestinations()); }));
  }
  if (auto gather = llvm::dyn_cast<sched::GatherRowsOp>(op))
    return done(exchangeRows(gather, operands, results[0], gatherRows));
  if (auto scatter = llvm::dyn_cast<sched::ScatterRowsOp>(op))
    return done(exchangeRows(scatter, operands, results[0], scatterRows));
  if (auto own = llvm::dyn_cast<sched::OwnPartOp>(op); own && isDim(own.getDim()))
    return done(onMembers(op, own.getAxes(), operands[0], op.getResult(0), results[0],
                          [&](ArrayRef<Tensor> members) { return ownPart(members, own.getDim()); }));
  return Progress::kernel;
}

FailureOr<RunResult> windlass::interpreter::runResources(ModuleOp module, const RunInputs &inputs) {
  return runSchedule(
      module, inputs, [&](sched::ProgramOp program, Crossings &crossings) -> FailureOr<std::unique_ptr<Machine>> {
        return std::unique_ptr<Machine>(std::make_unique<TensorMachine>(program, inputs.options.precision, crossings));
      });
}
