//===- LegalizeLosses.cpp - cross entropy and negative log likelihood -----===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace windlass;

void Legalizer::registerLosses() {
  handle("SoftmaxCrossEntropyLoss", &Legalizer::legalizeCrossEntropy);
  handle("NegativeLogLikelihoodLoss", &Legalizer::legalizeNegativeLogLikelihood);
}

/// Returns the sizes of the rows of scores [batch, classes, ..].
static Shape getRows(const Entry &scores) {
  Shape rows(scores.getShape());
  rows.erase(rows.begin() + 1);
  return rows;
}

LogicalResult Legalizer::giveLoss(NodeContext &node, bool areLogarithms) {
  const Entry &scores = node.inputs[0], &labels = node.inputs[1];
  llvm::StringRef reduction = node.getString("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return unsupported("has reduction '" + reduction.take_front(40) + "'");
  if (!scores.isFloat() || scores.getRank() < 2 || labels.isFloat() || labels.isBoolean())
    return invalid(node, "needs float logits of rank 2 or more and integer labels");
  if (labels.getShape() != llvm::ArrayRef<int64_t>(getRows(scores)))
    return invalid(node, "has labels whose shape is not that of the logits without the classes");
  if (node.has(2) && (!node.inputs[2].isTensor() || node.inputs[2].getShape() != scores.getShape().slice(1, 1) ||
                      node.inputs[2].getElementType() != scores.getElementType()))
    return invalid(node, "has class weights that are not one number for each class");
  if (areLogarithms || node.has(2) || leadsToLoss(node, 1) || reduction == "none")
    return giveWeighedLoss(node, reduction, areLogarithms);
  return giveCrossEntropy(node, reduction);
}

LogicalResult Legalizer::giveCrossEntropy(NodeContext &node, llvm::StringRef reduction) {
  const Entry &logits = node.inputs[0];
  // ONNX has the classes in dim 1; `train` has them last.
  Shape order{0};
  for (int64_t i = 2; i < logits.getRank(); ++i)
    order.push_back(i);
  order.push_back(1);
  Entry moved = eval.transpose(logits, order);
  Value x = moved.isTensor() ? eval.materialize(moved) : Value(), y = x ? eval.materialize(node.inputs[1]) : Value();
  if (!y)
    return unsupported(eval.takeReason());
  // Without the attribute no label is ignored; no valid label has this value.
  int64_t ignored = node.getInt("ignore_index", std::numeric_limits<int64_t>::min());
  auto scalar = RankedTensorType::get({}, logits.getElementType());
  auto op = train::SoftmaxCrossEntropyOp::create(builder, eval.getLocation(), scalar, scalar,
                                                 RankedTensorType::get(getRows(logits), logits.getElementType()), x, y,
                                                 ignored);
  if (reduction == "sum")
    return give(node, Entry::of(op.getSum()));
  return give(
      node,
      Entry::of(train::LossOp::create(builder, eval.getLocation(), scalar, op.getSum(), op.getCount()).getResult()));
}

LogicalResult Legalizer::giveWeighedLoss(NodeContext &node, llvm::StringRef reduction, bool areLogarithms) {
  const Entry &scores = node.inputs[0], &labels = node.inputs[1];
  Type element = scores.getElementType();
  Entry zero = eval.scalar(0, element), logarithms = scores;
  Shape rows = getRows(scores), spread(scores.getShape()), all = llvm::to_vector(llvm::seq<int64_t>(0, rows.size()));
  spread[1] = 1;
  if (labels.value)
    lossLabels.push_back({labels.value, scores.getShape()[1]});
  for (UsedParameter &parameter : parameters)
    parameter.isClassWeights |= node.has(2) && parameter.read == node.inputs[2].value;
  Entry result = inFullPrecision([&] {
    // An ignored label may be the number of no class.
    Entry label = labels, isIgnored;
    if (node.attribute("ignore_index")) {
      isIgnored = eval.compare(CompareKind::equal, labels,
                               Entry::of(makeKnownSplat(RankedTensorType::get({}, labels.getElementType()),
                                                        double(node.getInt("ignore_index", 0)))));
      label = eval.select(isIgnored, eval.scalar(0, labels.getElementType()), labels);
    }
    auto drop = [&](const Entry &of) { return isIgnored.isTensor() ? eval.select(isIgnored, zero, of) : of; };
    if (!areLogarithms)
      logarithms = eval.binary(BinaryKind::sub, scores, logSumExpKept(scores, {1}));
    Entry chosen = gatherElements(logarithms, eval.reshape(label, spread), 1);
    Entry loss = eval.unary(UnaryKind::neg, eval.reshape(chosen, rows)), weight;
    if (node.has(2)) {
      weight = eval.gather(node.inputs[2], label, 0);
      loss = eval.binary(BinaryKind::mul, loss, weight);
    } else {
      weight = eval.broadcast(eval.scalar(1, element), rows);
    }
    loss = drop(loss);
    if (reduction == "none" || !loss.isTensor())
      return loss;
    Entry sum = eval.reduce(ReduceKind::sum, loss, all);
    return reduction == "sum" ? sum
                              : eval.binary(BinaryKind::div, sum, eval.reduce(ReduceKind::sum, drop(weight), all));
  });
  if (failed(give(node, 0, result)) || areLogarithms)
    return failure(!result.isTensor());
  return give(node, 1, logarithms);
}

LogicalResult Legalizer::legalizeCrossEntropy(NodeContext &node) {
  return failed(expectTensors(node, 2)) ? failure() : giveLoss(node, /*areLogarithms=*/false);
}

LogicalResult Legalizer::legalizeNegativeLogLikelihood(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  // A log softmax over the classes passed on its logits, or gave log probabilities, which as logits give the same loss.
  auto producer = node.op.getInputs()[0].getDefiningOp<onnx::NodeOp>();
  bool isNormalized = producer && producer.getOpType() == "LogSoftmax";
  if (isNormalized) {
    NodeContext softmax;
    softmax.op = producer;
    int64_t axis = softmax.getInt("axis", -1), rank = node.inputs[0].getRank();
    isNormalized = axis == 1 || axis + rank == 1;
  }
  return giveLoss(node, /*areLogarithms=*/!isNormalized);
}
