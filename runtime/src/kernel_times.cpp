#include "windlass/rt/kernel_times.h"

#include <algorithm>
#include <cstring>
#include <ctime>

namespace windlass::rt {

double clock_seconds() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

kernel_times::row &kernel_times::find(const work &what) {
  for (row &r : rows_)
    if (std::strcmp(r.what.name, what.name) == 0 && r.what.flops == what.flops && r.what.bytes == what.bytes &&
        std::equal(std::begin(what.sizes), std::end(what.sizes), std::begin(r.what.sizes)))
      return r;
  rows_.push_back({what, 0, 0.0});
  return rows_.back();
}

void kernel_times::add(const work &what, double begin, double end) {
  constexpr std::size_t most_commands = 1000000;
  row &r = find(what);
  ++r.calls;
  r.seconds += end - begin;
  if (keeps_commands_ && commands_.size() < most_commands)
    commands_.push_back({what, begin, end});
}

void kernel_times::add(const kernel_times &other) {
  for (const row &theirs : other.rows_) {
    row &r = find(theirs.what);
    r.calls += theirs.calls;
    r.seconds += theirs.seconds;
  }
}

} // namespace windlass::rt
