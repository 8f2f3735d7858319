// The processors that a rank runs on, its number of threads, and its instructions.
#ifndef WINDLASS_RT_SRC_PROGRAM_PLACEMENT_H
#define WINDLASS_RT_SRC_PROGRAM_PLACEMENT_H

#include "windlass/rt/detail/instructions.h"

#include "control.h"
#include "options.h"

#include <sched.h>

namespace windlass::rt {

/// The facts that a rank tells the others.
struct rank_place {
  char host[48];        ///< the running kernel's name for itself, which containers share; empty if not known
  cpu_set_t processors; ///< that it may use
  detail::instruction_set instructions;
};
rank_place own_place();

/// Returns the processors with neighbours side by side: by memory node, package, core.
std::vector<std::int32_t> in_order_of_place(const cpu_set_t &processors);

/// The ranks of this one's host, itself included, that may use the same processors as it; `index` is its place among
/// them.
struct sharers {
  std::int32_t count = 0, index = 0;
  bool all = true; ///< whether no rank of the host may use others: then no launcher has placed them
};
sharers sharers_of(span<rank_place> ranks, std::int32_t rank);

/// Returns part `index` of `count` of the processors; empty if there are fewer processors than parts.
std::vector<std::int32_t> share_of(const std::vector<std::int32_t> &processors, std::int32_t count, std::int32_t index);

/// Decides together with all ranks, before threads are started: binds this process to its share of the processors that
/// its host's ranks may use, unless they are bound already or `o` says no; takes the instructions that all ranks have;
/// and gives the number of threads.
status take_place(control &ranks, bool is_process, const options &o, std::int32_t &threads);

/// Returns the processors that the calling thread may use, such as "0-3,8".
std::string describe_processors();

} // namespace windlass::rt

#endif
