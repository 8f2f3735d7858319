// train-differentiate
#include "Activity.h"
#include "ReverseWalk.h"
#include "Stash.h"
#include "windlass/Autodiff/Passes.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/Transforms/MergeMicroBatches.h"
#include "windlass/Support/FunctionAttributes.h"

#include "mlir/IR/IRMapping.h"

#include <cmath>

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "windlass/Autodiff/Passes.h.inc"

namespace {

/// Makes the functions of L2 from `@loss`.
class Differentiator {
public:
  Differentiator(ModuleOp module, int64_t microBatches, bool scalesLoss)
      : module(module), microBatches(microBatches), scalesLoss(scalesLoss) {}
  LogicalResult run();

private:
  LogicalResult findLoss();
  LogicalResult checkActivity();
  void giveIds();
  void buildInit();
  /// Builds a function with the arguments of `@loss` and of the init values, and a copy of what the loss needs; sets
  /// `lossCopy`. A tracked statistic is that of the batch where the function `trains`, and else its running average.
  func::FuncOp buildForward(StringRef name, bool trains, Value &lossCopy, IRMapping &map);
  /// Builds the share of a micro-batch in the step's loss, and sets where the reverse walk starts.
  Value buildShare(Value lossCopy, ReverseStart &start, llvm::DenseSet<Value> &active);
  /// Puts the sum of the losses of all labels in the place of `lossCopy`, which is their mean; adds what it builds to
  /// `active`.
  Value sumOfLabels(Value lossCopy, OpBuilder &builder, llvm::DenseSet<Value> &active);
  /// Appends the difference between each running statistic and that of the batch, as the running statistic's gradient.
  void buildDifferences(Block &block, const IRMapping &map, ParameterGradients &gradients);
  LogicalResult buildMicrobatch();
  void buildEvaluate();
  void finishFunction(func::FuncOp function, ValueRange results);
  void freezeUnreached(ParameterOp parameter);

