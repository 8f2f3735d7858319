#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Propagation.h"

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
    isPipeline = getOperation()->hasAttr(kPipelineAttr);
    for (func::FuncOp function : getPlannedFunctions(getOperation())) {
      markNormScales(function);
      for (auto op : llvm::make_early_inc_range(function.getOps<train::InnerReductionOpInterface>()))
        if (FactorAxesAttr split = getInnerSplit(op); split && failed(decompose(op, split)))
          return signalPassFailure();
      for (auto sum : llvm::make_early_inc_range(function.getOps<train::AccumulateOp>()))
        if (failed(decompose(sum)))
          return signalPassFailure();
    }
  }

  static void markNormScales(func::FuncOp function) {
    function.walk([](Operation *op) {
      if (!llvm::isa<train::LayerNormOp, train::RmsNormOp>(op))
        return;
      if (auto read = op->getOperand(1).getDefiningOp<train::ReadOp>())
        if (auto parameter = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(op, read.getParameterAttr()))
          parameter->setAttr(train::kNormScaleAttr, UnitAttr::get(op->getContext()));
    });
  }

  /// Replaces an op by the operators that its rule builds, for as many parts as its strategy makes of the reduced
  /// dimension.
  LogicalResult decompose(train::InnerReductionOpInterface op, FactorAxesAttr split) {
    SmallVector<LayoutAttr> available = getOperandLayouts(op);
    FailureOr<OpLayouts> layouts = inferLayouts(op, available, mesh);
    if (failed(layouts))
      return failure();
    int64_t parts = split.getBlocks();
    for (StringAttr axis : split.getAxes())
      parts *= mesh.sizeOf(axis.getValue());

    Operation *before = op->getPrevNode();
    OpBuilder builder(op);
    SmallVector<Value> results;
    if (failed(op.buildSplit(builder, parts, results)))
      return failure();
    SmallVector<Operation *> made;
    for (Operation *it = before ? before->getNextNode() : &op->getBlock()->front(); it != op; it = it->getNextNode())
      made.push_back(it);
    auto id = op->getAttrOfType<StringAttr>(train::kIdAttr);
    for (auto [i, it] : llvm::enumerate(made)) {
      for (StringRef name : {StringRef(kRepeatAttr), StringRef(train::kForwardAttr)})
        if (Attribute attribute = op->getAttr(name))
          it->setAttr(name, attribute);
      if (!id)
        continue;
      it->setAttr(train::kIdAttr, builder.getStringAttr(id.getValue() + ".split." + Twine(i)));
      if (isPipeline)
        it->setAttr(kSplitOfAttr, id);
    }

    // The new operators split what the op splits: its operands arrive in its layouts and its results leave in them; a
    // factor that neither determines is split as its consumers want.
    const ReadLayouts noReads;
    llvm::DenseMap<Operation *, Splits> seeds;
    for (auto [value, layout] : llvm::zip_equal(results, layouts->results)) {
      auto result = llvm::cast<OpResult>(value);
      auto compute = llvm::cast<train::TrainOpInterface>(result.getOwner());
      train::OpFactors factors = compute.getFactors();
      for (auto [dim, dimLayout] : llvm::zip_equal(factors.results[result.getResultNumber()], layout.getDims()))
        takeAxes(factors, dim, dimLayout, seeds[compute], mesh);
    }
    const Pins noPins;
    Propagation propagation(op->getParentOfType<func::FuncOp>(), mesh, noReads, seeds, noPins);
    for (auto [operand, layout] : llvm::zip_equal(op->getOperands(), layouts->operands))
      propagation.setFound(operand, layout);
    if (failed(propagation.run(made)))
      return failure();
    for (auto [result, value] : llvm::zip_equal(op->getResults(), results)) {
      auto made = llvm::cast<OpResult>(value);
      SmallVector<LayoutAttr> found;
      for (Value other : made.getOwner()->getResults())
        found.push_back(getLayout(other));
      found[made.getResultNumber()] = getLayout(result);
      setLayouts(made.getOwner(), found);
      result.replaceAllUsesWith(made);
    }
    op->erase();
    // Statistics that only a gradient would have read go.
    for (Operation *it : llvm::reverse(made))
      if (it->use_empty())
        it->erase();
    return success();
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
  bool isPipeline = false;
};

} // namespace
