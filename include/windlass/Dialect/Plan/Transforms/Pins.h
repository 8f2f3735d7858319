// The parts of a plan that a user fixes before anything else is chosen.
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
  /// The layouts in which consumers find its results; null for results that are not pinned.
  llvm::SmallVector<LayoutAttr, 2> layouts;
  /// The texts of the pins that fix strategy and layouts, for messages.
  std::string strategyPin, layoutPin;
};

/// The layouts of a parameter's copies, by "compute", "gradient" and "master", each with the text of its pin.
using PinnedParameter = std::map<std::string, std::pair<LayoutAttr, std::string>>;

struct Pins {
  llvm::DenseMap<mlir::Operation *, PinnedOp> ops;
  /// The pinned parameters, by symbol.
  llvm::DenseMap<mlir::StringAttr, PinnedParameter> parameters;

  bool empty() const { return ops.empty() && parameters.empty(); }
};

/// Reads pins for a module of L2 on a mesh, which need not be the module's. A pin is PATTERN=VALUE: a glob over ids of
/// operators or names of parameters, and in the words of plan.json either a strategy ("whole", or splits such as
/// "n0:model+batch,k0:3*x"), layouts of an operator's results ("[8:batch, 64]", several with ";" between them), or the
/// layout of one copy of a parameter ("compute:[8, 64:model]"). Fails, at the operator or parameter, with the rule that
/// a pin breaks: it matches nothing, contradicts another pin, names an unknown factor or axis, or splits a size that
/// its axes do not divide.
mlir::FailureOr<Pins> readPins(mlir::ModuleOp module, MeshAttr mesh, llvm::ArrayRef<std::string> texts);

/// Returns the pins in the order in which plans keep them, each once: their order has no meaning.
std::vector<std::string> sortPins(std::vector<std::string> texts);

/// Checks that a module at L3, before layouts are materialized, agrees with the pins. Fails at the first operator or
/// parameter that does not, or as `readPins` does.
mlir::LogicalResult checkPins(mlir::ModuleOp module, llvm::ArrayRef<std::string> texts);

} // namespace windlass::plan

#endif
