// The report of `windlass plan`: one set of facts, printed as text or JSON.
#ifndef WINDLASS_EXPLAIN_PLANREPORT_H
#define WINDLASS_EXPLAIN_PLANREPORT_H

#include "windlass/Explain/PlanTable.h"
#include "windlass/Explain/StepWork.h"
#include "windlass/Pipeline/Compile.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace windlass {

/// The bytes of the device arena by content.
struct ArenaBytes {
  int64_t parameters = 0, gradients = 0, state = 0, inputs = 0, other = 0, arena = 0, largestLiveSet = 0;
  /// The bytes of the host's memory that a rank's arena takes, and those of master copies, of state, of accumulated
  /// gradients, of weights that operators read and of hyperparameters among them.
  int64_t host = 0, hostMasters = 0, hostState = 0, hostGradients = 0, hostWeights = 0, hostOther = 0;
  /// The bytes of the host's disk that a rank's arena takes: master copies and state.
  int64_t disk = 0;
};

/// The moment at which the most bytes live in the arena, and the largest groups of values that live then besides
/// parameters, gradients, state and inputs.
struct PeakFacts {
  struct Live {
    std::string of;
    int64_t count = 0, bytes = 0;
  };
  /// The operator that runs at that moment.
  std::string at;
  std::vector<Live> live;
};

/// The pipeline of a plan with several stages.
struct PipelineFacts {
  int64_t stages = 1;
  std::string schedule;
  /// The stage whose devices need the most memory, which is the one reported.
  int64_t largestStage = 0;
};

struct PlanReport {
  /// The file of the model.
  std::string model;
  Cluster cluster;
  int64_t ranks = 1, microBatches = 1, replicas = 1;
  bool averagesTokens = false;
  /// The mesh axes with their sizes.
  std::vector<std::pair<std::string, int64_t>> mesh;
  /// None for a plan of one stage.
  std::optional<PipelineFacts> pipeline;
  ArenaBytes memory;
  rt::reserve reserve;
  /// The bytes that a device may use.
  int64_t memoryLimit = 0;
  PeakFacts peak;
  RecomputeReport recompute;
  bool hasDroppedPrefetch = false;
  StepPrediction prediction;
  StepWork work;
  /// The peak FLOPs per second of all devices, where they are known.
  std::optional<double> peakFlops;
  /// The summary of the compilation's search; null for a named strategy.
  const SearchSummary *search = nullptr;
  /// What the host might hold from step to step, where that was searched.
  llvm::ArrayRef<OffloadTry> offloads;
  /// How many micro-batches are computed as one, and the numbers that were tried where that was searched.
  int64_t merge = 1;
  llvm::ArrayRef<MergeTry> merges;
  /// The operators and how they are split; none for a mesh of one rank.
  std::vector<PlanRow> rows;

  double getTokensPerSecond() const;
  /// Returns which of `offloads` the plan has; at least one of them fits.
  plan::Offload getOffload() const;
  /// Returns the share of the peak that the step's FLOPs reach; nothing where the peak or the time is not known.
  std::optional<double> getPeakShare() const;
};

/// Gathers the facts of a compilation whose plan has been scheduled, and which outlives the report.
PlanReport describePlan(Compilation &compilation, llvm::StringRef model, const CompileSettings &settings,
                        const PlanChoice &choice);

/// Prints the report as lines; `showsModel` adds costs, bound and named strategies in the search's model.
void printText(const PlanReport &report, bool showsModel, llvm::raw_ostream &out);

/// Prints the report as one JSON object.
void printJson(const PlanReport &report, llvm::raw_ostream &out);

} // namespace windlass

#endif
