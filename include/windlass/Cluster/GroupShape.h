// Which devices the members of a communicator are. No MLIR.
#ifndef WINDLASS_CLUSTER_GROUPSHAPE_H
#define WINDLASS_CLUSTER_GROUPSHAPE_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace windlass {

/// The ranks of one group of a mesh: those that differ along some of its axes only. All groups along the same axes have
/// the same shape.
struct GroupShape {
  /// `size` ranks, each `stride` ranks after the one before.
  struct Axis {
    int64_t stride = 1, size = 1;
  };
  /// The axes, the one with the smallest stride first.
  llvm::SmallVector<Axis, 3> axes;

  /// Returns the shape of `members` consecutive ranks.
  static GroupShape ofNeighbours(int64_t members);

  int64_t getMembers() const;
  /// Returns the most members within a run of `devices` consecutive ranks that begins at a multiple of their number.
  int64_t getMembersWithin(int64_t devices) const;
  /// Returns the fewest consecutive ranks, beginning at a multiple of their number, that hold all members of a group.
  int64_t getSpan() const;
};

} // namespace windlass

#endif
