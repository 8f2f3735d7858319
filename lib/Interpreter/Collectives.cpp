#include "Collectives.h"

#include "windlass/Dialect/Sched/IR/PositionCollectives.h"
#include "windlass/rt/detail/row_routes.h"

#include <map>

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;
using windlass::train::ReductionKind;

std::optional<std::vector<SmallVector<int64_t>>> windlass::interpreter::communicatorsOver(plan::MeshAttr mesh,
                                                                                          ArrayAttr axes) {
  SmallVector<int64_t> indices;
  for (Attribute axis : axes) {
    auto name = llvm::dyn_cast<StringAttr>(axis);
    int64_t index = name ? mesh.indexOf(name.getValue()) : -1;
    if (index < 0)
      return std::nullopt;
    indices.push_back(index);
  }
  // Communicators by the coordinates on all other axes; within one, ranks by the coordinates on `axes` in their order.
  std::map<std::vector<int64_t>, std::map<std::vector<int64_t>, int64_t>> groups;
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
    std::vector<int64_t> others, own;
    SmallVector<int64_t> coordinates = mesh.coordinatesOf(rank);
    for (int64_t index : indices)
      own.push_back(coordinates[index]);
    for (auto [index, coordinate] : llvm::enumerate(coordinates))
      if (!llvm::is_contained(indices, static_cast<int64_t>(index)))
        others.push_back(coordinate);
    groups[others][own] = rank;
  }
  std::vector<SmallVector<int64_t>> result;
  for (auto &[others, members] : groups) {
    result.emplace_back();
    for (auto &[own, rank] : members)
      result.back().push_back(rank);
  }
  return result;
}

Tensor windlass::interpreter::sliceAlong(const Tensor &tensor, int64_t dim, int64_t start, int64_t size) {
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = size;
  Tensor result(tensor.getKind(), shape);
  int64_t bytes = bytesOf(tensor.getKind());
  SmallVector<int64_t, 4> strides = denseStrides(tensor.getShape(), bytes);
  copyElements(result.mutableData(), denseStrides(shape, bytes), tensor.data() + start * strides[dim], strides, shape,
               bytes);
  return result;
}

Tensor windlass::interpreter::joinAlong(ArrayRef<Tensor> tensors, int64_t dim) {
  SmallVector<int64_t> shape(tensors.front().getShape());
  shape[dim] = 0;
  for (const Tensor &tensor : tensors)
    shape[dim] += tensor.getShape()[dim];
  Tensor result(tensors.front().getKind(), shape);
  int64_t bytes = bytesOf(result.getKind()), start = 0;
  SmallVector<int64_t, 4> strides = denseStrides(shape, bytes);
  for (const Tensor &tensor : tensors) {
    copyElements(result.mutableData() + start * strides[dim], strides, tensor.data(),
                 denseStrides(tensor.getShape(), bytes), tensor.getShape(), bytes);
    start += tensor.getShape()[dim];
  }
  return result;
}

Tensor windlass::interpreter::combineAll(ArrayRef<Tensor> tensors, ReductionKind kind) {
  Tensor result = tensors.front();
  dispatch(result.getKind(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>) {
      MutableArrayRef<T> out = result.mutableValues<T>();
      for (const Tensor &tensor : tensors.drop_front())
        for (auto [all, one] : llvm::zip_equal(out, tensor.values<T>()))
          all = kind == ReductionKind::sum   ? all + one
                : kind == ReductionKind::max ? std::max(all, one)
                                             : std::min(all, one);
    }
  });
  return result;
}

SmallVector<Tensor> windlass::interpreter::allReduce(ArrayRef<Tensor> members, ReductionKind kind) {
  return SmallVector<Tensor>(members.size(), combineAll(members, kind));
}

SmallVector<Tensor> windlass::interpreter::allGather(ArrayRef<Tensor> members, int64_t dim) {
  return SmallVector<Tensor>(members.size(), joinAlong(members, dim));
}

SmallVector<Tensor> windlass::interpreter::reduceScatter(ArrayRef<Tensor> members, int64_t dim, ReductionKind kind) {
  return ownPart(SmallVector<Tensor>(members.size(), combineAll(members, kind)), dim);
}

