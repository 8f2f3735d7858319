//===- Materialize.cpp - known tensors as compact ops ---------------------===//
//
// A mask of tokens × tokens elements never enters the IR as data: it becomes a comparison of two iotas, a position
// vector one iota, and so on. The causal mask always takes the same form, by which attention is recognised.
//
//===----------------------------------------------------------------------===//

#include "PartialEvaluator.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

/// The most elements of a matrix that stays a constant although it depends on its diagonals only.
static constexpr int64_t kManyElements = 4096;

/// Whether two elements are equal; a NaN is equal to any other.
static bool areEqual(const Known &tensor, int64_t a, int64_t b) {
  if (!tensor->isFloat())
    return tensor->getInteger(a) == tensor->getInteger(b);
  double x = tensor->getStorage().reals[a], y = tensor->getStorage().reals[b];
  return x == y || (x != x && y != y);
}

/// Returns the dims along which nothing changes.
static llvm::SmallVector<bool> findConstantDims(const Known &tensor) {
  llvm::ArrayRef<int64_t> shape = tensor->getShape();
  auto strides = getStrides(shape);
  llvm::SmallVector<bool> result(shape.size(), true);
  if (tensor->getSource()) {
    for (auto [isConstant, stride] : llvm::zip_equal(result, tensor->getViewStrides()))
      isConstant = stride == 0;
    return result;
  }
  int64_t size = tensor->getSize();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == 1)
      continue;
    // Compares element i with its predecessor along the dim.
    for (int64_t i = 0; i < size && result[dim]; ++i)
      if (i / strides[dim] % shape[dim] != 0 && !areEqual(tensor, i, i - strides[dim]))
        result[dim] = false;
  }
  return result;
}

Value PartialEvaluator::emitSplat(RankedTensorType type, const KnownTensor &tensor) {
  Attribute value;
  if (tensor.isFloat())
    value = builder.getFloatAttr(type.getElementType(), tensor.getReal(0));
  else
    value = builder.getIntegerAttr(type.getElementType(), tensor.getInteger(0));
  return train::ConstantOp::create(builder, *loc, type, DenseElementsAttr::get(type, value)).getResult();
}

/// Emits a mask for which mask[i][j] is `j <= i + c` for all elements, or its opposite for all; null for other masks.
Value PartialEvaluator::emitBand(const Known &mask) {
  int64_t rows = mask->getShape()[0], columns = mask->getShape()[1];
  const std::vector<uint8_t> &bits = mask->getStorage().booleans;
  auto countLeading = [&](int64_t row, bool value) {
    int64_t count = 0;
    while (count < columns && (bits[row * columns + count] != 0) == value)
      ++count;
    return count;
  };
  for (bool value : {true, false}) {
    // The first row that is neither empty nor full fixes c; there is one, for the mask changes along both dims.
    std::optional<int64_t> offset;
    for (int64_t i = 0; i < rows && !offset; ++i)
      if (int64_t count = countLeading(i, value); count > 0 && count < columns)
        offset = count - 1 - i;
    bool isBand = offset.has_value();
    for (int64_t i = 0; i < rows && isBand; ++i)
      for (int64_t j = 0; j < columns && isBand; ++j)
        isBand = (bits[i * columns + j] != 0) == ((j <= i + *offset) == value);
    if (!isBand)
      continue;
    auto indices = RankedTensorType::get(mask->getShape(), builder.getI64Type());
    auto iota = [&](int64_t dim, int64_t start) {
      return train::IotaOp::create(builder, *loc, indices, uint64_t(dim), llvm::APFloat(double(start)),
                                   llvm::APFloat(1.0))
          .getResult();
    };
    Value column = iota(1, 0), row = iota(0, *offset);
    return train::CompareOp::create(builder, *loc, mask->type,
                                    value ? train::Predicate::less_equal : train::Predicate::greater, column, row)
        .getResult();
  }
  return {};
}

