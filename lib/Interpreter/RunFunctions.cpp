// Levels L1 to L3: functions on whole values, or on the parts that layouts give each rank.
#include "Runners.h"
#include "SpmdEvaluator.h"

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;
using windlass::plan::LayoutAttr;
using windlass::plan::MeshAttr;

namespace {

/// A parameter on every rank: the copy that @microbatch reads, and the master that @update reads and writes.
struct Stored {
  train::ParameterOp op;
  std::optional<Placement> compute, master;
  RankValues computeParts, masterParts;
};

class FunctionRunner {
public:
  FunctionRunner(ModuleOp module, const RunInputs &inputs)
      : module(module), inputs(inputs), scaling(module, inputs.options) {
    mesh = module->getAttrOfType<MeshAttr>(plan::kMeshAttr);
    // A module of L2 may name nothing of the dialect, but runs on a mesh of one rank.
    module.getContext()->getOrLoadDialect<plan::PlanDialect>();
    if (!mesh)
      mesh = MeshAttr::get(module.getContext(), {});
    ranks = mesh.getRanks();
    everyone = getEveryone(mesh);
    replicas = getReplicas(mesh);
  }

  LogicalResult loadParameters();
  LogicalResult loadTrajectory(int64_t step);
  void keepTrajectory(int64_t step, RunResult &result);
  FailureOr<double> lossOf(func::FuncOp function, int64_t k);
  FailureOr<RunResult> runSteps();

  int64_t ranks = 1;

private:
  /// Reports the error at the op.
  template <class T> FailureOr<T> at(Operation *op, llvm::Expected<T> value) {
    if (value)
      return std::move(*value);
    return op->emitError("cannot be executed: ") << llvm::toString(value.takeError());
  }
  FailureOr<Placement> placementOf(Operation *op, LayoutAttr layout, Type type);
  LayoutAttr layoutOf(Value value);
  LayoutAttr wholeIfMissing(Attribute layout, Type type);
  RankValues cutForAll(const Placement &placement, const Tensor &whole);
  /// Assembles one tensor per data-parallel replica from the replica's ranks.
  FailureOr<SmallVector<Tensor>> assembleEach(Operation *op, const Placement &placement, const RankValues &parts,
                                              ArrayRef<SmallVector<int64_t>> of);
  FailureOr<Tensor> assembleWhole(Operation *op, const Placement &placement, const RankValues &parts);

  FailureOr<SpmdValues> runFunction(func::FuncOp function, SpmdValues arguments, bool isPerReplica, bool isUpdate);
  FailureOr<bool> runSpecial(Operation &op, ArrayRef<RankValues> operands, SpmdValues &results, bool isPerReplica,
                             bool isUpdate);
  LogicalResult write(train::WriteOp op, const RankValues &value);
  /// Brings the gradients of a micro-batch to the layouts in which `@update` takes them.
  LogicalResult accumulateLayouts(func::FuncOp microbatch, func::FuncOp update, SpmdValues &results);
  FailureOr<RankValues> reshard(Operation *op, const Placement &from, const Placement &to, const RankValues &parts,
                                ArrayRef<SmallVector<int64_t>> of);
  /// Returns each rank's part of the inputs of its micro-batch: replica j runs micro-batch `firstK` + j.
  FailureOr<RankValues> inputParts(func::FuncOp function, unsigned argument, int64_t firstK);
  /// Returns the arguments of a function of micro-batch data.
  FailureOr<SpmdValues> argumentsOf(func::FuncOp function, int64_t firstK);
  /// Runs the micro-batches of a step. Returns the sums of their results: each replica's share of the loss, and the
  /// gradients in the layouts in which `@update` takes them.
  FailureOr<SpmdValues> sumMicrobatches(func::FuncOp microbatch, func::FuncOp update);
  /// Assembles the replicas' shares of the loss and adds them up.
  FailureOr<double> sumOfShares(func::FuncOp microbatch, const RankValues &shares);
  /// Returns the arguments of `@update` among the results of `@microbatch`, and keeps them as tensors of the result.
  FailureOr<SpmdValues> gradientsOf(func::FuncOp microbatch, func::FuncOp update, const SpmdValues &sums,
                                    RunResult &result);
  /// Runs `@update` and keeps the norm of the gradients where it returns one.
  LogicalResult runUpdate(func::FuncOp update, SpmdValues gradients, RunResult &result);
  /// Computes the losses of the first G micro-batches with the parameters that the steps have left.
  LogicalResult evaluate(RunResult &result);
  LogicalResult dumpParameters(RunResult &result);

