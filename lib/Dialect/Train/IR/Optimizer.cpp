// The optimizers, and the operators of @update.
#include "windlass/Dialect/Train/IR/Optimizers.h"

#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

llvm::ArrayRef<Optimizer> windlass::train::getOptimizers() {
  using H = Hyperparameter;
  static constexpr llvm::StringRef moments[] = {"exp_avg", "exp_avg_sq"}, average[] = {"exp_avg"},
                                   momentum[] = {"momentum_buffer"};
  static constexpr H adam[] = {H::learning_rate, H::one_minus_beta1,  H::one_minus_beta2, H::epsilon,
                               H::weight_decay,  H::bias_correction1, H::bias_correction2},
                     lamb[] = {H::one_minus_beta1, H::one_minus_beta2,  H::epsilon,
                               H::weight_decay,    H::bias_correction1, H::bias_correction2},
                     lion[] = {H::learning_rate, H::one_minus_beta1, H::one_minus_beta2, H::weight_decay},
                     sgd[] = {H::learning_rate, H::momentum, H::weight_decay};
  static const Optimizer all[] = {{"adamw", AdamWOp::getOperationName(), moments, adam},
                                  {"adafactor", /*step=*/"", /*states=*/{}, /*hyperparameters=*/{},
                                   /*isCoupled=*/false, /*givesDirection=*/false, /*orthogonalizes=*/false,
                                   /*factorsMoments=*/true},
                                  {"adam", AdamWOp::getOperationName(), moments, adam, /*isCoupled=*/true},
                                  {"lamb", LambOp::getOperationName(), moments, lamb, /*isCoupled=*/false,
                                   /*givesDirection=*/true},
                                  {"lion", LionOp::getOperationName(), average, lion},
                                  {"muon", AdamWOp::getOperationName(), moments, adam, /*isCoupled=*/false,
                                   /*givesDirection=*/false, /*orthogonalizes=*/true},
                                  {"sgd", SgdOp::getOperationName(), momentum, sgd}};
  return all;
}

const Optimizer *windlass::train::findOptimizer(llvm::StringRef name) {
  const Optimizer *found = llvm::find_if(getOptimizers(), [&](const Optimizer &each) { return each.name == name; });
  return found == getOptimizers().end() ? nullptr : found;
}

std::optional<std::pair<llvm::StringRef, double>> windlass::train::parseScale(llvm::StringRef text) {
  auto [glob, number] = text.rsplit('=');
  double scale;
  if (glob.empty() || number.getAsDouble(scale) || !(scale > 0 && scale <= kMostScale))
    return std::nullopt;
  return std::pair(glob, scale);
}

bool windlass::train::isOptimizerStep(Operation *op) {
  return llvm::isa<AdamWOp, DescendOp, EmaOp, LambOp, LionOp, MomentumOp, SgdOp>(op);
}

namespace {

/// Checks that state and gradient have the type of the weight, and that the other operands are scalars of its element
/// type. Operand `narrow` may be of bf16 instead.
LogicalResult checkUpdate(Emit emit, ValueRange operands, unsigned tensors, std::optional<unsigned> narrow = {}) {
  auto weight = typeOf(operands[0]);
  for (auto [index, operand] : llvm::enumerate(operands)) {
    auto expected = index < tensors ? weight : makeType({}, weight.getElementType());
    bool isNarrow = index == narrow && typeOf(operand) == expected.clone(BFloat16Type::get(expected.getContext()));
    if (operand.getType() != expected && !isNarrow)
      return emit() << "operand " << index << " has type " << operand.getType() << ", but the weight " << weight
                    << " needs " << expected;
  }
  return success();
}

/// Returns the types of `results` results, each that of the weight, which the first `tensors` operands have too, but
/// for `narrow`, which may be of bf16.
FailureOr<Types> inferUpdate(Emit emit, ValueRange operands, unsigned tensors, unsigned results,
                             std::optional<unsigned> narrow = {}) {
  if (failed(checkUpdate(emit, operands, tensors, narrow)))
    return failure();
  return Types(results, operands.front().getType());
}

FailureOr<Types> inferAdamW(AdamWOp::Adaptor op, Emit emit) {
  return inferUpdate(emit, op.getOperands(), 4, 3, /*narrow=*/3);
}
FailureOr<Types> inferDescend(DescendOp::Adaptor op, Emit emit) { return inferUpdate(emit, op.getOperands(), 2, 1); }
FailureOr<Types> inferEma(EmaOp::Adaptor op, Emit emit) { return inferUpdate(emit, op.getOperands(), 2, 1); }
FailureOr<Types> inferLamb(LambOp::Adaptor op, Emit emit) { return inferUpdate(emit, op.getOperands(), 4, 3); }
FailureOr<Types> inferLion(LionOp::Adaptor op, Emit emit) { return inferUpdate(emit, op.getOperands(), 3, 2); }
FailureOr<Types> inferMomentum(MomentumOp::Adaptor op, Emit emit) { return inferUpdate(emit, op.getOperands(), 2, 2); }
FailureOr<Types> inferSgd(SgdOp::Adaptor op, Emit emit) { return inferUpdate(emit, op.getOperands(), 3, 2); }

FailureOr<Types> inferAverage(AverageOp::Adaptor op, Emit emit) {
  if (failed(checkUpdate(emit, op.getOperands(), 2)))
    return failure();
  if (double rate = op.getRate().convertToDouble(); !(rate >= 0 && rate <= 1))
    return emit() << "has a rate of " << rate << "; a share is between 0 and 1";
  return Types{op.getRunning().getType()};
}

/// Adds the flat factor, but for a scalar, which cannot be sharded.
void addFlat(OpFactors &factors, RankedTensorType type) {
  if (type.getRank() > 0)
    factors.add("flat", type.getNumElements(), FactorKind::Flat);
}

OpFactors getUpdateFactors(Operation *op) {
  OpFactors factors;
  ValueFactors dims = addDims(factors, typeOf(op->getOperand(0)));
  addFlat(factors, typeOf(op->getOperand(0)));
  for (Value operand : op->getOperands())
    factors.operands.push_back(typeOf(operand).getRank() == 0 ? ValueFactors() : dims);
  factors.results.assign(op->getNumResults(), dims);
  return factors;
}

} // namespace