/// Emits a matrix whose elements depend on their column minus their row only, such as the buckets of relative
/// positions, as elements of a list; null for other matrices.
Value PartialEvaluator::emitDiagonals(const Known &matrix) {
  int64_t rows = matrix->getShape()[0], columns = matrix->getShape()[1];
  for (int64_t i = 1; i < rows; ++i)
    for (int64_t j = 1; j < columns; ++j)
      if (!areEqual(matrix, i * columns + j, (i - 1) * columns + j - 1))
        return {};
  // The diagonals from the last row's first element to the first row's last one.
  auto type = RankedTensorType::get({rows + columns - 1}, matrix->getElementType());
  Known list = makeKnown(type, [&](KnownStorage &out) {
    for (int64_t k = 0; k < rows + columns - 1; ++k) {
      int64_t from = k < rows ? (rows - 1 - k) * columns : k - rows + 1;
      if (matrix->isFloat())
        out.reals[k] = matrix->getReal(from);
      else
        out.integers[k] = matrix->getInteger(from);
    }
  });
  return emitByDifference(list, matrix->getShape());
}

/// Emits a matrix whose elements depend on their column minus their row, and are those of `list` from the last row's
/// first one to the first row's last one.
Value PartialEvaluator::emitByDifference(const Known &list, llvm::ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, list->getElementType());
  if (list->isSplat())
    return emitSplat(type, *list);
  int64_t rows = shape[0], size = list->getSize();
  auto indices = RankedTensorType::get(shape, builder.getI64Type());
  auto iota = [&](int64_t dim, int64_t start, double step) {
    return train::IotaOp::create(builder, *loc, indices, uint64_t(dim), llvm::APFloat(double(start)),
                                 llvm::APFloat(step))
        .getResult();
  };
  if (list->isBoolean()) {
    // Up to each place but the last one where the list changes, elements are alike.
    Shape changes;
    for (int64_t k = 1; k < size && changes.size() < 3; ++k)
      if (list->getInteger(k) != list->getInteger(k - 1))
        changes.push_back(k - rows);
    auto compare = [&](int64_t offset, bool isUpTo) {
      Value column = iota(1, 0, 1), row = iota(0, offset, 1);
      return train::CompareOp::create(builder, *loc, type,
                                      isUpTo ? train::Predicate::less_equal : train::Predicate::greater, column, row)
          .getResult();
    };
    bool isFirst = list->getInteger(0) != 0;
    if (changes.size() == 1)
      return compare(changes[0], isFirst);
    if (changes.size() == 2) {
      Value low = compare(changes[0], isFirst), high = compare(changes[1], !isFirst);
      return isFirst ? train::OrOp::create(builder, *loc, type, low, high).getResult()
                     : train::AndOp::create(builder, *loc, type, low, high).getResult();
    }
    // Several bands are a constant, if they are few enough elements.
    if (int64_t elements = countSaturated(shape); elements > budgets.constantElements) {
      reason = "needs a mask of several bands with " + std::to_string(elements) + " elements; the limit is " +
               std::to_string(budgets.constantElements);
      return {};
    }
    return emitCompact(makeKnown(type, [&](KnownStorage &out) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < shape[1]; ++j)
          out.booleans[i * shape[1] + j] = list->getInteger(j - i + rows - 1) != 0;
    }));
  }
  double first = list->getReal(0), second = first;
  bool isChoice = first == first;
  for (int64_t k = 1; k < size && isChoice; ++k) {
    if (second == first)
      second = list->getReal(k);
    isChoice = list->getReal(k) == first || list->getReal(k) == second;
  }
  if (!isChoice) {
    Value table = emitCompact(list);
    if (!table)
      return {};
    Value diagonal = train::AddOp::create(builder, *loc, iota(1, 0, 1), iota(0, rows - 1, -1));
    return train::GatherOp::create(builder, *loc, type, table, diagonal, uint64_t(0)).getResult();
  }
  if (second == 0)
    std::swap(first, second); // as in other masks, zero is chosen where the condition holds
  Known condition = makeKnown(RankedTensorType::get({size}, builder.getI1Type()), [&](KnownStorage &out) {
    for (int64_t k = 0; k < size; ++k)
      out.booleans[k] = list->getReal(k) == first;
  });
  Value choose = emitByDifference(condition, shape);
  if (!choose)
    return {};
  auto constant = [&](double value) {
    return emitSplat(type, *makeKnownSplat(RankedTensorType::get({}, list->getElementType()), value));
  };
  Value a = constant(first), b = constant(second);
  return train::SelectOp::create(builder, *loc, type, choose, a, b).getResult();
}

