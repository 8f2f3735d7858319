// windlass-opt --simulate-schedule: how long a step of a job takes that is written at level L5.
#ifndef WINDLASS_TOOLS_WINDLASS_OPT_SIMULATESCHEDULE_H
#define WINDLASS_TOOLS_WINDLASS_OPT_SIMULATESCHEDULE_H

#include "llvm/ADT/StringRef.h"

namespace windlass {

/// Verifies the module of level L5 in a file, of one position or several, and prints how long its step takes on a
/// cluster (a preset or a file), where that goes, and for how long each position is idle, as lines or as JSON. Returns
/// the exit code; errors go to standard error.
int simulateSchedule(llvm::StringRef file, llvm::StringRef cluster, bool asJson);

} // namespace windlass

#endif
