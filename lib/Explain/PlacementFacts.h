// How a plan runs an operator, or keeps a parameter, and what that costs: read from a module at L3b.
#ifndef WINDLASS_LIB_EXPLAIN_PLACEMENTFACTS_H
#define WINDLASS_LIB_EXPLAIN_PLACEMENTFACTS_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <vector>

namespace windlass {

/// A collective, or a slice, which moves nothing.
struct StepFacts {
  std::string kind, axes;
  int64_t members = 1;
};

struct ReshardFacts {
  std::string from, to;
  std::vector<StepFacts> steps;
  /// Bytes that a rank sends, all of a step together.
  int64_t bytesPerStep = 0;
};

/// A value where an operator meets it.
struct ValueFacts {
  /// What makes it: an operator's id, or words such as "parameter 'w'".
  std::string name;
  /// "f32[4, 8, 16]".
  std::string type, localType;
  std::string layout;
  /// Of a rank's part.
  int64_t bytes = 0;
  /// Of an operand, at most one; of a result, one for each other layout in which it is needed.
  std::vector<ReshardFacts> reshards;
  /// Kept for the backward pass.
  bool isStashed = false;
};

struct FactorFacts {
  std::string name, kind;
  int64_t size = 1, localSize = 1, blocks = 1;
  std::vector<std::string> axes;
};

/// What an axis of the mesh does for the operator, in words.
struct AxisFacts {
  std::string name;
  int64_t size = 1;
  std::string role;
};

struct OperatorFacts {
  std::string id, kind, function;
  /// The operator whose adjoint it is; empty for others.
  std::string forward;
  /// Class of repeats and which one of them; -1 for what repeats nowhere.
  std::string repeatClass;
  int64_t repeat = -1;
  /// By a rank in a step; 0 for what runs elsewhere.
  int64_t runsPerStep = 0;
  std::vector<AxisFacts> axes;
  std::vector<FactorFacts> factors;
  std::vector<ValueFacts> operands, results;
  /// Ids of the operators of the backward pass that come from it.
  std::vector<std::string> adjoints;
};

struct ParameterFacts {
  std::string name, type;
  bool trains = false;
  /// Names of the copies: compute, gradient, master.
  std::vector<std::pair<std::string, ValueFacts>> copies;
  /// What brings values from one copy to another, or to operators, with how often a step.
  std::vector<std::pair<std::string, ReshardFacts>> reshards;
};

class PlacementFacts {
public:
  /// `iterations` is m.
  PlacementFacts(mlir::ModuleOp module, int64_t iterations);

  /// What all operators with that id say, function by function; `@evaluate` only where `@microbatch` has none.
  std::vector<OperatorFacts> describeOperator(llvm::StringRef id);
  ParameterFacts describeParameter(llvm::StringRef logicalName);

  /// Ids of all operators, and logical names of all parameters but states.
  const std::vector<std::string> &getOperatorIds() const { return ids; }
  std::vector<std::string> getParameterNames();

private:
  OperatorFacts describe(mlir::Operation &op, llvm::StringRef function);
  ValueFacts describeValue(mlir::Value value, plan::LayoutAttr layout);
  ReshardFacts describeReshard(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to,
                               int64_t runsPerStep);
  std::vector<AxisFacts> describeAxes(mlir::Operation &op, llvm::StringRef function);

  mlir::ModuleOp module;
  plan::MeshAttr mesh;
  int64_t iterations;
  /// In program order, by id and by the id of their forward operator.
  llvm::StringMap<llvm::SmallVector<mlir::Operation *, 2>> operators;
  llvm::StringMap<std::vector<std::string>> adjoints;
  std::vector<std::string> ids;
};

} // namespace windlass

#endif
