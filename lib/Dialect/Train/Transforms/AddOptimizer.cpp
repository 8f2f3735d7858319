// train-add-optimizer
#include "AdafactorStep.h"
#include "MuonStep.h"
#include "NamePatterns.h"
#include "windlass/Dialect/Train/IR/Optimizers.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"
#include "windlass/Support/FunctionAttributes.h"
#include "windlass/Support/Printable.h"

#include <cmath>

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_ADDOPTIMIZERPASS
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

namespace {

/// Builds `@update` for one kind of optimizer.
class UpdateBuilder {
public:
  UpdateBuilder(ModuleOp module, SmallVector<ParameterOp> weights, int64_t microBatches, const Optimizer &optimizer,
                bool clips, bool averages, bool scalesLoss)
      : module(module), weights(std::move(weights)), microBatches(microBatches), optimizer(optimizer), clips(clips),
        averages(averages), scalesLoss(scalesLoss), builder(module.getContext()) {}

  void build() {
    for (ParameterOp parameter : module.getOps<ParameterOp>())
      lastParameter = parameter;
    if (optimizer.orthogonalizes)
      matrices = findMuonMatrices(module);
    for (ParameterOp weight : weights)
      if (!weight.isRunningStatistic()) {
        RankedTensorType type = weight.getTensorType();
        if (matrices.contains(weight))
          states[weight].push_back(addState(weight, "momentum_buffer", type));
        else
          for (StringRef name : optimizer.states)
            states[weight].push_back(addState(weight, name, type));
        if (optimizer.factorsMoments)
          for (const AdafactorMoment &moment : getAdafactorMoments(type))
            states[weight].push_back(addState(weight, moment.name, moment.type));
        if (averages)
          averageOf[weight] = addState(weight, kEmaState, type);
      }
    addFunction();
  }

private:
  ParameterOp addState(ParameterOp weight, StringRef name, RankedTensorType type) {
    builder.setInsertionPointAfter(lastParameter);
    auto source = SourceAttr::get(module.getContext(), SourceKind::none, "", 0, 0, Type());
    auto state =
        ParameterOp::create(builder, weight.getLoc(), (weight.getSymName() + "." + name).str(),
                            (weight.getLogicalName() + "/" + name).str(), type, Role::state, source,
                            /*trainable=*/false, /*decays=*/false, FlatSymbolRefAttr::get(weight.getSymNameAttr()),
                            /*reason=*/StringAttr(), /*compute_type=*/TypeAttr(), /*momentum=*/FloatAttr());
    lastParameter = state;
    return state;
  }

  template <class Op, class... Args> Op make(const Twine &id, Location loc, Args &&...args) {
    Op op = Op::create(builder, loc, std::forward<Args>(args)...);
    op->setAttr(kIdAttr, builder.getStringAttr("update/" + id));
    return op;
  }

  Value getHyperparameter(Hyperparameter name) {
    Value &value = hyperparameters[static_cast<unsigned>(name)];
    if (!value)
      value = HyperparameterOp::create(builder, module.getLoc(), scalarType, name);
    return value;
  }

  /// Returns the hyperparameter, scaled where the parameter has a scale for it.
  Value getHyperparameter(ParameterOp weight, Hyperparameter name) {
    StringRef attribute = name == Hyperparameter::learning_rate  ? kRateScaleAttr
                          : name == Hyperparameter::weight_decay ? kDecayScaleAttr
                                                                 : StringRef();
    auto scale = attribute.empty() ? FloatAttr() : weight->getAttrOfType<FloatAttr>(attribute);
    if (!scale || scale.getValue().isExactlyValue(1))
      return getHyperparameter(name);
    Value &value = scaled[{attribute, scale}];
    if (!value)
      value = make<MulOp>(stringifyHyperparameter(name) + "/scale_" + Twine(scaled.size()), module.getLoc(),
                          getHyperparameter(name), getConstant(scale.getValue()));
    return value;
  }

