//===- LegalizeAttention.cpp - attention and rotary embedding -------------===//
//
// Both become the primitives that exporters without these operators write, by which they are recognised.
//
//===----------------------------------------------------------------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

#include <array>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace windlass;

void Legalizer::registerAttention() {
  handle("Attention", &Legalizer::legalizeAttention);
  handle("RotaryEmbedding", &Legalizer::legalizeRotaryEmbedding);
}

/// Returns [batch, tokens, heads * depth] as [batch, heads, tokens, depth]; poisoned where the heads do not divide the
/// last dim.
static Entry splitHeads(PartialEvaluator &eval, const Entry &x, int64_t heads) {
  if (heads < 1 || x.getShape()[2] % heads != 0)
    return {};
  Entry apart = eval.reshape(x, {x.getShape()[0], x.getShape()[1], heads, x.getShape()[2] / heads});
  return apart.isTensor() ? eval.transpose(apart, {0, 2, 1, 3}) : apart;
}

static Entry mergeHeads(PartialEvaluator &eval, const Entry &x) {
  llvm::ArrayRef<int64_t> shape = x.getShape();
  Entry turned = eval.transpose(x, {0, 2, 1, 3});
  return turned.isTensor() ? eval.reshape(turned, {shape[0], shape[2], shape[1] * shape[3]}) : turned;
}

/// Returns keys or values of fewer heads, repeated for the queries of a group.
static Entry repeatHeads(PartialEvaluator &eval, const Entry &x, int64_t heads) {
  llvm::ArrayRef<int64_t> shape = x.getShape();
  if (shape[1] == heads)
    return x;
  int64_t group = heads / shape[1];
  Entry apart = eval.reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
  if (apart.isTensor())
    apart = eval.broadcast(apart, {shape[0], shape[1], group, shape[2], shape[3]});
  return apart.isTensor() ? eval.reshape(apart, {shape[0], heads, shape[2], shape[3]}) : apart;
}

FailureOr<Legalizer::AttentionOperands> Legalizer::readAttentionOperands(NodeContext &node) {
  AttentionOperands operands;
  operands.isFlat = node.inputs[0].getRank() == 3;
  for (auto [i, to] : llvm::enumerate(std::array{&operands.query, &operands.key, &operands.value})) {
    const Entry &x = node.inputs[i];
    if (!x.isFloat() || x.getElementType() != node.inputs[0].getElementType() ||
        x.getRank() != (operands.isFlat ? 3 : 4))
      return invalid(node, "needs queries, keys and values that are floats of one type and of rank 3 or 4");
    *to = operands.isFlat ? splitHeads(eval, x, node.getInt(i == 0 ? "q_num_heads" : "kv_num_heads", 0)) : x;
    if (!to->isTensor())
      return invalid(node, "has a number of heads that does not divide its last dimension");
  }
  llvm::ArrayRef<int64_t> query = operands.query.getShape(), key = operands.key.getShape(),
                          value = operands.value.getShape();
  if (key[0] != query[0] || value[0] != query[0] || key[3] != query[3] || value[2] != key[2] || key[1] != value[1] ||
      key[1] == 0 || query[1] % key[1] != 0)
    return invalid(node, "has queries, keys and values whose dimensions do not fit together");
  if (failed(checkCount(node, {query[0], query[1], query[2], key[2]})))
    return failure();
  operands.key = repeatHeads(eval, operands.key, query[1]);
  operands.value = repeatHeads(eval, operands.value, query[1]);
  if (!operands.key.isTensor() || !operands.value.isTensor())
    return unsupported(eval.takeReason());
  return operands;
}

Entry Legalizer::computeScores(NodeContext &node, const AttentionOperands &operands) {
  Type element = operands.query.getElementType();
  double depth = double(operands.query.getShape()[3]);
  Entry scores = matmul(operands.query, operands.key, {0, 1}, {0, 1}, {3}, {3});
  scores = eval.binary(BinaryKind::mul, scores, eval.scalar(node.getFloat("scale", 1 / std::sqrt(depth)), element));
  double cap = node.getFloat("softcap", 0);
  if (cap == 0)
    return scores;
  Entry limit = eval.scalar(cap, element);
  return eval.binary(BinaryKind::mul, eval.unary(UnaryKind::tanh, eval.binary(BinaryKind::div, scores, limit)), limit);
}

