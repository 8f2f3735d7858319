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

FailureOr<SpmdValues> windlass::interpreter::runFunction(func::FuncOp function, SpmdValues arguments, int64_t ranks,
                                                         Precision precision, SpecialOp special,
                                                         LocalTypeOf localType) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function.emitError("cannot be executed: needs one block");
  Block &block = function.getBody().front();
  if (block.getNumArguments() != arguments.size())
    return function.emitError("has ") << block.getNumArguments() << " arguments but is given " << arguments.size();
  DenseMap<Value, RankValues> values;
  // Uses that are still to come: a value is dropped after its last one.
  DenseMap<Value, int64_t> uses;
  auto define = [&](Value value, RankValues &&parts) {
    int64_t count = std::distance(value.use_begin(), value.use_end());
    if (!count)
      return;
    uses[value] = count;
    values[value] = std::move(parts);
  };
  for (auto [argument, parts] : llvm::zip_equal(block.getArguments(), arguments))
    define(argument, std::move(parts));
  arguments.clear();

  for (Operation &op : block) {
    SpmdValues operands;
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
    if (llvm::isa<func::ReturnOp>(op))
      return operands;
    SpmdValues results(op.getNumResults());
    FailureOr<bool> handled = special(op, operands, results);
    if (failed(handled))
      return failure();
    if (!*handled) {
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
    } else {
      for (auto [result, parts] : llvm::zip_equal(op.getResults(), results))
        for (Tensor &part : parts)
          roundTo(getElementTypeOrSelf(result.getType()), part);
    }
    for (auto [result, parts] : llvm::zip_equal(op.getResults(), results))
      define(result, std::move(parts));
  }
  return function.emitError("cannot be executed: does not return");
}
