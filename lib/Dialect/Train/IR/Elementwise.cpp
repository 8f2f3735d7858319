// Element-wise operators: names of scalar functions, factors, gradients.
#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

namespace {

/// Rough costs relative to an addition, for vectorised code.
double getFlopsPerElement(Operation *op) {
  return TypeSwitch<Operation *, double>(op)
      .Case<AddOp, SubOp, MulOp, NegOp, AbsOp, MaxOp, MinOp, AndOp, OrOp, NotOp, IsNanOp, CompareOp, SelectOp, ReluOp,
            ReluGradOp, CastOp>([](auto) { return 1.0; })
      .Case<AccumulateOp>([](auto sum) { return std::max(1.0, sum.getInputs().size() - 1.0); })
      .Case<DivOp, ReciprocalOp, SqrtOp, RsqrtOp, SigmoidGradOp, TanhGradOp>([](auto) { return 4.0; })
      .Case<ExpOp, LogOp, SigmoidOp, SiluOp, TanhOp, ErfOp, SinOp, CosOp>([](auto) { return 15.0; })
      .Default([](Operation *) { return 25.0; });
}

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
      .Case<ReluGradOp, GeluErfGradOp, GeluTanhGradOp, SiluGradOp, SigmoidGradOp, TanhGradOp>(
          [](auto) { return Sets{{1}}; })
      .Default([](Operation *) { return Sets{}; });
}

OpFactors getFactorsOf(Operation *op) {
  OpFactors factors = getElementwiseFactors(op);
  factors.unreducedTogether = getLinearSets(op);
  return factors;
}

} // namespace

#define WINDLASS_SCALAR_OP(Op, name)                                                                                   \
  StringRef Op::getScalarFunction() { return name; }                                                                   \
  OpFactors Op::getFactors() { return getFactorsOf(*this); }                                                           \
  OpCost Op::getCost() { return getTrafficCost(*this, getFlopsPerElement(*this)); }                                    \
  PrecisionClass Op::getPrecisionClass() { return getClass(*this, PrecisionClass::Any); }

