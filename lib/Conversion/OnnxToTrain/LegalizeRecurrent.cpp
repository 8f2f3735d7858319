//===- LegalizeRecurrent.cpp - RNN, GRU and LSTM, one step after another --===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerRecurrent() {
  for (const char *name : {"RNN", "GRU", "LSTM"})
    handle(name, &Legalizer::legalizeRecurrent);
}

/// One direction of a recurrent network. Its gates lie side by side, each as wide as the hidden state.
struct Legalizer::Recurrence {
  enum class Kind { rnn, gru, lstm };
  Kind kind;
  int64_t hidden;
  /// The weights of the hidden state, [gates · hidden, hidden].
  Entry weights;
  /// The bias of a GRU's candidate that the reset gate scales with the hidden state; absent where it scales the state
  /// alone.
  Entry resetBias = Entry::absent();
  /// The weights of the cell in an LSTM's gates, [3 · hidden]; absent where there are none.
  Entry peepholes = Entry::absent();
  bool isRectified = false;
};

/// Returns parts of the last dim of `x`, which are `width` wide: `count` of them from number `first` on.
static Entry takeParts(PartialEvaluator &eval, const Entry &x, int64_t width, int64_t first, int64_t count = 1) {
  return x.isTensor() ? eval.sliceDim(x, x.getRank() - 1, first * width, count * width) : x;
}

/// Returns element `index` of dim 0 of `x`, without that dim.
static Entry takeFirstDim(PartialEvaluator &eval, const Entry &x, int64_t index) {
  return eval.reshape(eval.sliceDim(x, 0, index, 1), x.getShape().drop_front());
}

Entry Legalizer::multiplyState(const Recurrence &of, const Entry &state, int64_t first, int64_t count) {
  if (!state.isTensor())
    return state;
  int64_t width = count * of.hidden;
  // An initial state of zeros adds nothing.
  if (state.known && state.known->isSplat() && state.known->getReal(0) == 0)
    return Entry::of(makeKnownSplat(RankedTensorType::get({state.getShape()[0], width}, state.getElementType()), 0));
  Entry rows = eval.sliceDim(of.weights, 0, first * of.hidden, width);
  return rows.isTensor() ? matmul(state, rows, {}, {}, {1}, {1}) : rows;
}

std::pair<Entry, Entry> Legalizer::stepRecurrence(const Recurrence &of, const Entry &input, const Entry &state,
                                                  const Entry &cell) {
  auto add = [&](const Entry &lhs, const Entry &rhs) { return eval.binary(BinaryKind::add, lhs, rhs); };
  auto mul = [&](const Entry &lhs, const Entry &rhs) { return eval.binary(BinaryKind::mul, lhs, rhs); };
  auto sigmoid = [&](const Entry &x) { return eval.unary(UnaryKind::sigmoid, x); };
  auto tanh = [&](const Entry &x) { return eval.unary(UnaryKind::tanh, x); };
  auto part = [&](const Entry &x, int64_t gate) { return takeParts(eval, x, of.hidden, gate); };
  if (of.kind == Recurrence::Kind::rnn) {
    Entry sum = add(input, multiplyState(of, state, 0, 1));
    return {of.isRectified ? eval.unary(UnaryKind::relu, sum) : tanh(sum), cell};
  }
  if (of.kind == Recurrence::Kind::gru) {
    // Gates: update, reset, candidate.
    Entry both = sigmoid(add(takeParts(eval, input, of.hidden, 0, 2), multiplyState(of, state, 0, 2)));
    Entry update = part(both, 0), reset = part(both, 1);
    Entry inner = of.resetBias.isTensor() ? mul(reset, add(multiplyState(of, state, 2, 1), of.resetBias))
                                          : multiplyState(of, mul(reset, state), 2, 1);
    Entry candidate = tanh(add(part(input, 2), inner));
    return {add(candidate, mul(update, eval.binary(BinaryKind::sub, state, candidate))), cell};
  }
  // Gates: input, output, forget, candidate.
  Entry gates = add(input, multiplyState(of, state, 0, 4));
  auto gate = [&](int64_t index, int64_t peephole, const Entry &seen) {
    Entry sum = part(gates, index);
    return sigmoid(of.peepholes.isTensor() ? add(sum, mul(seen, part(of.peepholes, peephole))) : sum);
  };
  Entry next = add(mul(gate(2, 2, cell), cell), mul(gate(0, 0, cell), tanh(part(gates, 3))));
  return {mul(gate(1, 1, next), tanh(next)), next};
}

