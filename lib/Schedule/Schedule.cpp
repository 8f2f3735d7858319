#include "windlass/Schedule/Schedule.h"

#include <algorithm>

using namespace windlass::schedule;

int64_t Schedule::getSlots(int64_t chunk) const {
  int64_t slots = 1;
  for (const Action &action : actions)
    if (action.chunk == chunk && action.kind != ActionKind::Reduce && action.kind != ActionKind::Update)
      slots = std::max(slots, action.slot + 1);
  return slots;
}

int64_t Schedule::getHandedSlots(int64_t chunk) const {
  int64_t slots = 1;
  for (const Action &action : actions)
    if (action.chunk == chunk)
      slots = std::max(slots, action.handedSlot + 1);
  return slots;
}
