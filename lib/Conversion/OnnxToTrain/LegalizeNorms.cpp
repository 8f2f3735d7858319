//===- LegalizeNorms.cpp - normalisations ---------------------------------===//

#include "Legalizer.h"

#include "windlass/Dialect/Train/IR/FullPrecision.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerNorms() {
  handle("LayerNormalization", &Legalizer::legalizeLayerNorm);
  handle("BatchNormalization", &Legalizer::legalizeBatchNorm);
  handle("InstanceNormalization", &Legalizer::legalizeInstanceNorm);
  handle("GroupNormalization", &Legalizer::legalizeGroupNorm);
  handle("MeanVarianceNormalization", &Legalizer::legalizeMeanVarianceNorm);
  handle("RMSNormalization", &Legalizer::legalizeRmsNorm);
  handle("LpNormalization", &Legalizer::legalizeLpNorm);
}

FailureOr<double> Legalizer::readEpsilon(NodeContext &node) {
  double epsilon = node.getFloat("epsilon", 1e-5);
  if (!(epsilon >= 0))
    return invalid(node, "has an epsilon of " + std::to_string(epsilon) + "; it must be 0 or more");
  return epsilon;
}

Entry Legalizer::inFullPrecision(llvm::function_ref<Entry()> build) {
  Block &block = *builder.getInsertionBlock();
  auto first = [&] { return block.empty() ? nullptr : &block.front(); };
  Operation *before = block.empty() ? nullptr : &block.back();
  Entry result = build();
  for (Operation *op = before ? before->getNextNode() : first(); op; op = op->getNextNode())
    op->setAttr(train::kFullPrecisionAttr, builder.getUnitAttr());
  return result;
}

Entry Legalizer::applyStatistics(const Entry &centered, const Entry &variance, const Affine &affine) {
  if (!variance.isTensor())
    return {};
  Entry deviation = eval.unary(
      UnaryKind::sqrt, eval.binary(BinaryKind::add, variance, eval.scalar(affine.epsilon, variance.getElementType())));
  // Scale and bias are read where they are used, so that a pipeline's cut does not come between.
  Entry factor = eval.binary(BinaryKind::div, eval.reshape(affine.scale, affine.shape), deviation);
  Entry scaled = eval.binary(BinaryKind::mul, centered, factor);
  return eval.binary(BinaryKind::add, scaled, eval.reshape(affine.bias, affine.shape));
}

Entry Legalizer::normalizeOver(const Entry &x, llvm::ArrayRef<int64_t> dims, const Affine &affine) {
  Entry centered = eval.binary(BinaryKind::sub, x, meanKept(x, dims));
  return applyStatistics(centered, meanKept(eval.binary(BinaryKind::mul, centered, centered), dims), affine);
}

LogicalResult Legalizer::expectVectors(NodeContext &node, size_t first, int64_t size, const llvm::Twine &complaint) {
  for (const Entry &vector : llvm::ArrayRef(node.inputs).drop_front(first))
    if (!vector.isTensor() || vector.getShape() != llvm::ArrayRef(size) ||
        vector.getElementType() != node.inputs[0].getElementType())
      return invalid(node, complaint);
  return success();
}

