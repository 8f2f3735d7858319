// train.matmul
#include "OpSupport.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace windlass::train;

namespace {

/// Dims of a tensor of that rank that are in neither list, in order.
SmallVector<int64_t> getOtherDims(int64_t rank, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      dims.push_back(dim);
  return dims;
}

LogicalResult checkPairs(Emit emit, RankedTensorType lhs, RankedTensorType rhs, ArrayRef<int64_t> lhsDims,
                         ArrayRef<int64_t> rhsDims, StringRef name) {
  if (lhsDims.size() != rhsDims.size())
    return emit() << name << " dims " << toText(lhsDims) << " x " << toText(rhsDims) << " must be equally many";
  for (auto [l, r] : llvm::zip(lhsDims, rhsDims))
    if (lhs.getDimSize(l) != rhs.getDimSize(r))
      return emit() << name << " dims " << l << " of " << lhs << " and " << r << " of " << rhs
                    << " differ: " << lhs.getDimSize(l) << " and " << rhs.getDimSize(r);
  return success();
}

FailureOr<Types> inferMatmul(MatmulOp::Adaptor op, Emit emit) {
  auto lhs = typeOf(op.getLhs()), rhs = typeOf(op.getRhs());
  if (lhs.getElementType() != rhs.getElementType())
    return emit() << "multiplies " << lhs << " by " << rhs << "; the element types must agree";
  SmallVector<int64_t> lhsUsed(op.getLhsBatch()), rhsUsed(op.getRhsBatch());
  llvm::append_range(lhsUsed, op.getLhsContract());
  llvm::append_range(rhsUsed, op.getRhsContract());
  if (failed(checkDistinctDims(emit, lhsUsed, lhs.getRank(), "lhs dims")) ||
      failed(checkDistinctDims(emit, rhsUsed, rhs.getRank(), "rhs dims")) ||
      failed(checkPairs(emit, lhs, rhs, op.getLhsBatch(), op.getRhsBatch(), "batch")) ||
      failed(checkPairs(emit, lhs, rhs, op.getLhsContract(), op.getRhsContract(), "contracted")))
    return failure();
  Shape shape;
  for (int64_t dim : op.getLhsBatch())
    shape.push_back(lhs.getDimSize(dim));
  for (int64_t dim : getOtherDims(lhs.getRank(), op.getLhsBatch(), op.getLhsContract()))
    shape.push_back(lhs.getDimSize(dim));
  for (int64_t dim : getOtherDims(rhs.getRank(), op.getRhsBatch(), op.getRhsContract()))
    shape.push_back(rhs.getDimSize(dim));
  return Types{makeType(shape, op.getWide() ? getWideType(lhs.getElementType()) : lhs.getElementType())};
}

SmallVector<int64_t> makeRange(int64_t start, int64_t size) {
  return llvm::to_vector(llvm::seq<int64_t>(start, start + size));
}

/// One side of the product: its value, and where its dims are.
struct Side {
  Value value;
  ArrayRef<int64_t> batch, contract;
  SmallVector<int64_t> free;
};

/// Gradient of `wanted` = dy contracted with `other` over `other`'s free dims. Of the two orders of the product's
/// operands the one is taken whose result needs no transpose, if there is one.
Value buildSideGradient(OpBuilder &builder, Location loc, Value dy, const Side &wanted, const Side &other,
                        bool wantedIsLhs) {
  int64_t batch = wanted.batch.size(), wantedFree = wanted.free.size(), otherFree = other.free.size();
  SmallVector<int64_t> dyBatch = makeRange(0, batch);
  SmallVector<int64_t> dyContract = makeRange(batch + (wantedIsLhs ? wantedFree : 0), otherFree);

  // The contracted dims come out in the order in which `other` has them.
  SmallVector<int64_t> contracted(llvm::to_vector(llvm::seq<int64_t>(0, wanted.contract.size())));
  llvm::sort(contracted, [&](int64_t a, int64_t b) { return other.contract[a] < other.contract[b]; });
  auto getOrder = [&](bool dyFirst) {
    // Dims of `wanted` in the order in which the product has them.
    SmallVector<int64_t> order(wanted.batch);
    if (dyFirst)
      llvm::append_range(order, wanted.free);
    for (int64_t index : contracted)
      order.push_back(wanted.contract[index]);
    if (!dyFirst)
      llvm::append_range(order, wanted.free);
    return order;
  };
  SmallVector<int64_t> order = getOrder(true);
  bool dyFirst = llvm::is_sorted(order);
  if (!dyFirst) {
    order = getOrder(false);
    dyFirst = !llvm::is_sorted(order);
    if (dyFirst)
      order = getOrder(true);
  }
  Value product =
      dyFirst
          ? MatmulOp::create(builder, loc, dy, other.value, dyBatch, other.batch, dyContract, other.free).getResult()
          : MatmulOp::create(builder, loc, other.value, dy, other.batch, dyBatch, other.free, dyContract).getResult();
  SmallVector<int64_t> permutation(order.size());
  for (auto [index, dim] : llvm::enumerate(order))
    permutation[dim] = index;
  return makeTranspose(builder, loc, product, permutation);
}

} // namespace

