#include "Placement.h"

#include <cstring>
#include <limits>

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;
using windlass::plan::LayoutAttr;
using windlass::plan::MeshAttr;
using windlass::train::ReductionKind;

llvm::Expected<Placement> Placement::create(LayoutAttr layout, MeshAttr mesh, ArrayRef<int64_t> shape) {
  auto fail = [](const Twine &text) { return llvm::createStringError(text); };
  if (layout.getDims().size() != shape.size())
    return fail("a layout of " + Twine(layout.getDims().size()) + " dims meets a value of " + Twine(shape.size()));
  Placement placement;
  placement.layout = layout;
  placement.mesh = mesh;
  placement.shape.assign(shape.begin(), shape.end());
  for (plan::UnreducedAttr unreduced : layout.getUnreduced()) {
    if (mesh.indexOf(unreduced.getAxis().getValue()) < 0)
      return fail("the mesh has no axis '" + unreduced.getAxis().getValue() + "'");
    if (unreduced.getKind() != layout.getUnreduced().front().getKind())
      return fail("a value is unreduced in two ways at once");
    placement.unreducedParts *= mesh.sizeOf(unreduced.getAxis().getValue());
  }
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
    SmallVector<int64_t> coordinates = mesh.coordinatesOf(rank);
    SmallVector<SmallVector<int64_t>> ofDims;
    for (auto [size, dim] : llvm::zip_equal(shape, layout.getDims())) {
      SmallVector<int64_t> ofDim = {0};
      int64_t product = 1;
      for (plan::FactorLayoutAttr factor : dim.getFactors()) {
        int64_t parts = 1, part = 0;
        for (StringAttr axis : factor.getAxes()) {
          int64_t index = mesh.indexOf(axis.getValue());
          if (index < 0)
            return fail("the mesh has no axis '" + axis.getValue() + "'");
          parts *= mesh.getAxes()[index].getSize();
          part = part * mesh.getAxes()[index].getSize() + coordinates[index];
        }
        if (factor.getSize() % parts)
          return fail(Twine(parts) + " parts do not divide a factor of " + Twine(factor.getSize()));
        int64_t local = factor.getSize() / parts;
        SmallVector<int64_t> refined;
        for (int64_t index : ofDim)
          for (int64_t i = 0; i < local; ++i)
            refined.push_back(index * factor.getSize() + part * local + i);
        ofDim = std::move(refined);
        product *= factor.getSize();
      }
      if (product != size)
        return fail("factors of a dim multiply to " + Twine(product) + " but the dim has size " + Twine(size));
      ofDims.push_back(std::move(ofDim));
    }
    placement.indices.push_back(std::move(ofDims));
    int64_t part = 0;
    for (plan::UnreducedAttr unreduced : layout.getUnreduced()) {
      int64_t index = mesh.indexOf(unreduced.getAxis().getValue());
      part = part * mesh.getAxes()[index].getSize() + coordinates[index];
    }
    placement.unreducedPart.push_back(part);
  }
  return placement;
}

/// Calls `visit(local offset, whole offset)` for every element of a part.
template <class Visit>
static void forEachElement(ArrayRef<SmallVector<int64_t>> indices, ArrayRef<int64_t> shape, Visit visit) {
  SmallVector<int64_t, 4> strides = denseStrides(shape, 1);
  int64_t count = 1;
  for (const SmallVector<int64_t> &dim : indices)
    count *= dim.size();
  SmallVector<int64_t> index(indices.size(), 0);
  for (int64_t local = 0; local < count; ++local) {
    int64_t whole = 0;
    for (size_t dim = 0; dim < indices.size(); ++dim)
      whole += indices[dim][index[dim]] * strides[dim];
    visit(local, whole);
    for (size_t dim = indices.size(); dim-- > 0;) {
      if (++index[dim] < static_cast<int64_t>(indices[dim].size()))
        break;
      index[dim] = 0;
    }
  }
}

