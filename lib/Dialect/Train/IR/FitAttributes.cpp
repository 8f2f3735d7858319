#include "windlass/Dialect/Train/IR/FitAttributes.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"

using namespace mlir;
using namespace windlass::train;

std::string windlass::train::fitAttributes(Operation &op, Operation *resized) {
  auto typeOf = [](Value value) { return llvm::cast<RankedTensorType>(value.getType()); };
  if (auto constant = llvm::dyn_cast<ConstantOp>(resized)) {
    auto type = typeOf(constant.getResult());
    if (type == constant.getValue().getType())
      return "";
    auto splat = llvm::dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!splat || !splat.isSplat())
      return "cannot be split: its elements differ";
    constant.setValueAttr(splat.resizeSplat(type));
    return "";
  }
  if (auto iota = llvm::dyn_cast<IotaOp>(resized)) {
    uint64_t dim = iota.getDim();
    if (typeOf(iota.getResult()).getDimSize(dim) != typeOf(op.getResult(0)).getDimSize(dim))
      return "cannot be split along the dim that it counts";
    return "";
  }
  if (auto slice = llvm::dyn_cast<SliceOp>(resized)) {
    auto input = typeOf(op.getOperand(0)), whole = typeOf(op.getResult(0)), part = typeOf(slice.getResult());
    for (int64_t dim = 0; dim < whole.getRank(); ++dim)
      if (whole.getDimSize(dim) != part.getDimSize(dim) && whole.getDimSize(dim) != input.getDimSize(dim))
        return "cannot be split along dim " + std::to_string(dim) + ", which it cuts";
    slice.setSizes(part.getShape());
    return "";
  }
  if (auto split = llvm::dyn_cast<SplitOp>(resized)) {
    SmallVector<int64_t> sizes;
    for (Value result : split.getResults())
      sizes.push_back(typeOf(result).getDimSize(split.getAxis()));
    split.setSizes(sizes);
    return "";
  }
  if (auto gradient = llvm::dyn_cast<EmbeddingGradOp>(resized)) {
    int64_t rows = typeOf(gradient.getResult()).getDimSize(0);
    if (rows != static_cast<int64_t>(gradient.getRows()) && !gradient.getFirst())
      return "cannot be split along the rows of its table";
    gradient.setRows(rows);
    return "";
  }
  // The sizes of what is computed; spatial dims and windows are whole.
  auto setSizes = [&](auto gradient) { gradient.setSizes(typeOf(gradient.getResult()).getShape()); };
  if (auto gradient = llvm::dyn_cast<ConvolutionDataGradOp>(resized))
    setSizes(gradient);
  else if (auto gradient = llvm::dyn_cast<ConvolutionWeightGradOp>(resized))
    setSizes(gradient);
  else if (auto gradient = llvm::dyn_cast<AveragePoolGradOp>(resized))
    setSizes(gradient);
  if (auto scatter = llvm::dyn_cast<ScatterAddOp>(resized)) {
    if (typeOf(scatter.getResult()).getDimSize(scatter.getAxis()) != static_cast<int64_t>(scatter.getSize()))
      return "cannot be split along the dim that it adds to";
    return "";
  }
  if (auto scatter = llvm::dyn_cast<ScatterElementsAddOp>(resized)) {
    if (typeOf(scatter.getResult()).getDimSize(scatter.getAxis()) != static_cast<int64_t>(scatter.getSize()))
      return "cannot be split along the dim that it adds to";
    return "";
  }
  return "";
}
