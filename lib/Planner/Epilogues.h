// Which operators may become a part of a product.
#ifndef WINDLASS_LIB_PLANNER_EPILOGUES_H
#define WINDLASS_LIB_PLANNER_EPILOGUES_H

#include "mlir/IR/Operation.h"

namespace windlass::planner {

/// Whether the operator may be an epilogue of a product: a sum with it; GELU of such a sum, in 16 bits, or a sum with
/// that; in 16 bits, the gradient of GELU of a result whose gradient is the product; the sum over the rows of an
/// operand of a product, the gradient of a bias. `sched::fuseEpilogues` says which are.
bool mayBeEpilogue(mlir::Operation *op);

} // namespace windlass::planner

#endif
