//===- LegalizeLosses.cpp - cross entropy as (sum, count) -----------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace windlass;

void Legalizer::registerLosses() {
  handle("SoftmaxCrossEntropyLoss", &Legalizer::legalizeCrossEntropy);
  handle("NegativeLogLikelihoodLoss", &Legalizer::legalizeNegativeLogLikelihood);
}

LogicalResult Legalizer::emitCrossEntropy(NodeContext &node, const Entry &logits, const Entry &labels) {
  if (node.has(2))
    return unsupported("has class weights");
  if (node.wants(1))
    return unsupported("has its log probabilities used");
  llvm::StringRef reduction = node.getString("reduction", "mean");
  if (reduction != "mean" && reduction != "sum")
    return unsupported("has reduction '" + reduction.take_front(40) + "'");
  if (!logits.isFloat() || logits.getRank() < 2 || labels.isFloat() || labels.isBoolean())
    return invalid(node, "needs float logits of rank 2 or more and integer labels");
  // ONNX has the classes in dim 1; `train` has them last.
  Shape order{0}, rows{logits.getShape()[0]};
  for (int64_t i = 2; i < logits.getRank(); ++i) {
    order.push_back(i);
    rows.push_back(logits.getShape()[i]);
  }
  order.push_back(1);
  if (labels.getShape() != llvm::ArrayRef<int64_t>(rows))
    return invalid(node, "has labels whose shape is not that of the logits without the classes");
  Entry moved = eval.transpose(logits, order);
  Value x = moved.isTensor() ? eval.materialize(moved) : Value(), y = x ? eval.materialize(labels) : Value();
  if (!y)
    return unsupported(eval.takeReason());
  // Without the attribute no label is ignored; no valid label has this value.
  int64_t ignored = node.getInt("ignore_index", std::numeric_limits<int64_t>::min());
  auto scalar = RankedTensorType::get({}, logits.getElementType());
  auto op = train::SoftmaxCrossEntropyOp::create(builder, eval.getLocation(), scalar, scalar,
                                                 RankedTensorType::get(rows, logits.getElementType()), x, y, ignored);
  if (reduction == "sum")
    return give(node, Entry::of(op.getSum()));
  return give(
      node,
      Entry::of(train::LossOp::create(builder, eval.getLocation(), scalar, op.getSum(), op.getCount()).getResult()));
}

LogicalResult Legalizer::legalizeCrossEntropy(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  return emitCrossEntropy(node, node.inputs[0], node.inputs[1]);
}

LogicalResult Legalizer::legalizeNegativeLogLikelihood(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  // The log softmax passed on its logits, or gave log probabilities, which as logits give the same loss.
  auto producer = node.op.getInputs()[0].getDefiningOp<onnx::NodeOp>();
  if (!producer || producer.getOpType() != "LogSoftmax")
    return unsupported("has log probabilities that no LogSoftmax gives");
  NodeContext softmax;
  softmax.op = producer;
  int64_t axis = softmax.getInt("axis", -1), rank = node.inputs[0].getRank();
  if (axis != 1 && axis + rank != 1)
    return unsupported("has log probabilities of a LogSoftmax over another axis than the classes'");
  return emitCrossEntropy(node, node.inputs[0], node.inputs[1]);
}
