// Matrix products: operands are brought to [batch, rows, depth] and [batch, depth, columns] first.
#include "KernelCall.h"

#include <algorithm>
#include <vector>

using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using llvm::SmallVector;

namespace {

/// Returns the tensor with its dims in the given order, dense.
Tensor permuted(const Tensor &tensor, ArrayRef<int64_t> order) {
  if (std::is_sorted(order.begin(), order.end()))
    return tensor;
  int64_t bytes = bytesOf(tensor.getKind());
  SmallVector<int64_t, 4> from = denseStrides(tensor.getShape(), bytes), strides, shape;
  for (int64_t dim : order) {
    strides.push_back(from[dim]);
    shape.push_back(tensor.getShape()[dim]);
  }
  Tensor result(tensor.getKind(), shape);
  copyElements(result.mutableData(), denseStrides(shape, bytes), tensor.data(), strides, shape, bytes);
  return result;
}

template <class T>
void multiply(MutableArrayRef<T> out, ArrayRef<T> a, ArrayRef<T> b, int64_t batch, int64_t rows, int64_t depth,
              int64_t columns) {
  // Four rows share each pass over a row of b; sums are doubles.
  std::vector<double> sums(4 * columns);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t row = 0; row < rows; row += 4) {
      int64_t count = std::min<int64_t>(4, rows - row);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t k = 0; k < depth; ++k) {
        const T *right = b.data() + (n * depth + k) * columns;
        for (int64_t r = 0; r < count; ++r) {
          const double left = a[(n * rows + row + r) * depth + k];
          double *sum = sums.data() + r * columns;
          for (int64_t column = 0; column < columns; ++column)
            sum[column] += left * static_cast<double>(right[column]);
        }
      }
      T *target = out.data() + (n * rows + row) * columns;
      for (int64_t i = 0; i < count * columns; ++i)
        target[i] = static_cast<T>(sums[i]);
    }
}

/// Appends the dims of a tensor of `rank` that are in neither list.
SmallVector<int64_t> otherDims(int64_t rank, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      dims.push_back(dim);
  return dims;
}

int64_t sizeOver(const Tensor &tensor, ArrayRef<int64_t> dims) {
  int64_t size = 1;
  for (int64_t dim : dims)
    size *= tensor.getShape()[dim];
  return size;
}

void matmul(KernelCall &call) {
  if (!call.requireCounts(2, 1))
    return;
  const Tensor &lhs = call.inputs[0], &rhs = call.inputs[1];
  SmallVector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
  if (call.attributes && call.attributes.contains("batch_rank")) {
    // In a command, the operands are views in canonical order.
    int64_t batch = call.integer("batch_rank"), contract = call.integer("contract_rank");
    if (call.isBad() || !call.require(batch >= 0 && contract >= 0 && batch + contract <= lhs.getRank() &&
                                          batch + contract <= rhs.getRank(),
                                      "batch and contracted dims exceed an operand's rank"))
      return;
    for (int64_t i = 0; i < batch; ++i) {
      lhsBatch.push_back(i);
      rhsBatch.push_back(i);
    }
    for (int64_t i = 0; i < contract; ++i) {
      lhsContract.push_back(lhs.getRank() - contract + i);
      rhsContract.push_back(batch + i);
    }
  } else {
    lhsBatch = call.integers("lhs_batch");
    rhsBatch = call.integers("rhs_batch");
    lhsContract = call.integers("lhs_contract");
    rhsContract = call.integers("rhs_contract");
  }
  ElementKind kind = call.floats();
  auto agree = [&](ArrayRef<int64_t> lhsDims, ArrayRef<int64_t> rhsDims) {
    return lhsDims.size() == rhsDims.size() && llvm::all_of(llvm::zip_equal(lhsDims, rhsDims), [&](auto pair) {
             auto [i, j] = pair;
             return i >= 0 && i < lhs.getRank() && j >= 0 && j < rhs.getRank() &&
                    lhs.getShape()[i] == rhs.getShape()[j];
           });
  };
  if (call.isBad() ||
      !call.require(agree(lhsBatch, rhsBatch) && agree(lhsContract, rhsContract), "paired dims differ in size"))
    return;
  SmallVector<int64_t> lhsFree = otherDims(lhs.getRank(), lhsBatch, lhsContract);
  SmallVector<int64_t> rhsFree = otherDims(rhs.getRank(), rhsBatch, rhsContract);
  SmallVector<int64_t> shape;
  for (auto [tensor, dims] : {std::pair(&lhs, &lhsBatch), std::pair(&lhs, &lhsFree), std::pair(&rhs, &rhsFree)})
    for (int64_t dim : *dims)
      shape.push_back(tensor->getShape()[dim]);
  if (!call.requireShape(call.results[0], shape, "the result") ||
      !call.require(lhs.getKind() == kind && rhs.getKind() == kind, "operands must be floats"))
    return;
  int64_t batch = sizeOver(lhs, lhsBatch), rows = sizeOver(lhs, lhsFree);
  int64_t depth = sizeOver(lhs, lhsContract), columns = sizeOver(rhs, rhsFree);
  auto join = [](ArrayRef<int64_t> a, ArrayRef<int64_t> b, ArrayRef<int64_t> c) {
    SmallVector<int64_t> all(a);
    all.append(b.begin(), b.end());
    all.append(c.begin(), c.end());
    return all;
  };
  Tensor left = permuted(lhs, join(lhsBatch, lhsFree, lhsContract));
  Tensor right = permuted(rhs, join(rhsBatch, rhsContract, rhsFree));
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    multiply<T>(call.results[0].mutableValues<T>(), left.values<T>(), right.values<T>(), batch, rows, depth, columns);
  });
}

} // namespace

void windlass::interpreter::addContractionKernels(KernelTable &table) { table["train.matmul"] = matmul; }
