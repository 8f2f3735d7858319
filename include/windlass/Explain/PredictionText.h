// The predicted time of a step as text and as JSON.
#ifndef WINDLASS_EXPLAIN_PREDICTIONTEXT_H
#define WINDLASS_EXPLAIN_PREDICTIONTEXT_H

#include "windlass/Simulator/PredictStep.h"

#include "llvm/Support/JSON.h"

#include <string>

namespace windlass {

/// Returns a text such as "1.250 s", or "12.500 ms" below a second.
std::string secondsText(double seconds);
/// Returns a line such as "time 120.000 ms per step, give or take 10.000 ms: 90 % of the costs measured, 10 % fitted",
/// and lines of the step's windows; of several positions each has lines of its own, the first of which says for how
/// long it is busy and idle. An error that nobody has measured is called "uncalibrated".
std::string timeText(const StepPrediction &prediction);
/// Writes the same facts as attributes of a JSON object. Only where there are several positions, `positions` says of
/// each how long it and its streams are busy and which share of the step is its bubble, and windows have their
/// position.
void writePrediction(llvm::json::OStream &json, const StepPrediction &prediction);

} // namespace windlass

#endif
