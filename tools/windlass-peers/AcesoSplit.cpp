#include "AcesoSplit.h"

using namespace windlass;
using namespace windlass::peers;

static constexpr double kNever = std::numeric_limits<double>::infinity();

int SplitFinder::getSides(size_t used, size_t own) const {
  size_t before = gpus - used, node = problem.gpusPerNode;
  return (before > 0 && before % node == 0 ? 1 : 0) | ((before + own) % node == 0 ? 2 : 0);
}

/// Returns whether a stage begins inside a node and ends in another one. The rules charge nothing for that, but no one
/// would want it.
bool SplitFinder::straddlesNodes(size_t used, size_t own) const {
  size_t before = gpus - used, node = problem.gpusPerNode;
  return before % node != 0 && before / node != (before + own - 1) / node;
}

/// Tries the stages of a table that begin at `first`, with the best splits of what is behind them.
void SplitFinder::extend(size_t after, size_t used, size_t first, size_t tableIndex, double cap, Objective objective) {
  const StageTable &table = tables[tableIndex];
  size_t own = table.getGpus(), index = getIndex(after, used, first);
  int sides = getSides(used, own);
  Interval ends = after == 0 ? Interval{count, count + 1} : known[getRow(after - 1, used - own)];
  ends.end = std::min(ends.end, table.getLastEnd(first) + 1);
  for (size_t end = std::max(first + 1, ends.begin); end < ends.end; ++end) {
    int32_t node = table.find(first, end);
    if (node < 0)
      continue;
    double rest = after == 0 ? 0 : values[getIndex(after - 1, used - own, end)];
    if (rest == kNever)
      continue;
    double time = table.getTime(node, static_cast<int64_t>(after), sides);
    double value = objective == Objective::Sum ? time + rest : std::max(time, rest);
    if (time > cap || value >= values[index])
      continue;
    values[index] = value;
    choices[index] = {static_cast<uint32_t>(tableIndex), static_cast<uint32_t>(end)};
  }
}

std::vector<Place> SplitFinder::trace(size_t after) const {
  std::vector<Place> places;
  for (size_t first = 0, used = gpus; first < count; --after) {
    Choice choice = choices[getIndex(after, used, first)];
    size_t own = tables[choice.table].getGpus();
    places.push_back({choice.table, first, choice.end, static_cast<int64_t>(after), getSides(used, own)});
    used -= own;
    first = choice.end;
  }
  return places;
}

std::vector<Place> SplitFinder::find(double cap, Objective objective) {
  values.assign(gpus * (gpus + 1) * (count + 1), kNever);
  choices.resize(values.size());
  known.assign(gpus * (gpus + 1), Interval{count, 0});
  size_t best = 0;
  for (size_t after = 0; after < gpus; ++after) {
    for (size_t used = after + 1; used <= gpus; ++used) {
      // Whatever comes before and after must have enough GPUs, but for rounding.
      double mostBefore = cap * (1 + 1e-9) * static_cast<double>(gpus - used),
             mostBehind = cap * (1 + 1e-9) * static_cast<double>(used);
      Interval &own = known[getRow(after, used)];
      for (size_t first = 0; first < count && work[first] <= mostBefore; ++first) {
        if ((used == gpus) != (first == 0) || work.back() - work[first] > mostBehind)
          continue;
        for (size_t table = 0; table < tables.size(); ++table) {
          size_t gpusOfStage = tables[table].getGpus();
          bool isPossible = after == 0 ? gpusOfStage == used : gpusOfStage + after <= used;
          if (isPossible && !straddlesNodes(used, gpusOfStage))
            extend(after, used, first, table, cap, objective);
        }
        if (values[getIndex(after, used, first)] < kNever)
          own = {std::min(own.begin, first), first + 1};
      }
    }
    if (values[getIndex(after, gpus, 0)] < values[getIndex(best, gpus, 0)])
      best = after;
  }
  return values[getIndex(best, gpus, 0)] < kNever ? trace(best) : std::vector<Place>();
}
