#include "Placement.h"

#include "llvm/Support/MathExtras.h"

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
    if (int64_t parts = layout.getFlatParts(mesh); parts > 1) {
      int64_t elements = 1, part = 0;
      for (const SmallVector<int64_t> &ofDim : ofDims)
        elements *= ofDim.size();
      for (StringAttr axis : layout.getFlat()) {
        int64_t index = mesh.indexOf(axis.getValue());
        if (index < 0)
          return fail("the mesh has no axis '" + axis.getValue() + "'");
        part = part * mesh.getAxes()[index].getSize() + coordinates[index];
      }
      placement.range = llvm::divideCeil(elements, parts);
      placement.rangeOfRank.push_back(part);
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

template <class Visit> void Placement::forEachElement(int64_t rank, Visit visit) const {
  const SmallVector<SmallVector<int64_t>> &own = indices[rank];
  SmallVector<int64_t, 4> strides = denseStrides(shape, 1);
  int64_t count = 1;
  for (const SmallVector<int64_t> &dim : own)
    count *= dim.size();
  int64_t begin = range > 0 ? range * rangeOfRank[rank] : 0, end = range > 0 ? std::min(count, begin + range) : count;
  SmallVector<int64_t> index(own.size(), 0);
  for (int64_t local = 0; local < end; ++local) {
    int64_t whole = 0;
    for (size_t dim = 0; dim < own.size(); ++dim)
      whole += own[dim][index[dim]] * strides[dim];
    if (local >= begin)
      visit(local - begin, whole);
    for (size_t dim = own.size(); dim-- > 0;) {
      if (++index[dim] < static_cast<int64_t>(own[dim].size()))
        break;
      index[dim] = 0;
    }
  }
}

SmallVector<int64_t> Placement::getLocalShape(int64_t rank) const {
  if (range > 0)
    return {range};
  SmallVector<int64_t> local;
  for (const SmallVector<int64_t> &dim : indices[rank])
    local.push_back(dim.size());
  return local;
}

/// Returns the neutral element of a reduction.
static double neutralOf(ReductionKind kind) {
  double infinity = std::numeric_limits<double>::infinity();
  return kind == ReductionKind::sum ? 0 : kind == ReductionKind::max ? -infinity : infinity;
}

Tensor Placement::cut(const Tensor &whole, int64_t rank) const {
  SmallVector<int64_t> part = getLocalShape(rank);
  if (unreducedPart[rank] != 0)
    return Tensor::filled(whole.getKind(), part, neutralOf(layout.getUnreduced().front().getKind()));
  if (range == 0 && ArrayRef<int64_t>(part) == whole.getShape())
    return whole;
  Tensor result = Tensor::filled(whole.getKind(), part, 0);
  int64_t bytes = bytesOf(whole.getKind());
  std::byte *to = result.mutableData();
  forEachElement(rank, [&](int64_t local, int64_t global) {
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
      if (own.getShape() != ArrayRef<int64_t>(getLocalShape(rank)))
        return fail("rank " + Twine(rank) + " holds a part of another shape than its layout gives");
      int64_t differs = -1, held = 0;
      forEachElement(rank, [&](int64_t local, int64_t global) {
        held = local + 1;
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
      for (int64_t i = held; i < own.getElements(); ++i)
        if (own.at(i) != 0)
          return fail("rank " + Twine(rank) + " holds " + std::to_string(own.at(i)) + " where its range is filled up");
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
  return shape == other.shape && indices == other.indices && range == other.range && rangeOfRank == other.rangeOfRank &&
         unreducedPart == other.unreducedPart && unreducedParts == other.unreducedParts;
}

std::vector<SmallVector<int64_t>> windlass::interpreter::getEveryone(MeshAttr mesh) {
  return {llvm::to_vector(llvm::seq<int64_t>(0, mesh.getRanks()))};
}

std::vector<SmallVector<int64_t>> windlass::interpreter::getReplicas(MeshAttr mesh) {
  std::vector<SmallVector<int64_t>> replicas(mesh.sizeOf(plan::AxisRole::replica));
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
    int64_t replica = 0;
    for (auto [axis, coordinate] : llvm::zip_equal(mesh.getAxes(), mesh.coordinatesOf(rank)))
      if (axis.getRole() == plan::AxisRole::replica)
        replica = replica * axis.getSize() + coordinate;
    replicas[replica].push_back(rank);
  }
  return replicas;
}
