#include "OperatorKeys.h"

#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Support/Flags.h"
#include "windlass/Support/FunctionAttributes.h"
#include "windlass/Support/InputFile.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

namespace windlass::plan {
#define GEN_PASS_DEF_APPLYPLANFILE
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace windlass::plan

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;
using llvm::Error;

/// Returns an error such as "now 4, in the plan 2" where a setting differs.
template <class T> static Error compare(StringRef name, const T &planned, const T &given) {
  if (planned == given)
    return Error::success();
  auto toText = [](const auto &value) {
    if constexpr (std::is_same_v<T, std::string>)
      return printable(value);
    else if constexpr (std::is_same_v<T, bool>)
      return std::string(value ? "true" : "false");
    else
      return std::to_string(value);
  };
  return makeError("the plan was made for " + name + " " + toText(planned) + ", but it is " + toText(given) +
                   " now: make the plan again, or give " + name + " as it was");
}

/// Names the first element that only one of two sorted lists has.
static Error compareNames(StringRef what, std::vector<std::string> planned, std::vector<std::string> given) {
  llvm::sort(planned);
  llvm::sort(given);
  std::vector<std::string> onlyPlanned, onlyGiven;
  std::set_difference(planned.begin(), planned.end(), given.begin(), given.end(), std::back_inserter(onlyPlanned));
  std::set_difference(given.begin(), given.end(), planned.begin(), planned.end(), std::back_inserter(onlyGiven));
  if (!onlyPlanned.empty())
    return makeError("the plan has " + printable(onlyPlanned.front()) + " among the " + what +
                     " parameters, which it is not now: make the plan again");
  if (!onlyGiven.empty())
    return makeError(printable(onlyGiven.front()) + " is now among the " + what +
                     " parameters, which it is not in the plan: make the plan again");
  return Error::success();
}

static Error compareScales(StringRef what, const std::map<std::string, double> &planned,
                           const std::map<std::string, double> &given) {
  auto scaleOf = [](const std::map<std::string, double> &scales, const std::string &name) {
    auto found = scales.find(name);
    return found == scales.end() ? 1 : found->second;
  };
  for (const auto *scales : {&planned, &given})
    for (const auto &[name, scale] : *scales)
      if (double then = scaleOf(planned, name), now = scaleOf(given, name); then != now)
        return makeError(
            llvm::formatv("the plan was made for {0} times the {1} for {2}, which has {3} times it now: make "
                          "the plan again",
                          llvm::json::Value(then), what, printable(name), llvm::json::Value(now)));
  return Error::success();
}

namespace {

class Applier {
public:
  Applier(ModuleOp module, const PlanFile &plan) : module(module), plan(plan), context(module.getContext()) {}

  Error apply() {
    SmallVector<AxisAttr> axes;
    for (const auto &[name, role, size] : plan.mesh)
      axes.push_back(AxisAttr::get(context, StringAttr::get(context, name), size, role));
    mesh = MeshAttr::get(context, axes);
    module->setAttr(kMeshAttr, mesh);
    module->setAttr(kBucketBytesAttr, IntegerAttr::get(IntegerType::get(context, 64), plan.bucketBytes));
    for (auto [name, bytes] : {std::pair(kPrefetchBytesAttr, plan.prefetchBytes), {kUnitBytesAttr, plan.unitBytes}})
      if (bytes > 0)
        module->setAttr(name, IntegerAttr::get(IntegerType::get(context, 64), bytes));
    if (plan.keepsGathers)
      module->setAttr(kKeepsGathersAttr, UnitAttr::get(context));
    if (plan.pipeline) {
      auto toAttrs = [&](const std::vector<std::string> &texts) {
        return llvm::map_to_vector(texts, [&](const std::string &text) { return StringAttr::get(context, text); });
      };
      module->setAttr(kPipelineAttr, PipelineAttr::get(context, plan.pipeline->positions,
                                                       StringAttr::get(context, plan.pipeline->schedule),
                                                       toAttrs(plan.pipeline->begins), toAttrs(plan.pipeline->orders)));
    }
    if (Error error = applyParameters())
      return error;
    std::set<std::string> known;
    for (func::FuncOp function : getPlannedFunctions(module)) {
      known.insert(function.getName().str());
      auto found = plan.functions.find(function.getName().str());
      if (found == plan.functions.end())
        return makeError("the plan has no function " + printable(function.getName()));
      if (Error error = applyFunction(function, found->second))
        return error;
    }
    for (const auto &[name, function] : plan.functions)
      if (!known.count(name))
        return makeError("the plan has a function " + printable(name) + ", which the program does not have");
    return applySegments();
  }

private:
  llvm::Expected<LayoutAttr> getLayout(const std::string &text, Type type, const std::string &place) {
    auto tensor = llvm::dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return makeError(place + " is no tensor");
    llvm::Expected<LayoutAttr> layout = parseLayout(text, tensor, mesh);
    if (!layout)
      return makeError(place + ": " + llvm::toString(layout.takeError()));
    return layout;
  }

