//===- ShapeOnly.cpp - shapes of operators without a legalization ---------===//
//
// These operators are reported as unsupported; their result shapes are known all the same, so that the walk goes on and
// reports everything at once.
//
//===----------------------------------------------------------------------===//

#include "Legalizer.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerShapeOnly() { handle("LRN", &Legalizer::setShapeLikeFirst); }

LogicalResult Legalizer::setShapeOnly(NodeContext &node, size_t index, llvm::ArrayRef<int64_t> shape, Type elementType,
                                      llvm::StringRef reason) {
  if (failed(checkCount(node, shape)))
    return failure();
  if (index == 0)
    reportUnsupported(node.op, reason);
  // An argument is a value that nothing is known about; the function is thrown away with the conversion.
  Value value = builder.getInsertionBlock()->addArgument(RankedTensorType::get(shape, elementType), node.op.getLoc());
  if (index < node.outputs.size())
    node.outputs[index] = Entry::of(value);
  return success();
}

LogicalResult Legalizer::setShapeLikeFirst(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  return setShapeOnly(node, 0, x.getShape(), x.getElementType(), "");
}
