#include "SlotEvents.h"

using namespace windlass;
using schedule::ActionKind;

int64_t SlotEvents::getEvent(int64_t chunk, int64_t peer) {
  auto [found, isNew] = numbers.try_emplace({chunk, peer}, first + static_cast<int64_t>(records.size()));
  if (isNew)
    records.push_back(0);
  return found->second;
}

SlotEvents::Waits SlotEvents::follow(const schedule::Action &action) {
  Waits waits;
  if (action.kind == ActionKind::Reduce || action.kind == ActionKind::Update)
    return waits;
  Slot &slot = slots[{action.chunk, action.slot}];
  int64_t computed = getComputed(action.chunk);
  if (schedule::isTransfer(action.kind)) {
    if (slot.computed >= 0)
      waits.push_back(waitFor(computed, slot.computed));
    int64_t moved = getMoved(action.chunk, action.peer);
    slot.moved[moved] = record(moved);
    return waits;
  }
  slot.computed = record(computed);
  if (action.kind == ActionKind::WeightGradient)
    return waits;
  for (auto [event, number] : slot.moved)
    waits.push_back(waitFor(event, number));
  slot.moved.clear();
  return waits;
}
