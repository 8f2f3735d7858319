//===- Legalizer.h - the forward walk from onnx to train --------*- C++ -*-===//

#ifndef WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_LEGALIZER_H
#define WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_LEGALIZER_H

#include "ExportedModel.h"
#include "PartialEvaluator.h"

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"
#include "windlass/Dialect/Onnx/IR/OnnxOps.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"
#include "windlass/Dialect/Train/IR/Windows.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

#include <array>
#include <optional>

namespace windlass {

/// One node while it is legalized.
struct NodeContext {
  onnx::NodeOp op;
  llvm::SmallVector<Entry> inputs;
  llvm::SmallVector<Entry> outputs;

  /// Returns the input at `index`; an absent entry where the node has fewer inputs.
  Entry input(size_t index) const { return index < inputs.size() ? inputs[index] : Entry::absent(); }
  bool has(size_t index) const { return input(index).kind != Entry::Kind::absent; }
  /// Whether the output is used by name.
  bool wants(size_t index);
  mlir::Attribute attribute(llvm::StringRef name);
  int64_t getInt(llvm::StringRef name, int64_t fallback);
  double getFloat(llvm::StringRef name, double fallback);
  llvm::StringRef getString(llvm::StringRef name, llvm::StringRef fallback);
  std::optional<llvm::ArrayRef<int64_t>> getInts(llvm::StringRef name);
  int64_t version() { return static_cast<int64_t>(op.getSinceVersion()); }
};

/// The outcome for an initializer that `@loss` reads.
struct UsedParameter {
  onnx::InitializerOp op;
  std::string symbol;
  mlir::Value read;
  /// A table that a RotaryEmbedding reads.
  bool isRotaryTable = false;
  /// A mean or variance by which a batch norm in inference form normalizes.
  bool isStoredStatistic = false;
  /// The share that a micro-batch leaves of it: it is the running mean or variance of batch norms in training form.
  std::optional<double> momentum;
  /// A variance or the scale of a batch norm, which are 1 in a new model.
  bool startsAtOne = false;
  /// The weights of the classes of a loss.
  bool isClassWeights = false;
};

/// The labels of a loss that is no operator, [batch, ..], of which each is below `classes`.
struct LossLabels {
  mlir::Value value;
  int64_t classes;
};

class Legalizer {
public:
  Legalizer(onnx::GraphOp graph, const WeightStore *weights, const ExportedModel &exported,
            const OnnxToTrainOptions &options, OnnxToTrainReport &report, mlir::OpBuilder &builder);

  /// Builds `@loss` behind the graph. Parameters that it reads are in `getParameters`.
  mlir::FailureOr<mlir::func::FuncOp> run();
  llvm::ArrayRef<UsedParameter> getParameters() const { return parameters; }
  llvm::ArrayRef<LossLabels> getLossLabels() const { return lossLabels; }

private:
  using Handler = mlir::LogicalResult (Legalizer::*)(NodeContext &);

  /// Registers the handler of an ONNX operator. Ends the program where the operator has a handler already: a new
  /// legalization must remove its operator from the list in ShapeOnly.cpp.
  void handle(llvm::StringRef opType, Handler handler);
  void registerElementwise();
  void registerActivations();
  void registerStructural();
  void registerIndexing();
  void registerScatters();
  void registerRankings();
  void registerResizing();
  void registerRecurrent();
  void registerContractions();
  void registerEinsum();
  void registerConvolutions();
  void registerReductions();
  void registerNorms();
  void registerLosses();
  void registerAttention();
  void registerRandom();
  void registerConstants();
  void registerShapeOnly();

  mlir::FailureOr<size_t> findLoss();
  mlir::LogicalResult addInputs(mlir::func::FuncOp function);
  void findNeeded(mlir::Value output);
  mlir::LogicalResult visit(onnx::NodeOp op);
  Entry readInitializer(onnx::InitializerOp op);
  /// Returns why an unmarked initializer of floats is a constant although it is no mask; empty when it may train.
  std::string whyConstant(onnx::InitializerOp op, const KnownTensor &tensor);
  void reportUnsupported(onnx::NodeOp op, llvm::StringRef reason);
  /// Makes parameters running statistics where each has one batch norm, and adds a warning for each other form of batch
  /// norm that the loss reads.
  void finishBatchNorms();

