// The limits of a search: operations, or time where the caller asks for it.
#ifndef WINDLASS_SEARCH_METER_H
#define WINDLASS_SEARCH_METER_H

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace windlass::search {

/// The meter of one task. An operation is about one vector of 8 numbers. The clock is read only where there is a limit
/// of time.
class Meter {
public:
  using Clock = std::chrono::steady_clock;

  /// Begins to measure. A negative number of seconds sets no limit of time.
  explicit Meter(int64_t limit, double seconds = -1)
      : limit(std::max<int64_t>(limit, 1)), seconds(seconds), begin(Clock::now()) {}

  void spend(int64_t operations) { used += operations; }
  int64_t getUsed() const { return used; }

  /// Returns the part of the limits that is used up; 1 or more once they are reached.
  double share() {
    double part = static_cast<double>(used) / static_cast<double>(limit);
    if (seconds < 0)
      return part;
    if (used >= nextLook) {
      nextLook = used + kOperationsPerLook;
      elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    return seconds > 0 ? std::max(part, elapsed / seconds) : 1;
  }
  bool isOver() { return share() >= 1; }

private:
  static constexpr int64_t kOperationsPerLook = 100'000;
  int64_t limit, used = 0, nextLook = 0;
  double seconds, elapsed = 0;
  Clock::time_point begin;
};

/// The budget of a whole search, handed out to tasks in phases: a phase ends when a given part of the whole is used up.
class Budget {
public:
  /// Sets the limits. A negative number of seconds sets no limit of time.
  Budget(int64_t operations, double seconds)
      : operations(std::max<int64_t>(operations, 1)), seconds(seconds), begin(Meter::Clock::now()) {}

  double share() const {
    double part = static_cast<double>(used) / static_cast<double>(operations);
    return seconds < 0 ? part : getElapsed() / seconds;
  }
  /// Returns the meter of one of `tasks` tasks that divide the budget that is left until the part `end` of the whole is
  /// used, with at most `most` operations. Time is not divided, because tasks may run at once.
  Meter meter(double end, int tasks, int64_t most) const {
    double left = std::max(end - share(), 0.0);
    if (seconds >= 0)
      return Meter(most, left * seconds);
    return Meter(std::min(most, static_cast<int64_t>(left * static_cast<double>(operations) / tasks)));
  }
  /// Returns the budget of a search inside this one: the rest until the part `end` of the whole is used.
  Budget until(double end) const {
    double left = std::max(end - share(), 0.0);
    return Budget(static_cast<int64_t>(left * static_cast<double>(operations)), seconds < 0 ? -1 : left * seconds);
  }
  void spend(int64_t more) { used += more; }
  int64_t getUsed() const { return used; }
  bool isOver() const { return share() >= 1; }

private:
  double getElapsed() const { return std::chrono::duration<double>(Meter::Clock::now() - begin).count(); }

  int64_t operations, used = 0;
  double seconds;
  Meter::Clock::time_point begin;
};

} // namespace windlass::search

#endif
