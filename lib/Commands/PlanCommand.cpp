// windlass plan: how a model would run on a cluster.
#include "CommandSupport.h"
#include "PlanPictures.h"

#include "windlass/Explain/PlanReport.h"
#include "windlass/Pipeline/Claims.h"
#include "windlass/Search/ProblemFile.h"
#include "windlass/Support/OutputFile.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

namespace {

struct PlanFlags {
  CommonFlags common;
  CompileFlags compile;
  std::string output, pageOutput, onnxOutput, problemOutput, start, verified;
  /// The most that --max-ratio allows.
  std::optional<double> mostRatio;

  void declare(Flags &flags);
  /// Finds flags that do not go together; returns an exit code.
  int check(Console &console, const Flags &given) const;
};

void PlanFlags::declare(Flags &flags) {
  compile.declarePlan(flags);
  common.declare(flags);
  flags.addText("o", "FILE", "file for the plan (default: it is only printed)", output);
  flags.addText("html", "FILE",
                "file for a page with pictures of the plan: devices, splits, the predicted step by streams, memory",
                pageOutput);
  flags.addText(
      "export-onnx", "FILE",
      "file for a copy of the model that holds the plan as ONNX sharding annotations, configuration 'windlass'; "
      "external data stay where they are, relative to it",
      onnxOutput);
  flags.addText("dump-problem", "FILE",
                "file for the problem of labels that the plan of --strategy auto solves, for windlass-solve",
                problemOutput);
  flags.addInteger("threads", "threads of the search, which do not change the plan (default: one for each processor)",
                   compile.choice.searchThreads, 1, 256);
  flags.addInteger("work-limit",
                   "most operations of the search for each mesh, about one per nanosecond, on which the plan depends "
                   "(default 200000000)",
                   compile.choice.searchWork, 1, int64_t(1) << 60);
  flags.addText("start", "PLAN", "an older plan of the model, which the search begins with", start);
  flags.add("max-ratio", "X",
            "exit code 5 where the simulated step is longer than X times its lower bound, or has no bound",
            [this](llvm::StringRef text) -> std::string {
              double most = 0;
              if (text.getAsDouble(most) || !(most >= 1 && most <= 1e9))
                return "--max-ratio takes a number from 1 to 1e9, not '" + text.str() + "'";
              mostRatio = most;
              return "";
            });
  flags.addText("verify", "PLAN",
                "recomputes the claims of a plan that --strategy auto made, the bound from the certificates next to it",
                verified);
}

int PlanFlags::check(Console &console, const Flags &given) const {
  if (!problemOutput.empty() && compile.choice.strategy != "auto")
    return console.fail(Code::usage, "--dump-problem needs --strategy auto: a named strategy solves none");
  for (llvm::StringRef flag : {"max-ratio", "start", "threads", "work-limit"})
    if (given.isGiven(flag) && compile.choice.strategy != "auto")
      return console.fail(Code::usage, "--" + flag.str() + " needs --strategy auto: a named strategy is not searched");
  if (compile.cluster.empty())
    return console.fail(Code::usage, "plan needs --cluster, such as --cluster cpu:2 or --cluster h200:8");
  return kDone;
}

} // namespace

/// Writes the files that the flags ask for; returns an exit code. `annotated` is the model of --export-onnx.
static int writeFiles(Console &console, const PlanFlags &flags, const Compilation &compilation,
                      const std::string &annotated) {
  const std::optional<SearchSummary> &search = compilation.getSearch();
  std::vector<std::pair<std::string, std::string>> files;
  if (!flags.onnxOutput.empty())
    files.push_back({flags.onnxOutput, annotated});
  if (!flags.problemOutput.empty() && search)
    files.push_back({flags.problemOutput, search::printProblem(search->problem)});
  // The certificates are written first: a plan that claims something then has them next to it.
  if (!flags.output.empty() && search)
    files.push_back({getCertificatePath(flags.output), search->certificate});
  if (!flags.output.empty())
    files.push_back({flags.output, compilation.getPlanText()});
  for (const auto &[path, text] : files)
    if (std::string error = writeFile(path, text); !error.empty())
      return console.fail(Code::output, error);
  return kDone;
}

