// How long a step of a scheduled plan takes.
#ifndef WINDLASS_SIMULATOR_PREDICTSTEP_H
#define WINDLASS_SIMULATOR_PREDICTSTEP_H

#include "windlass/Profile/CostModel.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace windlass {

/// A command that has run in the simulation.
struct SimulatedCommand {
  mlir::Operation *op;
  int64_t stream;
  int64_t beginPicoseconds, picoseconds;
  CostSource source;
};

/// What each of a step's commands of one kind does.
struct CommandTotal {
  /// The family of the command's work; for a collective its kind, for a copy between memories its stream's kind.
  std::string family;
  /// The FLOPs and the bytes of the command's work; a collective has the bytes of its larger buffer, a copy between
  /// memories those that it moves.
  double flops = 0, bytes = 0;
  /// The members of a collective.
  int64_t members = 1;
  bool isUpdate = false;
  bool operator<(const CommandTotal &other) const {
    return std::tie(family, flops, bytes, members, isUpdate) <
           std::tie(other.family, other.flops, other.bytes, other.members, other.isUpdate);
  }
};

/// A part of a step: all runs of a function.
struct StepWindow {
  /// The name: "forward", "backward", "last backward" (which reduces gradients too) or "update".
  std::string name;
  /// The seconds by which these runs move the end of the step.
  double seconds = 0;
  /// The seconds for which each stream runs commands: "compute", and those of collectives, such as "over data x batch".
  std::map<std::string, double> busySeconds;
};

struct StepPrediction {
  double seconds = 0;
  /// The sum of the costs' error bars, and the sum of the costs that have none.
  double errorSeconds = 0, uncalibratedSeconds = 0;
  /// The seconds of all commands of a step, by the source of their costs and by family (for collectives, by kind).
  std::map<CostSource, double> bySource;
  std::map<std::string, double> byFamily;
  /// How often a step runs each kind of command.
  std::map<CommandTotal, double> commands;
  /// The windows in the order in which they begin.
  std::vector<StepWindow> windows;
  /// Returns the stream that is busy for longest, and for how many seconds.
  std::pair<std::string, double> getBusiestStream() const;
};

/// Simulates the action table of a module at L5 for one rank; all ranks run the same (EventSimulation.h). A stream runs
/// its commands in order, once the host has issued them, and waits for events; where ranks share cores with their
/// communication, no two commands run at a time. Equal micro-batches are simulated until they repeat. `visit`, where
/// given, sees every command that is simulated. Where the table is malformed, or the cluster does not state how fast
/// the host or link is that runs a command, an error is reported and the prediction is empty.
StepPrediction predictStep(mlir::ModuleOp module, const CostModel &costs,
                           const std::function<void(const SimulatedCommand &)> &visit = {});

} // namespace windlass

#endif
