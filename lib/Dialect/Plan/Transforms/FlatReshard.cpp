// Ranges of one layout are no unions of another's, so a reshard goes through the local slices that the dims' splits
// give: ranges are gathered, the dims resharded, and ranges cut anew. Partial sums are added where that is cheapest:
// while the part is a range, between the dims' reshards, or by the scatter that cuts the ranges.
#include "FlatReshard.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;
using Kind = ReshardStep::Kind;

/// The most sums for which all choices between early and late are tried.
static constexpr unsigned kMaxTriedSums = 4;

static ReshardStep makeStep(Kind kind, ArrayRef<int64_t> shape) {
  ReshardStep step{kind, {}, 1, {}, -1, -1, train::ReductionKind::sum, {}, 0};
  step.shape.assign(shape.begin(), shape.end());
  return step;
}

namespace {

class FlatPlanner {
public:
  FlatPlanner(ArrayRef<int64_t> shape, LayoutAttr from, LayoutAttr to, MeshAttr mesh)
      : shape(shape), from(from), to(to), mesh(mesh), fromAxes(getFlatAxes(from, mesh)), toAxes(getFlatAxes(to, mesh)) {
    for (UnreducedAttr unreduced : from.getUnreduced())
      if (mesh.sizeOf(unreduced.getAxis().getValue()) > 1 && !llvm::is_contained(to.getUnreduced(), unreduced))
        added.push_back(unreduced);
  }

  llvm::Expected<ReshardPlan> run() {
    if (haveSameParts(from.withUnreduced({}), to.withUnreduced({}), mesh)) {
      ReshardPlan plan;
      if (llvm::Error error = reduceRange(plan, to.getUnreduced()))
        return std::move(error);
      return plan;
    }
    std::optional<ReshardPlan> best;
    // A bit for each sum: whether it is left to later steps.
    unsigned all = (1u << std::min<size_t>(added.size(), kMaxTriedSums)) - 1;
    for (unsigned late = 0; late <= all; ++late) {
      SmallVector<UnreducedAttr> kept(to.getUnreduced());
      for (auto [i, sum] : llvm::enumerate(added))
        if (i >= kMaxTriedSums || (late >> i & 1))
          kept.push_back(sum);
      llvm::Expected<ReshardPlan> plan = keep(kept);
      if (!plan)
        return plan;
      if (!best ||
          std::tuple(plan->sentElements, plan->steps.size()) < std::tuple(best->sentElements, best->steps.size()))
        best = std::move(*plan);
    }
    return std::move(*best);
  }

private:
  int64_t getMembers(ArrayRef<StringAttr> axes) const {
    int64_t members = 1;
    for (StringAttr axis : axes)
      members *= mesh.sizeOf(axis.getValue());
    return members;
  }

  /// Returns the number of elements of a rank's local slice.
  int64_t getElements(LayoutAttr layout) const {
    return layout.getLocalType(RankedTensorType::get(shape, IntegerType::get(mesh.getContext(), 8)), mesh)
        .getNumElements();
  }

  static void append(ReshardPlan &plan, ReshardStep step, double sent, int64_t transient) {
    plan.steps.push_back(std::move(step));
    plan.sentElements += sent;
    plan.transientElements = std::max(plan.transientElements, transient);
  }

  static llvm::Error append(ReshardPlan &plan, llvm::Expected<ReshardPlan> other) {
    if (!other)
      return other.takeError();
    plan.steps.append(std::make_move_iterator(other->steps.begin()), std::make_move_iterator(other->steps.end()));
    plan.sentElements += other->sentElements;
    plan.transientElements = std::max(plan.transientElements, other->transientElements);
    return llvm::Error::success();
  }

  /// Combines the members' ranges of `from` until only `kept` are partial.
  llvm::Error reduceRange(ReshardPlan &plan, ArrayRef<UnreducedAttr> kept) {
    int64_t elements = getElements(from);
    auto whole = LayoutAttr::getWhole(RankedTensorType::get({elements}, IntegerType::get(mesh.getContext(), 8)));
    return append(plan,
                  planReshard({elements}, whole.withUnreduced(from.getUnreduced()), whole.withUnreduced(kept), mesh));
  }