LogicalResult Legalizer::legalizeLayerNorm(NodeContext &node) {
  FailureOr<int64_t> axis = readFloatAxis(node, 2);
  if (failed(axis))
    return failure();
  const Entry &x = node.inputs[0];
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
  FailureOr<double> epsilon = readEpsilon(node);
  if (failed(epsilon))
    return failure();
  if (leadsToLoss(node, 1) || leadsToLoss(node, 2))
    return giveStatistics(node, *axis, *epsilon);
  auto rowType = RankedTensorType::get(lead, x.getElementType());
  auto op = train::LayerNormOp::create(builder, eval.getLocation(), values[0].getType(), rowType, rowType, values[0],
                                       values[1], values.size() > 2 ? values[2] : Value(), llvm::APFloat(*epsilon));
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

LogicalResult Legalizer::giveStatistics(NodeContext &node, int64_t axis, double epsilon) {
  const Entry &x = node.inputs[0];
  Shape dims = llvm::to_vector(llvm::seq<int64_t>(axis, x.getRank()));
  Entry average, factor;
  Entry result = inFullPrecision([&] {
    average = meanKept(x, dims);
    Entry centered = eval.binary(BinaryKind::sub, x, average);
    Entry variance = meanKept(eval.binary(BinaryKind::mul, centered, centered), dims);
    Entry sum = eval.binary(BinaryKind::add, variance, eval.scalar(epsilon, x.getElementType()));
    factor = eval.unary(UnaryKind::reciprocal, eval.unary(UnaryKind::sqrt, sum));
    Entry scaled = eval.binary(BinaryKind::mul, eval.binary(BinaryKind::mul, centered, factor), node.inputs[1]);
    return node.has(2) ? eval.binary(BinaryKind::add, scaled, node.inputs[2]) : scaled;
  });
  if (failed(give(node, 0, result)) || failed(give(node, 1, average)))
    return failure();
  return give(node, 2, factor);
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
  // x / sqrt(mean(x²) + eps) · scale.
  Entry result = meanKept(eval.binary(BinaryKind::mul, x, x), dims);
  result = eval.unary(UnaryKind::sqrt, eval.binary(BinaryKind::add, result,
                                                   eval.scalar(node.getFloat("epsilon", 1e-5), x.getElementType())));
  result = eval.binary(BinaryKind::mul, x, eval.unary(UnaryKind::reciprocal, result));
  if (!result.isTensor())
    return give(node, result);
  if (failed(checkOperands(node, result, node.inputs[1])))
    return failure();
  return give(node, eval.binary(BinaryKind::mul, result, node.inputs[1]));
}

Entry Legalizer::trackStatistic(const Entry &statistic, const Entry &running, double correction,
                                llvm::ArrayRef<int64_t> shape, TrainedBatchNorm &norm) {
  Entry vector = eval.reshape(statistic, running.getShape());
  Value value = vector.isTensor() ? eval.materialize(vector) : Value();
  if (!value)
    return statistic;
  auto track = train::TrackStatisticOp::create(builder, eval.getLocation(), value, running.value,
                                               builder.getF64FloatAttr(correction));
  norm.tracks.push_back(track);
  return eval.reshape(Entry::of(track.getResult()), shape);
}

Entry Legalizer::normalizeBatch(NodeContext &node, llvm::ArrayRef<int64_t> dims, double momentum,
                                const Affine &affine) {
  const Entry &x = node.inputs[0], &runningMean = node.inputs[3], &runningVariance = node.inputs[4];
  TrainedBatchNorm norm{
      {node.inputs[1].value, node.inputs[2].value, runningMean.value, runningVariance.value}, momentum, {}};
  // Statistics that are no parameters cannot be kept.
  bool tracks = findParameter(runningMean) && findParameter(runningVariance);
  auto track = [&](const Entry &statistic, const Entry &running, double correction) {
    return tracks ? trackStatistic(statistic, running, correction, affine.shape, norm) : statistic;
  };
  // PyTorch keeps the unbiased variance.
  auto count = static_cast<double>(x.type.getNumElements() / x.getShape()[1]);
  Entry mean = meanKept(x, dims);
  Entry centered = eval.binary(BinaryKind::sub, x, track(mean, runningMean, 1));
  Entry variance = meanKept(eval.binary(BinaryKind::mul, centered, centered), dims);
  Entry result =
      applyStatistics(centered, track(variance, runningVariance, count > 1 ? count / (count - 1) : 1), affine);
  trainedBatchNorms.push_back(std::move(norm));
  return result;
}

/// Legalizes batch normalisation as reductions and element-wise operators, so that a split of the batch reduces the
/// statistics over its parts.
LogicalResult Legalizer::legalizeBatchNorm(NodeContext &node) {
  if (failed(expectTensors(node, 5)))
    return failure();
  const Entry &x = node.inputs[0];
  if (!x.isFloat() || x.getRank() < 2 || x.type.getNumElements() < 1)
    return invalid(node, "needs a float tensor of samples with channels");
  int64_t channels = x.getShape()[1];
  if (failed(expectVectors(node, 1, channels,
                           "has a scale, bias, mean or variance that does not fit its " + llvm::Twine(channels) +
                               " channels")))
    return failure();
  FailureOr<double> epsilon = readEpsilon(node);
  if (failed(epsilon))
    return failure();
  if (node.getInt("spatial", 1) != 1)
    return unsupported("normalizes each element of a sample by itself (spatial=0)");
  for (unsigned i = 1; i < node.op.getNumResults(); ++i)
    if (leadsToLoss(node, i))
      return unsupported("gives running statistics that the loss reads");
  double momentum = node.getFloat("momentum", 0.9);
  if (!(momentum >= 0 && momentum <= 1))
    return invalid(node, "has a momentum of " + std::to_string(momentum) + "; it must be between 0 and 1");
  // Before opset 14 a node trained where it had more outputs than one.
  bool trains = node.version() < 14 ? node.op.getNumResults() > 1 : node.getInt("training_mode", 0) != 0;
  frozenBatchNorms += !trains;
  for (size_t i : {1, 3, 4})
    if (UsedParameter *parameter = findParameter(node.inputs[i])) {
      parameter->isStoredStatistic |= !trains && i > 1;
      parameter->startsAtOne |= i != 3;
    }
  Shape spread(x.getRank() - 1, 1), dims{0};
  spread[0] = channels;
  for (int64_t dim = 2; dim < x.getRank(); ++dim)
    dims.push_back(dim);
  return give(node, inFullPrecision([&] {
                Affine affine{node.inputs[1], node.inputs[2], spread, *epsilon};
                if (trains)
                  return normalizeBatch(node, dims, momentum, affine);
                Entry centered = eval.binary(BinaryKind::sub, x, eval.reshape(node.inputs[3], spread));
                return applyStatistics(centered, eval.reshape(node.inputs[4], spread), affine);
              }));
}

LogicalResult Legalizer::legalizeInstanceNorm(NodeContext &node) {
  if (failed(expectTensors(node, 3)))
    return failure();
  const Entry &x = node.inputs[0];
  if (!x.isFloat() || x.getRank() < 3 || x.type.getNumElements() < 1)
    return invalid(node, "needs a float tensor of samples with channels of one dim or more");
  int64_t channels = x.getShape()[1];
  if (failed(expectVectors(node, 1, channels,
                           "has a scale or bias that does not fit its " + llvm::Twine(channels) + " channels")))
    return failure();
  FailureOr<double> epsilon = readEpsilon(node);
  if (failed(epsilon))
    return failure();
  Shape spread(x.getRank() - 1, 1), dims = llvm::to_vector(llvm::seq<int64_t>(2, x.getRank()));
  spread[0] = channels;
  return give(node, inFullPrecision(
                        [&] { return normalizeOver(x, dims, {node.inputs[1], node.inputs[2], spread, *epsilon}); }));
}

LogicalResult Legalizer::legalizeGroupNorm(NodeContext &node) {
  if (failed(expectTensors(node, 3)))
    return failure();
  const Entry &x = node.inputs[0];
  if (!x.isFloat() || x.getRank() < 2 || x.type.getNumElements() < 1)
    return invalid(node, "needs a float tensor of samples with channels");
  int64_t channels = x.getShape()[1], groups = node.getInt("num_groups", 0);
  if (groups < 1 || channels % groups != 0)
    return invalid(node, "has num_groups " + llvm::Twine(groups) + ", which does not divide its " +
                             llvm::Twine(channels) + " channels");
  // Before opset 21 there was one scale for each group.
  bool isByGroup = node.version() < 21;
  int64_t count = isByGroup ? groups : channels;
  if (failed(expectVectors(node, 1, count,
                           "has a scale or bias that does not fit its " + llvm::Twine(count) +
                               (isByGroup ? " groups" : " channels"))))
    return failure();
  FailureOr<double> epsilon = readEpsilon(node);
  if (failed(epsilon))
    return failure();
  // [batch, channels, spatial..] -> [batch, groups, channels of a group, spatial..].
  Shape apart{x.getShape()[0], groups, channels / groups}, spread(x.getRank(), 1);
  llvm::append_range(apart, x.getShape().drop_front(2));
  spread[0] = groups;
  spread[1] = count / groups;
  Shape dims = llvm::to_vector(llvm::seq<int64_t>(2, x.getRank() + 1));
  return give(node, inFullPrecision([&] {
                Entry normalized =
                    normalizeOver(eval.reshape(x, apart), dims, {node.inputs[1], node.inputs[2], spread, *epsilon});
                return eval.reshape(normalized, x.getShape());
              }));
}

LogicalResult Legalizer::legalizeMeanVarianceNorm(NodeContext &node) {
  // ONNX adds this to the deviation, which is the same but where the deviation is 0.
  constexpr double kLeastDeviation = 1e-9;
  if (failed(expectFloat(node)))
    return failure();
  const Entry &x = node.inputs[0];
  if (!node.getInts("axes") && x.getRank() < 4)
    return invalid(node, "needs the attribute axes for a tensor of rank " + llvm::Twine(x.getRank()));
  FailureOr<Shape> axes = node.getInts("axes") ? readAxes(node, 1, x.getRank()) : Shape{0, 2, 3};
  if (failed(axes))
    return failure();
  llvm::sort(*axes);
  return give(node, inFullPrecision([&] {
                return normalizeOver(x, *axes,
                                     {eval.scalar(1, x.getElementType()),
                                      eval.scalar(0, x.getElementType()),
                                      {},
                                      kLeastDeviation * kLeastDeviation});
              }));
}

LogicalResult Legalizer::legalizeLpNorm(NodeContext &node) {
  if (failed(expectFloat(node)))
    return failure();
  const Entry &x = node.inputs[0];
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", -1), x.getRank());
  if (failed(axis))
    return failure();
  int64_t order = node.getInt("p", 2);
  if (order != 1 && order != 2)
    return invalid(node, "has p = " + llvm::Twine(order) + "; it must be 1 or 2");
  auto build = [&] {
    Entry powers = order == 1 ? eval.unary(UnaryKind::abs, x) : eval.binary(BinaryKind::mul, x, x);
    Entry sum = reduceKept(ReduceKind::sum, powers, {*axis});
    // Zeros stay zeros.
    Entry isZero = eval.compare(CompareKind::equal, sum, eval.scalar(0, x.getElementType()));
    Entry norm = eval.select(isZero, eval.scalar(1, x.getElementType()), sum);
    return eval.binary(BinaryKind::div, x, order == 1 ? norm : eval.unary(UnaryKind::sqrt, norm));
  };
  return give(node, inFullPrecision(build));
}
