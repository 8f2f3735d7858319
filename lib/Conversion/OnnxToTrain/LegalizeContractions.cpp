//===- LegalizeContractions.cpp - matrix products -------------------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerContractions() {
  handle("MatMul", &Legalizer::legalizeMatMul);
  handle("Gemm", &Legalizer::legalizeGemm);
}

Entry Legalizer::matmul(const Entry &lhs, const Entry &rhs, llvm::ArrayRef<int64_t> lhsBatch,
                        llvm::ArrayRef<int64_t> rhsBatch, llvm::ArrayRef<int64_t> lhsContract,
                        llvm::ArrayRef<int64_t> rhsContract) {
  Shape shape;
  for (int64_t dim : lhsBatch)
    shape.push_back(lhs.getShape()[dim]);
  auto addFree = [&](const Entry &x, llvm::ArrayRef<int64_t> batch, llvm::ArrayRef<int64_t> contract) {
    for (int64_t i = 0; i < x.getRank(); ++i)
      if (!llvm::is_contained(batch, i) && !llvm::is_contained(contract, i))
        shape.push_back(x.getShape()[i]);
  };
  addFree(lhs, lhsBatch, lhsContract);
  addFree(rhs, rhsBatch, rhsContract);
  // The operands are bounded, but their outer product is not.
  double count = 1;
  for (int64_t dim : shape)
    count *= double(dim);
  if (count > 1.7e13)
    return {};
  Value a = eval.materialize(lhs), b = a ? eval.materialize(rhs) : Value();
  if (!b)
    return {};
  auto type = RankedTensorType::get(shape, lhs.getElementType());
  return Entry::of(
      train::MatmulOp::create(builder, eval.getLocation(), type, a, b, lhsBatch, rhsBatch, lhsContract, rhsContract)
          .getResult());
}

LogicalResult Legalizer::legalizeMatMul(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  Entry lhs = node.inputs[0], rhs = node.inputs[1];
  if (!lhs.isFloat() || lhs.getElementType() != rhs.getElementType())
    return lhs.isFloat() ? invalid(node, "has operands of different element types")
                         : unsupported("multiplies matrices of integers");
  if (lhs.getRank() == 0 || rhs.getRank() == 0)
    return invalid(node, "has a scalar operand");
  // Vectors have no free dim; otherwise the last two dims are the matrix and the others are broadcast.
  int64_t lhsInner = lhs.getRank() - 1, rhsInner = rhs.getRank() == 1 ? 0 : rhs.getRank() - 2;
  if (lhs.getShape()[lhsInner] != rhs.getShape()[rhsInner])
    return invalid(node, "contracts dimensions of " + llvm::Twine(lhs.getShape()[lhsInner]) + " and " +
                             llvm::Twine(rhs.getShape()[rhsInner]));
  size_t lhsLead = lhs.getRank() >= 2 ? lhs.getRank() - 2 : 0, rhsLead = rhs.getRank() >= 2 ? rhs.getRank() - 2 : 0;
  bool isShared =
      rhsLead == 0 || llvm::all_of(rhs.getShape().take_front(rhsLead), [](int64_t dim) { return dim == 1; });
  if (isShared && rhsLead <= lhsLead) {
    // The right operand is one matrix for all: no batch dims, all leading dims of the left are free.
    if (rhsLead > 0)
      rhs = eval.reshape(rhs, rhs.getShape().drop_front(rhsLead));
    if (!rhs.isTensor())
      return give(node, rhs);
    return give(node, matmul(lhs, rhs, {}, {}, {lhsInner}, {rhs.getRank() == 1 ? 0 : rhs.getRank() - 2}));
  }
  Shape lhsDims(lhs.getShape().take_front(lhsLead)), rhsDims(rhs.getShape().take_front(rhsLead));
  FailureOr<Shape> lead = broadcastShapes(lhsDims, rhsDims);
  if (failed(lead))
    return invalid(node, "has leading dimensions that do not broadcast");
  auto spread = [&](const Entry &x, size_t own) {
    Shape shape(*lead);
    llvm::append_range(shape, x.getShape().drop_front(own));
    return failed(checkCount(node, shape)) ? Entry() : eval.broadcast(x, shape);
  };
  lhs = spread(lhs, lhsLead);
  rhs = lhs.isTensor() ? spread(rhs, rhsLead) : Entry();
  if (!rhs.isTensor())
    return isInvalid ? failure() : unsupported(eval.takeReason());
  Shape batch = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(lead->size())));
  int64_t rhsRank = rhs.getRank() - static_cast<int64_t>(lead->size());
  return give(node, matmul(lhs, rhs, batch, batch, {lhs.getRank() - 1}, {rhs.getRank() - (rhsRank == 1 ? 1 : 2)}));
}

LogicalResult Legalizer::legalizeGemm(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &lhs = node.inputs[0], &rhs = node.inputs[1];
  if (lhs.getRank() != 2 || rhs.getRank() != 2 || lhs.getElementType() != rhs.getElementType())
    return invalid(node, "needs two matrices of one element type");
  if (!lhs.isFloat())
    return unsupported("multiplies matrices of integers");
  int64_t lhsInner = node.getInt("transA", 0) != 0 ? 0 : 1, rhsInner = node.getInt("transB", 0) != 0 ? 1 : 0;
  if (lhs.getShape()[lhsInner] != rhs.getShape()[rhsInner])
    return invalid(node, "contracts dimensions of " + llvm::Twine(lhs.getShape()[lhsInner]) + " and " +
                             llvm::Twine(rhs.getShape()[rhsInner]));
  double alpha = node.getFloat("alpha", 1), beta = node.getFloat("beta", 1);
  Entry result = matmul(lhs, rhs, {}, {}, {lhsInner}, {rhsInner});
  if (result.isTensor())
    result = eval.binary(BinaryKind::mul, result, eval.scalar(alpha, lhs.getElementType()));
  if (!result.isTensor() || !node.has(2) || beta == 0)
    return give(node, result);
  Entry bias = node.inputs[2];
  if (!bias.isTensor() || bias.getElementType() != lhs.getElementType())
    return invalid(node, "has a bias of another element type");
  FailureOr<Shape> shape = broadcastShapes(result.getShape(), bias.getShape());
  if (failed(shape) || result.getShape() != llvm::ArrayRef<int64_t>(*shape))
    return invalid(node, "has a bias that does not broadcast to its result");
  bias = eval.binary(BinaryKind::mul, bias, eval.scalar(beta, lhs.getElementType()));
  return give(node, bias.isTensor() ? eval.binary(BinaryKind::add, result, bias) : bias);
}
