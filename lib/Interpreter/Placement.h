// Which part of a value each rank holds under a layout.
#ifndef WINDLASS_LIB_INTERPRETER_PLACEMENT_H
#define WINDLASS_LIB_INTERPRETER_PLACEMENT_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Interpreter/Tensor.h"

#include "llvm/Support/Error.h"

namespace windlass::interpreter {

/// A tensor per rank of the mesh.
using RankValues = llvm::SmallVector<Tensor, 1>;

/// A layout applied to a shape on a mesh.
class Placement {
public:
  /// Fails where the layout does not fit the shape or an axis does not divide its factor.
  static llvm::Expected<Placement> create(plan::LayoutAttr layout, plan::MeshAttr mesh, llvm::ArrayRef<int64_t> shape);

  /// Returns the part of `rank`. For a value that is unreduced over an axis, the axis' first member holds all, and the
  /// others hold what changes nothing (0 for a sum).
  Tensor cut(const Tensor &whole, int64_t rank) const;

  /// Returns the whole value from the parts of `ranks`, with unreduced parts combined in the order of their
  /// coordinates. Fails where two ranks that should hold the same elements differ, an element is held by none, or the
  /// padding of a range of a flat part is not zero.
  llvm::Expected<Tensor> assemble(llvm::ArrayRef<Tensor> parts, llvm::ArrayRef<int64_t> ranks) const;

  /// Returns whether every rank holds the same part under both placements.
  bool isSameAs(const Placement &other) const;

private:
  /// Calls `visit(local offset, whole offset)` for every element of the rank's part, in order.
  template <class Visit> void forEachElement(int64_t rank, Visit visit) const;
  llvm::SmallVector<int64_t> getLocalShape(int64_t rank) const;

  plan::LayoutAttr layout;
  plan::MeshAttr mesh;
  llvm::SmallVector<int64_t> shape;
  /// By [rank][dim]: for every index of the local dim, the index of the whole dim.
  std::vector<llvm::SmallVector<llvm::SmallVector<int64_t>>> indices;
  /// The number of elements of a range of the flattened dims (0: nothing is flattened), and by [rank] the number of its
  /// range.
  int64_t range = 0;
  llvm::SmallVector<int64_t> rangeOfRank;
  /// By [rank]: the coordinates on the unreduced axes as one number.
  llvm::SmallVector<int64_t> unreducedPart;
  int64_t unreducedParts = 1;
};

/// Returns the ranks of each data-parallel replica, by its coordinates on the mesh's replica axes in row-major order.
std::vector<llvm::SmallVector<int64_t>> getReplicas(plan::MeshAttr mesh);
/// Returns all ranks, as one group.
std::vector<llvm::SmallVector<int64_t>> getEveryone(plan::MeshAttr mesh);

} // namespace windlass::interpreter

#endif
