#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_UPDATEEARLY
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// The number of the operation that makes a gradient, in the order of the backward; of what is no gradient.
constexpr int64_t kNone = -1;

class EarlyUpdates {
public:
  EarlyUpdates(ProgramOp program, Block &reduce, Block &update) : symbols(program), reduce(reduce), update(update) {
    for (func::FuncOp function : getStepFunctions(program))
      if (isOfBackward(getStep(function).getRole()))
        for (auto add : function.front().getOps<AddToOp>())
          made.try_emplace(add.getResourceAttr(), static_cast<int64_t>(made.size()));
    for (auto store : reduce.getOps<StoreOp>()) {
      // What it brings to another layout is final with the last of its gradients.
      int64_t latest = kNone;
      llvm::DenseSet<Operation *> seen;
      walkNeeded(store, seen, [&](Operation *op) {
        if (auto load = dyn_cast<LoadOp>(op))
          latest = std::max(latest, getMade(load.getResourceAttr()));
        return true;
      });
      made[store.getResourceAttr()] = latest;
    }
    for (auto [order, op] : llvm::enumerate(update.without_terminator())) {
      places[&op] = static_cast<int64_t>(order);
      if (auto store = dyn_cast<StoreOp>(op))
        stores[store.getResourceAttr()].push_back(store);
      else if (auto load = dyn_cast<LoadOp>(op))
        loads[load.getResourceAttr()].push_back(load);
    }
  }

  void run() {
    findMovable();
    if (movable.empty())
      return;
    // What several parameters need comes first.
    llvm::MapVector<Operation *, int64_t> moved;
    for (StoreOp store : movable) {
      int64_t its = gradientOf.lookup(store);
      llvm::DenseSet<Operation *> seen;
      walkNeeded(store, seen, [&](Operation *op) {
        auto [known, isNew] = moved.try_emplace(op, its);
        if (!isNew && known->second != its)
          known->second = kNone;
        return true;
      });
      moved.try_emplace(store, its);
    }
    SmallVector<std::pair<Operation *, int64_t>> sorted(moved.begin(), moved.end());
    llvm::sort(sorted, [&](const auto &a, const auto &b) {
      return std::pair(a.second, places.lookup(a.first)) < std::pair(b.second, places.lookup(b.first));
    });
    OpBuilder builder(reduce.getTerminator());
    IRMapping mapping;
    // They belong to the instance of a block that they run beside, and no more to an update of many.
    for (auto [op, its] : sorted)
      builder.clone(*op, mapping)->removeAttr(plan::kRepeatAttr);
    for (StoreOp store : movable)
      store.erase();
    // What only they needed, users before what they use.
    SmallVector<Operation *> left;
    for (Operation &op : update.without_terminator())
      if (moved.contains(&op))
        left.push_back(&op);
    for (Operation *op : llvm::reverse(left))
      if (op->use_empty())
        op->erase();
  }

private:
  /// Visits the operations that the stored value is computed from, without those that have been seen, until one is not
  /// admitted; returns whether all are.
  static bool walkNeeded(StoreOp store, llvm::DenseSet<Operation *> &seen,
                         llvm::function_ref<bool(Operation *)> admits) {
    SmallVector<Value> open = {store.getValue()};
    while (!open.empty()) {
      Operation *op = open.pop_back_val().getDefiningOp();
      if (!op || !seen.insert(op).second)
        continue;
      if (!admits(op))
        return false;
      llvm::append_range(open, op->getOperands());
    }
    return true;
  }

  int64_t getMade(Attribute resource) const {
    auto found = made.find(resource);
    return found == made.end() ? kNone : found->second;
  }

  bool isOnDevice(FlatSymbolRefAttr name) const {
    return symbols.lookup<ResourceOp>(name.getValue()).getLayout().getMemory() == plan::MemoryKind::device;
  }

  /// Finds the stores that can be made as soon as one gradient is final: of each, what it is computed from is that
  /// gradient, what no update writes, and what such stores write.
  void findMovable() {
    for (auto store : update.getOps<StoreOp>())
      movable.insert(store);
    bool changes = true;
    while (changes) {
      llvm::DenseSet<Operation *> staying;
      for (auto store : update.getOps<StoreOp>())
        if (!movable.contains(store))
          walkNeeded(store, staying, [](Operation *) { return true; });
      changes = false;
      for (StoreOp store : llvm::to_vector(movable))
        if (!canMove(store, staying)) {
          movable.remove(store);
          changes = true;
        }
    }
  }

  bool canMove(StoreOp store, const llvm::DenseSet<Operation *> &staying) {
    // What stays would read what the store writes, where it reads what was there before.
    for (LoadOp load : loads.lookup(store.getResourceAttr()))
      if (staying.contains(load) && load->isBeforeInBlock(store))
        return false;
    int64_t latest = kNone;
    Attribute gradient;
    bool isOfHost = !isOnDevice(store.getResourceAttr());
    auto admits = [&](Operation *op) {
      // Sums over ranks, as of LAMB's norms, stay where they are; gathers of updated weights move with them.
      if (isa<AllReduceOp, ReduceScatterOp, AllToAllOp, PermuteOp, GatherRowsOp, ScatterRowsOp>(op))
        return false;
      isOfHost |= isa<MoveOp>(op);
      auto load = dyn_cast<LoadOp>(op);
      if (!load)
        return true;
      Attribute name = load.getResourceAttr();
      int64_t its = getMade(name);
      if (its != kNone && gradient && gradient != name)
        return false; // as for the norm of all
      if (its != kNone)
        gradient = name;
      latest = std::max(latest, its);
      for (StoreOp writer : stores.lookup(name)) {
        if (!movable.contains(writer))
          return false;
        if (writer->isBeforeInBlock(load))
          latest = std::max(latest, gradientOf.lookup(writer));
      }
      return true;
    };
    llvm::DenseSet<Operation *> seen;
    if (!walkNeeded(store, seen, admits))
      return false;
    gradientOf[store] = latest;
    return isOfHost && latest != kNone;
  }

  SymbolTable symbols;
  Block &reduce, &update;
  /// By resource: the number of the gradient that it holds before the update.
  llvm::DenseMap<Attribute, int64_t> made;
  /// The number of each operation of the update, in order.
  llvm::DenseMap<Operation *, int64_t> places;
  /// By resource: the stores and loads of the update.
  llvm::DenseMap<Attribute, SmallVector<StoreOp, 1>> stores;
  llvm::DenseMap<Attribute, SmallVector<LoadOp, 2>> loads;
  llvm::SetVector<StoreOp> movable;
  /// By store: the number of the gradient behind which it can be made.
  llvm::DenseMap<Operation *, int64_t> gradientOf;
};

struct UpdateEarly : sched::impl::UpdateEarlyBase<UpdateEarly> {
  using UpdateEarlyBase::UpdateEarlyBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    bool usesHost = llvm::any_of(program.getOps<ResourceOp>(), [](ResourceOp resource) {
      return resource.getKind() != ResourceKind::scalar && resource.getLayout().getMemory() != plan::MemoryKind::device;
    });
    // The backward of another chunk may follow a reduction, which ends when all that it holds has ended.
    SmallVector<int64_t> chunks = getChunks(program);
    if (!usesHost || chunks.size() != 1)
      return;
    func::FuncOp reduce = getStepFunction(program, StepRole::reduce, chunks.front()),
                 update = getStepFunction(program, StepRole::update, chunks.front());
    if (reduce && update)
      EarlyUpdates(program, reduce.front(), update.front()).run();
  }
};

} // namespace