  // How handlers end.
  /// Reports that the operator is supported, but not in this form.
  mlir::LogicalResult unsupported(const llvm::Twine &reason);
  /// Reports at the node that the model is wrong; ends the walk.
  mlir::LogicalResult invalid(NodeContext &node, const llvm::Twine &message);
  mlir::LogicalResult give(NodeContext &node, Entry result);
  mlir::LogicalResult give(NodeContext &node, size_t index, Entry result);

  // What handlers share.
  /// Returns the integers of a known input; reports the node as unsupported when it is not known.
  mlir::FailureOr<Shape> readIntegers(NodeContext &node, size_t index, llvm::StringRef what);
  mlir::LogicalResult expectTensors(NodeContext &node, size_t count);
  /// Whether a node on the way to the loss uses the output.
  bool leadsToLoss(NodeContext &node, unsigned index);
  /// Fails, with an error, unless the first operand is a tensor of floats.
  mlir::LogicalResult expectFloat(NodeContext &node);
  /// Returns `axis` in [0, rank), or an error.
  mlir::FailureOr<int64_t> normalizeAxis(NodeContext &node, int64_t axis, int64_t rank);
  /// Returns the attribute `axis`, by default the last one, for the first of `count` operands, which must be tensors;
  /// fails where that one is not of floats or is a single number.
  mlir::FailureOr<int64_t> readFloatAxis(NodeContext &node, size_t count);
  mlir::FailureOr<Shape> readAxes(NodeContext &node, size_t inputIndex, int64_t rank);
  mlir::LogicalResult checkOperands(NodeContext &node, const Entry &lhs, const Entry &rhs);
  mlir::LogicalResult checkCount(NodeContext &node, llvm::ArrayRef<int64_t> shape);

  mlir::LogicalResult concatEntries(NodeContext &node, llvm::ArrayRef<Entry> parts, int64_t axis);
  mlir::FailureOr<std::vector<Entry>> splitEntry(NodeContext &node, const Entry &x, int64_t axis,
                                                 llvm::ArrayRef<int64_t> sizes);

  /// Returns what `build` gives. The operators that it emits compute in f32 where values are narrower, as in PyTorch.
  Entry inFullPrecision(llvm::function_ref<Entry()> build);

  Entry alongLast(const Entry &x, int64_t axis, llvm::function_ref<Entry(const Entry &)> apply);

  /// Reports the node as unsupported, but lets the walk go on with a value of `shape` as output `index`, so that the
  /// nodes behind it are reported too. The conversion fails at its end.
  mlir::LogicalResult setShapeOnly(NodeContext &node, size_t index, llvm::ArrayRef<int64_t> shape,
                                   mlir::Type elementType, llvm::StringRef reason);
  mlir::LogicalResult setShapeLikeFirst(NodeContext &node);