WINDLASS_INFERRED_OP(AdamWOp, inferAdamW)
WINDLASS_INFERRED_OP(LionOp, inferLion)
WINDLASS_INFERRED_OP(SgdOp, inferSgd)
WINDLASS_INFERRED_OP(LambOp, inferLamb)
WINDLASS_INFERRED_OP(MomentumOp, inferMomentum)
WINDLASS_INFERRED_OP(DescendOp, inferDescend)
WINDLASS_INFERRED_OP(EmaOp, inferEma)
WINDLASS_INFERRED_OP(AverageOp, inferAverage)

OpFactors SquareSumOp::getFactors() {
  OpFactors factors;
  factors.operands = {addDims(factors, typeOf(getInput()), "d", FactorKind::Reduction)};
  factors.results = {{}};
  addFlat(factors, typeOf(getInput()));
  return factors;
}

OpCost SquareSumOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  cost.flops = 2.0 * typeOf(getInput()).getNumElements();
  return cost;
}

PrecisionClass SquareSumOp::getPrecisionClass() { return PrecisionClass::Full; }

OpFactors ClipFactorOp::getFactors() { return getElementwiseFactors(*this); }
OpCost ClipFactorOp::getCost() { return getTrafficCost(*this, 3); }
PrecisionClass ClipFactorOp::getPrecisionClass() { return PrecisionClass::Full; }

OpFactors AdamWOp::getFactors() { return getUpdateFactors(*this); }
OpCost AdamWOp::getCost() { return getTrafficCost(*this, 7); }
PrecisionClass AdamWOp::getPrecisionClass() { return PrecisionClass::Full; }

OpFactors LionOp::getFactors() { return getUpdateFactors(*this); }
OpCost LionOp::getCost() { return getTrafficCost(*this, 6); }
PrecisionClass LionOp::getPrecisionClass() { return PrecisionClass::Full; }

OpFactors SgdOp::getFactors() { return getUpdateFactors(*this); }
OpCost SgdOp::getCost() { return getTrafficCost(*this, 4); }
PrecisionClass SgdOp::getPrecisionClass() { return PrecisionClass::Full; }

OpFactors LambOp::getFactors() { return getUpdateFactors(*this); }
OpCost LambOp::getCost() { return getTrafficCost(*this, 7); }
PrecisionClass LambOp::getPrecisionClass() { return PrecisionClass::Full; }

OpFactors MomentumOp::getFactors() { return getUpdateFactors(*this); }
OpCost MomentumOp::getCost() { return getTrafficCost(*this, 7); }
PrecisionClass MomentumOp::getPrecisionClass() { return PrecisionClass::Full; }

OpFactors DescendOp::getFactors() { return getUpdateFactors(*this); }
OpCost DescendOp::getCost() { return getTrafficCost(*this, 4); }
PrecisionClass DescendOp::getPrecisionClass() { return PrecisionClass::Full; }

OpFactors EmaOp::getFactors() { return getUpdateFactors(*this); }
OpCost EmaOp::getCost() { return getTrafficCost(*this, 3); }
PrecisionClass EmaOp::getPrecisionClass() { return PrecisionClass::Full; }

OpFactors AverageOp::getFactors() { return getUpdateFactors(*this); }
OpCost AverageOp::getCost() { return getTrafficCost(*this, 2); }
PrecisionClass AverageOp::getPrecisionClass() { return PrecisionClass::Full; }
