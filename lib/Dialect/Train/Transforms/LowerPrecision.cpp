// train-lower-precision
#include "RouterPaths.h"

#include "windlass/Dialect/Train/IR/FullPrecision.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_LOWERPRECISIONPASS
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

namespace {

Type getElement(Value value) { return getElementTypeOrSelf(value.getType()); }

/// Whether an operand stays in f32: statistics of rows, and scalars that lead to the loss.
bool isWideOperand(Operation *op, unsigned operand) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<LossOp>([](auto) { return true; })
      .Case<LayerNormGradOp, RmsNormGradOp>([&](auto) { return operand >= 3; })
      .Case<AttentionGradOp>([&](AttentionGradOp grad) { return op->getOperand(operand) == grad.getLogSum(); })
      .Case<SoftmaxCrossEntropyGradOp>([&](auto) { return operand == 0 || operand == 3; })
      .Default(false);
}

RankedTensorType withElement(Value value, Type element) {
  return cast<RankedTensorType>(value.getType()).clone(element);
}

/// Whether the value is an input of the model, which is narrow for all its readers.
bool isInput(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return function && function.getArgAttr(argument.getArgNumber(), kInputAttr);
}

/// Gives the values of a training step's functions their types. Values that depend on neither weights nor inputs stay
/// in f32 until they meet a narrow value: positions, and the angles that are made of them and a buffer, are large
/// numbers whose small differences count.
class PrecisionLowering {
public:
  PrecisionLowering(ModuleOp module, FloatType narrow)
      : module(module), narrow(narrow), wide(Float32Type::get(module.getContext())) {}

  void run() {
    routerPaths = findRouterPaths(getReaders());
    for (auto parameter : module.getOps<ParameterOp>())
      if (parameter.getTensorType().getElementType() == wide && parameter.getRole() == Role::weight &&
          !parameter.isRunningStatistic() && !routerPaths.weights.contains(parameter.getSymNameAttr()))
        parameter.setComputeType(narrow);
    for (func::FuncOp function : getReaders())
      lower(function);
    if (func::FuncOp update = getUpdateFunction(module))
      lowerProducts(update);
    lowerInitValues();
    setTypes(getInitFunction(module));
    for (func::FuncOp function : getReaders())
      setTypes(function);
  }

private:
  SmallVector<func::FuncOp> getReaders() { return {getMicrobatchFunction(module), getEvaluateFunction(module)}; }

