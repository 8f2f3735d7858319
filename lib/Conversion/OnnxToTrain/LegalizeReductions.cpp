//===- LegalizeReductions.cpp - reductions and softmax -----------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace windlass;

void Legalizer::registerReductions() {
  for (const char *name : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare",
                           "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"})
    handle(name, &Legalizer::legalizeReduce);
  handle("CumSum", &Legalizer::legalizeCumSum);
  handle("Softmax", &Legalizer::legalizeSoftmax);
  handle("LogSoftmax", &Legalizer::legalizeLogSoftmax);
}

/// Returns `shape` with 1 for each of `dims`.
static Shape keepDims(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims) {
  Shape kept(shape);
  for (int64_t dim : dims)
    kept[dim] = 1;
  return kept;
}

Entry Legalizer::reduceKept(ReduceKind kind, const Entry &of, llvm::ArrayRef<int64_t> dims) {
  return of.isTensor() ? eval.reshape(eval.reduce(kind, of, dims), keepDims(of.getShape(), dims)) : Entry();
}

Entry Legalizer::meanKept(const Entry &of, llvm::ArrayRef<int64_t> dims) {
  return of.isTensor() ? eval.reshape(mean(of, dims), keepDims(of.getShape(), dims)) : Entry();
}

Entry Legalizer::mean(const Entry &of, llvm::ArrayRef<int64_t> dims) {
  double count = 1;
  for (int64_t dim : dims)
    count *= static_cast<double>(of.getShape()[dim]);
  return eval.binary(BinaryKind::mul, eval.reduce(ReduceKind::sum, of, dims),
                     eval.scalar(1 / count, of.getElementType()));
}

Entry Legalizer::logSumExpKept(const Entry &of, llvm::ArrayRef<int64_t> dims) {
  return inFullPrecision([&] {
    // Exponentials of differences from the maximum do not overflow; an infinite maximum would make these NaN.
    Entry top = reduceKept(ReduceKind::max, of, dims);
    Entry isFinite = eval.compare(CompareKind::less, eval.unary(UnaryKind::abs, top),
                                  eval.scalar(std::numeric_limits<double>::infinity(), of.getElementType()));
    Entry shift = eval.select(isFinite, top, eval.scalar(0, of.getElementType()));
    Entry exponentials = eval.unary(UnaryKind::exp, eval.binary(BinaryKind::sub, of, shift));
    Entry sum = reduceKept(ReduceKind::sum, exponentials, dims);
    return eval.binary(BinaryKind::add, eval.unary(UnaryKind::log, sum), shift);
  });
}

Entry Legalizer::reduceProduct(const Entry &of, llvm::ArrayRef<int64_t> dims) {
  Entry result = of;
  for (int64_t dim : dims)
    // The first half times the last half, until one element is left. A middle element waits for the next round.
    while (result.isTensor() && result.getShape()[dim] > 1) {
      int64_t size = result.getShape()[dim], half = size / 2;
      auto take = [&](int64_t start, int64_t count) { return eval.sliceDim(result, dim, start, count); };
      Entry halves = eval.binary(BinaryKind::mul, take(0, half), take(size - half, half));
      if (size % 2 != 0 && halves.isTensor())
        halves = eval.concat({halves, take(half, 1)}, dim);
      result = halves;
    }
  return result;
}

Entry Legalizer::combine(llvm::StringRef name, const Entry &x, llvm::ArrayRef<int64_t> dims) {
  auto sum = [&](const Entry &of) { return eval.reduce(ReduceKind::sum, of, dims); };
  auto number = [&](double value) { return eval.scalar(value, x.getElementType()); };
  if (name == "ReduceMax" || name == "ReduceMin")
    return eval.reduce(name == "ReduceMax" ? ReduceKind::max : ReduceKind::min, x, dims);
  if (name == "ReduceMean" && x.isFloat())
    return mean(x, dims);
  if (name == "ReduceMean") {
    double count = 1;
    for (int64_t dim : dims)
      count *= static_cast<double>(x.getShape()[dim]);
    return eval.binary(BinaryKind::div, sum(x), number(count));
  }
  if (name == "ReduceSumSquare")
    return sum(eval.binary(BinaryKind::mul, x, x));
  if (name == "ReduceL1")
    return sum(eval.unary(UnaryKind::abs, x));
  if (name == "ReduceLogSum")
    return eval.unary(UnaryKind::log, sum(x));
  if (name == "ReduceLogSumExp")
    return logSumExpKept(x, dims);
  if (name == "ReduceProd")
    return reduceProduct(x, dims);
  if (name == "ReduceL2") {
    Entry squares = sum(eval.binary(BinaryKind::mul, x, x));
    // As in PyTorch, a norm of 0 has the gradient 0, not NaN.
    Entry isZero = eval.compare(CompareKind::equal, squares, number(0));
    return eval.select(isZero, number(0), eval.unary(UnaryKind::sqrt, eval.select(isZero, number(1), squares)));
  }
  return sum(x);
}

