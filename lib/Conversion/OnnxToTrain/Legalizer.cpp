//===- Legalizer.cpp - the forward walk from onnx to train ----------------===//

#include "Legalizer.h"

#include "windlass/Dialect/Train/IR/TrainConventions.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace windlass;

bool NodeContext::wants(size_t index) { return index < op.getNumResults() && !op.getResult(index).use_empty(); }

Attribute NodeContext::attribute(llvm::StringRef name) {
  DictionaryAttr attributes = op.getNodeAttributes().value_or(DictionaryAttr());
  return attributes ? attributes.get(name) : Attribute();
}

int64_t NodeContext::getInt(llvm::StringRef name, int64_t fallback) {
  auto value = dyn_cast_or_null<IntegerAttr>(attribute(name));
  return value && value.getType().isSignlessInteger(64) ? value.getInt() : fallback;
}

double NodeContext::getFloat(llvm::StringRef name, double fallback) {
  auto value = dyn_cast_or_null<FloatAttr>(attribute(name));
  return value ? value.getValueAsDouble() : fallback;
}

llvm::StringRef NodeContext::getString(llvm::StringRef name, llvm::StringRef fallback) {
  auto value = dyn_cast_or_null<StringAttr>(attribute(name));
  return value ? value.getValue() : fallback;
}

std::optional<llvm::ArrayRef<int64_t>> NodeContext::getInts(llvm::StringRef name) {
  if (auto value = dyn_cast_or_null<DenseI64ArrayAttr>(attribute(name)))
    return value.asArrayRef();
  return std::nullopt;
}

Legalizer::Legalizer(onnx::GraphOp graph, const WeightStore *weights, const ExportedModel &exported,
                     const OnnxToTrainOptions &options, OnnxToTrainReport &report, OpBuilder &builder)
    : graph(graph), weights(weights), exported(exported), options(options), report(report), builder(builder),
      eval(builder, budgets) {
  registerElementwise();
  registerActivations();
  registerStructural();
  registerIndexing();
  registerScatters();
  registerRankings();
  registerResizing();
  registerRecurrent();
  registerAttention();
  registerRandom();
  registerContractions();
  registerEinsum();
  registerConvolutions();
  registerReductions();
  registerNorms();
  registerLosses();
  registerConstants();
  registerShapeOnly();
}

void Legalizer::handle(llvm::StringRef opType, Handler handler) {
  if (!handlers.try_emplace(opType, handler).second)
    llvm::report_fatal_error("the ONNX operator " + opType + " has two handlers");
}

LogicalResult Legalizer::unsupported(const llvm::Twine &reason) {
  // `visit`, which knows the node, reads it.
  pendingReason = reason.str();
  return failure();
}

LogicalResult Legalizer::invalid(NodeContext &node, const llvm::Twine &message) {
  isInvalid = true;
  return emitError(node.op.getLoc()) << node.op.getOpType() << " " << message;
}

LogicalResult Legalizer::give(NodeContext &node, size_t index, Entry result) {
  if (result.kind == Entry::Kind::poisoned)
    return unsupported(eval.takeReason());
  if (index < node.outputs.size())
    node.outputs[index] = std::move(result);
  return success();
}

LogicalResult Legalizer::give(NodeContext &node, Entry result) { return give(node, 0, std::move(result)); }

bool Legalizer::leadsToLoss(NodeContext &node, unsigned index) {
  return index < node.op.getNumResults() &&
         llvm::any_of(node.op.getResult(index).getUsers(), [&](Operation *user) { return needed.contains(user); });
}

LogicalResult Legalizer::expectTensors(NodeContext &node, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!node.input(i).isTensor())
      return invalid(node, "needs " + llvm::Twine(count) + " tensors, but operand " + llvm::Twine(i) +
                               (node.has(i) ? " is a sequence" : " is missing"));
  return success();
}

