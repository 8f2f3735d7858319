// The cheapest sequence of collectives between two layouts of a value.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_RESHARDPLAN_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_RESHARDPLAN_H

#include "windlass/Cluster/GroupShape.h"
#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"

#include "llvm/Support/Error.h"

namespace windlass::plan {

/// One step of a reshard. It sees the rank's local slice, dense and row-major, as a tensor of `shape`.
struct ReshardStep {
  enum class Kind {
    AllReduce,     ///< combines the members' parts (`reduction`)
    ReduceScatter, ///< sums, and keeps the member's block of dim `cut`
    AllGather,     ///< joins the members' parts along dim `join`
    AllToAll,      ///< cuts along `cut`, exchanges, joins along `join`
    Slice,         ///< keeps the member's block of dim `cut`; moves nothing between devices
    Permute,       ///< each member sends its part to member `destinations[i]`
    Pad,           ///< fills the part with zeros to `elements`; moves nothing between devices
    Trim,          ///< keeps the first `elements` of the part; moves nothing between devices
  };
  Kind kind;
  /// Members are numbered by their coordinates on these axes, the first outermost.
  llvm::SmallVector<mlir::StringAttr, 2> axes;
  int64_t members = 1;
  llvm::SmallVector<int64_t, 5> shape;
  int64_t cut = -1, join = -1;
  train::ReductionKind reduction = train::ReductionKind::sum;
  llvm::SmallVector<int64_t> destinations;
  int64_t elements = 0;
};

struct ReshardPlan {
  llvm::SmallVector<ReshardStep, 2> steps;
  /// The number of elements that a rank sends when collectives run as rings: all-reduce 2(n-1)/n of the payload,
  /// gathers, scatters and exchanges (n-1)/n of the larger side, a permutation all of it. (Thakur, Rabenseifner, Gropp:
  /// Optimization of Collective Communication Operations in MPICH, 2005.)
  double sentElements = 0;
  /// The largest number of elements that a step holds besides its operand.
  int64_t transientElements = 0;
};

/// Returns the shape of the groups of ranks that differ along `axes` only.
GroupShape getGroup(MeshAttr mesh, llvm::ArrayRef<mlir::StringAttr> axes);

/// Returns the cheapest sequence of steps from layout `from` to layout `to` of a value of global shape `shape`. Fails,
/// with the rule that is broken, where `to` is unreduced over an axis over which `from` is not, or by another
/// reduction, or where the memory kinds differ. Layouts must fit `shape` and the mesh.
llvm::Expected<ReshardPlan> planReshard(llvm::ArrayRef<int64_t> shape, LayoutAttr from, LayoutAttr to, MeshAttr mesh);

} // namespace windlass::plan

#endif
