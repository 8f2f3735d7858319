#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

namespace windlass::plan {
#define GEN_PASS_DEF_RECOMPUTESEGMENTS
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace windlass::plan

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

class Copier {
public:
  Copier(func::FuncOp function, MeshAttr mesh) : function(function), mesh(mesh) {
    for (Operation &op : function.front()) {
      if (auto id = op.getAttrOfType<StringAttr>(train::kIdAttr))
        ids.insert(id.getValue());
      if (auto stash = llvm::dyn_cast<train::StashOp>(op)) {
        stashes[stash.getValue()] = stash.getResult();
        lastStash = stash;
      }
      if (auto read = llvm::dyn_cast<train::ReadOp>(op); read && op.hasAttr(train::kForwardAttr))
        reads[read.getParameterAttr()] = read;
    }
  }

  LogicalResult run() {
    Recomputation recompute(function);
    recompute.addChosen();
    for (Value value : recompute.getAdded())
      addStash(llvm::cast<OpResult>(value));
    for (const Recomputation::Segment &segment : recompute.getSegments())
      if (failed(copy(segment)))
        return failure();
    return success();
  }

private:
  void addStash(OpResult value) {
    OpBuilder builder(lastStash->getContext());
    builder.setInsertionPointAfter(lastStash);
    auto stash = train::StashOp::create(builder, value.getLoc(), value.getType(), value);
    Operation *producer = value.getOwner();
    if (auto id = producer->getAttrOfType<StringAttr>(train::kIdAttr))
      stash->setAttr(train::kIdAttr, makeId(id.getValue() + ".stash"));
    if (Attribute repeat = producer->getAttr(kRepeatAttr))
      stash->setAttr(kRepeatAttr, repeat);
    stash->setAttr(kStrategyAttr, getWholeStrategy(builder.getContext()));
    setLayouts(stash, {dropUnreduced(getLayout(value))});
    stashes[value] = stash.getResult();
    lastStash = stash;
  }

  StringAttr makeId(const Twine &wanted) {
    std::string id = wanted.str();
    for (unsigned n = 1; !ids.insert(id).second; ++n)
      id = (wanted + "." + Twine(n)).str();
    return StringAttr::get(function.getContext(), id);
  }

  LogicalResult copy(const Recomputation::Segment &segment) {
    builder.setInsertionPoint(segment.before);
    mapping.clear();
    for (Operation *op : segment.ops)
      if (failed(copy(op)))
        return failure();
    // Copies of other segments stand elsewhere and read the stash.
    for (train::StashOp stash : segment.dropped) {
      Value recomputed = mapping.lookup(stash.getValue());
      stash.getResult().replaceUsesWithIf(recomputed, [&](OpOperand &use) { return !copies.contains(use.getOwner()); });
      if (stash.getResult().use_empty()) {
        stashes.erase(stash.getValue());
        stash.erase();
      }
    }
    return success();
  }

  /// Returns the value that copies of the present segment read for `value`: a copy, a stashed value, or a recomputed
  /// one where that is free.
  FailureOr<Value> bring(Value value) {
    Operation *source = value.getDefiningOp();
    if (!source)
      return value;
    if (Value known = mapping.lookupOrNull(value))
      return known;
    if (Value stash = stashes.lookup(value))
      return stash;
    if (auto read = llvm::dyn_cast<train::ReadOp>(source)) {
      // There is one read, so that a weight that is gathered for the copies need not be gathered again for the
      // adjoints.
      train::ReadOp shared = reads.lookup(read.getParameterAttr());
      if (shared &&
          llvm::all_of(shared->getUsers(), [&](Operation *user) { return !user->isBeforeInBlock(before()); })) {
        if (!shared->isBeforeInBlock(before()))
          shared->moveBefore(before());
        mapping.map(value, shared.getResult());
        return shared.getResult();
      }
    }
    if (!Recomputation::isFree(source) && !Recomputation::isView(source))
      return source->emitOpError("is read by a recomputed operator, but not stashed");
    if (failed(copy(source)))
      return failure();
    return mapping.lookup(value);
  }

  Operation *before() { return &*builder.getInsertionPoint(); }

  LogicalResult copy(Operation *op) {
    SmallVector<LayoutAttr> available;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> brought = bring(operand);
      if (failed(brought))
        return failure();
      mapping.map(operand, *brought);
      available.push_back(getLayout(*brought));
    }
    SmallVector<LayoutAttr> wanted;
    for (Value result : op->getResults())
      // The backward pass finds a copy in the layout in which it found the stash.
      wanted.push_back(getLayout(stashes.contains(result) ? stashes.lookup(result) : result));
    Operation *recomputed = builder.clone(*op, mapping);
    copies.insert(recomputed);
    recomputed->removeAttr(kSegmentAttr);
    auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttr);
    recomputed->setAttr(kStrategyAttr, StrategyAttr::get(op->getContext(), strategy.getSplits(), -1));
    StringRef id = op->getName().stripDialect();
    if (auto own = op->getAttrOfType<StringAttr>(train::kIdAttr)) {
      id = own.getValue();
      recomputed->setAttr(train::kIdAttr, makeId(id + ".recompute"));
    }
    recomputed->setAttr(train::kForwardAttr, StringAttr::get(op->getContext(), id));

    // The stash holds complete sums: a result that was partial because an operand was need not be partial now.
    FailureOr<OpLayouts> made = inferLayouts(recomputed, available, mesh);
    if (failed(made))
      return failure();
    for (auto [want, make] : llvm::zip_equal(wanted, made->results)) {
      SmallVector<UnreducedAttr> kept;
      for (UnreducedAttr unreduced : want.getUnreduced())
        if (llvm::is_contained(make.getUnreduced(), unreduced))
          kept.push_back(unreduced);
      want = addUnreduced(dropUnreduced(want), kept, mesh);
    }
    setLayouts(recomputed, wanted);
    return success();
  }

  func::FuncOp function;
  MeshAttr mesh;
  OpBuilder builder{function.getContext()};
  llvm::StringSet<> ids;
  /// The stashed values, and the reads of the backward part.
  llvm::DenseMap<Value, Value> stashes;
  llvm::DenseMap<Attribute, train::ReadOp> reads;
  Operation *lastStash = nullptr;
  llvm::DenseSet<Operation *> copies;
  /// The values for the copies of the present segment.
  IRMapping mapping;
};

struct RecomputeSegments : windlass::plan::impl::RecomputeSegmentsBase<RecomputeSegments> {
  using RecomputeSegmentsBase::RecomputeSegmentsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    if (!mesh) {
      module.emitError("has no plan.mesh: apply a strategy or a plan first");
      return signalPassFailure();
    }
    auto function = train::getMicrobatchFunction(module);
    if (function && failed(Copier(function, mesh).run()))
      return signalPassFailure();
    for (const SegmentBlock &block : getSegmentBlocks(module)) {
      block.setLabel(kKeptLabel);
      for (const auto &part : block.ops)
        for (Operation *op : part)
          op->removeAttr(kSegmentAttr);
    }
  }
};

} // namespace
