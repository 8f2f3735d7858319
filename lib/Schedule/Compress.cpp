#include "windlass/Schedule/Schedule.h"

#include <map>
#include <tuple>

using namespace windlass::schedule;

/// The longest run of actions that is looked for again.
static constexpr size_t kMaxPeriod = 64;

/// Whether actions of the kind are of a micro-batch, which tables count.
static bool hasMicroBatch(ActionKind kind) { return kind != ActionKind::Reduce && kind != ActionKind::Update; }

/// The actions as items, each with its micro-batch where it is not the next one of its kind and chunks.
static std::vector<TableItem> makeItems(const Schedule &schedule) {
  std::map<std::tuple<ActionKind, int64_t, int64_t>, int64_t> next;
  std::vector<TableItem> items;
  for (const Action &action : schedule.actions) {
    TableItem &item = items.emplace_back();
    item.kind = action.kind;
    item.chunk = action.chunk;
    item.peerChunk = action.peerChunk;
    if (!hasMicroBatch(action.kind))
      continue;
    // The two forms of a last backward are counted as one kind.
    ActionKind counted = action.kind == ActionKind::BackwardReduce ? ActionKind::Backward : action.kind;
    int64_t &expected = next[{counted, action.chunk, action.peerChunk}];
    if (action.microBatch != expected)
      item.microBatch = action.microBatch;
    expected = action.microBatch + 1;
  }
  return items;
}

ActionTable windlass::schedule::compress(const Schedule &schedule) {
  std::vector<TableItem> items = makeItems(schedule);
  auto isSame = [&](size_t a, size_t b) { return items[a] == items[b]; };
  ActionTable table;
  for (size_t begin = 0; begin < items.size();) {
    // The period that saves the most rows: a repeat takes a row for itself and one for each action of its body.
    size_t bestPeriod = 0, bestTurns = 1, bestSaved = 0;
    for (size_t period = 1; period <= std::min(kMaxPeriod, (items.size() - begin) / 2); ++period) {
      size_t end = begin + period;
      while (end < items.size() && isSame(end, end - period))
        ++end;
      size_t turns = (end - begin) / period;
      if (turns < 2 || (turns - 1) * period - 1 <= bestSaved)
        continue;
      bestPeriod = period;
      bestTurns = turns;
      bestSaved = (turns - 1) * period - 1;
    }
    if (bestPeriod == 0) {
      table.push_back(std::move(items[begin++]));
      continue;
    }
    TableItem repeat;
    repeat.count = bestTurns;
    repeat.body.assign(items.begin() + begin, items.begin() + begin + bestPeriod);
    table.push_back(std::move(repeat));
    begin += bestTurns * bestPeriod;
  }
  return table;
}
