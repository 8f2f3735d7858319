#include "windlass/Dialect/Plan/Transforms/Pins.h"

#include "windlass/Dialect/Plan/IR/PlanText.h"
#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Glob.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/StringSwitch.h"

#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

class PinReader {
public:
  PinReader(ModuleOp module, MeshAttr mesh) : module(module), mesh(mesh) {
    for (func::FuncOp function : getPlannedFunctions(module))
      for (Operation &op : function.front())
        if (auto id = op.getAttrOfType<StringAttr>(train::kIdAttr)) {
          std::vector<Operation *> &ops = operators[id.str()];
          if (ops.empty())
            ids.push_back(id.str());
          ops.push_back(&op);
        }
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (parameter.getRole() != train::Role::state) {
        names.push_back(parameter.getLogicalName().str());
        parameters[names.back()] = parameter;
      }
  }

  LogicalResult read(const std::string &text) {
    pin = text;
    // Values have no "=" in them; names may.
    size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return fail("is not PATTERN=VALUE, such as '*.mlp.matmul.0=n0:model'");
    StringRef glob = StringRef(text).take_front(equals), value = StringRef(text).drop_front(equals + 1).trim();
    std::string copy = value.split(':').first.trim().str();
    if (copy == "compute" || copy == "gradient" || copy == "master")
      return forEach(glob, names, "parameter", [&](const std::string &name) {
        return pinCopy(parameters.at(name), copy, value.split(':').second.trim());
      });
    return forEach(glob, ids, "operator", [&](const std::string &id) -> LogicalResult {
      for (Operation *op : operators.at(id))
        if (failed(value.starts_with("[") ? pinLayouts(*op, value) : pinStrategy(*op, value)))
          return failure();
      return success();
    });
  }

  Pins pins;

private:
  InFlightDiagnostic fail(const Twine &what) {
    return emitError(module.getLoc(), Code::pin) << "pin " << printable(pin) << " " << what;
  }
  /// Reports an error at an operator or parameter that the pin matches.
  InFlightDiagnostic fail(Operation *op, const Twine &what) {
    return emitError(op->getLoc(), Code::pin) << "pin " << printable(pin) << ": " << what;
  }
  static std::string describe(Operation &op) {
    return "operator " + printable(op.getAttrOfType<StringAttr>(train::kIdAttr).getValue());
  }

  LogicalResult forEach(StringRef glob, ArrayRef<std::string> known, StringRef what,
                        llvm::function_ref<LogicalResult(const std::string &)> pinOne) {
    llvm::Expected<std::vector<std::string>> matches = matchNames(glob, known, what);
    if (!matches) {
      std::string message = llvm::toString(matches.takeError());
      // The likeliest mistake is a strategy for a parameter, or a layout for an operator.
      ArrayRef<std::string> others = what == "operator" ? names : ids;
      if (llvm::Expected<std::vector<std::string>> instead = matchNames(glob, others, ""); !instead)
        llvm::consumeError(instead.takeError());
      else if (what == "operator")
        message = printable(glob) + " is a parameter, of which compute:[..], gradient:[..] or master:[..] is pinned";
      else
        message = printable(glob) + " is an operator, of which splits or [..] are pinned";
      return fail("matches nothing: " + message);
    }
    for (const std::string &match : *matches)
      if (failed(pinOne(match)))
        return failure();
    return success();
  }

  /// Checks that an axis of replicas splits no value that each replica computes by itself.
  LogicalResult checkAxis(Operation &op, StringRef axis) {
    StringRef function = op.getParentOfType<func::FuncOp>().getName();
    if (mesh.roleOf(axis) == AxisRole::replica &&
        (function == train::kMicrobatchFunction || function == train::kEvaluateFunction))
      return fail(&op, describe(op) + " works on other micro-batches in each replica, so axis " + printable(axis) +
                           ", which carries the replicas, cannot split it");
    return success();
  }

  LogicalResult pinStrategy(Operation &op, StringRef value) {
    auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
    SplitWords words;
    if (value != "whole") {
      SmallVector<StringRef> terms;
      value.split(terms, ',');
      for (StringRef term : terms) {
        auto [factor, axes] = term.trim().split(':');
        std::vector<std::string> &row = words[factor.trim().str()];
        if (factor.trim().empty() || axes.trim().empty() || !row.empty())
          return fail("has " + printable(term.trim()) +
                      ", but splits are FACTOR:AXIS[+AXIS], each factor once, or 'whole'");
        SmallVector<StringRef> parts;
        if (auto [blocks, rest] = axes.split('*'); axes.contains('*')) {
          row.push_back((blocks.trim() + "*").str());
          axes = rest;
        }
        axes.split(parts, '+');
        for (StringRef axis : parts)
          row.push_back(axis.trim().str());
      }
    }
    if (!compute && !words.empty())
      return fail(&op, describe(op) + " has no factors that could be split");
    StrategyAttr strategy = getWholeStrategy(op.getContext());
    if (compute) {
      auto splits = readSplits(words, compute.getFactors(), mesh);
      if (!splits)
        return fail(&op, describe(op) + " " + llvm::toString(splits.takeError()));
      for (FactorAxesAttr split : *splits)
        for (StringAttr axis : split.getAxes())
          if (failed(checkAxis(op, axis.getValue())))
            return failure();
      strategy = StrategyAttr::get(op.getContext(), *splits, -1);
    }
    PinnedOp &row = pins.ops[&op];
    if (row.strategy && *row.strategy != strategy)
      return fail(&op, describe(op) + " is pinned otherwise by " + printable(row.strategyPin));
    row.strategy = strategy;
    row.strategyPin = pin;
    return success();
  }

