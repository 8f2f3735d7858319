#include "AdafactorStep.h"

using namespace mlir;
using namespace windlass::train;

/// PyTorch's epsilon for f32: the least mean that squares are divided by. Its square is the least estimate of a square.
static constexpr double kLeastSquare = 0x1p-23;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static RankedTensorType dropDim(RankedTensorType type, int64_t dim) {
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  return type.clone(shape);
}

SmallVector<AdafactorMoment, 2> windlass::train::getAdafactorMoments(RankedTensorType weight) {
  int64_t rank = weight.getRank();
  if (rank < 2)
    return {{"variance", weight}};
  return {{"row_var", dropDim(weight, rank - 1)}, {"col_var", dropDim(weight, rank - 2)}};
}

Value AdafactorStep::atLeast(const Twine &name, Value value, double least) {
  return make<MaxOp>(name, value, makeConstant(typeOf(value), least));
}

Value AdafactorStep::average(const Twine &name, Value value, int64_t dim) {
  RankedTensorType type = dropDim(typeOf(value), dim);
  Value sum = make<ReduceOp>(name + "_sum", ReductionKind::sum, value, ArrayRef<int64_t>(dim));
  return make<MulOp>(name, sum, makeConstant(type, 1.0 / static_cast<double>(typeOf(value).getDimSize(dim))));
}

Value AdafactorStep::getRootMeanSquare(const Twine &name, Value value) {
  RankedTensorType type = typeOf(value), scalar = type.clone(ArrayRef<int64_t>());
  Value sum = make<SquareSumOp>(name + "_square_sum", scalar, value);
  Value mean =
      make<MulOp>(name + "_mean_square", sum, makeConstant(scalar, 1.0 / static_cast<double>(type.getNumElements())));
  return make<SqrtOp>(name + "_root_mean_square", mean);
}

Value AdafactorStep::scaleGradient(Value gradient, Value scale, Value isFinite) {
  ArrayRef<int64_t> shape = typeOf(gradient).getShape();
  Value scaled = make<MulOp>("gradient", gradient, broadcast("gradient_scales", scale, shape));
  if (!isFinite)
    return scaled;
  return make<SelectOp>("finite_gradient", scaled.getType(), broadcast("are_finite", isFinite, shape), scaled,
                        makeConstant(typeOf(scaled), 0));
}

Value AdafactorStep::getDirection(Value gradient, MutableArrayRef<Value> moments, Value rate) {
  RankedTensorType type = typeOf(gradient);
  int64_t rank = type.getRank();
  Value squares = make<MulOp>("squares", gradient, gradient), estimate;
  if (rank < 2) {
    estimate = moments[0] = make<EmaOp>("variance/ema", moments[0], squares, rate);
  } else {
    Value &rows = moments[0], &columns = moments[1];
    rows = make<EmaOp>("row_var/ema", rows, average("row_mean", squares, rank - 1), rate);
    columns = make<EmaOp>("col_var/ema", columns, average("column_mean", squares, rank - 2), rate);
    // The product of both over the mean of either.
    Value mean = atLeast("least_mean", average("mean", rows, rank - 2), kLeastSquare);
    SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2)), rowDims(batch), columnDims(batch);
    rowDims.push_back(rank - 2);
    columnDims.push_back(rank - 1);
    Value shares = make<DivOp>("row_shares", rows, broadcast("means", mean, typeOf(rows).getShape(), batch));
    estimate = make<MulOp>("estimate", broadcast("rows", shares, type.getShape(), rowDims),
                           broadcast("columns", columns, type.getShape(), columnDims));
  }
  Value root = make<RsqrtOp>("inverse_roots", atLeast("least_squares", estimate, kLeastSquare * kLeastSquare));
  return make<MulOp>("direction", root, gradient);
}

Value AdafactorStep::getRate(Value weight, Value direction, Value learningRate, Value inverseRoot, Value leastScale) {
  Value size = make<MaxOp>("weight_scale", getRootMeanSquare("weight", weight), leastScale);
  Value rate = make<MulOp>("relative_rate", size, make<MinOp>("least_rate", learningRate, inverseRoot));
  return make<DivOp>("rate", rate, atLeast("clipping", getRootMeanSquare("direction", direction), 1));
}
