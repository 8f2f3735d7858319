// train-mark-segments
#include "Blocks.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_MARKSEGMENTSPASS
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

namespace {

using Operations = SmallVector<Operation *>;

/// A part must have at least this share of its block's FLOPs, or the block has no halves.
constexpr double kSmallestHalf = 1.0 / 16;

/// The names of the parts of a block.
constexpr char kAttentionPart[] = "attention", kMlpPart[] = "mlp", kFirstPart[] = "first", kSecondPart[] = "second";

/// Whether the operator is free to recompute, so that its values are at hand wherever they are needed.
bool isFree(Operation *op) { return isa<ConstantOp, IotaOp, ReadOp>(op); }

/// Returns the value under the views of `value`.
Value peel(Value value) {
  while (isa_and_nonnull<ReshapeOp, TransposeOp, BroadcastOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

class SegmentMarker {
public:
  explicit SegmentMarker(Block &body)
      : body(body), weightless(findWeightless(body)), shared(findShared(body, weightless, /*depth=*/0)) {}

  void run() {
    for (Operation &op : body)
      if (auto repeat = op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr);
          repeat && isa<ConvolutionOp, MatmulOp>(op))
        repeatedBlocks.insert(repeat);
    llvm::MapVector<StringAttr, Operations> blocks;
    for (Operation &op : body.without_terminator())
      if (StringAttr name = getBlock(&op))
        blocks[name].push_back(&op);
    for (auto &[name, ops] : blocks)
      if (ops.size() >= kSmallestBlock)
        mark(name, ops);
  }

private:
  /// Returns the name of the block that the operator belongs to; null where it belongs to none.
  StringAttr getBlock(Operation *op) {
    auto id = op->getAttrOfType<StringAttr>(kIdAttr);
    if (!isForward(op) || isFree(op) || !id)
      return {};
    auto toName = [&](StringRef prefix, int64_t index) {
      return StringAttr::get(op->getContext(), prefix + "." + Twine(index));
    };
    if (auto repeat = op->getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr); repeatedBlocks.contains(repeat))
      return toName(repeat.getClassName().getValue().split('#').first, repeat.getIndex());
    std::optional<Place> place = shared.contains(op) ? std::nullopt : findPlace(id.getValue(), /*depth=*/0);
    return place ? toName(place->prefix, place->index) : StringAttr();
  }

  /// Returns the number of operators in the first half; 0 where no cut is good.
  size_t findCut(ArrayRef<Operation *> ops) {
    llvm::DenseMap<Operation *, size_t> positions;
    for (auto [i, op] : llvm::enumerate(ops))
      positions[op] = i;
    // For each value that is not at hand: the operator behind which it is available, and its last user.
    llvm::MapVector<Value, std::pair<size_t, size_t>> spans;
    for (auto [i, op] : llvm::enumerate(ops))
      for (Value operand : op->getOperands()) {
        Value value = peel(operand);
        Operation *source = value.getDefiningOp();
        if (!source || isFree(source) || weightless.contains(source))
          continue;
        auto known = positions.find(source);
        size_t from = known == positions.end() ? 1 : known->second + 1;
        auto [span, isNew] = spans.try_emplace(value, from, i);
        span->second.second = i;
      }
    std::vector<int64_t> crossing(ops.size() + 1);
    for (auto &[value, span] : spans)
      if (span.first <= span.second) {
        ++crossing[span.first];
        --crossing[span.second + 1];
      }
    double total = 0, before = 0, best = 0;
    for (Operation *op : ops)
      total += getFlops(op);
    size_t cut = 0;
    int64_t live = 0;
    for (size_t i = 0; i < ops.size(); ++i) {
      live += crossing[i];
      double smaller = std::min(before, total - before);
      if (live == 1 && smaller >= best && smaller >= kSmallestHalf * total && smaller > 0) {
        best = smaller;
        cut = i;
      }
      before += getFlops(ops[i]);
    }
    return cut;
  }

  static double getFlops(Operation *op) {
    auto compute = dyn_cast<TrainOpInterface>(op);
    return compute ? compute.getCost().flops : 0;
  }

  template <class Op> static bool has(ArrayRef<Operation *> ops) {
    return llvm::any_of(ops, [](Operation *op) { return isa<Op>(op); });
  }

  static void mark(StringAttr block, ArrayRef<Operation *> ops, StringRef part) {
    MLIRContext *context = block.getContext();
    auto segment = plan::SegmentAttr::get(context, block, StringAttr::get(context, part));
    for (Operation *op : ops)
      op->setAttr(plan::kSegmentAttr, segment);
  }

  void mark(StringAttr block, ArrayRef<Operation *> ops) {
    size_t cut = findCut(ops);
    if (cut == 0)
      return mark(block, ops, "");
    ArrayRef<Operation *> first = ops.take_front(cut), second = ops.drop_front(cut);
    bool inFirst = has<AttentionOp>(first), inSecond = has<AttentionOp>(second);
    if (!inFirst && !inSecond) { // not recognised as one
      inFirst = has<SoftmaxOp>(first);
      inSecond = has<SoftmaxOp>(second);
    }
    bool areNamed = inFirst != inSecond;
    mark(block, first, !areNamed ? kFirstPart : inFirst ? kAttentionPart : kMlpPart);
    mark(block, second, !areNamed ? kSecondPart : inSecond ? kAttentionPart : kMlpPart);
  }

  Block &body;
  llvm::DenseSet<Operation *> weightless, shared;
  /// The repeats that are more than the norms of one layer.
  llvm::DenseSet<Attribute> repeatedBlocks;
};

class MarkSegmentsPass : public impl::MarkSegmentsPassBase<MarkSegmentsPass> {
public:
  void runOnOperation() override {
    auto function = getMicrobatchFunction(getOperation());
    if (function && !function.isExternal())
      SegmentMarker(function.front()).run();
  }
};

} // namespace
} // namespace windlass::train
