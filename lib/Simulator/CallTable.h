// The calls of a simulated rank, with the counters that tell how much of everything comes before any of them.
#ifndef WINDLASS_LIB_SIMULATOR_CALLTABLE_H
#define WINDLASS_LIB_SIMULATOR_CALLTABLE_H

#include "windlass/Simulator/EventSimulation.h"

namespace windlass::simulation {

/// A call: the `call`-th of an iteration of a segment.
struct Position {
  int64_t segment = 0, iteration = 0, call = 0;
};

/// Returns whether the step takes no time and is not issued.
inline bool isMark(const Step &step) { return step.kind == Step::Kind::Record || step.kind == Step::Kind::Wait; }

/// The number of each thing in one function, or in all calls before one: counters of equal index add up.
using Counters = std::vector<int64_t>;

class CallTable {
public:
  /// `events` bounds the events that steps name.
  CallTable(const Rank &rank, int64_t events);

  int64_t getStreams() const { return streams; }
  /// Returns the step's stream; all steps of a serial rank are on stream 0.
  int64_t streamOf(const Step &step) const { return rank->isSerial ? 0 : step.stream; }
  bool isEnd(const Position &at) const { return at.segment == static_cast<int64_t>(rank->segments.size()); }
  int64_t functionAt(const Position &at) const { return rank->segments[at.segment].calls[at.call]; }
  const Step &getStep(const Position &at, int64_t step) const { return rank->functions[functionAt(at)].steps[step]; }
  /// Returns the steps of a function on a stream, in their order.
  const std::vector<int64_t> &getSteps(int64_t function, int64_t stream) const { return byStream[function][stream]; }
  int64_t getStepCount(int64_t function) const { return static_cast<int64_t>(rank->functions[function].steps.size()); }
  int64_t getIterations(int64_t segment) const { return rank->segments[segment].count; }

  /// Returns the position of the first call, or the end where there is none.
  Position begin() const { return settle({}); }
  Position next(Position at) const {
    ++at.call;
    return settle(at);
  }
  /// Returns the first call at or behind `at` that has steps on the stream.
  Position find(Position at, int64_t stream) const;

  // Counters.
  int64_t callsCounter() const { return 0; }
  int64_t hostCounter() const { return 1; } ///< picoseconds that the host takes to issue
  int64_t recordsCounter(int64_t event) const { return 2 + event; }
  int64_t countBeforeSegment(int64_t segment, int64_t counter) const { return segmentsBefore[segment][counter]; }
  /// Returns the counter's value over all calls before `at`.
  int64_t countBefore(const Position &at, int64_t counter) const;
  /// Returns the counter's value over one iteration of the segment.
  int64_t countOfIteration(int64_t segment, int64_t counter) const { return iterations[segment][counter]; }
  /// Returns how many records of its event stand before a record or wait in its function.
  int64_t recordsInFunction(int64_t function, int64_t step) const { return recordsBefore[function][step]; }
  /// Returns the picoseconds of issue from the function's begin to this step's, itself included.
  int64_t issueInFunction(int64_t function, int64_t step) const { return issueUpTo[function][step]; }

private:
  /// Moves from behind the last call of an iteration to the next one, and over segments that are empty.
  Position settle(Position at) const;

  const Rank *rank;
  int64_t streams = 0;
  std::vector<Counters> ofFunction;
  std::vector<std::vector<int64_t>> recordsBefore, issueUpTo;
  std::vector<std::vector<std::vector<int64_t>>> byStream; ///< function, stream
  std::vector<Counters> segmentsBefore, iterations;
  std::vector<std::vector<Counters>> callsBefore; ///< segment, call
  std::vector<std::vector<bool>> hasStream;       ///< segment, stream
};

} // namespace windlass::simulation

#endif
