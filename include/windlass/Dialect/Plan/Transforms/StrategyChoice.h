// The choices of a plan from which splits propagate through the operators.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_STRATEGYCHOICE_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_STRATEGYCHOICE_H

#include "windlass/Dialect/Plan/Transforms/Propagation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/Support/Error.h"

#include <map>

namespace windlass::plan {

/// Returns the mesh of named strategies and of the search: "data", an axis of `replicas` data-parallel replicas,
/// "batch", of `batchParts` parts of the graph's batch, and "model", of `modelRanks`, in this order; an axis of size 1
/// is left out.
MeshAttr makeMesh(mlir::MLIRContext *context, int64_t replicas, int64_t batchParts, int64_t modelRanks);

/// The copies of each weight that are sharded over the data axes (ZeRO); optimizer state is sharded as the master is.
struct ShardedCopies {
  bool compute = false, gradient = false, master = false;
};

/// The layouts of the three copies of a parameter, each with its memory kind. Over the data axes for which `gradient`
/// is unreduced, it is summed once a step; over the other data axes it is summed in each micro-batch.
struct ParameterLayouts {
  LayoutAttr compute, gradient, master;
};

/// Returns the operators of `function` that are split over the model axes `axes`, each with its splits. Pinned
/// operators stay as they are.
using ModelSplitter = llvm::DenseMap<mlir::Operation *, Splits> (*)(mlir::func::FuncOp function,
                                                                    llvm::ArrayRef<mlir::StringAttr> axes,
                                                                    MeshAttr mesh, const Pins &pins);

/// The memories of a weight's copies from step to step: of the master copy with the optimizer's state, of the
/// accumulated gradient, and of what operators read.
struct CopyMemories {
  MemoryKind state = MemoryKind::device, gradient = MemoryKind::device, compute = MemoryKind::device;
  /// Whether the state comes to the device for the update, from another memory.
  bool updatesOnDevice = false;

  bool isUpdatedOnHost() const { return state != MemoryKind::device && !updatesOnDevice; }

  bool operator==(const CopyMemories &other) const {
    return state == other.state && gradient == other.gradient && compute == other.compute &&
           updatesOnDevice == other.updatesOnDevice;
  }
};

/// Returns the memories in which the labels of a weight place its copies.
CopyMemories getCopyMemories(train::ParameterOp weight);

/// Whether a search decides something of these memories: all of them, of a weight marked `plan.may_offload`, or where
/// the update runs, of one whose state is not on the device.
bool choosesMemories(train::ParameterOp weight);

struct StrategyChoice {
  MeshAttr mesh;
  /// The copies of parameters, by symbol; for parameters without an entry they follow from `shardedCopies` and the
  /// pins.
  llvm::DenseMap<mlir::StringAttr, ParameterLayouts> parameters;
  /// The memories of the copies, by symbol, of parameters for which `choosesMemories`. Where there is no entry, all
  /// copies of those marked `plan.may_offload` are on the device, and others are updated where their state is.
  llvm::DenseMap<mlir::StringAttr, CopyMemories> memories;
  ShardedCopies shardedCopies;
  /// The function that splits operators over the model axes; null: only pins split operators over them.
  ModelSplitter splitModel = nullptr;
  Pins pins;
  /// The layouts in which operators find weights, by symbol; for weights without an entry they follow from their
  /// operators.
  llvm::DenseMap<mlir::StringAttr, LayoutAttr> reads;
};

/// Returns `layout` sharded over the data axes of `mesh`: over the run of neighbouring axes with the most members that
/// some factor can take, on the first factor that can. Axes that `layout` uses already are not added again; where no
/// factor takes an axis, `layout` is returned as it is.
LayoutAttr shardLayout(LayoutAttr layout, MeshAttr mesh);

/// Returns the same for a gradient or a master copy, which may be flat: where no factor takes all of the axes, all of
/// them cut each rank's local slice in ranges, if it has an element for each member.
LayoutAttr shardLayoutFlat(LayoutAttr layout, MeshAttr mesh);

/// Returns the layouts of the copies of a weight that operators find in layout `read`.
ParameterLayouts layOutCopies(LayoutAttr read, ShardedCopies shardedCopies, MeshAttr mesh);

/// Returns the layouts that `choice` gives the copies of parameter `symbol`, which operators find in layout `read`.
ParameterLayouts getCopies(const StrategyChoice &choice, mlir::StringAttr symbol, LayoutAttr read, MeshAttr mesh);

/// Returns the layout in which operators find a weight whose compute copy has `layout`: the same splits without the
/// data axes.
LayoutAttr gatherShards(LayoutAttr layout, MeshAttr mesh);

/// Returns the layout of an argument of `function`. Dim 0 of an input of the graph is the batch, which is split on the
/// batch axes; every other dim is whole.
LayoutAttr getArgumentLayout(mlir::func::FuncOp function, mlir::BlockArgument argument, MeshAttr mesh);

/// Returns the batch that all inputs of `function` have in common; 0 where it has none.
int64_t getBatch(mlir::func::FuncOp function);

/// Takes a module from L2 to L3 as `plan-apply-strategy` does. Fails at the operator or parameter that contradicts a
/// pin.
mlir::LogicalResult applyStrategy(mlir::ModuleOp module, const StrategyChoice &choice, int64_t bucketBytes);

} // namespace windlass::plan

#endif
