// Finds where the experts of a layer lie, with how many replicas, so that the largest load of a GPU is small.
#ifndef WINDLASS_EXPERTS_PLACEEXPERTS_H
#define WINDLASS_EXPERTS_PLACEEXPERTS_H

#include "windlass/Experts/Placement.h"

namespace windlass::experts {

/// The steps that may be spent on a layer, of a few nanoseconds each. The answer depends on them and not on time.
struct PlaceLimits {
  /// The steps of local search.
  int64_t exploreSteps = 10'000'000;
  /// The steps of the search that tries everything, where there are few replicas.
  int64_t exactSteps = 10'000'000;
  /// The steps of the search for a placement that moves little, of about ten nanoseconds each.
  int64_t repairSteps = 2'000'000;
};

/// Returns the limits of each layer where there are `layers` of them: from 100 layers on the layers share the
/// steps of 100, so that a file of many layers takes a bounded time.
PlaceLimits shareLimits(int64_t layers);

struct LayerAnswer {
  Placement placement;
  /// The largest load of a GPU.
  double load = 0;
  /// The lower bound: under every placement of the shape some GPU has at least this load. It equals `load` where the
  /// placement is proven optimal: no other is better by more than a part of 1e-9, which rounding may hide.
  double bound = 0;

  bool isOptimal() const { return bound >= load; }
};

/// Places the experts of a layer. The shape is right, and loads are finite and not negative.
LayerAnswer placeLayer(const Shape &shape, const std::vector<double> &loads, const PlaceLimits &limits = {});

struct ReplanAnswer : LayerAnswer {
  /// The largest load where nothing moves.
  double loadBefore = 0;
  /// The replicas that move, as `countMoved` counts them.
  int32_t moved = 0;
};

/// Places the experts of a layer that lie under `before`, which is a placement of the shape. The largest load is at
/// most 1 + `tolerance` times what `placeLayer` finds; as few replicas move as a search finds to suffice for that.
ReplanAnswer replanLayer(const Shape &shape, const std::vector<double> &loads, const Placement &before,
                         double tolerance, const PlaceLimits &limits = {});

} // namespace windlass::experts

#endif
