//===- ConvertToTrain.cpp - the module around @loss -----------------------===//
//
// After the walk: which initializers train, how data feed the inputs, and the parameter symbols.
//
//===----------------------------------------------------------------------===//

#include "Legalizer.h"
#include "Match.h"

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

namespace {

/// Decides what trains and writes the parameter symbols.
class ParameterPlanner {
public:
  ParameterPlanner(func::FuncOp function, llvm::ArrayRef<UsedParameter> parameters, OnnxToTrainReport &report)
      : function(function), parameters(parameters), report(report) {}

  LogicalResult run(OpBuilder &builder);

private:
  void markDifferentiable();
  bool isOnlyMask(Value value);
  bool isOnlyRotaryTable(Value value);

  func::FuncOp function;
  llvm::ArrayRef<UsedParameter> parameters;
  OnnxToTrainReport &report;
  /// Values through which a gradient of the loss flows.
  llvm::DenseSet<Value> reached;
};

} // namespace

/// Against the order of the ops: a float operand of a differentiable op with a reached result is reached.
void ParameterPlanner::markDifferentiable() {
  Block &block = function.getBody().front();
  reached.insert(block.getTerminator()->getOperand(0));
  for (Operation &op : llvm::reverse(block)) {
    if (!isa<train::DifferentiableOpInterface>(op) ||
        llvm::none_of(op.getResults(), [&](Value result) { return reached.contains(result); }))
      continue;
    for (Value operand : op.getOperands())
      if (isa<FloatType>(getElementTypeOrSelf(operand.getType())))
        reached.insert(operand);
  }
}

/// True when all that is done with the value is to add it to the scores of a softmax.
bool ParameterPlanner::isOnlyMask(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<train::BroadcastOp, train::ReshapeOp, train::SliceOp>(user))
      return isOnlyMask(user->getResult(0));
    return isa<train::AddOp>(user) && llvm::all_of(user->getResult(0).getUsers(), llvm::IsaPred<train::SoftmaxOp>);
  });
}

/// True when the value is only spread and multiplied as the cosines or sines of a rotary embedding, which an exporter
/// has folded into a constant.
bool ParameterPlanner::isOnlyRotaryTable(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<train::BroadcastOp, train::ReshapeOp>(user))
      return isOnlyRotaryTable(user->getResult(0));
    return isa<train::MulOp>(user) && llvm::all_of(user->getResult(0).getUsers(), [&](Operation *sum) {
             auto add = dyn_cast<train::AddOp>(sum);
             Rotary found = add ? matchRotary(add) : Rotary();
             return found.input && found.input != value;
           });
  });
}

