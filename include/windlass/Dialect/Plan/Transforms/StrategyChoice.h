// What is fixed of a plan before splits follow the operators from there.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_STRATEGYCHOICE_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_STRATEGYCHOICE_H

#include "windlass/Dialect/Plan/Transforms/Propagation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/Support/Error.h"

#include <map>

namespace windlass::plan {

/// The mesh of named strategies and of the search: an axis of replicas, "data", one for parts of the batch, "batch",
/// and one for the model, "model", in this order, each where it has more than one member.
MeshAttr makeMesh(mlir::MLIRContext *context, int64_t replicas, int64_t batchParts, int64_t modelRanks);

/// Which copies of each weight the ranks that work on parts of the data share out among themselves; the master with the
/// optimizer's state.
struct SharedCopies {
  bool compute = false, gradient = false, master = false;
};

/// Where the three copies of a parameter lie, each with its memory kind. Axes of the data over which `gradient` is
/// unreduced are those over which it is summed once a step; over the others it is summed in each micro-batch.
struct ParameterLayouts {
  LayoutAttr compute, gradient, master;
};

/// Finds the operators of `function` that ranks of the model split over `axes`, and how. What is pinned stays as it is.
using ModelSplitter = llvm::DenseMap<mlir::Operation *, Splits> (*)(mlir::func::FuncOp function,
                                                                    llvm::ArrayRef<mlir::StringAttr> axes,
                                                                    MeshAttr mesh, const Pins &pins);

struct StrategyChoice {
  MeshAttr mesh;
  /// The copies of parameters, by symbol; those of the others follow from `sharedCopies` and the pins.
  llvm::DenseMap<mlir::StringAttr, ParameterLayouts> parameters;
  SharedCopies sharedCopies;
  /// How operators are split among the model's ranks; null: what is not pinned is not split so.
  ModelSplitter splitModel = nullptr;
  Pins pins;
  /// The layouts in which operators find weights, by symbol; those that are not here follow from their operators.
  llvm::DenseMap<mlir::StringAttr, LayoutAttr> reads;
};

/// The layout of a weight's copy that ranks share out over the axes of the data, where `layout` is what they hold each:
/// these axes on the first factor that they divide; as many neighbours among them as any factor takes, none where none
/// does.
LayoutAttr shareOut(LayoutAttr layout, MeshAttr mesh);

/// The same of a gradient or a master copy, which may be flat: where no factor takes all of their axes, all of them cut
/// what the ranks hold each in ranges, if there is an element for each member.
LayoutAttr shareOutFlat(LayoutAttr layout, MeshAttr mesh);

/// The copies of a weight that operators find in `read`.
ParameterLayouts layOutCopies(LayoutAttr read, SharedCopies sharedCopies, MeshAttr mesh);

/// The copies that `choice` gives a weight that operators find in `read`.
ParameterLayouts getCopies(const StrategyChoice &choice, mlir::StringAttr symbol, LayoutAttr read, MeshAttr mesh);

/// How operators find a weight whose compute copy lies in `layout`: as that, but whole over the axes on which ranks
/// work on parts of the data.
LayoutAttr gatherShares(LayoutAttr layout, MeshAttr mesh);

/// Returns the layout of an argument of `function`. Dim 0 of an input of the graph is the batch, which is split on the
/// batch axes; every other dim is whole.
LayoutAttr getArgumentLayout(mlir::func::FuncOp function, mlir::BlockArgument argument, MeshAttr mesh);

/// Micro-batches of a step, over all ranks.
int64_t getMicroBatches(mlir::ModuleOp module);

/// L2 to L3: what `plan-apply-strategy` does. Fails at what a pin contradicts.
mlir::LogicalResult applyStrategy(mlir::ModuleOp module, const StrategyChoice &choice, int64_t bucketBytes);

} // namespace windlass::plan

#endif
