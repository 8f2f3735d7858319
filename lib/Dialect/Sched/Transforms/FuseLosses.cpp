#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/Analysis/CommandUses.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_FUSELOSSES
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// Whether two buffers are the same elements of the same value.
bool isSameValue(Value a, Value b) { return isSame(a, b) && getStorage(a) && getStorage(a) == getStorage(b); }

bool isRepeated(Operation *op) { return op->hasAttr(plan::kRepeatAttr); }

bool isWrite(Operation *op, Value buffer) {
  return llvm::any_of(getInsAndOuts(op).second, [&](Value out) { return getStorage(out) == getStorage(buffer); });
}

/// A gradient of a loss, and the map that computes its factor; null where the factor is a hyperparameter.
struct Gradient {
  LaunchMapOp factor;
  LaunchOp launch;
};

/// A loss of @forward with its gradient.
class LossFusion {
public:
  LossFusion(ProgramOp program, Block &forward, Block &backward, CommandUses &uses, LaunchOp loss)
      : program(program), forward(forward), backward(backward), uses(uses), loss(loss), logits(loss.getIns()[0]),
        labels(loss.getIns()[1]), sum(loss.getOuts()[0]), count(loss.getOuts()[1]), logSum(loss.getOuts()[2]) {}

  void run() {
    if (isRepeated(loss) || !llvm::all_of(loss->getOperands(), [](Value buffer) { return getStorage(buffer); }) ||
        !findReader() || !isLastOfLogits() || !findGradient() || !isCountReady() || !mayDropLogSum())
      return;
    replace();
  }

private:
  bool isOnStream(Operation *op) {
    auto launch = dyn_cast<LaunchOp>(op);
    auto map = dyn_cast<LaunchMapOp>(op);
    return (launch && launch.getStreamAttr() == loss.getStreamAttr()) ||
           (map && map.getStreamAttr() == loss.getStreamAttr());
  }
  bool isBehind(Operation *op) { return op->getBlock() == &forward && loss->isBeforeInBlock(op); }

  /// Finds the first reader of the loss's sum: the loss may be computed right before it.
  bool findReader() {
    for (Operation *op : uses.of(sum)) {
      if (!isOnStream(op))
        return false;
      if (!reader && isBehind(op))
        reader = dyn_cast<LaunchMapOp>(op);
      if (!reader && isBehind(op))
        return false;
    }
    return reader && !isRepeated(reader);
  }

  static bool reads(LaunchMapOp map, Value value) {
    return llvm::any_of(map.getIns(), [&](Value in) { return isSameValue(in, value); });
  }

  /// Whether the count is reduced over ranks where a factor needs it. The reader of the sum runs behind the reduction
  /// if it reads the count too.
  bool isCountReady() {
    LaunchMapOp factor = gradient.factor;
    return !factor || !reads(factor, count) ||
           (reads(reader, count) && llvm::none_of(uses.of(count, &forward), [&](Operation *op) {
              return isWrite(op, count) && !op->isBeforeInBlock(reader);
            }));
  }

  /// Whether no later command in @forward needs the logits, and no command on another stream may still be reading them.
  bool isLastOfLogits() {
    return llvm::all_of(uses.of(logits, &forward), [&](Operation *op) { return isOnStream(op) && !isBehind(op); }) &&
           llvm::none_of(uses.of(labels, &forward), [&](Operation *op) { return isWrite(op, labels) && isBehind(op); });
  }

  bool findGradient() {
    SmallVector<Operation *> ofLogits = uses.of(logits, &backward);
    auto launch = ofLogits.empty() ? LaunchOp() : dyn_cast<LaunchOp>(ofLogits.front());
    if (!launch || !isGradient(launch))
      return false;
    Value dsum = launch.getIns()[0];
    if (llvm::any_of(uses.of(labels, &backward), [&](Operation *op) { return isWrite(op, labels); }))
      return false;
    SmallVector<Operation *> ofFactor = uses.of(dsum, &backward), ofCount = uses.of(count, &backward);
    if (isHyperparameter(dsum) && ofCount.empty()) {
      gradient = {LaunchMapOp(), launch};
      return true;
    }
    auto factor = ofFactor.size() == 2 ? dyn_cast<LaunchMapOp>(ofFactor[0]) : LaunchMapOp();
    bool isOwn = getStorage(dsum) != getStorage(count);
    if (!factor || ofFactor[1] != launch || !isFactor(factor, dsum) ||
        llvm::any_of(ofCount, [&](Operation *op) { return op != factor && (isOwn || op != launch); }))
      return false;
    gradient = {factor, launch};
    return true;
  }

  bool isGradient(LaunchOp launch) {
    return launch.getKernel() == KernelKind::softmax_cross_entropy_grad && isOnStream(launch) && !isRepeated(launch) &&
           launch.getSettings() == loss.getSettings() && getStorage(launch.getIns()[0]) &&
           isSameValue(launch.getIns()[1], logits) && isSameValue(launch.getIns()[2], labels) &&
           isSameValue(launch.getIns()[3], logSum) && isSameValue(launch.getOuts()[0], logits);
  }

