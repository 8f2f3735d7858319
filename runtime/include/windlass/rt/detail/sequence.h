// Walking over the dims of strided views.
#ifndef WINDLASS_RT_DETAIL_SEQUENCE_H
#define WINDLASS_RT_DETAIL_SEQUENCE_H

#include "windlass/rt/detail/function.h"
#include "windlass/rt/view.h"

#include <cstdint>
#include <limits>

namespace windlass::rt::detail {

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

  WINDLASS_FN std::int64_t count() const { return count_; }
  /// Returns whether the elements are evenly spaced; `stride` is their distance.
  WINDLASS_FN bool is_even() const { return rank_ <= 1; }
  WINDLASS_FN std::int64_t stride() const { return rank_ == 0 ? 1 : strides_[rank_ - 1]; }
  /// Returns the length of the innermost evenly spaced run.
  WINDLASS_FN std::int64_t run() const { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }

  WINDLASS_FN std::int64_t offset(std::int64_t i) const {
    if (rank_ <= 1)
      return rank_ == 0 ? 0 : i * strides_[0];
    // Devices divide by software: 64 bits take several times as long.
    return count_ <= std::numeric_limits<std::int32_t>::max() ? offset_by<std::uint32_t>(i)
                                                              : offset_by<std::uint64_t>(i);
  }

private:
  template <class Index> WINDLASS_FN std::int64_t offset_by(std::int64_t i) const {
    Index rest = static_cast<Index>(i);
    std::int64_t result = 0;
    for (int d = rank_ - 1; d >= 0; --d) {
      const Index size = static_cast<Index>(sizes_[d]);
      result += std::int64_t(rest % size) * strides_[d];
      rest /= size;
    }
    return result;
  }

  int rank_ = 0;
  std::int64_t count_ = 1, sizes_[max_rank] = {}, strides_[max_rank] = {};
};

} // namespace windlass::rt::detail

#endif
