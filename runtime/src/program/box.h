// Boxes of tensors: which part of a whole tensor somebody holds, and copies between dense memory of two boxes.
#ifndef WINDLASS_RT_SRC_PROGRAM_BOX_H
#define WINDLASS_RT_SRC_PROGRAM_BOX_H

#include "windlass/rt/program.h"

#include <algorithm>
#include <string>
#include <vector>

namespace windlass::rt {

/// Of at most `max_rank` dimensions.
struct box {
  std::vector<std::int64_t> begin, sizes;
  std::int64_t elements() const;
  bool operator==(const box &other) const { return begin == other.begin && sizes == other.sizes; }
};

/// The box that is all of a tensor.
box whole_box(const std::vector<std::int64_t> &sizes);

/// Calls `f(a_offset, b_offset, count)` for every run of elements that follow each other in the dense memory of both
/// boxes; offsets and counts are elements. Boxes that do not overlap give no run.
template <class F> void for_each_run(const box &a, const box &b, F f) {
  std::size_t rank = a.sizes.size();
  std::int64_t low[max_rank], extent[max_rank], a_stride[max_rank], b_stride[max_rank];
  std::int64_t a_step = 1, b_step = 1;
  for (std::size_t i = rank; i-- > 0;) {
    low[i] = std::max(a.begin[i], b.begin[i]);
    extent[i] = std::min(a.begin[i] + a.sizes[i], b.begin[i] + b.sizes[i]) - low[i];
    if (extent[i] <= 0)
      return;
    a_stride[i] = a_step;
    b_stride[i] = b_step;
    a_step *= a.sizes[i];
    b_step *= b.sizes[i];
  }
  // Trailing dimensions that both boxes hold whole join the run.
  std::size_t outer = rank;
  std::int64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= extent[outer];
    if (extent[outer] != a.sizes[outer] || extent[outer] != b.sizes[outer])
      break;
  }
  std::int64_t index[max_rank] = {};
  for (;;) {
    std::int64_t a_offset = 0, b_offset = 0;
    for (std::size_t i = 0; i < rank; ++i) {
      std::int64_t at = low[i] + (i < outer ? index[i] : 0);
      a_offset += (at - a.begin[i]) * a_stride[i];
      b_offset += (at - b.begin[i]) * b_stride[i];
    }
    f(a_offset, b_offset, run);
    std::size_t i = outer;
    while (i > 0 && ++index[i - 1] == extent[i - 1])
      index[--i] = 0;
    if (i == 0)
      return;
  }
}

/// Copies what two boxes of one tensor share from the dense memory of `from` to that of `to`.
void copy_overlap(const box &from, const std::byte *source, const box &to, std::byte *target,
                  std::int64_t element_bytes);

/// The coordinates of a rank on the mesh, row-major in the order of the axes.
std::vector<std::int32_t> mesh_coordinates(span<axis> axes, std::int32_t rank);
std::int32_t mesh_size(span<axis> axes);

/// The part of a tensor that the rank of these coordinates holds. A part that is not even is an internal error.
status local_box(const tensor_entry &tensor, span<axis> axes, const std::vector<std::int32_t> &coordinates, box &out);

std::vector<std::int64_t> sizes_of(const tensor_entry &tensor);

} // namespace windlass::rt

#endif
