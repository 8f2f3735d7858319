// Element-wise operators: names of scalar functions, factors, gradients.
#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

namespace {

/// Which operands may be unreduced together: the sets in which the operator is linear.
SmallVector<SmallVector<unsigned, 2>, 2> getLinearSets(Operation *op) {
  using Sets = SmallVector<SmallVector<unsigned, 2>, 2>;
  return TypeSwitch<Operation *, Sets>(op)
      .Case<AddOp, SubOp>([](auto) { return Sets{{0, 1}}; })
      .Case<MulOp>([](auto) { return Sets{{0}, {1}}; })
      .Case<DivOp, NegOp>([](auto op) {
        // An integer quotient of parts is not the quotient of the sum.
        return isa<FloatType>(getElementTypeOrSelf(op.getType())) || isa<NegOp>(op) ? Sets{{0}} : Sets{};
      })
      .Case<SelectOp>([](auto) { return Sets{{1, 2}}; })
      .Case<CastOp>([](CastOp op) {
        bool isLinear = isa<FloatType>(getElementTypeOrSelf(op.getInput().getType())) &&
                        isa<FloatType>(getElementTypeOrSelf(op.getType()));
        return isLinear ? Sets{{0}} : Sets{};
      })
      .Case<AccumulateOp>([](AccumulateOp op) {
        Sets sets(1);
        for (unsigned index = 0; index < op.getInputs().size(); ++index)
          sets[0].push_back(index);
        return sets;
      })
#define WINDLASS_ACTIVATION(Class, ...) .Case<Class##GradOp>([](auto) { return Sets{{1}}; })
#include "windlass/Dialect/Train/IR/RealFunctions.def"
      .Default([](Operation *) { return Sets{}; });
}

OpFactors getFactorsOf(Operation *op) {
  OpFactors factors = getElementwiseFactors(op);
  factors.unreducedTogether = getLinearSets(op);
  return factors;
}

} // namespace

// `flops` are per element in vectorized code, an addition being 1.
#define WINDLASS_SCALAR_OP(Op, name, flops)                                                                            \
  StringRef Op::getScalarFunction() { return name; }                                                                   \
  OpFactors Op::getFactors() { return getFactorsOf(*this); }                                                           \
  OpCost Op::getCost() { return getTrafficCost(*this, flops); }                                                        \
  PrecisionClass Op::getPrecisionClass() { return getClass(*this, PrecisionClass::Any); }

