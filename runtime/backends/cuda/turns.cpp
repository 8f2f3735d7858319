#include "turns.h"

#include "device_event.h"

#include "windlass/rt/detail/sample.h"

namespace windlass::rt::cuda {

namespace {

constexpr std::size_t turns = 7;

} // namespace

status time_in_turns(stream &s, std::size_t ways, const std::function<status(std::size_t)> &run,
                     std::vector<double> &medians) {
  std::vector<std::vector<turn_time>> times(ways);
  device_event begin(device_event::timed), end(device_event::timed);
  for (std::size_t turn = 0; turn <= turns; ++turn)
    for (std::size_t way = 0; way < ways; ++way) {
      WINDLASS_TRY(begin.record(native(s)));
      const status ran = run(way);
      WINDLASS_TRY(end.record(native(s)));
      WINDLASS_TRY(s.synchronize());
      turn_time taken;
      WINDLASS_TRY(end.seconds_since(begin, taken.seconds));
      if (turn > 0 && ran.is_ok())
        times[way].push_back(taken);
    }
  medians.clear();
  for (std::vector<turn_time> &each : times)
    medians.push_back(each.size() < turns ? failed_seconds : summarize(std::move(each), turns).median);
  return {};
}

} // namespace windlass::rt::cuda
