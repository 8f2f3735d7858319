#include "ReverseWalk.h"

#include "OperandNames.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace windlass::train {
namespace {

class ReverseWalk {
public:
  ReverseWalk(Block &block, const llvm::DenseSet<Value> &active)
      : block(block), active(active), builder(OpBuilder::atBlockEnd(&block)) {}

  FailureOr<ParameterGradients> run(const ReverseStart &start);

private:
  /// Builds the gradient of the root.
  Value buildStart(const ReverseStart &start);
  /// Returns the sum of the gradients that reached `value`, or null.
  Value takeGradient(Value value);
  LogicalResult buildAdjoint(Operation *op, ArrayRef<Value> resultGradients);
  /// Names the operators that were appended after `last` on behalf of `forward`.
  void label(Operation *last, Operation *forward, ArrayRef<Value> operandGradients);
  void setId(Operation *op, const Twine &id, StringAttr forward);

  Block &block;
  const llvm::DenseSet<Value> &active;
  OpBuilder builder;
  llvm::DenseMap<Value, SmallVector<Value, 2>> contributions;
  llvm::StringSet<> ids;
};

StringAttr getId(Operation *op) {
  auto id = op->getAttrOfType<StringAttr>(kIdAttr);
  return id ? id : StringAttr::get(op->getContext(), op->getName().stripDialect());
}

void ReverseWalk::setId(Operation *op, const Twine &wanted, StringAttr forward) {
  std::string id = wanted.str();
  for (unsigned ordinal = 1; !ids.insert(id).second; ++ordinal)
    id = (wanted + "." + Twine(ordinal)).str();
  op->setAttr(kIdAttr, builder.getStringAttr(id));
  op->setAttr(kForwardAttr, forward);
}

void ReverseWalk::label(Operation *last, Operation *forward, ArrayRef<Value> operandGradients) {
  StringAttr id = getId(forward);
  auto begin = last ? std::next(Block::iterator(last)) : block.begin();
  for (Operation &op : llvm::make_range(begin, block.end())) {
    std::string name;
    for (auto [index, gradient] : llvm::enumerate(operandGradients))
      if (name.empty() && gradient && gradient.getDefiningOp() == &op)
        name = getOperandName(forward, index);
    // A step on the way to an operand's gradient is named by what it does.
    if (name.empty())
      name = op.getName().stripDialect();
    setId(&op, id.getValue() + ".grad." + name, id);
  }
}

Value ReverseWalk::takeGradient(Value value) {
  auto found = contributions.find(value);
  if (found == contributions.end())
    return {};
  SmallVector<Value, 2> parts = std::move(found->second);
  contributions.erase(found);
  if (parts.size() == 1)
    return parts.front();
  Operation *forward = value.getDefiningOp();
  auto sum = AccumulateOp::create(builder, forward->getLoc(), value.getType(), parts);
  setId(sum, getId(forward).getValue() + ".grad.accumulate", getId(forward));
  return sum;
}

LogicalResult ReverseWalk::buildAdjoint(Operation *op, ArrayRef<Value> resultGradients) {
  StringAttr id = getId(op);
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable)
    return op->emitOpError() << "'" << id.getValue()
                             << "' has no gradient, but lies between a trainable parameter and the loss; freeze the "
                                "parameters before it";
  SmallVector<bool> wanted;
  for (Value operand : op->getOperands())
    wanted.push_back(active.contains(operand));
  SmallVector<Value> gradients(op->getNumOperands());
  Operation *last = block.empty() ? nullptr : &block.back();
  {
    // Rules speak of their operator; the id says which of them it is.
    ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic &diagnostic) {
      diagnostic << " (operator '" << id.getValue() << "')";
      return failure();
    });
    builder.setInsertionPointToEnd(&block);
    if (failed(differentiable.buildAdjoint(builder, resultGradients, wanted, gradients)))
      return failure();
  }
  label(last, op, gradients);
  for (auto [operand, gradient, isWanted] : llvm::zip(op->getOperands(), gradients, wanted))
    if (isWanted && gradient)
      contributions[operand].push_back(gradient);
  return success();
}

Value ReverseWalk::buildStart(const ReverseStart &start) {
  Location loc = start.root.getLoc();
  auto type = cast<RankedTensorType>(start.root.getType());
  StringAttr id = getId(start.root.getDefiningOp());
  Value share;
  if (start.share) {
    auto value = DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), *start.share));
    share = ConstantOp::create(builder, loc, type, value);
    setId(share.getDefiningOp(), id.getValue() + ".grad", id);
  } else {
    share = HyperparameterOp::create(builder, loc, type, Hyperparameter::inverse_label_count);
  }
  if (!start.scalesLoss)
    return share;
  Value scale = HyperparameterOp::create(builder, loc, type, Hyperparameter::loss_scale);
  auto scaled = MulOp::create(builder, loc, share, scale);
  setId(scaled, id.getValue() + ".grad.scale", id);
  return scaled;
}

FailureOr<ParameterGradients> ReverseWalk::run(const ReverseStart &start) {
  SmallVector<Operation *> forward;
  for (Operation &op : block) {
    forward.push_back(&op);
    ids.insert(getId(&op).getValue());
  }
  contributions[start.root].push_back(buildStart(start));

  ParameterGradients result;
  bool failedOnce = false;
  for (Operation *op : llvm::reverse(forward)) {
    SmallVector<Value> gradients;
    for (Value value : op->getResults())
      gradients.push_back(takeGradient(value));
    if (llvm::none_of(gradients, [](Value gradient) { return static_cast<bool>(gradient); }))
      continue;
    if (auto read = dyn_cast<ReadOp>(op))
      result[read.getParameterAttr().getAttr()] = gradients.front();
    else if (failed(buildAdjoint(op, gradients)))
      failedOnce = true; // What comes before it may still be reached another way; go on and report all.
  }
  if (failedOnce)
    return failure();
  return result;
}

} // namespace

FailureOr<ParameterGradients> buildBackward(Block &block, const ReverseStart &start,
                                            const llvm::DenseSet<Value> &active) {
  return ReverseWalk(block, active).run(start);
}

} // namespace windlass::train
