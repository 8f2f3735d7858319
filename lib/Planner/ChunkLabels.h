// The chunks of a cut model to which operators and parameters belong, before the model is planned.
#ifndef WINDLASS_LIB_PLANNER_CHUNKLABELS_H
#define WINDLASS_LIB_PLANNER_CHUNKLABELS_H

#include "Groups.h"
#include "LeastTraffic.h"

namespace windlass::planner {

/// Finds the operators of the range's function that each chunk may compute for itself, wherever the model is cut: those
/// that read no trained weight, directly or not.
Operators findCopied(const Groups &groups);

/// The chunks that are certain to run operators, as `cutChunks` assigns them. What a chunk computes for itself, what
/// follows from weights alone, and what names no operator of the forward pass belongs to none here.
class ChunkLabels {
public:
  ChunkLabels(const Groups &groups, plan::PipelineAttr pipeline);

  std::optional<int64_t> find(mlir::Operation *op) const;
  /// Whether two operators run in one call of one chunk: both are of its forward pass, or of its backward pass.
  bool runTogether(mlir::Operation *a, mlir::Operation *b) const;
  /// Returns the number of the group's operators by chunk.
  llvm::ArrayRef<int64_t> countOperators(unsigned group) const { return operators[group]; }
  /// Returns the number of the group's parameters by chunk, without those that operators of several chunks read.
  llvm::ArrayRef<int64_t> countParameters(unsigned group) const { return parameters[group]; }

private:
  /// Labels the operators of the function.
  void label(plan::PipelineAttr pipeline);
  std::vector<int64_t> countByChunk(const OperatorGroup &group) const;
  std::vector<int64_t> countByChunk(const ParameterGroup &group) const;
  /// Adds the chunks of all operators that read a value or what follows from weights alone.
  void addReaders(mlir::Value value, llvm::DenseSet<int64_t> &readers, Operators &seen) const;

  const Groups &groups;
  int64_t count;
  llvm::DenseMap<mlir::Operation *, int64_t> chunks;
  /// The numbers of operators and of parameters, by group and chunk.
  std::vector<std::vector<int64_t>> operators, parameters;
};

} // namespace windlass::planner

#endif
