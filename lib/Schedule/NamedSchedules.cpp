#include "windlass/Schedule/NamedSchedules.h"

#include "windlass/Schedule/Generators.h"

#include "llvm/Support/ErrorHandling.h"

using namespace windlass::schedule;

llvm::StringRef windlass::schedule::getName(PlacementKind kind) {
  switch (kind) {
  case PlacementKind::Linear:
    return "linear";
  case PlacementKind::Looped:
    return "looped";
  case PlacementKind::Wave:
    return "wave";
  case PlacementKind::Bidirectional:
    return "bidirectional";
  }
  return "";
}

std::optional<PlacementKind> windlass::schedule::findPlacementKind(llvm::StringRef name) {
  for (PlacementKind kind : kPlacementKinds)
    if (name == getName(kind))
      return kind;
  return std::nullopt;
}

Placement windlass::schedule::makePlacement(PlacementKind kind, int64_t positions, int64_t chunksPerPosition) {
  switch (kind) {
  case PlacementKind::Linear:
    return makeBlockedPlacement(positions, chunksPerPosition);
  case PlacementKind::Looped:
    return makeLoopedPlacement(positions, chunksPerPosition);
  case PlacementKind::Wave:
    return makeWavePlacement(positions, chunksPerPosition);
  case PlacementKind::Bidirectional:
    return makeBidirectionalPlacement(positions, chunksPerPosition);
  }
  llvm_unreachable("covered switch");
}

/// Gives a schedule with a fixed number of chunks per position the form of the others.
template <llvm::Expected<Pipeline> (*make)(int64_t, int64_t)>
static llvm::Expected<Pipeline> makeFixed(int64_t positions, int64_t, int64_t microBatches) {
  return make(positions, microBatches);
}

llvm::ArrayRef<NamedSchedule> windlass::schedule::getNamedSchedules() {
  using Kind = PlacementKind;
  static const NamedSchedule schedules[] = {
      {"gpipe", "all forwards, then all backwards", Kind::Looped, 1, true, false, makeGPipe},
      {"breadth-first", "the same, backwards from the last micro-batch", Kind::Looped, 1, true, false,
       makeBreadthFirst},
      {"1f1b", "one forward, one backward after a warm-up", Kind::Linear, 1, true, false, make1F1B},
      {"interleaved", "1F1B with several chunks per rank that take turns", Kind::Looped, 2, true, false,
       makeInterleaved1F1B},
      {"interleaved-zero-bubble", "interleaved with split backwards", Kind::Looped, 1, true, true,
       makeInterleavedZeroBubble},
      {"zb1p", "split backwards, as many activations as 1F1B", Kind::Linear, 1, false, true,
       makeFixed<makeZeroBubble1>},
      {"zb2p", "split backwards, twice as many activations", Kind::Linear, 1, false, true, makeFixed<makeZeroBubble2>},
      {"zbv", "split backwards on a V, as many activations as 1F1B", Kind::Wave, 2, false, true,
       makeFixed<makeZeroBubbleV>},
      {"v-half", "split backwards on a V, half of the activations", Kind::Wave, 2, false, true, makeFixed<makeVHalf>},
      {"v-min", "split backwards on a V, a third of the activations", Kind::Wave, 2, false, true, makeFixed<makeVMin>},
      {"dualpipev", "forwards and backwards in pairs on a V", Kind::Wave, 2, false, true, makeFixed<makeDualPipeV>},
      {"hanayo", "waves, backwards first", Kind::Wave, 2, true, false, makeHanayo},
      {"chimera", "two directions, backwards first", Kind::Bidirectional, 1, false, false, makeFixed<makeChimera>},
      {"dualpipe", "two directions, forwards and backwards in pairs", Kind::Bidirectional, 1, false, true,
       makeFixed<makeDualPipe>},
  };
  return schedules;
}

std::vector<const NamedSchedule *> windlass::schedule::findNamedSchedules(const Placement &placement, bool isSplit) {
  std::vector<const NamedSchedule *> found;
  int64_t chunks = placement.countChunks() / placement.positions / static_cast<int64_t>(placement.chains.size());
  for (const NamedSchedule &each : getNamedSchedules())
    if (each.hasChunks(chunks) && (isSplit || !each.isSplit) &&
        makePlacement(each.placement, placement.positions, chunks) == placement)
      found.push_back(&each);
  return found;
}

const NamedSchedule *windlass::schedule::findNamedSchedule(llvm::StringRef name) {
  for (const NamedSchedule &each : getNamedSchedules())
    if (each.name == name)
      return &each;
  return nullptr;
}
