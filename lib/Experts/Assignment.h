// A placement that changes replica by replica, with the loads that follow.
#ifndef WINDLASS_LIB_EXPERTS_ASSIGNMENT_H
#define WINDLASS_LIB_EXPERTS_ASSIGNMENT_H

#include "FlatProblem.h"

namespace windlass::experts {

/// The load that a GPU would have.
struct GpuLoad {
  int32_t gpu;
  double load;
};

class Assignment {
public:
  Assignment(const FlatProblem &problem, Placement placement) : problem(problem), delta(problem.gpus, 0) {
    assign(std::move(placement));
  }

  void assign(Placement placement);
  const Placement &getPlacement() const { return experts; }

  int32_t getExpert(int32_t slot) const { return experts[slot]; }
  int32_t getGpu(int32_t slot) const { return gpuOf[slot]; }
  /// The load of the replica in a slot.
  double getSize(int32_t slot) const { return sizes[slot]; }
  const double *getSizes() const { return sizes.data(); }
  int32_t getCount(int32_t expert) const { return static_cast<int32_t>(slotsOf[expert].size()); }
  const std::vector<int32_t> &getSlotsOf(int32_t expert) const { return slotsOf[expert]; }
  double getLoad(int32_t gpu) const { return loads[gpu]; }
  /// Returns the GPU with the largest load, the first of several.
  int32_t findLargest() const {
    return static_cast<int32_t>(std::max_element(loads.begin(), loads.end()) - loads.begin());
  }
  double getLargestLoad() const { return loads[findLargest()]; }

  /// Exchanges what two slots hold.
  void swap(int32_t slot, int32_t other);
  /// Puts a further replica of `expert` where a slot holds one of an expert with several.
  void replace(int32_t slot, int32_t expert);
  /// Returns the GPUs whose load `replace` would change, valid until the next call. Both experts differ.
  const std::vector<GpuLoad> &previewReplace(int32_t slot, int32_t expert);

private:
  void resize(int32_t expert);
  void sum(int32_t gpu);

  const FlatProblem &problem;
  Placement experts;
  std::vector<int32_t> gpuOf;
  std::vector<double> sizes, loads;
  std::vector<std::vector<int32_t>> slotsOf;
  // Of the preview: the change of each GPU's load, 0 between calls.
  std::vector<double> delta;
  std::vector<GpuLoad> changed;
};

} // namespace windlass::experts

#endif
