//===- CheckModel.cpp - what a model file holds and what trains -----------===//

#include "windlass/Frontend/Check/CheckModel.h"

#include "windlass/Conversion/OnnxToTrain/MissedAttention.h"
#include "windlass/Conversion/OnnxToTrain/MissedExperts.h"
#include "windlass/Dialect/Onnx/Transforms/Passes.h"
#include "windlass/Dialect/Train/IR/TrainConventions.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Glob.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Words.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

#include <map>

using namespace mlir;
using namespace windlass;

/// Freezes the parameters that `options.freeze` matches. One that `--train` matches too is an error.
static LogicalResult freeze(ModuleOp module, const CheckOptions &options) {
  if (options.freeze.empty())
    return success();
  std::vector<std::string> names;
  for (auto parameter : module.getOps<train::ParameterOp>())
    names.push_back(parameter.getLogicalName().str());
  std::map<std::string, std::string> trained;
  auto forEachMatch = [&](llvm::ArrayRef<std::string> patterns, auto visit) {
    for (const std::string &pattern : patterns) {
      llvm::Expected<std::vector<std::string>> matches = matchNames(pattern, names, "parameter");
      // A name that no parameter bears has been or will be reported.
      if (!matches)
        llvm::consumeError(matches.takeError());
      else
        for (const std::string &name : *matches)
          visit(pattern, name);
    }
  };
  forEachMatch(options.import.train,
               [&](const std::string &pattern, const std::string &name) { trained[name] = pattern; });
  std::string contradiction;
  forEachMatch(options.freeze, [&](const std::string &pattern, const std::string &name) {
    if (auto found = trained.find(name); found != trained.end() && contradiction.empty())
      contradiction = "--train " + printable(found->second) + " and --freeze " + printable(pattern) + " both match " +
                      printable(name) + "; leave one of them out";
  });
  if (!contradiction.empty())
    return emitError(module.getLoc(), Code::contradiction) << contradiction;
  train::FreezeParametersPassOptions patterns;
  for (const std::string &pattern : options.freeze)
    patterns.patterns.push_back(pattern);
  PassManager manager(module.getContext());
  manager.addPass(train::createFreezeParametersPass(patterns));
  CodeScope scope(module.getContext(), Code::pattern);
  return manager.run(module);
}

LogicalResult windlass::importTrainModel(llvm::StringRef path, MLIRContext &context, const CheckOptions &options,
                                         TrainModel &model) {
  FailureOr<ImportedModel> imported = importOnnx(path, context, options.import);
  if (failed(imported))
    return failure();
  model.module = std::move(imported->module);
  model.weights = std::move(imported->weights);
  PassManager verify(&context);
  verify.addPass(onnx::createOnnxVerifyGraph());
  if (failed(verify.run(*model.module)))
    return failure();
  CodeScope scope(&context, Code::operator_misused);
  if (failed(convertOnnxToTrain(*model.module, model.weights.get(), options.convert, model.report)))
    return failure();
  if (failed(freeze(*model.module, options)))
    return failure();
  if (options.strict && !model.report.warnings.empty())
    return emitError(model.module->getLoc(), Code::doubtful) << model.report.warnings.front();
  PassManager manager(&context);
  buildTrainImportPipeline(manager, options.recognize);
  manager.addPass(train::createVerifyGraphPass());
  CodeScope internal(&context, Code::internal);
  return manager.run(*model.module);
}

/// Writes 134912 as "134,912".
static std::string groupDigits(int64_t number) {
  std::string text = std::to_string(number);
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

static std::string countText(int64_t count, llvm::StringRef noun) {
  return groupDigits(count) + " " + noun.str() + (count == 1 ? "" : "s");
}

std::string windlass::describeTraining(ModuleOp module) {
  int64_t trained = 0, elements = 0, frozen = 0, buffers = 0, statistics = 0;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    if (parameter.isRunningStatistic()) {
      ++statistics;
    } else if (parameter.getTrainable()) {
      ++trained;
      elements += parameter.getTensorType().getNumElements();
    } else {
      ++(parameter.getRole() == train::Role::weight ? frozen : buffers);
    }
  }
  return countText(trained, "parameter") + " with " + countText(elements, "element") +
         (trained == 1 ? " trains, " : " train, ") + groupDigits(frozen) + (frozen == 1 ? " is" : " are") +
         " frozen, " + countText(buffers, "buffer") +
         (statistics > 0 ? ", " + countText(statistics, "running statistic") : "");
}