FailureOr<Shape> Legalizer::readIntegers(NodeContext &node, size_t index, llvm::StringRef what) {
  Entry entry = node.input(index);
  if (!entry.isTensor())
    return invalid(node, "needs " + what + " as operand " + llvm::Twine(index));
  if (entry.isFloat() || entry.getRank() > 1)
    return invalid(node, "has " + what + " that are not a list of integers");
  if (!entry.known)
    return unsupported("has " + what + " that depend on an input or a parameter");
  Shape result;
  for (int64_t i = 0, e = entry.known->getSize(); i < e; ++i)
    result.push_back(entry.known->getInteger(i));
  return result;
}

FailureOr<int64_t> Legalizer::normalizeAxis(NodeContext &node, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return invalid(node, "has axis " + llvm::Twine(axis) + " for a tensor of rank " + llvm::Twine(rank));
  return axis < 0 ? axis + rank : axis;
}

FailureOr<int64_t> Legalizer::readFloatAxis(NodeContext &node, size_t count) {
  if (failed(expectTensors(node, count)))
    return failure();
  const Entry &x = node.inputs[0];
  if (!x.isFloat() || x.getRank() == 0)
    return invalid(node, "needs a float tensor");
  return normalizeAxis(node, node.getInt("axis", -1), x.getRank());
}

FailureOr<Shape> Legalizer::readAxes(NodeContext &node, size_t inputIndex, int64_t rank) {
  Shape axes;
  if (auto list = node.getInts("axes")) {
    axes.assign(list->begin(), list->end());
  } else if (node.has(inputIndex)) {
    FailureOr<Shape> read = readIntegers(node, inputIndex, "axes");
    if (failed(read))
      return failure();
    axes = *read;
  }
  for (int64_t &axis : axes) {
    FailureOr<int64_t> normal = normalizeAxis(node, axis, rank);
    if (failed(normal))
      return failure();
    axis = *normal;
  }
  Shape sorted(axes);
  llvm::sort(sorted);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return invalid(node, "names an axis twice");
  return axes;
}

LogicalResult Legalizer::checkCount(NodeContext &node, llvm::ArrayRef<int64_t> shape) {
  constexpr int64_t limit = int64_t(1) << 44;
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0)
      return invalid(node, "gives a dimension of " + llvm::Twine(dim));
    if (dim != 0 && count > limit / dim)
      return invalid(node, "gives more than 2^44 elements");
    count *= std::max<int64_t>(dim, 1);
  }
  return success();
}

FailureOr<size_t> Legalizer::findLoss() {
  ArrayAttr names = graph.getOutputNames();
  auto fail = [&](const llvm::Twine &message) {
    emitError(graph.getLoc(), Code::loss) << message;
    return failure();
  };
  if (names.empty())
    return fail("the model has no outputs, so it has no loss");
  std::string known;
  for (auto name : names.getAsRange<StringAttr>())
    known += (known.empty() ? "" : ", ") + printable(name.getValue());
  llvm::StringRef wanted = options.loss.empty() ? llvm::StringRef("loss") : llvm::StringRef(options.loss);
  for (auto [index, name] : llvm::enumerate(names.getAsRange<StringAttr>()))
    if (name.getValue() == wanted)
      return index;
  if (!options.loss.empty())
    return fail("the model has no output " + printable(options.loss) + "; it has " + known);
  if (names.size() == 1)
    return size_t(0);
  // The loss is the one output that is a single number, where the file says so.
  auto outputs = graph.getBody().front().getTerminator()->getOperands();
  llvm::SmallVector<size_t> scalars;
  for (auto [index, output] : llvm::enumerate(outputs))
    if (auto type = dyn_cast<RankedTensorType>(output.getType());
        type && type.hasStaticShape() && type.getNumElements() == 1 && isa<FloatType>(type.getElementType()))
      scalars.push_back(index);
  if (scalars.size() == 1)
    return scalars.front();
  return fail("no output is named 'loss', and " + llvm::Twine(scalars.size()) + " of the " + llvm::Twine(names.size()) +
              " outputs are single numbers; name one with --loss: " + known);
}

