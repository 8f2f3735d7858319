//===- ConvertToTrain.cpp - the module around @loss -----------------------===//
//
// What the exporter made of the module, the walk, and how data feed the inputs.
//
//===----------------------------------------------------------------------===//

#include "ExportedModel.h"
#include "Legalizer.h"
#include "ParameterPlanner.h"

#include "windlass/Dialect/Train/IR/TrainConventions.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_ONNXCONVERTTOTRAIN
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
} // namespace windlass

Location windlass::makeScopedLocation(llvm::StringRef scope, Location node) {
  if (scope.empty())
    return node;
  return NameLoc::get(StringAttr::get(node.getContext(), scope), node);
}

llvm::StringRef windlass::getScopePath(Location location) {
  if (auto named = dyn_cast<NameLoc>(location))
    return named.getName();
  if (auto fused = dyn_cast<FusedLoc>(location); fused && !fused.getLocations().empty())
    return getScopePath(fused.getLocations().front());
  return {};
}

/// Returns the argument that the value comes from where only moving ops are in between; sets `isShifted` when a part of
/// the token axis is cut off at the front.
static BlockArgument traceToInput(Value value, bool &isShifted) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto slice = dyn_cast<train::SliceOp>(op)) {
      // The last dim is the tokens; cutting the batch is no shift.
      if (!slice.getStarts().empty() && slice.getStarts().back() > 0)
        isShifted = true;
    } else if (!isa<train::ReshapeOp, train::PadOp, train::CastOp, train::TransposeOp>(op)) {
      return {};
    }
    value = op->getOperand(0);
  }
  return dyn_cast<BlockArgument>(value);
}

namespace {

/// An input of labels, each of which is below `classes`.
struct InputLabels {
  BlockArgument input;
  int64_t classes;
  /// Whether they begin behind the first token.
  bool isShifted;
};

} // namespace

/// Adds the input that the labels `value` come from, if there is one.
static void addLabels(Value value, int64_t classes, llvm::SmallVectorImpl<InputLabels> &labels) {
  bool isShifted = false;
  if (BlockArgument input = traceToInput(value, isShifted))
    labels.push_back({input, classes, isShifted});
}

static void describeInputs(func::FuncOp function, onnx::GraphOp graph, llvm::SmallVector<InputLabels> labels,
                           OpBuilder &builder) {
  Block &block = function.getBody().front();
  unsigned count = block.getNumArguments();
  llvm::SmallVector<llvm::StringRef> feeds(count, "none");
  llvm::SmallVector<int64_t> bounds(count, 0);
  llvm::SmallVector<bool> isToken(count, false);
  auto bound = [&](unsigned index, int64_t rows) {
    bounds[index] = bounds[index] == 0 ? rows : std::min(bounds[index], rows);
  };
  auto isIds = [](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getRank() >= 2 && tensor.getElementType().isSignlessInteger();
  };
  function.walk([&](train::EmbeddingOp op) {
    bool isShifted = false;
    if (BlockArgument input = traceToInput(op.getIds(), isShifted)) {
      bound(input.getArgNumber(), cast<RankedTensorType>(op.getTable().getType()).getDimSize(0));
      if (isIds(input.getType())) {
        feeds[input.getArgNumber()] = "tokens";
        isToken[input.getArgNumber()] = true;
      }
    }
  });
  function.walk([&](train::SoftmaxCrossEntropyOp op) {
    addLabels(op.getLabels(), cast<RankedTensorType>(op.getLogits().getType()).getShape().back(), labels);
  });
  for (const InputLabels &label : labels) {
    unsigned index = label.input.getArgNumber();
    bound(index, label.classes);
    // Labels go with tokens of their own shape; others (classes of images) come as explicit batches.
    for (unsigned other = 0; other < count; ++other)
      if (other != index && isToken[other] && block.getArgument(other).getType() == label.input.getType())
        feeds[index] = label.isShifted ? "tokens" : "next";
  }
  // Behind the model's own inputs come the keys of its dropouts.
  unsigned inputs = graph.getInputNames().size();
  // All attributes are set at once, because each change of one argument would copy the list of all.
  llvm::SmallVector<DictionaryAttr> attributes;
  for (unsigned i = 0; i < count; ++i) {
    NamedAttrList list;
    if (i < inputs) {
      list.set(train::kInputAttr, graph.getInputNames()[i]);
      list.set(train::kFeedAttr, builder.getStringAttr(feeds[i]));
      if (bounds[i] > 0)
        list.set(train::kVocabularyAttr, builder.getI64IntegerAttr(bounds[i]));
    } else {
      std::string name = "dropout keys";
      while (llvm::is_contained(graph.getInputNames().getAsValueRange<StringAttr>(), name))
        name += "_";
      list.set(train::kInputAttr, builder.getStringAttr(name));
      list.set(train::kFeedAttr, builder.getStringAttr(train::kRandomFeed));
    }
    attributes.push_back(list.getDictionary(builder.getContext()));
  }
  function.setAllArgAttrs(attributes);
}