  ModuleOp module;
  const RunInputs &inputs;
  LossScaling scaling;
  MeshAttr mesh;
  std::vector<SmallVector<int64_t>> everyone, replicas;
  llvm::MapVector<StringAttr, Stored> parameters;
  SpmdValues initValues;
  int64_t step = 0;
};

} // namespace

FailureOr<Placement> FunctionRunner::placementOf(Operation *op, LayoutAttr layout, Type type) {
  return at(op, Placement::create(layout, mesh, llvm::cast<RankedTensorType>(type).getShape()));
}

LayoutAttr FunctionRunner::wholeIfMissing(Attribute layout, Type type) {
  if (auto given = llvm::dyn_cast_or_null<LayoutAttr>(layout))
    return given;
  return LayoutAttr::getWhole(llvm::cast<RankedTensorType>(type));
}

LayoutAttr FunctionRunner::layoutOf(Value value) {
  Attribute layout;
  if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
    auto function = llvm::cast<func::FuncOp>(argument.getOwner()->getParentOp());
    layout = function.getArgAttr(argument.getArgNumber(), plan::kLayoutAttr);
  } else {
    auto result = llvm::cast<OpResult>(value);
    if (auto reshard = llvm::dyn_cast<plan::ReshardOp>(result.getOwner()))
      return reshard.getTo();
    auto layouts = result.getOwner()->getAttrOfType<ArrayAttr>(plan::kLayoutsAttr);
    if (layouts && result.getResultNumber() < layouts.size())
      layout = layouts[result.getResultNumber()];
  }
  return wholeIfMissing(layout, value.getType());
}

RankValues FunctionRunner::cutForAll(const Placement &placement, const Tensor &whole) {
  RankValues parts;
  for (int64_t rank = 0; rank < ranks; ++rank)
    parts.push_back(placement.cut(whole, rank));
  return parts;
}

FailureOr<SmallVector<Tensor>> FunctionRunner::assembleEach(Operation *op, const Placement &placement,
                                                            const RankValues &parts,
                                                            ArrayRef<SmallVector<int64_t>> of) {
  SmallVector<Tensor> wholes;
  for (const SmallVector<int64_t> &members : of) {
    FailureOr<Tensor> whole = at(op, placement.assemble(parts, members));
    if (failed(whole))
      return failure();
    wholes.push_back(std::move(*whole));
  }
  return wholes;
}

FailureOr<Tensor> FunctionRunner::assembleWhole(Operation *op, const Placement &placement, const RankValues &parts) {
  FailureOr<SmallVector<Tensor>> wholes = assembleEach(op, placement, parts, everyone);
  if (failed(wholes))
    return failure();
  return wholes->front();
}

FailureOr<RankValues> FunctionRunner::reshard(Operation *op, const Placement &from, const Placement &to,
                                              const RankValues &parts, ArrayRef<SmallVector<int64_t>> of) {
  FailureOr<SmallVector<Tensor>> wholes = assembleEach(op, from, parts, of);
  if (failed(wholes))
    return failure();
  RankValues results(ranks);
  for (auto [members, whole] : llvm::zip_equal(of, *wholes))
    for (int64_t rank : members)
      results[rank] = to.cut(whole, rank);
  return results;
}

