#include "CollectiveChains.h"

#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_JOINCOLLECTIVES
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// A collective that may be in a unit, with the bytes that it moves and those that need memory of their own.
struct Member {
  Operation *op;
  int64_t bytes, ownBytes;
};

/// Whether one command may stand for both: they differ in nothing but what they move and, in an update, to which
/// parameters of one shape they belong. Elsewhere they are in one instance of a repeated block.
bool isAlike(Operation *a, Operation *b, bool isUpdate) {
  return a->getName() == b->getName() && a->getAttr("dim") == b->getAttr("dim") &&
         a->getAttr("axes") == b->getAttr("axes") &&
         (isUpdate || a->getAttr(plan::kRepeatAttr) == b->getAttr(plan::kRepeatAttr));
}

/// Calls `join` with the first and the number of each longest run of collectives that may be one unit. Where they need
/// no memory of their own, units may be as large as buckets.
void forEachUnit(ArrayRef<Member> members, int64_t limit, bool isUpdate,
                 llvm::function_ref<void(size_t, size_t)> join) {
  for (size_t first = 0, end = 0; first < members.size(); first = end) {
    size_t pairs = 0;
    int64_t bytes = 0, ownBytes = 0;
    for (end = first; end < members.size() && isAlike(members[first].op, members[end].op, isUpdate); ++end) {
      pairs += members[end].op->getNumOperands();
      bytes += members[end].bytes;
      ownBytes += members[end].ownBytes;
      bool fits =
          pairs <= LaunchCollectiveOp::kMostPairs && ownBytes <= limit && bytes <= std::max(limit, plan::kBucketBytes);
      if (end > first && !fits)
        break;
    }
    if (end - first > 1)
      join(first, end - first);
  }
}

/// Replaces collectives by one at `place`, with the labels of the first.
Operation *replace(ArrayRef<Operation *> ops, Operation *place) {
  Operation *first = ops.front();
  OperationState state(first->getLoc(), first->getName());
  for (Operation *op : ops) {
    state.addOperands(op->getOperands());
    state.addTypes(op->getResultTypes());
  }
  state.addAttributes(first->getAttrs());
  OpBuilder builder(place);
  if (auto id = first->getAttrOfType<StringAttr>(train::kIdAttr))
    state.attributes.set(train::kIdAttr,
                         builder.getStringAttr(id.getValue() + " and " + Twine(ops.size() - 1) + " more"));
  Operation *unit = builder.create(state);
  size_t next = 0;
  for (Operation *op : ops) {
    op->replaceAllUsesWith(unit->getResults().slice(next, op->getNumResults()));
    next += op->getNumResults();
    op->erase();
  }
  return unit;
}

/// Joins gathers of weights where the one that is used first stands. Of the others, which may stand before it, views of
/// results follow; nothing else reads these before.
void joinGathers(ArrayRef<Gather> gathers) {
  SmallVector<Operation *> ops, views;
  Operation *first = gathers.front().op;
  for (const Gather &gather : gathers) {
    auto own = llvm::find(gather.chain, gather.op);
    if (gather.op != first)
      for (Operation *source : llvm::make_range(gather.chain.begin(), own))
        source->moveBefore(first);
    views.append(own + 1, gather.chain.end());
    ops.push_back(gather.op);
  }
  Operation *place = replace(ops, first);
  for (Operation *view : views)
    if (view->isBeforeInBlock(place)) {
      view->moveAfter(place);
      place = view;
    }
}

/// Joins collectives where the last of them stands; what is done with their results follows. Those of an update are in
/// no repeated block afterwards.
void joinDeliveries(ArrayRef<Delivery> deliveries, bool isUpdate) {
  SmallVector<Operation *> ops;
  for (const Delivery &delivery : deliveries)
    ops.push_back(delivery.op);
  Operation *place = replace(ops, deliveries.back().op);
  if (isUpdate)
    place->removeAttr(plan::kRepeatAttr);
  for (const Delivery &delivery : deliveries)
    for (Operation *op : delivery.chain) {
      copyRepeat(place, op);
      op->moveAfter(place);
      place = op;
    }
}

struct JoinCollectives : sched::impl::JoinCollectivesBase<JoinCollectives> {
  void runOnOperation() override {
    auto limit = getOperation()->getAttrOfType<IntegerAttr>(plan::kUnitBytesAttr);
    if (!limit || limit.getInt() <= 0)
      return;
    for (func::FuncOp function : getStepFunctions(getOperation())) {
      bool isUpdate = hasRole(function, StepRole::update);
      SmallVector<Gather> gathers = findGathers(function.front());
      auto members = llvm::map_to_vector(gathers, [](Gather &its) { return Member{its.op, its.bytes, its.bytes}; });
      forEachUnit(members, limit.getInt(), isUpdate,
                  [&](size_t first, size_t count) { joinGathers(ArrayRef(gathers).slice(first, count)); });
      SmallVector<Delivery> deliveries = findDeliveries(function.front());
      members = llvm::map_to_vector(deliveries, [](Delivery &its) { return Member{its.op, its.bytes, its.ownBytes}; });
      forEachUnit(members, limit.getInt(), isUpdate, [&](size_t first, size_t count) {
        joinDeliveries(ArrayRef(deliveries).slice(first, count), isUpdate);
      });
    }
  }
};

} // namespace