  ModuleOp module;
  int64_t microBatches;
  bool scalesLoss;
  /// Whether the step's loss is the mean over the labels of all micro-batches, not the mean of their losses.
  bool countsLabels = false;
  func::FuncOp lossFunction;
  Value loss;
  Activity activity;
};

LogicalResult Differentiator::findLoss() {
  for (StringRef name : {kInitFunction, kMicrobatchFunction, kEvaluateFunction})
    if (auto function = module.lookupSymbol<func::FuncOp>(name))
      return function.emitOpError() << "'" << name << "' is already there; a module is differentiated once";
  lossFunction = getLossFunction(module);
  if (!lossFunction || lossFunction.isExternal())
    return module.emitError() << "there is no function @" << kLossFunction << " with a body to differentiate";
  if (!llvm::hasSingleElement(lossFunction.getBody()))
    return lossFunction.emitOpError() << "has several blocks; a training graph is one block";
  auto returned = dyn_cast<func::ReturnOp>(lossFunction.front().getTerminator());
  if (!returned || returned.getNumOperands() != 1)
    return lossFunction.emitOpError() << "must return the loss and nothing else";
  loss = returned.getOperand(0);
  auto type = dyn_cast<RankedTensorType>(loss.getType());
  if (!type || type.getRank() != 0 || !isa<FloatType>(type.getElementType()))
    return lossFunction.emitOpError() << "returns " << loss.getType()
                                      << " as the loss, but a loss is one floating-point number; choose another output "
                                         "or reduce it in the model";
  countsLabels = module->hasAttr(kCountedLabelsAttr);
  Value losses = getMergedLosses(module, loss);
  auto isMean = [](Value each) { return each.getDefiningOp<LossOp>() != nullptr; };
  if (countsLabels && !(losses ? llvm::all_of(getEachLoss(losses), isMean) : isMean(loss)))
    return module.emitError() << "has " << kCountedLabelsAttr
                              << ", but the loss is no mean over labels; run train-average-tokens on this loss";
  return success();
}

LogicalResult Differentiator::checkActivity() {
  bool anyTrainable = llvm::any_of(module.getOps<ParameterOp>(), [](ParameterOp op) { return op.isOptimized(); });
  if (!anyTrainable)
    return lossFunction.emitOpError() << "has no trainable parameter; nothing is left to train after freezing";
  if (activity.activeParameters.empty())
    return lossFunction.emitOpError()
           << "returns a loss that no trainable parameter reaches; check which output is the "
              "loss and which parameters train";
  return success();
}

/// Gives operators without an id, made by hand or by a rewrite, an id of their kind and place.
void Differentiator::giveIds() {
  int64_t ordinal = 0;
  for (Operation *op : activity.live) {
    if (!op->hasAttr(kIdAttr) && !isa<ConstantOp>(op))
      op->setAttr(kIdAttr,
                  StringAttr::get(op->getContext(), op->getName().stripDialect() + ".unnamed." + Twine(ordinal)));
    ++ordinal;
  }
}

void Differentiator::finishFunction(func::FuncOp function, ValueRange results) {
  auto builder = OpBuilder::atBlockEnd(&function.front());
  func::ReturnOp::create(builder, lossFunction.getLoc(), results);
  function.setType(builder.getFunctionType(function.front().getArgumentTypes(), results.getTypes()));
}

void Differentiator::buildInit() {
  OpBuilder builder(lossFunction);
  auto function = func::FuncOp::create(builder, lossFunction.getLoc(), kInitFunction, builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());

  // Only what the results need.
  llvm::DenseSet<Operation *> needed;
  for (Value value : activity.initValues)
    needed.insert(value.getDefiningOp());
  for (Operation *op : llvm::reverse(activity.constantOps))
    if (needed.contains(op))
      for (Value operand : op->getOperands())
        needed.insert(operand.getDefiningOp());
  IRMapping map;
  for (Operation *op : activity.constantOps)
    if (needed.contains(op))
      builder.clone(*op, map);
  SmallVector<Value> results;
  for (Value value : activity.initValues)
    results.push_back(map.lookup(value));
  finishFunction(function, results);
}

/// Whether the running average is read for nothing but to be tracked.
static bool isOnlyTracked(ReadOp read) {
  return llvm::all_of(read->getUses(), [&](OpOperand &use) {
    auto track = dyn_cast<TrackStatisticOp>(use.getOwner());
    return track && &use == &track.getRunningMutable();
  });
}

func::FuncOp Differentiator::buildForward(StringRef name, bool trains, Value &lossCopy, IRMapping &map) {
  OpBuilder builder(lossFunction);
  SmallVector<Type> types(lossFunction.getArgumentTypes());
  for (Value value : activity.initValues)
    types.push_back(value.getType());
  auto function =
      func::FuncOp::create(builder, lossFunction.getLoc(), name, builder.getFunctionType(types, loss.getType()));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  unsigned inputs = lossFunction.getNumArguments();
  SmallVector<DictionaryAttr> attributes;
  for (unsigned index = 0; index < inputs; ++index) {
    attributes.push_back(lossFunction.getArgAttrDict(index));
    map.map(lossFunction.getArgument(index), block->getArgument(index));
  }
  for (auto [index, value] : llvm::enumerate(activity.initValues)) {
    attributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(kInitValueAttr, builder.getI64IntegerAttr(static_cast<int64_t>(index)))));
    map.map(value, block->getArgument(inputs + index));
  }
  function.setAllArgAttrs(attributes);

  // One read per parameter: a tied weight then has one gradient, the sum over its uses.
  llvm::DenseMap<StringAttr, Value> reads;
  for (Operation *op : activity.live) {
    if (activity.constantOps.contains(op)) {
      // Splats stay where they are used; whatever else is not a result of @init is needed there only.
      bool isUsedHere = isSplatConstant(op) && llvm::any_of(op->getUsers(), [&](Operation *user) {
                          return !activity.constantOps.contains(user);
                        });
      if (isUsedHere)
        builder.clone(*op, map);
      continue;
    }
    if (auto track = dyn_cast<TrackStatisticOp>(op)) {
      map.map(track.getResult(), map.lookup(trains ? track.getStatistic() : track.getRunning()));
      continue;
    }
    if (auto read = dyn_cast<ReadOp>(op)) {
      if (trains && isOnlyTracked(read))
        continue;
      Value &known = reads[read.getParameterAttr().getAttr()];
      if (!known)
        known = builder.clone(*op, map)->getResult(0);
      map.map(op->getResult(0), known);
      continue;
    }
    builder.clone(*op, map);
  }
  lossCopy = map.lookup(loss);
  return function;
}

void Differentiator::freezeUnreached(ParameterOp parameter) {
  parameter.setTrainable(false);
  parameter.setDecays(false);
  parameter.setReason("does not reach the loss");
}