  Error applyParameters() {
    std::set<std::string> known;
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      if (parameter.getRole() == train::Role::state)
        continue;
      std::string name = parameter.getLogicalName().str();
      known.insert(name);
      auto found = plan.parameters.find(name);
      if (found == plan.parameters.end())
        return makeError("parameter " + printable(name) + " is not in the plan");
      parameter->removeAttr(kGradientLayoutAttr);
      parameter->removeAttr(kStateMemoryAttr);
      parameter->removeAttr(kUpdatesOnDeviceAttr);
      if (found->second.updatesOnDevice)
        parameter->setAttr(kUpdatesOnDeviceAttr, UnitAttr::get(module.getContext()));
      parameter->removeAttr(kGradientMemoryAttr);
      parameter->removeAttr(kComputeMemoryAttr);
      struct Copy {
        StringRef attribute, memory, key;
        const std::string &text;
      };
      const Copy copies[] = {{kLayoutAttr, kComputeMemoryAttr, "compute", found->second.compute},
                             {kMasterLayoutAttr, kStateMemoryAttr, "master", found->second.master},
                             {kGradientLayoutAttr, kGradientMemoryAttr, "gradient", found->second.gradient}};
      for (const auto &[attribute, memory, key, text] : copies) {
        if (attribute == kGradientLayoutAttr && text.empty() != !parameter.getTrainable())
          return makeError("parameter " + printable(name) +
                           (text.empty() ? " trains, but the plan has no layout of its gradient"
                                         : " does not train, but the plan has a layout of its gradient"));
        if (text.empty() && attribute == kGradientLayoutAttr)
          continue;
        llvm::Expected<LayoutAttr> layout =
            getLayout(text, parameter.getTensorType(), "parameter " + printable(name) + " " + key.str());
        if (!layout)
          return layout.takeError();
        bool mayMove = parameter.getTrainable() || attribute == kLayoutAttr;
        MemoryKind kept = layout->getMemory();
        if (mayMove && (kept == MemoryKind::host || (kept == MemoryKind::disk && memory == kStateMemoryAttr))) {
          parameter->setAttr(memory, MemoryKindAttr::get(module.getContext(), kept));
          layout = layout->withMemory(MemoryKind::device);
        }
        parameter->setAttr(attribute, *layout);
      }
      masters[parameter.getSymNameAttr()] = parameter->getAttrOfType<LayoutAttr>(kMasterLayoutAttr);
      gradients[parameter.getSymNameAttr()] = parameter->getAttrOfType<LayoutAttr>(kGradientLayoutAttr);
    }
    for (auto state : module.getOps<train::ParameterOp>()) {
      if (state.getRole() != train::Role::state)
        continue;
      LayoutAttr master = state.getOfAttr() ? masters.lookup(state.getOfAttr().getAttr()) : LayoutAttr();
      if (!master)
        return makeError("parameter " + printable(state.getLogicalName()) + " is the state of no weight");
    }
    setStateLayouts(module);
    for (const auto &[name, parameter] : plan.parameters)
      if (!known.count(name))
        return makeError("the plan has a parameter " + printable(name) + ", which the model does not have");
    return Error::success();
  }

  Error applySegments() {
    std::vector<std::string> known;
    for (const SegmentBlock &block : getSegmentBlocks(module)) {
      known.push_back(block.name);
      auto row = plan.segments.find(block.name);
      if (row == plan.segments.end())
        return makeError("block " + printable(block.name) + " is not among the plan's segments");
      std::vector<std::string> labels = block.getLabels();
      if (!llvm::is_contained(labels, row->second))
        return makeError("block " + printable(block.name) + " is " + printable(row->second) +
                         " in the plan's segments, but can be " + llvm::join(labels, ", "));
      block.setLabel(row->second);
    }
    for (const auto &[name, label] : plan.segments)
      if (!llvm::is_contained(known, name)) {
        std::string nearest = nearestOf(name, known);
        return makeError("the plan's segments have block " + printable(name) + ", which the program does not have" +
                         (nearest.empty() ? "" : "; the nearest is " + printable(nearest)));
      }
    return Error::success();
  }

