// Whether the collectives of all ranks meet. Plain C++: tables in, a verdict out, no IR.
#ifndef WINDLASS_DIALECT_SCHED_TRANSFORMS_COLLECTIVEORDER_H
#define WINDLASS_DIALECT_SCHED_TRANSFORMS_COLLECTIVEORDER_H

#include <cstdint>
#include <string>
#include <vector>

namespace windlass::sched {

/// A collective as one rank issues it.
struct CollectiveCall {
  /// Ranks that take part, increasing; the issuing rank is one of them.
  std::vector<int64_t> members;
  /// What must be equal on all members: kind, reduction, size.
  std::string signature;
};

/// Calls of one rank in the order of its issue thread, over all its communicators.
using CollectiveTable = std::vector<CollectiveCall>;

/// Replays the tables with one issue thread per rank that blocks in each call until all members are in it. Returns an
/// empty text when every thread ends, else what holds them.
std::string replayCollectives(const std::vector<CollectiveTable> &tables);

} // namespace windlass::sched

#endif