LogicalResult FunctionRunner::loadParameters() {
  for (auto op : module.getOps<train::ParameterOp>()) {
    Stored stored{op, {}, {}, {}, {}};
    FailureOr<Tensor> whole = at(op, inputs.parameter(op.getLogicalName(), op.getTensorType(), op.getRole()));
    Attribute compute = op->getAttr(plan::kLayoutAttr), master = op->getAttr(plan::kMasterLayoutAttr);
    FailureOr<Placement> computePlace = placementOf(op, wholeIfMissing(compute, op.getType()), op.getType());
    FailureOr<Placement> masterPlace =
        placementOf(op, wholeIfMissing(master ? master : compute, op.getType()), op.getType());
    if (failed(whole) || failed(computePlace) || failed(masterPlace))
      return failure();
    stored.computeParts = cutForAll(*computePlace, *whole);
    stored.masterParts = cutForAll(*masterPlace, *whole);
    stored.compute = std::move(*computePlace);
    stored.master = std::move(*masterPlace);
    parameters.insert({op.getSymNameAttr(), std::move(stored)});
  }
  return success();
}

LogicalResult FunctionRunner::loadTrajectory(int64_t step) {
  for (auto &[symbol, stored] : parameters) {
    FailureOr<Tensor> whole =
        at(stored.op, inputs.parameterBefore(stored.op.getLogicalName(), stored.op.getTensorType(), step));
    if (failed(whole))
      return failure();
    stored.computeParts = cutForAll(*stored.compute, *whole);
  }
  return success();
}

FailureOr<RankValues> FunctionRunner::inputParts(func::FuncOp function, unsigned argument, int64_t firstK) {
  auto name = function.getArgAttrOfType<StringAttr>(argument, train::kInputAttr);
  auto type = llvm::cast<RankedTensorType>(function.getArgumentTypes()[argument]);
  FailureOr<Placement> placement =
      placementOf(function, wholeIfMissing(function.getArgAttr(argument, plan::kLayoutAttr), type), type);
  if (failed(placement))
    return failure();
  RankValues parts(ranks);
  for (auto [j, replica] : llvm::enumerate(replicas)) {
    FailureOr<Tensor> whole =
        at(function, inputs.input(name.getValue(), type, function.getArgAttrDict(argument), firstK + int64_t(j)));
    if (failed(whole))
      return failure();
    for (int64_t rank : replica)
      parts[rank] = placement->cut(*whole, rank);
  }
  return parts;
}

LogicalResult FunctionRunner::write(train::WriteOp op, const RankValues &value) {
  Stored &stored = parameters.find(op.getParameterAttr().getAttr())->second;
  FailureOr<Placement> place = placementOf(op, layoutOf(op.getValue()), op.getValue().getType());
  if (failed(place))
    return failure();
  bool isMaster = place->isSameAs(*stored.master);
  if (!isMaster && !place->isSameAs(*stored.compute))
    return op.emitError(
        "writes a value whose layout is neither that of the parameter's master nor of its compute copy");
  FailureOr<RankValues> master = reshard(op, *place, *stored.master, value, everyone);
  FailureOr<RankValues> compute = reshard(op, *place, *stored.compute, value, everyone);
  if (failed(master) || failed(compute))
    return failure();
  stored.masterParts = std::move(*master);
  stored.computeParts = std::move(*compute);
  return success();
}

static bool namesAxis(LayoutAttr layout, StringRef axis) {
  for (plan::DimLayoutAttr dim : layout.getDims())
    for (plan::FactorLayoutAttr factor : dim.getFactors())
      for (StringAttr name : factor.getAxes())
        if (name.getValue() == axis)
          return true;
  return false;
}

