#include "Kernels.h"

#include <limits>

using namespace windlass::search;

// There is one clone for each width of vectors. Their results have the same bits: minima do not round, and sums keep
// their order.
#if defined(__x86_64__) && defined(__linux__) && !defined(WINDLASS_SANITIZE)
#define WINDLASS_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WINDLASS_CLONES
#endif

namespace {

typedef double Vector __attribute__((vector_size(64)));

// Takes vectors by reference, because each clone would pass them by value in another way.
__attribute__((always_inline)) inline void keepLeast(Vector &kept, const Vector &other) {
  kept = other < kept ? other : kept;
}
__attribute__((always_inline)) inline const Vector *at(const double *p) { return reinterpret_cast<const Vector *>(p); }
__attribute__((always_inline)) inline Vector *at(double *p) { return reinterpret_cast<Vector *>(p); }

/// Keeps `width` vectors of the result at a time in registers.
template <int width>
__attribute__((always_inline)) inline void minPlusBlock(double *out, const double *a, const double *table, int32_t rows,
                                                        int32_t stride) {
  // There are two sets, because a minimum waits for the one before it.
  Vector even[width], odd[width];
  for (int k = 0; k < width; ++k)
    even[k] = odd[k] = at(table)[k] + a[0];
  int32_t x = 1;
  for (; x + 1 < rows; x += 2) {
    const double *first = table + static_cast<size_t>(x) * stride, *second = first + stride;
    for (int k = 0; k < width; ++k) {
      keepLeast(even[k], at(first)[k] + a[x]);
      keepLeast(odd[k], at(second)[k] + a[x + 1]);
    }
  }
  if (x < rows)
    for (int k = 0; k < width; ++k)
      keepLeast(even[k], at(table + static_cast<size_t>(x) * stride)[k] + a[x]);
  for (int k = 0; k < width; ++k) {
    keepLeast(even[k], odd[k]);
    at(out)[k] = even[k];
  }
}

} // namespace

namespace windlass::search {

WINDLASS_CLONES void minPlus(double *out, const double *a, const double *table, int32_t rows, int32_t stride) {
  int32_t y = 0;
  for (; y + 4 * kLanes <= stride; y += 4 * kLanes)
    minPlusBlock<4>(out + y, a, table + y, rows, stride);
  switch ((stride - y) / kLanes) {
  case 3:
    return minPlusBlock<3>(out + y, a, table + y, rows, stride);
  case 2:
    return minPlusBlock<2>(out + y, a, table + y, rows, stride);
  case 1:
    return minPlusBlock<1>(out + y, a, table + y, rows, stride);
  }
}

WINDLASS_CLONES void addRow(double *out, const double *in, int32_t stride) {
  for (int32_t x = 0; x < stride; x += kLanes)
    *at(out + x) += *at(in + x);
}

WINDLASS_CLONES void addScaled(double *out, const double *in, double factor, int32_t stride) {
  for (int32_t x = 0; x < stride; x += kLanes)
    *at(out + x) += *at(in + x) * factor;
}

WINDLASS_CLONES void scaleAndSubtract(double *out, const double *a, double factor, const double *b, int32_t stride) {
  for (int32_t x = 0; x < stride; x += kLanes)
    *at(out + x) = *at(a + x) * factor - *at(b + x);
}

WINDLASS_CLONES double subtractLeast(double *row, int32_t stride) {
  Vector minimum = *at(row);
  for (int32_t x = kLanes; x < stride; x += kLanes)
    keepLeast(minimum, *at(row + x));
  double result = minimum[0];
  for (int k = 1; k < kLanes; ++k)
    result = minimum[k] < result ? minimum[k] : result;
  for (int32_t x = 0; x < stride; x += kLanes)
    *at(row + x) -= result;
  return result;
}

WINDLASS_CLONES int64_t leastOf(const int64_t *values, int32_t count) {
  int64_t result = std::numeric_limits<int64_t>::max();
  for (int32_t i = 0; i < count; ++i)
    result = values[i] < result ? values[i] : result;
  return result;
}

WINDLASS_CLONES void addToAll(int64_t *values, int32_t count, int64_t added) {
  for (int32_t i = 0; i < count; ++i)
    values[i] += added;
}

} // namespace windlass::search
