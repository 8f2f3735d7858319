// The layouts that an operator reads and makes under its strategy: the rules that all passes of level L3 share.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_LAYOUTINFERENCE_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_LAYOUTINFERENCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include <optional>

namespace windlass::plan {

/// A digit of the mixed-radix number that indexes a dimension, major to minor. A digit with an axis has the size of the
/// axis and equals the rank's coordinate on it; a digit without an axis is local.
struct Digit {
  int64_t size;
  mlir::StringAttr axis;
  bool operator==(const Digit &other) const { return size == other.size && axis == other.axis; }
};
using Digits = llvm::SmallVector<Digit, 4>;

/// Returns the normal form of a dimension's layout: no digits of size 1, no two local digits side by side. Two
/// dimensions have their elements in the same places exactly when their digits are equal. Returns none when an axis is
/// unknown or does not divide its factor.
std::optional<Digits> getDigits(DimLayoutAttr dim, MeshAttr mesh);

/// Returns the layout's flat axes, without axes of one member.
llvm::SmallVector<mlir::StringAttr> getFlatAxes(LayoutAttr layout, MeshAttr mesh);

/// Returns the memory that holds the master copy and the optimizer's state of a weight.
MemoryKind getStateMemory(train::ParameterOp weight);

/// Returns the memory in which a weight is updated: the device's where its state is there, or comes there for it, else
/// the host's.
MemoryKind getUpdateMemory(train::ParameterOp weight);

/// Returns the layout of an optimizer state. A state of the weight's type has the layout of the weight's master copy,
/// `master`; a state of another type is small, and whole on every rank.
LayoutAttr getStateLayout(train::ParameterOp state, train::ParameterOp weight, LayoutAttr master);

/// Gives every optimizer state of the module its layout. The weights have theirs.
void setStateLayouts(mlir::ModuleOp module);

/// Returns the memory in which a weight's accumulated gradient is.
MemoryKind getGradientMemory(train::ParameterOp weight);

/// Returns the memory in which the copy of a weight is that operators read.
MemoryKind getComputeMemory(train::ParameterOp weight);

/// Returns the layout of a parameter's copy with the memory that it is in; null where it has no such copy. `attribute`
/// is that of the layout, such as `kMasterLayoutAttr`.
LayoutAttr getCopyLayout(train::ParameterOp parameter, llvm::StringRef attribute);

/// Returns whether ranks accumulate a gradient just as its update reads it, in the layout of the master copy and
/// without partial sums: `gradient` and `master` are the layouts of these copies.
bool isReadAsAccumulated(LayoutAttr gradient, LayoutAttr master, MeshAttr mesh);

/// Whether each rank holds the same elements, in the same order, unreduced over the same axes, under both layouts.
bool haveSameParts(LayoutAttr a, LayoutAttr b, MeshAttr mesh);

/// Returns the layout with unreduced axes added (kept in the order of the mesh), or without any.
LayoutAttr addUnreduced(LayoutAttr layout, llvm::ArrayRef<UnreducedAttr> added, MeshAttr mesh);
LayoutAttr dropUnreduced(LayoutAttr layout);

/// Whether a layout splits something over the axis, or is unreduced over it.
bool usesAxis(LayoutAttr layout, mlir::StringAttr axis);
/// Whether a layout uses one of the data axes of `mesh`.
bool usesDataAxes(LayoutAttr layout, MeshAttr mesh);

/// Returns the layout over all ranks of a result that `@microbatch` leaves in `layout`: unreduced over the replica axes
/// of the module's mesh, if it has any.
LayoutAttr addReplicaSum(LayoutAttr layout, mlir::ModuleOp module);

/// The split of a factor: the axes on each of its `blocks` equal blocks.
struct FactorSplit {
  llvm::SmallVector<mlir::StringAttr, 1> axes;
  int64_t blocks = 1;
};

/// Returns the splits per factor of one dimension that put its elements in the same places as `dim` does, or none where
/// these factors cannot express it. `sizes` are the factors' sizes, major to minor, whose product is the dimension's
/// size.
std::optional<llvm::SmallVector<FactorSplit>> mapAxes(DimLayoutAttr dim, llvm::ArrayRef<int64_t> sizes, MeshAttr mesh);

struct OpLayouts {
  llvm::SmallVector<LayoutAttr, 4> operands;
  llvm::SmallVector<LayoutAttr, 2> results;
};

/// Returns the layouts in which an op of a planned function takes its operands and leaves its results. `available` has
/// the layouts in which the operands exist: an operand keeps an unreduced axis where the op allows it. For
/// `func.return` they are the function's result layouts, for reads and writes of parameters the layouts of the
/// parameter (the master copy in `@update`), which is looked up in the module's `symbols`; without `symbols` each
/// look-up searches the whole module. Fails with a diagnostic at the op.
mlir::FailureOr<OpLayouts> inferLayouts(mlir::Operation *op, llvm::ArrayRef<LayoutAttr> available, MeshAttr mesh,
                                        const mlir::SymbolTable *symbols = nullptr);

/// Returns the same for a compute op under a strategy that it does not carry yet.
mlir::FailureOr<OpLayouts> inferLayouts(mlir::Operation *op, const train::OpFactors &factors, StrategyAttr strategy,
                                        llvm::ArrayRef<LayoutAttr> available, MeshAttr mesh);

/// Returns the split that an op's strategy gives the factor that the op reduces inside; null where it does not split
/// that factor.
FactorAxesAttr getInnerSplit(mlir::Operation *op);

/// Returns a strategy that splits nothing.
StrategyAttr getWholeStrategy(mlir::MLIRContext *context);

/// Returns the functions that a plan covers: `@init`, `@microbatch`, `@update`, `@evaluate`, in this order, where they
/// exist.
llvm::SmallVector<mlir::func::FuncOp> getPlannedFunctions(mlir::ModuleOp module);

/// Returns the layout that an attribute of an argument or op gives a value; null where there is none (yet).
LayoutAttr getLayout(mlir::Value value);
/// Returns the layouts of an operator's operands.
llvm::SmallVector<LayoutAttr> getOperandLayouts(mlir::Operation *op);
/// Sets the layouts of an operator's results.
void setLayouts(mlir::Operation *op, llvm::ArrayRef<LayoutAttr> layouts);

} // namespace windlass::plan

#endif
