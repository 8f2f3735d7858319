#include "windlass/Schedule/Schedule.h"

#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <map>
#include <set>

using namespace windlass::schedule;
using llvm::Twine;

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
      auto [before, isFirst] = last.try_emplace({action.kind, action.chunk}, &action);
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
    case ActionKind::InputGradient:
    case ActionKind::WeightGradient:
    case ActionKind::Send:
    case ActionKind::Receive:
      break;
    }
    schedule.actions.push_back(action);
  }

  Schedule schedule;
  std::map<int64_t, Chunk> chunks;
};

} // namespace

/// Whether a table has what only pipelines have, which `expandPipeline` expands.
static bool isOfPipeline(const ActionTable &table) {
  return llvm::any_of(table, [](const TableItem &item) {
    return item.kind > ActionKind::Update || item.microBatch >= 0 || isOfPipeline(item.body);
  });
}

llvm::Expected<Schedule> windlass::schedule::expand(const ActionTable &table) {
  if (isOfPipeline(table))
    return llvm::createStringError("has actions of a pipeline");
  Expander expander;
  if (!expander.run(table))
    return llvm::createStringError("has more than " + Twine(kMaxActions) + " actions");
  return expander.finish();
}
