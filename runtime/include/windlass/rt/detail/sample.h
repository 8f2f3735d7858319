// What repeated measurements say.
#ifndef WINDLASS_RT_DETAIL_SAMPLE_H
#define WINDLASS_RT_DETAIL_SAMPLE_H

#include <cstdint>
#include <vector>

namespace windlass::rt {

/// One repetition.
struct turn_time {
  double seconds = 0;
  std::int64_t interruptions = 0; ///< how often the system gave a core of the process to something else
};

/// The median of some times in seconds, and the distance between their quartiles.
struct sample {
  double median = 0, spread = 0;
  std::int64_t turns = 0;
};

/// Of at least `least` turns, those that were interrupted least: on a busy machine the others tell of its neighbours.
sample summarize(std::vector<turn_time> turns, std::size_t least);

} // namespace windlass::rt

#endif
