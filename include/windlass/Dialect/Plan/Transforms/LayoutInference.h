// Which layouts an operator reads and makes under its strategy: the rules that all passes of level L3 share.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_LAYOUTINFERENCE_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_LAYOUTINFERENCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include <optional>

namespace windlass::plan {

/// A digit of the mixed-radix number that indexes a dimension, major to minor. A digit with an axis has the axis' size
/// and equals the rank's coordinate on it; one without is local.
struct Digit {
  int64_t size;
  mlir::StringAttr axis;
  bool operator==(const Digit &other) const { return size == other.size && axis == other.axis; }
};
using Digits = llvm::SmallVector<Digit, 4>;

/// The normal form of a dimension's layout: no digits of size 1, no two local digits side by side. Two dimensions have
/// their elements in the same places exactly when their digits are equal. Nothing when an axis is unknown or does not
/// divide its factor.
std::optional<Digits> getDigits(DimLayoutAttr dim, MeshAttr mesh);

/// The layout's flat axes, without those of one member.
llvm::SmallVector<mlir::StringAttr> getFlatAxes(LayoutAttr layout, MeshAttr mesh);

/// Whether each rank holds the same elements, in the same order, unreduced over the same axes, under both layouts.
bool haveSameParts(LayoutAttr a, LayoutAttr b, MeshAttr mesh);

/// The layout with unreduced axes added (kept in the order of the mesh) or without any.
LayoutAttr addUnreduced(LayoutAttr layout, llvm::ArrayRef<UnreducedAttr> added, MeshAttr mesh);
LayoutAttr dropUnreduced(LayoutAttr layout);

/// Whether a layout splits something over the axis, or is unreduced over it.
bool usesAxis(LayoutAttr layout, mlir::StringAttr axis);

/// What `@microbatch` leaves in a layout as the ranks see it together: a sum over the module's groups, where it has
/// any.
LayoutAttr addGroupSum(LayoutAttr layout, mlir::ModuleOp module);

/// How a factor is split: axes on each of `blocks` equal blocks of it.
struct FactorSplit {
  llvm::SmallVector<mlir::StringAttr, 1> axes;
  int64_t blocks = 1;
};

/// Splits per factor of one dimension that put its elements where `dim` does, or nothing where these factors cannot say
/// it. `sizes` are the factors' sizes, major to minor, with the product of the dimension's size.
std::optional<llvm::SmallVector<FactorSplit>> mapAxes(DimLayoutAttr dim, llvm::ArrayRef<int64_t> sizes, MeshAttr mesh);

struct OpLayouts {
  llvm::SmallVector<LayoutAttr, 4> operands;
  llvm::SmallVector<LayoutAttr, 2> results;
};

/// The layouts in which an op of a planned function takes its operands and leaves its results. `available` has the
/// layouts in which the operands exist: an operand keeps an unreduced axis where the op allows it. For `func.return`
/// these are the function's result layouts, for reads and writes of parameters those of the parameter (the master copy
/// in `@update`), which is looked up in the module's `symbols`; without them in all of the module, each time. Fails
/// with a diagnostic at the op.
mlir::FailureOr<OpLayouts> inferLayouts(mlir::Operation *op, llvm::ArrayRef<LayoutAttr> available, MeshAttr mesh,
                                        const mlir::SymbolTable *symbols = nullptr);

/// The same, for a compute op under a strategy that it does not carry yet.
mlir::FailureOr<OpLayouts> inferLayouts(mlir::Operation *op, const train::OpFactors &factors, StrategyAttr strategy,
                                        llvm::ArrayRef<LayoutAttr> available, MeshAttr mesh);

/// How an op's strategy splits the factor that the op reduces inside; null where it does not.
FactorAxesAttr getInnerSplit(mlir::Operation *op);

/// A strategy that splits nothing.
StrategyAttr getWholeStrategy(mlir::MLIRContext *context);

/// The functions that a plan covers: `@init`, `@microbatch`, `@update`, `@evaluate`, in this order, where they exist.
llvm::SmallVector<mlir::func::FuncOp> getPlannedFunctions(mlir::ModuleOp module);

/// Layout that an attribute of an argument or op gives a value, null where there is none (yet).
LayoutAttr getLayout(mlir::Value value);
/// Those of an operator's operands.
llvm::SmallVector<LayoutAttr> getOperandLayouts(mlir::Operation *op);
/// Sets those of an operator's results.
void setLayouts(mlir::Operation *op, llvm::ArrayRef<LayoutAttr> layouts);

} // namespace windlass::plan

#endif
