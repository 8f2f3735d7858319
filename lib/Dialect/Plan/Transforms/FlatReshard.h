// Reshards from and to layouts whose parts are ranges of the flattened local slice.
#ifndef WINDLASS_LIB_DIALECT_PLAN_TRANSFORMS_FLATRESHARD_H
#define WINDLASS_LIB_DIALECT_PLAN_TRANSFORMS_FLATRESHARD_H

#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"

namespace windlass::plan {

/// Plans a reshard as `planReshard` does, where one of the layouts is flat over axes of more than one member.
llvm::Expected<ReshardPlan> planFlatReshard(llvm::ArrayRef<int64_t> shape, LayoutAttr from, LayoutAttr to,
                                            MeshAttr mesh);

} // namespace windlass::plan

#endif
