#include "windlass/Cluster/GroupShape.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace windlass;

GroupShape GroupShape::ofNeighbours(int64_t members) {
  GroupShape shape;
  shape.axes.push_back({1, members});
  return shape;
}

int64_t GroupShape::getMembers() const {
  int64_t members = 1;
  for (const Axis &axis : axes)
    members *= axis.size;
  return members;
}

int64_t GroupShape::getMembersWithin(int64_t devices) const {
  int64_t members = 1;
  for (const Axis &axis : axes)
    members *= std::clamp<int64_t>(llvm::divideCeil(devices, axis.stride), 1, axis.size);
  return members;
}

int64_t GroupShape::getSpan() const { return axes.empty() ? 1 : axes.back().stride * axes.back().size; }
