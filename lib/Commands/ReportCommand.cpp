// windlass report: a run as one HTML page.
#include "CommandSupport.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Report/Page.h"
#include "windlass/Support/OutputFile.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace windlass;

int windlass::runReport(Console &console, const std::vector<std::string> &words) {
  Flags flags(
      "report RUN [-o FILE]",
      "Writes a run as one HTML page that needs nothing else: loss, throughput, memory, settings, environment.\n"
      "RUN may still be going on.");
  CommonFlags common;
  std::string output;
  flags.addText("o", "FILE", "the page (default RUN/report.html)", output);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 1, 1, code))
    return code;
  llvm::Expected<report::Run> run = report::readRun(positional.front());
  if (!run)
    return console.fail(Code::input, llvm::toString(run.takeError()));
  if (output.empty())
    output = positional.front() + "/report.html";
  if (std::string error = writeFile(output, report::writePage(*run)); !error.empty())
    return console.fail(Code::output, error);
  if (common.json) {
    auto number = [](double value) { return std::isfinite(value) ? llvm::json::Value(value) : nullptr; };
    llvm::json::OStream json(llvm::outs(), 2);
    json.object([&] {
      json.attribute("file", output);
      json.attribute("steps", static_cast<int64_t>(run->steps.size()));
      json.attribute("first_loss", run->steps.empty() ? nullptr : number(run->steps.front().loss));
      json.attribute("last_loss", run->steps.empty() ? nullptr : number(run->steps.back().loss));
      json.attribute("finished", run->isFinished);
      json.attribute("unreadable_rows", run->badLines);
    });
    llvm::outs() << "\n";
  } else if (!common.quiet) {
    llvm::outs() << "wrote " << output << "\n";
  }
  return kDone;
}
