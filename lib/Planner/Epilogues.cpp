#include "Epilogues.h"

#include "Makers.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

static bool isProduct(Operation *op) { return llvm::isa_and_present<train::MatmulOp>(op); }

static bool has16Bits(Operation *op) {
  return getElementTypeOrSelf(op->getResult(0).getType()).getIntOrFloatBitWidth() == 16;
}

/// Whether the operator may add something to a product, as a part of it.
static bool mayAddToProduct(Operation *op) {
  return llvm::isa_and_present<train::AddOp>(op) &&
         llvm::any_of(op->getOperands(), [](Value operand) { return isProduct(findMaker(operand)); });
}

bool planner::mayBeEpilogue(Operation *op) {
  if (auto sum = llvm::dyn_cast<train::ReduceOp>(op)) {
    bool isReadByProduct = false;
    forEachReader(findRoot(sum.getInput()), [&](Operation *reader) { isReadByProduct |= isProduct(reader); });
    return isReadByProduct && sum.getKind() == train::ReductionKind::sum;
  }
  if (mayAddToProduct(op))
    return true;
  if (auto gradient = llvm::dyn_cast<train::GeluTanhGradOp>(op))
    return has16Bits(op) && isProduct(findMaker(gradient->getOperand(1)));
  if (!llvm::isa<train::AddOp>(op) && !(llvm::isa<train::GeluTanhOp>(op) && has16Bits(op)))
    return false;
  return llvm::any_of(op->getOperands(), [](Value operand) { return mayAddToProduct(findMaker(operand)); });
}
