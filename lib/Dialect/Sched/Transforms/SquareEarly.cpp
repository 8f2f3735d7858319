#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_SQUAREEARLY
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// A sum of the squares of gradients that the host holds. `@update` moves this number to the device.
struct HostSum {
  train::AccumulateOp sum;
  MoveOp moved;
};

class EarlySquares {
public:
  EarlySquares(ProgramOp program, func::FuncOp backward, func::FuncOp reduce, func::FuncOp update)
      : program(program), backward(backward.front()), reduce(reduce.front()), update(update.front()) {
    for (auto add : this->backward.getOps<AddToOp>())
      additions.try_emplace(add.getResourceAttr(), add);
    // What is summed over positions is final behind that.
    for (auto store : this->reduce.getOps<StoreOp>()) {
      additions.erase(store.getResourceAttr());
      stores[store.getResourceAttr()] = store;
    }
  }

  /// Moves the sums of `@update` to where their gradients are final: to the device, before they are copied to the host,
  /// where a step has one micro-batch; else to `@reduce`.
  void run(bool hasOneMicroBatch) {
    for (HostSum host : findSums()) {
      if (!hasOneMicroBatch || !sumOnDevice(host))
        sumInReduce(host);
    }
  }

private:
  /// Returns the gradient whose squares `term` sums up, where `term` is read once; null for other values.
  static LoadOp findGradient(Value term) {
    auto squares = term.getDefiningOp<train::SquareSumOp>();
    return squares && term.hasOneUse() ? squares.getInput().getDefiningOp<LoadOp>() : LoadOp();
  }

  SmallVector<HostSum> findSums() const {
    SmallVector<HostSum> sums;
    for (auto moved : update.getOps<MoveOp>()) {
      auto sum = moved.getInput().getDefiningOp<train::AccumulateOp>();
      if (sum && moved.getMemory() == plan::MemoryKind::device && sum->hasOneUse() &&
          llvm::all_of(sum.getInputs(), findGradient))
        sums.push_back({sum, moved});
    }
    return sums;
  }

  /// Returns the copy of a gradient to the host that the backward makes; null where there is none.
  MoveOp findCopy(LoadOp gradient) const {
    AddToOp add = additions.lookup(gradient.getResourceAttr());
    return add ? add.getValue().getDefiningOp<MoveOp>() : MoveOp();
  }

  /// Returns where the squares of what is copied to the host are summed: before the copy; what a scatter brings, before
  /// the next scatter, so that the device does not wait for it.
  static Operation *findPlace(MoveOp copy) {
    Operation *maker = copy.getInput().getDefiningOp();
    while (maker && isa<train::ReshapeOp, train::TransposeOp, train::SliceOp>(maker))
      maker = maker->getOperand(0).getDefiningOp();
    if (!isa_and_nonnull<ReduceScatterOp, AllReduceOp>(maker))
      return copy;
    Operation *next = copy->getNextNode();
    while (!next->hasTrait<OpTrait::IsTerminator>() && !isa<ReduceScatterOp>(next))
      next = next->getNextNode();
    return next;
  }

  bool sumOnDevice(HostSum host) {
    SmallVector<std::pair<train::SquareSumOp, MoveOp>> found;
    for (Value term : host.sum.getInputs()) {
      MoveOp copy = findCopy(findGradient(term));
      if (!copy)
        return false;
      found.push_back({term.getDefiningOp<train::SquareSumOp>(), copy});
    }
    SmallVector<Value> terms;
    for (auto [squares, copy] : found) {
      Operation *place = findPlace(copy);
      OpBuilder builder(place);
      auto own = train::SquareSumOp::create(builder, squares.getLoc(), squares.getType(), copy.getInput());
      own->setDiscardableAttrs(squares->getDiscardableAttrDictionary());
      copyRepeat(place, own);
      terms.push_back(own.getResult());
    }
    OpBuilder builder(backward.getTerminator());
    handOver(builder, addUp(builder, std::move(terms), host), host);
    return true;
  }

