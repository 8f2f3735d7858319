// Whether the collectives of all ranks meet. Plain C++: tables in, a verdict out, no IR.
#ifndef WINDLASS_SCHEDULE_COLLECTIVEORDER_H
#define WINDLASS_SCHEDULE_COLLECTIVEORDER_H

#include <cstdint>
#include <string>
#include <vector>

namespace windlass::schedule {

/// A collective as one rank issues it.
struct CollectiveCall {
  /// The index of the set of ranks that take part; the issuing rank is one of them.
  size_t group;
  /// The index of what must be equal on all members: kind, reduction, size.
  size_t signature;
};

/// What all ranks issue. Sets of ranks and signatures are held once, however many ranks refer to them.
struct CollectiveTables {
  /// The ranks of one communicator, increasing.
  std::vector<std::vector<int64_t>> groups;
  std::vector<std::string> signatures;
  /// The calls of each rank in the order of its issue thread, over all its communicators.
  std::vector<std::vector<CollectiveCall>> calls;
};

/// Replays the tables with one issue thread per rank that blocks in each call until all members are in it. Returns an
/// empty text when every thread ends, else what holds them. Takes time in proportion to the number of calls.
std::string replayCollectives(const CollectiveTables &tables);

} // namespace windlass::schedule

#endif
