#include "AcesoSplit.h"
#include "Peers.h"

#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"

#include <chrono>
#include <cmath>

using namespace windlass;
using namespace windlass::peers;

static constexpr double kNever = std::numeric_limits<double>::infinity();
/// The first guess of the slowest stage's time as a multiple of what it is at least, and what the guess grows by at
/// first; then faster.
static constexpr double kFirstWindow = 1.15, kWindowGrowth = 1.4;
/// The part of the time by which a plan may be worse than the best one of those that are searched.
static constexpr double kPrecision = 1e-5;
/// The number of splits of one micro-batch after which the best plan so far must do.
static constexpr int kMostSplits = 60;

namespace {

/// A pipeline with times in microseconds.
struct Split {
  double most = 0, sum = 0;
  std::vector<Place> places;
};

/// A stage of a plan, with its time in microseconds.
struct PlannedStage {
  size_t begin, end;
  int64_t stagesAfter;
  double time;
  const Style *style;
  /// Count from the begin of the stage.
  std::vector<Run> runs;
};

/// Searches the plans of one micro-batch.
class Planner {
public:
  Planner(const AcesoCase &problem, int64_t microBatch);

  /// Searches for plans that take less than `best`, the microseconds of an iteration, and lowers it.
  void search(double &best);
  /// Returns whether `search` found a plan.
  bool hasPlan() const { return !plan.empty(); }
  /// Returns the stages of the best plan that `search` found.
  llvm::json::Array describe() const;

private:
  double getTime(double most, double sum) const { return most * static_cast<double>(batches - 1) + sum; }
  /// Returns the least time that the slowest stage can have where an iteration is to take `time`.
  double getMost(double time) const {
    return batches > 1 ? (time - leastSum) / static_cast<double>(batches - 1) : kNever;
  }
  void buildTables(double window);
  std::optional<Split> findExactSplit(double cap, Objective objective, double &best);
  void keep(const Split &split);
  std::optional<Split> openWindow(double &window, double &best);

  const AcesoCase &problem;
  int64_t batches;
  /// By the logarithm of the number of GPUs; empty where no stage can have them.
  std::vector<std::vector<Style>> styles;
  std::vector<StageTable> tables;
  /// The least GPU time of the operators before each one, the least sum of stages, and more than any stage takes.
  std::vector<double> work;
  double leastSum = 0, mostSum = 0;
  int splits = 0;
  std::vector<PlannedStage> plan;
};

} // namespace

Planner::Planner(const AcesoCase &problem, int64_t microBatch)
    : problem(problem), batches(problem.globalBatch / microBatch), work(1, 0) {
  for (int64_t gpus = 1; gpus <= problem.gpus; gpus *= 2)
    if (std::vector<Style> found = listStyles(problem, microBatch, gpus); !found.empty())
      styles.push_back(std::move(found));
  for (size_t i = 0; i < problem.order.size(); ++i) {
    double least = kNever, leastWork = kNever, most = 0;
    for (const std::vector<Style> &list : styles) {
      for (const Style &style : list) {
        const StyledOp &op = style.ops[i];
        least = std::min(least, op.time);
        leastWork = std::min(leastWork, op.time * static_cast<double>(style.gpus));
        most =
            std::max(most, op.time + op.forward + op.reshard + op.enter[0] + op.enter[1] + op.leave[0] + op.leave[1]);
      }
    }
    work.push_back(work.back() + leastWork);
    leastSum += least;
    mostSum += most;
  }
}

void Planner::buildTables(double window) {
  tables.clear();
  for (const std::vector<Style> &list : styles)
    tables.emplace_back(problem, list, work, window);
}

/// Finds the split that the objective asks for, with no stage above the cap. Times of stages become exact as they occur
/// in a split: they only grow, so that a split of exact times is the best one. Keeps each split on the way that is the
/// best plan so far.
std::optional<Split> Planner::findExactSplit(double cap, Objective objective, double &best) {
  SplitFinder finder(problem, tables, work);
  for (;;) {
    Split split;
    if (++splits <= kMostSplits)
      split.places = finder.find(cap, objective);
    if (split.places.empty())
      return std::nullopt;
    bool isExact = true;
    for (const Place &place : split.places) {
      StageTable &table = tables[place.table];
      int32_t node = table.find(place.begin, place.end);
      isExact &= table.makeExact(node, place.stagesAfter, place.sides);
      double time = table.getTime(node, place.stagesAfter, place.sides);
      split.most = std::max(split.most, time);
      split.sum += time;
    }
    if (double time = getTime(split.most, split.sum); time < best) {
      best = time;
      keep(split);
    }
    if (isExact)
      return split;
  }
}