/// Prints the report and writes its page, as far as the flags ask for them; returns an exit code.
static int showPlan(Console &console, const PlanFlags &flags, Compilation &compilation, const std::string &model) {
  bool isPrinted = flags.common.json || !flags.common.quiet, isDrawn = !flags.pageOutput.empty();
  if (!isPrinted && !isDrawn)
    return kDone;
  PlanReport report = describePlan(compilation, model, flags.compile.settings, flags.compile.choice);
  if (isDrawn) {
    std::string page = report::writePlanPage(drawPlan(compilation, report, flags.compile.choice));
    if (std::string error = writeFile(flags.pageOutput, page); !error.empty())
      return console.fail(Code::output, error);
  }
  if (flags.common.json)
    printJson(report, llvm::outs());
  else if (isPrinted)
    printText(report, flags.common.verbose, llvm::outs());
  if (!flags.common.json && isPrinted)
    for (const auto &[what, path] : {std::pair("plan       ", &flags.output), {"page       ", &flags.pageOutput}})
      if (!path->empty())
        llvm::outs() << what << *path << "\n";
  return kDone;
}

/// Compares the step and its lower bound with --max-ratio; returns an exit code.
static int checkRatio(Console &console, const std::optional<SearchSummary> &search, std::optional<double> most) {
  if (!search || !most)
    return kDone;
  std::string is = llvm::formatv("but --max-ratio is {0:f4}; give a ", *most);
  std::optional<double> ratio = search->getStepOverBound();
  if (!ratio)
    return console.fail(Code::ratio, "the step has no lower bound, " + is + "higher --memory-limit");
  if (*ratio <= *most)
    return kDone;
  return console.fail(Code::ratio, llvm::formatv("the step is {0:f4} times its lower bound, ", *ratio).str() + is +
                                       "larger --work-limit");
}

int windlass::runPlan(Console &console, const std::vector<std::string> &words) {
  Flags flags(
      "plan MODEL --cluster C [-o plan.json]",
      "Finds how every operator of a training graph runs on a cluster.\n"
      "For example: windlass plan model.onnx --cluster h100:2x8 --precision bf16 --micro-batches 64 -o plan.json");
  PlanFlags planFlags;
  planFlags.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, planFlags.common, words, positional, 1, 1, code))
    return code;
  const std::string &model = positional.front();
  if (!planFlags.verified.empty())
    return verifyPlan(console, model, planFlags.verified, planFlags.compile, flags, planFlags.common);
  if ((code = planFlags.check(console, flags)))
    return code;
  if (!planFlags.start.empty()) {
    auto older = std::make_shared<plan::PlanFile>();
    if ((code = readPlanWithClaims(console, planFlags.start, *older)))
      return code;
    planFlags.compile.choice.start = std::move(older);
  }
  const CommonFlags &common = planFlags.common;
  auto context = makeContext(console, common.verbose);
  Compilation compilation(*context, model, printEvents(console, common.quiet ? Talk::none : Talk::warnings));
  std::string annotated;
  if ((code = planModel(console, compilation, planFlags.compile, flags, Purpose::program)) ||
      (!planFlags.onnxOutput.empty() && ((code = console.codeOf(compilation.materialize())) ||
                                         (code = console.codeOf(compilation.exportOnnx(annotated))))) ||
      (code = writeFiles(console, planFlags, compilation, annotated)))
    return code;
  // The report is made whatever the ratio is.
  if ((code = showPlan(console, planFlags, compilation, model)))
    return code;
  return checkRatio(console, compilation.getSearch(), planFlags.mostRatio);
}
