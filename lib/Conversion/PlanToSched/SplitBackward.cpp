#include "SplitBackward.h"

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace {

/// What a value of a backward leads to.
class Goals {
public:
  explicit Goals(Block &block) {
    for (Operation &op : llvm::reverse(block.without_terminator()))
      add(op);
  }

  /// Whether an operator belongs to the gradients of weights.
  bool isOfWeights(Operation &op) const {
    return llvm::isa<AddToOp>(op) || (leadsToOneEach(op) && llvm::any_of(op.getResults(), [&](Value result) {
                                        return goals.lookup(result) != nullptr;
                                      }));
  }

private:
  /// Stands for several gradients, or for a message.
  static Attribute several(Value value) { return UnitAttr::get(value.getContext()); }

  /// Whether each result leads to one goal at most.
  bool leadsToOneEach(Operation &op) const {
    return llvm::none_of(op.getResults(), [&](Value result) { return goals.lookup(result) == several(result); });
  }

  void lead(Value value, Attribute goal) {
    if (!goal)
      return;
    Attribute &known = goals[value];
    known = !known || known == goal ? goal : several(value);
  }

  void add(Operation &op) {
    if (auto sum = llvm::dyn_cast<AddToOp>(op))
      return lead(sum.getValue(), sum.getResourceAttr());
    if (llvm::isa<StoreOp>(op))
      return lead(op.getOperand(0), several(op.getOperand(0)));
    // A collective of several values makes a result of each.
    bool isByValue = llvm::isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op) && leadsToOneEach(op);
    for (OpOperand &operand : op.getOpOperands())
      for (OpResult result : op.getResults())
        if (!isByValue || result.getResultNumber() == operand.getOperandNumber())
          lead(operand.get(), goals.lookup(result));
  }

  llvm::DenseMap<Value, Attribute> goals;
};

/// Whether each function that reads an operator's result may have a copy of it.
bool isCopied(Operation &op, const SymbolTable &symbols) {
  if (auto load = llvm::dyn_cast<LoadOp>(op))
    return !symbols.lookup<ResourceOp>(load.getResourceAttr().getAttr()).isOfSlot();
  return op.getNumOperands() == 0 && isMemoryEffectFree(&op);
}

} // namespace

void windlass::sched::splitBackward(func::FuncOp backward, func::FuncOp weightGradient) {
  SymbolTable symbols(backward->getParentOfType<ProgramOp>());
  Block &from = backward.front(), &to = weightGradient.front();
  IRMapping mapping;
  for (BlockArgument argument : from.getArguments())
    mapping.map(argument, to.addArgument(argument.getType(), argument.getLoc()));

  // What nothing reads would keep its operands from being moved.
  SmallVector<Operation *> ops = llvm::map_to_vector(from.without_terminator(), [](Operation &op) { return &op; });
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
  Goals goals(from);
  llvm::SetVector<Operation *> moved;
  for (Operation &op : from.without_terminator())
    if (!llvm::isa<LoadOp>(op) && !isCopied(op, symbols) && goals.isOfWeights(op))
      moved.insert(&op);
  SmallVector<Value> handed;
  OpBuilder builder = OpBuilder::atBlockEnd(&to);
  for (Operation *op : moved) {
    for (Value operand : op->getOperands()) {
      if (mapping.contains(operand))
        continue;
      if (Operation *maker = operand.getDefiningOp(); isCopied(*maker, symbols)) {
        builder.clone(*maker, mapping);
      } else {
        handed.push_back(operand);
        mapping.map(operand, to.addArgument(operand.getType(), operand.getLoc()));
      }
    }
    builder.clone(*op, mapping);
  }
  for (Operation *op : llvm::reverse(moved))
    op->erase();

  func::ReturnOp::create(builder, weightGradient.getLoc());
  from.getTerminator()->setOperands(handed);
  backward.setFunctionType(builder.getFunctionType(from.getArgumentTypes(), ValueRange(handed).getTypes()));
  weightGradient.setFunctionType(builder.getFunctionType(to.getArgumentTypes(), {}));
}