Value Differentiator::buildShare(Value lossCopy, ReverseStart &start, llvm::DenseSet<Value> &active) {
  Operation *lossOp = lossCopy.getDefiningOp();
  Location loc = lossCopy.getLoc();
  auto builder = OpBuilder::atBlockEnd(lossOp->getBlock());
  auto type = cast<RankedTensorType>(lossCopy.getType());
  StringRef name = lossOp->getAttrOfType<StringAttr>(kIdAttr).getValue();
  auto scaleBy = [&](Value value, Value factor) -> Value {
    auto share = MulOp::create(builder, loc, value, factor);
    share->setAttr(kIdAttr, builder.getStringAttr(name + ".share"));
    return share;
  };
  if (countsLabels) {
    // The mean over the labels of this micro-batch is of no use: the sum is divided by the count of all.
    start.root = sumOfLabels(lossCopy, builder, active);
    return scaleBy(start.root, HyperparameterOp::create(builder, loc, type, Hyperparameter::inverse_label_count));
  }
  start.root = lossCopy;
  const int64_t runs = microBatches / getMerge(module);
  start.share = 1.0 / static_cast<double>(runs);
  if (runs == 1)
    return lossCopy;
  auto value = DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), *start.share));
  return scaleBy(lossCopy, ConstantOp::create(builder, loc, type, value));
}

Value Differentiator::sumOfLabels(Value lossCopy, OpBuilder &builder, llvm::DenseSet<Value> &active) {
  Value losses = getMergedLosses(module, lossCopy);
  SmallVector<Value> each = losses ? getEachLoss(losses) : SmallVector<Value>{lossCopy};
  Value sum;
  for (Value loss : each) {
    auto mean = loss.getDefiningOp<LossOp>();
    if (!sum) {
      sum = mean.getSum();
      continue;
    }
    auto both = AddOp::create(builder, mean.getLoc(), sum, mean.getSum());
    both->setAttr(kIdAttr, builder.getStringAttr(mean->getAttrOfType<StringAttr>(kIdAttr).getValue() + ".sum"));
    sum = both;
    active.insert(sum);
  }
  // What made the mean of these means is of no use.
  SmallVector<Operation *> unused{lossCopy.getDefiningOp()};
  while (!unused.empty()) {
    Operation *op = unused.pop_back_val();
    if (!isa_and_nonnull<LossOp, ReshapeOp, ConcatOp, ReduceOp, MulOp, ConstantOp>(op) || !op->use_empty())
      continue;
    for (Value operand : op->getOperands())
      unused.push_back(operand.getDefiningOp());
    op->erase();
  }
  return sum;
}

void Differentiator::buildDifferences(Block &block, const IRMapping &map, ParameterGradients &gradients) {
  llvm::MapVector<StringAttr, SmallVector<TrackStatisticOp>> tracks;
  for (Operation *op : activity.live)
    if (auto track = dyn_cast<TrackStatisticOp>(op))
      if (auto read = track.getRunning().getDefiningOp<ReadOp>();
          read && map.lookup(track.getStatistic()).getDefiningOp())
        tracks[read.getParameterAttr().getAttr()].push_back(track);
  auto builder = OpBuilder::atBlockEnd(&block);
  for (auto &[name, uses] : tracks) {
    auto parameter = SymbolTable::lookupNearestSymbolFrom<ParameterOp>(module, name);
    if (!parameter || !parameter.getTrainable() || !parameter.isRunningStatistic())
      continue;
    // A module that is used several times moves its statistic each time.
    double kept = std::pow(parameter.getMomentum()->convertToDouble(), static_cast<double>(uses.size()));
    parameter.setMomentum(APFloat(kept));
    RankedTensorType type = parameter.getTensorType();
    SmallVector<Value> differences;
    for (TrackStatisticOp track : uses) {
      Location loc = track.getLoc();
      Value statistic = map.lookup(track.getStatistic());
      Attribute forward = statistic.getDefiningOp()->getAttr(kIdAttr), id = track->getAttr(kIdAttr);
      auto finish = [&](Operation *op, const Twine &part) -> Value {
        op->setAttr(kIdAttr, builder.getStringAttr(cast<StringAttr>(id).getValue() + "." + part));
        op->setAttr(kForwardAttr, forward);
        return op->getResult(0);
      };
      auto scale = [&](Value value, double factor, const Twine &part) -> Value {
        if (factor == 1)
          return value;
        auto splat = DenseElementsAttr::get(type, Attribute(builder.getFloatAttr(type.getElementType(), factor)));
        return finish(MulOp::create(builder, loc, value, ConstantOp::create(builder, loc, type, splat)), part);
      };
      Value running = finish(ReadOp::create(builder, loc, type, FlatSymbolRefAttr::get(name)), "read");
      Value corrected = scale(statistic, track.getCorrection().convertToDouble(), "corrected");
      Value difference = finish(SubOp::create(builder, loc, running, corrected), "difference");
      differences.push_back(
          scale(difference, 1.0 / static_cast<double>(microBatches * static_cast<int64_t>(uses.size())), "share"));
    }
    gradients[name] = differences.front();
    if (differences.size() > 1) {
      auto sum = AccumulateOp::create(builder, parameter.getLoc(), type, differences);
      sum->setAttrs(differences.front().getDefiningOp()->getAttrDictionary());
      sum->setAttr(kIdAttr, builder.getStringAttr(parameter.getLogicalName() + ".differences"));
      gradients[name] = sum;
    }
  }
}

