//===- LegalizeActivations.cpp - activations that have attributes ---------===//
//
// Those without an operator of their own are spelled by primitives. Gradients where the pieces of a function meet are
// PyTorch's: a select passes the gradient to the piece that it takes.
//
//===----------------------------------------------------------------------===//

#include "Legalizer.h"

using namespace mlir;
using namespace windlass;

namespace {

/// The activation's operand, and arithmetic on entries of its element type.
struct Formula {
  NodeContext &node;
  PartialEvaluator &eval;
  Entry x;

  Entry number(double value) const { return eval.scalar(value, x.getElementType()); }
  Entry add(const Entry &lhs, const Entry &rhs) const { return eval.binary(BinaryKind::add, lhs, rhs); }
  Entry sub(const Entry &lhs, const Entry &rhs) const { return eval.binary(BinaryKind::sub, lhs, rhs); }
  Entry mul(const Entry &lhs, const Entry &rhs) const { return eval.binary(BinaryKind::mul, lhs, rhs); }
  Entry div(const Entry &lhs, const Entry &rhs) const { return eval.binary(BinaryKind::div, lhs, rhs); }
  Entry isAbove(const Entry &value, double bound) const {
    return eval.compare(CompareKind::greater, value, number(bound));
  }
  Entry isBelow(const Entry &value, double bound) const {
    return eval.compare(CompareKind::less, value, number(bound));
  }
};

} // namespace

static Entry buildSwish(const Formula &f) {
  Entry gate = f.mul(f.x, f.number(f.node.getFloat("alpha", 1)));
  return f.mul(f.x, f.eval.unary(UnaryKind::sigmoid, gate));
}

static Entry buildLeakyRelu(const Formula &f) {
  return f.eval.select(f.isAbove(f.x, 0), f.x, f.mul(f.x, f.number(f.node.getFloat("alpha", 0.01))));
}

/// Returns `above` · x where x > 0, `below` · (exp(rate · x) - 1) elsewhere.
static Entry buildExponentialLinear(const Formula &f, double above, double below, double rate) {
  Entry isPositive = f.isAbove(f.x, 0);
  // Without the positive elements, whose exponentials could overflow and make the gradient NaN.
  Entry rest = f.eval.select(isPositive, f.number(0), f.x);
  // exp(z) - 1 = 2 t / (1 - t) with t = tanh(z / 2), which loses no digits near 0.
  Entry t = f.eval.unary(UnaryKind::tanh, f.mul(rest, f.number(rate / 2)));
  Entry growth = f.div(t, f.sub(f.number(1), t));
  return f.eval.select(isPositive, f.mul(f.x, f.number(above)), f.mul(growth, f.number(2 * below)));
}

static Entry buildElu(const Formula &f) { return buildExponentialLinear(f, 1, f.node.getFloat("alpha", 1), 1); }

static Entry buildSelu(const Formula &f) {
  double alpha = f.node.getFloat("alpha", 1.67326319217681884765625);
  double gamma = f.node.getFloat("gamma", 1.05070102214813232421875);
  return buildExponentialLinear(f, gamma, gamma * alpha, 1);
}

static Entry buildCelu(const Formula &f) {
  double alpha = f.node.getFloat("alpha", 1);
  return buildExponentialLinear(f, 1, alpha, 1 / alpha);
}

/// Returns max(x, 0) + log(1 + exp(-|x|)), which never overflows. In f32 the absolute error is below 1e-7 where the
/// result is near 0; the gradient keeps its relative precision there.
static Entry buildSoftplus(const Formula &f) {
  Entry decay = f.eval.unary(UnaryKind::exp, f.eval.unary(UnaryKind::neg, f.eval.unary(UnaryKind::abs, f.x)));
  Entry tail = f.eval.unary(UnaryKind::log, f.add(decay, f.number(1)));
  // At 0 the tail has no gradient and the maximum half of one, together the right 1/2.
  return f.add(f.eval.binary(BinaryKind::max, f.x, f.number(0)), tail);
}

static Entry buildMish(const Formula &f) { return f.mul(f.x, f.eval.unary(UnaryKind::tanh, buildSoftplus(f))); }

static Entry buildSoftsign(const Formula &f) {
  return f.div(f.x, f.add(f.eval.unary(UnaryKind::abs, f.x), f.number(1)));
}