  Error applyFunction(func::FuncOp function, const PlannedFunction &rows) {
    std::string in = " of @" + function.getName().str();
    auto checkCount = [&](size_t have, size_t want, StringRef what) {
      return have == want
                 ? Error::success()
                 : makeError("the plan has " + Twine(have) + " layouts of " + what + in + ", which has " + Twine(want));
    };
    // A gradient has the layout in its weight's row; the file has the other arguments.
    SmallVector<Attribute> arguments(function.getNumArguments()), results;
    SmallVector<unsigned> others;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto weight = function.getArgAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr);
      if (!weight)
        others.push_back(i);
      else if (!(arguments[i] = gradients.lookup(weight.getAttr())))
        return makeError("argument " + Twine(i) + in + " is the gradient of no parameter that trains");
    }
    if (Error error = checkCount(rows.arguments.size(), others.size(), "arguments"))
      return error;
    if (Error error = checkCount(rows.results.size(), function.getNumResults(), "results"))
      return error;
    for (auto [i, text] : llvm::zip_equal(others, rows.arguments)) {
      auto layout = getLayout(text, function.getArgumentTypes()[i], "argument " + std::to_string(i) + in);
      if (!layout)
        return layout.takeError();
      arguments[i] = *layout;
    }
    for (auto [i, text] : llvm::enumerate(rows.results)) {
      auto layout = getLayout(text, function.getResultTypes()[i], "result " + std::to_string(i) + in);
      if (!layout)
        return layout.takeError();
      results.push_back(*layout);
    }
    setEachArgAttr(function, kLayoutAttr, arguments);
    setEachResultAttr(function, kLayoutAttr, results);

    std::set<std::string> whole;
    for (const std::string &id : rows.whole)
      if (!whole.insert(id).second || rows.operators.count(id))
        return makeError("the plan has operator " + printable(id) + in + " twice");
    std::vector<std::string> ids;
    OperatorKeys keys;
    for (Operation &op : function.front().without_terminator()) {
      ids.push_back(keys.get(op));
      auto row = rows.operators.find(ids.back());
      bool isWhole = whole.count(ids.back());
      if (row == rows.operators.end() && !isWhole)
        return makeError("operator " + printable(ids.back()) + in + " is not in the plan");
      if (Error error = applyOp(op, isWhole ? nullptr : &row->second, "operator " + printable(ids.back()) + in))
        return error;
    }
    std::set<std::string> known(ids.begin(), ids.end());
    std::vector<std::string> planned(rows.whole);
    for (const auto &[id, row] : rows.operators)
      planned.push_back(id);
    for (const std::string &id : planned)
      if (!known.count(id)) {
        std::string nearest = ids.size() <= 10000 ? nearestOf(id, ids) : std::string();
        return makeError("the plan has operator " + printable(id) + in + ", which the program does not have" +
                         (nearest.empty() ? "" : "; the nearest is " + printable(nearest)));
      }
    if (known.size() != ids.size())
      return makeError("the program has two operators with one id" + in);
    return Error::success();
  }

  Error applyOp(Operation &op, const PlannedOp *row, const std::string &place) {
    SmallVector<LayoutAttr> layouts;
    SmallVector<FactorAxesAttr> splits;
    if (row) {
      if (row->layouts.size() != op.getNumResults())
        return makeError(place + " has " + Twine(op.getNumResults()) + " results, but the plan has " +
                         Twine(row->layouts.size()) + " layouts");
      for (auto [text, result] : llvm::zip_equal(row->layouts, op.getResults())) {
        llvm::Expected<LayoutAttr> layout = getLayout(text, result.getType(), place);
        if (!layout)
          return layout.takeError();
        layouts.push_back(*layout);
      }
      if (Error error = getSplits(op, *row, place, splits))
        return error;
    } else {
      for (Value result : op.getResults())
        layouts.push_back(LayoutAttr::getWhole(llvm::cast<RankedTensorType>(result.getType())));
    }
    op.setAttr(kStrategyAttr, StrategyAttr::get(context, splits, -1));
    setLayouts(&op, layouts);
    return Error::success();
  }

  Error getSplits(Operation &op, const PlannedOp &row, const std::string &place,
                  SmallVectorImpl<FactorAxesAttr> &splits) {
    auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
    if (!row.splits.empty() && !compute)
      return makeError(place + " has no factors that could be split");
    if (row.splits.empty())
      return Error::success();
    auto read = readSplits(row.splits, compute.getFactors(), mesh);
    if (!read)
      return makeError(place + " " + llvm::toString(read.takeError()));
    splits = std::move(*read);
    return Error::success();
  }

  ModuleOp module;
  const PlanFile &plan;
  MLIRContext *context;
  MeshAttr mesh;
  /// Layouts of weights, by symbol.
  llvm::DenseMap<StringAttr, LayoutAttr> masters, gradients;
};

