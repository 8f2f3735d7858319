// The published schedules by name. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_NAMEDSCHEDULES_H
#define WINDLASS_SCHEDULE_NAMEDSCHEDULES_H

#include "windlass/Schedule/Pipeline.h"

namespace windlass::schedule {

/// How chunks lie on positions; each but the linear one takes any number of chunks per position.
enum class PlacementKind { Linear, Looped, Wave, Bidirectional };

/// All kinds of placements, in the order of their numbers.
constexpr PlacementKind kPlacementKinds[] = {PlacementKind::Linear, PlacementKind::Looped, PlacementKind::Wave,
                                             PlacementKind::Bidirectional};

/// Returns the word for the kind in texts, such as `looped`.
llvm::StringRef getName(PlacementKind kind);
/// Returns the kind of that name; nothing where there is none.
std::optional<PlacementKind> findPlacementKind(llvm::StringRef name);
/// Makes the placement; one with several chunks per position that is linear is blocked. A bidirectional one has the
/// chunks per position in each of its two directions.
Placement makePlacement(PlacementKind kind, int64_t positions, int64_t chunksPerPosition);

/// A published schedule.
struct NamedSchedule {
  llvm::StringRef name;
  /// One line for people.
  llvm::StringRef summary;
  PlacementKind placement;
  /// The least number of chunks per position, in each direction where there are two; and whether there may be more.
  int64_t chunksPerPosition;
  bool takesMoreChunks;
  /// Whether backwards are an input gradient and a weight gradient.
  bool isSplit;
  /// Returns whether there is such a schedule with that many chunks per position in each direction.
  bool hasChunks(int64_t count) const {
    return count == chunksPerPosition || (takesMoreChunks && count > chunksPerPosition);
  }
  /// Makes the schedule of `microBatches` micro-batches in each direction.
  llvm::Expected<Pipeline> (*make)(int64_t positions, int64_t chunksPerPosition, int64_t microBatches);
};

/// Lists the published schedules.
llvm::ArrayRef<NamedSchedule> getNamedSchedules();

/// Lists the published schedules of a placement, without those that split backwards unless `isSplit`.
std::vector<const NamedSchedule *> findNamedSchedules(const Placement &placement, bool isSplit);

/// Returns the schedule of that name; null where there is none.
const NamedSchedule *findNamedSchedule(llvm::StringRef name);

} // namespace windlass::schedule

#endif
