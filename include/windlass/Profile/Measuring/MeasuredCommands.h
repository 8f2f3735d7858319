// The commands of scheduled plans, each key once, as a program that measures them.
#ifndef WINDLASS_PROFILE_MEASURING_MEASUREDCOMMANDS_H
#define WINDLASS_PROFILE_MEASURING_MEASUREDCOMMANDS_H

#include "windlass/Profile/Kernels/CommandKeys.h"
#include "windlass/Profile/Profile.h"
#include "windlass/Target/Cpp/MeasuringProject.h"

#include "mlir/IR/OwningOpRef.h"

#include <set>
#include <vector>

namespace windlass {

class MeasuredCommands {
public:
  /// Starts without commands. `add` leaves out commands whose keys `profile` has; collectives are measured only where
  /// `profile` has none.
  MeasuredCommands(mlir::MLIRContext &context, const Profile &profile);

  /// Adds the commands on compute streams of `schedule`, a program at L5, whose keys are new, but for those of `@init`
  /// and `@evaluate`.
  void add(sched::ProgramOp schedule);
  /// Adds the fused commands with which a device's library may replace several commands of `schedule`.
  void addFused(sched::ProgramOp schedule);

  /// Returns the keys in the order in which their commands were added.
  const std::vector<CommandKey> &getKeys() const { return keys; }
  /// Makes the program that measures the commands on the ranks of the cluster's one host; with `writesProfile` the
  /// program writes a profile. Converts the module, so that it can be called only once.
  llvm::FailureOr<cpp::ProjectFiles> makeProject(const Cluster &cluster, bool writesProfile);

private:
  void addCommand(mlir::Operation *command, const CommandKey &key, bool isLater);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  sched::ProgramOp program;
  /// The stream that all commands run on.
  sched::StreamOp compute;
  std::vector<CommandKey> keys;
  std::vector<cpp::MeasuredCommand> commands;
  std::set<std::string> known;
  bool measuresCollectives;
  std::string precision = "f32";
  int64_t largestBytes = 0;
};

} // namespace windlass

#endif
