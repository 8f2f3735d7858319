// The processes of a group on one host, and whether they still run.
#ifndef WINDLASS_TRANSPORT_PARTNERS_H
#define WINDLASS_TRANSPORT_PARTNERS_H

#include "windlass/rt/detail/wait.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace windlass::rt {

/// The facts that a member gives about its process, in memory that all members map. Zero until it has written them.
struct partner_entry {
  std::atomic<std::int64_t> process; ///< its id, written last
  std::int64_t started;              ///< in clock ticks after boot: ids are used again
  std::int64_t id_space;             ///< the space in which the id holds; another one cannot be looked at
};

/// Looks now and then at the processes that a member waits for. A killed or crashed process is found within a second; a
/// process that stands still (SIGSTOP, not a debugger) after `patience`. Time in which this process itself stands still
/// does not count.
class partners final : public detail::wait_guard {
public:
  static constexpr std::chrono::milliseconds interval{250}, patience{3000};

  /// Writes this process into entry `index` of the table; `ranks` are the members' names for people.
  partners(partner_entry *table, const std::vector<std::int32_t> &ranks, std::int32_t index);

  bool is_over() override;
  /// One line about the member that `is_over` has found lost.
  const std::string &loss() const { return loss_; }

private:
  enum class state { runs, stands, gone };
  static state look_at(const partner_entry &entry);

  partner_entry *table_;
  std::vector<std::int32_t> ranks_;
  std::size_t index_;
  std::vector<int> stands_; ///< how often in a row each member was seen standing still
  int held_back_ = 0;       ///< how often a loss was left to a member of lower index to report
  std::chrono::steady_clock::time_point next_look_;
  std::string loss_;
};

} // namespace windlass::rt

#endif
