// Small cells of every kind, and all their placements.
#ifndef WINDLASS_UNITTESTS_EXPERTS_SMALLCELLS_H
#define WINDLASS_UNITTESTS_EXPERTS_SMALLCELLS_H

#include "windlass/Experts/PlaceExperts.h"

#include <algorithm>
#include <functional>
#include <random>

namespace windlass::experts {

struct Cell {
  Shape shape;
  std::vector<double> loads;
};

inline double largestLoad(const Cell &cell, const Placement &placement) {
  std::vector<double> loads = computeGpuLoads(placement, cell.loads, cell.shape.gpus);
  return *std::max_element(loads.begin(), loads.end());
}

/// Draws loads: equal ones, few different ones, fractions, or one that is far larger than the rest.
inline std::vector<double> drawLoads(std::mt19937_64 &random, int32_t experts) {
  std::vector<double> loads;
  uint64_t kind = random() % 4;
  for (int32_t expert = 0; expert < experts; ++expert)
    loads.push_back(kind == 0   ? double(random() % 4)
                    : kind == 1 ? double(1 + random() % 100)
                                : double(random() % 1000) / 7);
  if (kind == 3)
    loads[random() % experts] *= 20;
  return loads;
}

/// Draws a cell of at most 5 experts, in every third of which groups lie on two nodes.
inline Cell drawCell(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t count) { return static_cast<int32_t>(random() % count); };
  Cell cell;
  Shape &shape = cell.shape;
  if (seed % 3 == 0) {
    shape.nodes = 2;
    shape.groups = 2 + 2 * below(2);
    shape.experts = 4;
    shape.gpus = 2 + 2 * below(2);
    shape.replicas = shape.gpus * (4 / shape.gpus + below(2));
  } else {
    shape.gpus = 1 + below(4);
    shape.replicas = shape.gpus * (1 + below(3));
    shape.experts = std::min(1 + below(5), shape.replicas);
  }
  cell.loads = drawLoads(random, shape.experts);
  return cell;
}

/// Calls `visit` with every placement of a shape. The order inside of a GPU does not matter and ascends.
inline void visitPlacements(const Shape &shape, const std::function<void(const Placement &)> &visit) {
  Placement placement(shape.replicas, 0);
  std::function<void(int32_t)> fill = [&](int32_t slot) {
    if (slot == shape.replicas) {
      if (checkPlacement(shape, placement).empty())
        visit(placement);
      return;
    }
    int32_t first = slot % shape.getSlots() ? placement[slot - 1] : 0;
    for (int32_t expert = first; expert < shape.experts; ++expert) {
      placement[slot] = expert;
      fill(slot + 1);
    }
  };
  fill(0);
}

} // namespace windlass::experts

#endif
