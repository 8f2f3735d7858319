// Streams, events, transfers and shared links of a step, simulated from event to event. Plain C++, no IR.
#ifndef WINDLASS_SIMULATOR_EVENTSIMULATION_H
#define WINDLASS_SIMULATOR_EVENTSIMULATION_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace windlass::simulation {

/// What an activity takes of a shared resource, such as a link: the share of its rate that the activity uses when it is
/// alone, above 0 and at most 1.
struct Use {
  int64_t resource = 0;
  double share = 1;
};

/// What a stream does next.
struct Task {
  enum class Kind {
    Work,   ///< a kernel, a copy or a collective, which all members reach together
    Record, ///< marks the point that the stream has reached
    Wait,   ///< holds the stream until a record of the event before it, in the order of the text, has been reached
    Send,   ///< begins when a rank is at the receive of the same number of the channel, and ends with it
    Receive,
    Meet ///< work that begins when all ranks whose functions name its group are at it
  };
  Kind kind = Kind::Work;
  int64_t stream = 0;
  /// The event of a record or wait; the channel of a send or receive, which has one sender and one receiver; for work
  /// that meets, its group, which each rank names on one stream only.
  int64_t object = 0;
  /// How long work or a send takes when nothing else uses what it uses; at least 0. Meaningless for other kinds.
  int64_t picoseconds = 0;
  /// What work or a send uses, as an index into `Problem::uses`; -1 where it shares nothing.
  int64_t uses = -1;
  /// How many of the event's records right before a wait it skips: with 0 it waits for the last one. Where there is no
  /// such record, it does not hold the stream.
  int64_t skips = 0;
};

/// What a host issues in order, without waiting: the n-th work, send or receive of a function's text begins no earlier
/// than the times that issuing the first n takes, together.
struct Function {
  std::vector<Task> tasks;
  int64_t issuePicoseconds = 0;
};

/// Calls of functions, `count` times in a row.
struct Loop {
  std::vector<int64_t> calls;
  int64_t count = 1;
};

/// A rank, or one that stands for all ranks that do the same at the same time.
struct Rank {
  std::vector<Function> functions;
  std::vector<Loop> loops;
  /// Whether its streams share one core, so that commands run one at a time in the order of the text.
  bool isSerial = false;
  /// By stream, whether its commands take no part of that core; streams beyond the end do.
  std::vector<bool> isApart = {};
  /// Returns the stream in whose order the commands of a stream run.
  int64_t getOrder(int64_t stream) const {
    bool shares = isSerial && !(stream < static_cast<int64_t>(isApart.size()) && isApart[stream]);
    return shares ? 0 : stream;
  }
};

struct Problem {
  std::vector<Rank> ranks;
  /// What activities use of resources, by `Task::uses`. Activities that use one resource slow each other down: where
  /// their shares add up to more than 1, each runs at 1 over their sum of its own rate.
  std::vector<std::vector<Use>> uses;
};

struct FunctionTotal {
  double runs = 0;
  /// The picoseconds by which all runs move the end of what the rank has done so far.
  double elapsedPicoseconds = 0;
  /// The picoseconds for which work and transfers of each stream run.
  std::vector<double> busyPicoseconds;
};

struct Result {
  /// The time at which the last rank has ended and its host has issued everything.
  int64_t picoseconds = 0;
  /// The totals of each function of each rank.
  std::vector<std::vector<FunctionTotal>> totals;
  /// The picoseconds for which each rank runs work or a transfer on at least one stream.
  std::vector<double> busyPicoseconds;
};

/// A work or a send that has ended.
struct Span {
  int64_t rank, function, task;
  int64_t beginPicoseconds, picoseconds;
};

/// Runs all ranks from time 0. Iterations of loops are replayed until the state of all ranks repeats; the rest
/// follows from that, so the time taken does not grow with the counts. `visit`, where given, sees what is replayed: of
/// each rank the calls in their order, of each the tasks in theirs. Fails with what holds the ranks where they wait for
/// each other, and where a channel has two senders or two receivers.
llvm::Expected<Result> simulate(const Problem &problem, const std::function<void(const Span &)> &visit = {});

} // namespace windlass::simulation

#endif
