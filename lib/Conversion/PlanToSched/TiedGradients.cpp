#include "TiedGradients.h"

#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace {

/// Whether f(a) + f(b) = f(a + b) for an operator with one operand, so that it may come before a sum or after it.
bool isLinear(Operation *op) {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return false;
  if (auto reduce = llvm::dyn_cast<AllReduceOp>(op))
    return reduce.getKind() == train::ReductionKind::sum;
  if (auto pad = llvm::dyn_cast<train::PadOp>(op))
    return pad.getValue().isZero();
  return llvm::isa<AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp, OwnPartOp, train::ReshapeOp, train::TransposeOp,
                   MoveOp, train::SliceOp, train::CastOp>(op);
}

/// A sum of parts that chunks on several positions make.
class PartedSum {
public:
  PartedSum(const ChunkFlow &flow, ArrayRef<int64_t> positionOf, AddToOp add)
      : flow(flow), positionOf(positionOf), add(add) {
    findPositions(add.getValue());
  }

  /// Adds the parts of each position on its own, and removes the sum of all.
  void split() {
    if (positions.size() < 2)
      return;
    OpBuilder builder(add);
    for (int64_t position : positions) {
      AddToOp::create(builder, add.getLoc(), add.getResourceAttr(), build(builder, add.getValue(), position))
          ->setDiscardableAttrs(add->getDiscardableAttrDictionary());
    }
    Operation *unused = add.getValue().getDefiningOp();
    add.erase();
    while (unused && unused->use_empty()) {
      Operation *next = isLinear(unused) ? unused->getOperand(0).getDefiningOp() : nullptr;
      unused->erase();
      unused = next;
    }
  }

private:
  static bool isPassedThrough(Operation *op) { return op && (llvm::isa<train::AccumulateOp>(op) || isLinear(op)); }

  /// Returns the position of a part; nothing for one that no chunk makes.
  std::optional<int64_t> getPosition(Value part) const {
    Operation *op = part.getDefiningOp();
    std::optional<int64_t> chunk = op ? flow.getChunk(op) : std::nullopt;
    return chunk ? std::optional(positionOf[*chunk]) : std::nullopt;
  }

  void findPositions(Value value) {
    if (Operation *op = value.getDefiningOp(); isPassedThrough(op))
      llvm::for_each(op->getOperands(), [&](Value operand) { findPositions(operand); });
    else if (std::optional<int64_t> position = getPosition(value))
      positions.insert(*position);
  }

  /// Builds what the parts of one position contribute to `value`; null where none does. What no chunk makes counts on
  /// the first position.
  Value build(OpBuilder &builder, Value value, int64_t position) {
    Operation *op = value.getDefiningOp();
    if (!isPassedThrough(op))
      return getPosition(value).value_or(*positions.begin()) == position ? value : Value();
    SmallVector<Value> parts;
    for (Value operand : op->getOperands())
      if (Value part = build(builder, operand, position))
        parts.push_back(part);
    if (parts.empty())
      return {};
    if (llvm::isa<train::AccumulateOp>(op) && parts.size() == 1)
      return parts.front();
    OperationState state(op->getLoc(), op->getName(), parts, op->getResultTypes(), op->getAttrs());
    state.attributes.erase(plan::kChunkAttr);
    return builder.create(state)->getResult(0);
  }

  const ChunkFlow &flow;
  ArrayRef<int64_t> positionOf;
  AddToOp add;
  std::set<int64_t> positions;
};

} // namespace

void windlass::sched::splitTiedGradients(const ChunkFlow &backward, ArrayRef<int64_t> positionOf) {
  func::FuncOp function = backward.getFunction();
  for (AddToOp add : llvm::make_early_inc_range(function.front().getOps<AddToOp>()))
    PartedSum(backward, positionOf, add).split();
}
