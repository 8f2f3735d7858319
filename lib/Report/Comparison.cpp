#include "windlass/Report/Comparison.h"

#include "Html.h"
#include "RunSeries.h"

#include "windlass/Support/Markup.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <optional>

using namespace windlass;
using namespace windlass::report;

static_assert(kMostCompared <= kColours);

/// Returns a table with a column for each run and a row for each of `rows`: a name, then a cell for each run.
static std::string writeColumns(llvm::ArrayRef<Run> runs, llvm::ArrayRef<std::vector<std::string>> rows) {
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><td></td>";
  for (auto [number, run] : llvm::enumerate(runs))
    html += "<th>" + writeKey(number, run.folder) + "</th>";
  html += "</tr>\n";
  for (const std::vector<std::string> &row : rows) {
    html += "<tr>" + writeRowHeader(row.front());
    for (const std::string &cell : llvm::ArrayRef(row).drop_front())
      html += "<td>" + escapeMarkup(cell) + "</td>";
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

static std::string describeRuns(llvm::ArrayRef<Run> runs) {
  std::vector<std::vector<std::string>> rows;
  auto add = [&](const char *name, auto describe) {
    std::vector<std::string> row = {name};
    bool isKnown = false;
    for (const Run &run : runs) {
      row.push_back(describe(run));
      isKnown |= !row.back().empty();
    }
    if (isKnown)
      rows.push_back(std::move(row));
  };
  add("model", [](const Run &run) { return run.model; });
  add("last step", [](const Run &run) { return run.steps.empty() ? "" : std::to_string(run.steps.back().step); });
  add("loss", [](const Run &run) { return run.steps.empty() ? "" : formatNumber(run.steps.back().loss); });
  add("eval loss",
      [](const Run &run) { return run.evaluations.empty() ? "" : formatNumber(run.evaluations.back().loss); });
  for (auto [name, field] : {std::pair("tokens per second (median)", &Step::tokensPerSecond),
                             {"samples per second (median)", &Step::samplesPerSecond}})
    add(name, [field = field](const Run &run) {
      double rate = medianOf(run, field);
      return std::isfinite(rate) ? formatRate(rate) : "";
    });
  add("seconds per step (median)", [](const Run &run) {
    double seconds = medianOf(run, &Step::seconds);
    return std::isfinite(seconds) ? formatNumber(seconds) : "";
  });
  add("device arena", [](const Run &run) { return run.memory.arena > 0 ? formatBytes(run.memory.arena) : ""; });
  return writeColumns(runs, rows);
}

static std::optional<std::string> findFact(const Facts &facts, const std::string &name) {
  for (const auto &[key, value] : facts)
    if (key == name)
      return value;
  return std::nullopt;
}

/// Returns a table of the facts that are not the same in all runs.
static std::string describeDifferences(llvm::ArrayRef<Run> runs, Facts Run::*of) {
  std::vector<std::string> names;
  for (const Run &run : runs)
    for (const auto &[name, value] : run.*of)
      if (!llvm::is_contained(names, name))
        names.push_back(name);
  std::vector<std::vector<std::string>> rows;
  for (const std::string &name : names) {
    std::vector<std::string> row = {name};
    bool isSame = true;
    for (const Run &run : runs) {
      std::optional<std::string> value = findFact(run.*of, name);
      isSame &= value == findFact(runs.front().*of, name);
      row.push_back(value.value_or("–"));
    }
    if (!isSame)
      rows.push_back(std::move(row));
  }
  return rows.empty() ? "<p class=\"none\">None.</p>\n" : writeColumns(runs, rows);
}

std::string report::writeComparison(llvm::ArrayRef<Run> runs) {
  auto chart = [&](const char *title, double Step::*field) {
    std::vector<Series> lines;
    for (const Run &run : runs)
      lines.push_back(seriesOf(run, run.folder, field));
    return "<h2>" + std::string(title) + "</h2>\n" + drawChart(title, lines);
  };
  auto isKnown = [&](double Step::*field) {
    return llvm::any_of(runs, [&](const Run &run) { return std::isfinite(medianOf(run, field)); });
  };
  std::string html = openPage(std::to_string(runs.size()) + " runs – Windlass", /*isWide=*/true) + "<h1>" +
                     std::to_string(runs.size()) + " runs</h1>\n" + describeRuns(runs) + chart("Loss", &Step::loss);
  if (llvm::any_of(runs, [](const Run &run) { return !run.evaluations.empty(); })) {
    std::vector<Series> dots;
    for (const Run &run : runs)
      dots.push_back(evaluationsOf(run, run.folder));
    html += "<h2>Evaluation loss</h2>\n" + drawChart("Evaluation loss", dots);
  }
  html += isKnown(&Step::tokensPerSecond)    ? chart("Tokens per second", &Step::tokensPerSecond)
          : isKnown(&Step::samplesPerSecond) ? chart("Samples per second", &Step::samplesPerSecond)
                                             : chart("Seconds per step", &Step::seconds);
  html += chart("Gradient norm", &Step::gradNorm) + chart("Learning rate", &Step::learningRate);
  html += "<h2>Settings that differ</h2>\n" + describeDifferences(runs, &Run::settings);
  html += "<h2>Environments that differ</h2>\n" + describeDifferences(runs, &Run::machine);
  return html + closePage();
}
