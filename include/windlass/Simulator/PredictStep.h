// How long a step of a schedule takes.
#ifndef WINDLASS_SIMULATOR_PREDICTSTEP_H
#define WINDLASS_SIMULATOR_PREDICTSTEP_H

#include "windlass/Profile/CostModel.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace windlass {

/// A command, or an end of a message, that has run in the simulation.
struct SimulatedCommand {
  int64_t position;
  /// The command; for a message the `sched.resource` of the border.
  mlir::Operation *op;
  /// The number of its stream; those of messages come after the program's own.
  int64_t stream;
  int64_t beginPicoseconds, picoseconds;
  CostSource source;
};

/// What each of a step's commands of one kind does.
struct CommandTotal {
  /// The family of the command's work; for a collective its kind, for a copy between memories its stream's kind, for
  /// the end of a message "send" or "receive".
  std::string family;
  /// The FLOPs and the bytes of the command's work; a collective has the bytes of its larger buffer, a copy between
  /// memories and a message those that it moves.
  double flops = 0, bytes = 0;
  /// The members of a collective; 2 for a message.
  int64_t members = 1;
  bool isUpdate = false;
  bool operator<(const CommandTotal &other) const {
    return std::tie(family, flops, bytes, members, isUpdate) <
           std::tie(other.family, other.flops, other.bytes, other.members, other.isUpdate);
  }
};

/// A part of a step of a position: all runs of a function.
struct StepWindow {
  /// The name: "forward", "backward", "last backward" (which reduces gradients too), "update" or "messages".
  std::string name;
  /// The seconds by which these runs move the end of the position's step, waiting included.
  double seconds = 0;
  /// The seconds for which each stream runs commands: "compute", those of collectives, such as "over data x batch", and
  /// those of messages with another position, such as "messages with position 1".
  std::map<std::string, double> busySeconds;
};

/// The step of a position. Its streams and the position itself are idle for the rest of the whole step.
struct PositionPrediction {
  /// The seconds for which at least one of its streams runs a command or a message.
  double busySeconds = 0;
  /// The share of the whole step for which none does.
  double bubbleShare = 0;
  /// The seconds for which each stream runs commands or messages.
  std::map<std::string, double> streams;
  /// The windows of functions in the order in which they begin, then that of messages.
  std::vector<StepWindow> windows;
};

struct BusiestStream {
  int64_t position = 0;
  std::string name;
  double seconds = 0;
};

struct StepPrediction {
  /// The time at which all positions have ended.
  double seconds = 0;
  /// The sum of the costs' error bars on the position where it is largest.
  double errorSeconds = 0;
  /// The seconds of all commands of a step, of one rank of each position, whose costs have no error bar.
  double uncalibratedSeconds = 0;
  /// The seconds of the same commands by the source of their costs and by family (for collectives, by kind). A message
  /// counts at both of its ends. What links that are shared add is in none of these sums over commands.
  std::map<CostSource, double> bySource;
  std::map<std::string, double> byFamily;
  /// How often a step runs each kind of command.
  std::map<CommandTotal, double> commands;
  std::vector<PositionPrediction> positions;
  /// Returns the stream that is busy for longest; one without a name where no stream is busy.
  BusiestStream getBusiestStream() const;
};

/// Simulates the action tables of a module at L5, each for one rank that stands for all of its position
/// (EventSimulation.h). A stream runs its commands in order, once the host has issued them, and waits for events; where
/// ranks share cores with their communication, no two commands run at a time. A message begins when both ends have come
/// to it; the messages between two positions have a stream of their own on each, on which they run in the order of the
/// tables. The slots of a chunk hold back messages and functions as in emitted programs. On GPUs, collectives, messages
/// and copies that use the same links at the same time share their rate. Equal micro-batches are simulated until they
/// repeat. `visit`, where given, sees every command that is simulated. Where a table is malformed,
/// positions wait for each other, positions that exchange messages have different numbers of ranks, or the cluster does
/// not state how fast the host or link is that runs a command, an error is reported and the prediction is empty.
StepPrediction predictStep(mlir::ModuleOp module, const CostModel &costs,
                           const std::function<void(const SimulatedCommand &)> &visit = {});

} // namespace windlass

#endif
