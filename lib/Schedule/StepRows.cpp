#include "windlass/Schedule/FindRepeat.h"
#include "windlass/Schedule/Schedule.h"

using namespace windlass::schedule;

std::vector<StepRow> windlass::schedule::makeRows(const Schedule &schedule) {
  const std::vector<Action> &actions = schedule.actions;
  auto isLike = [&](const Action &a, const Action &b) {
    return a.kind == b.kind && a.chunk == b.chunk && a.peerChunk == b.peerChunk && a.slot == b.slot && a.handedSlot == b.handedSlot &&
           a.isFirst == b.isFirst && a.isLast == b.isLast;
  };
  std::vector<StepRow> rows;
  for (size_t begin = 0; begin < actions.size();) {
    Repeat found = findRepeat(begin, actions.size(), [&](size_t i, size_t period) {
      const Action &before = actions[i - period];
      return isLike(actions[i], before) &&
             (i < begin + 2 * period ||
              actions[i].microBatch - before.microBatch == before.microBatch - actions[i - 2 * period].microBatch);
    });
    if (found.turns > 1) {
      StepRow repeat;
      repeat.count = found.turns;
      repeat.length = found.period;
      rows.push_back(repeat);
    }
    for (size_t i = begin; i < begin + found.period; ++i) {
      StepRow row;
      row.action = actions[i];
      if (found.turns > 1)
        row.perTurn = actions[i + found.period].microBatch - actions[i].microBatch;
      rows.push_back(row);
    }
    begin += found.turns * found.period;
  }
  return rows;
}
