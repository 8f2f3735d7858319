//===- Indices.cpp - what the dims of a value run over --------------------===//

#include "Indices.h"

#include "Match.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

DimIndices windlass::wholeIndex(unsigned index, int64_t size) {
  return size == 1 ? DimIndices() : DimIndices{{index, size, 1}};
}

DimIndices IndexedValue::flatten() const {
  DimIndices parts;
  for (const DimIndices &dim : dims)
    for (const IndexPart &part : dim) {
      if (!parts.empty() && parts.back().index == part.index && parts.back().stride == part.size * part.stride)
        parts.back() = {part.index, parts.back().size * part.size, part.stride};
      else
        parts.push_back(part);
    }
  return parts;
}

/// Returns the dims of `shape` that together run over `parts` in their order; a part that two dims share is divided.
static std::optional<llvm::SmallVector<DimIndices>> regroup(const DimIndices &parts, llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<IndexPart> left(llvm::reverse(parts));
  llvm::SmallVector<DimIndices> dims;
  for (int64_t missing : shape) {
    DimIndices &dim = dims.emplace_back();
    while (missing > 1) {
      if (left.empty())
        return std::nullopt;
      IndexPart part = left.pop_back_val();
      if (part.size > missing && part.size % missing == 0) {
        int64_t rest = part.size / missing;
        left.push_back({part.index, rest, part.stride});
        part = {part.index, missing, part.stride * rest};
      }
      if (missing % part.size != 0)
        return std::nullopt;
      missing /= part.size;
      dim.push_back(part);
    }
  }
  return left.empty() ? std::optional(std::move(dims)) : std::nullopt;
}

bool windlass::stepBack(IndexedValue &value) {
  Operation *op = value.steps > 0 ? value.value.getDefiningOp() : nullptr;
  llvm::SmallVector<DimIndices> dims;
  if (auto reshape = dyn_cast_or_null<train::ReshapeOp>(op)) {
    std::optional<llvm::SmallVector<DimIndices>> grouped = regroup(value.flatten(), shapeOf(reshape.getInput()));
    if (!grouped)
      return false;
    dims = std::move(*grouped);
  } else if (auto transpose = dyn_cast_or_null<train::TransposeOp>(op)) {
    dims.resize(value.dims.size());
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      dims[from] = value.dims[to];
  } else if (auto broadcast = dyn_cast_or_null<train::BroadcastOp>(op)) {
    for (auto [size, dim] : llvm::zip_equal(shapeOf(broadcast.getInput()), broadcast.getDims()))
      dims.push_back(size == 1 ? DimIndices() : value.dims[dim]);
  } else {
    return false;
  }
  value = {op->getOperand(0), std::move(dims), value.steps - 1};
  return true;
}

IndexedValue windlass::stepBackAll(IndexedValue value) {
  while (stepBack(value))
    ;
  return value;
}

std::optional<std::pair<IndexedValue, IndexedValue>>
windlass::findFactors(train::MatmulOp op, llvm::ArrayRef<DimIndices> dims, unsigned contracted) {
  if (op.getLhsContract().size() != 1)
    return std::nullopt;
  IndexedValue lhs{op.getLhs(), llvm::SmallVector<DimIndices>(shapeOf(op.getLhs()).size())};
  IndexedValue rhs{op.getRhs(), llvm::SmallVector<DimIndices>(shapeOf(op.getRhs()).size())};
  int64_t left = op.getLhsContract()[0], right = op.getRhsContract()[0];
  lhs.dims[left] = rhs.dims[right] = wholeIndex(contracted, shapeOf(op.getLhs())[left]);
  auto takeDim = [&] {
    DimIndices dim = dims.front();
    dims = dims.drop_front();
    return dim;
  };
  for (auto [l, r] : llvm::zip_equal(op.getLhsBatch(), op.getRhsBatch()))
    lhs.dims[l] = rhs.dims[r] = takeDim();
  for (int64_t dim : op.getLhsFreeDims())
    lhs.dims[dim] = takeDim();
  for (int64_t dim : op.getRhsFreeDims())
    rhs.dims[dim] = takeDim();
  return std::pair(std::move(lhs), std::move(rhs));
}

std::optional<SumOfProducts> windlass::findSumOfProducts(const IndexedValue &sum, unsigned summed) {
  if (auto matmul = sum.value.getDefiningOp<train::MatmulOp>()) {
    auto factors = findFactors(matmul, sum.dims, summed);
    if (!factors)
      return std::nullopt;
    int64_t size = shapeOf(matmul.getLhs())[matmul.getLhsContract()[0]];
    return SumOfProducts{std::move(factors->first), std::move(factors->second), size};
  }
  auto reduce = sum.value.getDefiningOp<train::ReduceOp>();
  if (!reduce || reduce.getKind() != train::ReductionKind::sum || reduce.getDims().size() != 1)
    return std::nullopt;
  int64_t dim = reduce.getDims()[0], size = shapeOf(reduce.getInput())[dim];
  IndexedValue terms{reduce.getInput(), sum.dims};
  terms.dims.insert(terms.dims.begin() + dim, wholeIndex(summed, size));
  terms = stepBackAll(std::move(terms));
  auto mul = terms.value.getDefiningOp<train::MulOp>();
  if (!mul)
    return std::nullopt;
  return SumOfProducts{{mul.getLhs(), terms.dims}, {mul.getRhs(), terms.dims}, size};
}
