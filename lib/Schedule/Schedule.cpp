#include "windlass/Schedule/Schedule.h"

#include <algorithm>

using namespace windlass::schedule;

int64_t Schedule::getSlots() const {
  int64_t slots = 0;
  for (const Action &action : actions)
    slots = std::max(slots, action.slot + 1);
  return slots;
}