  void setTypes(func::FuncOp function) {
    Block &block = function.front();
    function.setType(
        FunctionType::get(module.getContext(), block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  }

  void lower(func::FuncOp function) {
    for (auto &values : converted)
      values.clear();
    wideGradients.clear();
    narrowSums.clear();
    fullOps.clear();
    fullIds.clear();
    Operation *end = function.front().getTerminator();
    for (Value gradient : llvm::drop_begin(end->getOperands()))
      markWide(gradient, end);
    for (Operation &op : llvm::make_early_inc_range(function.front().without_terminator()))
      lower(op);
    for (OpOperand &result : end->getOpOperands())
      result.set(convert(result.get(), wide, end));
    for (auto [op, other] : llvm::reverse(replaced))
      if (op->use_empty()) {
        other->setAttr(kIdAttr, op->getAttr(kIdAttr));
        op->erase();
      }
    replaced.clear();
  }

  /// Lets the products of optimizer steps read bf16, as Muon's authors do, and add up in f32.
  void lowerProducts(func::FuncOp update) {
    Type type = BFloat16Type::get(module.getContext());
    llvm::DenseMap<Value, Value> casts;
    for (auto product : update.getOps<MatmulOp>()) {
      for (OpOperand &operand : product->getOpOperands()) {
        Value value = operand.get();
        Value &cast = casts[value];
        if (!cast) {
          OpBuilder builder(module.getContext());
          builder.setInsertionPointAfterValue(value);
          auto op = CastOp::create(builder, product.getLoc(), withElement(value, type), value);
          auto id = value.getDefiningOp()->getAttrOfType<StringAttr>(kIdAttr);
          op->setAttr(kIdAttr, builder.getStringAttr((id ? id.getValue() : StringRef("update")) + "/cast"));
          cast = op.getResult();
        }
        operand.set(cast);
      }
      product.setWide(true);
    }
  }

  /// Whether the value is in f32 only for a router, so that all other readers, and the backward pass, take it narrow.
  bool isCarried(Value value) {
    auto result = dyn_cast<OpResult>(value);
    return result && result.getResultNumber() == 0 && routerPaths.carried.contains(result.getOwner());
  }

  bool isMadeInFull(Value value) { return fullOps.contains(value.getDefiningOp()); }

  /// Whether an operator computes in f32: it, or the forward operator of an adjoint, is marked so, or it is a view of
  /// what such an operator computes. Operators are asked about in program order.
  bool computesInFull(Operation &op) {
    bool isView = isa<BroadcastOp, ReshapeOp, TransposeOp>(op) && isMadeInFull(op.getOperand(0));
    if (!op.hasAttr(kFullPrecisionAttr) && !fullIds.contains(op.getAttr(kForwardAttr)) && !isView)
      return false;
    fullOps.insert(&op);
    fullIds.insert(op.getAttr(kIdAttr));
    return true;
  }

  /// Marks values wide: operators whose only result is a gradient that accumulates in f32 pass on their sums as they
  /// are.
  void markWide(Value value, Operation *reader) {
    Operation *op = value.getDefiningOp();
    bool moves = isa_and_nonnull<AccumulateOp, ReshapeOp, TransposeOp>(op);
    auto reduce = dyn_cast_or_null<ReduceOp>(op);
    bool sums = isa_and_nonnull<MatmulOp>(op) || (reduce && reduce.getKind() == ReductionKind::sum);
    if ((!moves && !sums) ||
        !llvm::all_of(op->getUsers(), [&](Operation *user) { return user == reader || wideGradients.contains(user); }))
      return;
    wideGradients.insert(op);
    if (moves)
      for (Value operand : op->getOperands())
        markWide(operand, op);
  }

  void lower(Operation &op) {
    if (isa<ConstantOp>(op))
      return;
    if (auto read = dyn_cast<ReadOp>(op)) {
      auto parameter = module.lookupSymbol<ParameterOp>(read.getParameter());
      if (parameter.getComputeType())
        inferTypes(op, narrow);
      return;
    }
    // A value that operators of the forward pass read narrow is stashed narrow.
    if (auto stash = dyn_cast<StashOp>(op)) {
      Value known = converted[0].lookup(stash.getValue());
      if (!known && isCarried(stash.getValue()))
        known = convert(stash.getValue(), narrow, &op);
      if (known && getElement(known) == narrow)
        stash.getValueMutable().set(known);
    }
    bool isFull = computesInFull(op), sums = isa<MatmulOp, ReduceOp>(op);
    // A sum reads narrow values as they are.
    bool staysWide =
        (wideGradients.contains(&op) && !sums) || routerPaths.contains(&op) || (isFull && !isa<ReduceOp>(op));
    auto isReadNarrow = [&](Value value) {
      return isInput(value) || isCarried(value) || (!isFull && !isa<StashOp>(op) && isMadeInFull(value));
    };
    // The gradient of a value that was narrow before a sum in f32.
    bool leavesSum = isa<BroadcastOp>(op) && narrowSums.contains(op.getAttr(kForwardAttr));
    bool isNarrow = leavesSum || (!staysWide && llvm::any_of(op.getOpOperands(), [&](OpOperand &operand) {
                      return !isWideOperand(&op, operand.getOperandNumber()) &&
                             (getElement(operand.get()) == narrow ||
                              (getElement(operand.get()) == wide && isReadNarrow(operand.get())));
                    }));
    for (OpOperand &operand : op.getOpOperands()) {
      if (!isa<FloatType>(getElement(operand.get())))
        continue;
      if (staysWide || isWideOperand(&op, operand.getOperandNumber()))
        operand.set(convert(operand.get(), wide, &op));
      else if (isNarrow)
        operand.set(convert(operand.get(), narrow, &op));
    }
    if (!isNarrow && !staysWide)
      return;
    // Losses and norms end as one number each.
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      reduce.setWide(isFull || wideGradients.contains(&op) || reduce.getResult().getType().getShape().empty());
      if (reduce.getWide() && !isFull)
        narrowSums.insert(op.getAttr(kIdAttr));
    }
    if (auto matmul = dyn_cast<MatmulOp>(op))
      matmul.setWide(wideGradients.contains(&op));
    inferTypes(op, staysWide ? wide : narrow);
  }

  /// Sets the result types by the operator's own rule, or else to floats of `element`.
  void inferTypes(Operation &op, FloatType element) {
    SmallVector<Type> types;
    auto infer = dyn_cast<InferTypeOpInterface>(op);
    if (!infer ||
        failed(infer.inferReturnTypes(op.getContext(), op.getLoc(), op.getOperands(), op.getRawDictionaryAttrs(),
                                      op.getPropertiesStorage(), op.getRegions(), types))) {
      types.clear();
      for (Value result : op.getResults())
        types.push_back(isa<FloatType>(getElement(result)) ? withElement(result, element) : result.getType());
    }
    for (auto [result, type] : llvm::zip_equal(op.getResults(), types))
      result.setType(type);
  }

  /// Returns the value in type `element`, converted where it is made; an argument is converted in the forward pass and
  /// again in the backward pass, which has only stashed values of the forward pass.
  Value convert(Value value, FloatType element, Operation *reader) {
    if (getElement(value) == element)
      return value;
    Operation *maker = value.getDefiningOp();
    // A stashed value is converted in the backward pass.
    bool isHandedOver = isa_and_nonnull<StashOp>(maker);
    Attribute forward = (maker && !isHandedOver ? maker : reader)->getAttr(kForwardAttr);
    bool isAgain = !maker && forward;
    if (Value made = converted[isAgain].lookup(value))
      return made;
    Operation *owner = maker ? maker : reader;
    OpBuilder builder(owner);
    if (isHandedOver)
      builder.setInsertionPoint(reader);
    else if (maker)
      builder.setInsertionPointAfter(maker);
    RankedTensorType type = withElement(value, element);
    SplatElementsAttr splat;
    if (auto constant = value.getDefiningOp<ConstantOp>())
      splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (splat) {
      auto number = splat.getSplatValue<APFloat>();
      bool loses, isFinite = number.isFinite();
      number.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
      // The lowest number of f32 in a mask stays finite, so that it can be multiplied with 0.
      if (isFinite && !number.isFinite())
        number = APFloat::getLargest(element.getFloatSemantics(), number.isNegative());
      return converted[isAgain][value] =
                 ConstantOp::create(builder, owner->getLoc(), type, DenseElementsAttr::get(type, number));
    }
    // Broadcast values are converted before they are broadcast.
    Operation *op;
    if (auto broadcast = dyn_cast_or_null<BroadcastOp>(maker)) {
      Value input = convert(broadcast.getInput(), element, maker);
      op = BroadcastOp::create(builder, owner->getLoc(), type, input, broadcast.getDimsAttr());
      replaced.push_back({maker, op});
    } else {
      op = CastOp::create(builder, owner->getLoc(), type, value);
    }
    // The ids are alike in repeats of a block where the owners' are.
    auto id = owner->getAttrOfType<StringAttr>(kIdAttr);
    unsigned number = maker ? cast<OpResult>(value).getResultNumber() : cast<BlockArgument>(value).getArgNumber();
    std::string name = id ? id.getValue().str() : "constant." + std::to_string(converted[0].size());
    // A narrow argument of an operator and its result in f32 both take its name.
    op->setAttr(kIdAttr, builder.getStringAttr(name + (element == wide ? ".wide." : ".cast.") + Twine(number)));
    if (forward)
      op->setAttr(kForwardAttr, forward);
    return converted[isAgain][value] = op->getResult(0);
  }

  /// Converts values of @init there, once, where nothing reads them in f32.
  void lowerInitValues() {
    auto init = getInitFunction(module);
    Operation *end = init.front().getTerminator();
    for (OpOperand &result : end->getOpOperands()) {
      SmallVector<BlockArgument> arguments;
      for (func::FuncOp function : getReaders())
        for (BlockArgument argument : function.getArguments())
          if (auto index = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kInitValueAttr);
              index && index.getInt() == result.getOperandNumber())
            arguments.push_back(argument);
      auto isNarrowed = [&](Operation *user) { return isa<CastOp>(user) && getElement(user->getResult(0)) == narrow; };
      if (getElement(result.get()) != wide || !llvm::all_of(arguments, [&](BlockArgument argument) {
            return llvm::all_of(argument.getUsers(), isNarrowed);
          }))
        continue;
      OpBuilder builder(end);
      auto cast = CastOp::create(builder, end->getLoc(), withElement(result.get(), narrow), result.get());
      cast->setAttr(kIdAttr, builder.getStringAttr("init.cast." + Twine(result.getOperandNumber())));
      result.set(cast);
      for (BlockArgument argument : arguments) {
        argument.setType(cast.getType());
        for (Operation *user : llvm::make_early_inc_range(argument.getUsers())) {
          user->getResult(0).replaceAllUsesWith(argument);
          user->erase();
        }
      }
    }
  }

