//===- RecognizeActivations.cpp - GELU and SiLU ---------------------------===//

#include "Match.h"

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_TRAINRECOGNIZEACTIVATIONS
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
} // namespace windlass

namespace {

/// Returns the other summand of `value + constant`.
Value matchAddConstant(Value value, double constant) {
  auto add = value.getDefiningOp<train::AddOp>();
  if (!add)
    return {};
  for (auto [a, b] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
    if (std::optional<double> splat = getSplatValue(b); splat && isNearly(*splat, constant))
      return a;
  return {};
}

/// Whether the value is x³ · coefficient, as a power or as a product.
bool isCube(Value value, Value x, double coefficient) {
  Product product = collectProduct(value);
  if (!isNearly(product.coefficient, coefficient))
    return false;
  if (product.factors.size() == 1) {
    auto pow = product.factors[0].getDefiningOp<train::PowOp>();
    return pow && pow.getLhs() == x && getSplatValue(pow.getRhs()) == 3.0;
  }
  return product.factors.size() == 3 && llvm::all_of(product.factors, [&](Value factor) { return factor == x; });
}

/// The form: tanh(√(2/π) (x + 0.044715 x³)), or erf(x / √2).
enum class Form { none, tanh, erf };
Form matchInner(Value value, Value x) {
  if (auto erf = value.getDefiningOp<train::ErfOp>()) {
    Product product = collectProduct(erf.getInput());
    bool fits = product.factors.size() == 1 && product.factors[0] == x && isNearly(product.coefficient, std::sqrt(0.5));
    return fits ? Form::erf : Form::none;
  }
  auto tanh = value.getDefiningOp<train::TanhOp>();
  if (!tanh)
    return Form::none;
  Product product = collectProduct(tanh.getInput());
  if (!isNearly(product.coefficient, std::sqrt(2 / M_PI)))
    return Form::none;
  // The other spelling takes x out of the sum: √(2/π) x (1 + 0.044715 x²).
  if (product.factors.size() == 2) {
    auto isOuter = [&](Value outer, Value rest) {
      Value square = outer == x ? matchAddConstant(rest, 1) : Value();
      Product inner = square ? collectProduct(square) : Product();
      return inner.factors.size() == 2 && isNearly(inner.coefficient, 0.044715) &&
             llvm::all_of(inner.factors, [&](Value factor) { return factor == x; });
    };
    bool fits = isOuter(product.factors[0], product.factors[1]) || isOuter(product.factors[1], product.factors[0]);
    return fits ? Form::tanh : Form::none;
  }
  if (product.factors.size() != 1)
    return Form::none;
  auto sum = product.factors[0].getDefiningOp<train::AddOp>();
  if (!sum)
    return Form::none;
  for (auto [a, b] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())})
    if (a == x && isCube(b, x, 0.044715))
      return Form::tanh;
  return Form::none;
}

/// Recognises a product of x, 1/2 and 1 + tanh(…) or 1 + erf(…), in any order; or x · sigmoid(x).
struct RecognizeActivation : OpRewritePattern<train::MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::MulOp op, PatternRewriter &rewriter) const override {
    Product product = collectProduct(op.getResult());
    if (product.factors.size() != 2)
      return failure();
    for (auto [x, gate] :
         {std::pair(product.factors[0], product.factors[1]), std::pair(product.factors[1], product.factors[0])}) {
      auto sigmoid = gate.getDefiningOp<train::SigmoidOp>();
      if (sigmoid && sigmoid.getInput() == x && product.coefficient == 1) {
        rewriter.replaceOpWithNewOp<train::SiluOp>(op, op.getType(), x);
        return success();
      }
      if (!isNearly(product.coefficient, 0.5))
        continue;
      Value inner = matchAddConstant(gate, 1);
      Form form = inner ? matchInner(inner, x) : Form::none;
      if (form == Form::none)
        continue;
      if (form == Form::tanh)
        rewriter.replaceOpWithNewOp<train::GeluTanhOp>(op, op.getType(), x);
      else
        rewriter.replaceOpWithNewOp<train::GeluErfOp>(op, op.getType(), x);
      return success();
    }
    return failure();
  }
};

struct TrainRecognizeActivationsPass : windlass::impl::TrainRecognizeActivationsBase<TrainRecognizeActivationsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeActivation>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
