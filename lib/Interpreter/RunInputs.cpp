#include "RunInputs.h"

#include "Random.h"
#include "windlass/Support/Printable.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;
using windlass::printable;

RunInputs::RunInputs(ModuleOp module, const RunOptions &options)
    : options(options), merge(train::getMerge(module)),
      microBatches(
          std::max<int64_t>(1, (options.microBatches ? options.microBatches : train::getMicroBatches(module)) / merge)),
      module(module), countedLabels(module->getAttrOfType<train::CountedLabelsAttr>(train::kCountedLabelsAttr)) {}

static llvm::Expected<ElementKind> kindOfType(RankedTensorType type, Precision precision) {
  if (std::optional<ElementKind> kind = kindOf(type.getElementType(), precision))
    return *kind;
  return llvm::createStringError("the interpreter computes with f32, f64, bf16, f16, i64, i32 and i1 only");
}

llvm::Expected<Tensor> RunInputs::find(const TensorMap &map, const std::string &key, RankedTensorType type) const {
  auto found = map.find(key);
  if (found == map.end())
    return llvm::createStringError("no tensor " + printable(key) + " is given");
  if (found->second.getShape() != type.getShape())
    return llvm::createStringError("the tensor " + printable(key) +
                                   " that is given has another shape than the program's");
  llvm::Expected<ElementKind> kind = kindOfType(type, options.precision);
  if (!kind)
    return kind.takeError();
  return found->second.cast(*kind);
}

llvm::Expected<Tensor> RunInputs::parameter(StringRef name, RankedTensorType type, train::Role role) const {
  llvm::Expected<ElementKind> kind = kindOfType(type, options.precision);
  if (!kind)
    return kind.takeError();
  if (role == train::Role::state)
    return Tensor(*kind, type.getShape());
  if (options.initial)
    return find(*options.initial, name.str(), type);
  if (!isFloat(*kind))
    return llvm::createStringError(printable(name) + " holds no floats: its values must be given");
  // Vectors are moved off 0 and 1, so that each biases or scales by its own values.
  bool isVector = type.getRank() <= 1;
  double mean = isVector && !name.ends_with("bias") ? 1 : 0;
  return randomNormal(*kind, type.getShape(), mean, isVector ? 0.1 : 0.05, options.seed, name);
}

llvm::Expected<Tensor> RunInputs::parameterBefore(StringRef name, RankedTensorType type, int64_t step) const {
  return find(*options.trajectory, ("before." + Twine(step) + "." + name).str(), type);
}

llvm::Expected<Tensor> RunInputs::input(StringRef name, RankedTensorType type, DictionaryAttr attributes,
                                        int64_t k) const {
  if (merge == 1)
    return inputOfOne(name, type, attributes, k);
  Tensor all;
  for (int64_t part = 0; part < merge; ++part) {
    llvm::Expected<Tensor> one = inputOfOne(name, train::getTypeOfOne(module, type), attributes, k * merge + part);
    if (!one)
      return one.takeError();
    if (part == 0)
      all = Tensor(one->getKind(), type.getShape());
    // Keys are integers that no double holds.
    std::memcpy(all.mutableData() + part * one->getBytes(), one->data(), one->getBytes());
  }
  return all;
}

void RunInputs::addEvaluation(int64_t k, const Tensor &losses, RunResult &result) const {
  for (int64_t part = 0; part < merge; ++part) {
    Tensor loss(losses.getKind(), {});
    loss.set(0, losses.at(part));
    result.tensors["evaluate." + std::to_string(k * merge + part)] = std::move(loss);
  }
}

llvm::Expected<Tensor> RunInputs::inputOfOne(StringRef name, RankedTensorType type, DictionaryAttr attributes,
                                             int64_t k) const {
  auto feed = attributes ? attributes.getAs<StringAttr>(train::kFeedAttr) : StringAttr();
  if (feed && feed.getValue() == train::kRandomFeed) {
    if (type.getRank() != 2 || !type.getElementType().isInteger(64))
      return llvm::createStringError("keys of dropout must be i64 of [samples, masks]");
    return dropoutKeys(type.getShape(), options.seed, k);
  }
  std::string key = (name + "." + Twine(k)).str();
  if (options.batches)
    return find(*options.batches, key, type);
  llvm::Expected<ElementKind> kind = kindOfType(type, options.precision);
  if (!kind)
    return kind.takeError();
  if (isFloat(*kind))
    return randomNormal(*kind, type.getShape(), 0, 1, options.seed, key);
  auto bound = attributes ? attributes.getAs<IntegerAttr>(train::kVocabularyAttr) : IntegerAttr();
  if (!bound || bound.getInt() <= 0)
    return llvm::createStringError("the bound of the ids of " + printable(name) +
                                   " is unknown: micro-batches must be given");
  return randomIntegers(*kind, type.getShape(), bound.getInt(), options.seed, key);
}

