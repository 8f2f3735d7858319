#include "windlass/rt/detail/sample.h"

#include <algorithm>

namespace windlass::rt {

sample summarize(std::vector<turn_time> turns, std::size_t least) {
  if (turns.empty())
    return {};
  std::sort(turns.begin(), turns.end(),
            [](const turn_time &a, const turn_time &b) { return a.interruptions < b.interruptions; });
  std::vector<double> seconds;
  for (const turn_time &turn : turns)
    if (seconds.size() < least || turn.interruptions == turns[least - 1].interruptions)
      seconds.push_back(turn.seconds);
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(seconds.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, seconds.size() - 1);
    return seconds[low] + (place - static_cast<double>(low)) * (seconds[high] - seconds[low]);
  };
  return {at(0.5), at(0.75) - at(0.25), static_cast<std::int64_t>(seconds.size())};
}

} // namespace windlass::rt