FailureOr<bool> FunctionRunner::runSpecial(Operation &op, ArrayRef<RankValues> operands, SpmdValues &results,
                                           bool isPerReplica, bool isUpdate) {
  if (auto read = llvm::dyn_cast<train::ReadOp>(op)) {
    auto found = parameters.find(read.getParameterAttr().getAttr());
    if (found == parameters.end())
      return op.emitError("names no train.parameter: ") << read.getParameterAttr();
    FailureOr<Placement> place = placementOf(&op, layoutOf(read.getResult()), read.getResult().getType());
    if (failed(place))
      return failure();
    Stored &stored = found->second;
    // Where layouts are not materialized yet, a read gives the layout in which consumers find the value.
    FailureOr<RankValues> parts = isUpdate && place->isSameAs(*stored.master)
                                      ? FailureOr<RankValues>(stored.masterParts)
                                      : reshard(&op, *stored.compute, *place, stored.computeParts, everyone);
    if (failed(parts))
      return failure();
    results[0] = std::move(*parts);
    return true;
  }
  if (auto writeOp = llvm::dyn_cast<train::WriteOp>(op)) {
    if (!parameters.count(writeOp.getParameterAttr().getAttr()))
      return op.emitError("names no train.parameter: ") << writeOp.getParameterAttr();
    if (!isUpdate)
      return op.emitError("writes a parameter outside of @update");
    if (failed(write(writeOp, operands[0])))
      return failure();
    return true;
  }
  if (auto hyperparameter = llvm::dyn_cast<train::HyperparameterOp>(op)) {
    llvm::Expected<double> value = inputs.hyperparameter(hyperparameter.getName(), step, scaling);
    if (!value)
      return op.emitError("cannot be executed: ") << llvm::toString(value.takeError());
    results[0] = RankValues(ranks, Tensor::filled(inputs.floatKind(), {}, *value));
    return true;
  }
  if (llvm::isa<train::StashOp>(op)) {
    results[0] = operands[0];
    return true;
  }
  if (auto reshardOp = llvm::dyn_cast<plan::ReshardOp>(op)) {
    FailureOr<Placement> from = placementOf(&op, reshardOp.getFrom(), reshardOp.getInput().getType());
    FailureOr<Placement> to = placementOf(&op, reshardOp.getTo(), reshardOp.getInput().getType());
    if (failed(from) || failed(to))
      return failure();
    // What names an axis of the replicas is read of a parameter, which all of them share.
    bool isShared = !isPerReplica || llvm::any_of(mesh.axesOf(plan::AxisRole::replica), [&](StringAttr axis) {
      return namesAxis(reshardOp.getFrom(), axis);
    });
    FailureOr<RankValues> parts = reshard(&op, *from, *to, operands[0], isShared ? everyone : replicas);
    if (failed(parts))
      return failure();
    results[0] = std::move(*parts);
    return true;
  }
  // Values that come from attributes are made whole and then cut, because the attributes describe the whole.
  if (llvm::isa<train::ConstantOp, train::IotaOp>(op) && ranks > 1) {
    auto type = llvm::cast<RankedTensorType>(op.getResult(0).getType());
    FailureOr<Placement> place = placementOf(&op, layoutOf(op.getResult(0)), type);
    FailureOr<SmallVector<Tensor>> whole = runKernel(op, {}, {type}, inputs.options.precision);
    if (failed(place) || failed(whole))
      return failure();
    results[0] = cutForAll(*place, whole->front());
    return true;
  }
  return false;
}

FailureOr<SpmdValues> FunctionRunner::runFunction(func::FuncOp function, SpmdValues arguments, bool isPerReplica,
                                                  bool isUpdate) {
  auto special = [&](Operation &op, ArrayRef<RankValues> operands, SpmdValues &results) -> FailureOr<Progress> {
    FailureOr<bool> isDone = runSpecial(op, operands, results, isPerReplica, isUpdate);
    if (failed(isDone))
      return failure();
    return *isDone ? Progress::done : Progress::kernel;
  };
  auto localType = [&](OpResult result) {
    auto type = llvm::cast<RankedTensorType>(result.getType());
    LayoutAttr layout = layoutOf(result);
    return layout.getDims().size() == type.getShape().size() ? layout.getLocalType(type, mesh) : type;
  };
  return interpreter::runFunction(function, std::move(arguments), ranks, inputs.options.precision, special, localType);
}

