//===- Match.cpp - what the recognising passes look for -------------------===//

#include "Match.h"

#include <cmath>

using namespace mlir;
using namespace windlass;

std::optional<double> windlass::getSplatValue(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto constant = dyn_cast<train::ConstantOp>(op)) {
      auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!elements || !elements.isSplat())
        return std::nullopt;
      if (isa<FloatType>(elements.getElementType()))
        return elements.getSplatValue<llvm::APFloat>().convertToDouble();
      llvm::APInt number = elements.getSplatValue<llvm::APInt>();
      return number.getBitWidth() == 1 ? double(number.getZExtValue()) : double(number.getSExtValue());
    }
    if (!isa<train::BroadcastOp, train::ReshapeOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

static void collectInto(Value value, Product &product, int depth) {
  if (depth < 16) {
    if (std::optional<double> splat = getSplatValue(value)) {
      product.coefficient *= *splat;
      return;
    }
    if (auto mul = value.getDefiningOp<train::MulOp>()) {
      collectInto(mul.getLhs(), product, depth + 1);
      collectInto(mul.getRhs(), product, depth + 1);
      return;
    }
    if (auto div = value.getDefiningOp<train::DivOp>())
      if (std::optional<double> splat = getSplatValue(div.getRhs()); splat && *splat != 0) {
        product.coefficient /= *splat;
        collectInto(div.getLhs(), product, depth + 1);
        return;
      }
    if (auto neg = value.getDefiningOp<train::NegOp>()) {
      product.coefficient = -product.coefficient;
      collectInto(neg.getInput(), product, depth + 1);
      return;
    }
  }
  product.factors.push_back(value);
}

Product windlass::collectProduct(Value value) {
  Product product;
  collectInto(value, product, 0);
  return product;
}

Value windlass::matchHalf(Value value, bool isSecond) {
  if (auto split = value.getDefiningOp<train::SplitOp>()) {
    bool isHalves = split.getSizes().size() == 2 && split.getSizes()[0] == split.getSizes()[1] &&
                    split.getAxis() + 1 == shapeOf(value).size() && split.getResult(isSecond) == value;
    return isHalves ? split.getInput() : Value();
  }
  auto slice = value.getDefiningOp<train::SliceOp>();
  if (!slice)
    return {};
  llvm::ArrayRef<int64_t> whole = shapeOf(slice.getInput());
  int64_t half = slice.getSizes().back();
  bool isHalf = half * 2 == whole.back() && slice.getStarts().back() == (isSecond ? half : 0) &&
                slice.getSizes().drop_back() == whole.drop_back();
  return isHalf ? slice.getInput() : Value();
}

bool windlass::isNearly(double a, double b) { return std::fabs(a - b) <= 1e-5 * std::max(std::fabs(a), std::fabs(b)); }

llvm::ArrayRef<int64_t> windlass::getMergedDims(train::ReshapeOp op) {
  llvm::ArrayRef<int64_t> from = shapeOf(op.getInput()), to = shapeOf(op.getResult());
  if (to.empty() || from.size() <= to.size())
    return {};
  size_t rest = to.size() - 1, merged = from.size() - rest;
  if (from.take_back(rest) != to.take_back(rest))
    return {};
  return from.take_front(merged);
}

bool windlass::dependsOnTrainable(Value value) {
  llvm::SmallVector<Value> stack{value};
  llvm::DenseSet<Operation *> seen;
  while (!stack.empty()) {
    Operation *op = stack.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (auto read = dyn_cast<train::ReadOp>(op)) {
      auto parameter = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(op, read.getParameterAttr());
      if (!parameter || parameter.getTrainable())
        return true;
    }
    llvm::append_range(stack, op->getOperands());
  }
  return false;
}

namespace {

struct ReshapeOfReshape : OpRewritePattern<train::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::ReshapeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<train::ReshapeOp>();
    if (!inner)
      return failure();
    rewriter.replaceOpWithNewOp<train::ReshapeOp>(op, op.getType(), inner.getInput());
    return success();
  }
};

struct TransposeOfTranspose : OpRewritePattern<train::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(train::TransposeOp op, PatternRewriter &rewriter) const override {
    bool isIdentity = true;
    for (auto [i, dim] : llvm::enumerate(op.getPermutation()))
      isIdentity &= dim == static_cast<int64_t>(i);
    if (isIdentity) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<train::TransposeOp>();
    if (!inner)
      return failure();
    llvm::SmallVector<int64_t> permutation;
    for (int64_t dim : op.getPermutation())
      permutation.push_back(inner.getPermutation()[dim]);
    rewriter.replaceOpWithNewOp<train::TransposeOp>(op, op.getType(), inner.getInput(), permutation);
    return success();
  }
};

} // namespace

void windlass::populateLayoutPatterns(RewritePatternSet &patterns) {
  patterns.add<ReshapeOfReshape, TransposeOfTranspose>(patterns.getContext());
}
