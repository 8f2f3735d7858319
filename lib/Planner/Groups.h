// Operators and parameters that the search gives one choice: the same ones of each repeat of a block.
#ifndef WINDLASS_LIB_PLANNER_GROUPS_H
#define WINDLASS_LIB_PLANNER_GROUPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Plan/Transforms/Pins.h"

#include <map>
#include <vector>

namespace windlass::planner {

/// In program order; the first stands for all.
struct OperatorGroup {
  std::vector<mlir::Operation *> ops;
  mlir::Operation *front() const { return ops.front(); }
};

struct ParameterGroup {
  std::vector<train::ParameterOp> parameters;
  std::vector<train::ReadOp> reads;
  /// Tensors of optimizer state that each has.
  int64_t states = 0;
  mlir::RankedTensorType getType() const { return train::ParameterOp(parameters.front()).getTensorType(); }
  /// As operators of the micro-batch find it.
  mlir::RankedTensorType getComputeType() const {
    return train::ParameterOp(parameters.front()).getComputeTensorType();
  }
};

/// Where a group's value is read: an operand of another group's operators, maybe through a stash.
struct Use {
  unsigned group = 0, operand = 0;
  bool isStashed = false;
  bool operator<(const Use &other) const {
    return std::tie(group, operand, isStashed) < std::tie(other.group, other.operand, other.isStashed);
  }
};
/// In how many places.
using Uses = std::map<Use, int64_t>;

/// `@microbatch` with its repeats folded, but for those of which something else is pinned or trains.
class Groups {
public:
  Groups(mlir::func::FuncOp microbatch, const plan::Pins &pins);

  mlir::func::FuncOp getFunction() const { return function; }
  /// Compute operators, in the order of their first members.
  const std::vector<OperatorGroup> &getOperators() const { return operators; }
  /// Those that operators read.
  const std::vector<ParameterGroup> &getParameters() const { return parameters; }
  /// The group of a compute operator; nothing for others.
  std::optional<unsigned> getGroup(mlir::Operation *op) const;

  /// All places that read a value.
  Uses getUses(mlir::Value value) const;
  /// All places that read a result of a group's operators, or a member of a parameter group.
  Uses getUses(unsigned group, unsigned result) const;
  Uses getParameterUses(unsigned group) const;
  /// The parameter groups whose gradients a result of a group's operators is, and how often.
  std::map<unsigned, int64_t> getGradients(unsigned group, unsigned result) const;

private:
  void groupOperators(const plan::Pins &pins, mlir::SymbolTable &symbols);
  void groupParameters(mlir::SymbolTable &symbols);
  void addUses(mlir::Value value, bool isStashed, Uses &uses) const;

  mlir::func::FuncOp function;
  std::vector<OperatorGroup> operators;
  std::vector<ParameterGroup> parameters;
  llvm::DenseMap<mlir::Operation *, unsigned> operatorGroups;
  llvm::DenseMap<mlir::StringAttr, unsigned> parameterGroups;
};

} // namespace windlass::planner

#endif
