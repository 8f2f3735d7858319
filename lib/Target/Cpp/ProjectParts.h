// Files that all emitted projects have.
#ifndef WINDLASS_LIB_TARGET_CPP_PROJECTPARTS_H
#define WINDLASS_LIB_TARGET_CPP_PROJECTPARTS_H

#include "windlass/Target/Cpp/Project.h"

namespace windlass::cpp {

/// Each `emitc.file` of the module, in src/.
llvm::LogicalResult addSources(mlir::ModuleOp module, ProjectFiles &files);
/// CMakeLists.txt of a program that is made of these files, of which one has kernels.
std::string cmakeText(llvm::StringRef target, llvm::StringRef hostSources, llvm::StringRef kernelSource,
                      llvm::StringRef backend, bool usesAttentionLibrary);
/// run.sh, which starts the program on its ranks.
std::string runScript(int64_t ranks, llvm::StringRef target);

} // namespace windlass::cpp

#endif