LogicalResult ParameterPlanner::run(OpBuilder &builder) {
  markDifferentiable();
  // In the order of the file, whatever the order of use.
  llvm::SmallVector<UsedParameter> sorted(parameters.begin(), parameters.end());
  llvm::sort(sorted, [](const UsedParameter &a, const UsedParameter &b) {
    return const_cast<UsedParameter &>(a).op->isBeforeInBlock(const_cast<UsedParameter &>(b).op);
  });
  bool anyTrains = false;
  int64_t ordinal = 0;
  for (UsedParameter &parameter : sorted) {
    auto read = parameter.read.getDefiningOp<train::ReadOp>();
    if (parameter.read.use_empty()) {
      read.erase();
      continue;
    }
    llvm::StringRef name = parameter.op.getInitializerName();
    auto type = cast<RankedTensorType>(parameter.op.getType());
    bool isFloat = isa<FloatType>(type.getElementType());
    llvm::StringRef kind = parameter.op.getKind().value_or("");
    bool hasGradient = isFloat && reached.contains(parameter.read), trains = hasGradient && kind != "buffer";
    std::string reason;
    if (kind == "parameter" && !hasGradient) {
      reason = "marked as a parameter, but no gradient of the loss reaches it";
    } else if (kind.empty() && isFloat) {
      if (!hasGradient)
        reason = "unmarked; no gradient of the loss reaches it";
      else if (isOnlyMask(parameter.read)) {
        trains = false;
        reason = "unmarked; only added to the scores of a softmax";
      } else if (parameter.isRotaryTable || isOnlyRotaryTable(parameter.read)) {
        trains = false;
        reason = "unmarked; only a table of a rotary embedding";
      } else
        reason = "unmarked; a float on a differentiable path";
    }
    if (!reason.empty())
      report.guesses.push_back({name.str(), trains, reason});
    anyTrains |= trains;
    // What is marked as a parameter is a weight even where nothing trains it; unmarked constants are buffers.
    bool isWeight = trains || kind == "parameter";
    onnx::SourceAttr from = *parameter.op.getSource();
    auto source = from.getFile().empty()
                      ? train::SourceAttr::get(builder.getContext(), train::SourceKind::packed, "", from.getOffset(),
                                               from.getLength())
                      : train::SourceAttr::get(builder.getContext(), train::SourceKind::external,
                                               from.getFile().getValue(), from.getOffset(), from.getLength());
    bool decays = trains && type.getRank() >= 2;
    std::string symbol = (isWeight ? "w" : "b") + std::to_string(ordinal++);
    auto op = train::ParameterOp::create(
        builder, parameter.op.getLoc(), builder.getStringAttr(symbol), builder.getStringAttr(name), TypeAttr::get(type),
        train::RoleAttr::get(builder.getContext(), isWeight ? train::Role::weight : train::Role::buffer), source,
        trains ? builder.getUnitAttr() : UnitAttr(), decays ? builder.getUnitAttr() : UnitAttr(), FlatSymbolRefAttr(),
        reason.empty() ? StringAttr() : builder.getStringAttr(reason), /*compute_type=*/TypeAttr());
    read.setParameterAttr(FlatSymbolRefAttr::get(op.getSymNameAttr()));
  }
  if (!anyTrains)
    return emitError(function.getLoc(), Code::loss)
           << "the loss " << printable(report.loss) << " depends on no trainable parameter; "
           << (sorted.empty() ? "the model has none that it reads" : "none of those it reads can be trained");
  return success();
}

/// Where the value comes from, if only moving ops are in between; sets `isShifted` when a part of the token axis is cut
/// off at the front.
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

static void describeInputs(func::FuncOp function, onnx::GraphOp graph, OpBuilder &builder) {
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
    bool isShifted = false;
    BlockArgument labels = traceToInput(op.getLabels(), isShifted);
    if (!labels)
      return;
    unsigned index = labels.getArgNumber();
    bound(index, cast<RankedTensorType>(op.getLogits().getType()).getShape().back());
    // Labels go with tokens of their own shape; others (classes of images) come as explicit batches.
    for (unsigned other = 0; other < count; ++other)
      if (other != index && isToken[other] && block.getArgument(other).getType() == labels.getType())
        feeds[index] = isShifted ? "tokens" : "next";
  });
  // Behind the model's own inputs come the keys of its dropouts.
  unsigned inputs = graph.getInputNames().size();
  // All at once: each change of one argument would copy the list of all.
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
  Legalizer legalizer(graph, weights, options, report, builder);
  FailureOr<func::FuncOp> function = legalizer.run();
  if (failed(function))
    return failure();
  // Chains that turned out to be evaluated leave unused ops.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function->getBody().front())))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>() && !isa<train::ReadOp>(op))
      op.erase();
  describeInputs(*function, graph, builder);
  builder.setInsertionPoint(*function);
  if (failed(ParameterPlanner(*function, legalizer.getParameters(), report).run(builder)))
    return failure();
  // For people.
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
    OnnxToTrainReport report;
    if (failed(convertOnnxToTrain(getOperation(), nullptr, options, report)))
      signalPassFailure();
  }
};
} // namespace