FailureOr<double> FunctionRunner::lossOf(func::FuncOp function, int64_t k) {
  SpmdValues arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (!function.getArgAttrOfType<StringAttr>(i, train::kInputAttr))
      return function.emitError("argument ") << i << " has no attribute " << train::kInputAttr;
    FailureOr<RankValues> parts = inputParts(function, i, k);
    if (failed(parts))
      return failure();
    arguments.push_back(std::move(*parts));
  }
  FailureOr<SpmdValues> results = runFunction(function, std::move(arguments), false, false);
  if (failed(results))
    return failure();
  if (results->size() != 1 || results->front().front().getElements() != 1)
    return function.emitError("must return one scalar");
  return results->front().front().at(0);
}

FailureOr<SpmdValues> FunctionRunner::argumentsOf(func::FuncOp function, int64_t firstK) {
  SpmdValues arguments;
  for (unsigned n = 0; n < function.getNumArguments(); ++n) {
    if (function.getArgAttr(n, train::kInputAttr)) {
      FailureOr<RankValues> parts = inputParts(function, n, firstK);
      if (failed(parts))
        return failure();
      arguments.push_back(std::move(*parts));
      continue;
    }
    auto index = function.getArgAttrOfType<IntegerAttr>(n, train::kInitValueAttr);
    if (!index || index.getInt() < 0 || index.getInt() >= int64_t(initValues.size()))
      return function.emitError("argument ") << n << " is neither an input nor a result of @init";
    arguments.push_back(initValues[index.getInt()]);
  }
  return arguments;
}

LogicalResult FunctionRunner::evaluate(RunResult &result) {
  auto function = train::getEvaluateFunction(module);
  if (!function)
    return success();
  int64_t replicaCount = replicas.size();
  for (int64_t k = 0; k + replicaCount <= inputs.microBatches; k += replicaCount) {
    FailureOr<SpmdValues> arguments = argumentsOf(function, k);
    if (failed(arguments))
      return failure();
    FailureOr<SpmdValues> results = runFunction(function, std::move(*arguments), true, false);
    if (failed(results))
      return failure();
    if (results->size() != 1)
      return function.emitError("must return the loss");
    Type type = function.getResultTypes()[0];
    FailureOr<Placement> place =
        placementOf(function, wholeIfMissing(function.getResultAttr(0, plan::kLayoutAttr), type), type);
    if (failed(place))
      return failure();
    FailureOr<SmallVector<Tensor>> losses = assembleEach(function, *place, results->front(), replicas);
    if (failed(losses))
      return failure();
    for (auto [j, loss] : llvm::enumerate(*losses))
      inputs.addEvaluation(k + int64_t(j), loss, result);
  }
  return success();
}

LogicalResult FunctionRunner::accumulateLayouts(func::FuncOp microbatch, func::FuncOp update, SpmdValues &results) {
  for (unsigned r = 1; r < microbatch.getNumResults(); ++r) {
    Attribute weight = microbatch.getResultAttr(r, train::kGradientAttr);
    for (unsigned n = 0; n < update.getNumArguments(); ++n) {
      if (update.getArgAttr(n, train::kGradientAttr) != weight)
        continue;
      Type type = update.getArgumentTypes()[n];
      LayoutAttr made = wholeIfMissing(microbatch.getResultAttr(r, plan::kLayoutAttr), type);
      SmallVector<plan::UnreducedAttr> unreduced;
      for (StringAttr axis : mesh.axesOf(plan::AxisRole::replica))
        unreduced.push_back(plan::UnreducedAttr::get(module.getContext(), axis, train::ReductionKind::sum));
      llvm::append_range(unreduced, made.getUnreduced());
      made = made.withUnreduced(unreduced);
      FailureOr<Placement> from = placementOf(microbatch, made, type);
      FailureOr<Placement> to =
          placementOf(update, wholeIfMissing(update.getArgAttr(n, plan::kLayoutAttr), type), type);
      if (failed(from) || failed(to))
        return failure();
      if (from->isSameAs(*to))
        continue;
      FailureOr<RankValues> parts = reshard(microbatch, *from, *to, results[r], everyone);
      if (failed(parts))
        return failure();
      results[r] = std::move(*parts);
    }
  }
  return success();
}

