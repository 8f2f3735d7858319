// windlass-opt --emit-schedule: the C++ project of a program that is written at level L5.
#ifndef WINDLASS_TOOLS_WINDLASS_OPT_EMITSCHEDULE_H
#define WINDLASS_TOOLS_WINDLASS_OPT_EMITSCHEDULE_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace windlass {

/// Verifies the module of level L5 in a file and writes its project, as `windlass emit` writes that of a plan, into
/// `folder`. `words` are `--backend cpu|cuda`, `--memory-limit BYTES` and `--host-memory-limit BYTES`. The project has
/// the module beside its sources and no values of parameters. Returns the exit code; errors go to standard error.
int emitSchedule(llvm::StringRef file, llvm::StringRef folder, const std::vector<std::string> &words);

} // namespace windlass

#endif
