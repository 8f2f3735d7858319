#include "Makers.h"

#include "windlass/Dialect/Plan/Transforms/Segments.h"

using namespace mlir;
using namespace windlass;

bool planner::isPassive(Operation *op) {
  return plan::Recomputation::isFree(op) || plan::Recomputation::isView(op) || llvm::isa<train::StashOp>(op);
}

Operation *planner::findMaker(Value value) {
  Operation *maker = value.getDefiningOp();
  while (maker && isPassive(maker) && maker->getNumOperands() > 0)
    maker = maker->getOperand(0).getDefiningOp();
  return maker;
}

Value planner::findRoot(Value value) {
  while (Operation *maker = value.getDefiningOp()) {
    if (!llvm::isa<train::StashOp, train::ReshapeOp, train::TransposeOp>(maker))
      break;
    value = maker->getOperand(0);
  }
  return value;
}

void planner::forEachReader(Value value, llvm::function_ref<void(Operation *)> visit) {
  for (Operation *user : value.getUsers()) {
    if (isPassive(user))
      for (Value result : user->getResults())
        forEachReader(result, visit);
    else if (llvm::isa<train::TrainOpInterface>(user))
      visit(user);
  }
}
