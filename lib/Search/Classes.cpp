#include "Classes.h"

#include "llvm/ADT/Hashing.h"

#include <algorithm>
#include <limits>

using namespace windlass::search;

/// Numbers the rows of a table [height][width] so that equal ones have the same number. Returns the first row of each
/// number; nothing where there are more than `most`.
static std::vector<int32_t> classify(const int64_t *table, int32_t height, int32_t width, int32_t most,
                                     std::vector<int32_t> &numbers) {
  std::vector<int32_t> fronts;
  std::vector<size_t> hashes;
  for (int32_t x = 0; x < height; ++x) {
    const int64_t *row = table + static_cast<size_t>(x) * width;
    size_t hash = llvm::hash_combine_range(row, row + width), number = 0;
    auto isSame = [&](size_t k) {
      return hashes[k] == hash && std::equal(row, row + width, table + static_cast<size_t>(fronts[k]) * width);
    };
    while (number < fronts.size() && !isSame(number))
      ++number;
    if (number == fronts.size()) {
      if (static_cast<int32_t>(number) == most)
        return {};
      fronts.push_back(x);
      hashes.push_back(hash);
    }
    numbers.push_back(static_cast<int32_t>(number));
  }
  return fronts;
}

int64_t Classes::work() const {
  return static_cast<int64_t>(rowOf.size() + columnOf.size()) + static_cast<int64_t>(rows) * (stride / kLanes);
}

Classes Classes::transpose(int32_t labels, double filling) const {
  Classes result;
  result.rowOf.assign(columnOf.begin(), columnOf.begin() + labels);
  result.rows = *std::max_element(result.rowOf.begin(), result.rowOf.end()) + 1;
  result.columnOf = rowOf;
  result.columnOf.resize(padded(static_cast<int32_t>(rowOf.size())), rows);
  result.stride = padded(rows + 1);
  result.table.assign(static_cast<size_t>(result.rows) * result.stride, filling);
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t c = 0; c < result.rows; ++c)
      result.table[static_cast<size_t>(c) * result.stride + r] = table[static_cast<size_t>(r) * stride + c];
  return result;
}

std::optional<Classes> windlass::search::findClasses(const std::vector<int64_t> &table, int32_t height, int32_t width,
                                                     double filling) {
  Classes result;
  std::vector<int32_t> rowFronts = classify(table.data(), height, width, height / 2, result.rowOf);
  if (rowFronts.empty())
    return std::nullopt;
  result.rows = static_cast<int32_t>(rowFronts.size());
  std::vector<int64_t> columns;
  for (int32_t y = 0; y < width; ++y)
    for (int32_t front : rowFronts)
      columns.push_back(table[static_cast<size_t>(front) * width + y]);
  std::vector<int32_t> columnFronts = classify(columns.data(), width, result.rows, width, result.columnOf);
  auto count = static_cast<int32_t>(columnFronts.size());
  result.columnOf.resize(padded(width), count);
  result.stride = padded(count + 1);
  if (2 * result.work() > static_cast<int64_t>(height) * (padded(width) / kLanes))
    return std::nullopt;
  result.table.assign(static_cast<size_t>(result.rows) * result.stride, filling);
  for (int32_t r = 0; r < result.rows; ++r)
    for (int32_t c = 0; c < count; ++c)
      result.table[static_cast<size_t>(r) * result.stride + c] =
          static_cast<double>(columns[static_cast<size_t>(columnFronts[c]) * result.rows + r]);
  return result;
}

void windlass::search::minPlus(double *out, const double *a, const Classes &classes, double *room) {
  double *least = room, *sent = room + padded(classes.rows);
  std::fill_n(least, classes.rows, std::numeric_limits<double>::infinity());
  for (size_t x = 0; x < classes.rowOf.size(); ++x)
    least[classes.rowOf[x]] = std::min(least[classes.rowOf[x]], a[x]);
  // A sum with the least of several numbers is the least of the sums: rounding keeps their order.
  minPlus(sent, least, classes.table.data(), classes.rows, classes.stride);
  for (size_t y = 0; y < classes.columnOf.size(); ++y)
    out[y] = sent[classes.columnOf[y]];
}