WINDLASS_SCALAR_OP(AddOp, "add")
WINDLASS_SCALAR_OP(SubOp, "sub")
WINDLASS_SCALAR_OP(MulOp, "mul")
WINDLASS_SCALAR_OP(DivOp, "div")
WINDLASS_SCALAR_OP(PowOp, "pow")
WINDLASS_SCALAR_OP(MaxOp, "max")
WINDLASS_SCALAR_OP(MinOp, "min")
WINDLASS_SCALAR_OP(AndOp, "logical_and")
WINDLASS_SCALAR_OP(OrOp, "logical_or")
WINDLASS_SCALAR_OP(NotOp, "logical_not")
WINDLASS_SCALAR_OP(NegOp, "neg")
WINDLASS_SCALAR_OP(AbsOp, "abs")
WINDLASS_SCALAR_OP(ExpOp, "exp")
WINDLASS_SCALAR_OP(LogOp, "log")
WINDLASS_SCALAR_OP(SqrtOp, "sqrt")
WINDLASS_SCALAR_OP(RsqrtOp, "rsqrt")
WINDLASS_SCALAR_OP(ReciprocalOp, "reciprocal")
WINDLASS_SCALAR_OP(TanhOp, "tanh")
WINDLASS_SCALAR_OP(ErfOp, "erf")
WINDLASS_SCALAR_OP(SinOp, "sin")
WINDLASS_SCALAR_OP(CosOp, "cos")
WINDLASS_SCALAR_OP(SigmoidOp, "sigmoid")
WINDLASS_SCALAR_OP(ReluOp, "relu")
WINDLASS_SCALAR_OP(GeluErfOp, "gelu_erf")
WINDLASS_SCALAR_OP(GeluTanhOp, "gelu_tanh")
WINDLASS_SCALAR_OP(SiluOp, "silu")
WINDLASS_SCALAR_OP(IsNanOp, "is_nan")
WINDLASS_SCALAR_OP(CompareOp, stringifyPredicate(getPredicate()))
WINDLASS_SCALAR_OP(SelectOp, "select")
// A conversion is the language's own cast, and an accumulate of n values is n - 1 additions.
WINDLASS_SCALAR_OP(CastOp, "cast")
WINDLASS_SCALAR_OP(AccumulateOp, "add")
WINDLASS_SCALAR_OP(ReluGradOp, "relu_grad")
WINDLASS_SCALAR_OP(GeluErfGradOp, "gelu_erf_grad")
WINDLASS_SCALAR_OP(GeluTanhGradOp, "gelu_tanh_grad")
WINDLASS_SCALAR_OP(SiluGradOp, "silu_grad")
WINDLASS_SCALAR_OP(SigmoidGradOp, "sigmoid_grad")
WINDLASS_SCALAR_OP(TanhGradOp, "tanh_grad")

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
  if (active[1])
    return emitOpError() << "cannot be differentiated by its exponent, which depends on a trainable parameter; freeze "
                            "that parameter";
  Value dy = resultGradients[0];
  Location loc = getLoc();
  if (active[0])
    gradients[0] = MAKE(MulOp, MAKE(MulOp, dy, getRhs()), MAKE(PowOp, getLhs(), MAKE(SubOp, getRhs(), SPLAT(1))));
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
WINDLASS_UNARY_ADJOINT(ExpOp, MAKE(MulOp, dy, y))
WINDLASS_UNARY_ADJOINT(LogOp, MAKE(DivOp, dy, x))
WINDLASS_UNARY_ADJOINT(SqrtOp, MAKE(DivOp, MAKE(MulOp, dy, SPLAT(0.5)), y))
WINDLASS_UNARY_ADJOINT(RsqrtOp, MAKE(MulOp, MAKE(MulOp, dy, SPLAT(-0.5)), MAKE(MulOp, y, MAKE(MulOp, y, y))))
WINDLASS_UNARY_ADJOINT(ReciprocalOp, MAKE(NegOp, MAKE(MulOp, dy, MAKE(MulOp, y, y))))
WINDLASS_UNARY_ADJOINT(TanhOp, MAKE(TanhGradOp, y, dy))
// d erf(x) / dx = 2 / sqrt(pi) exp(-x^2)
WINDLASS_UNARY_ADJOINT(ErfOp, MAKE(MulOp, MAKE(MulOp, dy, SPLAT(1.1283791670955126)),
                                   MAKE(ExpOp, MAKE(NegOp, MAKE(MulOp, x, x)))))
WINDLASS_UNARY_ADJOINT(SinOp, MAKE(MulOp, dy, MAKE(CosOp, x)))
WINDLASS_UNARY_ADJOINT(CosOp, MAKE(NegOp, MAKE(MulOp, dy, MAKE(SinOp, x))))
WINDLASS_UNARY_ADJOINT(SigmoidOp, MAKE(SigmoidGradOp, y, dy))
WINDLASS_UNARY_ADJOINT(ReluOp, MAKE(ReluGradOp, x, dy))
WINDLASS_UNARY_ADJOINT(GeluErfOp, MAKE(GeluErfGradOp, x, dy))
WINDLASS_UNARY_ADJOINT(GeluTanhOp, MAKE(GeluTanhGradOp, x, dy))
WINDLASS_UNARY_ADJOINT(SiluOp, MAKE(SiluGradOp, x, dy))
WINDLASS_UNARY_ADJOINT(CastOp, MAKE(CastOp, x.getType(), dy))

WINDLASS_ADJOINT(SelectOp) {
  Value dy = resultGradients[0];
  Location loc = getLoc();
  if (active[1])
    gradients[1] = MAKE(SelectOp, getCondition(), dy, SPLAT(0));
  if (active[2])
    gradients[2] = MAKE(SelectOp, getCondition(), SPLAT(0), dy);
  return success();
}
