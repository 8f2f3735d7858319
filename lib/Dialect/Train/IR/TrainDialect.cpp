#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace windlass::train;

#include "windlass/Dialect/Train/IR/TrainDialect.cpp.inc"
#include "windlass/Dialect/Train/IR/TrainEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "windlass/Dialect/Train/IR/TrainAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "windlass/Dialect/Train/IR/TrainOps.cpp.inc"

void TrainDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "windlass/Dialect/Train/IR/TrainAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "windlass/Dialect/Train/IR/TrainOps.cpp.inc"
      >();
}

Operation *TrainDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = llvm::dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

llvm::StringRef windlass::train::getPrecision(mlir::ModuleOp module) {
  auto settings = module->getAttrOfType<mlir::DictionaryAttr>(kSettingsAttr);
  auto precision = settings ? settings.getAs<mlir::StringAttr>("precision") : mlir::StringAttr();
  return precision ? precision.getValue() : "f32";
}

static int64_t getSetting(mlir::ModuleOp module, llvm::StringRef name) {
  if (auto settings = module->getAttrOfType<mlir::DictionaryAttr>(windlass::train::kSettingsAttr))
    if (auto value = settings.getAs<mlir::IntegerAttr>(name))
      return value.getInt();
  return 1;
}

int64_t windlass::train::getMicroBatches(mlir::ModuleOp module) { return getSetting(module, "micro_batches"); }

int64_t windlass::train::getMerge(mlir::ModuleOp module) { return getSetting(module, kMergeSetting); }

bool windlass::train::sendsBf16Gradients(mlir::ModuleOp module) {
  auto settings = module->getAttrOfType<mlir::DictionaryAttr>(kSettingsAttr);
  return settings && settings.contains(kBf16GradientsSetting);
}

mlir::RankedTensorType windlass::train::getSentGradientType(ParameterOp parameter) {
  mlir::RankedTensorType type = parameter.getTensorType();
  if (parameter.isRunningStatistic() || !sendsBf16Gradients(parameter->getParentOfType<mlir::ModuleOp>()))
    return type;
  return type.clone(mlir::BFloat16Type::get(parameter.getContext()));
}

mlir::RankedTensorType windlass::train::getTypeOfOne(mlir::ModuleOp module, mlir::RankedTensorType input) {
  llvm::SmallVector<int64_t> shape(input.getShape());
  if (!shape.empty())
    shape[0] /= getMerge(module);
  return mlir::RankedTensorType::get(shape, input.getElementType());
}

int64_t windlass::train::getMergedMicroBatches(mlir::ModuleOp module) {
  return getMicroBatches(module) / getMerge(module);
}
