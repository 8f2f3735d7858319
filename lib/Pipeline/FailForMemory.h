// What is said when nothing fits into the memory of a device, and what would.
#ifndef WINDLASS_LIB_PIPELINE_FAILFORMEMORY_H
#define WINDLASS_LIB_PIPELINE_FAILFORMEMORY_H

#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/PlanChoice.h"

namespace windlass {

/// Reports by how much the plan of `least` exceeds the memory of a device and what would fit; always fails.
/// `unplanned` is at L2 and stays as it is.
mlir::LogicalResult failForMemory(mlir::ModuleOp unplanned, const PlanChoice &choice, const Schedule &least);

} // namespace windlass

#endif
