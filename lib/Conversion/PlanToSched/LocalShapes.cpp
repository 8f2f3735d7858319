#include "Lowering.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

/// Makes the attributes of the local op that hold global sizes local; fails where the same op cannot compute a local
/// slice.
static LogicalResult localizeAttributes(Operation &op, Operation *local) {
  auto typeOf = [](Value value) { return llvm::cast<RankedTensorType>(value.getType()); };
  if (auto constant = llvm::dyn_cast<train::ConstantOp>(local)) {
    auto type = typeOf(constant.getResult());
    if (type == constant.getValue().getType())
      return success();
    auto splat = llvm::dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!splat || !splat.isSplat())
      return op.emitOpError("cannot be split: its elements differ");
    constant.setValueAttr(splat.resizeSplat(type));
    return success();
  }
  if (auto iota = llvm::dyn_cast<train::IotaOp>(local)) {
    uint64_t dim = iota.getDim();
    if (typeOf(iota.getResult()).getDimSize(dim) != typeOf(op.getResult(0)).getDimSize(dim))
      return op.emitOpError("cannot be split along the dim that it counts");
    return success();
  }
  if (auto slice = llvm::dyn_cast<train::SliceOp>(local)) {
    auto input = typeOf(op.getOperand(0)), whole = typeOf(op.getResult(0)), part = typeOf(slice.getResult());
    for (int64_t dim = 0; dim < whole.getRank(); ++dim)
      if (whole.getDimSize(dim) != part.getDimSize(dim) && whole.getDimSize(dim) != input.getDimSize(dim))
        return op.emitOpError("cannot be split along dim ") << dim << ", which it cuts";
    slice.setSizes(part.getShape());
    return success();
  }
  if (auto split = llvm::dyn_cast<train::SplitOp>(local)) {
    SmallVector<int64_t> sizes;
    for (Value result : split.getResults())
      sizes.push_back(typeOf(result).getDimSize(split.getAxis()));
    split.setSizes(sizes);
    return success();
  }
  if (auto gradient = llvm::dyn_cast<train::EmbeddingGradOp>(local)) {
    int64_t rows = typeOf(gradient.getResult()).getDimSize(0);
    if (rows != static_cast<int64_t>(gradient.getRows()) && !gradient.getFirst())
      return op.emitOpError("cannot be split along the rows of its table");
    gradient.setRows(rows);
    return success();
  }
  // The sizes of what is computed; spatial dims and windows are whole.
  auto setSizes = [&](auto gradient) { gradient.setSizes(typeOf(gradient.getResult()).getShape()); };
  if (auto gradient = llvm::dyn_cast<train::ConvolutionDataGradOp>(local))
    setSizes(gradient);
  else if (auto gradient = llvm::dyn_cast<train::ConvolutionWeightGradOp>(local))
    setSizes(gradient);
  else if (auto gradient = llvm::dyn_cast<train::AveragePoolGradOp>(local))
    setSizes(gradient);
  if (auto scatter = llvm::dyn_cast<train::ScatterAddOp>(local)) {
    if (typeOf(scatter.getResult()).getDimSize(scatter.getAxis()) != static_cast<int64_t>(scatter.getSize()))
      return op.emitOpError("cannot be split along the dim that it adds to");
    return success();
  }
  if (auto scatter = llvm::dyn_cast<train::ScatterElementsAddOp>(local)) {
    if (typeOf(scatter.getResult()).getDimSize(scatter.getAxis()) != static_cast<int64_t>(scatter.getSize()))
      return op.emitOpError("cannot be split along the dim that it adds to");
    return success();
  }
  return success();
}

FailureOr<Operation *> sched::cloneLocal(OpBuilder &builder, Operation &op, IRMapping &mapping, plan::MeshAttr mesh) {
  Operation *local = builder.clone(op, mapping);
  for (auto [whole, part] : llvm::zip_equal(op.getResults(), local->getResults())) {
    plan::LayoutAttr layout = plan::getLayout(whole);
    if (!layout)
      return op.emitOpError("has a result without a layout");
    part.setType(layout.getLocalType(llvm::cast<RankedTensorType>(whole.getType()), mesh));
  }
  for (StringRef name : {plan::kStrategyAttr, plan::kSplitOfAttr})
    local->removeAttr(name);
  if (failed(localizeAttributes(op, local)))
    return failure();
  return local;
}