  Value read(ParameterOp parameter) {
    return make<ReadOp>(parameter.getLogicalName() + "/read", parameter.getLoc(), parameter.getTensorType(),
                        FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
  }

  void write(ParameterOp parameter, Value value) {
    make<WriteOp>(parameter.getLogicalName() + "/write", parameter.getLoc(),
                  FlatSymbolRefAttr::get(parameter.getSymNameAttr()), value);
  }

  void addFunction() {
    SmallVector<Type> types;
    for (ParameterOp weight : weights)
      types.push_back(weight.getType());
    scalarType = RankedTensorType::get({}, weights.front().getTensorType().getElementType());
    builder.setInsertionPointToEnd(module.getBody());
    auto function = func::FuncOp::create(builder, module.getLoc(), kUpdateFunction,
                                         builder.getFunctionType(types, TypeRange(scalarType)));
    SmallVector<Attribute> names;
    for (ParameterOp weight : weights)
      names.push_back(FlatSymbolRefAttr::get(weight.getSymNameAttr()));
    setEachArgAttr(function, kGradientAttr, names);
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToStart(block);

    Value norm = addNorm(block->getArguments());
    Value scale;
    if (clips)
      scale = make<ClipFactorOp>("clip_factor", module.getLoc(), norm, getHyperparameter(Hyperparameter::clip_norm));
    else
      scale = getConstant(APFloat(1.0));
    if (scalesLoss)
      scale = removeLossScale(scale, norm);
    for (auto [weight, gradient] : llvm::zip(weights, block->getArguments())) {
      if (weight.isRunningStatistic())
        addAverage(weight, gradient);
      else
        newWeights.emplace_back(weight, matrices.contains(weight)  ? addMuonStep(weight, gradient, scale)
                                        : optimizer.factorsMoments ? addAdafactorStep(weight, gradient, scale)
                                                                   : addStep(weight, gradient, scale));
    }
    // Behind all steps, which one command may make together.
    if (averages)
      for (auto [weight, value] : newWeights)
        addEma(weight, value);
    func::ReturnOp::create(builder, module.getLoc(), norm);
  }

  /// Returns the norm over all gradients, each parameter once; running statistics have none. Sums of parts are kept
  /// n-ary, to be reduced together.
  Value addNorm(ArrayRef<BlockArgument> gradients) {
    SmallVector<Value> squares;
    for (auto [weight, gradient] : llvm::zip(weights, gradients))
      if (!weight.isRunningStatistic())
        squares.push_back(
            make<SquareSumOp>(weight.getLogicalName() + "/square_sum", weight.getLoc(), scalarType, gradient));
    Value sum = make<AccumulateOp>("square_sum", module.getLoc(), scalarType, squares);
    if (!scalesLoss)
      return make<SqrtOp>("grad_norm", module.getLoc(), sum);
    Value scaled = make<SqrtOp>("scaled_norm", module.getLoc(), sum);
    return make<MulOp>("grad_norm", module.getLoc(), scaled, getHyperparameter(Hyperparameter::inverse_loss_scale));
  }

  /// Returns the factor that scaled gradients are multiplied by. It is NaN where one of them overflowed, so that each
  /// optimizer step leaves its weight and state as they are without asking the host.
  Value removeLossScale(Value scale, Value norm) {
    Location loc = module.getLoc();
    Value unscaled = make<MulOp>("unscaled", loc, scale, getHyperparameter(Hyperparameter::inverse_loss_scale));
    Value infinity = getConstant(APFloat::getInf(APFloat::IEEEdouble()));
    Value none = getConstant(APFloat::getNaN(APFloat::IEEEdouble()));
    isFinite =
        make<CompareOp>("is_finite", loc, scalarType.clone(builder.getI1Type()), Predicate::less, norm, infinity);
    return make<SelectOp>("gradient_scale", loc, scalarType, isFinite, unscaled, none);
  }

  Value getConstant(APFloat value) {
    auto element = cast<FloatType>(scalarType.getElementType());
    bool loses;
    value.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return ConstantOp::create(builder, module.getLoc(), scalarType, DenseElementsAttr::get(scalarType, value));
  }

  /// Moves a running statistic as far as the micro-batches of a step do in PyTorch, one after the other. There, later
  /// ones weigh a little more; here, all weigh the same, so that a plan may order and divide them as it likes.
  void addAverage(ParameterOp running, Value gradient) {
    double kept = std::pow(running.getMomentum()->convertToDouble(), static_cast<double>(microBatches));
    // A number of f32, as programs have it, so that all levels agree.
    auto rate = static_cast<float>(1 - kept);
    write(running, make<AverageOp>(running.getLogicalName() + "/average", running.getLoc(), read(running), gradient,
                                   builder.getF64FloatAttr(rate)));
  }

  /// Returns the norm of a weight over that of its direction; 1 where one of them is 0.
  Value addTrustRatio(ParameterOp weight, Value value, Value direction) {
    Location loc = weight.getLoc();
    auto id = [&](StringRef name) { return (weight.getLogicalName() + "/" + name).str(); };
    Value ofWeight = make<SquareSumOp>(id("weight_square_sum"), loc, scalarType, value);
    Value ofDirection = make<SquareSumOp>(id("direction_square_sum"), loc, scalarType, direction);
    Value least = make<MinOp>(id("least_square_sum"), loc, ofWeight, ofDirection);
    Value isPositive = make<CompareOp>(id("has_norms"), loc, scalarType.clone(builder.getI1Type()), Predicate::less,
                                       getConstant(APFloat(0.0)), least);
    Value ratio = make<SqrtOp>(id("norm_ratio"), loc, make<DivOp>(id("square_ratio"), loc, ofWeight, ofDirection));
    return make<SelectOp>(id("trust_ratio"), loc, scalarType, isPositive, ratio, getConstant(APFloat(1.0)));
  }

  /// Returns the weight moved along a direction.
  Value addDescent(ParameterOp weight, Value value, Value direction) {
    Value rate = getHyperparameter(weight, Hyperparameter::learning_rate);
    if (weight.getDecays())
      rate = make<MulOp>(weight.getLogicalName() + "/rate", weight.getLoc(), rate,
                         addTrustRatio(weight, value, direction));
    // The direction has the decay in it.
    return make<DescendOp>(weight.getLogicalName() + "/descend", weight.getLoc(), value, direction, rate,
                           getConstant(APFloat(0.0)));
  }

  /// Returns the new value of a matrix that takes Muon's step: it shrinks by its decay, then it descends along the
  /// orthogonalized momentum.
  Value addMuonStep(ParameterOp weight, Value gradient, Value scale) {
    ParameterOp state = states[weight].front();
    Value value = read(weight), rate = getHyperparameter(weight, Hyperparameter::learning_rate);
    Location loc = weight.getLoc();
    auto id = [&](const Twine &name) { return (weight.getLogicalName() + "/" + name).str(); };
    auto momentum = make<MomentumOp>(id("momentum"), loc, read(state), gradient,
                                     getHyperparameter(Hyperparameter::momentum), scale);
    write(state, momentum.getNewBuffer());
    MuonStep step(builder, loc, "update/" + weight.getLogicalName().str());
    Value direction = step.orthogonalize(momentum.getDirection());
    Value adjusted = make<MulOp>(id("rate"), loc, rate, getConstant(APFloat(getMuonScale(weight.getTensorType()))));
    value = make<DescendOp>(id("descend"), loc, value, direction, adjusted, getDecay(weight, rate));
    write(weight, value);
    return value;
  }

  /// Returns the share by which a weight shrinks before it descends.
  Value getDecay(ParameterOp weight, Value rate) {
    Value none = getConstant(APFloat(0.0));
    if (!weight.getDecays())
      return none;
    auto id = [&](StringRef name) { return (weight.getLogicalName() + "/" + name).str(); };
    Value decay =
        make<MulOp>(id("decay"), weight.getLoc(), rate, getHyperparameter(weight, Hyperparameter::weight_decay));
    // Where gradients have overflowed, the direction is 0, and the weight must not shrink either.
    return isFinite ? make<SelectOp>(id("finite_decay"), weight.getLoc(), scalarType, isFinite, decay, none) : decay;
  }

  /// Returns the rate at which Adafactor's moments move.
  Value getMomentRate() {
    if (!momentRate) {
      momentRate = getHyperparameter(Hyperparameter::second_moment_rate);
      // Where gradients have overflowed, the moments stay.
      if (isFinite)
        momentRate = make<SelectOp>("finite_second_moment_rate", module.getLoc(), scalarType, isFinite, momentRate,
                                    getConstant(APFloat(0.0)));
    }
    return momentRate;
  }

  /// Returns the new value of a weight that takes Adafactor's step.
  Value addAdafactorStep(ParameterOp weight, Value gradient, Value scale) {
    Value rate = getHyperparameter(weight, Hyperparameter::learning_rate), momentRate = getMomentRate();
    Value value = read(weight);
    SmallVector<Value, 2> moments;
    for (ParameterOp state : states[weight])
      moments.push_back(read(state));
    AdafactorStep step(builder, weight.getLoc(), "update/" + weight.getLogicalName().str());
    Value direction = step.getDirection(step.scaleGradient(gradient, scale, isFinite), moments, momentRate);
    for (auto [state, moment] : llvm::zip(states[weight], moments))
      write(state, moment);
    Value descent = step.getRate(value, direction, rate, getHyperparameter(Hyperparameter::inverse_sqrt_step),
                                 getHyperparameter(Hyperparameter::epsilon));
    value = make<DescendOp>(weight.getLogicalName() + "/descend", weight.getLoc(), value, direction, descent,
                            getDecay(weight, rate));
    write(weight, value);
    return value;
  }

  /// Moves the average of a weight towards its new value.
  void addEma(ParameterOp weight, Value value) {
    ParameterOp average = averageOf.lookup(weight);
    write(average, make<EmaOp>(weight.getLogicalName() + "/ema", weight.getLoc(), read(average), value,
                               getHyperparameter(Hyperparameter::ema_rate)));
  }

  /// Returns the new weight.
  Value addStep(ParameterOp weight, Value gradient, Value scale) {
    SmallVector<Value> operands{read(weight)};
    for (ParameterOp state : states[weight])
      operands.push_back(read(state));
    operands.push_back(gradient);
    for (Hyperparameter name : optimizer.hyperparameters)
      operands.push_back(getHyperparameter(weight, name));
    operands.push_back(scale);
    OperationState step(weight.getLoc(), optimizer.step, operands,
                        SmallVector<Type>(1 + optimizer.states.size(), weight.getTensorType()));
    if (weight.getDecays())
      step.addAttribute("decays", builder.getUnitAttr());
    if (optimizer.isCoupled)
      step.addAttribute("coupled", builder.getUnitAttr());
    Operation *made = builder.create(step);
    made->setAttr(kIdAttr,
                  builder.getStringAttr("update/" + weight.getLogicalName() + "/" + made->getName().stripDialect()));
    Value value = made->getResult(0);
    if (optimizer.givesDirection)
      value = addDescent(weight, operands.front(), value);
    write(weight, value);
    for (auto [index, state] : llvm::enumerate(states[weight]))
      write(state, made->getResult(index + 1));
    return value;
  }

  ModuleOp module;
  SmallVector<ParameterOp> weights;
  /// The micro-batches of a step over all replicas.
  int64_t microBatches;
  const Optimizer &optimizer;
  bool clips, averages, scalesLoss;
  /// The parameter behind which state is added: the last one that existed before.
  ParameterOp lastParameter;
  OpBuilder builder;
  RankedTensorType scalarType;
  llvm::DenseMap<Operation *, SmallVector<ParameterOp, 2>> states;
  llvm::DenseMap<Operation *, ParameterOp> averageOf;
  /// Whether the gradients of a scaled loss are finite; null where the loss is not scaled.
  Value isFinite;
  /// The rate of Adafactor's moments; null before the first step is added.
  Value momentRate;
  /// The weights that take Muon's step.
  llvm::DenseSet<Operation *> matrices;
  SmallVector<std::pair<ParameterOp, Value>> newWeights;
  llvm::DenseMap<unsigned, Value> hyperparameters;
  /// By kind of scale and scale.
  llvm::DenseMap<std::pair<StringRef, Attribute>, Value> scaled;
};

class AddOptimizerPass : public impl::AddOptimizerPassBase<AddOptimizerPass> {
public:
  using AddOptimizerPassBase::AddOptimizerPassBase;

