#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace windlass::plan;

#include "windlass/Dialect/Plan/IR/PlanDialect.cpp.inc"
#include "windlass/Dialect/Plan/IR/PlanEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "windlass/Dialect/Plan/IR/PlanAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "windlass/Dialect/Plan/IR/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "windlass/Dialect/Plan/IR/PlanAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "windlass/Dialect/Plan/IR/PlanOps.cpp.inc"
      >();
}

LogicalResult ReshardOp::verify() {
  auto type = llvm::cast<RankedTensorType>(getInput().getType());
  auto emit = [&] { return emitOpError(); };
  return success(succeeded(getFrom().verifyFits(type, emit)) && succeeded(getTo().verifyFits(type, emit)));
}
