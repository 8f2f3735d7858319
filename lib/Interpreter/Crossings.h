// Collectives over several positions, which take place once all positions have come to them.
#ifndef WINDLASS_LIB_INTERPRETER_CROSSINGS_H
#define WINDLASS_LIB_INTERPRETER_CROSSINGS_H

#include "Placement.h"

#include <deque>
#include <optional>
#include <vector>

namespace windlass::interpreter {

/// Lets the n-th collective over positions of each position meet the n-th of all others.
class Crossings {
public:
  explicit Crossings(size_t positions) : given(positions) {}

  /// Takes part, with the values of the position's ranks, in the position's next collective: returns those of all
  /// positions, in their order, or nothing where another position has not come to it. It is then called again with the
  /// same values.
  std::optional<std::vector<RankValues>> meet(size_t position, const RankValues &own);

private:
  /// For each position, what it has given to collectives that some position has not left.
  std::vector<std::deque<RankValues>> given;
  /// For each position, the number of collectives that it has left, and of those that are in `given` no more.
  std::vector<size_t> left;
  size_t dropped = 0;
};

} // namespace windlass::interpreter

#endif