struct ApplyPlanFile : windlass::plan::impl::ApplyPlanFileBase<ApplyPlanFile> {
  using ApplyPlanFileBase::ApplyPlanFileBase;

  void runOnOperation() override {
    if (Error error = apply()) {
      getOperation().emitError() << llvm::toString(std::move(error));
      signalPassFailure();
    }
  }

  Error apply() {
    auto text = readInputFile(file, PlanFile::kMostBytes, "plan");
    if (!text)
      return text.takeError();
    llvm::Expected<PlanFile> plan = readPlanFile((*text)->getBuffer());
    return plan ? applyPlanFile(getOperation(), *plan) : plan.takeError();
  }
};

} // namespace

Error plan::checkPlanFits(const PlanFile &plan, const PlanSettings &settings, StringRef modelHash, ModuleOp module) {
  const PlanSettings &planned = plan.settings;
  for (const auto &[name, size] : settings.dims) {
    auto found = planned.dims.find(name);
    if (found == planned.dims.end())
      return makeError("dimension " + printable(name) + " is bound to " + Twine(size) +
                       " now, but is not in the plan: make the plan again");
    if (Error error = compare("dimension " + printable(name), found->second, size))
      return error;
  }
  for (const auto &[name, size] : planned.dims)
    if (!settings.dims.count(name))
      return makeError("the plan was made for dimension " + printable(name) + " bound to " + Twine(size) +
                       ", but it is not bound now: make the plan again, or bind it");
  if (Error error = compare("loss", planned.loss, settings.loss))
    return error;
  if (Error error = compare("optimizer", planned.optimizer, settings.optimizer))
    return error;
  if (Error error = compare("precision", planned.precision, settings.precision))
    return error;
  if (Error error = compare("micro-batches", planned.microBatches, settings.microBatches))
    return error;
  if (Error error = compare("merged micro-batches", planned.merge, settings.merge))
    return error;
  if (Error error = compare("average", planned.average, settings.average))
    return error;
  if (Error error = compare("clip", planned.clip, settings.clip))
    return error;
  if (Error error = compare("ema", planned.ema, settings.ema))
    return error;
  if (Error error = compare("bf16 gradients", planned.bf16Gradients, settings.bf16Gradients))
    return error;
  if (Error error = compareNames("trainable", planned.trainable, settings.trainable))
    return error;
  if (Error error = compareNames("no-decay", planned.noDecay, settings.noDecay))
    return error;
  if (Error error = compareScales("learning rate", planned.rateScales, settings.rateScales))
    return error;
  if (Error error = compareScales("weight decay", planned.decayScales, settings.decayScales))
    return error;
  if (plan.modelHash == modelHash)
    return Error::success();
  // Parameters and operators that do not fit say what has changed.
  Error difference = Applier(module, plan).apply();
  std::string what = difference ? llvm::toString(std::move(difference))
                                : "operators and shapes are the same, but constants or attributes are not";
  return makeError("the plan was made for another model (hash " + printable(plan.modelHash, 12) + ", this one has " +
                   printable(modelHash, 12) + "): " + what + ": make the plan again");
}

Error plan::applyPlanFile(ModuleOp module, const PlanFile &plan) {
  PlanSettings settings = getPlanSettings(module, plan.settings.dims, plan.settings.loss);
  if (settings.microBatches != plan.settings.microBatches)
    return compare("micro-batches", plan.settings.microBatches, settings.microBatches);
  if (settings.merge != plan.settings.merge)
    return compare("merged micro-batches", plan.settings.merge, settings.merge);
  return Applier(module, plan).apply();
}