void Legalizer::findNeeded(Value output) {
  llvm::SmallVector<Value> stack{output};
  while (!stack.empty()) {
    Operation *op = stack.pop_back_val().getDefiningOp();
    if (!op || !needed.insert(op).second)
      continue;
    for (Value operand : op->getOperands()) {
      ++remainingUses[operand];
      stack.push_back(operand);
    }
  }
}

LogicalResult Legalizer::addInputs(func::FuncOp function) {
  for (auto [index, argument, name] : llvm::enumerate(graph.getBody().getArguments(), graph.getInputNames())) {
    auto type = cast<RankedTensorType>(argument.getType());
    llvm::StringRef inputName = cast<StringAttr>(name).getValue();
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (type.isDynamicDim(dim)) {
        llvm::StringRef symbol;
        if (auto dims = graph.getDimParams())
          symbol = cast<StringAttr>(cast<ArrayAttr>((*dims)[index])[dim]).getValue();
        if (symbol.empty())
          return emitError(graph.getLoc(), Code::dimension)
                 << "dimension " << dim << " of input " << printable(inputName) << " has neither a size nor a name";
        return emitError(graph.getLoc(), Code::dimension)
               << "input " << printable(inputName) << " has the symbolic dimension " << printable(symbol)
               << "; bind it with --dim " << symbol.take_front(60) << "=N";
      }
      if (type.getDimSize(dim) == 0)
        return emitError(graph.getLoc()) << "input " << printable(inputName) << " has no elements";
    }
    BlockArgument value =
        function.getBody().front().addArgument(type.clone(getComputedType(type.getElementType())), argument.getLoc());
    entries[argument] = Entry::of(Value(value));
  }
  return success();
}

/// Whether all planes are zero up to the diagonal and at most -1e9 beyond: an exporter has folded a causal mask.
static bool isCausalMask(const KnownTensor &tensor) {
  llvm::ArrayRef<int64_t> shape = tensor.getShape();
  if (shape.size() < 2 || shape.back() < shape[shape.size() - 2] || shape.back() < 2)
    return false;
  int64_t columns = shape.back(), rows = shape[shape.size() - 2], offset = columns - rows;
  for (auto [i, value] : llvm::enumerate(tensor.getStorage().reals)) {
    int64_t row = int64_t(i) / columns % rows, column = int64_t(i) % columns;
    if (column <= row + offset ? value != 0 : !(value <= -1e9))
      return false;
  }
  return true;
}

/// Whether the module that the initializer's name gives reads it: `a.scale` in module `a`.
static bool isNamedByModule(onnx::InitializerOp op) {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    auto node = dyn_cast<onnx::NodeOp>(user);
    return node && node.getScope() && onnx::isNamedByModule(op.getInitializerName(), *node.getScope());
  });
}

/// Whether the initializer is only added to the scores of a softmax.
static bool isOnlyMask(onnx::InitializerOp op) {
  auto isNode = [](Operation *user, llvm::StringRef type) {
    auto node = dyn_cast<onnx::NodeOp>(user);
    return node && node.getOpType() == type;
  };
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    return isNode(user, "Add") &&
           llvm::all_of(user->getUsers(), [&](Operation *softmax) { return isNode(softmax, "Softmax"); });
  });
}

/// Whether the initializer is only the scale of 1 or the bias of 0 of instance norms that PyTorch's exporters put
/// between two reshapes for a group norm, whose own scale and bias come behind them.
static bool isOnlyUnitOfGroupNorm(onnx::InitializerOp op, double value) {
  return (value == 0 || value == 1) && llvm::all_of(op->getUses(), [&](OpOperand &use) {
           auto norm = dyn_cast<onnx::NodeOp>(use.getOwner());
           return norm && norm.getOpType() == "InstanceNormalization" &&
                  use.getOperandNumber() == (value == 1 ? 1 : 2) && llvm::all_of(norm->getUsers(), [](Operation *user) {
                    auto reshape = dyn_cast<onnx::NodeOp>(user);
                    return reshape && reshape.getOpType() == "Reshape";
                  });
         });
}

