#include "windlass/Schedule/FindRepeat.h"
#include "windlass/Schedule/Schedule.h"

#include <map>
#include <tuple>

using namespace windlass::schedule;

/// Returns whether actions of the kind belong to a micro-batch, which tables count.
static bool hasMicroBatch(ActionKind kind) { return kind != ActionKind::Reduce && kind != ActionKind::Update; }

/// Returns the actions as items, each with its micro-batch where that is not the next one of the item's kind and
/// chunks.
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
    int64_t &expected = next[{action.kind, action.chunk, action.peerChunk}];
    if (action.microBatch != expected)
      item.microBatch = action.microBatch;
    expected = action.microBatch + 1;
  }
  return items;
}

ActionTable windlass::schedule::compress(const Schedule &schedule) {
  std::vector<TableItem> items = makeItems(schedule);
  ActionTable table;
  for (size_t begin = 0; begin < items.size();) {
    Repeat found =
        findRepeat(begin, items.size(), [&](size_t i, size_t period) { return items[i] == items[i - period]; });
    if (found.turns == 1) {
      table.push_back(std::move(items[begin++]));
      continue;
    }
    TableItem repeat;
    repeat.count = found.turns;
    repeat.body.assign(items.begin() + begin, items.begin() + begin + found.period);
    table.push_back(std::move(repeat));
    begin += found.turns * found.period;
  }
  return table;
}