FailureOr<Entry> Legalizer::readWindow(NodeContext &node, int64_t tokens, int64_t keys) {
  int64_t before = node.getInt("left_window_size", -1), behind = node.getInt("right_window_size", -1);
  if (before < -1 || behind < -1)
    return invalid(node, "has a window of " + llvm::Twine(std::min(before, behind)) +
                             " keys; it must be -1, for all keys, or 0 or more");
  bool isCausal = node.getInt("is_causal", 0) != 0;
  if (!isCausal && before < 0 && behind < 0)
    return Entry::absent();
  if (!eval.mayEvaluate(tokens + keys))
    return unsupported("is too large for its causal mask or window to be evaluated");
  return Entry::of(makeBand(builder.getContext(), tokens, keys, [&](int64_t ahead) {
    return (!isCausal || ahead <= 0) && (before < 0 || -ahead <= before) && (behind < 0 || ahead <= behind);
  }));
}

FailureOr<Entry> Legalizer::maskScores(NodeContext &node, const AttentionOperands &operands, Entry scores) {
  llvm::ArrayRef<int64_t> query = operands.query.getShape();
  int64_t tokens = query[2], keys = operands.key.getShape()[2];
  Type element = operands.query.getElementType();
  FailureOr<Entry> kept = readWindow(node, tokens, keys);
  if (failed(kept))
    return failure();
  if (node.has(3)) {
    const Entry &mask = node.inputs[3];
    Shape plane{query[0], query[1], tokens, keys};
    FailureOr<Shape> spread = mask.isTensor() ? broadcastShapes(mask.getShape(), plane) : FailureOr<Shape>(failure());
    if (failed(spread) || *spread != plane || (!mask.isBoolean() && mask.getElementType() != element))
      return invalid(node, "has a mask that does not fit its scores");
    if (!mask.isBoolean())
      scores = eval.binary(BinaryKind::add, scores, mask);
    else
      kept = kept->isTensor() ? eval.binary(BinaryKind::bitAnd, *kept, mask) : mask;
  }
  if (kept->kind == Entry::Kind::absent)
    return scores;
  Entry least = eval.scalar(-std::numeric_limits<double>::infinity(), element);
  return eval.binary(BinaryKind::add, scores, eval.select(*kept, eval.scalar(0, element), least));
}

LogicalResult Legalizer::legalizeAttention(NodeContext &node) {
  if (failed(expectTensors(node, 3)))
    return failure();
  for (size_t i : {4, 5, 6})
    if (node.has(i))
      return unsupported("has keys and values of the past");
  for (size_t i : {1, 2, 3})
    if (node.wants(i))
      return unsupported("has an output other than the first used");
  FailureOr<AttentionOperands> operands = readAttentionOperands(node);
  if (failed(operands))
    return failure();
  // Each step leaves a poisoned entry alone; the reason is given at the end.
  FailureOr<Entry> scores = maskScores(node, *operands, computeScores(node, *operands));
  if (failed(scores))
    return failure();
  Value rows = scores->isTensor() ? eval.materialize(*scores) : Value();
  if (!rows)
    return unsupported(eval.takeReason());
  Entry weights = Entry::of(train::SoftmaxOp::create(builder, eval.getLocation(), rows.getType(), rows).getResult());
  // A query whose keys are all masked gives zeros.
  Entry isNan = eval.unary(UnaryKind::isNan, weights);
  if (isNan.isTensor())
    weights = eval.select(isNan, eval.scalar(0, weights.getElementType()), weights);
  Entry result = weights.isTensor() ? matmul(weights, operands->value, {0, 1}, {0, 1}, {3}, {2}) : weights;
  if (result.isTensor() && operands->isFlat)
    result = mergeHeads(eval, result);
  return give(node, result);
}

/// Returns the tables [batch or 1, tokens, half] of a rotary embedding; equal rows of known positions are one.
static Entry getTable(PartialEvaluator &eval, const Entry &cache, const Entry &positions) {
  if (!positions.isTensor())
    return cache;
  Entry rows = positions;
  llvm::ArrayRef<int64_t> shape = positions.getShape();
  if (positions.known) {
    bool isEqual = true;
    for (int64_t i = shape[1]; i < positions.known->getSize() && isEqual; ++i)
      isEqual = positions.known->getInteger(i) == positions.known->getInteger(i - shape[1]);
    if (isEqual)
      rows = eval.slice(rows, {0, 0}, {1, shape[1]}, {1, 1});
  }
  return rows.isTensor() ? eval.gather(cache, rows, 0) : rows;
}