void Planner::keep(const Split &split) {
  plan.clear();
  for (const Place &place : split.places) {
    const StageTable &table = tables[place.table];
    int32_t node = table.find(place.begin, place.end);
    auto [style, runs] = table.getChoice(node, place.stagesAfter, place.sides);
    double time = table.getTime(node, place.stagesAfter, place.sides);
    plan.push_back({place.begin, place.end, place.stagesAfter, time, style, std::move(runs)});
  }
}

/// Finds the split with the fastest slowest stage, and builds tables of all stages that a better plan may have, which
/// take at most `window`.
std::optional<Split> Planner::openWindow(double &window, double &best) {
  for (double growth = kWindowGrowth;; growth *= growth) {
    window = std::min(window, std::min(mostSum, getMost(best)));
    buildTables(window);
    std::optional<Split> split = findExactSplit(window, Objective::Most, best);
    double needed = std::min(mostSum, getMost(best));
    if (window >= needed || splits > kMostSplits)
      return split;
    window = split ? needed : window * growth;
  }
}

void Planner::search(double &best) {
  double window = kFirstWindow * work.back() / static_cast<double>(problem.gpus);
  std::optional<Split> split = openWindow(window, best);
  if (!split)
    return;
  findExactSplit(split->most, Objective::Sum, best);
  // A slower slowest stage pays where the sum of stages is less by more. Of plans whose slowest stage takes at most
  // `to` but more than `from`, only those of the least sum are worth a look, until the rest cannot gain much.
  std::vector<std::pair<double, double>> ranges = {{split->most, window}};
  while (!ranges.empty()) {
    auto [from, to] = ranges.back();
    ranges.pop_back();
    split = findExactSplit(std::min(to, getMost(best)), Objective::Sum, best);
    if (!split || split->most <= from || getTime(from, split->sum) >= best * (1 - kPrecision))
      continue;
    double middle = (from + split->most) / 2;
    ranges.push_back({middle, split->most});
    ranges.push_back({from, middle});
  }
}

llvm::json::Array Planner::describe() const {
  llvm::json::Array stages;
  for (const PlannedStage &stage : plan) {
    StageSums sums(*stage.style, stage.begin, stage.end);
    llvm::json::Array tensor, data, algorithm, recomputed;
    for (size_t i = stage.begin; i < stage.end; ++i) {
      const AcesoWay &way = stage.style->ops[i].way;
      tensor.push_back(way.tensor);
      data.push_back(way.data);
      algorithm.push_back(way.algorithm);
    }
    for (const Run &run : stage.runs)
      for (size_t i = run.begin; i < run.end; ++i)
        recomputed.push_back(static_cast<int64_t>(i));
    double memory = problem.limit + sums.getExcess(problem, stage.stagesAfter) -
                    getRelief(*stage.style, stage.begin, stage.runs, stage.stagesAfter);
    stages.push_back(llvm::json::Object{{"first_op", static_cast<int64_t>(stage.begin)},
                                        {"ops", static_cast<int64_t>(stage.end - stage.begin)},
                                        {"gpus", stage.style->gpus},
                                        {"tensor_parallel", std::move(tensor)},
                                        {"data_parallel", std::move(data)},
                                        {"algorithm", std::move(algorithm)},
                                        {"recomputed", std::move(recomputed)},
                                        {"ms", stage.time / 1000},
                                        {"memory_mb", memory}});
  }
  return stages;
}

llvm::Expected<llvm::json::Value> peers::solveAceso(llvm::StringRef folder) {
  auto begin = std::chrono::steady_clock::now();
  llvm::Expected<AcesoCase> problem = readAcesoCase(folder);
  if (!problem)
    return problem.takeError();
  double best = kNever;
  llvm::json::Object answer;
  for (int64_t microBatch : problem->microBatches) {
    if (problem->globalBatch % microBatch)
      continue;
    Planner planner(*problem, microBatch);
    planner.search(best);
    if (planner.hasPlan()) {
      answer["micro_batch"] = microBatch;
      answer["stages"] = planner.describe();
    }
  }
  if (answer.empty())
    return makeError("no plan fits into the memory");
  answer["iteration_ms"] = best / 1000;
  answer["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return answer;
}
