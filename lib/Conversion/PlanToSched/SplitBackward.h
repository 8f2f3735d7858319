// A backward in two parts: the one that other chunks wait for, and the gradients of weights.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_SPLITBACKWARD_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_SPLITBACKWARD_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace windlass::sched {

/// Moves all operators of a chunk's backward whose results lead to the gradient of one weight only, and all sums of
/// gradients, to the function `weightGradient`, which is empty. The resources of the program are declared. What leads
/// to several gradients is part of the chain from layer to layer and stays, also in a first chunk, whose chain nobody
/// else waits for. The backward then returns the values of its own that the other function reads; that one takes the
/// backward's arguments and these.
void splitBackward(mlir::func::FuncOp backward, mlir::func::FuncOp weightGradient);

} // namespace windlass::sched

#endif
