#include "windlass/Explain/PredictionText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace windlass;

std::string windlass::secondsText(double seconds) {
  if (seconds < 1)
    return llvm::formatv("{0:f3} ms", 1e3 * seconds).str();
  return llvm::formatv("{0:f3} s", seconds).str();
}

/// Returns whether some of the costs were compared with a measurement.
static bool isCalibrated(const StepPrediction &prediction) {
  double sum = 0;
  for (const auto &[source, seconds] : prediction.bySource)
    sum += seconds;
  // Sums of the same numbers in another order may differ in their last digits.
  return prediction.uncalibratedSeconds < sum * (1 - 1e-9);
}

/// Returns a line for each window, the first of which begins with `title`.
static std::string windowsText(llvm::ArrayRef<StepWindow> windows, llvm::StringRef title) {
  std::string text;
  for (const StepWindow &window : windows) {
    text += llvm::formatv("{0,-11}", &window == windows.begin() ? title : "").str();
    text += window.name + " " + secondsText(window.seconds);
    const char *separator = ": ";
    for (const auto &[stream, busy] : window.busySeconds) {
      text += separator + stream + " " + secondsText(busy);
      separator = ", ";
    }
    text += "\n";
  }
  return text;
}

std::string windlass::timeText(const StepPrediction &prediction) {
  double sum = 0;
  for (const auto &[source, seconds] : prediction.bySource)
    sum += seconds;
  std::string error = "uncalibrated";
  if (isCalibrated(prediction)) {
    error = "give or take " + secondsText(prediction.errorSeconds);
    if (prediction.uncalibratedSeconds > 0)
      error += llvm::formatv(" and {0:f1} % of the costs uncalibrated", 100 * prediction.uncalibratedSeconds / sum);
  }
  std::string text = "time       " + secondsText(prediction.seconds) + " per step, " + error + ": ";
  const char *separator = "";
  for (const auto &[source, seconds] : prediction.bySource) {
    text += separator +
            llvm::formatv("{0:f1} % of the costs {1}", sum > 0 ? 100 * seconds / sum : 0, getName(source)).str();
    separator = ", ";
  }
  text += "\n";
  bool hasOne = prediction.positions.size() == 1;
  for (auto [number, position] : llvm::enumerate(prediction.positions)) {
    if (!hasOne)
      text += llvm::formatv("position {0} busy {1}, idle {2:f1} % of the step\n", number,
                            secondsText(position.busySeconds), 100 * position.bubbleShare);
    text += windowsText(position.windows, hasOne ? "windows" : "");
  }
  BusiestStream busiest = prediction.getBusiestStream();
  if (busiest.seconds > 0)
    text += llvm::formatv("bottleneck {0}{1}, busy {2:f1} % of the step\n", busiest.name,
                          hasOne ? "" : " of position " + std::to_string(busiest.position),
                          100 * busiest.seconds / prediction.seconds);
  return text;
}

void windlass::writePrediction(llvm::json::OStream &json, const StepPrediction &prediction) {
  json.attribute("predicted_seconds", prediction.seconds);
  json.attribute("predicted_error_seconds",
                 isCalibrated(prediction) ? std::optional<double>(prediction.errorSeconds) : std::nullopt);
  json.attribute("uncalibrated_seconds", prediction.uncalibratedSeconds);
  json.attributeObject("seconds_by_source", [&] {
    for (const auto &[source, seconds] : prediction.bySource)
      json.attribute(getName(source), seconds);
  });
  json.attributeObject("seconds_by_family", [&] {
    for (const auto &[family, seconds] : prediction.byFamily)
      json.attribute(family, seconds);
  });
  bool hasSeveral = prediction.positions.size() > 1;
  if (hasSeveral)
    json.attributeArray("positions", [&] {
      for (const PositionPrediction &position : prediction.positions)
        json.object([&] {
          json.attribute("busy_seconds", position.busySeconds);
          json.attribute("bubble_share", position.bubbleShare);
          json.attributeObject("stream_busy_seconds", [&] {
            for (const auto &[stream, busy] : position.streams)
              json.attribute(stream, busy);
          });
        });
    });
  json.attributeArray("windows", [&] {
    for (auto [number, position] : llvm::enumerate(prediction.positions))
      for (const StepWindow &window : position.windows)
        json.object([&, position = static_cast<int64_t>(number)] {
          if (hasSeveral)
            json.attribute("position", position);
          json.attribute("name", window.name);
          json.attribute("seconds", window.seconds);
          json.attributeObject("busy_seconds", [&] {
            for (const auto &[stream, busy] : window.busySeconds)
              json.attribute(stream, busy);
          });
        });
  });
  BusiestStream busiest = prediction.getBusiestStream();
  json.attribute("bottleneck", busiest.name);
  if (hasSeveral)
    json.attribute("bottleneck_position", busiest.position);
}
