// ONNX's own words for where the parts of tensors are: multi-device annotations, from IR version 11 on.
#ifndef WINDLASS_FRONTEND_ONNX_ANNOTATIONS_H
#define WINDLASS_FRONTEND_ONNX_ANNOTATIONS_H

#include "windlass/Frontend/Onnx/Import.h"

#include "llvm/Support/Error.h"

#include <set>

namespace windlass {

/// A factor of a dimension, and into how many shards it is split. Size 0: the model does not say it.
struct ShardedFactor {
  int64_t size = 0, shards = 1;
};

struct TensorSharding {
  std::string tensor;
  /// Factors of a dimension, major to minor. Negative ones count from the back; those that are left out are whole.
  std::map<int64_t, std::vector<ShardedFactor>> dims;
  /// Which devices hold each shard, sorted; shards in row-major order of the factors.
  std::vector<std::vector<int64_t>> devices;
};

/// A configuration of a model: what it says of the tensors at each node, by the node's place in the graph.
struct ModelAnnotations {
  std::string configuration;
  int64_t devices = 0;
  std::map<int64_t, std::vector<TensorSharding>> nodes;
};

/// What annotations are given to: the graph's own nodes, in its order.
struct GraphOutline {
  struct Node {
    std::string name;
    std::vector<std::string> inputs, outputs;
  };
  std::vector<Node> nodes;
  std::set<std::string> initializers;
  /// Static shapes that the model states.
  std::map<std::string, std::vector<int64_t>> shapes;
};

llvm::Expected<GraphOutline> readOutline(llvm::StringRef path, const ImportBudgets &budgets = {});

/// Reads a configuration. Fails, with one line that names the node and the tensor, where what it says is contradictory
/// in itself.
llvm::Expected<ModelAnnotations> readAnnotations(llvm::StringRef path, llvm::StringRef configuration,
                                                 const ImportBudgets &budgets = {});

/// The model's bytes with one configuration more, unpacked; everything else stays as it is, weights are not read. Fails
/// where it has one of that name.
llvm::Expected<std::string> addAnnotations(llvm::StringRef path, const ModelAnnotations &annotations,
                                           const ImportBudgets &budgets = {});

} // namespace windlass

#endif