namespace {

struct ParameterRow {
  std::string name, shape, type, role, source, reason;
  int64_t elements = 0;
  bool trains = false, decays = false;
};

struct InputRow {
  std::string name, shape, type, feed;
  int64_t vocabulary = 0;
  /// Whether the input is fed with the same tokens as another one; the graph itself moves them by one.
  bool isShifted = false;
};

/// Operators that were not recognized as a part of something, by id, each with the reason.
using MissedOps = std::vector<std::pair<std::string, std::string>>;

/// The facts that are printed, gathered from L1.
struct Summary {
  std::vector<ParameterRow> parameters;
  std::vector<InputRow> inputs;
  std::map<std::string, int64_t> operators;
  /// The softmaxes between products that are no attention.
  MissedOps missedAttentions;
  /// The gathers of matrices whose products are no experts.
  MissedOps missedExperts;
  int64_t attentions = 0, expertLayers = 0, norms = 0, activations = 0;
  std::vector<std::pair<std::string, std::string>> ids;
  /// The ids of operators between a trained parameter and the loss that have no gradient.
  std::vector<std::string> missingGradients;
  std::string lossKind;
};

std::string describeShape(RankedTensorType type) {
  std::string text;
  for (int64_t dim : type.getShape())
    text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text.empty() ? "scalar" : text;
}

std::string describeType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string describeFeed(llvm::StringRef feed) {
  if (feed == "tokens")
    return "tokens of the data file";
  if (feed == "next")
    return "the tokens that follow";
  return "samples or explicit batches";
}

bool isFloatValue(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

void findMissingGradients(ModuleOp module, func::FuncOp function, Summary &summary) {
  llvm::DenseSet<Value> active;
  llvm::DenseSet<Operation *> leadsToLoss;
  SymbolTable symbols(module);
  Block &block = function.getBody().front();
  for (Operation &op : llvm::reverse(block)) {
    bool leads = op.hasTrait<OpTrait::IsTerminator>();
    for (Operation *user : op.getUsers())
      leads |= leadsToLoss.contains(user);
    if (leads)
      leadsToLoss.insert(&op);
  }
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (auto read = dyn_cast<train::ReadOp>(op)) {
      auto parameter = symbols.lookup<train::ParameterOp>(read.getParameter());
      if (parameter && parameter.getTrainable())
        active.insert(read.getResult());
      continue;
    }
    if (llvm::none_of(op.getOperands(), [&](Value operand) { return active.contains(operand); }))
      continue;
    bool isStopped = !isa<train::DifferentiableOpInterface>(op);
    bool givesFloat = llvm::any_of(op.getResults(), isFloatValue);
    if (isStopped && givesFloat && leadsToLoss.contains(&op))
      summary.missingGradients.push_back(op.getAttrOfType<StringAttr>(train::kIdAttr).str());
    if (!isStopped)
      for (Value result : op.getResults())
        if (isFloatValue(result))
          active.insert(result);
  }
}

Summary summarize(ModuleOp module) {
  Summary summary;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    ParameterRow row;
    auto type = parameter.getTensorType();
    row.name = parameter.getLogicalName().str();
    row.shape = describeShape(type);
    row.type = describeType(type.getElementType());
    row.role = parameter.isRunningStatistic() ? "running statistic" : train::stringifyRole(parameter.getRole()).str();
    row.source = parameter.getSource().getKind() == train::SourceKind::external
                     ? parameter.getSource().getFile().str()
                     : train::stringifySourceKind(parameter.getSource().getKind()).str();
    row.reason = parameter.getReason().value_or("").str();
    row.elements = type.getNumElements();
    row.trains = parameter.isOptimized();
    row.decays = parameter.getDecays();
    summary.parameters.push_back(row);
  }
  auto function = train::getLossFunction(module);
  for (BlockArgument argument : function.getArguments()) {
    InputRow row;
    unsigned index = argument.getArgNumber();
    auto type = cast<RankedTensorType>(argument.getType());
    row.feed = function.getArgAttrOfType<StringAttr>(index, train::kFeedAttr).str();
    if (row.feed == train::kRandomFeed)
      continue;
    row.name = function.getArgAttrOfType<StringAttr>(index, train::kInputAttr).str();
    row.shape = describeShape(type);
    row.type = describeType(type.getElementType());
    if (auto bound = function.getArgAttrOfType<IntegerAttr>(index, train::kVocabularyAttr))
      row.vocabulary = bound.getInt();
    row.isShifted = row.feed == "tokens" && llvm::none_of(argument.getUsers(), llvm::IsaPred<train::EmbeddingOp>);
    summary.inputs.push_back(row);
  }
  function.walk([&](Operation *op) {
    auto id = op->getAttrOfType<StringAttr>(train::kIdAttr);
    if (!id)
      return;
    std::string kind = op->getName().stripDialect().str();
    ++summary.operators[kind];
    summary.attentions += isa<train::AttentionOp>(op);
    if (auto softmax = dyn_cast<train::SoftmaxOp>(op))
      if (std::string why = explainMissedAttention(softmax); !why.empty())
        summary.missedAttentions.emplace_back(id.str(), std::move(why));
    summary.expertLayers += isa<train::ExpertsOp>(op);
    if (auto gather = dyn_cast<train::GatherOp>(op))
      if (std::string why = explainMissedExperts(gather); !why.empty())
        summary.missedExperts.emplace_back(id.str(), std::move(why));
    summary.norms += isa<train::LayerNormOp, train::RmsNormOp>(op);
#define WINDLASS_ACTIVATION(Class, ...) summary.activations += isa<train::Class##Op>(op);
#include "windlass/Dialect/Train/IR/RealFunctions.def"
    summary.ids.emplace_back(id.str(), kind);
  });
  Value loss = function.getBody().front().getTerminator()->getOperand(0);
  if (auto op = loss.getDefiningOp<train::LossOp>())
    if (auto entropy = op.getSum().getDefiningOp<train::SoftmaxCrossEntropyOp>()) {
      summary.lossKind = "mean softmax cross entropy";
      if (static_cast<int64_t>(entropy.getIgnoreIndex()) != std::numeric_limits<int64_t>::min())
        summary.lossKind +=
            ", labels of " + std::to_string(static_cast<int64_t>(entropy.getIgnoreIndex())) + " ignored";
    }
  findMissingGradients(module, function, summary);
  return summary;
}