LogicalResult Legalizer::legalizeRotaryEmbedding(NodeContext &node) {
  if (failed(expectTensors(node, 3)))
    return failure();
  Entry x = node.inputs[0], positions = node.has(3) ? node.inputs[3] : Entry::absent();
  bool isFlat = x.getRank() == 3;
  if (!x.isFloat() || (!isFlat && x.getRank() != 4))
    return invalid(node, "needs a float tensor of rank 3 or 4");
  if (isFlat)
    x = splitHeads(eval, x, node.getInt("num_heads", 0));
  if (!x.isTensor())
    return invalid(node, "has a number of heads that does not divide its last dimension");
  Shape shape(x.getShape());
  int64_t depth = shape[3], turned = node.getInt("rotary_embedding_dim", 0);
  turned = turned == 0 ? depth : turned;
  if (turned < 2 || turned % 2 != 0 || turned > depth)
    return invalid(node, "turns " + llvm::Twine(turned) + " elements of " + llvm::Twine(depth));
  bool isInterleaved = node.getInt("interleaved", 0) != 0;
  if (positions.isTensor() && (positions.isFloat() || positions.isBoolean() ||
                               positions.getShape() != llvm::ArrayRef<int64_t>({shape[0], shape[2]})))
    return invalid(node, "has positions that are not integers of [batch, tokens]");
  llvm::SmallVector<Entry, 2> tables;
  for (size_t i : {1, 2}) {
    const Entry &cache = node.inputs[i];
    bool fits = cache.getElementType() == x.getElementType() && cache.getRank() == (positions.isTensor() ? 2 : 3) &&
                cache.getShape().back() == turned / 2;
    if (!fits)
      return invalid(node, "has a table that does not fit its operand");
    for (UsedParameter &parameter : parameters)
      parameter.isRotaryTable |= parameter.read == cache.value;
    if (positions.known)
      for (int64_t at : positions.known->getStorage().integers)
        if (at < 0 || at >= cache.getShape()[0])
          return invalid(node,
                         "reads position " + llvm::Twine(at) + " of a table of " + llvm::Twine(cache.getShape()[0]));
    Entry table = getTable(eval, cache, positions);
    if (!table.isTensor())
      return unsupported(eval.takeReason());
    if (table.getRank() != 3 || table.getShape()[1] != shape[2] ||
        (table.getShape()[0] != 1 && table.getShape()[0] != shape[0]))
      return invalid(node, "has a table that does not fit its operand");
    tables.push_back(eval.reshape(table, {table.getShape()[0], 1, shape[2], turned / 2}));
  }

  auto part = [&](const Entry &of, int64_t start, int64_t size) {
    return eval.sliceDim(of, of.getRank() - 1, start, size);
  };
  // The first elements of interleaved pairs are moved before the second ones, so that both forms are halves; the way
  // back undoes that.
  auto regroup = [&](const Entry &of, int64_t rows, int64_t columns) {
    Entry apart = eval.reshape(of, {shape[0], shape[1], shape[2], rows, columns});
    if (apart.isTensor())
      apart = eval.transpose(apart, {0, 1, 2, 4, 3});
    return apart.isTensor() ? eval.reshape(apart, {shape[0], shape[1], shape[2], turned}) : apart;
  };
  Entry rows = part(x, 0, turned);
  if (rows.isTensor() && isInterleaved)
    rows = regroup(rows, turned / 2, 2);
  if (!rows.isTensor() || !tables[0].isTensor() || !tables[1].isTensor())
    return unsupported(eval.takeReason());
  Entry first = part(rows, 0, turned / 2), second = part(rows, turned / 2, turned / 2);
  Entry negated = second.isTensor() ? eval.unary(UnaryKind::neg, second) : second;
  Entry across = first.isTensor() && negated.isTensor() ? eval.concat({negated, first}, 3) : Entry();
  Entry cosine = eval.concat({tables[0], tables[0]}, 3), sine = eval.concat({tables[1], tables[1]}, 3);
  if (!across.isTensor() || !cosine.isTensor() || !sine.isTensor())
    return unsupported(eval.takeReason());
  Entry kept = eval.binary(BinaryKind::mul, rows, cosine), moved = eval.binary(BinaryKind::mul, across, sine);
  Entry result = kept.isTensor() && moved.isTensor() ? eval.binary(BinaryKind::add, kept, moved) : Entry();
  if (result.isTensor() && isInterleaved)
    result = regroup(result, 2, turned / 2);
  if (result.isTensor() && turned < depth) {
    Entry rest = part(x, turned, depth - turned);
    result = rest.isTensor() ? eval.concat({result, rest}, 3) : rest;
  }
  if (result.isTensor() && isFlat)
    result = mergeHeads(eval, result);
  return give(node, result);
}
