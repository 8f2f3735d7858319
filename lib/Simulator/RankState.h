// How far a simulated rank has come.
#ifndef WINDLASS_LIB_SIMULATOR_RANKSTATE_H
#define WINDLASS_LIB_SIMULATOR_RANKSTATE_H

#include "CallTable.h"

#include <map>
#include <set>

namespace windlass::simulation {

struct StreamState {
  enum class Status {
    Ready,   ///< its task has not been looked at
    Waiting, ///< for an event
    Issuing, ///< for the host, until `time`
    Meeting, ///< for the other end of a channel
    Running, ///< since `time`
    Ended
  };
  Status status = Status::Ready;
  Position at;
  /// The number of the next task among those of the function that are on this stream.
  int64_t next = 0;
  int64_t time = 0;
};

class RankState {
public:
  RankState(const Rank &rank, int64_t index, int64_t events, const std::function<void(const Span &)> &visit);
  RankState(const RankState &) = delete;

  std::vector<StreamState> streams;
  std::vector<FunctionTotal> totals;

  int64_t getTaskIndex(const StreamState &stream) const {
    int64_t index = &stream - streams.data();
    return table.getSteps(table.functionAt(stream.at), index)[stream.next];
  }
  const Task &getTask(const StreamState &stream) const { return table.getTask(stream.at, getTaskIndex(stream)); }
  /// Returns the time at which the host has issued the stream's task.
  int64_t issueTime(const StreamState &stream) const;
  void hasWaitedForHost() { ++hostWaits; }

  void record(const StreamState &stream, const Task &task);
  /// Returns whether the record that a wait names has been reached; true where there is none.
  bool isReached(const StreamState &stream, const Task &task) const;

  /// Begins work or a transfer on the stream.
  void begin(int64_t stream, int64_t now);
  /// Completes the stream's task: the stream goes on to its next one.
  void complete(int64_t stream, int64_t begin, int64_t end);
  /// Accounts for calls of which all tasks are done. Returns whether one of them ends an iteration that is not the
  /// last.
  bool settle();

  bool hasEnded() const { return table.isEnd(front); }
  /// Returns the time at which the calls up to the first that is not done have ended.
  int64_t getEnd() const { return end; }
  int64_t getHostEnd() const { return table.countBefore(last, table.hostCounter()); }

  /// What counts up from iteration to iteration.
  struct Progress {
    Position front;
    int64_t hostWaits = 0;
    std::vector<FunctionTotal> totals;
    double busy = 0;
  };
  Progress getProgress(int64_t now) const { return {front, hostWaits, totals, getBusy(now)}; }
  /// Returns the picoseconds until `now` for which the rank has run something.
  double getBusy(int64_t now) const { return busy + static_cast<double>(running > 0 ? now - busySince : 0); }
  /// Adds to `key` what decides how the rank goes on, besides its first call that is not done and the time.
  void addKey(std::vector<int64_t> &key, int64_t now) const;
  /// Returns how often the progress since `before`, made in `period`, can be skipped; the largest number where there is
  /// no bound.
  int64_t countJumps(const Progress &before, int64_t period, int64_t now) const;
  /// Skips `times` times the progress that was made since `before` in `period`, which ends `now`.
  void jump(const Progress &before, int64_t times, int64_t period, int64_t now);

private:
  /// The records of an event that have been reached: all below `all`, and those of `others`.
  struct Reached {
    int64_t all = 0;
    std::set<int64_t> others;
  };
  /// A call of which tasks are done.
  struct Completion {
    int64_t done = 0, end = 0;
    std::vector<int64_t> busy;                      ///< by stream
    std::vector<std::pair<int64_t, int64_t>> spans; ///< begin and length by task, where somebody wants to see them
  };

  bool isInFrontSegment(const Position &at) const { return at.loop == front.loop && !table.isEnd(at); }
  int64_t callsBefore(const Position &at) const { return table.countBefore(at, table.callsCounter()); }
  /// Returns the counter's value over all calls before the loop behind that of `front`.
  int64_t countBehind(int64_t counter) const { return table.countBeforeLoop(front.loop + 1, counter); }

  CallTable table;
  int64_t index;
  const std::function<void(const Span &)> &visit;
  std::vector<Reached> reached;
  std::map<int64_t, Completion> completions; ///< by how many calls stand before
  Position front, last;
  int64_t end = 0, hostWaits = 0;
  /// The number of streams that run something, and since when there has been one; `busy` is the time before that.
  int64_t running = 0, busySince = 0;
  double busy = 0;
};

} // namespace windlass::simulation

#endif
