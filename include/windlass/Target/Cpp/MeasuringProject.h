// The files of a program that measures commands (windlass/rt/measure.h).
#ifndef WINDLASS_TARGET_CPP_MEASURINGPROJECT_H
#define WINDLASS_TARGET_CPP_MEASURINGPROJECT_H

#include "windlass/Target/Cpp/Project.h"

#include <vector>

namespace windlass::cpp {

struct MeasuredCommand {
  struct Operand {
    mlir::Type type;
    int64_t elements, limit;
    bool isRead;
  };
  bool adds = false;
  /// The operands in the order of the columns of the command's function.
  std::vector<Operand> operands;
  /// The key and the family as a profile has them.
  std::string key, family;
  double flops = 0, bytes = 0;
  bool isNarrow = false;
  /// Whether the device's library of attentions may run the command.
  bool isAttention = false;
};

struct MeasuringOptions {
  int64_t ranks = 1;
  bool measuresCollectives = true;
  int64_t arenaBytes = 0, scratchBytes = 0;
  std::string precision = "f32", backend = "cpu";
  /// The cluster as JSON, for which the program writes a profile; empty: the program writes what `windlass profile`
  /// reads.
  std::string cluster;
};

/// Makes all text files of the project; `convertCommandsToEmitC` has run on the module. The program is the CMake target
/// `measure`.
llvm::FailureOr<ProjectFiles> makeMeasuringProject(mlir::ModuleOp module, llvm::ArrayRef<MeasuredCommand> commands,
                                                   const MeasuringOptions &options);

} // namespace windlass::cpp

#endif