FailureOr<SpmdValues> FunctionRunner::sumMicrobatches(func::FuncOp microbatch, func::FuncOp update) {
  int64_t replicaCount = replicas.size(), total = inputs.microBatches;
  SpmdValues sums;
  for (int64_t i = 0; i < total / replicaCount; ++i) {
    FailureOr<SpmdValues> arguments = argumentsOf(microbatch, step * total + i * replicaCount);
    if (failed(arguments))
      return failure();
    FailureOr<SpmdValues> results = runFunction(microbatch, std::move(*arguments), true, false);
    if (failed(results) || failed(accumulateLayouts(microbatch, update, *results)))
      return failure();
    if (i == 0) {
      sums = std::move(*results);
      continue;
    }
    for (auto [sum, value] : llvm::zip_equal(sums, *results))
      for (auto [all, one] : llvm::zip_equal(sum, value))
        for (int64_t e = 0; e < all.getElements(); ++e)
          all.set(e, all.at(e) + one.at(e));
  }
  if (sums.empty())
    return microbatch.emitError("must return the loss share and gradients");
  return sums;
}

FailureOr<double> FunctionRunner::sumOfShares(func::FuncOp microbatch, const RankValues &shares) {
  Type type = microbatch.getResultTypes()[0];
  FailureOr<Placement> place =
      placementOf(microbatch, wholeIfMissing(microbatch.getResultAttr(0, plan::kLayoutAttr), type), type);
  if (failed(place))
    return failure();
  FailureOr<SmallVector<Tensor>> whole = assembleEach(microbatch, *place, shares, replicas);
  if (failed(whole))
    return failure();
  double loss = 0;
  for (const Tensor &share : *whole)
    loss += share.at(0);
  return loss;
}

FailureOr<SpmdValues> FunctionRunner::gradientsOf(func::FuncOp microbatch, func::FuncOp update, const SpmdValues &sums,
                                                  RunResult &result) {
  SpmdValues gradients;
  for (unsigned n = 0; n < update.getNumArguments(); ++n) {
    auto weight = update.getArgAttrOfType<FlatSymbolRefAttr>(n, train::kGradientAttr);
    std::optional<unsigned> from;
    for (unsigned r = 0; weight && r < microbatch.getNumResults(); ++r)
      if (microbatch.getResultAttr(r, train::kGradientAttr) == weight)
        from = r;
    if (!from || !parameters.count(weight.getAttr()))
      return update.emitError("argument ") << n << " is no gradient that @microbatch returns";
    Type type = update.getArgumentTypes()[n];
    FailureOr<Placement> place =
        placementOf(update, wholeIfMissing(update.getArgAttr(n, plan::kLayoutAttr), type), type);
    if (failed(place))
      return failure();
    FailureOr<Tensor> whole = assembleWhole(update, *place, sums[*from]);
    if (failed(whole))
      return failure();
    // What a running statistic accumulates is no derivative, nor is it of a scaled loss.
    train::ParameterOp parameter = parameters.find(weight.getAttr())->second.op;
    if (!parameter.isRunningStatistic())
      result.tensors[("gradient." + Twine(step) + "." + parameter.getLogicalName()).str()] =
          scaling.unscale(std::move(*whole));
    gradients.push_back(sums[*from]);
  }
  return gradients;
}

LogicalResult FunctionRunner::runUpdate(func::FuncOp update, SpmdValues gradients, RunResult &result) {
  FailureOr<SpmdValues> norms = runFunction(update, std::move(gradients), false, true);
  if (failed(norms))
    return failure();
  if (norms->empty())
    return success();
  Type type = update.getResultTypes()[0];
  FailureOr<Placement> place =
      placementOf(update, wholeIfMissing(update.getResultAttr(0, plan::kLayoutAttr), type), type);
  if (failed(place))
    return failure();
  FailureOr<Tensor> norm = assembleWhole(update, *place, norms->front());
  if (failed(norm))
    return failure();
  result.gradientNorms.push_back(norm->at(0));
  return scaling.finishStep(module.getLoc(), step, norm->at(0));
}