  /// Returns the reshard that stays partial over `kept` up to its end, or up to where the dims are resharded.
  llvm::Expected<ReshardPlan> keep(ArrayRef<UnreducedAttr> kept) {
    ReshardPlan plan;
    LayoutAttr before = from.withFlat({});
    if (!fromAxes.empty()) {
      if (llvm::Error error = reduceRange(plan, kept))
        return std::move(error);
      before = before.withUnreduced(kept);
      gather(plan, getElements(before));
    }
    // Sums that a scatter will add stay partial; the others are added with the dims' reshards.
    SmallVector<UnreducedAttr> scattered(to.getUnreduced());
    llvm::copy_if(kept, std::back_inserter(scattered), [&](UnreducedAttr sum) { return isScattered(sum); });
    LayoutAttr after = to.withFlat({}).withUnreduced(scattered);
    if (llvm::Error error = append(plan, planReshard(shape, before, after, mesh)))
      return std::move(error);
    if (!toAxes.empty())
      cutRanges(plan, after);
    return plan;
  }

  bool isScattered(UnreducedAttr unreduced) const {
    return unreduced.getKind() == train::ReductionKind::sum && llvm::is_contained(toAxes, unreduced.getAxis()) &&
           llvm::is_contained(added, unreduced);
  }

  void gather(ReshardPlan &plan, int64_t elements) {
    int64_t range = getElements(from), members = getMembers(fromAxes);
    // Parts of dims are gathered along dim 1 too, so that one unit may have both.
    ReshardStep step = makeStep(Kind::AllGather, {1, 1, range});
    step.axes.assign(fromAxes.begin(), fromAxes.end());
    step.members = members;
    step.join = 1;
    append(plan, std::move(step), double(members - 1) * range, members * range);
    if (members * range == elements)
      return;
    ReshardStep trim = makeStep(Kind::Trim, {members * range});
    trim.elements = elements;
    append(plan, std::move(trim), 0, members * range);
  }

  /// Cuts ranges from the local slices of `layout`, slices first, so that less is left to scatter.
  void cutRanges(ReshardPlan &plan, LayoutAttr layout) {
    int64_t elements = getElements(layout), range = llvm::divideCeil(elements, getMembers(toAxes));
    int64_t padded = range * getMembers(toAxes);
    if (padded != elements) {
      ReshardStep pad = makeStep(Kind::Pad, {elements});
      pad.elements = padded;
      append(plan, std::move(pad), 0, padded);
    }
    SmallVector<int64_t> sizes;
    SmallVector<bool> isSum;
    for (StringAttr axis : toAxes) {
      sizes.push_back(mesh.sizeOf(axis.getValue()));
      isSum.push_back(llvm::any_of(layout.getUnreduced(), [&](UnreducedAttr sum) { return sum.getAxis() == axis; }));
    }
    auto product = [&](size_t begin, size_t end) {
      int64_t result = 1;
      for (size_t i = begin; i < end; ++i)
        result *= sizes[i];
      return result;
    };
    for (bool scatters : {false, true})
      for (size_t begin = 0, end = 0; begin < toAxes.size(); begin = end) {
        for (end = begin + 1; end < toAxes.size() && isSum[end] == isSum[begin];)
          ++end;
        if (isSum[begin] != scatters)
          continue;
        int64_t members = product(begin, end), held = product(0, toAxes.size()) * range;
        ReshardStep step = makeStep(scatters ? Kind::ReduceScatter : Kind::Slice,
                                    {product(0, begin), members, product(end, toAxes.size()) * range});
        step.axes.assign(toAxes.begin() + begin, toAxes.begin() + end);
        step.members = members;
        step.cut = 1;
        append(plan, std::move(step), scatters ? double(members - 1) / members * held : 0, held / members);
        std::fill(sizes.begin() + begin, sizes.begin() + end, 1);
      }
  }

  ArrayRef<int64_t> shape;
  LayoutAttr from, to;
  MeshAttr mesh;
  SmallVector<StringAttr> fromAxes, toAxes;
  /// The partial sums that must be combined.
  SmallVector<UnreducedAttr> added;
};

} // namespace

llvm::Expected<ReshardPlan> plan::planFlatReshard(ArrayRef<int64_t> shape, LayoutAttr from, LayoutAttr to,
                                                  MeshAttr mesh) {
  return FlatPlanner(shape, from, to, mesh).run();
}