/// Returns the rows of tokens that choose an expert of the member, and 0 for all others.
static Tensor maskRows(const Tensor &rows, const Tensor &choices, int64_t experts, int64_t members, int64_t member) {
  int64_t chosen = choices.getShape()[1], own = experts / members, columns = rows.getShape()[1];
  rt::detail::row_routes routes = {
      choices.values<int64_t>().data(), rows.getShape()[0] / members, chosen, own, columns, rt::element_type::f32};
  Tensor masked = rows;
  dispatchFloat(rows.getKind(), [&](auto zero) {
    auto values = masked.mutableValues<decltype(zero)>();
    for (int64_t token = 0; token < rows.getShape()[0]; ++token)
      if (!routes.reaches(token, static_cast<int32_t>(member)))
        llvm::fill(values.slice(token * columns, columns), zero);
  });
  return masked;
}

SmallVector<Tensor> windlass::interpreter::gatherRows(ArrayRef<Tensor> members, const Tensor &choices,
                                                      int64_t experts) {
  SmallVector<Tensor> results = allGather(members, 0);
  for (auto [member, result] : llvm::enumerate(results))
    result = maskRows(result, choices, experts, results.size(), member);
  return results;
}

SmallVector<Tensor> windlass::interpreter::scatterRows(ArrayRef<Tensor> members, const Tensor &choices,
                                                       int64_t experts) {
  SmallVector<Tensor> masked;
  for (auto [member, rows] : llvm::enumerate(members))
    masked.push_back(maskRows(rows, choices, experts, members.size(), member));
  return reduceScatter(masked, 0, train::ReductionKind::sum);
}

SmallVector<Tensor> windlass::interpreter::allToAll(ArrayRef<Tensor> members, int64_t splitDim, int64_t concatDim) {
  int64_t size = members.front().getShape()[splitDim] / static_cast<int64_t>(members.size());
  SmallVector<Tensor> results;
  for (size_t receiver = 0; receiver < members.size(); ++receiver) {
    SmallVector<Tensor> pieces;
    for (const Tensor &sender : members)
      pieces.push_back(sliceAlong(sender, splitDim, receiver * size, size));
    results.push_back(joinAlong(pieces, concatDim));
  }
  return results;
}

SmallVector<Tensor> windlass::interpreter::permute(ArrayRef<Tensor> members, ArrayRef<int64_t> destinations) {
  SmallVector<Tensor> results(members.begin(), members.end());
  for (auto [member, destination] : llvm::zip_equal(members, destinations))
    results[destination] = member;
  return results;
}

SmallVector<Tensor> windlass::interpreter::ownPart(ArrayRef<Tensor> members, int64_t dim) {
  int64_t size = members.front().getShape()[dim] / static_cast<int64_t>(members.size());
  SmallVector<Tensor> results;
  for (auto [i, member] : llvm::enumerate(members))
    results.push_back(sliceAlong(member, dim, i * size, size));
  return results;
}

FailureOr<RankValues> windlass::interpreter::allReduceOverPositions(Operation *op, plan::MeshAttr mesh, ArrayAttr axes,
                                                                    train::ReductionKind kind, Crossings &crossings,
                                                                    int64_t position, const RankValues &own) {
  auto communicators = communicatorsOver(mesh, axes);
  if (!communicators)
    return op->emitError("cannot be executed: the mesh ") << mesh << " has not all of the axes " << axes;
  ArrayRef<int64_t> positions = sched::getSpannedPositions(op).asArrayRef();
  if (!llvm::is_contained(positions, position))
    return op->emitError("cannot be executed: combines over positions among which its own, ") << position << ", is not";
  std::optional<std::vector<RankValues>> all = crossings.meet(positions, position, own);
  if (!all)
    return RankValues();
  for (auto [other, values] : llvm::zip_equal(positions, *all))
    if (values.size() != own.size() || values.front().getShape() != own.front().getShape())
      return op->emitError("cannot be executed: meets a collective over positions of other ranks or sizes in position ")
             << other;
  RankValues result(own.size());
  for (const SmallVector<int64_t> &members : *communicators) {
    SmallVector<Tensor> parts;
    for (const RankValues &values : *all)
      for (int64_t rank : members)
        parts.push_back(values[rank]);
    Tensor combined = combineAll(parts, kind);
    for (int64_t rank : members)
      result[rank] = combined;
  }
  return result;
}