LogicalResult Legalizer::checkRecurrent(NodeContext &node, int64_t gates, int64_t directions) {
  const Entry &x = node.inputs[0], &weights = node.inputs[2];
  if (x.getRank() != 3 || !x.isFloat() || x.type.getNumElements() == 0 || weights.getRank() != 3 ||
      weights.getShape()[2] < 1)
    return invalid(node, "needs a sequence [tokens, batch, width] and weights of three dims");
  bool isBatchFirst = node.getInt("layout", 0) != 0;
  int64_t hidden = weights.getShape()[2], batch = x.getShape()[isBatchFirst ? 0 : 1];
  Shape state = isBatchFirst ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  Shape shapes[] = {Shape(x.getShape()),
                    {directions, gates * hidden, x.getShape()[2]},
                    {directions, gates * hidden, hidden},
                    {directions, 2 * gates * hidden},
                    {batch},
                    state,
                    state,
                    {directions, 3 * hidden}};
  for (auto [i, shape] : llvm::enumerate(shapes))
    if (node.has(i) && (!node.inputs[i].isTensor() || node.inputs[i].getShape() != llvm::ArrayRef<int64_t>(shape) ||
                        (i != 4 && node.inputs[i].getElementType() != x.getElementType())))
      return invalid(node, "has an operand " + llvm::Twine(i) + " that does not fit its sequence and weights");
  if (node.getInt("hidden_size", hidden) != hidden)
    return invalid(node, "has a hidden_size that is not that of its weights");
  if (node.attribute("clip") || node.getInt("input_forget", 0) != 0)
    return unsupported("clips its gates, or couples them");
  int64_t tokens = x.getShape()[isBatchFirst ? 1 : 0];
  if (node.has(4) && !(node.inputs[4].known && node.inputs[4].known->isSplat() && !node.inputs[4].isFloat() &&
                       node.inputs[4].known->getInteger(0) == tokens))
    return unsupported("has sequences that may differ in their lengths");
  return success();
}

FailureOr<bool> Legalizer::readRectified(NodeContext &node, int64_t directions) {
  auto names = dyn_cast_or_null<ArrayAttr>(node.attribute("activations"));
  if (!names || names.empty())
    return false;
  llvm::StringRef name = node.op.getOpType();
  llvm::SmallVector<llvm::StringRef> usual{"Sigmoid", "Tanh"};
  if (name == "LSTM")
    usual.push_back("Tanh");
  bool isRectified = false;
  if (name == "RNN") {
    auto first = dyn_cast<StringAttr>(names[0]);
    isRectified = first && first.getValue() == "Relu";
    usual = {isRectified ? "Relu" : "Tanh"};
  }
  bool isUsual = names.size() == usual.size() * directions;
  for (size_t i = 0; i < names.size() && isUsual; ++i) {
    auto text = dyn_cast<StringAttr>(names[i]);
    isUsual = text && text.getValue() == usual[i % usual.size()];
  }
  if (!isUsual)
    return unsupported("has other activations than the usual ones");
  return isRectified;
}

Legalizer::Recurrence Legalizer::makeRecurrence(NodeContext &node, int64_t direction, bool isRectified, Entry &bias) {
  llvm::StringRef name = node.op.getOpType();
  auto kind = name == "RNN" ? Recurrence::Kind::rnn : name == "GRU" ? Recurrence::Kind::gru : Recurrence::Kind::lstm;
  Recurrence made{kind, node.inputs[2].getShape()[2], takeFirstDim(eval, node.inputs[2], direction)};
  made.isRectified = isRectified;
  if (node.has(7) && kind == Recurrence::Kind::lstm)
    made.peepholes = takeFirstDim(eval, node.inputs[7], direction);
  bool resetsSum = kind == Recurrence::Kind::gru && node.getInt("linear_before_reset", 0) != 0;
  if (resetsSum)
    made.resetBias = eval.scalar(0, node.inputs[0].getElementType());
  bias = eval.scalar(0, node.inputs[0].getElementType());
  if (!node.has(3))
    return made;
  // The biases of the sequence come first, then those of the hidden state.
  Entry biases = takeFirstDim(eval, node.inputs[3], direction);
  int64_t width = node.inputs[3].getShape()[1] / 2;
  Entry second = takeParts(eval, biases, width, 1);
  if (resetsSum) {
    made.resetBias = takeParts(eval, second, made.hidden, 2);
    Entry kept = takeParts(eval, second, made.hidden, 0, 2);
    second = eval.pad(kept, {0}, {made.hidden}, 0);
  }
  bias = eval.binary(BinaryKind::add, takeParts(eval, biases, width, 0), second);
  return made;
}

