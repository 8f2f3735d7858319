// What is fixed of a plan before splits follow the operators from there.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_STRATEGYCHOICE_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_STRATEGYCHOICE_H

#include "windlass/Dialect/Plan/Transforms/Pins.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/Support/Error.h"

#include <map>

namespace windlass::plan {

/// Axes of the mesh, in this order; each is there where it has more than one member.
constexpr char kDataAxis[] = "data", kBatchAxis[] = "batch", kModelAxis[] = "model";

struct StrategyChoice {
  /// Members of the axes.
  int64_t groups = 1, batchParts = 1, modelRanks = 1;
  /// What the ranks of the first two axes share out among themselves: nothing, optimizer state, gradients too, weights
  /// too. `zeroLevels` has those of parameters, by symbol, that differ.
  int zeroLevel = 0;
  llvm::DenseMap<mlir::StringAttr, int> zeroLevels;
  /// Whether matmuls are split among the model's ranks as `megatron` does; else what is not pinned is not split so.
  bool splitsMatmuls = false;
  Pins pins;
  /// The layouts in which operators find weights, by symbol; those that are not here follow from their operators.
  llvm::DenseMap<mlir::StringAttr, LayoutAttr> reads;
};

/// The layout of a weight's copy that the ranks of the first two axes share out, where `layout` is what they hold each:
/// their axes on the first factor that they divide; as many of them as any factor takes, none where none does.
LayoutAttr shareOut(LayoutAttr layout, MeshAttr mesh);

/// The same of a gradient or a master copy, which may be flat: where no factor takes all of their axes, all of them cut
/// what the ranks hold each in ranges, if there is an element for each member.
LayoutAttr shareOutFlat(LayoutAttr layout, MeshAttr mesh);

/// How operators find a weight whose compute copy lies in `layout`: as that, but whole over the axes on which ranks
/// work on parts of the data.
LayoutAttr gatherShares(LayoutAttr layout);

/// Of an argument of a function: dim 0 of an input of the graph, its batch, is split on the axis of the batch's parts
/// where the mesh has it; all else is whole.
LayoutAttr getArgumentLayout(mlir::func::FuncOp function, mlir::BlockArgument argument, MeshAttr mesh);

/// Micro-batches of a step, over all ranks.
int64_t getMicroBatches(mlir::ModuleOp module);

/// Sets the module's mesh as a choice says; without axes of one member.
MeshAttr setMesh(mlir::ModuleOp module, const StrategyChoice &choice);

/// L2 to L3: what `plan-apply-strategy` does. Fails at what a pin contradicts.
mlir::LogicalResult applyStrategy(mlir::ModuleOp module, const StrategyChoice &choice, int64_t bucketBytes);

} // namespace windlass::plan

#endif
