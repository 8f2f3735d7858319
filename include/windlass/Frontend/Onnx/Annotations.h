// ONNX's multi-device annotations, from IR version 11 on: statements of where the parts of tensors are.
#ifndef WINDLASS_FRONTEND_ONNX_ANNOTATIONS_H
#define WINDLASS_FRONTEND_ONNX_ANNOTATIONS_H

#include "windlass/Frontend/Onnx/Import.h"

#include "llvm/Support/Error.h"

#include <set>

namespace windlass {

/// A factor of a dimension, and the number of shards into which it is split. Size 0: the model does not state it.
struct ShardedFactor {
  int64_t size = 0, shards = 1;
};

struct TensorSharding {
  std::string tensor;
  /// The factors of dimensions, major to minor. Negative dimensions count from the back; those that are left out are
  /// whole.
  std::map<int64_t, std::vector<ShardedFactor>> dims;
  /// The devices that hold each shard, sorted; shards are in row-major order of the factors.
  std::vector<std::vector<int64_t>> devices;
};

/// A configuration of a model: its statements about the tensors at each node, by the node's place in the graph.
struct ModelAnnotations {
  std::string configuration;
  int64_t devices = 0;
  std::map<int64_t, std::vector<TensorSharding>> nodes;
};

/// The nodes of the graph itself, in its order, to which annotations refer.
struct GraphOutline {
  struct Node {
    std::string name;
    std::vector<std::string> inputs, outputs;
  };
  std::vector<Node> nodes;
  std::set<std::string> initializers;
  /// The shapes that the graph's value infos state, with -1 for a dimension that is not a number.
  std::map<std::string, std::vector<int64_t>> shapes;
};

/// Reads the outline of a model's graph. Fails where the file cannot be read within the budgets.
llvm::Expected<GraphOutline> readOutline(llvm::StringRef path, const ImportBudgets &budgets = {});

/// Reads a configuration. Fails, with one line that names the node and the tensor, where its statements contradict each
/// other.
llvm::Expected<ModelAnnotations> readAnnotations(llvm::StringRef path, llvm::StringRef configuration,
                                                 const ImportBudgets &budgets = {});

/// Returns the model's bytes, unpacked, with one more configuration; everything else stays as it is, and weights are
/// not read. Fails where the model has one of that name.
llvm::Expected<std::string> addAnnotations(llvm::StringRef path, const ModelAnnotations &annotations,
                                           const ImportBudgets &budgets = {});

} // namespace windlass

#endif
