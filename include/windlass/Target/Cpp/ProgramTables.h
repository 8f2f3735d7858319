// The constant tables by which an emitted program describes itself to the runtime (windlass/rt/program.h).
#ifndef WINDLASS_TARGET_CPP_PROGRAMTABLES_H
#define WINDLASS_TARGET_CPP_PROGRAMTABLES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Target/Cpp/Project.h"

#include <string>

namespace windlass::cpp {

/// Returns a C++ string literal of any bytes.
std::string quoted(llvm::StringRef text);

/// Returns the text of `tables.cpp` for a module of level L5. Fails with a diagnostic where the module lacks a part.
llvm::FailureOr<std::string> writeProgramTables(mlir::ModuleOp module, const ProjectOptions &options);

} // namespace windlass::cpp

#endif
