// The `plan` dialect in C++, and the names of its attributes.
#ifndef WINDLASS_DIALECT_PLAN_IR_PLANOPS_H
#define WINDLASS_DIALECT_PLAN_IR_PLANOPS_H

#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "windlass/Dialect/Plan/IR/PlanEnums.h.inc"

#include "windlass/Dialect/Plan/IR/PlanDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "windlass/Dialect/Plan/IR/PlanAttributes.h.inc"

#define GET_OP_CLASSES
#include "windlass/Dialect/Plan/IR/PlanOps.h.inc"

namespace windlass::plan {

/// On the module: a MeshAttr.
constexpr char kMeshAttr[] = "plan.mesh";
/// On the module: an IntegerAttr (i64), the bytes of gradients per bucket.
constexpr char kBucketBytesAttr[] = "plan.bucket_bytes";
/// The bucket size where nothing else is given, that of PyTorch's DistributedDataParallel, and the sizes between which
/// the search chooses, in bytes.
constexpr int64_t kBucketBytes = 25 << 20, kLeastBucketBytes = 1 << 20, kMostBucketBytes = int64_t(512) << 20;
/// On the module: an IntegerAttr (i64), the bytes of weights that may be gathered ahead of their use, summed over all
/// that are in flight.
constexpr char kPrefetchBytesAttr[] = "plan.prefetch_bytes";
/// On the module: an IntegerAttr (i64), the most bytes of whole weights that one command gathers together, and of
/// gradients that one command scatters.
constexpr char kUnitBytesAttr[] = "plan.unit_bytes";
/// On the module: a UnitAttr, where weights that are gathered for the forward pass of a micro-batch are kept for its
/// backward pass; without it they are gathered again.
constexpr char kKeepsGathersAttr[] = "plan.keeps_gathers";
/// On the module: a PipelineAttr; without it one position runs all of the model.
constexpr char kPipelineAttr[] = "plan.pipeline";
/// On an op, between `plan-to-sched` and `sched-cut-chunks`: an IntegerAttr (i64), its chunk.
constexpr char kChunkAttr[] = "plan.chunk";
/// On the ops of a pipeline that together replace an operator of the model: a StringAttr, the `train.id` of the
/// operator that they replace.
constexpr char kSplitOfAttr[] = "plan.split_of";
/// On an op: a StrategyAttr.
constexpr char kStrategyAttr[] = "plan.strategy";
/// On an op: an ArrayAttr of LayoutAttr, one per result.
constexpr char kLayoutsAttr[] = "plan.layouts";
/// On a function's argument or result: a LayoutAttr. On `train.parameter`: the layout of the compute copy.
constexpr char kLayoutAttr[] = "plan.layout";
/// On `train.parameter`: the layouts of the accumulated gradient, and of the master copy with its optimizer state.
constexpr char kGradientLayoutAttr[] = "plan.gradient_layout";
constexpr char kMasterLayoutAttr[] = "plan.master_layout";
/// On a `train.parameter` that is trained: a MemoryKindAttr, the memory that holds its master copy and optimizer state
/// from step to step; without it the device's. The host updates what it, or its disk, holds.
constexpr char kStateMemoryAttr[] = "plan.state_memory";
/// The unit attribute of a parameter whose state is not in the device's memory, but is copied there for its update, and
/// back.
constexpr char kUpdatesOnDeviceAttr[] = "plan.updates_on_device";
/// The unit attribute of a parameter, until a plan is chosen, of which the search decides where each copy is.
constexpr char kMayOffloadAttr[] = "plan.may_offload";
/// On the same: a MemoryKindAttr, the memory that holds its accumulated gradient; without it the device's. Before a
/// plan is made, it is a wish, which holds where no rank has a partial sum.
constexpr char kGradientMemoryAttr[] = "plan.gradient_memory";
/// On a `train.parameter` with the role of a weight: a MemoryKindAttr, the memory that holds what operators read of it,
/// from where each pass copies it to the device; without it the device's. Before a plan is made, it is a wish, which
/// holds where ranks keep just what they update.
constexpr char kComputeMemoryAttr[] = "plan.compute_memory";
/// On an op: a RepeatAttr.
constexpr char kRepeatAttr[] = "plan.repeat";
/// On an op: a SegmentAttr.
constexpr char kSegmentAttr[] = "plan.segment";

} // namespace windlass::plan

#endif
