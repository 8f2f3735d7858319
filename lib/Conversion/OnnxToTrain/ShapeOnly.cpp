//===- ShapeOnly.cpp - shapes of operators without a legalization ---------===//
//
// These operators are reported as unsupported; their result shapes are known all the same, so that the walk goes on and
// reports everything at once.
//
//===----------------------------------------------------------------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerShapeOnly() {
  for (const char *name :
       {"BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN", "Elu", "Selu", "LeakyRelu", "PRelu",
        "HardSigmoid", "HardSwish", "Mish", "Softplus", "Softsign", "Round", "ScatterElements", "ScatterND"})
    handle(name, &Legalizer::setShapeLikeFirst);
  for (const char *name : {"MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"})
    handle(name, &Legalizer::setWindowShape);
}

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
  if (failed(setShapeOnly(node, 0, x.getShape(), x.getElementType(), "")))
    return failure();
  // Batch normalisation gives its running statistics, which have the shape of those that it reads.
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.has(i + 2) && node.inputs[i + 2].isTensor() &&
        failed(setShapeOnly(node, i, node.inputs[i + 2].getShape(), node.inputs[i + 2].getElementType(), "")))
      return failure();
  return success();
}

/// Sets the shape of convolutions and pools, whose window moves over the dims behind batch and channels.
LogicalResult Legalizer::setWindowShape(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  int64_t spatial = x.getRank() - 2;
  if (spatial < 1)
    return invalid(node, "needs an image");
  bool isConvolution = node.op.getOpType() == "Conv";
  Shape shape{x.getShape()[0], isConvolution ? node.inputs[1].getShape()[0] : x.getShape()[1]};
  Shape window(spatial, 1), steps(spatial, 1), dilations(spatial, 1), pads(2 * spatial, 0);
  auto take = [&](llvm::StringRef name, Shape &into) {
    if (auto list = node.getInts(name); list && list->size() == into.size())
      into.assign(list->begin(), list->end());
  };
  take("kernel_shape", window);
  take("strides", steps);
  take("dilations", dilations);
  take("pads", pads);
  if (isConvolution)
    window.assign(node.inputs[1].getShape().begin() + 2, node.inputs[1].getShape().end());
  if (node.op.getOpType().starts_with("Global"))
    window.assign(x.getShape().begin() + 2, x.getShape().end());
  constexpr int64_t limit = int64_t(1) << 30;
  auto isSmall = [&](int64_t value) { return value >= 0 && value < limit; };
  if (!llvm::all_of(window, isSmall) || !llvm::all_of(steps, isSmall) || !llvm::all_of(dilations, isSmall) ||
      !llvm::all_of(pads, isSmall) || !llvm::all_of(x.getShape(), isSmall) || llvm::is_contained(steps, 0))
    return invalid(node, "has a window, stride, dilation or pad that is out of range");
  llvm::StringRef padding = node.getString("auto_pad", "NOTSET");
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t extent = x.getShape()[2 + i];
    int64_t covered = extent + pads[i] + pads[i + spatial] - dilations[i] * (window[i] - 1) - 1;
    if (padding.starts_with("SAME"))
      shape.push_back((extent + steps[i] - 1) / steps[i]);
    else if (covered < 0)
      return invalid(node, "has a window larger than the image");
    else
      shape.push_back((covered + (node.getInt("ceil_mode", 0) != 0 ? steps[i] - 1 : 0)) / steps[i] + 1);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (failed(setShapeOnly(node, i, shape, i == 0 ? x.getElementType() : builder.getI64Type(),
                            isConvolution ? "is not a partition into patches" : "")))
      return failure();
  return success();
}
