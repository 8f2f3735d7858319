// Rows of a table by index, for gathers and their adjoints.
#ifndef WINDLASS_BACKENDS_CUDA_ROW_LAYOUT_H
#define WINDLASS_BACKENDS_CUDA_ROW_LAYOUT_H

#include "kernel.h"

#include "windlass/rt/detail/table_rows.h"

namespace windlass::rt::cuda {

/// A gather or its adjoint: `full` has the indexed axis, `part` has the dims of the indices in its place. Where there
/// are `parts`, `full` consists of them, of `limit` places along the axis.
struct row_layout {
  std::byte *full, *part;
  const std::int64_t *indices;
  sequence full_pre, part_pre, full_post, part_post, index_at, place_at;
  std::int64_t axis_stride, axis_size, limit;
  detail::table_parts parts;
  bool allows_negative;
};

constexpr std::int64_t nowhere = -1;

/// Returns where along the axis an index leads; nowhere in parts that do not have it, and where it is wrong, which is
/// noted.
__device__ inline std::int64_t place_of(const row_layout &l, std::int64_t position, fault *faults) {
  const std::int64_t index = l.indices[l.index_at.offset(position)];
  if (index >= l.limit || index < (l.allows_negative ? -l.limit : 0)) {
    report(faults, l.allows_negative ? index_fault : id_fault, index, position, l.limit);
    return nowhere;
  }
  return l.parts.place_of(index < 0 ? index + l.limit : index);
}

inline row_layout layout_of(const view &full, const view &part, const view &indices, int axis, bool allows_negative,
                            const view &first = {}, std::int64_t all_rows = 0) {
  const int rank = indices.rank;
  return {full.data,
          part.data,
          indices.as<const std::int64_t>(),
          sequence(full, 0, axis),
          sequence(part, 0, axis),
          sequence(full, axis + 1, full.rank),
          sequence(part, axis + rank, part.rank),
          sequence(indices, 0, rank),
          sequence(part, axis, axis + rank),
          full.strides[axis],
          full.sizes[axis],
          first.is_absent() ? full.sizes[axis] : all_rows,
          detail::table_parts(first, full.sizes[axis]),
          allows_negative};
}

/// Adds rows of `part` to those of `full` that the indices lead to, always in the same order.
status run_scatter(stream &s, const char *name, const row_layout &l, const view &full, const view &part,
                   bool accumulate);

} // namespace windlass::rt::cuda

#endif