LogicalResult Differentiator::buildMicrobatch() {
  IRMapping map;
  Value lossCopy;
  func::FuncOp function = buildForward(kMicrobatchFunction, /*trains=*/true, lossCopy, map);
  Block &block = function.front();
  llvm::DenseSet<Value> active;
  for (Value value : activity.active)
    active.insert(map.lookup(value));

  ReverseStart start;
  start.scalesLoss = scalesLoss;
  Value lossShare = buildShare(lossCopy, start, active);
  Operation *last = &block.back();
  FailureOr<ParameterGradients> gradients = buildBackward(block, start, active);
  if (failed(gradients)) {
    function.erase();
    return failure();
  }
  buildDifferences(block, map, *gradients);
  insertStash(block, last->getNextNode());

  SmallVector<Value> results{lossShare};
  SmallVector<Attribute> weights{nullptr};
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    if (!parameter.getTrainable())
      continue;
    Value gradient = gradients->lookup(parameter.getSymNameAttr());
    if (!gradient) {
      freezeUnreached(parameter);
      continue;
    }
    results.push_back(gradient);
    weights.push_back(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
  }
  finishFunction(function, results);
  setEachResultAttr(function, kGradientAttr, weights);
  return success();
}

void Differentiator::buildEvaluate() {
  IRMapping map;
  Value lossCopy;
  func::FuncOp function = buildForward(kEvaluateFunction, /*trains=*/false, lossCopy, map);
  Value losses = getMergedLosses(module, lossCopy);
  finishFunction(function, losses ? losses : lossCopy);
  // Nothing is dropped here, and nothing makes the masks.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front()))) {
    if (auto dropout = dyn_cast<DropoutOp>(op))
      dropout.getResult().replaceAllUsesWith(dropout.getInput());
    if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty())
      op.erase();
  }
}

LogicalResult Differentiator::run() {
  if (microBatches < 1)
    return module.emitError() << "there are " << microBatches << " micro-batches per step; give at least 1";
  if (int64_t merge = getMerge(module); microBatches % merge != 0)
    return module.emitError() << microBatches << " micro-batches per step cannot be merged by " << merge
                              << "; choose a divisor";
  if (failed(findLoss()))
    return failure();
  activity = analyzeActivity(module, lossFunction, loss);
  if (failed(checkActivity()))
    return failure();
  giveIds();
  if (failed(buildMicrobatch()))
    return failure();
  buildInit();
  buildEvaluate();
  // In the order in which a reader wants them.
  auto init = getInitFunction(module);
  init->moveBefore(getMicrobatchFunction(module));
  lossFunction.erase();

  Builder builder(module.getContext());
  NamedAttrList settings(module->getAttrOfType<DictionaryAttr>(kSettingsAttr));
  settings.set("micro_batches", builder.getI64IntegerAttr(microBatches));
  if (scalesLoss)
    settings.set(kScalesLossSetting, builder.getUnitAttr());
  module->setAttr(kSettingsAttr, settings.getDictionary(module.getContext()));
  return success();
}

class DifferentiatePass : public impl::DifferentiatePassBase<DifferentiatePass> {
public:
  using DifferentiatePassBase::DifferentiatePassBase;
  void runOnOperation() override {
    if (failed(Differentiator(getOperation(), microBatches, scalesLoss).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace windlass::train
