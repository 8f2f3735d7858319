// The operator of the model that each command of a step belongs to, as timelines show it.
#ifndef WINDLASS_TARGET_CPP_OPERATORNAMES_H
#define WINDLASS_TARGET_CPP_OPERATORNAMES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include <string>

namespace windlass::cpp {

/// Returns the operator that a command belongs to, in UTF-8, cut where it is long; empty where it belongs to none.
std::string getShownOperator(mlir::Operation *command);

/// Returns the text of operators.json for a module of level L5 or L6: names, and by position and chunk, for each
/// function of a step, a place among them for each command of each stream. Names of a model may hold anything, so no
/// program is compiled with them.
std::string writeOperatorNames(mlir::ModuleOp module);

} // namespace windlass::cpp

#endif