WINDLASS_INFERRED_OP(MatmulOp, inferMatmul)

SmallVector<int64_t> MatmulOp::getLhsFreeDims() {
  return getOtherDims(typeOf(getLhs()).getRank(), getLhsBatch(), getLhsContract());
}

SmallVector<int64_t> MatmulOp::getRhsFreeDims() {
  return getOtherDims(typeOf(getRhs()).getRank(), getRhsBatch(), getRhsContract());
}

OpFactors MatmulOp::getFactors() {
  OpFactors factors;
  auto lhs = typeOf(getLhs()), rhs = typeOf(getRhs());
  ValueFactors lhsDims(lhs.getRank()), rhsDims(rhs.getRank()), resultDims;
  for (auto [index, pair] : llvm::enumerate(llvm::zip(getLhsBatch(), getRhsBatch()))) {
    auto [l, r] = pair;
    lhsDims[l] = rhsDims[r] = {factors.add("b" + std::to_string(index), lhs.getDimSize(l))};
    resultDims.push_back(lhsDims[l]);
  }
  for (auto [index, dim] : llvm::enumerate(getLhsFreeDims())) {
    lhsDims[dim] = {factors.add("m" + std::to_string(index), lhs.getDimSize(dim))};
    resultDims.push_back(lhsDims[dim]);
  }
  for (auto [index, dim] : llvm::enumerate(getRhsFreeDims())) {
    rhsDims[dim] = {factors.add("n" + std::to_string(index), rhs.getDimSize(dim))};
    resultDims.push_back(rhsDims[dim]);
  }
  for (auto [index, pair] : llvm::enumerate(llvm::zip(getLhsContract(), getRhsContract()))) {
    auto [l, r] = pair;
    lhsDims[l] = rhsDims[r] = {factors.add("k" + std::to_string(index), lhs.getDimSize(l), FactorKind::Reduction)};
  }
  factors.operands = {lhsDims, rhsDims};
  factors.results = {resultDims};
  factors.unreducedTogether = {{0}, {1}};
  return factors;
}

OpCost MatmulOp::getCost() {
  OpCost cost = getTrafficCost(*this);
  double contracted = 1;
  for (int64_t dim : getLhsContract())
    contracted *= typeOf(getLhs()).getDimSize(dim);
  cost.flops = 2 * contracted * static_cast<double>(typeOf(getResult()).getNumElements());
  return cost;
}

PrecisionClass MatmulOp::getPrecisionClass() { return PrecisionClass::Contraction; }

LogicalResult MatmulOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                     SmallVectorImpl<Value> &gradients) {
  Side lhs{getLhs(), getLhsBatch(), getLhsContract(), getLhsFreeDims()};
  Side rhs{getRhs(), getRhsBatch(), getRhsContract(), getRhsFreeDims()};
  if (active[0])
    gradients[0] = buildSideGradient(builder, getLoc(), resultGradients[0], lhs, rhs, true);
  if (active[1])
    gradients[1] = buildSideGradient(builder, getLoc(), resultGradients[0], rhs, lhs, false);
  return success();
}
