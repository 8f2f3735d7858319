// A summary of repeated measurements.
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

/// Summarises the `least` turns that were interrupted least, and all that were interrupted no more than these: on a
/// busy machine the others measure its other work too.
sample summarize(std::vector<turn_time> turns, std::size_t least);

} // namespace windlass::rt

#endif
