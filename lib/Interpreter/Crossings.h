// Collectives over several positions, which take place once all of these have come to them.
#ifndef WINDLASS_LIB_INTERPRETER_CROSSINGS_H
#define WINDLASS_LIB_INTERPRETER_CROSSINGS_H

#include "Placement.h"

#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace windlass::interpreter {

/// Lets the n-th collective over some positions in each of them meet the n-th over the same positions in the others.
class Crossings {
public:
  /// Takes part, with the values of the ranks of `position`, in its next collective over `positions`, of which it is
  /// one: returns the values of all of these, in their order, or nothing where one of them has not come to it. It is
  /// then called again with the same values.
  std::optional<std::vector<RankValues>> meet(llvm::ArrayRef<int64_t> positions, int64_t position,
                                              const RankValues &own);

private:
  /// The collectives over some positions.
  struct Group {
    /// For each position, what it has given to collectives that some position has not left.
    std::vector<std::deque<RankValues>> given;
    /// For each position, the number of collectives that it has left, and of those that are in `given` no more.
    std::vector<size_t> left;
    size_t dropped = 0;
  };

  std::map<std::vector<int64_t>, Group> groups;
};

} // namespace windlass::interpreter

#endif
