// The room that is left in each row, under additions to ranges and queries for their least.
#ifndef WINDLASS_LIB_SEARCH_SLACK_H
#define WINDLASS_LIB_SEARCH_SLACK_H

#include "Kernels.h"

#include <algorithm>

namespace windlass::search {

/// The rows in blocks; a block stores its least and what was added to all of its rows.
class Slack {
public:
  void assign(const std::vector<int64_t> &rows) {
    count = static_cast<int32_t>(rows.size());
    int32_t blocks = (count + kBlock - 1) / kBlock;
    values.assign(static_cast<size_t>(blocks) * kBlock, kPlenty);
    std::copy(rows.begin(), rows.end(), values.begin());
    added.assign(blocks, 0);
    least.resize(blocks);
    for (int32_t b = 0; b < blocks; ++b)
      refresh(b);
  }
  /// Adds `amount` to the rows [begin, end), of which there is at least one.
  void add(int32_t begin, int32_t end, int64_t amount) {
    int32_t first = begin / kBlock, last = (end - 1) / kBlock;
    if (first == last)
      return addWithin(first, begin, end, amount);
    addWithin(first, begin, (first + 1) * kBlock, amount);
    addWithin(last, last * kBlock, end, amount);
    addToAll(added.data() + first + 1, last - first - 1, amount);
    addToAll(least.data() + first + 1, last - first - 1, amount);
  }
  int64_t leastIn(int32_t begin, int32_t end) const {
    int32_t first = begin / kBlock, last = (end - 1) / kBlock;
    if (first == last)
      return leastWithin(first, begin, end);
    int64_t result = std::min(leastWithin(first, begin, (first + 1) * kBlock), leastWithin(last, last * kBlock, end));
    return std::min(result, leastOf(least.data() + first + 1, last - first - 1));
  }
  int64_t operator[](int32_t row) const { return values[row] + added[row / kBlock]; }
  int32_t size() const { return count; }

  static constexpr int32_t kBlock = 64;

private:
  static constexpr int64_t kPlenty = int64_t(1) << 61;

  void refresh(int32_t b) { least[b] = leastOf(values.data() + b * kBlock, kBlock) + added[b]; }
  void addWithin(int32_t b, int32_t begin, int32_t end, int64_t amount) {
    addToAll(values.data() + begin, end - begin, amount);
    refresh(b);
  }
  int64_t leastWithin(int32_t b, int32_t begin, int32_t end) const {
    if (begin == b * kBlock && end == begin + kBlock)
      return least[b];
    return leastOf(values.data() + begin, end - begin) + added[b];
  }

  int32_t count = 0;
  std::vector<int64_t> values, added, least;
};

} // namespace windlass::search

#endif