  // Element-wise.
  mlir::LogicalResult legalizeUnary(NodeContext &node);
  mlir::LogicalResult legalizeBinary(NodeContext &node);
  mlir::LogicalResult legalizeVariadic(NodeContext &node);
  mlir::LogicalResult legalizeCompare(NodeContext &node);
  mlir::LogicalResult legalizePow(NodeContext &node);
  mlir::LogicalResult legalizeWhere(NodeContext &node);
  mlir::LogicalResult legalizeCast(NodeContext &node);
  /// Returns the type for arithmetic on elements of the ONNX type that an attribute gives by its number; null where it
  /// is not supported.
  mlir::Type readElementType(NodeContext &node, llvm::StringRef attribute);
  mlir::LogicalResult legalizeClip(NodeContext &node);
  mlir::LogicalResult legalizeIdentity(NodeContext &node);
  // Activations.
  mlir::LogicalResult legalizeGelu(NodeContext &node);
  mlir::LogicalResult legalizePRelu(NodeContext &node);
  mlir::LogicalResult legalizeActivation(NodeContext &node);
  // Structural.
  mlir::LogicalResult legalizeReshape(NodeContext &node);
  mlir::LogicalResult legalizeFlatten(NodeContext &node);
  mlir::LogicalResult legalizeSqueeze(NodeContext &node);
  mlir::LogicalResult legalizeUnsqueeze(NodeContext &node);
  mlir::LogicalResult legalizeTranspose(NodeContext &node);
  mlir::LogicalResult legalizeExpand(NodeContext &node);
  mlir::LogicalResult legalizeTile(NodeContext &node);
  mlir::LogicalResult legalizeConcat(NodeContext &node);
  mlir::LogicalResult legalizeSplit(NodeContext &node);
  mlir::LogicalResult legalizeSlice(NodeContext &node);
  mlir::LogicalResult legalizePad(NodeContext &node);
  mlir::LogicalResult legalizeDepthToSpace(NodeContext &node);
  mlir::LogicalResult legalizeSplitToSequence(NodeContext &node);
  mlir::LogicalResult legalizeSequenceConstruct(NodeContext &node);
  mlir::LogicalResult legalizeSequenceAt(NodeContext &node);
  mlir::LogicalResult legalizeConcatFromSequence(NodeContext &node);
  // Indexing.
  mlir::LogicalResult legalizeGather(NodeContext &node);
  mlir::LogicalResult legalizeGatherNd(NodeContext &node);
  mlir::LogicalResult legalizeGatherElements(NodeContext &node);
  /// Returns the elements along `axis` at places that are known in training only.
  Entry gatherElements(const Entry &x, const Entry &indices, int64_t axis);
  mlir::LogicalResult legalizeTrilu(NodeContext &node);
  mlir::LogicalResult legalizeOneHot(NodeContext &node);
  /// Fails, with an error, unless operand 1, [batch.., outer.., depth], can name rows of operand 0, [batch.., ..].
  mlir::LogicalResult checkRowIndices(NodeContext &node, int64_t batch);
  /// Returns the places in the merged leading dims of operand 0 that the rows of operand 1 name, [batch.., outer..].
  /// Negative indices count from the end. Reports an error and fails where a known index is outside; a live one gives
  /// a place that is outside too.
  mlir::FailureOr<Entry> mergeIndices(NodeContext &node, int64_t batch);
  /// Fails, with an error, unless operand 1 can name elements along `axis` of operand 0.
  mlir::LogicalResult checkElementIndices(NodeContext &node, int64_t axis);
  /// Returns the places in the flat operand 0 of the elements that operand 1, which is known, names along `axis`.
  /// Reports an error and fails where an index is outside.
  mlir::FailureOr<Entry> flattenElementIndices(NodeContext &node, int64_t axis);
  // Scatters.
  /// Returns whether a scatter adds to its tensor instead of replacing elements of it.
  mlir::FailureOr<bool> readScatterAdds(NodeContext &node);
  /// Gives `data`, which is operand 0, with what `scatter` makes of `updates`: sums in a tensor of zeros.
  mlir::LogicalResult giveScattered(NodeContext &node, const Entry &data, bool adds,
                                    llvm::function_ref<Entry(const Entry &)> scatter, const Entry &updates);
  /// Gives operand 0, in the shape `rows` of [size, inner..], with `updates`, [n, inner..], at its rows `places`, [n].
  mlir::LogicalResult scatterRows(NodeContext &node, const Entry &places, const Entry &updates,
                                  llvm::ArrayRef<int64_t> rows);
  mlir::LogicalResult legalizeScatterElements(NodeContext &node);
  mlir::LogicalResult legalizeScatterNd(NodeContext &node);
  // Rankings.
  mlir::LogicalResult legalizeArgExtreme(NodeContext &node);
  mlir::LogicalResult legalizeHardmax(NodeContext &node);
  mlir::LogicalResult legalizeTopK(NodeContext &node);
  /// Returns the place along the last dim of the first true element of each row, or of the last one, [.., 1].
  Entry placeOf(const Entry &isWanted, mlir::Type elementType, bool isLast);
  /// Returns the place along the last dim of the first greatest element of each row, or of the last one, [.., 1], in
  /// the element type of `rows`. A NaN is greater than any number.
  Entry placeOfGreatest(const Entry &rows, bool isLast);
  /// Returns 0, 1, .. up to `count` - 1 as numbers of `elementType`.
  Entry countUp(int64_t count, mlir::Type elementType);
  /// Returns the `count` greatest elements of each row and their indices, [..., count] each.
  std::pair<Entry, Entry> takeGreatest(const Entry &x, const Entry &ranking, int64_t count);
  // Resizing.
  /// How one axis is resized.
  struct ResizedAxis;
  mlir::FailureOr<std::vector<ResizedAxis>> readResizedAxes(NodeContext &node);
  /// Sets the sizes and scales of the result from operands 2 and 3.
  mlir::LogicalResult readScales(NodeContext &node, llvm::MutableArrayRef<ResizedAxis> axes);
  mlir::LogicalResult legalizeResize(NodeContext &node);
  /// Returns `x` with the elements along an axis that the coordinates of the axis are nearest to.
  mlir::FailureOr<Entry> takeNearest(NodeContext &node, const Entry &x, const ResizedAxis &axis);
  /// Returns `x` with sums of weighed neighbours along an axis.
  mlir::FailureOr<Entry> interpolate(NodeContext &node, const Entry &x, const ResizedAxis &axis);
  // Recurrent networks.
  struct Recurrence;
  mlir::LogicalResult legalizeRecurrent(NodeContext &node);
  /// Fails unless all operands fit each other and the attributes say what is supported.
  mlir::LogicalResult checkRecurrent(NodeContext &node, int64_t gates, int64_t directions);
  /// Returns whether the activation of an RNN is Relu; fails where activations are not the usual ones.
  mlir::FailureOr<bool> readRectified(NodeContext &node, int64_t directions);
  /// Returns what a direction computes, and sets the bias that the sequence's part of the gates has.
  Recurrence makeRecurrence(NodeContext &node, int64_t direction, bool isRectified, Entry &bias);
  /// Returns the state's part of `count` gates from number `first` on, [batch, count · hidden].
  Entry multiplyState(const Recurrence &of, const Entry &state, int64_t first, int64_t count);
  /// Returns the next state and cell, [batch, hidden], from a token's part of the gates.
  std::pair<Entry, Entry> stepRecurrence(const Recurrence &of, const Entry &input, const Entry &state,
                                         const Entry &cell);
  // Attention and the position embedding of its operands.
  mlir::LogicalResult legalizeAttention(NodeContext &node);
  /// Queries [batch, heads, tokens, depth], and keys and values repeated for as many heads.
  struct AttentionOperands {
    Entry query, key, value;
    /// Whether the node's operands hold all heads in their last dimension.
    bool isFlat = false;
  };
  mlir::FailureOr<AttentionOperands> readAttentionOperands(NodeContext &node);
  /// Returns the scaled and capped scores, [batch, heads, tokens, keys].
  Entry computeScores(NodeContext &node, const AttentionOperands &operands);
  /// Returns which keys the attributes of the node let each query see, [tokens, keys]; absent where all.
  mlir::FailureOr<Entry> readWindow(NodeContext &node, int64_t tokens, int64_t keys);
  /// Adds -inf to the scores of keys that a query must not see, and the node's own mask.
  mlir::FailureOr<Entry> maskScores(NodeContext &node, const AttentionOperands &operands, Entry scores);
  mlir::LogicalResult legalizeRotaryEmbedding(NodeContext &node);
  // Random.
  mlir::LogicalResult legalizeDropout(NodeContext &node);
  /// Returns the keys of one more dropout.
  mlir::Value addDropoutKeys();
  /// Drops elements of each sample at the rate `ratio`, and divides the others by 1 - `ratio`.
  Entry dropElements(const Entry &x, double ratio);
  /// Returns the type of the numbers that a node draws; null where its attribute `dtype` gives one that is not known.
  mlir::Type readDrawnType(NodeContext &node, mlir::Type fallback);
  mlir::LogicalResult legalizeUniform(NodeContext &node);
  mlir::LogicalResult legalizeBernoulli(NodeContext &node);
  /// Legalizes a node that reads random numbers: a choice among them, as dropout and stochastic depth make it, becomes
  /// a mask of zeros and ones.
  mlir::LogicalResult legalizeChoice(NodeContext &node);
  /// Returns ones at the rate `rate`, and zeros; where nothing is dropped, `rate` stands for each of them.
  Entry drawMask(mlir::RankedTensorType type, double rate);
  // Contractions.
  mlir::LogicalResult legalizeMatMul(NodeContext &node);
  mlir::LogicalResult legalizeGemm(NodeContext &node);
  mlir::LogicalResult legalizeEinsum(NodeContext &node);
  // Convolutions and pooling.
  /// The attributes of a convolution or pooling, with `auto_pad` made explicit.
  struct WindowLists {
    Shape window, strides, dilations, pads;
    /// The spatial sizes of the result.
    Shape spatial;
    train::Windows getWindows() const { return {window, strides, dilations, pads}; }
  };
  /// Returns the attributes of a node as they are, with the pads 0 where it has an `auto_pad`. Reports an error and
  /// fails where `auto_pad` has no meaning.
  mlir::FailureOr<WindowLists> readLists(NodeContext &node, llvm::ArrayRef<int64_t> window);
  /// Returns the lists of a node whose window `window` moves over an image [batch, channels, spatial..]. Reports an
  /// error and fails where a number is out of range or no window fits; with `pools` also where a window may have no
  /// element of the image.
  mlir::FailureOr<WindowLists> readWindows(NodeContext &node, const Entry &image, llvm::ArrayRef<int64_t> window,
                                           bool pools);
  /// Sets the spatial sizes of the result. Reports errors and fails as `readWindows` does.
  mlir::LogicalResult checkWindows(NodeContext &node, const Entry &image, WindowLists &lists, bool pools);
  /// Resolves `ceil_mode` of a pooling: a last window may reach beyond the pads, but begins inside of the image or of
  /// the pads before it.
  mlir::LogicalResult extendPads(NodeContext &node, const Entry &image, WindowLists &lists, bool countsPads);
  /// Returns the pads before and behind a spatial dim of `size` elements that `auto_pad` SAME_UPPER or SAME_LOWER asks
  /// for.
  static std::pair<int64_t, int64_t> padToSame(int64_t size, int64_t window, int64_t stride, int64_t dilation,
                                               bool isUpper);
  mlir::LogicalResult legalizeConv(NodeContext &node);
  /// Fails, with an error, unless operand 0 is an image [batch, channels, spatial..] and operand 1 kernels of its rank
  /// and type, as large as `kernel_shape` says.
  mlir::LogicalResult checkImageAndKernels(NodeContext &node);
  /// Fails, with an error, where operand 2, the bias, is there and is not a vector of `channels` elements.
  mlir::LogicalResult checkBias(NodeContext &node, int64_t channels);
  /// Returns `result`, [batch, channels, spatial..], with the node's bias added to the channels where it has one.
  Entry addBias(NodeContext &node, const Entry &result);
  /// The lists of the convolution of which a transposed convolution is the gradient; `spatial` has the sizes of that
  /// convolution's input.
  struct TransposedLists : WindowLists {
    /// The zeros behind the gradient along each spatial dim.
    Shape zeros;
  };
  /// Returns the lists of a ConvTranspose of `image`. Reports an error and fails where a number is out of range.
  mlir::FailureOr<TransposedLists> readTransposedLists(NodeContext &node, const Entry &image,
                                                       llvm::ArrayRef<int64_t> window);
  mlir::LogicalResult legalizeConvTranspose(NodeContext &node);
  /// Returns the convolution of an image by kernels that tile it, as a product of patches and kernels.
  Entry convolvePatches(const Entry &image, const Entry &kernel);
  mlir::LogicalResult legalizePool(NodeContext &node);
  mlir::LogicalResult legalizeGlobalAveragePool(NodeContext &node);
  mlir::LogicalResult legalizeGlobalMaxPool(NodeContext &node);
  // Reductions.
  mlir::LogicalResult legalizeReduce(NodeContext &node);
  /// Returns what the reduction `name` of ONNX makes of x; `dims` vanish or have one element.
  Entry combine(llvm::StringRef name, const Entry &x, llvm::ArrayRef<int64_t> dims);
  /// Returns the mean of a float tensor over `dims`, which the result does not have: the sum times 1 / count.
  Entry mean(const Entry &of, llvm::ArrayRef<int64_t> dims);
  /// Returns the product over `dims`, which have one element in the result.
  Entry reduceProduct(const Entry &of, llvm::ArrayRef<int64_t> dims);
  // The following return a reduction over `dims` that have one element in the result.
  Entry reduceKept(ReduceKind kind, const Entry &of, llvm::ArrayRef<int64_t> dims);
  Entry meanKept(const Entry &of, llvm::ArrayRef<int64_t> dims);
  Entry logSumExpKept(const Entry &of, llvm::ArrayRef<int64_t> dims);
  mlir::LogicalResult legalizeCumSum(NodeContext &node);
  /// Returns the sums along `axis` of each element and those before it, without itself where `isExclusive`, or those
  /// behind it where `isReverse`.
  Entry cumulate(const Entry &x, int64_t axis, bool isExclusive, bool isReverse);
  mlir::LogicalResult legalizeSoftmax(NodeContext &node);
  mlir::LogicalResult legalizeLogSoftmax(NodeContext &node);
  // Normalisations.
  /// What a normalisation adds to the variance, and does to normalized elements, to which `shape` broadcasts.
  struct Affine {
    Entry scale, bias;
    /// The shape that scale and bias get.
    Shape shape;
    double epsilon;
  };
  /// Returns `centered` · scale / sqrt(variance + epsilon) + bias.
  Entry applyStatistics(const Entry &centered, const Entry &variance, const Affine &affine);
  /// Returns x normalized by its mean and biased variance over `dims`.
  Entry normalizeOver(const Entry &x, llvm::ArrayRef<int64_t> dims, const Affine &affine);
  /// A batch norm that uses the statistics of a micro-batch, with what tracks those.
  struct TrainedBatchNorm {
    /// Its scale, bias, running mean and running variance.
    std::array<mlir::Value, 4> parameters;
    double momentum;
    llvm::SmallVector<train::TrackStatisticOp, 2> tracks;
  };
  /// Returns a statistic of the batch in `shape`; the parameter `running` keeps its average times `correction`.
  Entry trackStatistic(const Entry &statistic, const Entry &running, double correction, llvm::ArrayRef<int64_t> shape,
                       TrainedBatchNorm &norm);
  /// Returns what a batch norm in training form gives; `dims` are those of samples and pixels.
  Entry normalizeBatch(NodeContext &node, llvm::ArrayRef<int64_t> dims, double momentum, const Affine &affine);
  /// Returns the parameter that the entry is a read of, or null.
  UsedParameter *findParameter(const Entry &entry);
  /// Returns the attribute `epsilon`, or an error where it is negative or NaN.
  mlir::FailureOr<double> readEpsilon(NodeContext &node);
  /// Fails, with the error `complaint`, unless the operands from `first` on are vectors of `size` elements of the first
  /// operand's type.
  mlir::LogicalResult expectVectors(NodeContext &node, size_t first, int64_t size, const llvm::Twine &complaint);
  mlir::LogicalResult legalizeLayerNorm(NodeContext &node);
  /// Gives the results of a layer norm as primitives, because `train.layer_norm` has no gradient for its statistics.
  mlir::LogicalResult giveStatistics(NodeContext &node, int64_t axis, double epsilon);
  mlir::LogicalResult legalizeBatchNorm(NodeContext &node);
  mlir::LogicalResult legalizeInstanceNorm(NodeContext &node);
  mlir::LogicalResult legalizeGroupNorm(NodeContext &node);
  mlir::LogicalResult legalizeMeanVarianceNorm(NodeContext &node);
  mlir::LogicalResult legalizeRmsNorm(NodeContext &node);
  mlir::LogicalResult legalizeLpNorm(NodeContext &node);
  // Losses.
  mlir::LogicalResult legalizeCrossEntropy(NodeContext &node);
  mlir::LogicalResult legalizeNegativeLogLikelihood(NodeContext &node);
  /// Gives the loss of `scores`, [batch, classes, ..], and `labels`, [batch, ..]. The scores are logits, or with
  /// `areLogarithms` logarithms of probabilities.
  mlir::LogicalResult giveLoss(NodeContext &node, bool areLogarithms);
  /// Gives the sum or mean of the losses of rows that all weigh the same, as one operator on logits.
  mlir::LogicalResult giveCrossEntropy(NodeContext &node, llvm::StringRef reduction);
  /// Gives the loss in primitives.
  mlir::LogicalResult giveWeighedLoss(NodeContext &node, llvm::StringRef reduction, bool areLogarithms);
  // Constants and shapes.
  mlir::LogicalResult legalizeConstant(NodeContext &node);
  mlir::LogicalResult legalizeConstantOfShape(NodeContext &node);
  mlir::LogicalResult legalizeShape(NodeContext &node);
  mlir::LogicalResult legalizeSize(NodeContext &node);
  mlir::LogicalResult legalizeRange(NodeContext &node);
  mlir::LogicalResult legalizeEyeLike(NodeContext &node);

