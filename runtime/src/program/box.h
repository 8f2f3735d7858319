// Boxes of tensors: which part of a whole tensor somebody holds, and copies between dense memory of two boxes.
#ifndef WINDLASS_RT_SRC_PROGRAM_BOX_H
#define WINDLASS_RT_SRC_PROGRAM_BOX_H

#include "windlass/rt/program.h"

#include <functional>
#include <string>
#include <vector>

namespace windlass::rt {

struct box {
  std::vector<std::int64_t> begin, sizes;
  std::int64_t elements() const;
  bool operator==(const box &other) const { return begin == other.begin && sizes == other.sizes; }
};

/// The box that is all of a tensor.
box whole_box(const std::vector<std::int64_t> &sizes);

/// Calls `f(a_offset, b_offset, count)` for every run of elements that follow each other in the dense memory of both
/// boxes; offsets and counts are elements. Boxes that do not overlap give no run.
void for_each_run(const box &a, const box &b, const std::function<void(std::int64_t, std::int64_t, std::int64_t)> &f);

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
