// Checks of the views of a table, of rows of it, and of the indices that choose them.
#ifndef WINDLASS_RT_DETAIL_TABLE_ROWS_H
#define WINDLASS_RT_DETAIL_TABLE_ROWS_H

#include "windlass/rt/view.h"

#include "windlass/rt/detail/function.h"

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

/// Where the parts of a table begin that has some rows only; no parts: it has all rows.
struct table_parts {
  const std::int64_t *first;
  std::int64_t count, stride, rows;

  table_parts(const view &of, std::int64_t table_rows)
      : first(of.as<const std::int64_t>()), count(of.is_absent() ? 0 : of.sizes[0]), stride(of.strides[0]),
        rows(table_rows) {}

  /// Returns the place of a row in the table; -1 where it is in none of the parts.
  WINDLASS_FN std::int64_t place_of(std::int64_t row) const {
    if (count == 0)
      return row;
    const std::int64_t length = rows / count;
    for (std::int64_t part = 0; part < count; ++part) {
      const std::int64_t place = row - first[part * stride];
      if (place >= 0 && place < length)
        return part * length + place;
    }
    return -1;
  }
};

} // namespace windlass::rt::detail

#endif
