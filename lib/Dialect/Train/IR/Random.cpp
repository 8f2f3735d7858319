// Dropout.
#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

LogicalResult DropoutOp::verify() {
  auto input = typeOf(getInput()), keys = typeOf(getKeys());
  if (input.getRank() == 0 || keys.getRank() != 1 || keys.getDimSize(0) != input.getDimSize(0))
    return emitOpError() << "needs one key for each sample of " << input << ", but its keys are " << keys;
  double ratio = getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio < 1))
    return emitOpError() << "drops elements at the rate " << ratio << ", which must be at least 0 and below 1";
  return success();
}

OpFactors DropoutOp::getFactors() {
  OpFactors factors;
  // A split would need ranks that know which elements of a sample are their own.
  ValueFactors dims = addDims(factors, typeOf(getInput()), "d", FactorKind::Replicated);
  factors.factors.front().kind = FactorKind::Parallel;
  factors.operands = {dims, {dims.front()}};
  factors.results = {dims};
  factors.unreducedTogether = {{0}};
  return factors;
}

OpCost DropoutOp::getCost() {
  // Ten rounds of the generator serve four elements.
  return getTrafficCost(*this, 25);
}

PrecisionClass DropoutOp::getPrecisionClass() { return PrecisionClass::Any; }

LogicalResult DropoutOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                      SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] =
        DropoutOp::create(builder, getLoc(), getInput().getType(), resultGradients[0], getKeys(), getRatioAttr());
  return success();
}