WINDLASS_SCALAR_OP(AddOp, "add", 1)
WINDLASS_SCALAR_OP(SubOp, "sub", 1)
WINDLASS_SCALAR_OP(MulOp, "mul", 1)
WINDLASS_SCALAR_OP(DivOp, "div", 4)
WINDLASS_SCALAR_OP(PowOp, "pow", 25)
WINDLASS_SCALAR_OP(MaxOp, "max", 1)
WINDLASS_SCALAR_OP(MinOp, "min", 1)
WINDLASS_SCALAR_OP(AndOp, "logical_and", 1)
WINDLASS_SCALAR_OP(OrOp, "logical_or", 1)
WINDLASS_SCALAR_OP(NotOp, "logical_not", 1)
WINDLASS_SCALAR_OP(NegOp, "neg", 1)
WINDLASS_SCALAR_OP(AbsOp, "abs", 1)
WINDLASS_SCALAR_OP(IsNanOp, "is_nan", 1)
WINDLASS_SCALAR_OP(CompareOp, stringifyPredicate(getPredicate()), 1)
WINDLASS_SCALAR_OP(SelectOp, "select", 1)
// A conversion is the language's own cast, and an accumulate of n values is n - 1 additions.
WINDLASS_SCALAR_OP(CastOp, "cast", 1)
WINDLASS_SCALAR_OP(AccumulateOp, "add", std::max(1.0, getInputs().size() - 1.0))
#define WINDLASS_REAL_FUNCTION(Class, name, onnx, flops, low, high, gradient)                                          \
  WINDLASS_SCALAR_OP(Class##Op, #name, flops)
#include "windlass/Dialect/Train/IR/RealFunctions.def"
#define WINDLASS_ACTIVATION(Class, name, onnx, flops, low, high, kept, gradientFlops)                                  \
  WINDLASS_SCALAR_OP(Class##GradOp, #name "_grad", gradientFlops)
#include "windlass/Dialect/Train/IR/RealFunctions.def"

// Gradients. `dy` is the gradient of the result; each rule fills the active operands only.

#define WINDLASS_ADJOINT(Op)                                                                                           \
  LogicalResult Op::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,           \
                                 SmallVectorImpl<Value> &gradients)

// A rule of one operand whose gradient is the expression, in terms of b (a chain of builders), dy and the op.
#define WINDLASS_UNARY_ADJOINT(Op, expression)                                                                         \
  WINDLASS_ADJOINT(Op) {                                                                                               \
    Value dy = resultGradients[0];                                                                                     \
    Location loc = getLoc();                                                                                           \
    [[maybe_unused]] Value x = getInput(), y = getResult();                                                            \
    if (active[0] && dy)                                                                                               \
      gradients[0] = expression;                                                                                       \
    return success();                                                                                                  \
  }

#define MAKE(Op, ...) Op::create(builder, loc, __VA_ARGS__).getResult()
#define SPLAT(value) makeSplat(builder, loc, dy.getType(), value)

WINDLASS_ADJOINT(AddOp) {
  for (unsigned index : {0, 1})
    if (active[index])
      gradients[index] = resultGradients[0];
  return success();
}

WINDLASS_ADJOINT(SubOp) {
  if (active[0])
    gradients[0] = resultGradients[0];
  if (active[1])
    gradients[1] = NegOp::create(builder, getLoc(), resultGradients[0]);
  return success();
}

WINDLASS_ADJOINT(MulOp) {
  if (active[0])
    gradients[0] = MulOp::create(builder, getLoc(), resultGradients[0], getRhs());
  if (active[1])
    gradients[1] = MulOp::create(builder, getLoc(), resultGradients[0], getLhs());
  return success();
}

WINDLASS_ADJOINT(DivOp) {
  Value dy = resultGradients[0];
  Location loc = getLoc();
  Value quotient = MAKE(DivOp, dy, getRhs());
  if (active[0])
    gradients[0] = quotient;
  if (active[1])
    gradients[1] = MAKE(NegOp, MAKE(MulOp, quotient, getResult()));
  return success();
}

WINDLASS_ADJOINT(PowOp) {
  Value dy = resultGradients[0], x = getLhs();
  Location loc = getLoc();
  if (active[0])
    gradients[0] = MAKE(MulOp, MAKE(MulOp, dy, getRhs()), MAKE(PowOp, x, MAKE(SubOp, getRhs(), SPLAT(1))));
  if (!active[1])
    return success();
  // d x^e / de = x^e log x, and 0 at 0, as in PyTorch.
  auto mask = makeType(typeOf(x).getShape(), builder.getI1Type());
  Value zero = SPLAT(0);
  Value isZero = CompareOp::create(builder, loc, mask, Predicate::equal, x, zero);
  gradients[1] = MAKE(SelectOp, isZero, zero, MAKE(MulOp, dy, MAKE(MulOp, getResult(), MAKE(LogOp, x))));
  return success();
}

/// The chosen operand gets the gradient; a tie is halved. `chosen` compares lhs with rhs where lhs is taken.
static LogicalResult buildChoiceAdjoint(OpBuilder &builder, Location loc, Value lhs, Value rhs, Predicate chosen,
                                        Value dy, ArrayRef<bool> active, SmallVectorImpl<Value> &gradients) {
  auto mask = makeType(typeOf(lhs).getShape(), builder.getI1Type());
  Value tie = CompareOp::create(builder, loc, mask, Predicate::equal, lhs, rhs);
  Value half = MAKE(MulOp, dy, SPLAT(0.5));
  Value zero = SPLAT(0);
  for (unsigned index : {0, 1}) {
    if (!active[index])
      continue;
    Value taken = CompareOp::create(builder, loc, mask, chosen, index ? rhs : lhs, index ? lhs : rhs);
    gradients[index] = MAKE(SelectOp, tie, half, MAKE(SelectOp, taken, dy, zero));
  }
  return success();
}

WINDLASS_ADJOINT(MaxOp) {
  return buildChoiceAdjoint(builder, getLoc(), getLhs(), getRhs(), Predicate::greater, resultGradients[0], active,
                            gradients);
}

WINDLASS_ADJOINT(MinOp) {
  return buildChoiceAdjoint(builder, getLoc(), getLhs(), getRhs(), Predicate::less, resultGradients[0], active,
                            gradients);
}

WINDLASS_ADJOINT(AbsOp) {
  if (!active[0])
    return success();
  Value dy = resultGradients[0];
  Location loc = getLoc();
  auto mask = makeType(typeOf(dy).getShape(), builder.getI1Type());
  Value zero = SPLAT(0);
  Value isPositive = CompareOp::create(builder, loc, mask, Predicate::greater, getInput(), zero);
  Value isNegative = CompareOp::create(builder, loc, mask, Predicate::less, getInput(), zero);
  gradients[0] = MAKE(SelectOp, isPositive, dy, MAKE(SelectOp, isNegative, MAKE(NegOp, dy), zero));
  return success();
}

WINDLASS_UNARY_ADJOINT(NegOp, MAKE(NegOp, dy))
WINDLASS_UNARY_ADJOINT(CastOp, MAKE(CastOp, x.getType(), dy))
#define WINDLASS_REAL_FUNCTION(Class, name, onnx, flops, low, high, gradient)                                          \
  WINDLASS_UNARY_ADJOINT(Class##Op, gradient)
#include "windlass/Dialect/Train/IR/RealFunctions.def"

WINDLASS_ADJOINT(SelectOp) {
  Value dy = resultGradients[0];
  Location loc = getLoc();
  if (active[1])
    gradients[1] = MAKE(SelectOp, getCondition(), dy, SPLAT(0));
  if (active[2])
    gradients[2] = MAKE(SelectOp, getCondition(), SPLAT(0), dy);
  return success();
}