LogicalResult windlass::convertOnnxToTrain(ModuleOp module, const WeightStore *weights,
                                           const OnnxToTrainOptions &options, OnnxToTrainReport &report) {
  MLIRContext *context = module.getContext();
  context->loadDialect<train::TrainDialect, func::FuncDialect>();
  auto graphs = llvm::to_vector(module.getOps<onnx::GraphOp>());
  if (graphs.size() != 1)
    return emitError(module.getLoc()) << "the module holds " << graphs.size() << " ONNX graphs; it must hold one";
  onnx::GraphOp graph = graphs.front();
  OpBuilder builder(context);
  builder.setInsertionPointToEnd(module.getBody());
  ExportedModel exported = readExportedModel(graph);
  report.exportedParameters = exported.parameters;
  report.alterations = exported.alterations;
  report.contradictions = findContradictions(graph);
  report.warnings = findPaddingRows(graph);
  auto refuse = [&] {
    return emitError(graph.getLoc(), Code::altered_model)
           << "the file holds another model than was exported: " << report.describeAlterations()
           << (report.alterations.empty() ? "" : "; export it again with optimize=False")
           << ", or go on with --accept-altered-parameters";
  };
  if (!options.acceptAltered && !report.describeAlterations().empty()) {
    for (const std::string &target : exported.vanished)
      report.alterations.push_back({target, Alteration::Fate::folded, ""});
    return refuse();
  }
  Legalizer legalizer(graph, weights, exported, options, report, builder);
  FailureOr<func::FuncOp> function = legalizer.run();
  if (failed(function))
    return failure();
  llvm::SmallVector<InputLabels> labels;
  for (const LossLabels &each : legalizer.getLossLabels())
    addLabels(each.value, each.classes, labels);
  // Chains that turned out to be evaluated leave unused ops.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function->getBody().front())))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>() && !isa<train::ReadOp>(op))
      op.erase();
  describeInputs(*function, graph, labels, builder);
  builder.setInsertionPoint(*function);
  ParameterPlanner planner(*function, legalizer.getParameters(), exported, report);
  planner.decide(weights);
  if (!options.acceptAltered && !report.describeAlterations().empty())
    return refuse();
  if (failed(planner.writeSymbols(builder)))
    return failure();
  // The name is for people only.
  if (!graph.getGraphName().empty())
    module->setAttr(train::kModelAttr, builder.getStringAttr(graph.getGraphName()));
  graph.erase();
  return success();
}

namespace {
struct OnnxConvertToTrainPass : windlass::impl::OnnxConvertToTrainBase<OnnxConvertToTrainPass> {
  using OnnxConvertToTrainBase::OnnxConvertToTrainBase;
  void runOnOperation() override {
    OnnxToTrainOptions options;
    options.loss = loss;
    options.acceptAltered = acceptAltered;
    OnnxToTrainReport report;
    if (failed(convertOnnxToTrain(getOperation(), nullptr, options, report)))
      signalPassFailure();
  }
};
} // namespace
