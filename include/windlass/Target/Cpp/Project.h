// The files of an emitted project.
#ifndef WINDLASS_TARGET_CPP_PROJECT_H
#define WINDLASS_TARGET_CPP_PROJECT_H

#include "windlass/Profile/Profile.h"

#include "windlass/rt/program.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>
#include <string>

namespace windlass::cpp {

/// The texts by relative path. An ordered map: the same project is written in the same order everywhere.
using ProjectFiles = std::map<std::string, std::string>;

struct ProjectOptions {
  std::string planJson;
  std::string planHash;        ///< identifies the plan in checkpoints
  std::string backend = "cpu"; ///< the one that the project builds for unless told otherwise
  int64_t ranks = 1;           ///< those of all positions
  /// What a rank takes besides its arenas, where the user gave it.
  std::optional<int64_t> reserveBytes;
  rt::emulated_rates emulated;
  int64_t scratchBytes = 0; ///< the planned scratch of a compute stream, per thread: the most of any position
  /// How products are computed fastest; null where nobody has measured it.
  const ProductChoices *products = nullptr;
  /// Attentions that the device's library computes.
  std::vector<rt::attention_choice> attentions;
};

/// Makes all text files of the project for a module of level L6 (`convertSchedToEmitC` has run): step program, tables,
/// fused functions, main, runtime, CMakeLists.txt, README.md, plan.json, operators.json, memory.json, run.sh,
/// Slurm script.
llvm::FailureOr<ProjectFiles> makeProject(mlir::ModuleOp module, const ProjectOptions &options);

/// Adds the runtime, in runtime/, which all projects have.
void addRuntime(ProjectFiles &files);

/// Writes the files below `folder`, which must be new, empty or an earlier emitted project. Files whose text has not
/// changed keep their time stamp. Returns a one-line error, or nothing.
std::string writeProject(const ProjectFiles &files, llvm::StringRef folder);

} // namespace windlass::cpp

#endif
