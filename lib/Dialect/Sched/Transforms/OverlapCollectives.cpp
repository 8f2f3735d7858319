#include "Views.h"
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

bool isView(Operation *op) { return isa<train::ReshapeOp, train::TransposeOp>(op); }

/// Whether the blocks of the members are contiguous in the result. Otherwise a copy puts them in order, for which the
/// compute stream would wait where the gather is begun.
bool needsNoCopy(AllGatherOp op) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getResult().getType()).getShape();
  return llvm::all_of(shape.take_front(op.getDim()), [](int64_t size) { return size == 1; });
}

/// The gather of a weight from its shards: the load, collectives and views, up to the value that operators use.
struct Gather {
  SmallVector<Operation *, 4> chain;
  Operation *firstUse = nullptr;
  int64_t bytes = 0;
};

std::optional<Gather> findGather(LoadOp load) {
  Gather gather;
  bool hasCollective = false;
  Operation *op = load;
  while (true) {
    gather.chain.push_back(op);
    if (auto collective = dyn_cast<AllGatherOp>(op)) {
      if (!needsNoCopy(collective))
        return std::nullopt;
      hasCollective = true;
    }
    Value result = op->getResult(0);
    if (!result.hasOneUse() || !(isView(*result.user_begin()) || isa<AllGatherOp>(*result.user_begin())))
      break;
    op = *result.user_begin();
  }
  if (!hasCollective || op->use_empty())
    return std::nullopt;
  gather.bytes = getTensorBytes(cast<RankedTensorType>(op->getResult(0).getType()));
  for (Operation *user : op->getUsers())
    if (!gather.firstUse || user->isBeforeInBlock(gather.firstUse))
      gather.firstUse = user;
  return gather;
}

/// Moves gathers of weights up: each to behind the first use of the last earlier gather whose bytes, together with
/// those of all later gathers up to this one, exceed `window`.
void issueGathersEarly(Block &block, int64_t window) {
  llvm::DenseSet<Attribute> written;
  for (Operation &op : block)
    if (isa<StoreOp, AddToOp>(op))
      written.insert(op.getAttr("resource"));
  SmallVector<Gather> gathers;
  for (LoadOp load : block.getOps<LoadOp>())
    if (!written.contains(load.getResourceAttr()))
      if (std::optional<Gather> gather = findGather(load))
        gathers.push_back(std::move(*gather));
  llvm::sort(gathers, [](const Gather &a, const Gather &b) {
    return a.firstUse == b.firstUse ? a.chain.front()->isBeforeInBlock(b.chain.front())
                                    : a.firstUse->isBeforeInBlock(b.firstUse);
  });
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
        op->moveAfter(place);
      else
        op->moveBefore(&block.front());
      place = op;
    }
  }
}

/// A scattered gradient: the views of its part and the addition to what is accumulated.
struct Scatter {
  ReduceScatterOp op;
  SmallVector<Operation *, 4> chain;
  int64_t bytes = 0;
};

std::optional<Scatter> findScatter(ReduceScatterOp op) {
  Scatter scatter{op, {}, getTensorBytes(cast<RankedTensorType>(op.getInput().getType()))};
  Operation *user = op;
  while (user->getNumResults() == 1 && user->getResult(0).hasOneUse() &&
         (isView(*user->getResult(0).user_begin()) || isa<AddToOp>(*user->getResult(0).user_begin()))) {
    user = *user->getResult(0).user_begin();
    scatter.chain.push_back(user);
  }
  if (!isa<AddToOp>(user))
    return std::nullopt;
  return scatter;
}

/// Moves additions of scattered gradients down. The addition of scatter i goes behind the start of the first scatter j
/// for which the bytes of scatters i + 1 to j add up to `window` or more (j >= i); where there is none, to the end. A
/// scatter then overlaps with the operators of several later ones: the next scatter may be that of a bias, only a small
/// operator away.
void addLate(Block &block, int64_t window) {
  SmallVector<Scatter> scatters;
  for (auto op : block.getOps<ReduceScatterOp>())
    if (std::optional<Scatter> scatter = findScatter(op))
      scatters.push_back(std::move(*scatter));
  // Behind each scatter that some wait for, the last one of what they do.
  llvm::DenseMap<Operation *, Operation *> ends;
  size_t next = 0;
  int64_t begun = 0;
  for (Scatter &scatter : scatters) {
    begun -= scatter.bytes;
    while (begun < window && next < scatters.size())
      begun += scatters[next++].bytes;
    Operation *awaited = begun < window ? block.getTerminator() : scatters[next - 1].op.getOperation();
    for (Operation *delayed : scatter.chain) {
      copyRepeat(awaited, delayed);
      if (awaited == block.getTerminator())
        delayed->moveBefore(awaited);
      else
        delayed->moveAfter(std::exchange(ends.try_emplace(awaited, awaited).first->second, delayed));
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
    op.moveAfter(last);
  }
}

struct OverlapCollectives : sched::impl::OverlapCollectivesBase<OverlapCollectives> {
  using OverlapCollectivesBase::OverlapCollectivesBase;

  void runOnOperation() override {
    auto window = getOperation()->getAttrOfType<IntegerAttr>(plan::kPrefetchBytesAttr);
    getOperation()->removeAttr(plan::kPrefetchBytesAttr);
    for (func::FuncOp function : getStepFunctions(getOperation())) {
      if (!llvm::is_contained({StepRole::forward, StepRole::backward, StepRole::evaluate}, getStep(function).getRole()))
        continue;
      reduceEarly(function.front());
      if (!window || window.getInt() <= 0)
        continue;
      issueGathersEarly(function.front(), window.getInt());
      addLate(function.front(), window.getInt());
    }
  }
};

} // namespace