  void runOnOperation() override {
    if (failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run() {
    ModuleOp module = getOperation();
    const Optimizer *chosen = findOptimizer(optimizer);
    if (!chosen) {
      auto diagnostic = module.emitError() << "there is no optimizer '" << optimizer.getValue() << "'; choose one of ";
      llvm::interleaveComma(getOptimizers(), diagnostic, [&](const Optimizer &each) { diagnostic << each.name; });
      return diagnostic;
    }
    if (module.lookupSymbol(kUpdateFunction))
      return module.emitError() << "there is a function @" << kUpdateFunction << " already";
    NamedAttrList settings(module->getAttrOfType<DictionaryAttr>(kSettingsAttr));
    Builder builder(module.getContext());
    if (failed(setMicroBatches(settings)))
      return failure();
    SmallVector<ParameterOp> weights;
    for (ParameterOp parameter : module.getOps<ParameterOp>())
      if (parameter.getTrainable())
        weights.push_back(parameter);
    if (llvm::all_of(weights, [](ParameterOp weight) { return weight.isRunningStatistic(); }))
      return module.emitError() << "there is no trainable parameter to update";
    for (ParameterOp weight : weights) {
      weight.setDecays(weight.getTensorType().getRank() >= 2 && !weight.isRunningStatistic());
      if (weight.getTensorType().getElementType() != weights.front().getTensorType().getElementType())
        return weight.emitOpError() << "has type " << weight.getTensorType() << ", but " << weights.front().getSymName()
                                    << " is of " << weights.front().getTensorType()
                                    << "; all trainable parameters have one element type";
    }
    SmallVector<std::string> globs(noDecay.begin(), noDecay.end());
    auto keep = [](ParameterOp weight, size_t) { weight.setDecays(false); };
    if (failed(applyToMatches(module, globs, "no-decay", keep)) ||
        failed(applyScales("lr-scale", rateScales, kRateScaleAttr)) ||
        failed(applyScales("decay-scale", decayScales, kDecayScaleAttr)))
      return failure();
    int64_t microBatchesOfStep = cast<IntegerAttr>(settings.get("micro_batches")).getInt();
    UpdateBuilder(module, weights, microBatchesOfStep, *chosen, clip, ema, settings.get(kScalesLossSetting) != nullptr)
        .build();

    settings.set("optimizer", builder.getStringAttr(optimizer));
    settings.set("clip", builder.getBoolAttr(clip));
    if (ema)
      settings.set("ema", builder.getBoolAttr(true));
    module->setAttr(kSettingsAttr, settings.getDictionary(module.getContext()));
    return success();
  }

  /// Notes the scales that patterns GLOB=X give parameters. A parameter whose decay is scaled decays.
  LogicalResult applyScales(StringRef option, ArrayRef<std::string> patterns, StringRef attribute) {
    SmallVector<std::string> globs;
    SmallVector<double> scales;
    for (StringRef pattern : patterns) {
      auto scale = parseScale(pattern);
      if (!scale)
        return getOperation().emitError() << option << " takes GLOB=X with a number X above 0 and at most "
                                          << kMostScale << ", not " << printable(pattern);
      globs.push_back(scale->first.str());
      scales.push_back(scale->second);
    }
    Builder builder(&getContext());
    return applyToMatches(getOperation(), globs, option, [&](ParameterOp weight, size_t pattern) {
      if (!weight.isOptimized())
        return;
      if (attribute == kDecayScaleAttr)
        weight.setDecays(true);
      weight->setAttr(attribute, builder.getF64FloatAttr(scales[pattern]));
    });
  }

  LogicalResult setMicroBatches(NamedAttrList &settings) {
    auto known = dyn_cast_or_null<IntegerAttr>(settings.get("micro_batches"));
    if (known && microBatches != 0 && known.getInt() != microBatches)
      return getOperation().emitError() << "the gradients are of " << known.getInt()
                                        << " micro-batches per step, but the optimizer is asked for "
                                        << microBatches.getValue() << "; give both passes one number";
    if (!known)
      settings.set("micro_batches", Builder(&getContext()).getI64IntegerAttr(std::max<int64_t>(1, microBatches)));
    return success();
  }
};

} // namespace
} // namespace windlass::train
