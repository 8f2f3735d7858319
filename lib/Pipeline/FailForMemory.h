// The error for a model that fits into the memory of a device under no plan.
#ifndef WINDLASS_LIB_PIPELINE_FAILFORMEMORY_H
#define WINDLASS_LIB_PIPELINE_FAILFORMEMORY_H

#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/PlanChoice.h"

namespace windlass {

/// Reports by how much `least`, the schedule that needs least memory, exceeds the memory of a device, and what would
/// fit; always fails. `unplanned` is at L2 and stays as it is.
mlir::LogicalResult failForMemory(mlir::ModuleOp unplanned, const PlanChoice &choice, const Schedule &least);

} // namespace windlass

#endif
