// Walking over the rows of strided views.
#ifndef WINDLASS_BACKENDS_CPU_ROWS_H
#define WINDLASS_BACKENDS_CPU_ROWS_H

#include "windlass/rt/detail/team.h"
#include "windlass/rt/view.h"

#include <type_traits>

namespace windlass::rt::cpu {

/// The dims [first, last) of a view as one sequence in row-major order: where its element i begins.
class sequence {
public:
  sequence(const view &v, int first, int last) {
    for (int d = first; d < last; ++d) {
      if (v.sizes[d] == 1)
        continue;
      if (rank_ > 0 && strides_[rank_ - 1] == v.strides[d] * v.sizes[d]) {
        sizes_[rank_ - 1] *= v.sizes[d];
        strides_[rank_ - 1] = v.strides[d];
      } else {
        sizes_[rank_] = v.sizes[d];
        strides_[rank_++] = v.strides[d];
      }
      count_ *= v.sizes[d];
    }
  }

  std::int64_t count() const { return count_; }
  /// Whether the elements are evenly spaced; `stride` is their distance.
  bool is_even() const { return rank_ <= 1; }
  std::int64_t stride() const { return rank_ == 0 ? 1 : strides_[rank_ - 1]; }
  /// The innermost evenly spaced run.
  std::int64_t run() const { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }

  std::int64_t offset(std::int64_t i) const {
    if (rank_ <= 1)
      return rank_ == 0 ? 0 : i * strides_[0];
    std::int64_t result = 0;
    for (int d = rank_ - 1; d >= 0; --d) {
      result += i % sizes_[d] * strides_[d];
      i /= sizes_[d];
    }
    return result;
  }

private:
  int rank_ = 0;
  std::int64_t count_ = 1, sizes_[max_rank] = {}, strides_[max_rank] = {};
};

using unit_stride = std::integral_constant<std::int64_t, 1>;

inline std::int64_t last_stride(const view &v) {
  return v.rank == 0 || v.sizes[v.rank - 1] == 1 ? 1 : v.strides[v.rank - 1];
}

/// Calls f with the stride as a constant 1 where it is, so that the compiler vectorises that case.
template <class F> void with_stride(std::int64_t stride, F f) {
  if (stride == 1)
    f(unit_stride());
  else
    f(stride);
}

/// Elements of work that are worth a thread of the team.
constexpr std::int64_t grain = 8192;

/// for rows of `width` elements.
template <class F> void for_rows(std::int32_t threads, std::int64_t rows, std::int64_t width, F f) {
  detail::parallel(threads, rows, grain / (width + 1) + 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    for (std::int64_t row = begin; row < end; ++row)
      f(row);
  });
}

} // namespace windlass::rt::cpu

#endif
