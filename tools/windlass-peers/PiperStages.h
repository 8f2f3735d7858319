// What a stage of a pipeline costs under Piper's rules.
#ifndef WINDLASS_TOOLS_WINDLASS_PEERS_PIPERSTAGES_H
#define WINDLASS_TOOLS_WINDLASS_PEERS_PIPERSTAGES_H

#include "Peers.h"
#include "PiperGraph.h"

#include "llvm/ADT/DenseMap.h"

namespace windlass::peers {

/// The layers that are in the prefix `end`, but not in the prefix `begin`, on `replicas` groups of `degree` devices.
struct StageShape {
  uint32_t begin, end;
  int64_t degree, replicas;
};

/// Computes the times of stages, and remembers them. A stage takes the variants of its layers with which it is fastest
/// among those that fit into the memory.
class PiperStages {
public:
  /// Refers to `graph`, which outlives this object.
  PiperStages(const PiperGraph &graph, const PiperQuestion &question);

  /// Returns a time that no stage between two prefixes is below, in seconds; infinity where a layer cannot have the
  /// degree. Takes no memory and no message into account.
  double getLeastSeconds(const StageShape &shape) const;
  /// Returns the time of the stage in seconds, with `inFlight` micro-batches in flight on each device; infinity where
  /// no variants fit.
  double getSeconds(const StageShape &shape, int64_t inFlight);
  /// Returns the variant of each layer of the stage, in the order of layers, with which it takes that time.
  std::vector<const Variant *> getVariants(const StageShape &shape, int64_t inFlight) const;
  /// Returns the device seconds that the layers of a prefix take at least, whatever their degrees.
  double getLeastWork(uint32_t prefix) const { return leastWork[prefix]; }

private:
  struct Choice;
  /// Returns for each choice whether the smaller variant is taken; nothing where no variants fit.
  std::optional<std::vector<bool>> chooseSmaller(llvm::ArrayRef<Choice> choices) const;
  /// Returns the two ways to run each layer of a stage.
  std::vector<Choice> getChoices(const StageShape &shape, int64_t inFlight) const;

  const PiperGraph &graph;
  PiperQuestion question;
  /// By degree, then by prefix: the sum of the least seconds of its layers.
  std::map<int64_t, std::vector<double>> leastSeconds;
  std::vector<double> leastWork;
  llvm::DenseMap<std::pair<uint64_t, uint64_t>, double> seconds;
};

} // namespace windlass::peers

#endif
