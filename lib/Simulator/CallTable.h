// The calls of a simulated rank, with the counters that tell how much of everything comes before any of them.
#ifndef WINDLASS_LIB_SIMULATOR_CALLTABLE_H
#define WINDLASS_LIB_SIMULATOR_CALLTABLE_H

#include "windlass/Simulator/EventSimulation.h"

namespace windlass::simulation {

/// A call: the `call`-th of an iteration of a loop.
struct Position {
  int64_t loop = 0, iteration = 0, call = 0;
};

/// Returns whether the task takes no time and is not issued.
inline bool isMark(const Task &task) { return task.kind == Task::Kind::Record || task.kind == Task::Kind::Wait; }

/// The number of each thing in one function, or in all calls before one: counters of equal index add up.
using Counters = std::vector<int64_t>;

class CallTable {
public:
  /// `events` bounds the events that tasks name.
  CallTable(const Rank &rank, int64_t events);

  int64_t getStreams() const { return streams; }
  /// Returns the stream in whose order the task runs.
  int64_t streamOf(const Task &task) const { return rank->getOrder(task.stream); }
  bool isEnd(const Position &at) const { return at.loop == static_cast<int64_t>(rank->loops.size()); }
  int64_t functionAt(const Position &at) const { return rank->loops[at.loop].calls[at.call]; }
  const Task &getTask(const Position &at, int64_t task) const { return rank->functions[functionAt(at)].tasks[task]; }
  /// Returns the tasks of a function on a stream, in their order.
  const std::vector<int64_t> &getSteps(int64_t function, int64_t stream) const { return byStream[function][stream]; }
  int64_t getTaskCount(int64_t function) const { return static_cast<int64_t>(rank->functions[function].tasks.size()); }
  int64_t getIterations(int64_t loop) const { return rank->loops[loop].count; }

  /// Returns the position of the first call, or the end where there is none.
  Position begin() const { return settle({}); }
  Position next(Position at) const {
    ++at.call;
    return settle(at);
  }
  /// Returns the first call at or behind `at` that has tasks on the stream.
  Position find(Position at, int64_t stream) const;

  // Counters.
  int64_t callsCounter() const { return 0; }
  int64_t hostCounter() const { return 1; } ///< picoseconds that the host takes to issue
  int64_t recordsCounter(int64_t event) const { return 2 + event; }
  int64_t countBeforeLoop(int64_t loop, int64_t counter) const { return loopsBefore[loop][counter]; }
  /// Returns the counter's value over all calls before `at`.
  int64_t countBefore(const Position &at, int64_t counter) const;
  /// Returns the counter's value over one iteration of the loop.
  int64_t countOfIteration(int64_t loop, int64_t counter) const { return iterations[loop][counter]; }
  /// Returns how many records of its event stand before a record or wait in its function.
  int64_t recordsInFunction(int64_t function, int64_t task) const { return recordsBefore[function][task]; }
  /// Returns the picoseconds of issue from the function's begin to this task's, itself included.
  int64_t issueInFunction(int64_t function, int64_t task) const { return issueUpTo[function][task]; }

private:
  /// Moves from behind the last call of an iteration to the next one, and over loops that are empty.
  Position settle(Position at) const;

  const Rank *rank;
  int64_t streams = 0;
  std::vector<Counters> ofFunction;
  std::vector<std::vector<int64_t>> recordsBefore, issueUpTo;
  std::vector<std::vector<std::vector<int64_t>>> byStream; ///< function, stream
  std::vector<Counters> loopsBefore, iterations;
  std::vector<std::vector<Counters>> callsBefore; ///< loop, call
  std::vector<std::vector<bool>> hasStream;       ///< loop, stream
};

} // namespace windlass::simulation

#endif
