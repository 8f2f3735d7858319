// Measuring which of several ways to do the same takes a device the least time.
#ifndef WINDLASS_BACKENDS_CUDA_TURNS_H
#define WINDLASS_BACKENDS_CUDA_TURNS_H

#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"

#include <functional>
#include <limits>
#include <vector>

namespace windlass::rt::cuda {

/// The time of a way that turned out to be impossible.
constexpr double failed_seconds = std::numeric_limits<double>::infinity();

/// Runs each of `ways` ways several times and waits for each. They take turns, so that all meet the same clocks, and
/// the first turn does not count; a way that is far slower than another gets only one that does. `medians` are the
/// device's times, between events.
status time_in_turns(stream &s, std::size_t ways, const std::function<status(std::size_t)> &run,
                     std::vector<double> &medians);

} // namespace windlass::rt::cuda

#endif