/// Whether the initializer is only read as the region or the scales of a Resize.
static bool isOnlyScales(onnx::InitializerOp op) {
  return llvm::all_of(op->getUses(), [](OpOperand &use) {
    auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
    return node && node.getOpType() == "Resize" && use.getOperandNumber() > 0;
  });
}

std::string Legalizer::whyConstant(onnx::InitializerOp op, const KnownTensor &tensor) {
  llvm::StringRef name = op.getInitializerName();
  if (isOnlyScales(op))
    return "unmarked; only says how a tensor is resized";
  if (exported.hasSignature)
    // Equal values prove nothing about an initializer that may be a parameter.
    return tensor.isSplat() && exported.vanished.empty() && !exported.parameterCopies.contains(name)
               ? "unmarked; all elements are equal"
               : "";
  // This mask masks nothing; as a constant it does not hide the attention.
  if (tensor.isSplat() && isOnlyMask(op))
    return "unmarked; only added to the scores of a softmax";
  if (tensor.isSplat() && isOnlyUnitOfGroupNorm(op, tensor.getReal(0)))
    return "unmarked; scales or shifts nothing in a group norm";
  return tensor.getSize() == 1 && !isNamedByModule(op)
             ? "unmarked; one number that bears the name of no module that reads it"
             : "";
}

Entry Legalizer::readInitializer(onnx::InitializerOp op) {
  if (std::optional<ElementsAttr> value = op.getValue()) {
    Known &known = constants[*value];
    if (!known)
      known = makeKnown(cast<DenseElementsAttr>(*value));
    return Entry::of(known);
  }
  auto type = cast<RankedTensorType>(op.getType());
  llvm::StringRef name = op.getInitializerName();
  onnx::SourceAttr source = *op.getSource();
  bool isFloat = isa<FloatType>(type.getElementType());
  // Unmarked values may be constants that the exporter folded: masks, positions, shapes. Parameters and float buffers
  // never are, so that a model is planned the same with and without its weights.
  bool mayBeConstant = !op.getKind() || !isFloat;
  if (mayBeConstant && weights && weights->isPresent(source.getFile()) && eval.mayEvaluate(type.getNumElements())) {
    llvm::Expected<std::vector<char>> bytes = weights->read(source.getFile(), source.getOffset(), source.getLength());
    if (!bytes) {
      isInvalid = true;
      emitError(op.getLoc(), Code::external_data)
          << "initializer " << printable(name) << ": " << llvm::toString(bytes.takeError());
      return {};
    }
    Known known = makeKnown(type, *bytes);
    if (!isFloat)
      return Entry::of(known);
    bool hasInfinity = llvm::any_of(known->getStorage().reals, [](double x) { return std::isinf(x); });
    std::string reason = hasInfinity            ? "holds an infinity"
                         : isCausalMask(*known) ? "is a causal mask"
                                                : whyConstant(op, *known);
    if (!reason.empty()) {
      report.guesses.push_back({name.str(), false, reason});
      return Entry::of(known);
    }
  }
  if (type.getNumElements() == 0) {
    isInvalid = true;
    emitError(op.getLoc()) << "initializer " << printable(name) << " has no elements";
    return {};
  }
  UsedParameter parameter;
  parameter.op = op;
  parameter.symbol = "p" + std::to_string(parameters.size());
  auto read = train::ReadOp::create(builder, op.getLoc(), type.clone(getComputedType(type.getElementType())),
                                    FlatSymbolRefAttr::get(builder.getContext(), parameter.symbol));
  parameter.read = read.getResult();
  parameters.push_back(parameter);
  return Entry::of(parameter.read);
}

