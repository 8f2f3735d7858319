#include "Stash.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace windlass::train {
namespace {

class StashBuilder {
public:
  StashBuilder(Block &block, Operation *backward) : block(block), backward(backward) {}

  void run() {
    for (Operation &op : block) {
      if (&op == backward)
        break;
      forward.insert(&op);
    }
    SmallVector<Operation *> users;
    for (Operation &op : llvm::make_range(Block::iterator(backward), block.end()))
      users.push_back(&op);
    for (Operation *op : users)
      for (Value operand : op->getOperands())
        if (isForward(operand))
          needed.insert(peel(operand));
    for (Operation *op : users)
      for (OpOperand &operand : op->getOpOperands())
        if (isForward(operand.get()))
          operand.set(bring(operand.get(), op));
  }

private:
  bool isForward(Value value) const { return value.getDefiningOp() && forward.contains(value.getDefiningOp()); }
  /// Returns whether the operator can be recomputed without anything from the forward part.
  static bool isFree(Operation *op) { return isa<ConstantOp, IotaOp, ReadOp>(op); }
  static bool isView(Operation *op) { return isa<ReshapeOp, TransposeOp, BroadcastOp>(op); }

  /// Returns the value under the views of `value`.
  static Value peel(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isView(op))
        break;
      value = op->getOperand(0);
    }
    return value;
  }

  /// Returns whether the whole value is at hand. A slice alone is smaller than the value that it is cut from, so it is
  /// cut again only where the whole is at hand anyway.
  bool isAtHand(Value value) const {
    value = peel(value);
    Operation *op = value.getDefiningOp();
    if (!op || isFree(op) || needed.contains(value))
      return true;
    return isa<SliceOp>(op) && isAtHand(op->getOperand(0));
  }

  /// Brings `value` into the backward part, ready before `user`.
  Value bring(Value value, Operation *user) {
    if (!isForward(value))
      return value;
    if (Value known = brought.lookup(value))
      return known;
    Operation *op = value.getDefiningOp();
    bool isAgain = isFree(op) || isView(op) || (isa<SliceOp>(op) && isAtHand(op->getOperand(0)));
    Value result = isAgain ? makeAgain(op, user) : makeStash(cast<OpResult>(value));
    brought[value] = result;
    return result;
  }

  Value makeAgain(Operation *op, Operation *user) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(bring(operand, user));
    Operation *copy = op->clone();
    copy->setOperands(operands);
    block.getOperations().insert(Block::iterator(user), copy);
    StringAttr id = op->getAttrOfType<StringAttr>(kIdAttr);
    if (!id)
      id = StringAttr::get(op->getContext(), op->getName().stripDialect());
    else
      copy->setAttr(kIdAttr, StringAttr::get(op->getContext(), id.getValue() + ".again"));
    copy->setAttr(kForwardAttr, id);
    return copy->getResult(0);
  }

  Value makeStash(OpResult value) {
    OpBuilder builder(backward);
    auto stash = StashOp::create(builder, value.getLoc(), value.getType(), value);
    if (auto id = value.getOwner()->getAttrOfType<StringAttr>(kIdAttr)) {
      std::string name = (id.getValue() + ".stash").str();
      if (value.getResultNumber() > 0)
        name += "." + std::to_string(value.getResultNumber());
      stash->setAttr(kIdAttr, builder.getStringAttr(name));
    }
    return stash;
  }

  Block &block;
  Operation *backward;
  llvm::DenseSet<Operation *> forward;
  llvm::DenseSet<Value> needed;
  llvm::DenseMap<Value, Value> brought;
};

} // namespace

void insertStash(Block &block, Operation *backward) { StashBuilder(block, backward).run(); }

} // namespace windlass::train
