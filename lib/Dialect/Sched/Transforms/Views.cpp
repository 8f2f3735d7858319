#include "Views.h"

using namespace mlir;
using namespace windlass::sched;

static SmallVector<int64_t, 4> denseStrides(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t, 4> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

int64_t View::getElements() const {
  int64_t elements = 1;
  for (int64_t size : sizes)
    elements *= size;
  return elements;
}

bool View::isDense() const {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected)
      return false;
    expected *= sizes[i];
  }
  return true;
}

bool View::hasUnitInnerStride() const { return sizes.empty() || sizes.back() == 1 || strides.back() == 1; }

bool View::operator==(const View &other) const {
  if (storage != other.storage || offset != other.offset || element != other.element || sizes != other.sizes)
    return false;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 && strides[i] != other.strides[i])
      return false;
  return true;
}

View View::dense(unsigned storage, RankedTensorType type) {
  View view;
  view.storage = storage;
  view.element = type.getElementType();
  view.sizes.assign(type.getShape().begin(), type.getShape().end());
  view.strides = denseStrides(view.sizes);
  return view;
}

View View::permuted(ArrayRef<int64_t> permutation) const {
  View result = *this;
  for (auto [i, dim] : llvm::enumerate(permutation)) {
    result.sizes[i] = sizes[dim];
    result.strides[i] = strides[dim];
  }
  return result;
}

View View::broadcasted(ArrayRef<int64_t> dims, ArrayRef<int64_t> newSizes) const {
  View result = *this;
  result.sizes.assign(newSizes.begin(), newSizes.end());
  result.strides.assign(newSizes.size(), 0);
  for (auto [i, dim] : llvm::enumerate(dims))
    result.strides[dim] = strides[i];
  return result;
}

View View::sliced(ArrayRef<int64_t> starts, ArrayRef<int64_t> newSizes) const {
  View result = *this;
  for (auto [i, start] : llvm::enumerate(starts))
    result.offset += start * strides[i] * getElementBytes(element);
  result.sizes.assign(newSizes.begin(), newSizes.end());
  return result;
}

std::optional<View> View::reshaped(ArrayRef<int64_t> newSizes) const {
  View result = *this;
  result.sizes.assign(newSizes.begin(), newSizes.end());
  if (isDense()) {
    result.strides = denseStrides(newSizes);
    return result;
  }
  if (getElements() == 0)
    return std::nullopt;

  // Old dims without those of size 1, whose strides mean nothing.
  SmallVector<int64_t, 4> oldSizes, oldStrides;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides))
    if (size != 1) {
      oldSizes.push_back(size);
      oldStrides.push_back(stride);
    }

  // Old and new dims are matched in runs of equal element count; a run's old dims must step evenly.
  result.strides.assign(newSizes.size(), 0);
  size_t oldBegin = 0, newBegin = 0;
  while (oldBegin < oldSizes.size()) {
    while (newSizes[newBegin] == 1)
      ++newBegin;
    size_t oldEnd = oldBegin + 1, newEnd = newBegin + 1;
    int64_t oldCount = oldSizes[oldBegin], newCount = newSizes[newBegin];
    while (oldCount != newCount) {
      if (newCount < oldCount)
        newCount *= newSizes[newEnd++];
      else
        oldCount *= oldSizes[oldEnd++];
    }
    for (size_t i = oldBegin; i + 1 < oldEnd; ++i)
      if (oldStrides[i] != oldSizes[i + 1] * oldStrides[i + 1])
        return std::nullopt;
    int64_t stride = oldStrides[oldEnd - 1];
    for (size_t i = newEnd; i-- > newBegin;) {
      result.strides[i] = stride;
      stride *= newSizes[i];
    }
    oldBegin = oldEnd;
    newBegin = newEnd;
  }
  return result;
}

MemRefType View::getType() const {
  if (isDense())
    return MemRefType::get(sizes, element);
  return MemRefType::get(sizes, element, StridedLayoutAttr::get(element.getContext(), /*offset=*/0, strides));
}