  void sumInReduce(HostSum host) {
    // Each beside the update of its gradient, where that is in @reduce too; else in the order of the update.
    llvm::DenseMap<Attribute, Operation *> loads;
    for (auto load : reduce.getOps<LoadOp>())
      if (StoreOp store = stores.lookup(load.getResourceAttr()); !store || store->isBeforeInBlock(load))
        loads.try_emplace(load.getResourceAttr(), load);
    SmallVector<Value> terms;
    OpBuilder builder(reduce.getTerminator());
    for (Value term : host.sum.getInputs()) {
      LoadOp gradient = findGradient(term);
      Operation *load = loads.lookup(gradient.getResourceAttr());
      IRMapping mapping;
      if (load) {
        builder.setInsertionPointAfter(load);
        mapping.map(gradient.getResult(), load->getResult(0));
      } else {
        builder.setInsertionPoint(reduce.getTerminator());
        builder.clone(*gradient, mapping)->removeAttr(plan::kRepeatAttr);
      }
      Operation *own = builder.clone(*term.getDefiningOp(), mapping);
      own->removeAttr(plan::kRepeatAttr);
      terms.push_back(own->getResult(0));
    }
    builder.setInsertionPoint(reduce.getTerminator());
    Value sum = addUp(builder, std::move(terms), host);
    auto moved = MoveOp::create(builder, host.moved.getLoc(), sum, plan::MemoryKind::device);
    moved->setDiscardableAttrs(host.moved->getDiscardableAttrDictionary());
    handOver(builder, moved.getResult(), host);
  }

  /// Adds up terms of one block in the order in which they are computed.
  static Value addUp(OpBuilder &builder, SmallVector<Value> terms, HostSum host) {
    llvm::sort(terms, [](Value a, Value b) { return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp()); });
    auto sum = train::AccumulateOp::create(builder, host.sum.getLoc(), host.sum.getType(), terms);
    sum->setDiscardableAttrs(host.sum->getDiscardableAttrDictionary());
    return sum.getResult();
  }

  /// Stores `sum` at the builder's place. `@update` loads it in place of the sum that it had, which is erased with all
  /// that only this sum read.
  void handOver(OpBuilder &builder, Value sum, HostSum host) {
    std::string name = "squares";
    if (count++ > 0)
      name += "_" + std::to_string(count);
    auto type = cast<RankedTensorType>(sum.getType());
    OpBuilder ofResources = OpBuilder::atBlockBegin(program.getBody());
    ResourceOp::create(ofResources, host.sum.getLoc(), builder.getStringAttr(name),
                       ResourceKindAttr::get(builder.getContext(), ResourceKind::squares), TypeAttr::get(type),
                       TypeAttr::get(type), plan::LayoutAttr::getWhole(type),
                       /*logical_name=*/nullptr, /*of=*/nullptr, /*scalar=*/nullptr, /*chunk=*/nullptr,
                       /*peer=*/nullptr, /*arena=*/nullptr, /*offset=*/nullptr);
    StoreOp::create(builder, host.sum.getLoc(), name, sum);
    OpBuilder ofUpdate(host.moved);
    auto load = LoadOp::create(ofUpdate, host.moved.getLoc(), type, name);
    load->setDiscardableAttrs(host.moved->getDiscardableAttrDictionary());
    host.moved.getResult().replaceAllUsesWith(load.getResult());
    SmallVector<Value> terms(host.sum.getInputs());
    host.moved->erase();
    host.sum->erase();
    for (Value term : terms) {
      auto squares = term.getDefiningOp<train::SquareSumOp>();
      Operation *gradient = squares.getInput().getDefiningOp();
      squares->erase();
      if (gradient->use_empty())
        gradient->erase();
    }
  }

  ProgramOp program;
  Block &backward, &reduce, &update;
  /// By resource: the addition of the backward that makes it final, and the last store of @reduce.
  llvm::DenseMap<Attribute, AddToOp> additions;
  llvm::DenseMap<Attribute, StoreOp> stores;
  int64_t count = 0;
};

struct SquareEarly : sched::impl::SquareEarlyBase<SquareEarly> {
  using SquareEarlyBase::SquareEarlyBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    // The backward of another chunk may follow a reduction, which ends when all that it holds has ended.
    SmallVector<int64_t> chunks = getChunks(program);
    if (chunks.size() != 1)
      return;
    func::FuncOp backward = getLastBackward(program, chunks.front()),
                 reduce = getStepFunction(program, StepRole::reduce, chunks.front()),
                 update = getStepFunction(program, StepRole::update, chunks.front());
    if (!backward || !reduce || !update)
      return;
    FailureOr<bool> hasOne = hasOneMicroBatch(program);
    if (failed(hasOne))
      return signalPassFailure();
    EarlySquares(program, backward, reduce, update).run(*hasOne);
  }
};

} // namespace
