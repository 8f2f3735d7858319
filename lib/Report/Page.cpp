#include "windlass/Report/Page.h"

#include "Html.h"
#include "RunSeries.h"

#include "windlass/Support/Markup.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace windlass;
using namespace windlass::report;

std::string report::formatBytes(int64_t bytes) {
  double value = double(bytes);
  for (const char *unit : {"B", "KiB", "MiB"}) {
    if (value < 1024)
      return llvm::formatv(*unit == 'B' ? "{0:f0} {1}" : "{0:f1} {1}", value, unit);
    value /= 1024;
  }
  return llvm::formatv("{0:f2} GiB", value);
}

std::string report::formatNumber(double value) {
  return std::isfinite(value) ? std::string(llvm::formatv("{0:f4}", value)) : "not finite";
}

static Facts summarize(const Run &run) {
  Facts facts;
  if (!run.steps.empty()) {
    const Step &first = run.steps.front(), &last = run.steps.back();
    facts.emplace_back("steps", std::to_string(first.step) + " to " + std::to_string(last.step));
    facts.emplace_back("loss", formatNumber(first.loss) + " → " + formatNumber(last.loss));
  }
  if (!run.evaluations.empty())
    facts.emplace_back("eval loss", formatNumber(run.evaluations.back().loss));
  for (auto [name, of] : {std::pair("tokens per second", &Step::tokensPerSecond),
                          std::pair("samples per second", &Step::samplesPerSecond)})
    if (double rate = medianOf(run, of); std::isfinite(rate))
      facts.emplace_back(name, formatRate(rate) + " (median)");
  double seconds = medianOf(run, &Step::seconds);
  if (std::isfinite(seconds))
    facts.emplace_back("seconds per step", std::string(llvm::formatv("{0:f4} (median)", seconds)));
  facts.emplace_back("end", run.isFinished ? "the run ended by itself" : "not recorded: the run goes on or was ended");
  std::string held;
  for (const std::string &name : run.checkpoints)
    held += (held.empty() ? "" : ", ") + name;
  facts.emplace_back("checkpoints", held.empty() ? "none" : held);
  if (run.badLines > 0)
    facts.emplace_back("unreadable rows", std::to_string(run.badLines));
  return facts;
}

static std::string describeMemory(const Memory &memory) {
  std::string html;
  if (memory.arena > 0) {
    std::vector<std::pair<std::string, int64_t>> parts;
    int64_t rest = memory.arena;
    for (auto [name, bytes] : memory.parts) {
      std::replace(name.begin(), name.end(), '_', ' ');
      bytes = std::min(bytes, rest);
      rest -= bytes;
      parts.emplace_back(name, bytes);
    }
    parts.emplace_back("activations and scratch", rest);
    html += "<p>Planned device arena of a rank: " + formatBytes(memory.arena) +
            (memory.reserve > 0 ? "; besides it, for the program itself: " + formatBytes(memory.reserve) : "") +
            ".</p>\n" + drawBar(parts, memory.arena);
  }
  if (!memory.processes.empty()) {
    html += "<p>Resident memory at most, by process:</p>\n";
    Facts facts;
    for (size_t i = 0; i < memory.processes.size(); ++i)
      facts.emplace_back("rank " + std::to_string(i) + " on " + memory.processes[i].first,
                         formatBytes(memory.processes[i].second));
    html += writeTable(facts);
  }
  return html.empty() ? "<p class=\"none\">No memory was recorded.</p>\n" : html;
}

static std::string describeCollectives(const Run &run) {
  Facts facts;
  for (auto [name, bytes] : run.collectives) {
    std::replace(name.begin(), name.end(), '_', ' ');
    if (bytes > 0)
      facts.emplace_back(name, formatBytes(bytes));
  }
  if (facts.empty())
    return run.collectives.empty() ? "<p class=\"none\">Not recorded.</p>\n" : "<p class=\"none\">None.</p>\n";
  return "<p>Bytes that a rank sends in a step, as a ring would send them.</p>\n" + writeTable(facts);
}

/// The kernels that take the most time; the rest is one row.
static std::string describeKernels(const Run &run) {
  constexpr size_t kMostRows = 20;
  if (run.kernels.empty())
    return "<p class=\"none\">Not recorded: train with --profile.</p>\n";
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>kernel</th><th>sizes</th><th>calls per step"
                     "</th><th>ms per step</th><th>share</th></tr>\n";
  double steps = std::max(1.0, run.kernelSteps), whole = std::max(run.kernelSeconds, 1e-12);
  Kernel rest = {"all others", "", 0, 0};
  auto addRow = [&](const Kernel &kernel) {
    html += llvm::formatv("<tr><td>{0}</td><td>{1}</td><td class=\"number\">{2:f1}</td><td class=\"number\">{3:f3}</td>"
                          "<td class=\"number\">{4:f1} %</td></tr>\n",
                          escapeMarkup(kernel.name), escapeMarkup(kernel.sizes), kernel.calls / steps,
                          1e3 * kernel.seconds / steps, 100 * kernel.seconds / whole);
  };
  for (size_t i = 0; i < run.kernels.size(); ++i) {
    if (i < kMostRows) {
      addRow(run.kernels[i]);
      continue;
    }
    rest.calls += run.kernels[i].calls;
    rest.seconds += run.kernels[i].seconds;
  }
  if (run.kernels.size() > kMostRows)
    addRow(rest);
  return html + "</table></div>\n";
}

static std::string describeLastStep(const Timeline &timeline) {
  if (timeline.lanes.empty())
    return "<p class=\"none\">" +
           (timeline.note.empty() ? "Not recorded: train with --profile." : escapeMarkup(timeline.note)) + "</p>\n";
  return drawTimeline(timeline);
}

std::string report::writePage(const Run &run) {
  std::string name = run.model.empty() ? run.folder : run.model;
  std::string html = openPage(name + " – Windlass run") + "<h1>" + escapeMarkup(name) + "</h1>\n<p>Run in " +
                     escapeMarkup(run.folder) + "</p>\n" + writeTable(summarize(run));
  html +=
      "<h2>Loss</h2>\n" + drawChart("Loss", {seriesOf(run, "training", &Step::loss), evaluationsOf(run, "evaluation")});
  auto isKnown = [&](double Step::*of) { return std::isfinite(medianOf(run, of)); };
  html += "<h2>Throughput</h2>\n" +
          (isKnown(&Step::tokensPerSecond)
               ? drawChart("Tokens per second", {seriesOf(run, "tokens per second", &Step::tokensPerSecond)})
           : isKnown(&Step::samplesPerSecond)
               ? drawChart("Samples per second", {seriesOf(run, "samples per second", &Step::samplesPerSecond)})
               : drawChart("Seconds per step", {seriesOf(run, "seconds per step", &Step::seconds)}));
  html += "<h2>Gradient norm</h2>\n" + drawChart("Gradient norm", {seriesOf(run, "before clipping", &Step::gradNorm)});
  html +=
      "<h2>Learning rate</h2>\n" + drawChart("Learning rate", {seriesOf(run, "learning rate", &Step::learningRate)});
  html += "<h2>Memory</h2>\n" + describeMemory(run.memory);
  html += "<h2>Collectives</h2>\n" + describeCollectives(run);
  html += "<h2>Time by kernel</h2>\n" + describeKernels(run);
  html += "<h2>Last step</h2>\n" + describeLastStep(run.lastStep);
  html += "<h2>Settings</h2>\n" + writeTable(run.settings);
  html += "<h2>Environment</h2>\n" + writeTable(run.machine);
  return html + closePage();
}
