#include "windlass/Schedule/Schedule.h"

#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <map>
#include <set>

using namespace windlass::schedule;
using llvm::Twine;

/// The longest run of actions that `compress` looks for again.
static constexpr size_t kMaxPeriod = 64;

/// The kind under which first and last actions are counted.
static ActionKind getCountedKind(ActionKind kind) {
  return kind == ActionKind::BackwardReduce ? ActionKind::Backward : kind;
}

int64_t Schedule::getSlots() const {
  int64_t slots = 0;
  for (const Action &action : actions)
    slots = std::max(slots, action.slot + 1);
  return slots;
}

namespace {

class Expander {
public:
  /// Whether the limit allows all of the items.
  bool run(const ActionTable &table) {
    for (const TableItem &item : table) {
      if (item.isRepeat()) {
        for (int64_t turn = 0; turn < item.count; ++turn)
          if (!run(item.body))
            return false;
      } else if (schedule.actions.size() == kMaxActions) {
        return false;
      } else {
        add(item);
      }
    }
    return true;
  }

  Schedule finish() {
    std::map<std::pair<ActionKind, int64_t>, Action *> last;
    for (Action &action : schedule.actions) {
      auto [before, isFirst] = last.try_emplace({getCountedKind(action.kind), action.chunk}, &action);
      action.isFirst = isFirst;
      if (!isFirst)
        before->second->isLast = false;
      before->second = &action;
    }
    return std::move(schedule);
  }

private:
  struct Chunk {
    /// Of each micro-batch whose forward has run.
    std::vector<int64_t> slots;
    /// Those of micro-batches whose backward has run; all slots from `used` on are free too.
    std::set<int64_t> freed;
    int64_t used = 0, backwards = 0;
  };

  void add(const TableItem &item) {
    Chunk &chunk = chunks[item.chunk];
    Action action;
    action.kind = item.kind;
    action.chunk = item.chunk;
    switch (item.kind) {
    case ActionKind::Forward:
      action.microBatch = chunk.slots.size();
      if (chunk.freed.empty()) {
        action.slot = chunk.used++;
      } else {
        action.slot = *chunk.freed.begin();
        chunk.freed.erase(chunk.freed.begin());
      }
      chunk.slots.push_back(action.slot);
      break;
    case ActionKind::Backward:
    case ActionKind::BackwardReduce:
      action.microBatch = chunk.backwards++;
      // A backward without a forward is for the checker to find.
      if (action.microBatch < static_cast<int64_t>(chunk.slots.size())) {
        action.slot = chunk.slots[action.microBatch];
        chunk.freed.insert(action.slot);
      }
      break;
    case ActionKind::Reduce:
      action.microBatch = std::max<int64_t>(0, chunk.backwards - 1);
      break;
    case ActionKind::Update:
      break;
    }
    schedule.actions.push_back(action);
  }

  Schedule schedule;
  std::map<int64_t, Chunk> chunks;
};

} // namespace

llvm::Expected<Schedule> windlass::schedule::expand(const ActionTable &table) {
  Expander expander;
  if (!expander.run(table))
    return llvm::createStringError("has more than " + Twine(kMaxActions) + " actions");
  return expander.finish();
}

ActionTable windlass::schedule::compress(const Schedule &schedule) {
  const std::vector<Action> &actions = schedule.actions;
  auto isSame = [&](size_t a, size_t b) {
    return actions[a].kind == actions[b].kind && actions[a].chunk == actions[b].chunk;
  };
  auto makeItem = [&](size_t index) {
    TableItem item;
    item.kind = actions[index].kind;
    item.chunk = actions[index].chunk;
    return item;
  };
  ActionTable table;
  for (size_t begin = 0; begin < actions.size();) {
    // The period that saves the most rows: a repeat takes a row for itself and one for each action of its body.
    size_t bestPeriod = 0, bestTurns = 1, bestSaved = 0;
    for (size_t period = 1; period <= std::min(kMaxPeriod, (actions.size() - begin) / 2); ++period) {
      size_t end = begin + period;
      while (end < actions.size() && isSame(end, end - period))
        ++end;
      size_t turns = (end - begin) / period;
      if (turns < 2 || (turns - 1) * period - 1 <= bestSaved)
        continue;
      bestPeriod = period;
      bestTurns = turns;
      bestSaved = (turns - 1) * period - 1;
    }
    if (bestPeriod == 0) {
      table.push_back(makeItem(begin++));
      continue;
    }
    TableItem repeat;
    repeat.count = bestTurns;
    for (size_t i = begin; i < begin + bestPeriod; ++i)
      repeat.body.push_back(makeItem(i));
    table.push_back(std::move(repeat));
    begin += bestTurns * bestPeriod;
  }
  return table;
}

void windlass::schedule::joinLastBackward(Schedule &schedule) {
  for (Action &action : schedule.actions)
    if (action.kind == ActionKind::Backward && action.isLast)
      action.kind = ActionKind::BackwardReduce;
  llvm::erase_if(schedule.actions, [](const Action &action) { return action.kind == ActionKind::Reduce; });
}
