// What a user fixes of a plan before anything else is chosen.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_PINS_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_PINS_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>
#include <string>

namespace windlass::plan {

struct PinnedOp {
  std::optional<StrategyAttr> strategy;
  /// In which its results are found by those that read them; null where that is free.
  llvm::SmallVector<LayoutAttr, 2> layouts;
  /// The pin that says so, for messages.
  std::string strategyPin, layoutPin;
};

/// Layouts of a parameter's copies, by "compute", "gradient" and "master", each with the pin that says so.
using PinnedParameter = std::map<std::string, std::pair<LayoutAttr, std::string>>;

struct Pins {
  llvm::DenseMap<mlir::Operation *, PinnedOp> ops;
  /// By symbol.
  llvm::DenseMap<mlir::StringAttr, PinnedParameter> parameters;

  bool empty() const { return ops.empty() && parameters.empty(); }
};

/// Reads pins for a module of L2 on a mesh, which need not be the module's. A pin is PATTERN=VALUE: a glob over ids of
/// operators or names of parameters, and in the words of plan.json either a strategy ("whole", or splits such as
/// "n0:model+batch,k0:3*x"), layouts of an operator's results ("[8:batch, 64]", several with ";" between them), or the
/// layout of one copy of a parameter ("compute:[8, 64:model]"). Fails, at the operator or parameter, with the rule that
/// a pin breaks: it matches nothing, contradicts another one, names a factor or axis that is not there, or does not
/// divide.
mlir::FailureOr<Pins> readPins(mlir::ModuleOp module, MeshAttr mesh, llvm::ArrayRef<std::string> texts);

/// In the order in which plans keep them, each once: their order says nothing.
std::vector<std::string> sortPins(std::vector<std::string> texts);

/// Whether a module at L3, before reshards are made, is as pins say. Fails at what is not, or as `readPins`.
mlir::LogicalResult checkPins(mlir::ModuleOp module, llvm::ArrayRef<std::string> texts);

} // namespace windlass::plan

#endif
