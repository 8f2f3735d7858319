#include "windlass/Report/Page.h"

#include "Html.h"
#include "KernelTable.h"
#include "Roofline.h"
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

/// Draws what device memory holds over a step, for the first positions.
static std::string drawStepMemory(const std::vector<MemoryPicture> &positions) {
  constexpr size_t kMostPositions = 8;
  std::string html;
  size_t shown = std::min(positions.size(), kMostPositions);
  for (size_t i = 0; i < shown; ++i)
    html += "<p>Planned over a step" + (positions.size() > 1 ? ", position " + std::to_string(i) : "") + ":</p>\n" +
            drawMemory(positions[i]);
  if (shown < positions.size())
    html += llvm::formatv("<p class=\"none\">{0} more positions are not drawn.</p>\n", positions.size() - shown);
  return html;
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
  html += "<h2>Memory</h2>\n" + describeMemory(run.memory) + drawStepMemory(run.stepMemory);
  html += "<h2>Collectives</h2>\n" + describeCollectives(run);
  html += "<h2>Time by kernel</h2>\n" + writeKernels(run) + drawRoofline(run);
  html += "<h2>Last step</h2>\n" + describeLastStep(run.lastStep);
  html += "<h2>Settings</h2>\n" + writeTable(run.settings);
  html += "<h2>Environment</h2>\n" + writeTable(run.machine);
  return html + closePage();
}