  ModuleOp module;
  FloatType narrow, wide;
  RouterPaths routerPaths;
  /// The state for one function: its operators whose results are gradients that stay in f32; the values that were
  /// converted for the forward and for the backward pass.
  llvm::DenseSet<Operation *> wideGradients;
  llvm::DenseMap<Value, Value> converted[2];
  /// The ids of sums in f32 of narrow values.
  llvm::DenseSet<Attribute> narrowSums;
  /// The operators that compute in f32, and their ids.
  llvm::DenseSet<Operation *> fullOps;
  llvm::DenseSet<Attribute> fullIds;
  /// The operators that another one replaces where they are read in the other type.
  SmallVector<std::pair<Operation *, Operation *>> replaced;
};

class LowerPrecisionPass : public impl::LowerPrecisionPassBase<LowerPrecisionPass> {
public:
  using LowerPrecisionPassBase::LowerPrecisionPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(&getContext());
    if (!llvm::is_contained({"f32", "tf32", "bf16", "f16"}, precision.getValue())) {
      module.emitError() << "there is no precision '" << precision.getValue() << "'; choose f32, tf32, bf16 or f16";
      return signalPassFailure();
    }
    for (StringRef name : {kInitFunction, kMicrobatchFunction, kEvaluateFunction})
      if (!module.lookupSymbol(name)) {
        module.emitError() << "has no @" << name << "; run train-differentiate before";
        return signalPassFailure();
      }
    NamedAttrList settings(module->getAttrOfType<DictionaryAttr>(kSettingsAttr));
    if (precision == "f16" && !settings.get(kScalesLossSetting)) {
      module.emitError() << "f16 cannot hold the gradients of a loss that is not scaled; run train-differentiate with "
                            "scales-loss";
      return signalPassFailure();
    }
    if (precision == "bf16" || precision == "f16")
      PrecisionLowering(module, precision == "bf16" ? FloatType(builder.getBF16Type()) : builder.getF16Type()).run();
    module.walk([](Operation *op) { op->removeDiscardableAttr(kFullPrecisionAttr); });
    settings.set("precision", builder.getStringAttr(precision));
    if (bf16Gradients)
      settings.set(kBf16GradientsSetting, builder.getUnitAttr());
    module->setAttr(kSettingsAttr, settings.getDictionary(&getContext()));
  }
};

} // namespace
} // namespace windlass::train
