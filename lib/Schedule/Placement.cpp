#include "windlass/Schedule/Placement.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace windlass::schedule;
using llvm::Twine;

std::optional<int64_t> Placement::getPrevious(int64_t chunk) const {
  if (llvm::binary_search(chains, chunk))
    return std::nullopt;
  return chunk - 1;
}

std::optional<int64_t> Placement::getNext(int64_t chunk) const {
  if (chunk + 1 == countChunks() || llvm::binary_search(chains, chunk + 1))
    return std::nullopt;
  return chunk + 1;
}

static llvm::Error checkChains(const Placement &placement) {
  const std::vector<int64_t> &chains = placement.chains;
  if (chains.empty() || chains.front() != 0)
    return llvm::createStringError("has no chain that begins with chunk 0");
  auto getEnd = [&](size_t chain) { return chain + 1 < chains.size() ? chains[chain + 1] : placement.countChunks(); };
  for (size_t i = 0; i < chains.size(); ++i) {
    int64_t length = getEnd(i) - chains[i];
    if (length < 1)
      return llvm::createStringError("has no chunk in chain " + Twine(i));
    if (length != getEnd(0))
      return llvm::createStringError("has " + Twine(getEnd(0)) + " chunks in chain 0 but " + Twine(length) +
                                     " in chain " + Twine(i));
  }
  return llvm::Error::success();
}

llvm::Error windlass::schedule::checkPlacement(const Placement &placement) {
  if (placement.positions < 1 || placement.positions > kMaxChunks)
    return llvm::createStringError("has " + Twine(placement.positions) + " positions; 1 to " + Twine(kMaxChunks) +
                                   " are possible");
  if (placement.countChunks() > kMaxChunks)
    return llvm::createStringError("has " + Twine(placement.countChunks()) + " chunks; at most " + Twine(kMaxChunks) +
                                   " are possible");
  if (llvm::Error error = checkChains(placement))
    return error;
  std::vector<bool> hasChunk(placement.positions, false);
  for (auto [chunk, position] : llvm::enumerate(placement.positionOf)) {
    if (position < 0 || position >= placement.positions)
      return llvm::createStringError("places chunk " + Twine(chunk) + " on position " + Twine(position) + " of " +
                                     Twine(placement.positions));
    hasChunk[position] = true;
  }
  auto empty = llvm::find(hasChunk, false);
  if (empty != hasChunk.end())
    return llvm::createStringError("has no chunk on position " + Twine(empty - hasChunk.begin()));
  return llvm::Error::success();
}

llvm::Error windlass::schedule::checkPlacement(const Placement &placement, size_t schedules) {
  if (llvm::Error error = checkPlacement(placement))
    return error;
  if (static_cast<int64_t>(schedules) != placement.positions)
    return llvm::createStringError("has " + Twine(schedules) + " schedules for " + Twine(placement.positions) +
                                   " positions");
  return llvm::Error::success();
}

/// Makes one chain whose chunk c is on the position `place(c)`.
template <class F> static Placement makeChain(int64_t positions, int64_t chunksPerPosition, F place) {
  Placement placement;
  placement.positions = positions;
  placement.positionOf.clear();
  for (int64_t chunk = 0; chunk < positions * chunksPerPosition; ++chunk)
    placement.positionOf.push_back(place(chunk));
  return placement;
}

Placement windlass::schedule::makeBlockedPlacement(int64_t positions, int64_t chunksPerPosition) {
  return makeChain(positions, chunksPerPosition, [&](int64_t chunk) { return chunk / chunksPerPosition; });
}

Placement windlass::schedule::makeLoopedPlacement(int64_t positions, int64_t chunksPerPosition) {
  return makeChain(positions, chunksPerPosition, [&](int64_t chunk) { return chunk % positions; });
}

Placement windlass::schedule::makeWavePlacement(int64_t positions, int64_t chunksPerPosition) {
  return makeChain(positions, chunksPerPosition, [&](int64_t chunk) {
    bool isForth = chunk / positions % 2 == 0;
    return isForth ? chunk % positions : positions - 1 - chunk % positions;
  });
}

Placement windlass::schedule::makeBidirectionalPlacement(int64_t positions, int64_t chunksPerPosition) {
  Placement placement = makeLoopedPlacement(positions, chunksPerPosition);
  int64_t length = placement.countChunks();
  placement.chains.push_back(length);
  for (int64_t chunk = 0; chunk < length; ++chunk)
    placement.positionOf.push_back(positions - 1 - placement.positionOf[chunk]);
  return placement;
}