/// Returns `slope` · x + `offset` clipped to [0, 1]. Clipped elements, the bounds among them, have no gradient; NaN is
/// not clipped.
static Entry buildHardGate(const Formula &f, double slope, double offset) {
  Entry line = f.add(f.mul(f.x, f.number(slope)), f.number(offset));
  Entry isFull = f.eval.compare(CompareKind::greaterEqual, line, f.number(1));
  Entry isEmpty = f.eval.compare(CompareKind::lessEqual, line, f.number(0));
  return f.eval.select(isEmpty, f.number(0), f.eval.select(isFull, f.number(1), line));
}

static Entry buildHardSigmoid(const Formula &f) {
  return buildHardGate(f, f.node.getFloat("alpha", 0.2), f.node.getFloat("beta", 0.5));
}

static Entry buildHardSwish(const Formula &f) { return f.mul(f.x, buildHardGate(f, 1.0 / 6, 0.5)); }

static Entry buildThresholdedRelu(const Formula &f) {
  return f.eval.select(f.isAbove(f.x, f.node.getFloat("alpha", 1)), f.x, f.number(0));
}

static Entry buildShrink(const Formula &f) {
  double width = f.node.getFloat("lambd", 0.5);
  Entry bias = f.number(f.node.getFloat("bias", 0));
  Entry upper = f.eval.select(f.isAbove(f.x, width), f.sub(f.x, bias), f.number(0));
  return f.eval.select(f.isBelow(f.x, -width), f.add(f.x, bias), upper);
}

namespace {
struct Activation {
  llvm::StringLiteral name;
  Entry (*build)(const Formula &);
  /// Whether steps in 16 bits would lose what the result has: differences from 1, and logarithms near it.
  bool needsFullPrecision;
};
} // namespace

static constexpr Activation kActivations[] = {
    {"Swish", buildSwish, false},
    {"LeakyRelu", buildLeakyRelu, false},
    {"Elu", buildElu, true},
    {"Selu", buildSelu, true},
    {"Celu", buildCelu, true},
    {"Softplus", buildSoftplus, true},
    {"Mish", buildMish, true},
    {"Softsign", buildSoftsign, false},
    {"HardSigmoid", buildHardSigmoid, false},
    {"HardSwish", buildHardSwish, false},
    {"ThresholdedRelu", buildThresholdedRelu, false},
    {"Shrink", buildShrink, false},
};

void Legalizer::registerActivations() {
  handle("Gelu", &Legalizer::legalizeGelu);
  handle("PRelu", &Legalizer::legalizePRelu);
  for (const Activation &activation : kActivations)
    handle(activation.name, &Legalizer::legalizeActivation);
}

LogicalResult Legalizer::expectFloat(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  return node.inputs[0].isFloat() ? success() : invalid(node, "has an operand that is not float");
}

LogicalResult Legalizer::legalizeActivation(NodeContext &node) {
  if (failed(expectFloat(node)))
    return failure();
  llvm::StringRef name = node.op.getOpType();
  if (name == "Celu" && !(node.getFloat("alpha", 1) > 0))
    return invalid(node, "has an alpha of " + std::to_string(node.getFloat("alpha", 1)) + "; it must be more than 0");
  const Activation &activation = *llvm::find_if(kActivations, [&](const Activation &row) { return row.name == name; });
  Formula formula{node, eval, node.inputs[0]};
  if (!activation.needsFullPrecision)
    return give(node, activation.build(formula));
  return give(node, inFullPrecision([&] { return activation.build(formula); }));
}

LogicalResult Legalizer::legalizePRelu(NodeContext &node) {
  if (failed(expectFloat(node)) || failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0], &slope = node.inputs[1];
  if (failed(checkOperands(node, x, slope)))
    return failure();
  if (*broadcastShapes(x.getShape(), slope.getShape()) != x.getShape())
    return invalid(node, "has slopes that do not broadcast to its operand");
  Formula f{node, eval, x};
  return give(node, eval.select(f.isAbove(x, 0), x, f.mul(x, slope)));
}

LogicalResult Legalizer::legalizeGelu(NodeContext &node) {
  if (failed(expectFloat(node)))
    return failure();
  llvm::StringRef form = node.getString("approximate", "none");
  if (form != "none" && form != "tanh")
    return unsupported("has approximate = '" + form.take_front(40) + "'");
  return give(node, eval.unary(form == "tanh" ? UnaryKind::gelu_tanh : UnaryKind::gelu_erf, node.inputs[0]));
}