  /// Returns a · b over the given dims, with the batch dims of both first.
  Entry matmul(const Entry &lhs, const Entry &rhs, llvm::ArrayRef<int64_t> lhsBatch, llvm::ArrayRef<int64_t> rhsBatch,
               llvm::ArrayRef<int64_t> lhsContract, llvm::ArrayRef<int64_t> rhsContract);

  onnx::GraphOp graph;
  const WeightStore *weights;
  const ExportedModel &exported;
  const OnnxToTrainOptions &options;
  OnnxToTrainReport &report;
  mlir::OpBuilder &builder;
  mlir::LogicalResult tooManyParts();

  EvaluationBudgets budgets;
  /// Parts of sequences that are made or joined: each may become an operator.
  WorkBudget sequenceParts{400'000};
  PartialEvaluator eval;

  llvm::StringMap<Handler> handlers;
  llvm::DenseMap<mlir::Value, Entry> entries;
  llvm::DenseSet<mlir::Operation *> needed;
  /// The uses by needed nodes that are not visited yet: an entry is dropped behind its last use.
  llvm::DenseMap<mlir::Value, int64_t> remainingUses;
  /// The constants by attribute, so that equal constants are one known tensor.
  llvm::DenseMap<mlir::Attribute, Known> constants;
  std::vector<UsedParameter> parameters;
  std::vector<LossLabels> lossLabels;
  /// The function's argument with the keys of all dropouts so far, if there are any.
  mlir::Value dropoutKeys;
  int64_t dropouts = 0;
  std::vector<TrainedBatchNorm> trainedBatchNorms;
  /// The number of batch norms that use stored statistics.
  int64_t frozenBatchNorms = 0;
  /// The indices into the report, by name and reason.
  llvm::StringMap<size_t> unsupportedIndex;
  bool isInvalid = false;
  /// The reason, set by `unsupported` and read by `visit`, which knows the node.
  std::string pendingReason;
};

} // namespace windlass

#endif // WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_LEGALIZER_H
