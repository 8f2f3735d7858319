// The user's settings of how a plan is made.
#ifndef WINDLASS_PIPELINE_PLANCHOICE_H
#define WINDLASS_PIPELINE_PLANCHOICE_H

#include "windlass/Cluster/Cluster.h"
#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/Dialect/Plan/Transforms/Offload.h"
#include "windlass/Planner/CutModel.h"
#include "windlass/Profile/Profile.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace windlass {

/// The settings of how a plan is made. Values that the user did not give are absent.
struct PlanChoice {
  /// The strategy: a named one, or "auto".
  std::string strategy = "auto";
  /// The pipeline, whose positions share the devices evenly; the strategy plans the ranks of each.
  planner::PipelineChoice pipeline;
  /// Whether the search chooses the number of positions too; `pipeline.positions` is then 1.
  bool searchesStages = false;
  /// What the host's memory holds from step to step.
  plan::Offload offload = plan::Offload::none;
  /// Whether the plan with the shortest simulated step is taken among those with each of them; `offload` is then none.
  bool searchesOffload = false;
  /// The pins, which the strategy may not change, PATTERN=VALUE (`Pins.h`).
  std::vector<std::string> pins;
  /// The configuration of the model whose sharding annotations are pins too; empty for none.
  std::string onnxPins;
  /// The bytes per device; 0: the device's memory in the cluster.
  int64_t memoryLimit = 0;
  int64_t getMemoryLimit() const { return memoryLimit ? memoryLimit : cluster.getDeviceMemoryBytes(); }
  /// The number of compute threads of a rank; 0: its part of this host's processors, as in programs.
  int64_t threads = 0;
  /// The number of threads of the search; it does not change the plan.
  int64_t searchThreads = std::max(1u, std::thread::hardware_concurrency());
  /// The number of operations that the search may spend on each mesh.
  int64_t searchWork = 200'000'000;
  /// The plan that the search begins with; null for none.
  std::shared_ptr<const plan::PlanFile> start;
  Cluster cluster;
  /// The number of ranks of each position.
  int64_t getPositionRanks() const { return cluster.getDevices() / pipeline.positions; }
  /// The measured times of the cluster's devices; null for the analytic model.
  std::shared_ptr<const Profile> profile;
  /// Whether products are computed with what follows them where a device's library can, unless the profile says that
  /// this is slower. It is false where the commands apart are of interest too, as they are for measuring.
  bool fusesEpilogues = true;
};

} // namespace windlass

#endif