  /// Whether the map computes one number from values that are known in @forward.
  bool isFactor(LaunchMapOp map, Value dsum) {
    return isOnStream(map) && !isRepeated(map) && !map.getAccumulateAfterFirst() && map.getOuts().size() == 1 &&
           isSameValue(map.getOuts()[0], dsum) && isTransient(dsum) &&
           llvm::all_of(map.getIns(), [&](Value in) { return isSameValue(in, count) || isHyperparameter(in); });
  }

  /// Whether the operand is a scalar of the step that the host writes.
  bool isHyperparameter(Value in) {
    bool isScalar = llvm::any_of(program.getOps<ResourceOp>(), [&](ResourceOp resource) {
      return resource.getKind() == ResourceKind::scalar && getPlace(resource) == getPlace(in);
    });
    return isScalar && getStorage(in) && llvm::none_of(uses.of(in), [&](Operation *op) {
             return isWrite(op, in) && (op->getBlock() == &forward || op->getBlock() == &backward);
           });
  }

  /// Whether the buffer is in no resource, which the host may read.
  bool isTransient(Value buffer) {
    Extent its = getExtent(buffer);
    return llvm::none_of(program.getOps<ResourceOp>(), [&](ResourceOp resource) {
      std::optional<Extent> other = getExtent(resource);
      return other && its.overlaps(*other);
    });
  }

  /// Whether no other command reads the logarithms, whose bytes then hold the factor where a map computes one: the loss
  /// still reads the count behind it.
  bool mayDropLogSum() {
    MemRefType factor = typeOf(gradient.launch.getIns()[0]), room = typeOf(logSum);
    return uses.of(logSum).size() == 2 && isTransient(logSum) && factor.getRank() == 0 && room.getNumElements() > 0 &&
           room.getElementType() == factor.getElementType();
  }

  void replace() {
    OpBuilder builder(loss);
    auto launch = [&](KernelKind kernel, ValueRange ins, ValueRange outs) {
      auto op = LaunchOp::create(builder, loss.getLoc(), kernel, loss.getStream(), ins, outs, loss.getSettings(), false,
                                 false);
      op->setDiscardableAttrs(loss->getDiscardableAttrDictionary());
      uses.add(op);
    };
    // Nobody but the loss itself uses the count where the factor is of the labels of several micro-batches.
    if (uses.of(count).size() > 1)
      launch(KernelKind::count_labels, labels, count);

    builder.setInsertionPoint(reader);
    Value factor = makeFactor(builder);
    launch(KernelKind::softmax_cross_entropy_with_grad, {factor, logits, labels}, {sum, logits});

    drop(gradient.launch);
    if (gradient.factor)
      drop(gradient.factor);
    drop(loss);
  }

  /// Returns the factor of the gradient in @forward, in the bytes of the logarithms where a map computes it.
  Value makeFactor(OpBuilder &builder) {
    LaunchMapOp made = gradient.factor;
    if (!made)
      return builder.clone(*gradient.launch.getIns()[0].getDefiningOp())->getResult(0);
    auto room = logSum.getDefiningOp<BufferOp>();
    auto factor = BufferOp::create(builder, made.getLoc(), made.getOuts()[0].getType(), room.getArenaAttr(),
                                   room.getOffsetAttr());
    factor->setDiscardableAttrs(room->getDiscardableAttrDictionary());
    SmallVector<Value> ins;
    for (Value in : made.getIns())
      ins.push_back(isSameValue(in, count) ? count : builder.clone(*in.getDefiningOp())->getResult(0));
    auto map = LaunchMapOp::create(builder, made.getLoc(), TypeRange(), made.getFunctionAttr(), made.getStreamAttr(),
                                   ins, ValueRange(factor.getResult()), UnitAttr());
    map->setDiscardableAttrs(made->getDiscardableAttrDictionary());
    uses.add(map);
    return factor;
  }

  /// Removes a command, and those of its buffers that no other command uses.
  void drop(Operation *command) {
    uses.remove(command);
    llvm::SmallSetVector<Value, 8> buffers(command->operand_begin(), command->operand_end());
    command->erase();
    for (Value buffer : buffers)
      if (buffer.use_empty())
        buffer.getDefiningOp()->erase();
  }

  ProgramOp program;
  Block &forward;
  Block &backward;
  CommandUses &uses;
  LaunchOp loss;
  Value logits, labels, sum, count, logSum;
  LaunchMapOp reader;
  Gradient gradient;
};

struct FuseLosses : sched::impl::FuseLossesBase<FuseLosses> {
  void runOnOperation() override {
    for (func::FuncOp function : getStepFunctions(getOperation()))
      if (hasRole(function, StepRole::forward))
        if (auto backward = getStepFunction(getOperation(), StepRole::backward, getStep(function).getChunk()))
          fuse(function, backward);
  }

  void fuse(func::FuncOp forward, func::FuncOp backward) {
    Block &block = forward.getBody().front();
    SmallVector<LaunchOp> losses = llvm::filter_to_vector(block.getOps<LaunchOp>(), [](LaunchOp launch) {
      return launch.getKernel() == KernelKind::softmax_cross_entropy;
    });
    CommandUses uses(getOperation());
    for (LaunchOp loss : losses)
      LossFusion(getOperation(), block, backward.getBody().front(), uses, loss).run();
  }
};

} // namespace
