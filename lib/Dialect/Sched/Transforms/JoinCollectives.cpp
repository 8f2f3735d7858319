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

/// Where units may end and begin.
enum class Borders {
  anywhere, ///< in an update: between any parameters
  blocks,   ///< within an instance of a repeated block
  between   ///< in a reduction: within an instance, or around several whole ones, which are complete at a border
};

/// Whether one command may stand for both: they differ in nothing but what they move and to which parameters they
/// belong.
bool isAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getAttr("dim") == b->getAttr("dim") &&
         a->getAttr("axes") == b->getAttr("axes");
}

bool isSameBlock(Operation *a, Operation *b) { return a->getAttr(plan::kRepeatAttr) == b->getAttr(plan::kRepeatAttr); }

/// Collectives one after another that are to be one command.
struct Unit {
  size_t first = 0, count = 0, pairs = 0;
  int64_t bytes = 0, ownBytes = 0;
  /// Whether it has all of an instance of a block, or of several.
  bool isWhole = false;

  size_t end() const { return first + count; }
  /// Adds what comes next. Where units need no memory of their own, they may be as large as buckets.
  bool add(const Unit &next, int64_t limit) {
    if (pairs + next.pairs > LaunchCollectiveOp::kMostPairs || ownBytes + next.ownBytes > limit ||
        bytes + next.bytes > std::max(limit, plan::kBucketBytes))
      return false;
    count += next.count;
    pairs += next.pairs;
    bytes += next.bytes;
    ownBytes += next.ownBytes;
    return true;
  }
};

/// Returns the longest units in order, those of one collective too.
SmallVector<Unit> findUnits(ArrayRef<Member> members, int64_t limit, Borders borders) {
  SmallVector<Unit> units;
  for (size_t first = 0, end = 0; first < members.size(); first = end) {
    auto belongs = [&](size_t i) {
      return isAlike(members[first].op, members[i].op) &&
             (borders == Borders::anywhere || isSameBlock(members[first].op, members[i].op));
    };
    size_t begin = units.size();
    for (end = first; end < members.size() && belongs(end); ++end) {
      Unit next = {end, 1, members[end].op->getNumOperands(), members[end].bytes, members[end].ownBytes};
      if (units.size() == begin || !units.back().add(next, limit))
        units.push_back(next);
    }
    units.back().isWhole = units.size() == begin + 1;
    bool joins = borders == Borders::between && units.back().isWhole && begin > 0 && units[begin - 1].isWhole &&
                 isAlike(members[units[begin - 1].first].op, members[first].op);
    if (joins && units[begin - 1].add(units.back(), limit))
      units.pop_back();
  }
  return units;
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
        moveBefore(source, first);
    views.append(own + 1, gather.chain.end());
    ops.push_back(gather.op);
  }
  Operation *place = replace(ops, first);
  for (Operation *view : views)
    if (view->isBeforeInBlock(place)) {
      moveBehind(view, place);
      place = view;
    }
}

/// Joins collectives where the last of them stands; what is done with their results follows. Those of several blocks
/// are in no repeated block afterwards.
void joinDeliveries(ArrayRef<Delivery> deliveries) {
  SmallVector<Operation *> ops;
  for (const Delivery &delivery : deliveries)
    ops.push_back(delivery.op);
  bool isOfOneBlock = llvm::all_of(ops, [&](Operation *op) { return isSameBlock(ops.front(), op); });
  Operation *place = replace(ops, deliveries.back().op);
  if (!isOfOneBlock)
    place->removeAttr(plan::kRepeatAttr);
  for (const Delivery &delivery : deliveries)
    for (Operation *op : delivery.chain) {
      copyRepeat(place, op);
      moveBehind(op, place);
      place = op;
    }
}

struct JoinCollectives : sched::impl::JoinCollectivesBase<JoinCollectives> {
  void runOnOperation() override {
    auto limit = getOperation()->getAttrOfType<IntegerAttr>(plan::kUnitBytesAttr);
    if (!limit || limit.getInt() <= 0)
      return;
    for (func::FuncOp function : getStepFunctions(getOperation())) {
      Borders borders = hasRole(function, StepRole::update)   ? Borders::anywhere
                        : hasRole(function, StepRole::reduce) ? Borders::between
                                                              : Borders::blocks;
      SmallVector<Gather> gathers = findGathers(function.front());
      auto members = llvm::map_to_vector(gathers, [](Gather &its) { return Member{its.op, its.bytes, its.bytes}; });
      for (const Unit &unit : findUnits(members, limit.getInt(), borders))
        if (unit.count > 1)
          joinGathers(ArrayRef(gathers).slice(unit.first, unit.count));
      SmallVector<Delivery> deliveries = findDeliveries(function.front());
      members = llvm::map_to_vector(deliveries, [](Delivery &its) { return Member{its.op, its.bytes, its.ownBytes}; });
      for (const Unit &unit : findUnits(members, limit.getInt(), borders))
        if (unit.count > 1)
          joinDeliveries(ArrayRef(deliveries).slice(unit.first, unit.count));
    }
  }
};

} // namespace
