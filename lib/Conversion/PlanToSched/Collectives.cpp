#include "Lowering.h"

#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;
using Step = plan::ReshardStep;

static RankedTensorType withShape(Value value, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, llvm::cast<RankedTensorType>(value.getType()).getElementType());
}

static Value reshaped(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = withShape(value, shape);
  return type == value.getType() ? value : train::ReshapeOp::create(builder, loc, type, value).getResult();
}

/// Builds the collective of one step, on the local slice as the step sees it.
static Value lowerStep(OpBuilder &builder, Location loc, Value part, const Step &step) {
  ArrayAttr axes = builder.getArrayAttr(SmallVector<Attribute>(step.axes.begin(), step.axes.end()));
  if (step.kind == Step::Kind::AllReduce)
    return AllReduceOp::create(builder, loc, TypeRange(part.getType()), ValueRange(part), axes, /*positions=*/nullptr,
                               step.reduction)
        .getResult(0);
  if (step.kind == Step::Kind::Permute)
    return PermuteOp::create(builder, loc, part.getType(), part, step.destinations, axes);
  part = reshaped(builder, loc, part, step.shape);
  int64_t held = step.shape.front();
  if (step.kind == Step::Kind::Pad)
    return train::PadOp::create(builder, loc, withShape(part, {step.elements}), part, /*low=*/ArrayRef<int64_t>{0},
                                /*high=*/ArrayRef<int64_t>{step.elements - held}, llvm::APFloat(0.0));
  if (step.kind == Step::Kind::Trim)
    return train::SliceOp::create(builder, loc, withShape(part, {step.elements}), part, /*starts=*/ArrayRef<int64_t>{0},
                                  /*sizes=*/ArrayRef<int64_t>{step.elements});
  SmallVector<int64_t> shape(step.shape.begin(), step.shape.end());
  if (step.cut >= 0)
    shape[step.cut] /= step.members;
  if (step.join >= 0)
    shape[step.join] *= step.members;
  Type type = withShape(part, shape);
  switch (step.kind) {
  case Step::Kind::ReduceScatter:
    return ReduceScatterOp::create(builder, loc, type, part, step.cut, axes).getResult(0);
  case Step::Kind::AllGather:
    return AllGatherOp::create(builder, loc, type, part, step.join, axes).getResult(0);
  case Step::Kind::AllToAll:
    return AllToAllOp::create(builder, loc, type, part, step.cut, step.join, axes);
  default:
    return OwnPartOp::create(builder, loc, type, part, step.cut, axes);
  }
}

FailureOr<Value> sched::lowerReshard(OpBuilder &builder, Location loc, Value part, RankedTensorType global,
                                     plan::LayoutAttr from, plan::LayoutAttr to, plan::MeshAttr mesh) {
  llvm::Expected<plan::ReshardPlan> reshard = plan::planReshard(global.getShape(), from, to, mesh);
  if (!reshard)
    return emitError(loc) << llvm::toString(reshard.takeError());
  for (const Step &step : reshard->steps)
    part = lowerStep(builder, loc, part, step);
  return reshaped(builder, loc, part, to.getLocalType(global, mesh).getShape());
}

bool sched::isSent(RankedTensorType global, plan::LayoutAttr from, plan::LayoutAttr to, plan::MeshAttr mesh) {
  llvm::Expected<plan::ReshardPlan> reshard = plan::planReshard(global.getShape(), from, to, mesh);
  if (reshard)
    return reshard->sentElements > 0;
  llvm::consumeError(reshard.takeError()); // lowerReshard says what is wrong
  return false;
}

Value sched::convertTo(OpBuilder &builder, Location loc, Value value, Type element) {
  auto type = llvm::cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  return train::CastOp::create(builder, loc, type.clone(element), value);
}
