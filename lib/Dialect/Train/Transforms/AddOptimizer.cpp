// train-add-optimizer
#include "NamePatterns.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"
#include "windlass/Support/FunctionAttributes.h"

#include <cmath>

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_ADDOPTIMIZERPASS
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

namespace {

/// Builds `@update` for one kind of optimizer.
class UpdateBuilder {
public:
  UpdateBuilder(ModuleOp module, SmallVector<ParameterOp> weights, int64_t microBatches, bool isAdamW, bool clips,
                bool scalesLoss)
      : module(module), weights(std::move(weights)), microBatches(microBatches), isAdamW(isAdamW), clips(clips),
        scalesLoss(scalesLoss), builder(module.getContext()) {}

  void build() {
    for (ParameterOp parameter : module.getOps<ParameterOp>())
      lastParameter = parameter;
    for (ParameterOp weight : weights)
      if (!weight.isRunningStatistic())
        for (StringRef name : getStateNames())
          states[weight].push_back(addState(weight, name));
    addFunction();
  }

private:
  ArrayRef<StringRef> getStateNames() const {
    static constexpr StringRef adamw[] = {"exp_avg", "exp_avg_sq"}, sgd[] = {"momentum_buffer"};
    return isAdamW ? ArrayRef<StringRef>(adamw) : ArrayRef<StringRef>(sgd);
  }

  ParameterOp addState(ParameterOp weight, StringRef name) {
    builder.setInsertionPointAfter(lastParameter);
    auto source = SourceAttr::get(module.getContext(), SourceKind::none, "", 0, 0, Type());
    auto state =
        ParameterOp::create(builder, weight.getLoc(), (weight.getSymName() + "." + name).str(),
                            (weight.getLogicalName() + "/" + name).str(), weight.getType(), Role::state, source,
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
        addStep(weight, gradient, scale);
    }
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
    Value isFinite =
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

  void addStep(ParameterOp weight, Value gradient, Value scale) {
    SmallVector<Value> operands{read(weight)};
    for (ParameterOp state : states[weight])
      operands.push_back(read(state));
    operands.push_back(gradient);
    using H = Hyperparameter;
    static constexpr H adamw[] = {H::learning_rate, H::one_minus_beta1,  H::one_minus_beta2, H::epsilon,
                                  H::weight_decay,  H::bias_correction1, H::bias_correction2};
    static constexpr H sgd[] = {H::learning_rate, H::momentum, H::weight_decay};
    for (H name : isAdamW ? ArrayRef<H>(adamw) : ArrayRef<H>(sgd))
      operands.push_back(getHyperparameter(name));
    operands.push_back(scale);
    SmallVector<NamedAttribute> attributes;
    if (weight.getDecays())
      attributes.push_back(builder.getNamedAttr("decays", builder.getUnitAttr()));
    Operation *step =
        isAdamW ? make<AdamWOp>(weight.getLogicalName() + "/adamw", weight.getLoc(), operands, attributes)
                : make<SgdOp>(weight.getLogicalName() + "/sgd", weight.getLoc(), operands, attributes).getOperation();
    write(weight, step->getResult(0));
    for (auto [index, state] : llvm::enumerate(states[weight]))
      write(state, step->getResult(index + 1));
  }

  ModuleOp module;
  SmallVector<ParameterOp> weights;
  /// The micro-batches of a step over all replicas.
  int64_t microBatches;
  bool isAdamW, clips, scalesLoss;
  /// The parameter behind which state is added: the last one that existed before.
  ParameterOp lastParameter;
  OpBuilder builder;
  RankedTensorType scalarType;
  llvm::DenseMap<Operation *, SmallVector<ParameterOp, 2>> states;
  llvm::DenseMap<unsigned, Value> hyperparameters;
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
    if (optimizer != "adamw" && optimizer != "sgd")
      return module.emitError() << "there is no optimizer '" << optimizer.getValue() << "'; choose adamw or sgd";
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
    if (failed(applyToMatches(module, globs, "no-decay", [](ParameterOp weight) { weight.setDecays(false); })))
      return failure();
    int64_t microBatchesOfStep = cast<IntegerAttr>(settings.get("micro_batches")).getInt();
    UpdateBuilder(module, weights, microBatchesOfStep, optimizer == "adamw", clip,
                  settings.get(kScalesLossSetting) != nullptr)
        .build();

    settings.set("optimizer", builder.getStringAttr(optimizer));
    settings.set("clip", builder.getBoolAttr(clip));
    module->setAttr(kSettingsAttr, settings.getDictionary(module.getContext()));
    return success();
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
