// Spreads the splits of the values that a function reads over its operators.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_PROPAGATION_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_PROPAGATION_H

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Pins.h"

#include "mlir/IR/SymbolTable.h"

#include <map>
#include <optional>

namespace windlass::plan {

/// The splits of an operator, by index of the factor.
using Splits = std::map<unsigned, FactorSplit>;

/// Whether an op may split factor `index` by `split` in addition to `others`: the axes divide the factor and are free,
/// and every result has the factor or is left unreduced.
bool canSplit(const train::OpFactors &factors, unsigned index, const FactorSplit &split, const Splits &others,
              MeshAttr mesh);

/// Adds to `splits` the splits that `layout` gives a dim, where its factors can express them; a present split gives way
/// to one that has its axes and more. Returns whether `splits` then has all of the dim's axes.
bool takeAxes(const train::OpFactors &factors, const train::DimFactors &dim, DimLayoutAttr layout, Splits &splits,
              MeshAttr mesh);

/// Returns the number of equal parts into which a split, or a slice with others like it, takes a value apart; 1 for
/// other ops. The producer of the value, such as a fused projection, may be split in as many blocks.
int64_t countParts(mlir::Operation *op);

StrategyAttr getStrategy(mlir::MLIRContext *context, const train::OpFactors &factors, const Splits &splits);

/// The layouts in which consumers find the parameters that they read, by symbol.
using ReadLayouts = llvm::DenseMap<mlir::StringAttr, LayoutAttr>;

class Propagation {
public:
  /// Takes `seeds`, the splits with which operators begin. Reads of parameters that `reads` does not have are whole.
  /// `pins` hold for strategies and for the layouts in which results are found.
  Propagation(mlir::func::FuncOp function, MeshAttr mesh, const ReadLayouts &reads,
              const llvm::DenseMap<mlir::Operation *, Splits> &seeds, const Pins &pins)
      : function(function), mesh(mesh), context(function.getContext()), reads(reads), seeds(seeds), pins(pins) {}

  /// Gives every op, or each of `ops` (in their order in the block), a strategy and layouts.
  mlir::LogicalResult run();
  mlir::LogicalResult run(llvm::ArrayRef<mlir::Operation *> ops);

  /// Makes operators find `value` in `layout`, whatever its own layout is.
  void setFound(mlir::Value value, LayoutAttr layout) { found[value] = layout; }

  /// Returns the layout in which all consumers take a value; null where they differ, or take any. A stash wants the
  /// layout that the backward pass wants.
  mlir::FailureOr<LayoutAttr> getWanted(mlir::Value value);

private:
  const mlir::SymbolTable &getSymbols();
  LayoutAttr layoutOf(mlir::Value value);
  llvm::SmallVector<LayoutAttr> getOperandLayouts(mlir::Operation &op);
  /// Returns the layouts of an op under its strategy and those of its operands; null after an error.
  const OpLayouts *infer(mlir::Operation &op);
  mlir::LogicalResult choose(mlir::Operation &op);
  mlir::LogicalResult layOut(mlir::Operation &op);
  mlir::LogicalResult followConsumers(mlir::Operation &op);
  /// Returns the pins of the op; null where it has none.
  const PinnedOp *getPin(mlir::Operation &op) const;

  mlir::func::FuncOp function;
  /// The symbols of the module, made when `getSymbols` is called first.
  std::optional<mlir::SymbolTable> symbols;
  MeshAttr mesh;
  mlir::MLIRContext *context;
  const ReadLayouts &reads;
  const llvm::DenseMap<mlir::Operation *, Splits> &seeds;
  const Pins &pins;
  llvm::DenseMap<mlir::Value, LayoutAttr> found;
  /// What `infer` has returned last for an op, and what it followed from: `infer` is called once for each op and once
  /// more for each of its operands.
  struct Inferred {
    StrategyAttr strategy;
    llvm::SmallVector<LayoutAttr> available;
    OpLayouts layouts;
  };
  llvm::DenseMap<mlir::Operation *, Inferred> inferred;
};

} // namespace windlass::plan

#endif
