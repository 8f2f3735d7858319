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
  /// Commands whose keys the profile has already are left out, and where it has any, collectives too.
  MeasuredCommands(mlir::MLIRContext &context, const Profile &profile);

  /// Adds the commands of a module at L5 whose keys are not there yet; those of a step, not of `@init` and `@evaluate`.
  void add(sched::ProgramOp schedule);
  /// Adds what a device's library may compute in place of several of its commands.
  void addFused(sched::ProgramOp schedule);

  /// In the order of their addition.
  const std::vector<CommandKey> &getKeys() const { return keys; }
  /// The program that measures them on the ranks of the cluster's one host; with `writesProfile` its results are a
  /// profile. Only once.
  llvm::FailureOr<cpp::ProjectFiles> makeProject(const Cluster &cluster, bool writesProfile);

private:
  void addCommand(mlir::Operation *command, const CommandKey &key, bool isLater);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  sched::ProgramOp program;
  /// What all commands run on.
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
