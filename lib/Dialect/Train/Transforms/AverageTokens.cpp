// train-average-tokens
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_AVERAGETOKENSPASS
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

namespace {

/// Finds the elements of an input that are the labels of the loss.
class LabelFinder {
public:
  explicit LabelFinder(func::FuncOp function) : function(function) {}

  FailureOr<CountedLabelsAttr> find() {
    auto returned = dyn_cast<func::ReturnOp>(function.front().getTerminator());
    if (!returned || returned.getNumOperands() != 1)
      return function.emitOpError() << "must return the loss and nothing else";
    Value loss = returned.getOperand(0);
    auto mean = loss.getDefiningOp<LossOp>();
    auto entropy = mean ? mean.getSum().getDefiningOp<SoftmaxCrossEntropyOp>() : SoftmaxCrossEntropyOp();
    if (!entropy || mean.getCount() != entropy.getCount())
      return fail() << "it is " << describe(loss) << ", not the mean of one cross entropy";
    ignored = entropy.getIgnoreIndex();
    labels = entropy.getLabels();
    if (failed(findPath()) || failed(followPath()))
      return failure();
    auto name = function.getArgAttrOfType<StringAttr>(input.getArgNumber(), kInputAttr);
    if (!name)
      return function.emitOpError() << "argument " << input.getArgNumber() << " has no attribute " << kInputAttr;
    auto bound = function.getArgAttrOfType<IntegerAttr>(input.getArgNumber(), kVocabularyAttr);
    SmallVector<int64_t> sizes;
    for (auto [start, end] : llvm::zip_equal(starts, ends))
      sizes.push_back(end - start);
    return CountedLabelsAttr::get(function.getContext(), name.getValue(), cast<RankedTensorType>(input.getType()),
                                  starts, sizes, ignored, bound ? bound.getInt() : 0);
  }

private:
  InFlightDiagnostic fail() {
    return emitError(function.getLoc(), Code::average) << "--average tokens counts the labels of the loss, but ";
  }

  static std::string describe(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return "an input";
    auto id = op->getAttrOfType<StringAttr>(kIdAttr);
    std::string kind = op->getName().stripDialect().str();
    return id ? kind + " " + printable(id.getValue()) : kind;
  }

  static bool isInteger(Value value) {
    Type element = getElementTypeOrSelf(value.getType());
    return element.isSignlessInteger(64) || element.isSignlessInteger(32);
  }

  /// Walks from the labels back to the input.
  LogicalResult findPath() {
    Value value = labels;
    while (Operation *op = value.getDefiningOp()) {
      if (!isa<PadOp, SliceOp, ReshapeOp, TransposeOp, CastOp>(op) || !isInteger(op->getOperand(0)))
        return fail() << "they come from " << describe(value) << ", not from an input by pads, slices and reshapes";
      path.push_back(op);
      value = op->getOperand(0);
    }
    input = cast<BlockArgument>(value);
    return success();
  }

  /// Walks from the input on and computes the box of it that is left. `origin` is the place in the input where the
  /// value's first element would be.
  LogicalResult followPath() {
    auto shape = cast<RankedTensorType>(input.getType()).getShape();
    starts.assign(shape.size(), 0);
    ends.assign(shape.begin(), shape.end());
    SmallVector<int64_t> origin(shape.size(), 0);
    bool hasDimsOfInput = true;
    for (Operation *op : llvm::reverse(path)) {
      if (isa<CastOp>(op))
        continue;
      if (isa<ReshapeOp, TransposeOp>(op)) {
        hasDimsOfInput = false;
        continue;
      }
      if (!hasDimsOfInput)
        return fail() << "they are made by " << describe(op->getResult(0)) << " behind a reshape";
      auto pad = dyn_cast<PadOp>(op);
      if (pad && pad.getValue().convertToDouble() != static_cast<double>(ignored))
        return fail() << describe(pad) << " adds labels of " << pad.getValue().convertToDouble() << ", and " << ignored
                      << " is what is ignored";
      ArrayRef<int64_t> sizes = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
      for (size_t dim = 0; dim < sizes.size(); ++dim) {
        origin[dim] += pad ? -pad.getLow()[dim] : cast<SliceOp>(op).getStarts()[dim];
        starts[dim] = std::max(starts[dim], origin[dim]);
        ends[dim] = std::min(ends[dim], origin[dim] + sizes[dim]);
        if (starts[dim] >= ends[dim])
          return fail() << describe(op->getResult(0)) << " leaves none of them";
      }
    }
    return success();
  }

  func::FuncOp function;
  int64_t ignored = 0;
  Value labels;
  SmallVector<Operation *> path;
  BlockArgument input;
  SmallVector<int64_t> starts, ends;
};

class AverageTokensPass : public impl::AverageTokensPassBase<AverageTokensPass> {
public:
  void runOnOperation() override {
    auto function = getLossFunction(getOperation());
    if (!function || function.isExternal()) {
      getOperation().emitError() << "there is no function @" << kLossFunction
                                 << " with a body; labels are found before train-differentiate";
      return signalPassFailure();
    }
    FailureOr<CountedLabelsAttr> labels = LabelFinder(function).find();
    if (failed(labels))
      return signalPassFailure();
    getOperation()->setAttr(kCountedLabelsAttr, *labels);
  }
};

} // namespace
} // namespace windlass::train
