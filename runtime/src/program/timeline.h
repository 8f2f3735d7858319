// RUN/traces/rank_00000.json: when each command of a step ran on a rank.
#ifndef WINDLASS_RT_SRC_PROGRAM_TIMELINE_H
#define WINDLASS_RT_SRC_PROGRAM_TIMELINE_H

#include "windlass/rt/kernel_times.h"
#include "windlass/rt/program.h"
#include "windlass/rt/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace windlass::rt {

/// Returns the timeline in the format of Chrome's trace viewer, with the names and threads of `windlass simulate -o`,
/// which is process 0; rank r is process r + 1. `times` has the kept commands of each stream; they count from the
/// earliest. `operators` has the model's operator for each of a stream's commands, or nothing where these are not
/// known.
std::string timeline_text(std::int32_t rank, const span<stream_entry> &streams, const std::vector<kernel_times> &times,
                          const std::vector<std::vector<std::string_view>> &operators);

/// Returns the name of a rank's file.
std::string timeline_name(std::int32_t rank);

} // namespace windlass::rt

#endif
