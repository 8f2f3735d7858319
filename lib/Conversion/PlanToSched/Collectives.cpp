#include "Lowering.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;
using plan::LayoutAttr;
using plan::MeshAttr;

using Axes = SmallVector<StringAttr, 2>;

/// Axes of a dim whose parts are contiguous blocks of it, outermost first; nothing where a minor factor is split.
static std::optional<Axes> getBlockAxes(plan::DimLayoutAttr dim, MeshAttr mesh) {
  std::optional<plan::Digits> digits = plan::getDigits(dim, mesh);
  if (!digits)
    return std::nullopt;
  Axes axes;
  bool local = false;
  for (const plan::Digit &digit : *digits) {
    if (digit.axis && local)
      return std::nullopt;
    if (digit.axis)
      axes.push_back(digit.axis);
    else
      local = true;
  }
  return axes;
}

static int64_t getMembers(ArrayRef<StringAttr> axes, MeshAttr mesh) {
  int64_t members = 1;
  for (StringAttr axis : axes)
    members *= mesh.sizeOf(axis.getValue());
  return members;
}

static ArrayAttr toAttribute(ArrayRef<StringAttr> axes, Builder &builder) {
  return builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
}

/// The type with one dim made `factor` times larger or smaller.
static RankedTensorType scaleDim(Type type, int64_t dim, int64_t multiply, int64_t divide) {
  auto tensor = llvm::cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = shape[dim] * multiply / divide;
  return RankedTensorType::get(shape, tensor.getElementType());
}

FailureOr<Value> sched::lowerReshard(OpBuilder &builder, Location loc, Value part, RankedTensorType global,
                                     LayoutAttr from, LayoutAttr to, MeshAttr mesh) {
  if (from.getMemory() != to.getMemory())
    return emitError(loc) << "cannot move a value from " << from << " to " << to << ": offload is not available yet";
  unsigned rank = global.getRank();
  SmallVector<Axes> lose(rank), gain(rank);
  for (unsigned dim = 0; dim < rank; ++dim) {
    std::optional<plan::Digits> digitsFrom = plan::getDigits(from.getDims()[dim], mesh);
    std::optional<plan::Digits> digitsTo = plan::getDigits(to.getDims()[dim], mesh);
    if (digitsFrom && digitsTo && *digitsFrom == *digitsTo)
      continue;
    std::optional<Axes> axesFrom = getBlockAxes(from.getDims()[dim], mesh);
    std::optional<Axes> axesTo = getBlockAxes(to.getDims()[dim], mesh);
    if (!axesFrom || !axesTo)
      return emitError(loc) << "cannot reshard dim " << dim << " from " << from << " to " << to
                            << ": moving parts of a minor factor is not available yet";
    size_t common = 0;
    while (common < axesFrom->size() && common < axesTo->size() && (*axesFrom)[common] == (*axesTo)[common])
      ++common;
    lose[dim].assign(axesFrom->begin() + common, axesFrom->end());
    gain[dim].assign(axesTo->begin() + common, axesTo->end());
  }

  // Sums over members come first, by kind; scattered at once where a dim becomes split over just these axes.
  for (plan::UnreducedAttr unreduced : to.getUnreduced())
    if (!llvm::is_contained(from.getUnreduced(), unreduced))
      return emitError(loc) << "cannot reshard from " << from << " to " << to
                            << ": a whole value has no partial sums over " << unreduced.getAxis();
  for (auto kind : {train::ReductionKind::sum, train::ReductionKind::max, train::ReductionKind::min}) {
    Axes reduce;
    for (plan::UnreducedAttr unreduced : from.getUnreduced())
      if (unreduced.getKind() == kind && !llvm::is_contained(to.getUnreduced(), unreduced))
        reduce.push_back(unreduced.getAxis());
    if (reduce.empty())
      continue;
    auto *scattered = llvm::find_if(gain, [&](const Axes &axes) { return axes == reduce; });
    if (kind == train::ReductionKind::sum && scattered != gain.end() && lose[scattered - gain.begin()].empty()) {
      int64_t dim = scattered - gain.begin();
      part = ReduceScatterOp::create(builder, loc, scaleDim(part.getType(), dim, 1, getMembers(reduce, mesh)), part,
                                     dim, toAttribute(reduce, builder));
      gain[dim].clear();
    } else {
      part = AllReduceOp::create(builder, loc, TypeRange(part.getType()), ValueRange(part),
                                 toAttribute(reduce, builder), kind)
                 .getResult(0);
    }
  }

  // One dim that hands its axes to another is an exchange.
  for (unsigned i = 0; i < rank; ++i)
    for (unsigned j = 0; j < rank; ++j)
      if (i != j && !lose[i].empty() && lose[i] == gain[j] && gain[i].empty() && lose[j].empty()) {
        int64_t members = getMembers(lose[i], mesh);
        Type type = scaleDim(scaleDim(part.getType(), i, members, 1), j, 1, members);
        part = AllToAllOp::create(builder, loc, type, part, j, i, toAttribute(lose[i], builder));
        lose[i].clear();
        gain[j].clear();
      }
  for (unsigned dim = 0; dim < rank; ++dim)
    if (!lose[dim].empty())
      part = AllGatherOp::create(builder, loc, scaleDim(part.getType(), dim, getMembers(lose[dim], mesh), 1), part, dim,
                                 toAttribute(lose[dim], builder));
  for (unsigned dim = 0; dim < rank; ++dim)
    if (!gain[dim].empty())
      part = OwnPartOp::create(builder, loc, scaleDim(part.getType(), dim, 1, getMembers(gain[dim], mesh)), part, dim,
                               toAttribute(gain[dim], builder));
  return part;
}
