// Which operator of the model each command of a step is of, as timelines show it.
#ifndef WINDLASS_TARGET_CPP_OPERATORNAMES_H
#define WINDLASS_TARGET_CPP_OPERATORNAMES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include <string>

namespace windlass::cpp {

/// The operator that a command is of, in UTF-8, cut where it is long; empty where it is of none.
std::string getShownOperator(mlir::Operation *command);

/// The text of operators.json for a module of level L5 or L6: names, and a place among them for each command of a
/// stream of a function of the step. Names of a model may hold anything, so no program is compiled with them.
std::string writeOperatorNames(sched::ProgramOp program);

} // namespace windlass::cpp

#endif
