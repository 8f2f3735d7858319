// The inner loops of the search. Rows of doubles are padded to a multiple of 8 and aligned, so that they are whole
// vectors.
#ifndef WINDLASS_LIB_SEARCH_KERNELS_H
#define WINDLASS_LIB_SEARCH_KERNELS_H

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace windlass::search {

constexpr int32_t kLanes = 8;
inline int32_t padded(int32_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

template <typename T> struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U> AlignedAllocator(const AlignedAllocator<U> &) {}
  T *allocate(size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), std::align_val_t(64))); }
  void deallocate(T *data, size_t) { ::operator delete(data, std::align_val_t(64)); }
  bool operator==(const AlignedAllocator &) const { return true; }
  bool operator!=(const AlignedAllocator &) const { return false; }
};
using Doubles = std::vector<double, AlignedAllocator<double>>;

/// Sets out[y] = min over x below `rows` of a[x] + table[x * stride + y], for y below stride.
void minPlus(double *out, const double *a, const double *table, int32_t rows, int32_t stride);

/// Sets out[x] += in[x].
void addRow(double *out, const double *in, int32_t stride);

/// Sets out[x] += factor * in[x].
void addScaled(double *out, const double *in, double factor, int32_t stride);

/// Sets out[x] = factor * a[x] - b[x].
void scaleAndSubtract(double *out, const double *a, double factor, const double *b, int32_t stride);

/// Subtracts the least number of the row from all of them and returns it.
double subtractLeast(double *row, int32_t stride);

int64_t leastOf(const int64_t *values, int32_t count);
void addToAll(int64_t *values, int32_t count, int64_t added);

} // namespace windlass::search

#endif
