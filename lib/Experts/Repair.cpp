#include "Repair.h"

#include <cmath>
#include <limits>
#include <tuple>

using namespace windlass;
using namespace windlass::experts;

namespace {

/// Counts the replicas that a GPU has and had not before, while the placement changes.
class MoveCounter {
public:
  MoveCounter(const FlatProblem &problem, const Placement &before)
      : problem(problem), before(before), surplus(before.size()), lost(problem.gpus), movedOf(problem.gpus, 0) {}

  void update(const Assignment &state) {
    for (int32_t gpu = 0; gpu < problem.gpus; ++gpu)
      update(state, gpu);
  }
  void update(const Assignment &state, int32_t gpu) {
    int32_t begin = gpu * problem.slots, end = begin + problem.slots;
    const Placement &after = state.getPlacement();
    std::vector<int32_t> was(before.begin() + begin, before.begin() + end), added;
    std::vector<int32_t> is(after.begin() + begin, after.begin() + end);
    std::sort(was.begin(), was.end());
    std::sort(is.begin(), is.end());
    lost[gpu].clear();
    std::set_difference(was.begin(), was.end(), is.begin(), is.end(), std::back_inserter(lost[gpu]));
    std::set_difference(is.begin(), is.end(), was.begin(), was.end(), std::back_inserter(added));
    for (int32_t slot = begin; slot < end; ++slot)
      surplus[slot] = std::binary_search(added.begin(), added.end(), after[slot]);
    moved += static_cast<int32_t>(added.size()) - movedOf[gpu];
    movedOf[gpu] = static_cast<int32_t>(added.size());
  }
  int32_t getMoved() const { return moved; }
  int32_t getMoved(int32_t gpu) const { return movedOf[gpu]; }
  /// Returns how many more replicas are moved when a slot takes another expert, which is not the one it has.
  int32_t preview(int32_t slot, int32_t expert) const {
    const std::vector<int32_t> &left = lost[slot / problem.slots];
    return !std::binary_search(left.begin(), left.end(), expert) - surplus[slot];
  }

private:
  const FlatProblem &problem;
  const Placement &before;
  /// Whether the GPU of a slot has more replicas of the slot's expert than before.
  std::vector<char> surplus;
  /// The experts of replicas that each GPU had and has no longer, sorted.
  std::vector<std::vector<int32_t>> lost;
  std::vector<int32_t> movedOf;
  int32_t moved = 0;
};

/// A change of a placement: one slot takes a further replica of an expert, or two exchange theirs.
struct Step {
  int32_t slot = -1, other = -1, expert = -1;
};

class Repairer {
public:
  Repairer(const FlatProblem &problem, const Placement &before, Placement start, double limit, WorkBudget &budget)
      : problem(problem), before(before), limit(limit), budget(budget), state(problem, std::move(start)),
        counter(problem, before) {
    counter.update(state);
  }

  /// Takes the steps that bring most for each replica that moves until no GPU is above the limit. The number of
  /// replicas counts with the power `weight`: many small steps or few large ones. Returns whether it comes to that.
  bool reduce(double weight);
  /// Takes steps after which fewer replicas are moved and no GPU is above the limit.
  void undo();

  int32_t getMoved() const { return counter.getMoved(); }
  const Placement &getPlacement() const { return state.getPlacement(); }

private:
  double above(double load) const { return std::max(0.0, load - limit); }
  /// Returns by how much a step makes the loads above the limit smaller.
  double previewGain(const Step &step);
  int32_t previewMoved(const Step &step) const;
  void take(const Step &step);
  bool undoGpu(int32_t gpu);
  /// Takes a step unless a GPU would be above the limit or no fewer replicas moved.
  bool tryUndo(const Step &step);

  const FlatProblem &problem;
  const Placement &before;
  double limit;
  WorkBudget &budget;
  Assignment state;
  MoveCounter counter;
};

} // namespace

double Repairer::previewGain(const Step &step) {
  if (step.expert >= 0) {
    double gain = 0;
    for (const GpuLoad &each : state.previewReplace(step.slot, step.expert))
      gain += above(state.getLoad(each.gpu)) - above(each.load);
    return gain;
  }
  double first = state.getLoad(state.getGpu(step.slot)), second = state.getLoad(state.getGpu(step.other));
  double change = state.getSize(step.slot) - state.getSize(step.other);
  return above(first) - above(first - change) + above(second) - above(second + change);
}

