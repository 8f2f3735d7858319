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
  for (LayoutAttr layout : {getFrom(), getTo()}) {
    ArrayRef<DimLayoutAttr> dims = layout.getDims();
    auto shape = llvm::cast<RankedTensorType>(getInput().getType()).getShape();
    if (dims.size() != shape.size())
      return emitOpError("layout has ") << dims.size() << " dims but the value has " << shape.size();
    for (auto [dim, size] : llvm::zip_equal(dims, shape)) {
      int64_t product = 1;
      for (FactorLayoutAttr factor : dim.getFactors())
        product *= factor.getSize();
      if (product != size)
        return emitOpError("factors of a dim multiply to ") << product << " but the dim has size " << size;
    }
  }
  return success();
}
