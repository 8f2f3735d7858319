// Labels that cost the same on an edge: of the layouts that an operator's labels have for one of its values, only a few
// differ, so that tables repeat their rows and columns.
#ifndef WINDLASS_LIB_SEARCH_CLASSES_H
#define WINDLASS_LIB_SEARCH_CLASSES_H

#include "Kernels.h"

#include <optional>

namespace windlass::search {

/// A table by its distinct rows and columns.
struct Classes {
  /// The class of each label, at both ends of the edge. `columnOf` is as long as a padded row; its padding has a class
  /// of its own, the last.
  std::vector<int32_t> rowOf, columnOf;
  int32_t rows = 0, stride = 0;
  /// The costs [row class][column class], in rows of `stride`, padded with `filling`.
  Doubles table;

  /// Returns the classes of the transposed table; `labels` is the number of columns without padding.
  Classes transpose(int32_t labels, double filling) const;
  /// The operations of `minPlus`, about those of a vector each.
  int64_t work() const;
};

/// Returns the classes of a table [height][width]; none where they would save less than half of the work.
std::optional<Classes> findClasses(const std::vector<int64_t> &table, int32_t height, int32_t width, double filling);

/// Sets out[y] = min over x of a[x] + table[x][y], for all y that have a class, with the bits that the full table
/// gives. `room` is scratch for `padded(classes.rows) + classes.stride` numbers.
void minPlus(double *out, const double *a, const Classes &classes, double *room);

} // namespace windlass::search

#endif
