#include "Activity.h"

using namespace mlir;

namespace windlass::train {

bool isSplatConstant(Operation *op) {
  auto constant = dyn_cast_or_null<ConstantOp>(op);
  return constant && constant.getValue().isSplat();
}

static bool isFloatValue(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

Activity analyzeActivity(ModuleOp module, func::FuncOp function, Value loss) {
  Activity result;
  Block &body = function.front();

  llvm::DenseSet<Value> needed{loss};
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (llvm::none_of(op.getResults(), [&](Value value) { return needed.contains(value); }))
      continue;
    result.live.push_back(&op);
    needed.insert(op.operand_begin(), op.operand_end());
  }
  std::reverse(result.live.begin(), result.live.end());

  // A read is a source like an argument: its value changes from step to step.
  for (Operation *op : result.live) {
    bool isConstant = !isa<ReadOp>(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && result.constantOps.contains(operand.getDefiningOp());
    });
    if (isConstant)
      result.constantOps.insert(op);
  }
  // A view is made where it is used: the value under a broadcast is smaller than its result.
  for (Operation *op : llvm::reverse(result.live)) {
    bool isView = isa<BroadcastOp, ReshapeOp, TransposeOp>(op) && !isSplatConstant(op->getOperand(0).getDefiningOp());
    if (isView && llvm::none_of(op->getUsers(), [&](Operation *user) { return result.constantOps.contains(user); }))
      result.constantOps.remove(op);
  }
  for (Operation *op : result.live) {
    if (result.constantOps.contains(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp())
        if (result.constantOps.contains(source) && !isSplatConstant(source))
          result.initValues.insert(operand);
  }

  // Forward reach of trainable parameters, then backward reach of the loss within it.
  SymbolTable symbols(module);
  llvm::DenseSet<Value> reached;
  for (Operation *op : result.live) {
    bool isActive = false;
    if (auto read = dyn_cast<ReadOp>(op)) {
      auto parameter = symbols.lookup<ParameterOp>(read.getParameter());
      isActive = parameter && parameter.isOptimized();
    } else {
      isActive = llvm::any_of(op->getOperands(), [&](Value operand) { return reached.contains(operand); });
    }
    if (isActive)
      for (Value value : op->getResults())
        if (isFloatValue(value))
          reached.insert(value);
  }
  if (reached.contains(loss))
    result.active.insert(loss);
  for (Operation *op : llvm::reverse(result.live)) {
    if (llvm::none_of(op->getResults(), [&](Value value) { return result.active.contains(value); }))
      continue;
    for (Value operand : op->getOperands())
      if (reached.contains(operand))
        result.active.insert(operand);
    if (auto read = dyn_cast<ReadOp>(op))
      result.activeParameters.insert(read.getParameterAttr().getAttr());
  }
  return result;
}

} // namespace windlass::train