/// Emits a tensor that changes along each of its dims.
Value PartialEvaluator::emitCompact(const Known &tensor) {
  if (tensor->isSplat())
    return emitSplat(tensor->type, *tensor);
  int64_t size = tensor->getSize(), rank = tensor->type.getRank();
  if (rank == 1 && !tensor->isBoolean()) {
    double start = tensor->getReal(0), step = tensor->getReal(1) - start;
    bool isAffine = true;
    for (int64_t i = 0; i < size && isAffine; ++i)
      isAffine = tensor->getReal(i) == roundReal(start + step * double(i), builder.getF64Type());
    if (isAffine && size > 2)
      return train::IotaOp::create(builder, *loc, tensor->type, uint64_t(0), llvm::APFloat(start), llvm::APFloat(step))
          .getResult();
  }
  if (rank == 2 && tensor->isBoolean() && size > 16)
    if (Value band = emitBand(tensor))
      return band;
  if (size > 16 && !tensor->isBoolean()) {
    // A tensor of two values only becomes a choice between them.
    double first = tensor->getReal(0), second = first;
    bool isChoice = first == first;
    for (int64_t i = 0; i < size && isChoice; ++i) {
      double value = tensor->getReal(i);
      if (second == first)
        second = value;
      isChoice = value == first || value == second;
    }
    if (isChoice) {
      // Zero is chosen where the condition holds, so that masks look the same in whichever way they were written.
      if (second == 0)
        std::swap(first, second);
      auto type = RankedTensorType::get(tensor->getShape(), builder.getI1Type());
      Known condition = makeKnown(type, [&](KnownStorage &out) {
        for (int64_t i = 0; i < size; ++i)
          out.booleans[i] = tensor->getReal(i) == first;
      });
      Value choose = emitCompact(condition);
      if (!choose)
        return {};
      auto constant = [&](double value) {
        return emitSplat(tensor->type, *makeKnownSplat(RankedTensorType::get({}, tensor->getElementType()), value));
      };
      Value a = constant(first), b = constant(second);
      return train::SelectOp::create(builder, *loc, tensor->type, choose, a, b).getResult();
    }
  }
  if (rank == 2 && !tensor->isBoolean() && size > kManyElements)
    if (Value diagonals = emitDiagonals(tensor))
      return diagonals;
  if (size > budgets.constantElements) {
    reason = "needs a constant of " + std::to_string(size) + " elements that has no compact form; the limit is " +
             std::to_string(budgets.constantElements);
    return {};
  }
  DenseElementsAttr value;
  if (tensor->isBoolean()) {
    llvm::SmallVector<bool> bits(tensor->getStorage().booleans.begin(), tensor->getStorage().booleans.end());
    value = DenseElementsAttr::get(tensor->type, bits);
  } else if (auto floatType = dyn_cast<FloatType>(tensor->getElementType())) {
    llvm::SmallVector<llvm::APFloat> numbers;
    for (double number : tensor->getStorage().reals) {
      llvm::APFloat converted(number);
      bool losesInfo = false;
      converted.convert(floatType.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      numbers.push_back(converted);
    }
    value = DenseElementsAttr::get(tensor->type, numbers);
  } else {
    llvm::SmallVector<llvm::APInt> numbers;
    unsigned width = tensor->getElementType().getIntOrFloatBitWidth();
    for (int64_t number : tensor->getStorage().integers)
      numbers.push_back(llvm::APInt(width, static_cast<uint64_t>(number), /*isSigned=*/true, /*implicitTrunc=*/true));
    value = DenseElementsAttr::get(tensor->type, numbers);
  }
  return train::ConstantOp::create(builder, *loc, tensor->type, value).getResult();
}

Value PartialEvaluator::materialize(const Entry &entry) {
  if (entry.value)
    return isUsable(entry.getElementType()) ? entry.value : Value();
  if (!entry.known) {
    if (reason.empty())
      reason = "depends on a value that cannot be computed";
    return {};
  }
  const Known &tensor = entry.known;
  if (!isUsable(tensor->getElementType()))
    return {};
  if (tensor->getSize() == 0) {
    reason = "needs a constant without elements";
    return {};
  }
  return spread(tensor, tensor->getShape());
}

/// Returns a known tensor in the IR, broadcast to `shape`: its values without the dims along which nothing changes, and
/// one broadcast.
Value PartialEvaluator::spread(const Known &tensor, llvm::ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, tensor->getElementType());
  Reduced &reduced = emitted[tensor->id];
  auto &known = emittedAs[{tensor->id, type}];
  if (known)
    return known;
  if (tensor->isSplat())
    return known = emitSplat(type, *tensor);
  if (std::optional<Diagonals> diagonals = findDiagonals(*tensor); diagonals && !reduced.value) {
    Shape matrix = {tensor->getShape()[diagonals->rows], tensor->getShape()[diagonals->columns]};
    reduced.dims = {diagonals->rows, diagonals->columns};
    reduced.value = emitByDifference(diagonals->list, matrix);
    if (!reduced.value)
      return {};
  }
  if (!reduced.value) {
    reduced.dims.clear();
    llvm::SmallVector<bool> isConstant = findConstantDims(tensor);
    Shape kept, starts(tensor->type.getRank(), 0), sizes(tensor->getShape()), ones(tensor->type.getRank(), 1);
    for (size_t dim = 0; dim < isConstant.size(); ++dim) {
      if (isConstant[dim]) {
        sizes[dim] = 1;
        continue;
      }
      kept.push_back(tensor->getShape()[dim]);
      reduced.dims.push_back(static_cast<int64_t>(dim));
    }
    bool isWhole = kept.size() == isConstant.size();
    reduced.value = emitCompact(isWhole ? tensor : knownReshape(knownSlice(tensor, starts, sizes, ones), kept));
    if (!reduced.value)
      return {};
  }
  auto lead = static_cast<int64_t>(shape.size()) - tensor->type.getRank();
  Shape dims;
  for (int64_t dim : reduced.dims)
    dims.push_back(lead + dim);
  if (reduced.value.getType() == type)
    return known = reduced.value;
  return known = train::BroadcastOp::create(builder, *loc, type, reduced.value, dims).getResult();
}

Value PartialEvaluator::materialize(const Entry &entry, llvm::ArrayRef<int64_t> shape) {
  if (!entry.value && !entry.known)
    return materialize(entry);
  if (entry.getShape() == shape)
    return materialize(entry);
  if (!entry.value && entry.known->getSize() > 0 && isUsable(entry.getElementType()))
    return spread(entry.known, shape);
  auto type = RankedTensorType::get(shape, entry.getElementType());
  Value value = materialize(entry);
  if (!value)
    return {};
  // Dims of size 1 that are to be broadcast vanish first; the others keep their places.
  Shape kept, dims;
  size_t lead = shape.size() - entry.getShape().size();
  for (auto [i, dim] : llvm::enumerate(entry.getShape())) {
    if (dim == 1 && shape[lead + i] != 1)
      continue;
    kept.push_back(dim);
    dims.push_back(static_cast<int64_t>(lead + i));
  }
  if (kept.size() != entry.getShape().size())
    value =
        train::ReshapeOp::create(builder, *loc, RankedTensorType::get(kept, entry.getElementType()), value).getResult();
  if (kept.size() == shape.size())
    return value;
  return train::BroadcastOp::create(builder, *loc, type, value, dims).getResult();
}
