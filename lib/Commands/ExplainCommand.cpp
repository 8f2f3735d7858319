// windlass explain: how a plan places an operator and why; what a code in a message means; what a cluster is in full.
#include "CommandSupport.h"
#include "ExplainCluster.h"
#include "windlass/Explain/ExplainOperator.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace windlass;

/// Breaks a paragraph into lines of at most 80 columns.
static std::string wrap(llvm::StringRef text) {
  std::string out;
  size_t column = 0;
  for (llvm::StringRef word : llvm::split(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > 80) {
      out += "\n";
      column = 0;
    } else if (column > 0) {
      out += " ";
      ++column;
    }
    out += word.str();
    column += word.size();
  }
  return out + "\n";
}

static llvm::json::Object describe(const DiagnosticInfo &row) {
  return llvm::json::Object{{"code", rt::diagnostic_code(row.code)},
                            {"exit_code", row.exitCode},
                            {"title", row.title},
                            {"explanation", row.explanation}};
}

static int finish(Console &console, const rt::status &status) { return status.is_ok() ? kDone : console.fail(status); }

/// Prints all named strategies: what they do, and how the search and `windlass profile` use them.
static int explainStrategies(bool asJson) {
  llvm::json::Array rows;
  for (const plan::NamedStrategy &strategy : plan::getNamedStrategies()) {
    if (!asJson) {
      llvm::outs() << wrap(strategy.getSpelling() + " " + strategy.summary.str() + ".");
      continue;
    }
    llvm::json::Array measuredAs;
    for (llvm::StringRef measured : strategy.measuredAs)
      measuredAs.push_back(measured);
    rows.push_back(llvm::json::Object{{"name", strategy.name},
                                      {"summary", strategy.summary},
                                      {"ranks", strategy.isForModel() ? "model" : "data"},
                                      {"suits_all_models", strategy.checkModel == nullptr},
                                      {"is_compared", strategy.isCompared},
                                      {"spelling", strategy.getSpelling()},
                                      {"decides_memory", strategy.tiers.has_value()},
                                      {"measured_as", std::move(measuredAs)}});
  }
  if (asJson)
    llvm::outs() << llvm::formatv("{0:2}", llvm::json::Value(std::move(rows))) << "\n";
  return kDone;
}

/// Explains an operator or parameter of a plan; from the plan alone where no model is given.
static int explainOperator(Console &console, llvm::ArrayRef<std::string> positional, CompileFlags &compileFlags,
                           const Flags &flags, const CommonFlags &common) {
  plan::PlanFile plan;
  if (int code = readPlan(console, compileFlags.planFile, plan))
    return code;
  if (positional.size() == 1)
    return finish(console, explainRows(plan, positional.front(), common.json, llvm::outs()));
  auto context = makeContext(console, common.verbose);
  Compilation compilation(*context, positional[1], printEvents(console));
  if (int code = planModel(console, compilation, compileFlags, flags, Purpose::trial))
    return code;
  llvm::StringMap<SegmentFacts> segments = describeSegments(compilation.getPlanned());
  if (int code = console.codeOf(compilation.materialize()))
    return code;
  return finish(console, explainPlacement(compilation.getPlanned(), segments, plan, positional.front(), common.json,
                                          llvm::outs()));
}

int windlass::runExplain(Console &console, const std::vector<std::string> &words) {
  Flags flags(
      "explain [OP [MODEL] --plan P | CODE | --cluster C [--collectives F] | --strategies]",
      "With --plan, says how the plan runs an operator, by its id or a glob, or keeps a parameter, by its name:\n"
      "factors, strategy, layouts, the use of each axis, reshards with their bytes, memory, and the bytes and FLOPs\n"
      "of recomputing its segment; with MODEL all of it, else what the plan's file says. With a code, explains the\n"
      "code at the end of a message, such as WL0305; without one, lists all. With --cluster, prints a preset or a\n"
      "file in full, as a file to edit; with --collectives too, how long the collectives take that a file lists. With\n"
      "--strategies, says what the named strategies do.\n"
      "For example: windlass explain 'transformer.h.*.mlp.matmul.0' model.onnx --plan plan.json");
  bool wantsStrategies = false;
  std::string collectives;
  CommonFlags common;
  CompileFlags compileFlags;
  flags.addText("plan", "P", "the plan of the operator", compileFlags.planFile);
  flags.addText("cluster", "C", "a preset such as cpu:2, h200:8, a100-40g:4x8, or a file", compileFlags.cluster);
  flags.addText("collectives", "F", "a list of collectives as JSON, to be timed on the cluster", collectives);
  flags.addSwitch("strategies", "the named strategies that --strategy takes", wantsStrategies);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 0, 2, code))
    return code;
  if (wantsStrategies)
    return positional.empty() && !flags.isGiven("plan") && !flags.isGiven("cluster")
               ? explainStrategies(common.json)
               : console.fail(Code::usage, "explain --strategies takes nothing else");
  if (flags.isGiven("plan") && flags.isGiven("cluster"))
    return console.fail(Code::usage, "explain takes --plan or --cluster, not both");
  if (flags.isGiven("collectives"))
    return flags.isGiven("cluster") && positional.empty()
               ? explainCollectives(console, compileFlags.cluster, collectives, common.json)
               : console.fail(Code::usage, "explain --collectives takes --cluster and nothing else");
  if (flags.isGiven("plan"))
    return positional.empty()
               ? console.fail(Code::usage, "explain --plan needs an operator: windlass explain OP --plan P")
               : explainOperator(console, positional, compileFlags, flags, common);
  if (positional.size() == 2)
    return console.fail(Code::usage, "an operator is explained by its plan: windlass explain OP MODEL --plan P");
  if (flags.isGiven("cluster"))
    return positional.empty() ? explainCluster(console, compileFlags.cluster)
                              : console.fail(Code::usage, "explain takes a code or --cluster, not both");
  if (positional.empty()) {
    llvm::json::Array rows;
    for (const DiagnosticInfo &row : getDiagnostics()) {
      if (common.json)
        rows.push_back(describe(row));
      else
        llvm::outs() << rt::diagnostic_code(row.code) << "  " << row.title << "\n";
    }
    if (common.json)
      llvm::outs() << llvm::formatv("{0:2}", llvm::json::Value(std::move(rows))) << "\n";
    return kDone;
  }
  const DiagnosticInfo *row = findDiagnostic(positional.front());
  if (!row)
    return console.fail(Code::usage, "there is no code " + printable(positional.front()) +
                                         "; 'windlass explain' without one lists all, and an operator needs --plan");
  if (common.json)
    llvm::outs() << llvm::formatv("{0:2}", llvm::json::Value(describe(*row))) << "\n";
  else
    llvm::outs() << rt::diagnostic_code(row->code) << ": " << row->title << " (exit code " << row->exitCode << ")\n\n"
                 << wrap(row->explanation);
  return kDone;
}
