// What a program's device memory holds over a step, as pages of its runs show it.
#ifndef WINDLASS_TARGET_CPP_MEMORYFILE_H
#define WINDLASS_TARGET_CPP_MEMORYFILE_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace windlass::cpp {

/// Returns the text of memory.json for a module of level L5 or L6: by position, the number of commands of a step, the
/// functions with the numbers of their first commands, and for each content of the device arena its bytes wherever they
/// change, as pairs of a command and the bytes from there on.
std::string writeMemoryCourses(mlir::ModuleOp module);

} // namespace windlass::cpp

#endif
