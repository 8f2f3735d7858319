// What a picture of a step shows: which stream runs what when.
#ifndef WINDLASS_EXPLAIN_STEPPICTURES_H
#define WINDLASS_EXPLAIN_STEPPICTURES_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Simulator/PredictStep.h"

#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace windlass {

/// What a stream is busy with.
enum class Occupation { forward, backward, update, collective, copy, message };
constexpr size_t kOccupations = 6;
/// Returns the names of all occupations, in their order.
llvm::ArrayRef<const char *> getOccupationNames();

/// The course of one stream over the step, in `StepTimeline::kColumns` equal parts.
struct TimelineLane {
  std::string name;
  /// For each part, the seconds for which the stream is busy with each occupation.
  std::vector<std::array<double, kOccupations>> columns;
};

/// Gathers what the streams of all positions do in a step whose length is known.
class StepTimeline {
public:
  static constexpr size_t kColumns = 1440;

  /// Takes the module at L5 that is simulated, and its prediction.
  StepTimeline(mlir::ModuleOp module, const StepPrediction &prediction);
  /// Adds a command that has run.
  void add(const SimulatedCommand &command);
  /// Returns the lanes, by position and stream.
  std::vector<TimelineLane> getLanes() const;
  /// Whether equal micro-batches were simulated once, so that their times are missing.
  bool leavesRepeatsOut() const;

private:
  mlir::ModuleOp module;
  const StepPrediction &prediction;
  double busySeconds = 0;
  struct Stream {
    TimelineLane lane;
    /// Whether it copies between memories.
    bool copies = false;
  };
  /// By position and number.
  std::map<std::pair<int64_t, int64_t>, Stream> streams;

  Stream makeStream(const SimulatedCommand &command) const;
};

} // namespace windlass

#endif
