// Times of chunks as people give them, and as whole ticks. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_TIMESFILE_H
#define WINDLASS_SCHEDULE_TIMESFILE_H

#include "windlass/Schedule/PipelineTiming.h"

namespace windlass::schedule {

/// Times in any unit.
struct TimesInUnits {
  /// The times of each chunk of the model, or one number that all chunks have.
  std::vector<double> forward, inputGradient, weightGradient;
  double hop = 0;
  /// A number whose inverse divides the times of chunks, so that thirds of a unit are whole ticks too.
  int64_t denominator = 1;
};

/// The largest time that a user may give.
constexpr int64_t kMaxUnits = 1'000'000'000;

/// Returns the times where a forward, an input gradient and a weight gradient of all chunks of a position (of one
/// direction) take one unit each, as most papers count.
TimesInUnits makeEqualTimes(const Placement &placement);

/// Reads an object with `forward`, `input_gradient` and `weight_gradient`, each a number or a list of one number for
/// each chunk of the model, and `hop`, which may be left out. Fails with one line that names the file and the key.
llvm::Expected<TimesInUnits> readTimes(llvm::StringRef path);

struct ScaledTimes {
  PipelineTimes times;
  double ticksPerUnit = 1;
};

/// Turns times into ticks; the largest one takes more than 10^9 of them. Both chains of a bidirectional placement have
/// the same times. Fails where a list is not as long as the model has chunks.
llvm::Expected<ScaledTimes> scaleTimes(const Placement &placement, const TimesInUnits &times);

} // namespace windlass::schedule

#endif