static SmallVector<int64_t> localShape(ArrayRef<SmallVector<int64_t>> indices) {
  SmallVector<int64_t> shape;
  for (const SmallVector<int64_t> &dim : indices)
    shape.push_back(dim.size());
  return shape;
}

/// What a combination leaves unchanged.
static double neutralOf(ReductionKind kind) {
  double infinity = std::numeric_limits<double>::infinity();
  return kind == ReductionKind::sum ? 0 : kind == ReductionKind::max ? -infinity : infinity;
}

Tensor Placement::cut(const Tensor &whole, int64_t rank) const {
  SmallVector<int64_t> part = localShape(indices[rank]);
  if (unreducedPart[rank] != 0)
    return Tensor::filled(whole.getKind(), part, neutralOf(layout.getUnreduced().front().getKind()));
  if (ArrayRef<int64_t>(part) == whole.getShape())
    return whole;
  Tensor result(whole.getKind(), part);
  int64_t bytes = bytesOf(whole.getKind());
  std::byte *to = result.mutableData();
  forEachElement(indices[rank], shape, [&](int64_t local, int64_t global) {
    std::memcpy(to + local * bytes, whole.data() + global * bytes, bytes);
  });
  return result;
}

llvm::Expected<Tensor> Placement::assemble(ArrayRef<Tensor> parts, ArrayRef<int64_t> ranks) const {
  auto fail = [](const Twine &text) { return llvm::createStringError(text); };
  ElementKind kind = parts[ranks.front()].getKind();
  int64_t bytes = bytesOf(kind);
  std::optional<Tensor> result;
  for (int64_t part = 0; part < unreducedParts; ++part) {
    Tensor partial(kind, shape);
    std::vector<int64_t> holder(partial.getElements(), -1);
    std::byte *to = partial.mutableData();
    for (int64_t rank : ranks) {
      if (unreducedPart[rank] != part)
        continue;
      const Tensor &own = parts[rank];
      if (own.getShape() != ArrayRef<int64_t>(localShape(indices[rank])))
        return fail("rank " + Twine(rank) + " holds a part of another shape than its layout gives");
      int64_t differs = -1;
      forEachElement(indices[rank], shape, [&](int64_t local, int64_t global) {
        const std::byte *from = own.data() + local * bytes;
        if (holder[global] < 0)
          std::memcpy(to + global * bytes, from, bytes);
        else if (std::memcmp(to + global * bytes, from, bytes) != 0)
          differs = holder[global];
        holder[global] = rank;
      });
      if (differs >= 0)
        return fail("ranks " + Twine(differs) + " and " + Twine(rank) +
                    " hold different values where their layout makes them replicas");
    }
    if (llvm::is_contained(holder, -1))
      return fail("no rank holds some of the elements");
    if (!result) {
      result = std::move(partial);
      continue;
    }
    ReductionKind how = layout.getUnreduced().front().getKind();
    dispatch(kind, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, bool>)
        for (auto [all, one] : llvm::zip_equal(result->mutableValues<T>(), partial.values<T>()))
          all = how == ReductionKind::sum   ? all + one
                : how == ReductionKind::max ? std::max(all, one)
                                            : std::min(all, one);
    });
  }
  return *result;
}

bool Placement::isSameAs(const Placement &other) const {
  return shape == other.shape && indices == other.indices && unreducedPart == other.unreducedPart &&
         unreducedParts == other.unreducedParts;
}

std::vector<SmallVector<int64_t>> windlass::interpreter::groupsAlong(MeshAttr mesh, StringRef axis) {
  int64_t index = mesh.indexOf(axis);
  std::vector<SmallVector<int64_t>> groups(index < 0 ? 1 : mesh.getAxes()[index].getSize());
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
    groups[index < 0 ? 0 : mesh.coordinatesOf(rank)[index]].push_back(rank);
  return groups;
}