FailureOr<RunResult> FunctionRunner::runSteps() {
  auto init = train::getInitFunction(module);
  auto microbatch = train::getMicrobatchFunction(module);
  auto update = train::getUpdateFunction(module);
  if (!microbatch || !update)
    return module.emitError("needs the functions @microbatch and @update");
  if (int64_t replicaCount = replicas.size(); inputs.microBatches % replicaCount)
    return module.emitError() << replicaCount << " data-parallel replicas cannot share " << inputs.microBatches
                              << " micro-batches: choose a multiple";
  if (init) {
    FailureOr<SpmdValues> values = runFunction(init, {}, false, false);
    if (failed(values))
      return failure();
    initValues = std::move(*values);
  }

  RunResult result;
  result.ranks = ranks;
  for (step = 0; step < inputs.options.steps; ++step) {
    if (inputs.options.keepsTrajectory)
      keepTrajectory(step, result);
    FailureOr<SpmdValues> sums = sumMicrobatches(microbatch, update);
    if (failed(sums))
      return failure();
    FailureOr<double> loss = sumOfShares(microbatch, sums->front());
    if (failed(loss))
      return failure();
    result.losses.push_back(*loss);
    FailureOr<SpmdValues> gradients = gradientsOf(microbatch, update, *sums, result);
    if (failed(gradients) || failed(runUpdate(update, std::move(*gradients), result)))
      return failure();
  }
  if (failed(evaluate(result)) || failed(dumpParameters(result)))
    return failure();
  return result;
}

void FunctionRunner::keepTrajectory(int64_t step, RunResult &result) {
  for (auto &[symbol, stored] : parameters) {
    if (stored.op.getRole() == train::Role::state)
      continue;
    llvm::Expected<Tensor> whole = stored.master->assemble(stored.masterParts, everyone.front());
    if (whole)
      result.tensors["before." + std::to_string(step) + "." + stored.op.getLogicalName().str()] = std::move(*whole);
    else
      llvm::consumeError(whole.takeError()); // Reported when the parameters are dumped.
  }
}

LogicalResult FunctionRunner::dumpParameters(RunResult &result) {
  for (auto &[symbol, stored] : parameters) {
    FailureOr<Tensor> whole = assembleWhole(stored.op, *stored.master, stored.masterParts);
    FailureOr<Tensor> copy = assembleWhole(stored.op, *stored.compute, stored.computeParts);
    if (failed(whole) || failed(copy))
      return failure();
    StringRef kind = stored.op.getRole() == train::Role::state ? "state." : "parameter.";
    result.tensors[(kind + stored.op.getLogicalName()).str()] = std::move(*whole);
  }
  return success();
}

FailureOr<RunResult> windlass::interpreter::runLoss(ModuleOp module, const RunInputs &inputs) {
  FunctionRunner runner(module, inputs);
  auto function = train::getLossFunction(module);
  if (failed(runner.loadParameters()))
    return failure();
  RunResult result;
  for (int64_t step = 0; step < inputs.options.steps; ++step) {
    if (inputs.options.trajectory && failed(runner.loadTrajectory(step)))
      return failure();
    double sum = 0, weights = 0;
    for (int64_t k = step * inputs.microBatches; k < (step + 1) * inputs.microBatches; ++k) {
      llvm::Expected<int64_t> weight = inputs.averagesTokens() ? inputs.labelCount(k) : llvm::Expected<int64_t>(1);
      if (!weight)
        return module.emitError("cannot be executed: ") << llvm::toString(weight.takeError());
      FailureOr<double> loss = runner.lossOf(function, k);
      if (failed(loss))
        return failure();
      // The mean over no labels is NaN, and its weight is 0.
      if (*weight != 0)
        sum += *loss * static_cast<double>(*weight);
      weights += static_cast<double>(*weight);
    }
    result.losses.push_back(sum / weights);
  }
  return result;
}

FailureOr<RunResult> windlass::interpreter::runFunctions(ModuleOp module, const RunInputs &inputs) {
  FunctionRunner runner(module, inputs);
  if (failed(runner.loadParameters()))
    return failure();
  return runner.runSteps();
}
