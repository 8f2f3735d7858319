// Which position of a pipeline runs which chunk of the model. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_PLACEMENT_H
#define WINDLASS_SCHEDULE_PLACEMENT_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace windlass::schedule {

/// A map from chunks to positions. Chunks are numbered along the model. A bidirectional pipeline runs the model in two
/// chains, each of which has all of its chunks under numbers of its own and micro-batches of its own, numbered from 0.
struct Placement {
  int64_t positions = 1;
  /// The position of each chunk.
  std::vector<int64_t> positionOf = {0};
  /// The first chunk of each chain: increasing, and 0 is the first of them.
  std::vector<int64_t> chains = {0};

  int64_t countChunks() const { return static_cast<int64_t>(positionOf.size()); }
  /// Returns the chunk whose output this one reads; nothing for the first of a chain.
  std::optional<int64_t> getPrevious(int64_t chunk) const;
  /// Returns the chunk that reads this one's output; nothing for the last of a chain.
  std::optional<int64_t> getNext(int64_t chunk) const;
  /// Returns whether what passes between two successive chunks leaves its position.
  bool crossesPositions(int64_t chunk, int64_t other) const { return positionOf[chunk] != positionOf[other]; }
  bool operator==(const Placement &other) const {
    return positions == other.positions && positionOf == other.positionOf && chains == other.chains;
  }
};

/// The most chunks and the most positions of a placement; larger ones are refused.
constexpr int64_t kMaxChunks = int64_t(1) << 16;

/// Fails with what is wrong where the map is no placement: a position out of range or without a chunk, chains that do
/// not begin at 0, do not increase, have no chunk or differ in their number of chunks, or more than `kMaxChunks` of
/// anything.
llvm::Error checkPlacement(const Placement &placement);
/// Checks the same; fails also where the number of `schedules` is not that of positions.
llvm::Error checkPlacement(const Placement &placement, size_t schedules);

// Named placements. `positions` and `chunksPerPosition` are at least 1, and their product is at most `kMaxChunks`.

/// Makes a placement in which neighbouring chunks share a position: chunk c is on position c / `chunksPerPosition`.
Placement makeBlockedPlacement(int64_t positions, int64_t chunksPerPosition);
/// Makes a placement in which chunk c is on position c mod `positions`.
Placement makeLoopedPlacement(int64_t positions, int64_t chunksPerPosition);
/// Makes a placement in which chunks run forth and back over the positions (for two chunks each: "V"), so that at a
/// turn two neighbours share one.
Placement makeWavePlacement(int64_t positions, int64_t chunksPerPosition);
/// Makes a placement of two chains, the second of which runs over the positions in reverse order; each is looped with
/// `chunksPerPosition` chunks.
Placement makeBidirectionalPlacement(int64_t positions, int64_t chunksPerPosition);

} // namespace windlass::schedule

#endif
