// The `sched` dialect in C++, and the names of its functions and attributes.
#ifndef WINDLASS_DIALECT_SCHED_IR_SCHEDOPS_H
#define WINDLASS_DIALECT_SCHED_IR_SCHEDOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Sched/IR/Kernels.h"
#include "windlass/Schedule/ActionTable.h"

#include "windlass/Dialect/Sched/IR/SchedEnums.h.inc"

#include "windlass/Dialect/Sched/IR/SchedDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "windlass/Dialect/Sched/IR/SchedAttributes.h.inc"

#define GET_OP_CLASSES
#include "windlass/Dialect/Sched/IR/SchedOps.h.inc"

namespace windlass::sched {

/// The setting of the kernel `constant`, a DenseElementsAttr.
constexpr char kConstantValue[] = "value";

/// Module: PlacementAttr, the position of each chunk; without it one position runs one chunk.
constexpr char kPlacementAttr[] = "sched.placement";

/// The names of the arenas in the memory of the device, in that of the host, and on its disk.
constexpr char kDeviceArena[] = "device_arena";
constexpr char kHostArena[] = "host_arena";
constexpr char kDiskArena[] = "disk_arena";

/// Function: UnitAttr on the scalar functions that sched.map and sched.launch_map name.
constexpr char kScalarFunctionAttr[] = "sched.scalar_function";

/// Command of a backward at L5: UnitAttr. It belongs to the reduction of a bucket and runs in a step's last backward
/// only.
constexpr char kInLastAttr[] = "sched.in_last";

/// Buffer: IntegerAttr (i64) that tells which values share memory on purpose: all buffers of one number belong to one
/// value at a time, written in place or in parts. A byte that is read under another number than it was last written
/// under has been overwritten.
constexpr char kStorageAttr[] = "sched.storage";
/// Arena: IntegerAttr (i64), bytes of the largest set of values and resources in it that are live at one time.
constexpr char kLargestLiveSetAttr[] = "sched.largest_live_set";
/// Arena: DictionaryAttr about the time at which that set is live: `at`, the id of the operator that runs, and `live`,
/// the values that are live besides resources, in groups of equal operators of repeated blocks, the largest ones: `of`,
/// the operators' id, `count`, the number of values, and `bytes`.
constexpr char kPeakAttr[] = "sched.peak";
/// Arena: IntegerAttr (i64), bytes at its beginning that only resources and slots use.
constexpr char kPermanentBytesAttr[] = "sched.permanent_bytes";
/// Arena: IntegerAttr (i64), bytes of the values that the forward pass leaves for the backward pass.
constexpr char kStashBytesAttr[] = "sched.stash_bytes";

} // namespace windlass::sched

#endif
