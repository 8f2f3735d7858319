// The placement of an operator or parameter under a plan, and its cost, read from a module at L3b.
#ifndef WINDLASS_LIB_EXPLAIN_PLACEMENTFACTS_H
#define WINDLASS_LIB_EXPLAIN_PLACEMENTFACTS_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <vector>

namespace windlass {

/// A step of a reshard: a collective, or a slice, which moves nothing.
struct StepFacts {
  std::string kind, axes;
  int64_t members = 1;
};

struct ReshardFacts {
  std::string from, to;
  std::vector<StepFacts> steps;
  /// The bytes that a rank sends for this reshard in all runs of a step.
  int64_t bytesPerStep = 0;
};

/// A value as an operator reads or makes it.
struct ValueFacts {
  /// The maker of the value: an operator's id, or words such as "parameter 'w'".
  std::string name;
  /// The global and the local type, such as "f32[4, 8, 16]".
  std::string type, localType;
  std::string layout;
  /// The bytes of a rank's local slice.
  int64_t bytes = 0;
  /// The reshards: at most one of an operand; of a result, one for each other layout in which it is needed.
  std::vector<ReshardFacts> reshards;
  /// Whether the value is kept for the backward pass.
  bool isStashed = false;
};

struct FactorFacts {
  std::string name, kind;
  int64_t size = 1, localSize = 1, blocks = 1;
  std::vector<std::string> axes;
};

/// The role of an axis of the mesh for the operator, in words.
struct AxisFacts {
  std::string name;
  int64_t size = 1;
  std::string role;
};

struct OperatorFacts {
  std::string id, kind, function;
  /// The operator whose adjoint this one is; empty for others.
  std::string forward;
  /// The class of repeated blocks and the index of the block; -1 for an operator outside of them.
  std::string repeatClass;
  int64_t repeat = -1;
  /// The number of times that a rank runs the operator in a step; 0 for operators that run elsewhere.
  int64_t runsPerStep = 0;
  /// The chunk of the pipeline that the operator is named in; none in a plan of one stage.
  std::optional<int64_t> chunk;
  std::vector<AxisFacts> axes;
  std::vector<FactorFacts> factors;
  std::vector<ValueFacts> operands, results;
  /// The ids of the operators of the backward pass that come from this operator.
  std::vector<std::string> adjoints;
};

struct ParameterFacts {
  std::string name, type;
  bool trains = false;
  /// The copies by name: compute, gradient, master.
  std::vector<std::pair<std::string, ValueFacts>> copies;
  /// The reshards that bring values from one copy to another, or to operators, by their descriptions.
  std::vector<std::pair<std::string, ReshardFacts>> reshards;
};

class PlacementFacts {
public:
  /// Reads a module at L3b; a rank runs `@microbatch` `accumulationSteps` times in a step.
  PlacementFacts(mlir::ModuleOp module, int64_t accumulationSteps);

  /// Returns the facts of all operators with that id, function by function; of `@evaluate` only where `@microbatch` has
  /// none.
  std::vector<OperatorFacts> describeOperator(llvm::StringRef id);
  ParameterFacts describeParameter(llvm::StringRef logicalName);

  /// Returns the ids of all operators.
  const std::vector<std::string> &getOperatorIds() const { return ids; }
  /// Returns the logical names of all parameters but states.
  std::vector<std::string> getParameterNames();

private:
  OperatorFacts describe(mlir::Operation &op, llvm::StringRef function);
  ValueFacts describeValue(mlir::Value value, plan::LayoutAttr layout);
  ReshardFacts describeReshard(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to,
                               int64_t runsPerStep);
  std::vector<AxisFacts> describeAxes(mlir::Operation &op, llvm::StringRef function);

  mlir::ModuleOp module;
  plan::MeshAttr mesh;
  int64_t accumulationSteps;
  /// The operators in program order, by id and by the id of their forward operator.
  llvm::StringMap<llvm::SmallVector<mlir::Operation *, 2>> operators;
  llvm::StringMap<std::vector<std::string>> adjoints;
  std::vector<std::string> ids;
};

} // namespace windlass

#endif
