// The border between the forward and the backward part of @microbatch.
#ifndef WINDLASS_LIB_AUTODIFF_STASH_H
#define WINDLASS_LIB_AUTODIFF_STASH_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"

namespace windlass::train {

/// Makes the operators from `backward` on use earlier values of the block only through `train.stash` operators, which
/// are inserted before `backward`; arguments stay as they are. Constants, reads and views are recomputed where the
/// backward part first needs them.
void insertStash(mlir::Block &block, mlir::Operation *backward);

} // namespace windlass::train

#endif
