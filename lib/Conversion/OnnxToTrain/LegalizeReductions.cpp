//===- LegalizeReductions.cpp - reductions, softmax, normalisations -------===//

#include "Legalizer.h"

#include "windlass/Dialect/Train/IR/FullPrecision.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerReductions() {
  for (const char *name : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL2"})
    handle(name, &Legalizer::legalizeReduce);
  handle("CumSum", &Legalizer::legalizeCumSum);
  handle("Softmax", &Legalizer::legalizeSoftmax);
  handle("LogSoftmax", &Legalizer::legalizeLogSoftmax);
  handle("LayerNormalization", &Legalizer::legalizeLayerNorm);
  handle("BatchNormalization", &Legalizer::legalizeBatchNorm);
  handle("RMSNormalization", &Legalizer::legalizeRmsNorm);
}

LogicalResult Legalizer::legalizeReduce(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  Entry x = node.inputs[0];
  llvm::StringRef name = node.op.getOpType();
  FailureOr<Shape> axes = readAxes(node, 1, x.getRank());
  if (failed(axes))
    return failure();
  if (axes->empty()) {
    if (node.getInt("noop_with_empty_axes", 0) != 0)
      return give(node, x);
    llvm::append_range(*axes, llvm::seq<int64_t>(0, x.getRank()));
  }
  llvm::sort(*axes);
  int64_t count = 1;
  Shape kept;
  for (int64_t i = 0; i < x.getRank(); ++i) {
    bool isReduced = llvm::is_contained(*axes, i);
    count *= isReduced ? x.getShape()[i] : 1;
    if (!isReduced || node.getInt("keepdims", 1) != 0)
      kept.push_back(isReduced ? 1 : x.getShape()[i]);
  }
  if (count == 0)
    return unsupported("reduces no elements");
  if (name == "ReduceSumSquare" || name == "ReduceL2") {
    x = eval.binary(BinaryKind::mul, x, x);
    if (!x.isTensor())
      return give(node, x);
  }
  ReduceKind kind = name == "ReduceMax" ? ReduceKind::max : name == "ReduceMin" ? ReduceKind::min : ReduceKind::sum;
  bool isMean = name == "ReduceMean";
  Entry result = isMean && x.isFloat() ? mean(x, *axes) : eval.reduce(kind, x, *axes);
  if (result.isTensor() && isMean && !x.isFloat())
    result = eval.binary(BinaryKind::div, result, eval.scalar(double(count), x.getElementType()));
  if (result.isTensor() && name == "ReduceL2")
    result = eval.unary(UnaryKind::sqrt, result);
  return give(node, result.isTensor() ? eval.reshape(result, kept) : result);
}

Entry Legalizer::mean(const Entry &of, llvm::ArrayRef<int64_t> dims) {
  double count = 1;
  for (int64_t dim : dims)
    count *= static_cast<double>(of.getShape()[dim]);
  Entry sum = eval.reduce(ReduceKind::sum, of, dims);
  return sum.isTensor() ? eval.binary(BinaryKind::mul, sum, eval.scalar(1 / count, of.getElementType())) : sum;
}

LogicalResult Legalizer::legalizeCumSum(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0];
  FailureOr<Shape> list = readIntegers(node, 1, "an axis");
  if (failed(list))
    return failure();
  if (list->size() != 1 || x.isBoolean())
    return invalid(node, "needs one axis and a tensor of numbers");
  FailureOr<int64_t> axis = normalizeAxis(node, (*list)[0], x.getRank());
  if (failed(axis))
    return failure();
  if (!x.known)
    return setShapeOnly(node, 0, x.getShape(), x.getElementType(), "is computed on values that depend on an input");
  if (!eval.mayEvaluate(x.known->getSize()))
    return unsupported("is too large to be evaluated");
  return give(node,
              Entry::of(knownCumSum(x.known, *axis, node.getInt("exclusive", 0) != 0, node.getInt("reverse", 0) != 0)));
}

/// Applies `apply` to x with `axis` at the end, and moves the axis back.
Entry Legalizer::alongLast(const Entry &x, int64_t axis, llvm::function_ref<Entry(const Entry &)> apply) {
  if (axis == x.getRank() - 1)
    return apply(x);
  Shape order = llvm::to_vector(llvm::seq<int64_t>(0, x.getRank()));
  std::swap(order[axis], order.back());
  Entry moved = eval.transpose(x, order);
  Entry result = moved.isTensor() ? apply(moved) : moved;
  return result.isTensor() ? eval.transpose(result, order) : result;
}