LossScaling::LossScaling(ModuleOp module, const RunOptions &options)
    : settings(options.lossScale), scale(rt::loss_scale::start(settings)) {
  auto known = module->getAttrOfType<DictionaryAttr>(train::kSettingsAttr);
  on = known && known.contains(train::kScalesLossSetting);
}

Tensor LossScaling::unscale(Tensor gradient) const {
  if (on)
    for (int64_t i = 0; i < gradient.getElements(); ++i)
      gradient.set(i, gradient.at(i) / scale.value);
  return gradient;
}

LogicalResult LossScaling::finishStep(Location loc, int64_t step, double norm) {
  if (!on)
    return success();
  bool isFinite = std::isfinite(norm);
  skipped += !isFinite;
  if (scale.advance(isFinite, settings))
    return success();
  return emitError(loc, "cannot be executed: the gradient of step ")
         << step << " is not finite, and the loss scale is 2^" << std::ilogb(scale.value)
         << " and may not fall below 2^" << std::ilogb(settings.floor);
}

llvm::Expected<int64_t> RunInputs::labelCount(int64_t k) const {
  int64_t count = 0;
  for (int64_t part = 0; part < merge; ++part) {
    llvm::Expected<int64_t> labels = labelsOfOne(k * merge + part);
    if (!labels)
      return labels.takeError();
    count += *labels;
  }
  return count;
}

llvm::Expected<int64_t> RunInputs::labelsOfOne(int64_t k) const {
  RankedTensorType type = countedLabels.getType();
  Builder builder(type.getContext());
  NamedAttribute vocabulary =
      builder.getNamedAttr(train::kVocabularyAttr, builder.getI64IntegerAttr(countedLabels.getVocabulary()));
  llvm::Expected<Tensor> labels = inputOfOne(countedLabels.getInput(), type, builder.getDictionaryAttr(vocabulary), k);
  if (!labels)
    return labels.takeError();
  int64_t count = 0;
  for (int64_t i = 0; i < labels->getElements(); ++i) {
    bool isInBox = true;
    int64_t rest = i;
    for (int64_t dim = type.getRank() - 1; dim >= 0; rest /= type.getDimSize(dim), --dim) {
      int64_t at = rest % type.getDimSize(dim) - countedLabels.getStarts()[dim];
      isInBox &= at >= 0 && at < countedLabels.getSizes()[dim];
    }
    count += isInBox && labels->at(i) != static_cast<double>(countedLabels.getIgnoreIndex());
  }
  return count;
}

llvm::Expected<double> RunInputs::hyperparameter(train::Hyperparameter which, int64_t step,
                                                 const LossScaling &scaling) const {
  const int64_t updates = step + 1 - scaling.getSkippedUpdates();
  switch (which) {
  case train::Hyperparameter::learning_rate:
    return options.learningRate;
  case train::Hyperparameter::one_minus_beta1:
    return 1 - options.beta1;
  case train::Hyperparameter::one_minus_beta2:
    return 1 - options.beta2;
  case train::Hyperparameter::epsilon:
    return options.epsilon;
  case train::Hyperparameter::weight_decay:
    return options.weightDecay;
  case train::Hyperparameter::momentum:
    return options.momentum;
  case train::Hyperparameter::clip_norm:
    return options.clipNorm;
  case train::Hyperparameter::bias_correction1:
    return 1 - std::pow(options.beta1, updates);
  case train::Hyperparameter::bias_correction2:
    return 1 - std::pow(options.beta2, updates);
  case train::Hyperparameter::loss_scale:
    return scaling.getScale();
  case train::Hyperparameter::inverse_loss_scale:
    return 1 / scaling.getScale();
  case train::Hyperparameter::inverse_sqrt_step:
    return 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, updates)));
  case train::Hyperparameter::second_moment_rate:
    return std::pow(static_cast<double>(std::max<int64_t>(1, updates)), -0.8); // as Adafactor's authors chose
  case train::Hyperparameter::ema_rate:
    return updates <= 1 ? 1 : 1 - options.emaDecay;
  case train::Hyperparameter::inverse_label_count: {
    if (!averagesTokens())
      return llvm::createStringError("the module does not say which labels count");
    int64_t count = 0;
    for (int64_t k = step * microBatches; k < (step + 1) * microBatches; ++k) {
      llvm::Expected<int64_t> labels = labelCount(k);
      if (!labels)
        return labels.takeError();
      count += *labels;
    }
    return 1 / static_cast<double>(count);
  }
  }
  return 0;
}
