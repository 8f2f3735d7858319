// Graphs of Piper's form: layers, what they cost by tensor-parallel degree, and where they can be cut.
#ifndef WINDLASS_TOOLS_WINDLASS_PEERS_PIPERGRAPH_H
#define WINDLASS_TOOLS_WINDLASS_PEERS_PIPERGRAPH_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <vector>

namespace windlass::peers {

/// A way to run a layer: with or without recomputation.
struct Variant {
  /// Of one micro-batch, forward and backward, on all devices of the tensor-parallel group.
  double seconds;
  /// What is exchanged between replicas, for each device.
  double parameterBytes;
  /// The memory of a device is `bytesInFlight` for each micro-batch in flight and `fixedBytes`.
  double bytesInFlight, fixedBytes;
  /// The bytes that a cut edge costs besides its own, by the layer at its other end.
  std::map<int64_t, double> bytesIn, bytesOut;
  bool recomputes;
};

struct Layer {
  int64_t id;
  /// By tensor-parallel degree; one or two each.
  std::map<int64_t, std::vector<Variant>> variants;
};

struct Link {
  /// Indices of layers.
  size_t from, to;
  double bytes;
};

struct PiperGraph {
  std::vector<Layer> layers;
  std::vector<Link> links;
  /// The tensor-parallel degrees of any layer, ascending.
  std::vector<int64_t> degrees;
  /// The sets of layers that hold all predecessors of their members, by ascending size: where stages may end. The first
  /// one is empty, the last one holds all layers.
  std::vector<llvm::BitVector> prefixes;
};

/// Reads a graph and finds its prefixes. Fails where it has a cycle, a layer with more than two variants of a degree,
/// or too many prefixes to go through.
llvm::Expected<PiperGraph> readPiperGraph(const llvm::json::Value &value);

} // namespace windlass::peers

#endif
