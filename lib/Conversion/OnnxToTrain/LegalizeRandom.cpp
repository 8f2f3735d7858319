//===- LegalizeRandom.cpp - dropout and other choices at random -----------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerRandom() {
  handle("Bernoulli", &Legalizer::legalizeBernoulli);
  handle("Dropout", &Legalizer::legalizeDropout);
  handle("RandomUniform", &Legalizer::legalizeUniform);
  handle("RandomUniformLike", &Legalizer::legalizeUniform);
}

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
  Entry result = dropElements(x, ratio);
  return result.isTensor() ? give(node, result) : unsupported(eval.takeReason());
}

Entry Legalizer::dropElements(const Entry &x, double ratio) {
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
    return {};
  Value dropped =
      train::DropoutOp::create(builder, eval.getLocation(), samples.getType(), samples, keys, llvm::APFloat(ratio));
  return eval.reshape(Entry::of(dropped), x.getShape());
}

Type Legalizer::readDrawnType(NodeContext &node, Type fallback) {
  return node.attribute("dtype") ? readElementType(node, "dtype") : fallback;
}

LogicalResult Legalizer::legalizeUniform(NodeContext &node) {
  bool isLike = node.op.getOpType() == "RandomUniformLike";
  if (isLike && failed(expectTensors(node, 1)))
    return failure();
  if (node.getFloat("low", 0) != 0 || node.getFloat("high", 1) != 1)
    return unsupported("draws from another range than from 0 to 1");
  Type element = readDrawnType(node, isLike ? node.inputs[0].getElementType() : builder.getF32Type());
  std::optional<llvm::ArrayRef<int64_t>> given = node.getInts("shape");
  if (!isa_and_nonnull<FloatType>(element) || (!isLike && !given))
    return invalid(node, "draws no floats, or has no shape");
  Shape shape(isLike ? node.inputs[0].getShape() : *given);
  if (failed(checkCount(node, shape)))
    return failure();
  node.outputs[0] = Entry::random(RankedTensorType::get(shape, element), {});
  return success();
}

LogicalResult Legalizer::legalizeBernoulli(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &rates = node.inputs[0];
  if (!rates.isFloat() || !rates.known || !rates.known->isSplat())
    return unsupported("has rates that are not one constant");
  Type element = readDrawnType(node, rates.getElementType());
  if (!isa_and_nonnull<FloatType>(element))
    return unsupported("draws no floats");
  return give(node, drawMask(RankedTensorType::get(rates.getShape(), element), rates.known->getReal(0)));
}

Entry Legalizer::drawMask(RankedTensorType type, double rate) {
  const double ratio = 1 - rate;
  // Nothing is less than a rate that is NaN.
  if (!(ratio > 0 && ratio < 1))
    return Entry::of(makeKnownSplat(type, ratio <= 0 ? 1 : 0));
  // Evaluation drops nothing: the mask is then its mean, by which such graphs divide.
  Entry kept = dropElements(Entry::of(makeKnownSplat(type, 1)), ratio);
  return kept.isTensor() ? eval.binary(BinaryKind::mul, kept, eval.scalar(rate, type.getElementType())) : kept;
}

/// Returns the number that all elements of the entry are; nothing where it is not known.
static std::optional<double> getSplat(const Entry &entry) {
  bool isKnown = entry.isTensor() && entry.known && entry.isFloat() && entry.known->isSplat();
  return isKnown ? std::optional(entry.known->getReal(0)) : std::nullopt;
}

LogicalResult Legalizer::legalizeChoice(NodeContext &node) {
  using Stage = Entry::Draw::Stage;
  llvm::StringRef name = node.op.getOpType();
  Entry first = node.input(0), second = node.input(1);
  // The type of random numbers may be taken as that of others.
  if (name == "CastLike" && first.isTensor())
    return give(node, eval.cast(first, second.getElementType()));
  if (name == "Add" && first.isTensor())
    std::swap(first, second);
  if (first.kind == Entry::Kind::random) {
    Entry::Draw draw = first.draw;
    bool isChosen = draw.stage == Stage::chosen;
    std::optional<double> number = getSplat(second);
    bool hasScalar = number && second.type.getNumElements() == 1 && second.getRank() <= first.getRank();
    auto giveDraw = [&](Type element, Entry::Draw drawn) {
      node.outputs[0] = Entry::random(RankedTensorType::get(first.getShape(), element), drawn);
      return success();
    };
    if (name == "Identity")
      return giveDraw(first.getElementType(), draw);
    Type to;
    if (name == "Cast")
      to = readElementType(node, "to");
    else if (name == "CastLike" && second.isTensor())
      to = second.getElementType();
    if (isa_and_nonnull<FloatType>(to))
      return isChosen ? give(node, drawMask(RankedTensorType::get(first.getShape(), to), draw.value))
                      : giveDraw(to, draw);
    if (!isChosen && hasScalar && name == "Add")
      return giveDraw(first.getElementType(), {Stage::uniform, draw.value + *number});
    if (!isChosen && name == "Floor" && draw.value >= 0 && draw.value <= 1)
      return give(node, drawMask(first.type, draw.value));
    if (!isChosen && hasScalar && (name == "Less" || name == "LessOrEqual"))
      return giveDraw(builder.getI1Type(), {Stage::chosen, *number - draw.value});
    if (!isChosen && hasScalar && (name == "Greater" || name == "GreaterOrEqual"))
      return giveDraw(builder.getI1Type(), {Stage::chosen, 1 - (*number - draw.value)});
    if (isChosen && name == "Not")
      return giveDraw(builder.getI1Type(), {Stage::chosen, 1 - draw.value});
  }
  return unsupported("computes with random numbers; they may only choose at a constant rate, as dropout does");
}