int32_t Repairer::previewMoved(const Step &step) const {
  if (step.expert >= 0)
    return counter.preview(step.slot, step.expert);
  return counter.preview(step.slot, state.getExpert(step.other)) +
         counter.preview(step.other, state.getExpert(step.slot));
}

void Repairer::take(const Step &step) {
  if (step.expert >= 0)
    state.replace(step.slot, step.expert);
  else
    state.swap(step.slot, step.other);
  counter.update(state, state.getGpu(step.slot));
  if (step.other >= 0)
    counter.update(state, state.getGpu(step.other));
}

bool Repairer::reduce(double weight) {
  for (;;) {
    int32_t gpu = state.findLargest();
    if (state.getLoad(gpu) <= limit)
      return true;
    Step best;
    double bestScore = 0, least = state.getLoad(gpu) * 1e-12;
    // A step moves at most two replicas. One that moves none, or some back, is better than any that does.
    const double price[] = {1e6, 1, std::pow(0.5, weight)};
    auto scoreOf = [&](double gain, int32_t moved) { return gain * (moved < 0 ? 2e6 : price[moved]); };
    auto look = [&](const Step &step) {
      if (double gain = previewGain(step); gain > least)
        if (double score = scoreOf(gain, previewMoved(step)); score > bestScore) {
          best = step;
          bestScore = score;
        }
    };
    auto canReplace = [&](int32_t slot, int32_t expert) {
      return state.getExpert(slot) != expert && state.getCount(state.getExpert(slot)) > 1;
    };
    int32_t begin = gpu * problem.slots, end = begin + problem.slots;
    if (!budget.spend(static_cast<int64_t>(problem.slots) * (3 * problem.getReplicas() + problem.getExperts())))
      return false;
    for (int32_t slot = begin; slot < end; ++slot) {
      for (int32_t expert = 0; expert < problem.getExperts(); ++expert)
        if (canReplace(slot, expert))
          look({slot, -1, expert});
      for (int32_t other = 0; other < problem.getReplicas(); ++other) {
        if (canReplace(other, state.getExpert(slot)))
          look({other, -1, state.getExpert(slot)});
        if (state.getGpu(other) != gpu && state.getSize(other) < state.getSize(slot))
          look({slot, other, -1});
      }
    }
    if (bestScore == 0)
      return false;
    take(best);
  }
}

bool Repairer::tryUndo(const Step &step) {
  if (previewMoved(step) >= 0)
    return false;
  if (step.expert >= 0) {
    for (const GpuLoad &each : state.previewReplace(step.slot, step.expert))
      if (each.load > limit)
        return false;
  } else {
    double change = state.getSize(step.slot) - state.getSize(step.other);
    if (state.getLoad(state.getGpu(step.slot)) - change > limit ||
        state.getLoad(state.getGpu(step.other)) + change > limit)
      return false;
  }
  take(step);
  return true;
}

/// Brings a replica back that the GPU had: one more of its expert, or another GPU's in exchange.
bool Repairer::undoGpu(int32_t gpu) {
  int32_t begin = gpu * problem.slots, end = begin + problem.slots;
  for (int32_t old = begin; old < end; ++old) {
    int32_t expert = before[old];
    if (expert == kGone)
      continue;
    for (int32_t slot = begin; slot < end; ++slot) {
      if (state.getExpert(slot) == expert || counter.preview(slot, expert) >= 0)
        continue;
      if (state.getCount(state.getExpert(slot)) > 1 && tryUndo({slot, -1, expert}))
        return true;
      for (int32_t other : state.getSlotsOf(expert)) {
        if (!budget.spend(1))
          return false;
        if (state.getGpu(other) != gpu && tryUndo({slot, other, -1}))
          return true;
      }
    }
  }
  return false;
}

void Repairer::undo() {
  bool changes = true;
  while (changes) {
    changes = false;
    for (int32_t gpu = 0; gpu < problem.gpus; ++gpu)
      while (counter.getMoved(gpu) > 0 && budget.spend(static_cast<int64_t>(problem.slots) * problem.slots * 8) &&
             undoGpu(gpu))
        changes = true;
  }
}

