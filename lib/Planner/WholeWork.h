// The work of an operator that nothing splits.
#ifndef WINDLASS_LIB_PLANNER_WHOLEWORK_H
#define WINDLASS_LIB_PLANNER_WHOLEWORK_H

#include "windlass/Profile/CostModel.h"

#include "mlir/IR/Operation.h"

namespace windlass::planner {

/// Returns the work of a compute operator (`TrainOpInterface`) on whole values, as the command that it becomes.
OperatorWork getWholeWork(mlir::Operation *op);

} // namespace windlass::planner

#endif
