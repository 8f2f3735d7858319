// What a search may use up: operations, or time where the caller asks for it.
#ifndef WINDLASS_SEARCH_METER_H
#define WINDLASS_SEARCH_METER_H

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace windlass::search {

/// Of one task. An operation is about one vector of 8 numbers. Reads the clock only where it was made with a time.
class Meter {
public:
  using Clock = std::chrono::steady_clock;

  /// Without a limit of time where `seconds` is negative.
  explicit Meter(int64_t limit, double seconds = -1)
      : limit(std::max<int64_t>(limit, 1)), seconds(seconds), begin(Clock::now()) {}

  void spend(int64_t operations) { used += operations; }
  int64_t getUsed() const { return used; }

  /// The part of the limits that is used up; 1 and more at their end.
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

/// Of a whole search, handed out to tasks in phases: the phase ends when a part of the whole is used up.
class Budget {
public:
  /// A negative number of seconds means no limit of time.
  Budget(int64_t operations, double seconds)
      : operations(std::max<int64_t>(operations, 1)), seconds(seconds), begin(Meter::Clock::now()) {}

  double share() const {
    double part = static_cast<double>(used) / static_cast<double>(operations);
    return seconds < 0 ? part : getElapsed() / seconds;
  }
  /// For one of `tasks` tasks that share what is left until a part of the whole is used; at most `most` operations.
  /// Time is not shared: tasks may run at once.
  Meter meter(double end, int tasks, int64_t most) const {
    double left = std::max(end - share(), 0.0);
    if (seconds >= 0)
      return Meter(most, left * seconds);
    return Meter(std::min(most, static_cast<int64_t>(left * static_cast<double>(operations) / tasks)));
  }
  /// For a search of its own: what there is until a part of the whole is used.
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