/// Fills the slots that are gone: with the experts that have no replica, the largest first, and then with further ones
/// of the experts whose replicas are largest. Where there are not enough such slots, experts with several replicas give
/// some up, those that carry least.
static Placement fillSlots(const FlatProblem &problem, const Placement &before) {
  Placement placement = before;
  std::vector<int32_t> counts(problem.getExperts(), 0), missing;
  std::vector<int32_t> open;
  for (int32_t slot = 0; slot < problem.getReplicas(); ++slot)
    if (placement[slot] == kGone)
      open.push_back(slot);
    else
      ++counts[placement[slot]];
  for (int32_t expert = 0; expert < problem.getExperts(); ++expert)
    if (counts[expert] == 0)
      missing.push_back(expert);
  while (open.size() < missing.size()) {
    int32_t least = -1;
    double leastSize = std::numeric_limits<double>::infinity();
    for (int32_t slot = 0; slot < problem.getReplicas(); ++slot)
      if (int32_t expert = placement[slot]; expert != kGone && counts[expert] > 1)
        if (double size = problem.loads[expert] / (counts[expert] - 1); size < leastSize) {
          least = slot;
          leastSize = size;
        }
    --counts[placement[least]];
    placement[least] = kGone;
    open.push_back(least);
  }
  std::sort(open.begin(), open.end());
  std::sort(missing.begin(), missing.end(),
            [&](int32_t a, int32_t b) { return std::pair(-problem.loads[a], a) < std::pair(-problem.loads[b], b); });
  for (size_t at = 0; at < open.size(); ++at) {
    int32_t expert = at < missing.size() ? missing[at] : 0;
    if (at >= missing.size())
      for (int32_t other = 0; other < problem.getExperts(); ++other)
        if (problem.loads[other] / counts[other] > problem.loads[expert] / counts[expert])
          expert = other;
    placement[open[at]] = expert;
    ++counts[expert];
  }
  return placement;
}

/// The most GPUs that are matched, since all pairs of them are looked at.
static constexpr int32_t kMostMatched = 512;

Placement windlass::experts::matchGpus(int32_t gpus, const Placement &before, const Placement &placement) {
  if (gpus > kMostMatched)
    return placement;
  size_t slots = placement.size() / gpus;
  auto sorted = [&](const Placement &from, int32_t gpu) {
    std::vector<int32_t> experts(from.begin() + gpu * slots, from.begin() + (gpu + 1) * slots);
    std::sort(experts.begin(), experts.end());
    return experts;
  };
  std::vector<std::vector<int32_t>> was, is;
  for (int32_t gpu = 0; gpu < gpus; ++gpu) {
    was.push_back(sorted(before, gpu));
    is.push_back(sorted(placement, gpu));
  }
  // The pair of GPUs with most in common first.
  std::vector<std::tuple<int32_t, int32_t, int32_t>> pairs;
  std::vector<int32_t> common;
  for (int32_t from = 0; from < gpus; ++from)
    for (int32_t to = 0; to < gpus; ++to) {
      common.clear();
      std::set_intersection(is[from].begin(), is[from].end(), was[to].begin(), was[to].end(),
                            std::back_inserter(common));
      pairs.push_back({-static_cast<int32_t>(common.size()), from, to});
    }
  std::sort(pairs.begin(), pairs.end());
  Placement result(placement.size());
  std::vector<char> isGiven(gpus, false), isTaken(gpus, false);
  for (auto [fewer, from, to] : pairs)
    if (!isGiven[from] && !isTaken[to]) {
      isGiven[from] = isTaken[to] = true;
      std::copy_n(placement.begin() + from * slots, slots, result.begin() + to * slots);
    }
  return result;
}

Placement windlass::experts::repair(const FlatProblem &problem, const Placement &before, const Placement &good,
                                    double limit, WorkBudget &budget) {
  Placement best;
  int32_t fewest = problem.getReplicas() + 1;
  Placement filled = fillSlots(problem, before);
  for (double weight : {1.0, 0.5}) {
    Repairer forth(problem, before, filled, limit, budget);
    if (!forth.reduce(weight))
      continue;
    forth.undo();
    if (forth.getMoved() < fewest) {
      fewest = forth.getMoved();
      best = forth.getPlacement();
    }
  }
  // A good placement shares little with what was there: the way back is worth a try only where the way forth is long.
  if (fewest <= problem.getReplicas() / 4)
    return best;
  Repairer back(problem, before, matchGpus(problem.gpus, before, good), limit, budget);
  back.undo();
  return back.getMoved() < fewest ? back.getPlacement() : best;
}
