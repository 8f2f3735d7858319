#include "windlass/Programs/ProgramOutline.h"

#include "windlass/Dialect/Train/IR/TrainConventions.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace windlass;

static rt::element_type elementTypeOf(Type type) {
  if (type.isF64())
    return rt::element_type::f64;
  if (type.isBF16())
    return rt::element_type::bf16;
  if (type.isF16())
    return rt::element_type::f16;
  if (type.isInteger(64))
    return rt::element_type::i64;
  if (type.isInteger(32))
    return rt::element_type::i32;
  if (type.isInteger(1))
    return rt::element_type::boolean;
  return rt::element_type::f32;
}

template <class T> static rt::span<T> spanOf(const std::vector<T> &items) {
  return {items.data(), static_cast<int64_t>(items.size())};
}

ProgramOutline::ProgramOutline(ModuleOp module, int64_t ranks) {
  addInputs(module);
  addParameters(module);
  addSettings(module, ranks);
}

rt::span<std::int64_t> ProgramOutline::sizesOf(RankedTensorType type) {
  return spanOf(sizes.emplace_back(type.getShape().begin(), type.getShape().end()));
}

void ProgramOutline::addInputs(ModuleOp module) {
  auto function = train::getMicrobatchFunction(module);
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto name = function.getArgAttrOfType<StringAttr>(index, train::kInputAttr);
    if (!name)
      continue;
    auto feed = function.getArgAttrOfType<StringAttr>(index, train::kFeedAttr);
    auto vocabulary = function.getArgAttrOfType<IntegerAttr>(index, train::kVocabularyAttr);
    auto type = train::getTypeOfOne(module, cast<RankedTensorType>(argument.getType()));
    inputs.push_back({keep(name.getValue()), elementTypeOf(type.getElementType()), sizesOf(type),
                      llvm::StringSwitch<rt::feed>(feed ? feed.getValue() : "")
                          .Case("tokens", rt::feed::tokens)
                          .Case("next", rt::feed::next)
                          .Case(train::kRandomFeed, rt::feed::random)
                          .Default(rt::feed::none),
                      vocabulary ? vocabulary.getInt() : 0});
  }
  job.inputs = spanOf(inputs);
}

void ProgramOutline::addParameters(ModuleOp module) {
  llvm::StringMap<int32_t> indices;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    if (parameter.getRole() == train::Role::state)
      continue;
    indices[parameter.getSymName()] = static_cast<int32_t>(parameters.size());
    train::SourceAttr source = parameter.getSource();
    rt::parameter_entry row = {};
    // The master copy, which files hold.
    row.name = keep(parameter.getLogicalName());
    row.type = elementTypeOf(parameter.getTensorType().getElementType());
    row.sizes = sizesOf(parameter.getTensorType());
    row.bytes = {source.getKind() == train::SourceKind::external ? rt::source_kind::external
                 : source.getKind() == train::SourceKind::packed ? rt::source_kind::packed
                                                                 : rt::source_kind::none,
                 keep(source.getFile()), source.getOffset(), source.getLength(),
                 elementTypeOf(source.getStored() ? source.getStored() : parameter.getTensorType().getElementType())};
    row.is_trainable = parameter.getTrainable();
    row.decays = parameter.getDecays();
    parameters.push_back(row);
    rt::parameter_placement placement = {};
    placement.parameter = indices[parameter.getSymName()];
    placement.type = row.type;
    placement.master = placement.at; // an outline's places are all the same
    placements.push_back(placement);
  }
  for (auto state : module.getOps<train::ParameterOp>())
    if (state.getRole() == train::Role::state && state.getOf()) {
      auto weight = module.lookupSymbol<train::ParameterOp>(*state.getOf());
      bool isLikeWeight = weight && weight.getTensorType() == state.getTensorType();
      states.push_back({indices.lookup(*state.getOf()),
                        keep(state.getLogicalName().rsplit('/').second),
                        {},
                        isLikeWeight ? rt::span<std::int64_t>() : sizesOf(state.getTensorType())});
    }
  job.parameters = spanOf(parameters);
  program.parameters = spanOf(placements);
  program.states = spanOf(states);
}

void ProgramOutline::addSettings(ModuleOp module, int64_t ranks) {
  auto settings = module->getAttrOfType<DictionaryAttr>(train::kSettingsAttr);
  auto optimizer = settings.getAs<StringAttr>("optimizer");
  auto clip = settings.getAs<BoolAttr>("clip");
  auto model = module->getAttrOfType<StringAttr>(train::kModelAttr);
  job.version = rt::job_version;
  job.model = keep(model ? model.getValue() : "");
  job.plan_hash = "";
  job.micro_batches = static_cast<int32_t>(train::getMicroBatches(module));
  job.merge = static_cast<int32_t>(train::getMerge(module));
  job.kind = llvm::StringSwitch<rt::optimizer>(optimizer.getValue())
                 .Case("adamw", rt::optimizer::adamw)
                 .Case("adafactor", rt::optimizer::adafactor)
                 .Case("adam", rt::optimizer::adam)
                 .Case("lamb", rt::optimizer::lamb)
                 .Case("lion", rt::optimizer::lion)
                 .Case("muon", rt::optimizer::muon)
                 .Default(rt::optimizer::sgd);
  job.clips = clip && clip.getValue();
  if (settings.get("ema"))
    scalars.push_back({rt::scalar::ema_rate, {}});
  job.precision = keep(train::getPrecision(module));
  axes.push_back({"ranks", static_cast<int32_t>(ranks)});
  position = {spanOf(axes), 0, static_cast<int32_t>(ranks), &program};
  job.positions = {&position, 1};
  if (settings.get(train::kScalesLossSetting))
    scalars.push_back({rt::scalar::loss_scale, {}});
  program.scalars = spanOf(scalars);
  // Every program can evaluate.
  static const rt::action evaluation = [] {
    rt::action action;
    action.kind = rt::action_kind::evaluate;
    return action;
  }();
  program.evaluation = {&evaluation, 1};
}