void printUnsupported(const OnnxToTrainReport &report, llvm::raw_ostream &out) {
  out << "not supported\n";
  for (const UnsupportedOp &op : report.unsupported) {
    out << "  " << printable(op.name).substr(1, printable(op.name).size() - 2) << ": " << countOf(op.count, "node")
        << (op.count == 1 ? ", at " : ", the first at ") << printable(op.first);
    if (!op.reason.empty())
      out << ", " << op.reason;
    out << "\n";
  }
}

/// Prints each reason once, with the number of operators that it holds for and the first of them.
void printMissed(llvm::StringRef what, const MissedOps &missed, llvm::function_ref<std::string(int64_t)> count,
                 llvm::raw_ostream &out) {
  llvm::MapVector<llvm::StringRef, std::pair<llvm::StringRef, int64_t>> reasons;
  for (const auto &[id, why] : missed)
    ++reasons.insert({why, {id, 0}}).first->second.second;
  for (const auto &[why, found] : reasons)
    out << "  " << what << ": " << count(found.second) << ", the first " << printable(found.first) << ": " << why
        << "\n";
}

void printText(const TrainModel &model, const Summary &summary, bool verbose, llvm::raw_ostream &out) {
  if (std::string altered = model.report.describeAlterations(); !altered.empty())
    out << "another model than was exported: " << altered << "\n";
  out << describeTraining(*model.module) << "\n";
  if (!model.report.guesses.empty()) {
    out << "guesses\n";
    for (const ParameterGuess &guess : model.report.guesses)
      out << "  " << printable(guess.name) << (guess.trains ? " trains: " : " does not train: ") << guess.reason
          << "\n";
  }
  if (!model.report.warnings.empty()) {
    out << "warnings\n";
    for (const std::string &warning : model.report.warnings)
      out << "  " << warning << "\n";
  }
  if (verbose)
    out << "parameters\n";
  for (const ParameterRow &row : summary.parameters) {
    if (!verbose)
      break;
    out << "  " << printable(row.name) << " " << row.shape << " " << row.type << ", " << row.role
        << (row.trains ? row.decays ? ", trains and decays" : ", trains" : ", does not train") << ", from "
        << printable(row.source) << (row.reason.empty() ? "" : ": ") << row.reason << "\n";
  }
  out << "inputs\n";
  for (const InputRow &row : summary.inputs) {
    out << "  " << printable(row.name) << " " << row.shape << " " << row.type << ", fed from " << describeFeed(row.feed)
        << (row.isShifted ? ", which the graph shifts" : "");
    if (row.vocabulary > 0)
      out << ", values below " << row.vocabulary;
    out << "\n";
  }
  out << "loss\n  " << printable(model.report.loss) << (summary.lossKind.empty() ? "" : ": ") << summary.lossKind
      << "\nlayers\n  attentions: " << summary.attentions << "\n";
  printMissed(
      "no attention", summary.missedAttentions,
      [](int64_t count) { return countOf(count, "softmax", "softmaxes") + " between products"; }, out);
  out << "  layers of experts: " << summary.expertLayers << "\n";
  printMissed(
      "no experts", summary.missedExperts,
      [](int64_t count) { return countOf(count, "product") + " by gathered matrices"; }, out);
  out << "  norms: " << summary.norms << "\n  activations: " << summary.activations << "\noperators\n";
  for (const auto &[kind, count] : summary.operators)
    out << "  " << kind << ": " << count << "\n";
  if (!summary.missingGradients.empty()) {
    out << "no gradient\n";
    for (const std::string &id : summary.missingGradients)
      out << "  " << printable(id) << "\n";
  }
  if (verbose) {
    out << "ids\n";
    for (const auto &[id, kind] : summary.ids)
      out << "  " << printable(id) << " " << kind << "\n";
  }
}

