// The same operations in two copies of a module.
#ifndef WINDLASS_LIB_PLANNER_COUNTERPARTS_H
#define WINDLASS_LIB_PLANNER_COUNTERPARTS_H

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"

namespace windlass::planner {

/// The operations of a copy of a module, by those of the module. The copies differ in attributes only.
class Counterparts {
public:
  Counterparts(mlir::ModuleOp module, mlir::ModuleOp copy);

  mlir::Operation *find(mlir::Operation *op) const { return counterparts.lookup(op); }
  /// Returns the counterpart of an operation's result.
  mlir::Value find(mlir::Value value) const;
  /// Returns a choice for the module as a choice for the copy.
  plan::StrategyChoice translate(plan::StrategyChoice choice) const;

private:
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> counterparts;
};

} // namespace windlass::planner

#endif
