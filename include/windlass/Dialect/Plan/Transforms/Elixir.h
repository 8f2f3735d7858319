// The rules by which Elixir divides a device's memory between a cache of gathered weights and the optimizer's state
// (arXiv 2212.05339; hpcaitech/Elixir, elixir/search). No MLIR.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_ELIXIR_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_ELIXIR_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace windlass::plan::elixir {

/// The model and the device, as the rules see them. Sizes are in elements unless they say otherwise.
struct Problem {
  /// The bytes of the device, of what it holds besides weights, gradients and state, and of the largest set of
  /// activations that is live at one time.
  int64_t deviceBytes = 0, bufferBytes = 0, activationBytes = 0;
  int64_t ranks = 1;
  /// The bytes of an element of a weight, and the number of states that the optimizer keeps of it.
  int64_t elementBytes = 2, states = 2;
  /// The bytes that the device holds of an element of a weight that is updated there.
  int64_t residentBytes = 18;
  /// The weights that are used once, in call order, and those that are used more than once.
  std::vector<int64_t> weights, shared;
  /// The most elements of the weights of one module, and of one region that is recomputed at once.
  int64_t largestModule = 0, largestRegion = 0;
};

/// Returns the number of elements of weights for which the device has room; negative where there is none.
int64_t getCapacity(const Problem &problem);

/// Returns the chunk of each weight: weights are packed in their order, and none is split.
std::vector<int64_t> packChunks(llvm::ArrayRef<int64_t> weights, int64_t chunk);

/// Returns how often a chunk is moved in a forward and a backward pass over `chunks` chunks with room for `blocks` of
/// them, where the chunk is replaced whose next use is farthest away.
int64_t countMoves(int64_t chunks, int64_t blocks);

/// The time per element, in nanoseconds, that a rank saves when the cache has room for one more weight, and when one
/// more element's state is on the device instead, by the rates that Elixir has measured and built in.
struct Savings {
  double cache = 0, state = 0;
  bool isCacheFirst() const { return cache > state; }
};
/// Returns Elixir's I and J for `ranks` devices. `stateFactor` is `getStateFactor` of the problem.
Savings compareSavings(int64_t ranks, int64_t elementBytes, int64_t stateFactor);

/// Returns how many times the bytes of a weight the weight and its state take.
int64_t getStateFactor(const Problem &problem);

/// The places of chunks.
struct Placement {
  /// The size of a chunk, and the number of gathered chunks for which the cache has room.
  int64_t chunk = 0, blocks = 0;
  /// The chunk of each weight.
  std::vector<int64_t> chunkOf;
  /// Whether a chunk's shard and state are on the device, by chunk, and by weight that is used more than once.
  std::vector<bool> isOnDevice, isSharedOnDevice;
  int64_t countChunks() const { return static_cast<int64_t>(isOnDevice.size()); }
};

/// Returns the placement by the rules; nothing where the device has no room for any size of chunks.
std::optional<Placement> place(const Problem &problem);

} // namespace windlass::plan::elixir

#endif
