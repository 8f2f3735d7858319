#include "windlass/Explain/PredictionText.h"

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
  for (const StepWindow &window : prediction.windows) {
    text += &window == &prediction.windows.front() ? "windows    " : "           ";
    text += window.name + " " + secondsText(window.seconds);
    separator = ": ";
    for (const auto &[stream, busy] : window.busySeconds) {
      text += separator + stream + " " + secondsText(busy);
      separator = ", ";
    }
    text += "\n";
  }
  auto [stream, busy] = prediction.getBusiestStream();
  if (busy > 0)
    text += llvm::formatv("bottleneck {0}, busy {1:f1} % of the step\n", stream, 100 * busy / prediction.seconds);
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
  json.attributeArray("windows", [&] {
    for (const StepWindow &window : prediction.windows)
      json.object([&] {
        json.attribute("name", window.name);
        json.attribute("seconds", window.seconds);
        json.attributeObject("busy_seconds", [&] {
          for (const auto &[stream, busy] : window.busySeconds)
            json.attribute(stream, busy);
        });
      });
  });
  json.attribute("bottleneck", prediction.getBusiestStream().first);
}