void Legalizer::reportUnsupported(onnx::NodeOp op, llvm::StringRef reason) {
  std::string name = op.getDomain() && !op.getDomain()->empty() ? (*op.getDomain() + "." + op.getOpType()).str()
                                                                : op.getOpType().str();
  auto [at, isNew] = unsupportedIndex.try_emplace(name + "\n" + reason.str(), report.unsupported.size());
  if (isNew) {
    UnsupportedOp entry;
    entry.name = name;
    entry.reason = reason.str();
    if (auto location = dyn_cast<NameLoc>(op.getLoc()))
      entry.first = location.getName().str();
    report.unsupported.push_back(entry);
  }
  ++report.unsupported[at->second].count;
}

UsedParameter *Legalizer::findParameter(const Entry &entry) {
  auto read = entry.value ? entry.value.getDefiningOp<train::ReadOp>() : train::ReadOp();
  auto found = llvm::find_if(parameters, [&](const UsedParameter &parameter) { return parameter.read == entry.value; });
  return read && found != parameters.end() ? &*found : nullptr;
}

void Legalizer::finishBatchNorms() {
  // A module that runs twice has all its parameters in both nodes. Norms that share a statistic alone do so because the
  // exporter merged parameters of equal value: an average over both would be of neither.
  llvm::DenseMap<Value, const TrainedBatchNorm *> owners;
  llvm::DenseSet<Value> merged;
  for (const TrainedBatchNorm &norm : trainedBatchNorms)
    for (unsigned i : {2, 3}) {
      const TrainedBatchNorm &owner = *owners.try_emplace(norm.parameters[i], &norm).first->second;
      if (owner.parameters != norm.parameters || owner.momentum != norm.momentum ||
          norm.parameters[2] == norm.parameters[3])
        merged.insert(norm.parameters[i]);
    }
  int64_t untracked = 0;
  for (TrainedBatchNorm &norm : trainedBatchNorms) {
    bool isTracked =
        norm.tracks.size() == 2 && !merged.contains(norm.parameters[2]) && !merged.contains(norm.parameters[3]);
    untracked += !isTracked;
    for (train::TrackStatisticOp track : norm.tracks) {
      if (isTracked) {
        findParameter(Entry::of(track.getRunning()))->momentum = norm.momentum;
      } else {
        track.getResult().replaceAllUsesWith(track.getStatistic());
        track.erase();
      }
    }
  }
  if (untracked > 0)
    report.warnings.push_back(countOf(untracked, "batch norm") +
                              " without running statistics of its own: none are kept, and evaluation takes those of "
                              "each micro-batch");
  if (frozenBatchNorms > 0)
    report.warnings.push_back(countOf(frozenBatchNorms, "batch norm") +
                              " in inference form: the stored statistics are used and do not change");
}