LogicalResult Legalizer::legalizeSoftmax(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  if (!x.isFloat() || x.getRank() == 0)
    return invalid(node, "needs a float tensor");
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", -1), x.getRank());
  if (failed(axis))
    return failure();
  return give(
      node, alongLast(x, *axis, [&](const Entry &rows) {
        Value value = eval.materialize(rows);
        return value ? Entry::of(
                           train::SoftmaxOp::create(builder, eval.getLocation(), value.getType(), value).getResult())
                     : Entry();
      }));
}

LogicalResult Legalizer::legalizeLogSoftmax(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  if (!x.isFloat() || x.getRank() == 0)
    return invalid(node, "needs a float tensor");
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", -1), x.getRank());
  if (failed(axis))
    return failure();
  // A loss over log softmax is one op on the logits; see legalizeNegativeLogLikelihood.
  bool isLossOnly = llvm::all_of(node.op.getResult(0).getUsers(), [](Operation *user) {
    auto loss = dyn_cast<onnx::NodeOp>(user);
    return loss && loss.getOpType() == "NegativeLogLikelihoodLoss";
  });
  if (isLossOnly && *axis == 1)
    return give(node, x);
  return setShapeOnly(node, 0, x.getShape(), x.getElementType(),
                      "is used by something other than a NegativeLogLikelihoodLoss");
}

LogicalResult Legalizer::legalizeLayerNorm(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0];
  if (!x.isFloat() || x.getRank() == 0)
    return invalid(node, "needs a float tensor");
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", -1), x.getRank());
  if (failed(axis))
    return failure();
  // The normalized dims become one.
  Shape lead(x.getShape().take_front(*axis)), normalized(x.getShape().drop_front(*axis)), rows(lead);
  int64_t width = 1;
  for (int64_t dim : normalized)
    width *= dim;
  rows.push_back(width);
  llvm::SmallVector<Value> values;
  for (size_t i = 0; i < 3; ++i) {
    if (i == 2 && !node.has(2))
      break;
    Entry operand = node.input(i);
    if (!operand.isTensor() || operand.getElementType() != x.getElementType())
      return invalid(node, "has a scale or bias of another element type");
    if (i > 0) {
      FailureOr<Shape> spread = broadcastShapes(operand.getShape(), normalized);
      if (failed(spread) || *spread != normalized)
        return unsupported("has a scale or bias that is not of the normalized shape");
      operand = eval.broadcast(operand, normalized);
    }
    if (operand.isTensor())
      operand = i == 0 ? eval.reshape(operand, rows) : eval.reshape(operand, {width});
    Value value = operand.isTensor() ? eval.materialize(operand) : Value();
    if (!value)
      return unsupported(eval.takeReason());
    values.push_back(value);
  }
  double epsilon = node.getFloat("epsilon", 1e-5);
  if (!(epsilon >= 0))
    return invalid(node, "has an epsilon of " + std::to_string(epsilon) + "; it must be 0 or more");
  auto rowType = RankedTensorType::get(lead, x.getElementType());
  auto op = train::LayerNormOp::create(builder, eval.getLocation(), values[0].getType(), rowType, rowType, values[0],
                                       values[1], values.size() > 2 ? values[2] : Value(), llvm::APFloat(epsilon));
  if (failed(give(node, 0, eval.reshape(Entry::of(op.getResult()), x.getShape()))))
    return failure();
  Shape kept(lead);
  kept.append(normalized.size(), 1);
  if (node.wants(1) && failed(give(node, 1, eval.reshape(Entry::of(op.getMean()), kept))))
    return failure();
  if (node.wants(2) && failed(give(node, 2, eval.reshape(Entry::of(op.getRstd()), kept))))
    return failure();
  return success();
}