LogicalResult Legalizer::legalizeRecurrent(NodeContext &node) {
  if (failed(expectTensors(node, 3)))
    return failure();
  llvm::StringRef name = node.op.getOpType(), order = node.getString("direction", "forward");
  constexpr llvm::StringLiteral kOrders[] = {"forward", "reverse", "bidirectional"};
  if (!llvm::is_contained(kOrders, order))
    return invalid(node, "has a direction that is none of forward, reverse and bidirectional");
  int64_t gates = name == "RNN" ? 1 : name == "GRU" ? 3 : 4, directions = order == "bidirectional" ? 2 : 1;
  if (failed(checkRecurrent(node, gates, directions)))
    return failure();
  FailureOr<bool> isRectified = readRectified(node, directions);
  if (failed(isRectified))
    return failure();
  bool isBatchFirst = node.getInt("layout", 0) != 0;
  auto swapDims = [&](const Entry &x) { return isBatchFirst ? eval.transpose(x, {1, 0, 2}) : x; };
  Entry x = swapDims(node.inputs[0]);
  if (!x.isTensor())
    return give(node, x);
  int64_t tokens = x.getShape()[0], batch = x.getShape()[1], hidden = node.inputs[2].getShape()[2];
  if (!sequenceParts.spend(20 * tokens * directions))
    return tooManyParts();
  std::vector<Entry> outputs, states, cells;
  for (int64_t direction = 0; direction < directions; ++direction) {
    Entry bias;
    Recurrence recurrence = makeRecurrence(node, direction, *isRectified, bias);
    // All tokens are multiplied at once.
    Entry projected = matmul(x, takeFirstDim(eval, node.inputs[1], direction), {}, {}, {2}, {1});
    projected = eval.binary(BinaryKind::add, projected, bias);
    if (!projected.isTensor())
      return give(node, projected);
    auto start = [&](size_t operand) {
      Entry zeros = Entry::of(makeKnownSplat(RankedTensorType::get({batch, hidden}, x.getElementType()), 0));
      return node.has(operand) ? takeFirstDim(eval, swapDims(node.inputs[operand]), direction) : zeros;
    };
    Entry state = start(5), cell = name == "LSTM" ? start(6) : Entry::absent();
    std::vector<Entry> steps(tokens);
    bool isReversed = order == "reverse" || direction == 1;
    for (int64_t i = 0; i < tokens; ++i) {
      int64_t token = isReversed ? tokens - 1 - i : i;
      std::tie(state, cell) = stepRecurrence(recurrence, takeFirstDim(eval, projected, token), state, cell);
      if (!state.isTensor())
        return give(node, state);
      steps[token] = eval.reshape(state, {1, 1, batch, hidden});
    }
    if (leadsToLoss(node, 0))
      outputs.push_back(eval.concat(steps, 0));
    states.push_back(eval.reshape(state, {1, batch, hidden}));
    if (name == "LSTM")
      cells.push_back(eval.reshape(cell, {1, batch, hidden}));
  }
  if (!outputs.empty()) {
    // [tokens, directions, batch, hidden], or [batch, tokens, directions, hidden].
    Entry joined = eval.concat(outputs, 1);
    if (failed(give(node, 0, isBatchFirst ? eval.transpose(joined, {2, 0, 1, 3}) : joined)))
      return failure();
  }
  if (failed(give(node, 1, swapDims(eval.concat(states, 0)))))
    return failure();
  return name == "LSTM" ? give(node, 2, swapDims(eval.concat(cells, 0))) : success();
}
