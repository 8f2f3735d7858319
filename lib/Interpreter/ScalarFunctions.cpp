#include "ScalarFunctions.h"

#include "SpmdEvaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;

FailureOr<func::FuncOp> windlass::interpreter::scalarFunctionOf(Operation *user, FlatSymbolRefAttr name,
                                                                size_t arguments, size_t results) {
  auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(user, name);
  if (!function || function.isExternal() || !function.getBody().hasOneBlock())
    return user->emitError("cannot be executed: ") << name << " is no function with one block";
  if (function.getNumArguments() != arguments || function.getNumResults() != results)
    return user->emitError("cannot be executed: has ") << arguments << " operands and " << results << " results but "
                                                       << name << " is a " << function.getFunctionType();
  return function;
}

/// A literal, as a tensor without dims.
static std::optional<Tensor> literalOf(arith::ConstantOp op, Precision precision) {
  std::optional<ElementKind> kind = kindOf(op.getType(), precision);
  if (!kind)
    return std::nullopt;
  if (auto number = llvm::dyn_cast<FloatAttr>(op.getValue()))
    return Tensor::filled(*kind, {}, number.getValueAsDouble());
  if (auto number = llvm::dyn_cast<IntegerAttr>(op.getValue()))
    return Tensor::filled(*kind, {}, number.getType().isInteger(1) ? !number.getValue().isZero() : number.getInt());
  return std::nullopt;
}

FailureOr<SmallVector<Tensor>> windlass::interpreter::applyScalarFunction(func::FuncOp function,
                                                                          ArrayRef<Tensor> inputs,
                                                                          ArrayRef<int64_t> space,
                                                                          Precision precision) {
  DenseMap<Value, Tensor> values;
  for (auto [argument, input] : llvm::zip_equal(function.getArguments(), inputs))
    values[argument] = input;
  for (Operation &op : function.getBody().front()) {
    if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op)) {
      std::optional<Tensor> literal = literalOf(constant, precision);
      if (!literal)
        return op.emitError("cannot be executed: is no literal of f32, f64, i64, i32 or i1");
      values[constant] = Tensor::filled(literal->getKind(), space, literal->at(0));
      continue;
    }
    SmallVector<Tensor> operands;
    for (Value operand : op.getOperands()) {
      auto found = values.find(operand);
      if (found == values.end())
        return op.emitError("cannot be executed: an operand is defined outside of the function");
      operands.push_back(found->second);
    }
    if (llvm::isa<func::ReturnOp>(op))
      return operands;
    SmallVector<RankedTensorType> types;
    for (Type type : op.getResultTypes()) {
      if (!RankedTensorType::isValidElementType(type))
        return op.emitError("cannot be executed: a result is no scalar");
      types.push_back(RankedTensorType::get(space, type));
    }
    FailureOr<SmallVector<Tensor>> results = runKernel(op, operands, types, precision);
    if (failed(results))
      return failure();
    for (auto [value, result] : llvm::zip_equal(op.getResults(), *results))
      values[value] = std::move(result);
  }
  return function.emitError("cannot be executed: does not return");
}
