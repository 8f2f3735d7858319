// windlass watch: a run that goes on, in a terminal.
#include "CommandSupport.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Report/Overview.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cmath>
#include <thread>

using namespace windlass;

static void printJson(const report::Run &run) {
  auto number = [](double value) { return std::isfinite(value) ? llvm::json::Value(value) : nullptr; };
  auto integer = [](std::optional<int64_t> value) { return value ? llvm::json::Value(*value) : nullptr; };
  const report::Step *last = run.steps.empty() ? nullptr : &run.steps.back();
  std::optional<double> left = report::estimateSecondsLeft(run);
  llvm::json::OStream json(llvm::outs(), 2);
  json.object([&] {
    json.attribute("model", run.model);
    json.attribute("step", last ? last->step : 0);
    json.attribute("steps", integer(report::countPlannedSteps(run)));
    json.attribute("seconds_left", left ? number(*left) : nullptr);
    json.attribute("loss", last ? number(last->loss) : nullptr);
    json.attribute("grad_norm", last ? number(last->gradNorm) : nullptr);
    json.attribute("tokens_per_s", last ? number(last->tokensPerSecond) : nullptr);
    json.attribute("samples_per_s", last ? number(last->samplesPerSecond) : nullptr);
    json.attribute("eval_loss", run.evaluations.empty() ? nullptr : number(run.evaluations.back().loss));
    json.attribute("checkpoint", run.checkpoints.empty() ? llvm::json::Value(nullptr) : run.checkpoints.front());
    json.attribute("finished", run.isFinished);
  });
  llvm::outs() << "\n";
}

int windlass::runWatch(Console &console, const std::vector<std::string> &words) {
  Flags flags("watch RUN [--every S]",
              "Shows a run while it goes on: how far it is, its loss with its course, its speed, the last evaluation.\n"
              "In a terminal the lines renew themselves until the run ends; elsewhere, and with --once or --json, the "
              "state is\nprinted once.\n"
              "For example: windlass watch run --every 5");
  CommonFlags common;
  bool once = false;
  int64_t every = 2;
  flags.addInteger("every", "seconds between two looks (default 2)", every, 1, 3600);
  flags.addSwitch("once", "print the state and end", once);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 1, 1, code))
    return code;
  bool renews = !once && !common.json && llvm::sys::Process::StandardOutIsDisplayed();
  unsigned columns = renews ? llvm::sys::Process::StandardOutColumns() : 0;
  for (size_t drawn = 0;;) {
    llvm::Expected<report::Run> run = report::readRun(positional.front());
    if (!run)
      return console.fail(Code::input, llvm::toString(run.takeError()));
    if (common.json) {
      printJson(*run);
      return kDone;
    }
    // Back to the first line of the last look; each line is written anew.
    if (drawn > 0)
      llvm::outs() << "\033[" << drawn << "A";
    std::vector<std::string> lines = report::describeRun(*run, columns > 0 ? columns : 80);
    for (const std::string &line : lines)
      llvm::outs() << (renews ? "\r\033[K" : "") << line << "\n";
    llvm::outs().flush();
    if (!renews || run->isFinished)
      return kDone;
    drawn = lines.size();
    std::this_thread::sleep_for(std::chrono::seconds(every));
  }
}
