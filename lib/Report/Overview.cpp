#include "windlass/Report/Overview.h"

#include "windlass/Report/Page.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace windlass;
using namespace windlass::report;

/// The steps whose times say how long the next ones take.
constexpr size_t kRecentSteps = 50;

static std::string shortNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

static std::string durationText(double seconds) {
  auto whole = static_cast<int64_t>(std::min(seconds, 1e9) + 0.5);
  if (whole < 60)
    return std::to_string(whole) + " s";
  if (whole < 3600)
    return llvm::formatv("{0} min {1} s", whole / 60, whole % 60);
  if (whole < 48 * 3600)
    return llvm::formatv("{0} h {1} min", whole / 3600, whole / 60 % 60);
  return llvm::formatv("{0} d {1} h", whole / 86400, whole / 3600 % 24);
}

/// Draws the course of the loss by one block for each of at most `columns` equal parts of the run.
static std::string drawCourse(const Run &run, size_t columns) {
  std::vector<double> losses;
  for (const Step &step : run.steps)
    if (std::isfinite(step.loss))
      losses.push_back(step.loss);
  size_t parts = std::min(columns, losses.size());
  if (parts < 2)
    return "";
  std::vector<double> means;
  for (size_t part = 0; part < parts; ++part) {
    size_t begin = part * losses.size() / parts, end = (part + 1) * losses.size() / parts;
    double sum = 0;
    for (size_t i = begin; i < end; ++i)
      sum += losses[i];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  auto [low, high] = std::minmax_element(means.begin(), means.end());
  constexpr const char *kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string course;
  for (double mean : means)
    course += kBlocks[*high > *low ? static_cast<size_t>(7.999 * ((mean - *low) / (*high - *low))) : 0];
  return course;
}

std::optional<int64_t> report::countPlannedSteps(const Run &run) {
  for (const auto &[name, value] : run.settings)
    if (int64_t steps = 0; name == "steps" && !llvm::StringRef(value).getAsInteger(10, steps) && steps >= 0)
      return steps;
  return std::nullopt;
}

std::optional<double> report::estimateSecondsLeft(const Run &run) {
  std::optional<int64_t> planned = countPlannedSteps(run);
  if (!planned || run.steps.empty() || run.isFinished || run.steps.back().step >= *planned)
    return std::nullopt;
  double sum = 0, count = 0;
  for (const Step &step : llvm::ArrayRef(run.steps).take_back(kRecentSteps))
    if (std::isfinite(step.seconds)) {
      sum += step.seconds;
      ++count;
    }
  if (count == 0)
    return std::nullopt;
  return sum / count * static_cast<double>(*planned - run.steps.back().step);
}

std::vector<std::string> report::describeRun(const Run &run, size_t columns) {
  std::vector<std::string> lines = {
      llvm::formatv("{0} in {1}", run.model.empty() ? "a run" : printable(run.model, 60), printable(run.folder, 60))};
  auto add = [&](llvm::StringRef name, const llvm::Twine &text) {
    lines.push_back(name.str() + std::string(10 - name.size(), ' ') + text.str());
  };
  if (run.steps.empty()) {
    add("step", "none yet");
    return lines;
  }
  const Step &first = run.steps.front(), &last = run.steps.back();
  std::string progress = std::to_string(last.step);
  if (std::optional<int64_t> planned = countPlannedSteps(run); planned && *planned > 0)
    progress += llvm::formatv(" of {0}, {1:f0} %", *planned,
                              100 * static_cast<double>(last.step) / static_cast<double>(*planned));
  if (std::optional<double> seconds = estimateSecondsLeft(run))
    progress += ", " + durationText(*seconds) + " left";
  add("step", progress + (run.isFinished ? ", ended" : ""));
  std::string loss = formatNumber(last.loss);
  if (run.steps.size() > 1)
    loss += ", " + formatNumber(first.loss) + " at step " + std::to_string(first.step);
  add("loss", loss);
  if (std::string course = drawCourse(run, columns > 10 ? columns - 10 : 0); !course.empty())
    add("", course);
  add("norm", formatNumber(last.gradNorm) + ", learning rate " + shortNumber(last.learningRate));
  bool hasTokens = std::isfinite(last.tokensPerSecond);
  if (double rate = hasTokens ? last.tokensPerSecond : last.samplesPerSecond; std::isfinite(rate))
    add("speed", llvm::formatv("{0:f1} {1}/s, {2:f4} s a step", rate, hasTokens ? "tokens" : "samples", last.seconds));
  if (!run.evaluations.empty())
    add("eval loss",
        formatNumber(run.evaluations.back().loss) + " at step " + std::to_string(run.evaluations.back().step));
  if (!run.checkpoints.empty())
    add("saved", run.checkpoints.front());
  return lines;
}
