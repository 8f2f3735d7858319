// Files that all emitted projects have.
#ifndef WINDLASS_LIB_TARGET_CPP_PROJECTPARTS_H
#define WINDLASS_LIB_TARGET_CPP_PROJECTPARTS_H

#include "windlass/Target/Cpp/Project.h"

namespace windlass::cpp {

/// Adds each `emitc.file` of the module, in src/.
llvm::LogicalResult addSources(mlir::ModuleOp module, ProjectFiles &files);
/// Returns the CMakeLists.txt of a program that is made of these files, one of which has kernels.
std::string cmakeText(llvm::StringRef target, llvm::StringRef hostSources, llvm::StringRef kernelSource,
                      llvm::StringRef backend, bool usesAttentionLibrary);
/// Returns run.sh, which starts the program on its ranks.
std::string runScript(int64_t ranks, llvm::StringRef target);

} // namespace windlass::cpp

#endif
