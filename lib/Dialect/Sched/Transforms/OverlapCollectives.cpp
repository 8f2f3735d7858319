#include "CollectiveChains.h"
#include "windlass/Dialect/Sched/Analysis/Accumulation.h"
#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// Moves gathers of weights, and copies of weights from the host, up: each to behind the first use of the last earlier
/// gather whose bytes, together with those of all later gathers up to this one, exceed `window`.
void issueGathersEarly(Block &block, int64_t window) {
  SmallVector<Gather> gathers = findGathers(block);
  llvm::append_range(gathers, findFetches(block));
  sortByUse(gathers);
  for (size_t i = 0; i < gathers.size(); ++i) {
    Gather &gather = gathers[i];
    int64_t inFlight = gather.bytes;
    size_t before = i;
    while (before > 0 && inFlight + gathers[before - 1].bytes <= window)
      inFlight += gathers[--before].bytes;
    // The gathers from `before` on stand in their order behind the place.
    Operation *place = before > 0 ? gathers[before - 1].firstUse : nullptr;
    for (size_t k = before; k < i; ++k)
      if (Operation *end = gathers[k].chain.back(); !place || place->isBeforeInBlock(end))
        place = end;
    if (place ? !place->isBeforeInBlock(gather.chain.front()) : gather.chain.front() == &block.front())
      continue;
    Operation *label = place ? place : &block.front();
    for (Operation *op : gather.chain) {
      copyRepeat(label, op);
      if (place)
        moveBehind(op, place);
      else
        moveBefore(op, &block.front());
      place = op;
    }
  }
}

/// Moves additions of scattered gradients down. Those of scatter i go behind the start of the first scatter j > i for
/// which the bytes of scatters i + 1 to j add up to `window` or more; where there is none, to the end. A scatter then
/// overlaps with the operators of several later ones: the next scatter may be that of a bias, only a small operator
/// away.
void addLate(Block &block, int64_t window) {
  SmallVector<Delivery> scatters = findDeliveries(block);
  // Copies to the host, and additions there, do not hold up the device.
  llvm::erase_if(scatters, [](const Delivery &delivery) {
    return !isa<ReduceScatterOp>(delivery.op) || llvm::any_of(delivery.chain, llvm::IsaPred<MoveOp>);
  });
  // Behind each scatter that some wait for, the last one of what they do.
  llvm::DenseMap<Operation *, Operation *> ends;
  size_t next = 0;
  int64_t begun = 0;
  for (Delivery &scatter : scatters) {
    begun -= scatter.bytes;
    while (begun < window && next < scatters.size())
      begun += scatters[next++].bytes;
    Operation *awaited = begun < window ? block.getTerminator() : scatters[next - 1].op;
    for (Operation *delayed : scatter.chain) {
      copyRepeat(awaited, delayed);
      if (awaited == block.getTerminator())
        moveBefore(delayed, awaited);
      else
        moveBehind(delayed, std::exchange(ends.try_emplace(awaited, awaited).first->second, delayed));
    }
  }
}

/// Moves reductions over ranks, and sums that kernels add up, up to right behind the last of their operands. Work that
/// stood between, such as the gradient of a weight, then overlaps with the reduction.
void reduceEarly(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto sum = dyn_cast<train::AccumulateOp>(op);
    if (!isa<AllReduceOp, ReduceScatterOp>(op) && !(sum && isSummedByKernels(sum)))
      continue;
    Operation *last = nullptr;
    for (Value operand : op.getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && (!last || last->isBeforeInBlock(maker)))
        last = maker;
    if (!last || last == op.getPrevNode())
      continue;
    copyRepeat(last, &op);
    moveBehind(&op, last);
  }
}

struct OverlapCollectives : sched::impl::OverlapCollectivesBase<OverlapCollectives> {
  using OverlapCollectivesBase::OverlapCollectivesBase;

  void runOnOperation() override {
    auto window = getOperation()->getAttrOfType<IntegerAttr>(plan::kPrefetchBytesAttr),
         unit = getOperation()->getAttrOfType<IntegerAttr>(plan::kUnitBytesAttr);
    getOperation()->removeAttr(plan::kPrefetchBytesAttr);
    getOperation()->removeAttr(plan::kUnitBytesAttr);
    for (func::FuncOp function : getStepFunctions(getOperation())) {
      if (!llvm::is_contained({StepRole::forward, StepRole::backward, StepRole::weight_gradient, StepRole::evaluate},
                              getStep(function).getRole()))
        continue;
      reduceEarly(function.front());
      if (!window || window.getInt() <= 0)
        continue;
      issueGathersEarly(function.front(), window.getInt());
      addLate(function.front(), std::max<int64_t>(window.getInt() - (unit ? unit.getInt() : 0), 1));
    }
  }
};

} // namespace
