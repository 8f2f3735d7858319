#include "CollectiveChains.h"

#include "windlass/Support/TensorBytes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

static bool isView(Operation *op) { return isa<train::ReshapeOp, train::TransposeOp>(op); }

/// Whether the operation copies a value to the device.
static bool isFetch(Operation *op) {
  auto move = dyn_cast<MoveOp>(op);
  return move && move.getMemory() == plan::MemoryKind::device;
}

int64_t sched::getBytes(TypeRange types) {
  int64_t bytes = 0;
  for (Type type : types)
    bytes += getTensorBytes(cast<RankedTensorType>(type));
  return bytes;
}

bool sched::isInBlocks(RankedTensorType whole, int64_t dim) {
  return llvm::all_of(whole.getShape().take_front(dim), [](int64_t size) { return size == 1; });
}

/// Whether the members' parts are contiguous in all results. Otherwise a copy puts them in order.
static bool needsNoCopy(AllGatherOp op) {
  return llvm::all_of(op.getResultTypes(),
                      [&](Type type) { return isInBlocks(cast<RankedTensorType>(type), op.getDim()); });
}

/// Adds the operations that make `value` from a resource; returns false where they cannot move.
static bool addSources(Value value, const llvm::DenseSet<Attribute> &written, SmallVectorImpl<Operation *> &chain) {
  Operation *maker = value.getDefiningOp();
  if (!maker || !value.hasOneUse())
    return false;
  if (auto load = dyn_cast<LoadOp>(maker)) {
    chain.push_back(maker);
    return !written.contains(load.getResourceAttr());
  }
  auto gather = dyn_cast<AllGatherOp>(maker);
  bool isOwn = isView(maker) || isFetch(maker) || (gather && gather.getInputs().size() == 1 && needsNoCopy(gather));
  if (!isOwn || !addSources(maker->getOperand(0), written, chain))
    return false;
  chain.push_back(maker);
  return true;
}

static std::optional<Gather> findGather(Operation *op, const llvm::DenseSet<Attribute> &written) {
  Gather gather;
  gather.op = op;
  for (Value input : op->getOperands())
    if (!addSources(input, written, gather.chain))
      return std::nullopt;
  gather.chain.push_back(op);
  for (Value value : op->getResults()) {
    while (value.hasOneUse() && isView(*value.user_begin())) {
      gather.chain.push_back(*value.user_begin());
      value = gather.chain.back()->getResult(0);
    }
    gather.bytes += getBytes(value.getType());
    for (Operation *user : value.getUsers()) {
      // Only the last one of a copy and gathers in a row brings what operators use.
      if (isa<AllGatherOp>(user) && value.hasOneUse())
        return std::nullopt;
      if (!gather.firstUse || user->isBeforeInBlock(gather.firstUse))
        gather.firstUse = user;
    }
  }
  return gather.firstUse ? std::optional(std::move(gather)) : std::nullopt;
}

void sched::sortByUse(MutableArrayRef<Gather> gathers) {
  llvm::sort(gathers, [](const Gather &a, const Gather &b) {
    return a.firstUse == b.firstUse ? a.chain.front()->isBeforeInBlock(b.chain.front())
                                    : a.firstUse->isBeforeInBlock(b.firstUse);
  });
}

/// Returns the gathers or fetches whose last operation is wanted.
static SmallVector<Gather> findAll(Block &block, llvm::function_ref<bool(Operation *)> isWanted) {
  llvm::DenseSet<Attribute> written;
  for (Operation &op : block)
    if (isa<StoreOp, AddToOp>(op))
      written.insert(op.getAttr("resource"));
  SmallVector<Gather> gathers;
  for (Operation &op : block)
    if (isWanted(&op))
      if (std::optional<Gather> gather = findGather(&op, written))
        gathers.push_back(std::move(*gather));
  sortByUse(gathers);
  return gathers;
}

SmallVector<Gather> sched::findGathers(Block &block) {
  return findAll(block, [](Operation *op) {
    auto gather = dyn_cast<AllGatherOp>(op);
    return gather && needsNoCopy(gather);
  });
}

SmallVector<Gather> sched::findFetches(Block &block) { return findAll(block, isFetch); }

/// Whether a delivery may have the operation between the collective and the resource. What fills up the last range of a
/// flat copy is cut off by a slice; a map with one operand converts what arrives.
static bool isOnTheWay(Operation *op) {
  return isView(op) || isa<train::SliceOp, MoveOp, StoreOp, AddToOp>(op) ||
         (isa<MapOp>(op) && op->getNumOperands() == 1 && op->getNumResults() == 1);
}

/// Returns the operations that bring `value` to a resource; none where something else is done with it.
static SmallVector<Operation *, 2> findWay(Value value) {
  SmallVector<Operation *, 2> way;
  while (value && value.hasOneUse() && isOnTheWay(*value.user_begin())) {
    way.push_back(*value.user_begin());
    value = way.back()->getNumResults() == 1 ? way.back()->getResult(0) : Value();
  }
  if (way.empty() || !isa<StoreOp, AddToOp>(way.back()))
    way.clear();
  return way;
}

/// Whether a collective may read the operand, or write the result, where the resource is.
static bool isInPlace(Value operand) {
  while (Operation *maker = operand.getDefiningOp()) {
    if (!isView(maker))
      return isa<LoadOp>(maker);
    operand = maker->getOperand(0);
  }
  return false;
}
static bool isInPlace(ArrayRef<Operation *> way) {
  return isa<StoreOp>(way.back()) && llvm::all_of(way.drop_back(), isView);
}

static std::optional<Delivery> findDelivery(Operation *op, const llvm::DenseMap<Attribute, unsigned> &mentions) {
  auto gather = dyn_cast<AllGatherOp>(op);
  Delivery delivery;
  delivery.op = op;
  for (auto [operand, result] : llvm::zip_equal(op->getOperands(), op->getResults())) {
    SmallVector<Operation *, 2> way = findWay(result);
    if (way.empty() || mentions.lookup(way.back()->getAttr("resource")) != 1)
      return std::nullopt;
    llvm::append_range(delivery.chain, way);
    int64_t bytes = getBytes((gather ? result : operand).getType());
    bool needsNone = gather ? isInPlace(way) && needsNoCopy(gather) : isInPlace(operand);
    delivery.bytes += bytes;
    delivery.ownBytes += needsNone ? 0 : bytes;
  }
  return delivery;
}

SmallVector<Delivery> sched::findDeliveries(Block &block) {
  llvm::DenseMap<Attribute, unsigned> mentions;
  for (Operation &op : block)
    if (isa<LoadOp, StoreOp, AddToOp>(op))
      ++mentions[op.getAttr("resource")];
  SmallVector<Delivery> deliveries;
  for (Operation &op : block)
    if (isa<AllGatherOp, ReduceScatterOp>(op))
      if (std::optional<Delivery> delivery = findDelivery(&op, mentions))
        deliveries.push_back(std::move(*delivery));
  return deliveries;
}
