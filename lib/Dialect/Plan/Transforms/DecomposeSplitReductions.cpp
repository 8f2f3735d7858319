#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"

namespace windlass::plan {
#define GEN_PASS_DEF_DECOMPOSESPLITREDUCTIONS
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace windlass::plan

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

struct DecomposeSplitReductions : windlass::plan::impl::DecomposeSplitReductionsBase<DecomposeSplitReductions> {
  using DecomposeSplitReductionsBase::DecomposeSplitReductionsBase;

  void runOnOperation() override {
    mesh = getOperation()->getAttrOfType<MeshAttr>(kMeshAttr);
    if (!mesh) {
      getOperation().emitError("has no plan.mesh: apply a strategy or a plan first");
      return signalPassFailure();
    }
    for (func::FuncOp function : getPlannedFunctions(getOperation()))
      for (auto sum : llvm::make_early_inc_range(function.getOps<train::AccumulateOp>()))
        if (failed(decompose(sum)))
          return signalPassFailure();
  }

  /// Adds up terms that are partial over the same axes before they are reduced: one reduction instead of one per term.
  LogicalResult decompose(train::AccumulateOp sum) {
    struct Group {
      ArrayRef<UnreducedAttr> unreduced;
      SmallVector<Value> terms;
    };
    SmallVector<Group, 2> groups;
    for (Value term : sum.getInputs()) {
      LayoutAttr layout = getLayout(term);
      if (!layout)
        return sum.emitOpError("takes a value without a layout");
      Group *group = llvm::find_if(groups, [&](const Group &g) { return g.unreduced == layout.getUnreduced(); });
      if (group == groups.end()) {
        groups.push_back({layout.getUnreduced(), {}});
        group = std::prev(groups.end());
      }
      group->terms.push_back(term);
    }
    if (groups.size() < 2)
      return success();
    OpBuilder builder(sum);
    SmallVector<Value> terms;
    for (auto [i, group] : llvm::enumerate(groups)) {
      if (group.unreduced.empty() || group.terms.size() == 1) {
        llvm::append_range(terms, group.terms);
        continue;
      }
      auto partial = train::AccumulateOp::create(builder, sum.getLoc(), sum.getType(), group.terms);
      partial->setDiscardableAttrs(sum->getDiscardableAttrDictionary());
      if (auto id = sum->getAttrOfType<StringAttr>(train::kIdAttr))
        partial->setAttr(train::kIdAttr, builder.getStringAttr(id.getValue() + ".partial." + Twine(i)));
      SmallVector<LayoutAttr> available;
      for (Value term : group.terms)
        available.push_back(getLayout(term));
      FailureOr<OpLayouts> layouts = inferLayouts(partial, available, mesh);
      if (failed(layouts))
        return failure();
      setLayouts(partial, layouts->results);
      terms.push_back(partial.getResult());
    }
    sum.getInputsMutable().assign(terms);
    return success();
  }

  MeshAttr mesh;
};

} // namespace
