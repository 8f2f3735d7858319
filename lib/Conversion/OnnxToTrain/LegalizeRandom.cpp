//===- LegalizeRandom.cpp - dropout ---------------------------------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerRandom() { handle("Dropout", &Legalizer::legalizeDropout); }

/// Returns the batch of the graph, dim 0 of its inputs.
static int64_t getBatch(onnx::GraphOp graph) {
  for (BlockArgument argument : graph.getBody().getArguments())
    if (auto type = cast<RankedTensorType>(argument.getType()); type.getRank() > 0)
      return type.getDimSize(0);
  return 1;
}

Value Legalizer::addDropoutKeys() {
  int64_t batch = getBatch(graph), index = dropouts++;
  auto type = RankedTensorType::get({batch, dropouts}, builder.getI64Type());
  if (!dropoutKeys)
    dropoutKeys = builder.getInsertionBlock()->addArgument(type, graph.getLoc());
  dropoutKeys.setType(type);
  Value column =
      train::SliceOp::create(builder, eval.getLocation(), dropoutKeys, builder.getDenseI64ArrayAttr({0, index}),
                             builder.getDenseI64ArrayAttr({batch, 1}));
  return train::ReshapeOp::create(builder, eval.getLocation(), RankedTensorType::get({batch}, builder.getI64Type()),
                                  column);
}

LogicalResult Legalizer::legalizeDropout(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  // Without a training mode the operator is inactive: exporters write attention's dropout in this way.
  bool isActive = false;
  if (node.has(2)) {
    const Entry &mode = node.inputs[2];
    if (!mode.isTensor() || !mode.known || mode.known->getSize() != 1)
      return unsupported("has a training mode that is not a constant");
    isActive = mode.known->getReal(0) != 0;
  }
  double ratio = 0.5;
  if (node.has(1)) {
    const Entry &given = node.inputs[1];
    if (!given.isTensor() || !given.known || given.known->getSize() != 1)
      return unsupported("has a ratio that is not a constant");
    ratio = given.known->getReal(0);
  }
  if (isActive && !(ratio >= 0 && ratio < 1))
    return invalid(node, "has a ratio that is not at least 0 and below 1");
  if (node.wants(1))
    return unsupported("has its mask used");
  if (!isActive || ratio == 0 || x.type.getNumElements() == 0)
    return give(node, x);
  if (!x.isFloat())
    return invalid(node, "has an operand that is not float");
  Value keys = addDropoutKeys();
  int64_t batch = cast<RankedTensorType>(keys.getType()).getDimSize(0), lead = x.getRank() > 0 ? x.getShape()[0] : 1;
  // The rows of all samples, flattened or not, belong to their samples; a value that samples share has the mask of the
  // first.
  Shape apart;
  if (lead % batch == 0) {
    apart.push_back(batch);
    if (lead != batch)
      apart.push_back(lead / batch);
    llvm::append_range(apart, x.getShape().drop_front());
  } else {
    keys = train::SliceOp::create(builder, eval.getLocation(), keys, builder.getDenseI64ArrayAttr({0}),
                                  builder.getDenseI64ArrayAttr({1}));
    apart.push_back(1);
    llvm::append_range(apart, x.getShape());
  }
  Value samples = eval.materialize(eval.reshape(x, apart));
  if (!samples)
    return unsupported(eval.takeReason());
  Value dropped =
      train::DropoutOp::create(builder, eval.getLocation(), samples.getType(), samples, keys, llvm::APFloat(ratio));
  return give(node, eval.reshape(Entry::of(dropped), x.getShape()));
}
