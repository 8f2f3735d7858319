#include "turns.h"

#include "device_event.h"

#include "windlass/rt/detail/sample.h"

#include <algorithm>

namespace windlass::rt::cuda {

namespace {

constexpr std::size_t turns = 7;
/// A way is given up after its first counted turn if that took more than this many times as long as the fastest way's.
constexpr double hopeless = 2;

} // namespace

status time_in_turns(stream &s, std::size_t ways, const std::function<status(std::size_t)> &run,
                     std::vector<double> &medians) {
  std::vector<std::vector<turn_time>> times(ways);
  std::vector<bool> has_failed(ways), is_out(ways);
  device_event begin(device_event::timed), end(device_event::timed);
  for (std::size_t turn = 0; turn <= turns; ++turn) {
    for (std::size_t way = 0; way < ways; ++way) {
      if (is_out[way])
        continue;
      WINDLASS_TRY(begin.record(native(s)));
      const status ran = run(way);
      WINDLASS_TRY(end.record(native(s)));
      WINDLASS_TRY(s.synchronize());
      turn_time taken;
      WINDLASS_TRY(end.seconds_since(begin, taken.seconds));
      if (!ran.is_ok())
        has_failed[way] = is_out[way] = true;
      else if (turn > 0)
        times[way].push_back(taken);
    }
    if (turn != 1)
      continue;
    double least = failed_seconds;
    for (std::size_t way = 0; way < ways; ++way)
      if (!is_out[way])
        least = std::min(least, times[way].front().seconds);
    for (std::size_t way = 0; way < ways; ++way)
      if (!is_out[way])
        is_out[way] = times[way].front().seconds > hopeless * least;
  }
  medians.clear();
  for (std::size_t way = 0; way < ways; ++way)
    medians.push_back(has_failed[way] ? failed_seconds : summarize(std::move(times[way]), 1).median);
  return {};
}

} // namespace windlass::rt::cuda