LogicalResult Legalizer::legalizeRmsNorm(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0];
  if (!x.isFloat() || x.getRank() == 0 || node.inputs[1].getElementType() != x.getElementType())
    return invalid(node, "needs float tensors of one type");
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", -1), x.getRank());
  if (failed(axis))
    return failure();
  Shape dims = llvm::to_vector(llvm::seq<int64_t>(*axis, x.getRank()));
  Shape kept(x.getShape().take_front(*axis));
  kept.append(dims.size(), 1);
  // x / sqrt(mean(x²) + eps) · scale.
  Entry result = eval.binary(BinaryKind::mul, x, x);
  if (result.isTensor())
    result = mean(result, dims);
  if (result.isTensor())
    result = eval.reshape(result, kept);
  if (result.isTensor())
    result = eval.unary(UnaryKind::sqrt, eval.binary(BinaryKind::add, result,
                                                     eval.scalar(node.getFloat("epsilon", 1e-5), x.getElementType())));
  if (result.isTensor())
    result = eval.binary(BinaryKind::mul, x, eval.unary(UnaryKind::reciprocal, result));
  if (!result.isTensor())
    return give(node, result);
  if (failed(checkOperands(node, result, node.inputs[1])))
    return failure();
  return give(node, eval.binary(BinaryKind::mul, result, node.inputs[1]));
}

/// Legalizes batch normalisation as reductions and element-wise operators, so that a split of the batch reduces the
/// statistics over its parts. The running statistics, which only evaluation reads, are not kept.
LogicalResult Legalizer::legalizeBatchNorm(NodeContext &node) {
  if (failed(expectTensors(node, 5)))
    return failure();
  const Entry &x = node.inputs[0];
  if (!x.isFloat() || x.getRank() < 2 || x.type.getNumElements() < 1)
    return invalid(node, "needs a float tensor of samples with channels");
  Shape spread(x.getRank() - 1, 1), dims{0};
  spread[0] = x.getShape()[1];
  for (int64_t dim = 2; dim < x.getRank(); ++dim)
    dims.push_back(dim);
  for (const Entry &vector : llvm::ArrayRef(node.inputs).slice(1, 4))
    if (vector.getShape() != llvm::ArrayRef(spread).take_front(1) || vector.getElementType() != x.getElementType())
      return invalid(node, "has a scale, bias, mean or variance that does not fit its " + llvm::Twine(spread[0]) +
                               " channels");
  double epsilon = node.getFloat("epsilon", 1e-5);
  if (!(epsilon >= 0))
    return invalid(node, "has an epsilon of " + std::to_string(epsilon) + "; it must be 0 or more");
  if (node.getInt("spatial", 1) != 1)
    return unsupported("normalizes each element of a sample by itself (spatial=0)");
  for (unsigned i = 1; i < node.op.getNumResults(); ++i)
    if (llvm::any_of(node.op.getResult(i).getUsers(), [&](Operation *user) { return needed.contains(user); }))
      return unsupported("gives running statistics that the loss reads");
  // Before opset 14 a node trained where it had more outputs than one.
  bool trains = node.version() < 14 ? node.op.getNumResults() > 1 : node.getInt("training_mode", 0) != 0;
  Block &block = *builder.getInsertionBlock();
  Operation *before = block.empty() ? nullptr : &block.back();
  auto average = [&](const Entry &of) {
    Entry result = mean(of, dims);
    return result.isTensor() ? eval.reshape(result, spread) : result;
  };
  for (UsedParameter &parameter : parameters)
    parameter.isRunningStatistic |=
        !trains && (parameter.read == node.inputs[3].value || parameter.read == node.inputs[4].value);
  Entry center = trains ? average(x) : eval.reshape(node.inputs[3], spread);
  if (!center.isTensor())
    return give(node, center);
  // (x - mean) · (scale / sqrt(variance + epsilon)) + bias.
  Entry centered = eval.binary(BinaryKind::sub, x, center);
  if (!centered.isTensor())
    return give(node, centered);
  Entry variance =
      trains ? average(eval.binary(BinaryKind::mul, centered, centered)) : eval.reshape(node.inputs[4], spread);
  if (!variance.isTensor())
    return give(node, variance);
  Entry factor =
      eval.unary(UnaryKind::sqrt, eval.binary(BinaryKind::add, variance, eval.scalar(epsilon, x.getElementType())));
  if (factor.isTensor())
    factor = eval.binary(BinaryKind::div, eval.reshape(node.inputs[1], spread), factor);
  if (!factor.isTensor())
    return give(node, factor);
  ++(trains ? trainedBatchNorms : frozenBatchNorms);
  Entry result = eval.binary(BinaryKind::add, eval.binary(BinaryKind::mul, centered, factor),
                             eval.reshape(node.inputs[2], spread));
  // As in PyTorch, statistics and what they are applied to are f32 where values are narrower.
  for (Operation *op = before ? before->getNextNode() : &block.front(); op; op = op->getNextNode())
    op->setAttr(train::kFullPrecisionAttr, builder.getUnitAttr());
  return give(node, result);
}