LogicalResult Legalizer::legalizeReduce(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  llvm::StringRef name = node.op.getOpType();
  FailureOr<Shape> axes = readAxes(node, 1, x.getRank());
  if (failed(axes))
    return failure();
  // Without axes all are meant, or none: then only what is done to each element is left.
  if (axes->empty() && node.getInt("noop_with_empty_axes", 0) == 0)
    llvm::append_range(*axes, llvm::seq<int64_t>(0, x.getRank()));
  llvm::sort(*axes);
  Shape kept;
  for (int64_t i = 0; i < x.getRank(); ++i) {
    bool isReduced = llvm::is_contained(*axes, i);
    if (isReduced && x.getShape()[i] == 0)
      return unsupported("reduces no elements");
    if (!isReduced || node.getInt("keepdims", 1) != 0)
      kept.push_back(isReduced ? 1 : x.getShape()[i]);
  }
  bool isReal = name == "ReduceL2" || name == "ReduceLogSum" || name == "ReduceLogSumExp";
  if (isReal && !x.isFloat())
    return unsupported("is applied to integers");
  return give(node, eval.reshape(combine(name, x, *axes), kept));
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
  bool isExclusive = node.getInt("exclusive", 0) != 0, isReverse = node.getInt("reverse", 0) != 0;
  if (!x.known)
    return give(node, inFullPrecision([&] { return cumulate(x, *axis, isExclusive, isReverse); }));
  if (!eval.mayEvaluate(x.known->getSize()))
    return unsupported("is too large to be evaluated");
  return give(node, Entry::of(knownCumSum(x.known, *axis, isExclusive, isReverse)));
}

Entry Legalizer::cumulate(const Entry &x, int64_t axis, bool isExclusive, bool isReverse) {
  int64_t size = x.getShape()[axis];
  // Moves elements along the axis away from its end where sums begin; zeros come in there.
  auto shift = [&](const Entry &of, int64_t by) {
    Shape low(of.getRank(), 0), high(of.getRank(), 0);
    (isReverse ? high : low)[axis] = by;
    return eval.pad(eval.sliceDim(of, axis, isReverse ? by : 0, size - by), low, high, 0);
  };
  Entry result = x;
  if (isExclusive)
    result = size > 1 ? shift(x, 1) : eval.binary(BinaryKind::sub, x, x);
  // Each round doubles the number of elements in each sum. (Hillis and Steele, Data parallel algorithms, 1986.)
  for (int64_t by = 1; by < size && result.isTensor(); by *= 2)
    result = eval.binary(BinaryKind::add, result, shift(result, by));
  return result;
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
  FailureOr<int64_t> axis = readFloatAxis(node, 1);
  if (failed(axis))
    return failure();
  const Entry &x = node.inputs[0];
  return give(
      node, alongLast(x, *axis, [&](const Entry &rows) {
        Value value = eval.materialize(rows);
        return value ? Entry::of(
                           train::SoftmaxOp::create(builder, eval.getLocation(), value.getType(), value).getResult())
                     : Entry();
      }));
}

LogicalResult Legalizer::legalizeLogSoftmax(NodeContext &node) {
  FailureOr<int64_t> axis = readFloatAxis(node, 1);
  if (failed(axis))
    return failure();
  const Entry &x = node.inputs[0];
  // A loss over log softmax is one op on the logits; see legalizeNegativeLogLikelihood.
  bool isLossOnly = llvm::all_of(node.op.getResult(0).getUsers(), [](Operation *user) {
    auto loss = dyn_cast<onnx::NodeOp>(user);
    return loss && loss.getOpType() == "NegativeLogLikelihoodLoss";
  });
  if (isLossOnly && *axis == 1)
    return give(node, x);
  return give(node, inFullPrecision([&] { return eval.binary(BinaryKind::sub, x, logSumExpKept(x, {*axis})); }));
}
