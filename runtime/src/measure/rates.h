// Rates of a device and its host that no command of a step shows: what offloading and checkpoints live on.
#ifndef WINDLASS_RT_SRC_MEASURE_RATES_H
#define WINDLASS_RT_SRC_MEASURE_RATES_H

#include "windlass/rt/context.h"

#include <string>
#include <vector>

namespace windlass::rt {

struct machine_rate {
  const char *name; ///< with its unit
  double per_second;
};

/// Measures the rates of this rank's device, with copies in its arena and to pinned memory, of the host's optimizer on
/// `threads` threads, and of the disk that holds `folder`. Gives medians of several turns.
status measure_rates(context &c, std::int32_t threads, const std::string &folder, std::vector<machine_rate> &out);

} // namespace windlass::rt

#endif
