// Where the time of a stream's commands goes.
#ifndef WINDLASS_RT_KERNEL_TIMES_H
#define WINDLASS_RT_KERNEL_TIMES_H

#include "windlass/rt/view.h"

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace windlass::rt {

/// The work of a command. Commands of one name, sizes and work are counted together.
struct work {
  const char *name = "other"; ///< in static storage
  std::int64_t flops = 0;     ///< floating-point operations, a multiply-add being two; 0 where memory is what counts
  std::int64_t bytes = 0;     ///< bytes of its operands, each counted once
  std::int64_t sizes[4] = {}; ///< what distinguishes calls of a kernel, as rows, columns, depth; 0 ends them
  bool is_map = false;        ///< a fused function, whose name says what it computes
};

/// Returns the bytes of memory that views cover, each element once however often it repeats. Absent views count
/// nothing.
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

/// The seconds of commands by kind. Used by the thread that runs the commands.
class kernel_times {
public:
  struct row {
    work what;
    std::int64_t calls = 0;
    double seconds = 0;
  };
  /// Adds a command that ran from `begin` to `end`, in seconds of clock_seconds().
  void add(const work &what, double begin, double end);
  /// Adds the rows of another stream.
  void add(const kernel_times &other);
  void clear() { rows_.clear(); }
  const std::vector<row> &rows() const { return rows_; }

  struct command {
    work what;
    double begin = 0, end = 0;
  };
  /// Sets whether each command is kept too, up to as many as viewers of timelines show.
  void keep_commands(bool on) { keeps_commands_ = on; }
  const std::vector<command> &commands() const { return commands_; }

private:
  row &find(const work &what);
  std::vector<row> rows_;
  std::vector<command> commands_;
  bool keeps_commands_ = false;
};

/// Returns the seconds of a clock that never goes back.
double clock_seconds();

} // namespace windlass::rt

#endif
