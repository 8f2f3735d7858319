// windlass report: a run as one HTML page.
#include "CommandSupport.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Report/Comparison.h"
#include "windlass/Report/Page.h"
#include "windlass/Support/OutputFile.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace windlass;

namespace {

void writeRun(llvm::json::OStream &json, const report::Run &run) {
  auto number = [](double value) { return std::isfinite(value) ? llvm::json::Value(value) : nullptr; };
  json.attribute("steps", static_cast<int64_t>(run.steps.size()));
  json.attribute("first_loss", run.steps.empty() ? nullptr : number(run.steps.front().loss));
  json.attribute("last_loss", run.steps.empty() ? nullptr : number(run.steps.back().loss));
  json.attribute("finished", run.isFinished);
  json.attribute("unreadable_rows", run.badLines);
}

} // namespace

int windlass::runReport(Console &console, const std::vector<std::string> &words) {
  Flags flags(
      "report RUN [RUN..] [-o FILE]",
      "Writes a run as one HTML page that needs nothing else: loss, throughput, memory, the last step, settings.\n"
      "Writes several runs as one page that compares them. Runs may still be going on.\n"
      "For example: windlass report run-a run-b -o both.html");
  CommonFlags common;
  std::string output, predicted;
  flags.addText("o", "FILE", "the page (default RUN/report.html; several runs need it)", output);
  flags.addText("predicted", "FILE",
                "a timeline of 'windlass simulate -o', drawn beside that of a run's last step with --profile",
                predicted);
  common.declare(flags);
  std::vector<std::string> folders;
  int code;
  if (!parseWords(console, flags, common, words, folders, 1, report::kMostCompared, code))
    return code;
  if (folders.size() > 1 && output.empty())
    return console.fail(Code::usage, "report of several runs needs -o FILE: the page is of none of them");
  if (folders.size() > 1 && !predicted.empty())
    return console.fail(Code::usage, "--predicted belongs to one run; report them one by one");
  std::vector<report::Run> runs;
  for (const std::string &folder : folders) {
    llvm::Expected<report::Run> run = report::readRun(folder);
    if (!run)
      return console.fail(Code::input, llvm::toString(run.takeError()));
    runs.push_back(std::move(*run));
  }
  if (runs.size() == 1) {
    report::Timeline &step = runs.front().lastStep = report::readLastStep(folders.front(), predicted);
    if (!predicted.empty() && step.lanes.empty())
      return console.fail(Code::input, step.note);
    llvm::Expected<std::vector<report::MemoryPicture>> memory = report::readStepMemory(folders.front());
    if (!memory)
      return console.fail(Code::input, llvm::toString(memory.takeError()));
    runs.front().stepMemory = std::move(*memory);
  }
  if (output.empty())
    output = folders.front() + "/report.html";
  std::string page = runs.size() > 1 ? report::writeComparison(runs) : report::writePage(runs.front());
  if (std::string error = writeFile(output, page); !error.empty())
    return console.fail(Code::output, error);
  if (common.json) {
    llvm::json::OStream json(llvm::outs(), 2);
    json.object([&] {
      json.attribute("file", output);
      if (runs.size() == 1)
        return writeRun(json, runs.front());
      json.attributeArray("runs", [&] {
        for (const report::Run &run : runs)
          json.object([&] {
            json.attribute("folder", run.folder);
            writeRun(json, run);
          });
      });
    });
    llvm::outs() << "\n";
  } else if (!common.quiet) {
    llvm::outs() << "wrote " << output << "\n";
  }
  return kDone;
}