/// Converts text to UTF-8, which JSON strings must be; names of a model may be anything.
std::string toUtf8(llvm::StringRef text) { return llvm::json::fixUTF8(text); }

/// Writes what the import found about the model, whether it has become one that can be trained or not.
void writeReport(llvm::json::OStream &json, const OnnxToTrainReport &report) {
  json.attributeArray("unsupported", [&] {
    for (const UnsupportedOp &op : report.unsupported)
      json.object([&] {
        json.attribute("operator", toUtf8(op.name));
        json.attribute("reason", toUtf8(op.reason));
        json.attribute("count", op.count);
        json.attribute("first", toUtf8(op.first));
      });
  });
  json.attributeArray("alterations", [&] {
    for (const Alteration &alteration : report.alterations)
      json.object([&] {
        json.attribute("parameter", toUtf8(alteration.target));
        json.attribute("description", toUtf8(describeAlteration(alteration)));
      });
  });
  for (auto [name, lines] : {std::pair("contradictions", &report.contradictions), {"warnings", &report.warnings}})
    json.attributeArray(name, [&, lines = lines] {
      for (const std::string &line : *lines)
        json.value(toUtf8(line));
    });
  json.attributeArray("guesses", [&] {
    for (const ParameterGuess &guess : report.guesses)
      json.object([&] {
        json.attribute("name", toUtf8(guess.name));
        json.attribute("trains", guess.trains);
        json.attribute("reason", toUtf8(guess.reason));
      });
  });
}

