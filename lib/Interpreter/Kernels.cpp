// The table of reference kernels and how a kernel asks for its attributes.
#include "KernelCall.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;

bool KernelCall::require(bool condition, const llvm::Twine &text) {
  if (!condition && error.empty())
    error = text.str();
  return condition;
}

int64_t KernelCall::integer(StringRef key, std::optional<int64_t> fallback) {
  Attribute attribute = attributes ? attributes.get(key) : Attribute();
  if (auto value = llvm::dyn_cast_or_null<IntegerAttr>(attribute))
    return value.getValue().getSExtValue();
  if (auto value = llvm::dyn_cast_or_null<train::ReductionKindAttr>(attribute))
    return static_cast<int64_t>(value.getValue());
  if (auto value = llvm::dyn_cast_or_null<train::PredicateAttr>(attribute))
    return static_cast<int64_t>(value.getValue());
  if (auto value = llvm::dyn_cast_or_null<train::ExpertActivationAttr>(attribute))
    return static_cast<int64_t>(value.getValue());
  if (!attribute && fallback)
    return *fallback;
  require(false, "needs the integer attribute '" + key + "'");
  return 0;
}

double KernelCall::number(StringRef key) {
  if (auto value = llvm::dyn_cast_or_null<FloatAttr>(attributes ? attributes.get(key) : Attribute()))
    return value.getValueAsDouble();
  require(false, "needs the float attribute '" + key + "'");
  return 0;
}

SmallVector<int64_t> KernelCall::integers(StringRef key) {
  if (auto value = llvm::dyn_cast_or_null<DenseI64ArrayAttr>(attributes ? attributes.get(key) : Attribute()))
    return SmallVector<int64_t>(value.asArrayRef());
  require(false, "needs the attribute '" + key + "', an array of i64");
  return {};
}

bool KernelCall::flag(StringRef key) const {
  Attribute attribute = attributes ? attributes.get(key) : Attribute();
  if (auto value = llvm::dyn_cast_or_null<BoolAttr>(attribute))
    return value.getValue();
  return static_cast<bool>(attribute);
}

ElementKind KernelCall::floats() {
  std::optional<ElementKind> kind;
  auto look = [&](const Tensor &tensor) {
    if (!isFloat(tensor.getKind()))
      return;
    require(!kind || *kind == tensor.getKind(), "mixes f32 and f64 operands");
    kind = tensor.getKind();
  };
  llvm::for_each(inputs, look);
  llvm::for_each(results, look);
  require(kind.has_value(), "needs float operands");
  return kind.value_or(ElementKind::f32);
}

bool KernelCall::requireCounts(size_t inputCount, size_t resultCount) {
  return require(inputs.size() == inputCount && results.size() == resultCount,
                 "takes " + Twine(inputCount) + " operands and " + Twine(resultCount) + " results but has " +
                     Twine(inputs.size()) + " and " + Twine(results.size()));
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(shape))
    text += (i ? ", " : "") + std::to_string(size);
  return text + "]";
}

bool KernelCall::requireShape(const Tensor &tensor, ArrayRef<int64_t> shape, StringRef what) {
  return require(tensor.getShape() == shape,
                 what + " has the shape " + shapeText(tensor.getShape()) + " but must have " + shapeText(shape));
}

static const KernelTable &kernels() {
  static const KernelTable table = [] {
    KernelTable table;
    addElementwiseKernels(table);
    addStructuralKernels(table);
    addContractionKernels(table);
    addReductionKernels(table);
    addIndexingKernels(table);
    addAttentionKernels(table);
    addConvolutionKernels(table);
    addExpertKernels(table);
    addRandomKernels(table);
    addLossKernels(table);
    addOptimizerKernels(table);
    return table;
  }();
  return table;
}

bool windlass::interpreter::hasKernel(StringRef opName) { return kernels().contains(opName); }

SmallVector<StringRef> windlass::interpreter::kernelNames() {
  SmallVector<StringRef> names(kernels().keys());
  llvm::sort(names);
  return names;
}

llvm::Expected<Tensor> windlass::interpreter::tensorOf(ElementsAttr value, RankedTensorType type, Precision precision) {
  auto fail = [](const Twine &text) { return llvm::createStringError(text); };
  std::optional<ElementKind> kind = kindOf(type.getElementType(), precision);
  if (!kind)
    return fail("the interpreter computes with f32, f64, bf16, f16, i64, i32 and i1 only");
  auto dense = llvm::dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return fail("a constant must hold its values itself");
  auto toDouble = [](APFloat number) {
    bool lossy;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    return number.convertToDouble();
  };
  Tensor result(*kind, type.getShape());
  if (!dense.isSplat() && dense.getNumElements() != result.getElements())
    return fail("a constant that is not a splat must be whole");
  if (llvm::isa<FloatType>(dense.getElementType())) {
    if (dense.isSplat())
      return Tensor::filled(*kind, type.getShape(), toDouble(dense.getSplatValue<APFloat>()));
    for (auto [i, number] : llvm::enumerate(dense.getValues<APFloat>()))
      result.set(i, toDouble(number));
    return result;
  }
  auto store = [&](int64_t i, const APInt &number) {
    dispatch(*kind, [&](auto zero) {
      using T = decltype(zero);
      // A true i1 is -1 as a signed number.
      result.mutableValues<T>()[i] =
          static_cast<T>(number.getBitWidth() == 1 ? !number.isZero() : number.getSExtValue());
    });
  };
  if (dense.isSplat()) {
    APInt number = dense.getSplatValue<APInt>();
    for (int64_t i = 0; i < result.getElements(); ++i)
      store(i, number);
    return result;
  }
  for (auto [i, number] : llvm::enumerate(dense.getValues<APInt>()))
    store(i, number);
  return result;
}

llvm::Expected<SmallVector<Tensor>> windlass::interpreter::evaluate(StringRef opName, DictionaryAttr attributes,
                                                                    ArrayRef<Tensor> inputs,
                                                                    ArrayRef<RankedTensorType> resultTypes,
                                                                    Precision precision) {
  auto fail = [&](const Twine &text) { return llvm::createStringError(opName + ": " + text); };
  // A constant is its attribute: the only operator whose kernel needs the result's element type.
  if (opName == "train.constant") {
    auto value = attributes ? attributes.getAs<ElementsAttr>("value") : ElementsAttr();
    if (!value || resultTypes.size() != 1)
      return fail("needs the attribute 'value' and one result");
    llvm::Expected<Tensor> tensor = tensorOf(value, resultTypes.front(), precision);
    if (!tensor)
      return tensor.takeError();
    roundTo(resultTypes.front().getElementType(), *tensor);
    return SmallVector<Tensor>{*tensor};
  }
  auto found = kernels().find(opName);
  if (found == kernels().end())
    return fail("has no reference kernel");
  SmallVector<Tensor> results;
  for (RankedTensorType type : resultTypes) {
    std::optional<ElementKind> kind = kindOf(type.getElementType(), precision);
    if (!kind)
      return fail("the interpreter computes with f32, f64, bf16, f16, i64, i32 and i1 only");
    results.emplace_back(*kind, type.getShape());
  }
  KernelCall call(opName, attributes, inputs, results);
  found->second(call);
  if (call.isBad())
    return fail(call.getError());
  for (auto [type, result] : llvm::zip_equal(resultTypes, results))
    roundTo(type.getElementType(), result);
  return results;
}
