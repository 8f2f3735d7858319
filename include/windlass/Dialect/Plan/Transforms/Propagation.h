// Spreads the splits of what a function reads over its operators.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_PROPAGATION_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_PROPAGATION_H

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Pins.h"

#include "mlir/IR/SymbolTable.h"

#include <map>

namespace windlass::plan {

/// Splits of an operator by index of the factor.
using Splits = std::map<unsigned, FactorSplit>;

/// Whether an op may split a factor so, besides `others`: the axes divide it and are free, and every result has the
/// factor or is left unreduced.
bool canSplit(const train::OpFactors &factors, unsigned index, const FactorSplit &split, const Splits &others,
              MeshAttr mesh);

/// Adds the splits with which a dim arrives (or is wanted), where its factors can say them; a split that is there
/// already gives way to one that has its axes and more. Returns whether all of the
/// dim's axes are among the splits then.
bool takeAxes(const train::OpFactors &factors, const train::DimFactors &dim, DimLayoutAttr layout, Splits &splits,
              MeshAttr mesh);

/// In how many equal parts a split, or a slice with others like it, takes a value apart; 1 for other ops. What makes
/// the value, such as a fused projection, may be split in as many blocks.
int64_t countParts(mlir::Operation *op);

StrategyAttr getStrategy(mlir::MLIRContext *context, const train::OpFactors &factors, const Splits &splits);

/// Layouts in which consumers find the parameters that they read, by symbol.
using ReadLayouts = llvm::DenseMap<mlir::StringAttr, LayoutAttr>;

class Propagation {
public:
  /// `seeds` are splits that operators have to begin with. Reads of parameters that `reads` does not have are whole.
  /// `pins` hold for strategies and for the layouts in which results are found.
  Propagation(mlir::func::FuncOp function, MeshAttr mesh, const ReadLayouts &reads,
              const llvm::DenseMap<mlir::Operation *, Splits> &seeds, const Pins &pins)
      : function(function), symbols(function->getParentOfType<mlir::ModuleOp>()), mesh(mesh),
        context(function.getContext()), reads(reads), seeds(seeds), pins(pins) {}

  /// Gives every op, or each of these (in their order in the block), a strategy and layouts.
  mlir::LogicalResult run();
  mlir::LogicalResult run(llvm::ArrayRef<mlir::Operation *> ops);

  /// Operators find the value in this layout, whatever its own.
  void setFound(mlir::Value value, LayoutAttr layout) { found[value] = layout; }

  /// The layout in which all consumers take a value; null where they differ, or take any. A stash wants what the
  /// backward pass does.
  mlir::FailureOr<LayoutAttr> getWanted(mlir::Value value);

private:
  LayoutAttr layoutOf(mlir::Value value);
  llvm::SmallVector<LayoutAttr> getOperandLayouts(mlir::Operation &op);
  mlir::LogicalResult choose(mlir::Operation &op);
  mlir::LogicalResult layOut(mlir::Operation &op);
  mlir::LogicalResult followConsumers(mlir::Operation &op);
  /// What is pinned of the op; null where nothing is.
  const PinnedOp *getPin(mlir::Operation &op) const;

  mlir::func::FuncOp function;
  mlir::SymbolTable symbols;
  MeshAttr mesh;
  mlir::MLIRContext *context;
  const ReadLayouts &reads;
  const llvm::DenseMap<mlir::Operation *, Splits> &seeds;
  const Pins &pins;
  llvm::DenseMap<mlir::Value, LayoutAttr> found;
};

} // namespace windlass::plan

#endif