LogicalResult Legalizer::visit(onnx::NodeOp op) {
  NodeContext node;
  node.op = op;
  node.outputs.resize(op.getNumResults());
  Location location = makeScopedLocation(op.getScope().value_or(""), op.getLoc());
  eval.setLocation(location);
  bool isPoisoned = false, isRandom = false;
  for (Value input : op.getInputs()) {
    Entry &entry = entries[input];
    if (auto initializer = input.getDefiningOp<onnx::InitializerOp>();
        initializer && entry.kind == Entry::Kind::poisoned) {
      Entry made = readInitializer(initializer);
      if (isInvalid)
        return failure();
      // `entry` may have moved: reading adds nothing to the map, but be safe against later changes.
      entries[input] = made;
    } else if (isa_and_nonnull<onnx::AbsentOp>(input.getDefiningOp())) {
      entries[input] = Entry::absent();
    }
    isPoisoned |= entries[input].kind == Entry::Kind::poisoned;
    isRandom |= entries[input].kind == Entry::Kind::random;
    node.inputs.push_back(entries[input]);
  }
  bool isStandard = !op.getDomain() || op.getDomain()->empty();
  auto handler = isStandard ? handlers.find(op.getOpType()) : handlers.end();
  bool isOmitted = false;
  if (std::optional<DictionaryAttr> attributes = op.getNodeAttributes())
    for (NamedAttribute attribute : *attributes)
      isOmitted |= isa<onnx::OmittedAttr>(attribute.getValue());
  if (handler == handlers.end() || isOmitted) {
    reportUnsupported(op, isOmitted && handler != handlers.end() ? "has an attribute that is not supported" : "");
  } else if (!isPoisoned) {
    if (failed((this->*(isRandom ? &Legalizer::legalizeChoice : handler->second))(node))) {
      if (isInvalid)
        return failure();
      reportUnsupported(op, pendingReason.empty() ? "cannot be legalized" : llvm::StringRef(pendingReason));
      pendingReason.clear();
      node.outputs.assign(op.getNumResults(), Entry());
    }
  }
  for (auto [result, entry] : llvm::zip_equal(op.getOutputs(), node.outputs))
    entries[result] = entry;
  for (Value input : op.getInputs())
    if (--remainingUses[input] == 0 && !input.getDefiningOp<onnx::InitializerOp>())
      entries.erase(input);
  return success();
}

FailureOr<func::FuncOp> Legalizer::run() {
  FailureOr<size_t> lossIndex = findLoss();
  if (failed(lossIndex))
    return failure();
  report.loss = cast<StringAttr>(graph.getOutputNames()[*lossIndex]).getValue().str();
  auto returnOp = cast<onnx::ReturnOp>(graph.getBody().front().getTerminator());
  Value loss = returnOp.getOperand(*lossIndex);
  ++remainingUses[loss];
  findNeeded(loss);

  auto function = func::FuncOp::create(builder, graph.getLoc(), train::kLossFunction, builder.getFunctionType({}, {}));
  Block *block = function.addEntryBlock();
  if (failed(addInputs(function)))
    return failure();
  builder.setInsertionPointToEnd(block);
  for (Operation &op : graph.getBody().front())
    if (auto node = dyn_cast<onnx::NodeOp>(op); node && needed.contains(&op))
      if (failed(visit(node)))
        return failure();
  if (!report.unsupported.empty()) {
    int64_t count = 0;
    for (const UnsupportedOp &entry : report.unsupported)
      count += entry.count;
    emitError(graph.getLoc(), Code::unsupported)
        << countOf(count, "node") << " of " << countOf(report.unsupported.size(), "kind")
        << (count == 1 ? " is" : " are") << " not supported, the first is " << report.unsupported[0].name << " at "
        << printable(report.unsupported[0].first);
    return failure();
  }

  finishBatchNorms();
  auto name = printable(report.loss);
  Entry result = entries[loss];
  if (auto initializer = loss.getDefiningOp<onnx::InitializerOp>(); initializer && !result.isTensor())
    result = readInitializer(initializer);
  if (!result.isTensor())
    return emitError(graph.getLoc(), Code::loss) << "the loss " << name << " is not a tensor";
  if (!result.isFloat())
    return emitError(graph.getLoc(), Code::loss)
           << "the loss " << name << " has element type " << result.getElementType() << "; it must be a float";
  if (result.type.getNumElements() != 1)
    return emitError(graph.getLoc(), Code::loss)
           << "the loss " << name << " has shape " << result.type
           << "; it must be a scalar: reduce it in the model or choose another with --loss";
  eval.setLocation(graph.getLoc());
  Value value = eval.materialize(eval.reshape(result, {}));
  if (!value)
    return emitError(graph.getLoc(), Code::loss) << "the loss " << name << " cannot be computed: " << eval.takeReason();
  func::ReturnOp::create(builder, graph.getLoc(), value);
  function.setFunctionType(builder.getFunctionType(block->getArgumentTypes(), value.getType()));
  return function;
}
