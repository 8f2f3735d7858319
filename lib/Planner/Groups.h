// Operators and parameters that the search gives one choice: the same ones of each repeat of a block.
#ifndef WINDLASS_LIB_PLANNER_GROUPS_H
#define WINDLASS_LIB_PLANNER_GROUPS_H

#include "OperatorRange.h"

#include "windlass/Dialect/Plan/Transforms/Pins.h"

#include <map>
#include <vector>

namespace windlass::planner {

/// Operators that choose alike, in program order; the first stands for all.
struct OperatorGroup {
  std::vector<mlir::Operation *> ops;
  mlir::Operation *front() const { return ops.front(); }
};

/// Parameters that choose alike; the first stands for all.
struct ParameterGroup {
  std::vector<train::ParameterOp> parameters;
  std::vector<train::ReadOp> reads;
  /// The tensors of optimizer state of its type that each parameter has.
  int64_t states = 0;
  /// The bytes of other optimizer state of each parameter, which is whole on every rank.
  int64_t wholeStateBytes = 0;
  /// Whether one of the states is a moving average.
  bool hasAverage = false;
  /// The type of the master copy, the gradient and the state.
  mlir::RankedTensorType getType() const { return train::ParameterOp(parameters.front()).getTensorType(); }
  /// The type in which operators of the micro-batch read it.
  mlir::RankedTensorType getComputeType() const {
    return train::ParameterOp(parameters.front()).getComputeTensorType();
  }
};

/// A place where a value is read: an operand of a group's operators, possibly through a stash.
struct Use {
  unsigned group = 0, operand = 0;
  bool isStashed = false;
  bool operator<(const Use &other) const {
    return std::tie(group, operand, isStashed) < std::tie(other.group, other.operand, other.isStashed);
  }
};
/// The places that read a value, each with the number of members that do.
using Uses = std::map<Use, int64_t>;

/// A range of `@microbatch` whose repeats are folded, except those that differ in what is pinned or trains.
class Groups {
public:
  Groups(OperatorRange range, const plan::Pins &pins);

  mlir::func::FuncOp getFunction() const { return function; }
  const OperatorRange &getRange() const { return range; }
  /// The compute operators of the range, in the order of their first members.
  const std::vector<OperatorGroup> &getOperators() const { return operators; }
  /// The parameters that operators of the range read.
  const std::vector<ParameterGroup> &getParameters() const { return parameters; }
  /// The values that operators of the range read and others make, in the order of their making.
  const std::vector<mlir::Value> &getBorder() const { return border; }
  /// Returns the group of a compute operator of the range; nothing for others.
  std::optional<unsigned> getGroup(mlir::Operation *op) const;

  /// Returns all places of the range that read a value.
  Uses getUses(mlir::Value value) const;
  /// Returns all places of the range that read a result of a group's operators, or a member of a parameter group.
  Uses getUses(unsigned group, unsigned result) const;
  Uses getParameterUses(unsigned group) const;
  /// Returns the parameter groups whose gradients are results of a group's operators, each with the number of these.
  std::map<unsigned, int64_t> getGradients(unsigned group, unsigned result) const;

private:
  void groupOperators(const plan::Pins &pins, mlir::SymbolTable &symbols);
  void groupParameters(mlir::SymbolTable &symbols);
  void findBorder();
  void addUses(mlir::Value value, bool isStashed, Uses &uses) const;

  OperatorRange range;
  mlir::func::FuncOp function;
  std::vector<OperatorGroup> operators;
  std::vector<ParameterGroup> parameters;
  std::vector<mlir::Value> border;
  llvm::DenseMap<mlir::Operation *, unsigned> operatorGroups;
  llvm::DenseMap<mlir::StringAttr, unsigned> parameterGroups;
};

} // namespace windlass::planner

#endif