/// Writes the parameters and inputs of a model that can be trained, a row each.
void writeTensors(llvm::json::OStream &json, const Summary &summary) {
  json.attributeArray("parameters", [&] {
    for (const ParameterRow &row : summary.parameters)
      json.object([&] {
        json.attribute("name", toUtf8(row.name));
        json.attribute("shape", row.shape);
        json.attribute("type", row.type);
        json.attribute("role", row.role);
        json.attribute("trains", row.trains);
        json.attribute("decays", row.decays);
        json.attribute("source", toUtf8(row.source));
      });
  });
  json.attributeArray("inputs", [&] {
    for (const InputRow &row : summary.inputs)
      json.object([&] {
        json.attribute("name", toUtf8(row.name));
        json.attribute("shape", row.shape);
        json.attribute("type", row.type);
        json.attribute("feed", row.feed);
        if (row.vocabulary > 0)
          json.attribute("below", row.vocabulary);
      });
  });
}

/// Writes the counts of layers and operators, and, where `verbose`, the id of each operator.
void writeOperators(llvm::json::OStream &json, const Summary &summary, bool verbose) {
  json.attributeObject("layers", [&] {
    json.attribute("attentions", summary.attentions);
    auto writeMissed = [&](llvm::StringRef name, const MissedOps &list) {
      json.attributeArray(name, [&] {
        for (const auto &missed : list)
          json.object([&] {
            json.attribute("id", toUtf8(missed.first));
            json.attribute("reason", missed.second);
          });
      });
    };
    writeMissed("missed_attentions", summary.missedAttentions);
    json.attribute("expert_layers", summary.expertLayers);
    writeMissed("missed_experts", summary.missedExperts);
    json.attribute("norms", summary.norms);
    json.attribute("activations", summary.activations);
  });
  json.attributeObject("operators", [&] {
    for (const auto &[kind, count] : summary.operators)
      json.attribute(kind, count);
  });
  json.attributeArray("missing_gradients", [&] {
    for (const std::string &id : summary.missingGradients)
      json.value(toUtf8(id));
  });
  if (verbose)
    json.attributeArray("ids", [&] {
      for (const auto &[id, kind] : summary.ids)
        json.value(toUtf8(id));
    });
}

/// Prints the report; `summary` is null where the model cannot be trained.
void printJson(llvm::StringRef path, const TrainModel &model, const Summary *summary, bool verbose,
               llvm::raw_ostream &out) {
  llvm::json::OStream json(out, 2);
  json.object([&] {
    json.attribute("model", toUtf8(path));
    json.attribute("loss", toUtf8(model.report.loss));
    if (const auto &unsupported = model.report.unsupported; !unsupported.empty())
      writeJsonError(json, Code::unsupported, unsupported.front().first,
                     "operator " + printable(unsupported.front().name) + " is not supported",
                     exitCodeOf(Code::unsupported));
    else if (summary && !summary->missingGradients.empty())
      writeJsonError(json, Code::unsupported, summary->missingGradients.front(), "the operator has no gradient",
                     exitCodeOf(Code::unsupported));
    writeReport(json, model.report);
    if (!summary)
      return;
    json.attribute("loss_kind", summary->lossKind);
    writeTensors(json, *summary);
    writeOperators(json, *summary, verbose);
  });
  out << "\n";
}

} // namespace

LogicalResult windlass::checkModel(llvm::StringRef path, MLIRContext &context, const CheckOptions &options,
                                   llvm::raw_ostream &out) {
  TrainModel model;
  bool isRead = succeeded(importTrainModel(path, context, options, model));
  if (!isRead) {
    if (model.report.unsupported.empty())
      return failure();
    if (options.json)
      printJson(path, model, nullptr, options.verbose, out);
    else
      printUnsupported(model.report, out);
    return failure();
  }
  Summary summary = summarize(*model.module);
  if (options.json)
    printJson(path, model, &summary, options.verbose, out);
  else
    printText(model, summary, options.verbose, out);
  if (summary.missingGradients.empty())
    return success();
  return emitError(model.module->getLoc(), Code::unsupported)
         << countOf(summary.missingGradients.size(), "operator") << " between the parameters and the loss "
         << (summary.missingGradients.size() == 1 ? "has" : "have") << " no gradient, the first is "
         << printable(summary.missingGradients.front());
}
