// Where the experts of a mixture lie: replicas in the slots of GPUs, what makes such a placement legal, and the load of
// each GPU under it. Plain classes, no IR.
#ifndef WINDLASS_EXPERTS_PLACEMENT_H
#define WINDLASS_EXPERTS_PLACEMENT_H

#include <cstdint>
#include <string>
#include <vector>

namespace windlass::experts {

/// The experts of a layer and the slots that their replicas fill. All layers of a model have the same shape.
struct Shape {
  int32_t experts = 1;
  /// The slots of all GPUs together, each of which holds one replica of an expert.
  int32_t replicas = 1;
  /// The groups of consecutive experts, all of one size.
  int32_t groups = 1;
  int32_t nodes = 1;
  int32_t gpus = 1;

  int32_t getSlots() const { return replicas / gpus; }
  /// The nodes between which groups are divided. EPLB's rule: all experts of a group stay on one node, and each node
  /// has as many groups as every other. Where the number of nodes does not divide the number of groups, groups and
  /// nodes do not matter.
  int32_t getDomains() const { return groups % nodes == 0 ? nodes : 1; }
};

/// The largest numbers of a shape.
constexpr int32_t kMostExperts = 1 << 14, kMostReplicas = 1 << 16;

/// Returns one line on what is wrong with a shape, or nothing.
std::string checkShape(const Shape &shape);

/// The expert in each slot. GPU g has the slots from g * slots on; node n has the GPUs from n * gpus / nodes on.
using Placement = std::vector<int32_t>;

/// Returns one line on what is wrong with a placement for a shape that is right, or nothing: it fills all slots, each
/// expert has a replica, and the groups lie on nodes as `Shape` says.
std::string checkPlacement(const Shape &shape, const Placement &placement);

/// Returns the number of replicas of each expert.
std::vector<int32_t> countReplicas(const Placement &placement, int32_t experts);

/// Returns the load of each GPU, for the load of each expert. The replicas of an expert share its load equally.
std::vector<double> computeGpuLoads(const Placement &placement, const std::vector<double> &loads, int32_t gpus);

/// Returns the number of replicas that a GPU has under `after` and had not under `before`, over all GPUs: the experts'
/// weights that have to be copied. Which slot of its GPU a replica takes does not matter.
int32_t countMoved(const Placement &before, const Placement &after, int32_t gpus);

} // namespace windlass::experts

#endif
