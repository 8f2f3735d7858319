// Parts of tensors: which boxes of a whole tensor a rank holds, and copies between the dense memory of boxes and parts.
#ifndef WINDLASS_RT_SRC_PROGRAM_BOX_H
#define WINDLASS_RT_SRC_PROGRAM_BOX_H

#include "windlass/rt/program.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace windlass::rt {

/// A box of a tensor with at most `max_rank` dimensions.
struct box {
  std::vector<std::int64_t> begin, sizes;
  std::int64_t elements() const;
  bool operator==(const box &other) const { return begin == other.begin && sizes == other.sizes; }
};

/// Returns the box that is all of a tensor.
box whole_box(const std::vector<std::int64_t> &sizes);

/// One of the boxes that a rank holds of a tensor. `frame` is as large as the rank's dense memory and begins where that
/// memory would begin (perhaps below 0) if all of it continued around this box; a single box is its own frame. Where
/// the memory is a range of that, it begins `skipped` elements behind the frame's beginning.
struct local_box {
  box held, frame;
  std::int64_t skipped = 0;
};

/// The part of a tensor that a rank holds: a dense tensor whose elements are, in order, those of disjoint boxes of the
/// whole one. A range may end with elements of no box, or have none.
struct tensor_part {
  std::vector<std::int64_t> sizes; ///< of the dense memory
  std::vector<local_box> boxes;    ///< in the order of their beginnings
  std::int64_t elements() const;
};

/// Zeros the elements that fill up a range.
void fill_up(const tensor_part &part, std::byte *memory, std::int64_t element_bytes);

/// Returns the part that is one box.
tensor_part part_of(const box &held);

/// Calls `f(a_offset, b_offset, count)` for every run of elements that a box shares with one of a part's and that
/// follow each other in the dense memory of both; offsets and counts are elements.
template <class F> void for_each_run(const box &a, const local_box &b, F f) {
  std::size_t rank = a.sizes.size();
  std::int64_t low[max_rank], extent[max_rank], a_stride[max_rank], b_stride[max_rank];
  std::int64_t a_step = 1, b_step = 1;
  for (std::size_t i = rank; i-- > 0;) {
    low[i] = std::max(a.begin[i], b.held.begin[i]);
    extent[i] = std::min(a.begin[i] + a.sizes[i], b.held.begin[i] + b.held.sizes[i]) - low[i];
    if (extent[i] <= 0)
      return;
    a_stride[i] = a_step;
    b_stride[i] = b_step;
    a_step *= a.sizes[i];
    b_step *= b.frame.sizes[i];
  }
  // Trailing dimensions that both memories hold whole join the run.
  std::size_t outer = rank;
  std::int64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= extent[outer];
    if (extent[outer] != a.sizes[outer] || extent[outer] != b.frame.sizes[outer])
      break;
  }
  std::int64_t index[max_rank] = {};
  for (;;) {
    std::int64_t a_offset = 0, b_offset = -b.skipped;
    for (std::size_t i = 0; i < rank; ++i) {
      std::int64_t at = low[i] + (i < outer ? index[i] : 0);
      a_offset += (at - a.begin[i]) * a_stride[i];
      b_offset += (at - b.frame.begin[i]) * b_stride[i];
    }
    f(a_offset, b_offset, run);
    std::size_t i = outer;
    while (i > 0 && ++index[i - 1] == extent[i - 1])
      index[--i] = 0;
    if (i == 0)
      return;
  }
}
/// Does the same for all boxes of a part.
template <class F> void for_each_run(const box &a, const tensor_part &b, F f) {
  for (const local_box &each : b.boxes)
    for_each_run(a, each, f);
}

/// Copies what a box and a part of one tensor share from the dense memory of one to that of the other.
void copy_overlap(const box &from, const std::byte *source, const tensor_part &to, std::byte *target,
                  std::int64_t element_bytes);
void copy_overlap(const tensor_part &from, const std::byte *source, const box &to, std::byte *target,
                  std::int64_t element_bytes);

/// Reads what a box of a file, held as elements of `type`, shares with a part into the part's dense memory, as elements
/// of type `wanted`; through a window, so that a large tensor needs no memory of its size. `read(offset, bytes, out)`
/// reads bytes of the box. `fits` becomes false where the types have no conversion or a value no counterpart.
status read_overlap(const box &from, element_type type,
                    const std::function<status(std::int64_t, std::int64_t, void *)> &read, const tensor_part &to,
                    element_type wanted, std::byte *target, bool &fits);

/// Returns the coordinates of a member on its mesh, row-major in the order of the axes.
std::vector<std::int32_t> mesh_coordinates(span<axis> axes, std::int32_t member);

/// Returns the number P of data-parallel replicas, groups of members that run micro-batches of their own; `replica_of`
/// returns the replica of a member.
std::int32_t count_replicas(span<axis> axes);
std::int32_t replica_of(span<axis> axes, std::int32_t member);
std::int32_t mesh_size(span<axis> axes);

/// Checks that a tensor can be cut so: dims and axes exist, no axis is used twice, each cut lies within the blocks of
/// the one before, all parts are equal, and all ranks together hold no more boxes than a checkpoint's tensor may have
/// pieces.
status check_splits(const char *name, span<std::int64_t> sizes, span<split> splits, span<axis> axes);

/// Returns the local slice that a member of the mesh holds of a tensor of these sizes. The splits have passed
/// `check_splits`.
tensor_part local_part(const std::vector<std::int64_t> &sizes, span<split> splits, span<axis> axes,
                       std::int32_t member);

std::vector<std::int64_t> sizes_of(span<std::int64_t> sizes);

} // namespace windlass::rt

#endif
