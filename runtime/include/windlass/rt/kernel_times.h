// Where the time of a stream's commands goes.
#ifndef WINDLASS_RT_KERNEL_TIMES_H
#define WINDLASS_RT_KERNEL_TIMES_H

#include "windlass/rt/view.h"

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace windlass::rt {

/// What a command does. Commands of one name, sizes and work are counted together.
struct work {
  const char *name = "other"; ///< of static storage
  std::int64_t flops = 0;     ///< floating-point operations, a multiply-add being two; 0 where memory is what counts
  std::int64_t bytes = 0;     ///< of its operands, each counted once
  std::int64_t sizes[4] = {}; ///< what distinguishes calls of a kernel, as rows, columns, depth; 0 ends them
};

/// Bytes of memory that views cover, each element once however often it repeats. Absent views count nothing.
inline std::int64_t bytes_of(std::initializer_list<view> views) {
  std::int64_t bytes = 0;
  for (const view &v : views) {
    std::int64_t n = v.is_absent() ? 0 : size_of(v.type);
    for (int i = 0; i < v.rank; ++i)
      n *= v.strides[i] == 0 ? 1 : v.sizes[i];
    bytes += n;
  }
  return bytes;
}

/// Seconds by kind of command. Used by the thread that runs the commands.
class kernel_times {
public:
  struct row {
    work what;
    std::int64_t calls = 0;
    double seconds = 0;
  };
  void add(const work &what, double seconds);
  /// Adds the rows of another stream.
  void add(const kernel_times &other);
  void clear() { rows_.clear(); }
  const std::vector<row> &rows() const { return rows_; }

private:
  row &find(const work &what);
  std::vector<row> rows_;
};

/// Seconds of a clock that never goes back.
double clock_seconds();

} // namespace windlass::rt

#endif
