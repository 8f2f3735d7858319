#include "SpmdEvaluator.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;

FailureOr<SmallVector<Tensor>> windlass::interpreter::runKernel(Operation &op, ArrayRef<Tensor> inputs,
                                                                ArrayRef<RankedTensorType> types, Precision precision) {
  llvm::Expected<SmallVector<Tensor>> results =
      evaluate(op.getName().getStringRef(), op.getAttrDictionary(), inputs, types, precision);
  if (results)
    return std::move(*results);
  return op.emitError("cannot be executed: ") << llvm::toString(results.takeError());
}

void FunctionRun::define(Value value, RankValues &&parts) {
  int64_t count = std::distance(value.use_begin(), value.use_end());
  if (!count)
    return;
  uses[value] = count;
  values[value] = std::move(parts);
}

LogicalResult FunctionRun::begin(SpmdValues arguments) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function.emitError("cannot be executed: needs one block");
  Block &block = function.getBody().front();
  if (block.getNumArguments() != arguments.size())
    return function.emitError("has ") << block.getNumArguments() << " arguments but is given " << arguments.size();
  for (auto [argument, parts] : llvm::zip_equal(block.getArguments(), arguments))
    define(argument, std::move(parts));
  next = block.begin();
  return success();
}

LogicalResult FunctionRun::takeOperands(Operation &op) {
  operands.clear();
  for (Value operand : op.getOperands()) {
    auto found = values.find(operand);
    if (found == values.end())
      return op.emitError("cannot be executed: an operand is defined outside of the function's block");
    if (--uses[operand] == 0) {
      operands.push_back(std::move(found->second));
      values.erase(found);
    } else {
      operands.push_back(found->second);
    }
  }
  isTaken = true;
  return success();
}

LogicalResult FunctionRun::runOnRanks(Operation &op, LocalTypeOf localType, SpmdValues &results) {
  SmallVector<RankedTensorType> types;
  for (OpResult result : op.getResults()) {
    auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
    if (!type)
      return op.emitError("cannot be executed: a result is no tensor");
    types.push_back(localType(result));
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    SmallVector<Tensor> inputs;
    for (RankValues &operand : operands)
      inputs.push_back(operand[rank]);
    FailureOr<SmallVector<Tensor>> computed = runKernel(op, inputs, types, precision);
    if (failed(computed))
      return failure();
    for (auto [result, tensor] : llvm::zip_equal(results, *computed))
      result.push_back(std::move(tensor));
  }
  return success();
}

FailureOr<bool> FunctionRun::advance(SpecialOp special, LocalTypeOf localType) {
  for (Block &block = function.getBody().front(); next != block.end(); ++next) {
    Operation &op = *next;
    if (!isTaken && failed(takeOperands(op)))
      return failure();
    if (llvm::isa<func::ReturnOp>(op))
      return true;
    SpmdValues results(op.getNumResults());
    FailureOr<Progress> progress = special(op, operands, results);
    if (failed(progress))
      return failure();
    if (*progress == Progress::waits)
      return false;
    if (*progress == Progress::kernel) {
      if (failed(runOnRanks(op, localType, results)))
        return failure();
    } else {
      for (auto [result, parts] : llvm::zip_equal(op.getResults(), results))
        for (Tensor &part : parts)
          roundTo(getElementTypeOrSelf(result.getType()), part);
    }
    for (auto [result, parts] : llvm::zip_equal(op.getResults(), results))
      define(result, std::move(parts));
    isTaken = false;
  }
  return function.emitError("cannot be executed: does not return");
}

FailureOr<SpmdValues> windlass::interpreter::runFunction(func::FuncOp function, SpmdValues arguments, int64_t ranks,
                                                         Precision precision, SpecialOp special,
                                                         LocalTypeOf localType) {
  FunctionRun run(function, ranks, precision);
  if (failed(run.begin(std::move(arguments))))
    return failure();
  FailureOr<bool> isDone = run.advance(special, localType);
  if (failed(isDone))
    return failure();
  return run.takeResults();
}
