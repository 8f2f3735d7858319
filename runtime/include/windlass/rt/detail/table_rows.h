// Checks of the views of a table, of rows of it, and of the indices that choose them.
#ifndef WINDLASS_RT_DETAIL_TABLE_ROWS_H
#define WINDLASS_RT_DETAIL_TABLE_ROWS_H

#include "windlass/rt/view.h"

namespace windlass::rt::detail {

/// Returns whether the sizes of `part` are those of `full` with the sizes of `indices` in the place of dim `axis`.
inline bool fits_rows(const view &full, const view &part, const view &indices, int axis) {
  if (axis < 0 || axis >= full.rank || part.rank != full.rank - 1 + indices.rank || indices.type != element_type::i64)
    return false;
  bool same = true;
  for (int d = 0; d < axis; ++d)
    same = same && full.sizes[d] == part.sizes[d];
  for (int d = 0; d < indices.rank; ++d)
    same = same && indices.sizes[d] == part.sizes[axis + d];
  for (int d = axis + 1; d < full.rank; ++d)
    same = same && full.sizes[d] == part.sizes[d - 1 + indices.rank];
  return same;
}

/// Returns whether `first` can hold the beginnings of the parts of a table that has some of `all_rows` rows.
inline bool fits_parts(const view &table, const view &first, std::int64_t all_rows) {
  return first.is_absent() || (first.type == element_type::i64 && first.rank == 1 && first.sizes[0] > 0 &&
                               table.sizes[0] % first.sizes[0] == 0 && table.sizes[0] <= all_rows);
}

} // namespace windlass::rt::detail

#endif
