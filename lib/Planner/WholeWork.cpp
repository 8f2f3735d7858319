#include "WholeWork.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"

using namespace mlir;
using namespace windlass;

/// Whether an operator multiplies floats that are narrower than f32.
static bool isNarrowContraction(Operation *op) {
  Type element = getElementTypeOrSelf(op->getOperandTypes().empty() ? op->getResult(0) : op->getOperand(0));
  return llvm::cast<train::TrainOpInterface>(op).getPrecisionClass() == train::PrecisionClass::Contraction &&
         element.getIntOrFloatBitWidth() < 32;
}

/// Returns the family of the command that the operator becomes.
static std::string getFamily(Operation *op) {
  Type element = getElementTypeOrSelf(op->getOperandTypes().empty() ? op->getResult(0) : op->getOperand(0));
  if (llvm::isa<train::MatmulOp>(op) && train::getPrecision(op->getParentOfType<ModuleOp>()) == "tf32")
    return kTf32Products;
  return makeFamily(op->hasTrait<train::Transcendental>()     ? "transcendental"
                    : llvm::isa<train::ScalarOpInterface>(op) ? "map"
                                                              : op->getName().stripDialect().str(),
                    element.getIntOrFloatBitWidth() < 32 && llvm::isa<FloatType>(element));
}

OperatorWork planner::getWholeWork(Operation *op) {
  train::OpCost cost = llvm::cast<train::TrainOpInterface>(op).getCost();
  OperatorWork work;
  work.flops = cost.flops;
  work.bytes = cost.bytes;
  work.isNarrow = isNarrowContraction(op);
  work.family = getFamily(op);
  return work;
}
