#include "windlass/Dialect/Plan/Transforms/Elixir.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <list>

using namespace windlass::plan;

/// The bytes of a device that are left to its context and to collectives, and the shares by which activations are
/// assumed to be larger than measured and the rest of the memory to be smaller, because allocators leave gaps.
static constexpr int64_t kContextBytes = int64_t(2) << 30;
static constexpr double kActivationFactor = 1.25, kAllocationFactor = 0.95;
/// The least bytes of a chunk, and the ratio between the largest and the smallest chunk that is tried.
static constexpr int64_t kLeastChunkBytes = int64_t(32) << 20, kChunkRange = 3;
/// The most steps of all replays together, which gives the number of sizes, and the least bytes between two of them.
static constexpr int64_t kMostReplayed = int64_t(16) << 20, kLeastInterval = 1024;
/// The blocks of the cache that a prefetch and a reduce-scatter in flight take, and the least number of blocks where
/// the state comes first.
static constexpr int64_t kOverlapBlocks = 2, kLeastBlocks = 4;
/// The bytes of an element of the optimizer's state.
static constexpr int64_t kStateElementBytes = 4;

int64_t elixir::getCapacity(const Problem &problem) {
  double bytes = kAllocationFactor * (static_cast<double>(problem.deviceBytes - kContextBytes - problem.bufferBytes) -
                                      kActivationFactor * static_cast<double>(problem.activationBytes));
  int64_t elements = static_cast<int64_t>(std::floor(bytes / static_cast<double>(problem.elementBytes)));
  elements -= problem.largestModule;
  for (int64_t shared : problem.shared)
    elements -= shared;
  return elements;
}

std::vector<int64_t> elixir::packChunks(llvm::ArrayRef<int64_t> weights, int64_t chunk) {
  std::vector<int64_t> chunkOf;
  int64_t current = -1, left = 0;
  for (int64_t weight : weights) {
    if (weight > left) {
      ++current;
      left = chunk;
    }
    left -= weight;
    chunkOf.push_back(current);
  }
  return chunkOf;
}

int64_t elixir::countMoves(int64_t chunks, int64_t blocks) {
  // The backward pass uses the chunks in the opposite order, so that both passes read the same from behind. Replayed
  // from behind, the chunk whose next use is farthest away is the one that was used least recently.
  std::list<int64_t> resident;
  int64_t moves = 0;
  auto use = [&](int64_t chunk) {
    if (auto found = llvm::find(resident, chunk); found != resident.end()) {
      resident.splice(resident.end(), resident, found);
      return;
    }
    if (static_cast<int64_t>(resident.size()) >= blocks) {
      resident.pop_front();
      ++moves;
    }
    resident.push_back(chunk);
  };
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    use(chunk);
  for (int64_t chunk = chunks; chunk > 0; --chunk)
    use(chunk - 1);
  return 2 * (moves + static_cast<int64_t>(resident.size()));
}

elixir::Savings elixir::compareSavings(int64_t ranks, int64_t elementBytes, int64_t stateFactor) {
  double n = static_cast<double>(ranks), weight = static_cast<double>(elementBytes);
  // GB/s of all copies to the devices and to the host, and 10^9 elements per second that all devices and the host
  // update: the fits of elixir/search/simulator.py.
  double toDevice = 16.3 * n + 8.7, toHost = 15.8 * n + 2.3;
  double deviceRate = 50 * n, hostRate = 1.66 * std::log(n) + 5.15;
  Savings savings;
  savings.cache = weight / toDevice + weight / toHost;
  double update = static_cast<double>(kStateElementBytes) / toDevice + weight / toHost + 1 / hostRate - 1 / deviceRate;
  savings.state = n / static_cast<double>(stateFactor) * (update + savings.cache);
  return savings;
}

int64_t elixir::getStateFactor(const Problem &problem) {
  // In 16 bits the master copy and the states take twice the bytes of a weight.
  return 1 + (1 + problem.states) * (kStateElementBytes / problem.elementBytes);
}

namespace {

/// The size of chunks, the number of blocks of the cache, and the number of chunks.
struct ChunkSize {
  int64_t elements = 0, blocks = 0, chunks = 0;
};

} // namespace

/// Returns the size of chunks with which the fewest elements are moved; nothing where none leaves a block.
static std::optional<ChunkSize> searchSize(const elixir::Problem &problem, int64_t capacity) {
  int64_t largest = *llvm::max_element(problem.weights), total = 0;
  for (int64_t weight : problem.weights)
    total += weight;
  int64_t least = kLeastChunkBytes / problem.elementBytes;
  if (total <= least)
    return total <= capacity ? std::optional(ChunkSize{total, 1, 1}) : std::nullopt;
  while (least < largest)
    least *= 2;
  // Each size replays every weight twice.
  int64_t sizes = kMostReplayed / (2 * static_cast<int64_t>(llvm::PowerOf2Ceil(problem.weights.size())));
  int64_t gap = (kChunkRange - 1) * least;
  int64_t interval = std::max(kLeastInterval / problem.elementBytes, gap / std::max<int64_t>(sizes, 1));
  std::optional<ChunkSize> best;
  int64_t fewest = 0;
  for (int64_t size = least; size <= std::min(kChunkRange * least, capacity); size += interval) {
    int64_t blocks = capacity / size - kOverlapBlocks;
    if (blocks <= 0)
      break;
    int64_t chunks = elixir::packChunks(problem.weights, size).back() + 1;
    blocks = std::min(blocks, chunks);
    int64_t moved = elixir::countMoves(chunks, blocks) * size;
    if (best && moved >= fewest)
      continue;
    best = {size, blocks, chunks};
    fewest = moved;
  }
  return best;
}

std::optional<elixir::Placement> elixir::place(const Problem &problem) {
  int64_t room = getCapacity(problem);
  Placement placement;
  int64_t most = 0;
  if (!problem.weights.empty()) {
    std::optional<ChunkSize> size = searchSize(problem, room);
    if (!size)
      return std::nullopt;
    placement.chunk = size->elements;
    placement.blocks = most = size->blocks;
    placement.chunkOf = packChunks(problem.weights, size->elements);
    placement.isOnDevice.resize(size->chunks);
  } else if (room < 0) {
    return std::nullopt;
  }
  bool isCacheFirst = compareSavings(problem.ranks, problem.elementBytes, getStateFactor(problem)).isCacheFirst();
  if (!isCacheFirst && most > 0) {
    int64_t needed =
        std::max(kLeastBlocks, static_cast<int64_t>(llvm::divideCeil(problem.largestRegion, placement.chunk)) + 1);
    placement.blocks = std::min(needed + kOverlapBlocks, most);
  }
  room -= placement.blocks * placement.chunk;
  auto takeState = [&](int64_t elements) {
    int64_t need = elements * problem.residentBytes / problem.elementBytes / problem.ranks;
    bool fits = need <= room;
    room -= fits ? need : 0;
    return fits;
  };
  for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
    placement.isOnDevice[chunk] = takeState(placement.chunk);
  for (int64_t shared : problem.shared)
    placement.isSharedOnDevice.push_back(takeState(shared));
  if (most > placement.blocks)
    placement.blocks += std::clamp<int64_t>(room / placement.chunk, 0, most - placement.blocks);
  return placement;
}