  LogicalResult pinLayouts(Operation &op, StringRef value) {
    SmallVector<StringRef> texts;
    value.split(texts, ';');
    if (texts.size() > op.getNumResults())
      return fail(&op, describe(op) + " has " + Twine(op.getNumResults()) + " results, fewer than the layouts");
    PinnedOp &row = pins.ops[&op];
    row.layouts.resize(op.getNumResults());
    for (auto [i, text] : llvm::enumerate(texts)) {
      auto layout = parseLayout(text.trim(), llvm::cast<RankedTensorType>(op.getResult(i).getType()), mesh);
      if (!layout)
        return fail(&op, describe(op) + ": " + llvm::toString(layout.takeError()));
      if (!layout->getFlat().empty() && op.getParentOfType<func::FuncOp>().getName() != train::kUpdateFunction)
        return fail(&op, describe(op) + " makes a value that cannot be flat, as gradients and master copies can");
      for (AxisAttr axis : mesh.getAxes())
        if (usesAxis(*layout, axis.getName()) && !llvm::isa<train::ReadOp>(op) &&
            failed(checkAxis(op, axis.getName().getValue())))
          return failure();
      if (row.layouts[i] && row.layouts[i] != *layout)
        return fail(&op, describe(op) + " is pinned otherwise by " + printable(row.layoutPin));
      row.layouts[i] = *layout;
    }
    row.layoutPin = pin;
    return success();
  }

  LogicalResult pinCopy(train::ParameterOp parameter, const std::string &copy, StringRef text) {
    std::string what = "parameter " + printable(parameter.getLogicalName());
    auto layout = parseLayout(text, parameter.getTensorType(), mesh);
    if (!layout)
      return fail(parameter, what + ": " + llvm::toString(layout.takeError()));
    if (copy == "gradient" && !parameter.getTrainable())
      return fail(parameter, what + " does not train, so it has no gradient");
    if (copy == "compute" && !layout->getFlat().empty())
      return fail(parameter, what + " can be flat only as a gradient and a master copy");
    if (copy != "gradient" && !layout->getUnreduced().empty())
      return fail(parameter, what + " can be partial only as a gradient");
    auto [row, isNew] = pins.parameters[parameter.getSymNameAttr()].try_emplace(copy, std::make_pair(*layout, pin));
    if (!isNew && row->second.first != *layout)
      return fail(parameter, what + " is pinned otherwise by " + printable(row->second.second));
    return success();
  }

  ModuleOp module;
  MeshAttr mesh;
  std::string pin;
  std::vector<std::string> ids, names;
  std::map<std::string, std::vector<Operation *>> operators;
  std::map<std::string, train::ParameterOp> parameters;
};

} // namespace

FailureOr<Pins> plan::readPins(ModuleOp module, MeshAttr mesh, ArrayRef<std::string> texts) {
  if (texts.empty())
    return Pins();
  PinReader reader(module, mesh);
  for (const std::string &text : texts)
    if (failed(reader.read(text)))
      return failure();
  return std::move(reader.pins);
}

static LogicalResult verifyPins(ModuleOp module, const Pins &pins) {
  if (pins.empty())
    return success();
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  auto fail = [](Operation *op, StringRef pin, const Twine &what) -> LogicalResult {
    return emitError(op->getLoc(), Code::pin) << "pin " << printable(pin) << " " << what;
  };
  for (func::FuncOp function : getPlannedFunctions(module))
    for (Operation &op : function.front()) {
      auto found = pins.ops.find(&op);
      if (found == pins.ops.end())
        continue;
      const PinnedOp &pinned = found->second;
      auto id = printable(op.getAttrOfType<StringAttr>(train::kIdAttr).getValue());
      // Segments are chosen independently of pins, so only splits are compared.
      if (pinned.strategy && op.getAttrOfType<StrategyAttr>(kStrategyAttr).getSplits() != pinned.strategy->getSplits())
        return fail(&op, pinned.strategyPin, "fixes how " + id + " is split, but the plan splits it otherwise");
      for (auto [result, layout] : llvm::zip(op.getResults(), pinned.layouts))
        if (layout && !haveSameParts(getLayout(result), layout, mesh))
          return fail(&op, pinned.layoutPin,
                      "fixes the layout of result " + Twine(result.getResultNumber()) + " of " + id +
                          ", but in the plan it is " + toText(getLayout(result)));
    }
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    auto found = pins.parameters.find(parameter.getSymNameAttr());
    if (found == pins.parameters.end())
      continue;
    for (const auto &[copy, pinned] : found->second) {
      StringRef attribute = llvm::StringSwitch<StringRef>(copy)
                                .Case("compute", kLayoutAttr)
                                .Case("gradient", kGradientLayoutAttr)
                                .Default(kMasterLayoutAttr);
      auto layout = parameter->getAttrOfType<LayoutAttr>(attribute);
      if (!layout || !haveSameParts(layout, pinned.first, mesh))
        return fail(parameter, pinned.second,
                    "fixes the layout of the " + copy + " copy of " + printable(parameter.getLogicalName()) +
                        (layout ? ", but in the plan it is " + toText(layout) : ", but the plan has none"));
    }
  }
  return success();
}

std::vector<std::string> plan::sortPins(std::vector<std::string> texts) {
  llvm::sort(texts);
  texts.erase(llvm::unique(texts), texts.end());
  return texts;
}

LogicalResult plan::checkPins(ModuleOp module, ArrayRef<std::string> texts) {
  FailureOr<Pins> pins = readPins(module, module->getAttrOfType<MeshAttr>(kMeshAttr), texts);
  return failed(pins) ? failure() : verifyPins(module, *pins);
}
