#include "windlass/Search/Solver.h"

#include "Branch.h"
#include "Merge.h"
#include "TreeSearch.h"
#include "windlass/Search/Shrink.h"
#include "windlass/Support/RunTasks.h"

#include <cmath>

using namespace windlass;
using namespace windlass::search;

/// A shrunk problem, and the same laid out for the loops of the search.
struct search::ShrunkModel {
  explicit ShrunkModel(Shrunk its) : shrunk(std::move(its)), model(shrunk.problem) {}
  Shrunk shrunk;
  Model model;
};

namespace {

/// The number of searches that run side by side, with different prices and noise; they learn from each other between
/// phases.
constexpr int kSearches = 2;
constexpr PriceRule kRules[kSearches] = {PriceRule::Exponentiated, PriceRule::Polyak};
constexpr double kTemperatures[kSearches] = {3e-5, 1e-3};

/// The most nodes of a problem for branch and bound, and for diving; above, local search does more.
constexpr int32_t kMostBranched = 3500, kMostDived = 1500;
constexpr int kMostLevels = 5;
/// The number of times that solutions of local search are merged before the bound is raised again.
constexpr int kRounds = 4;

/// A problem that came from the one before by bans and shrinking, and what is known of it.
struct Level {
  explicit Level(std::shared_ptr<const ShrunkModel> its)
      : owner(std::move(its)), shrunk(owner->shrunk), model(owner->model) {}
  std::shared_ptr<const ShrunkModel> owner;
  const Shrunk &shrunk;
  const Model &model;
  std::unique_ptr<Dual> duals[kSearches];
  double bounds[kSearches] = {};
  bool isRaised = false;
  Dual &better() { return *duals[bounds[1] > bounds[0]]; }
  /// The solution with which local search begins.
  std::vector<double> startPrices[kSearches];
};

class Search {
public:
  Search(const Problem &problem, std::shared_ptr<const ShrunkModel> shrunk, const SolveOptions &options,
         const Budget &budget)
      : problem(problem), options(options), budget(budget) {
    levels.push_back(std::make_unique<Level>(std::move(shrunk)));
  }
  SolveResult run();

private:
  void note(const char *what);
  template <typename Task> void phase(double end, int count, Task task, int64_t most = INT64_MAX);
  /// Translates a task's solution of the newest level to the first one and keeps it.
  void learn(const Incumbent &found);
  bool isClosed() const { return isAllClosed || bound > incumbent.mostBound(); }
  bool isCutOff(double its) const { return its - roundingOf(its) >= static_cast<double>(options.cutoff); }
  bool isOver() const { return isClosed() || isCutOff(bound); }
  void raise(double newBound) { bound = std::max(bound, newBound); }

  void findStarts(Level &level, double end);
  void raiseBounds(Level &level, double end);
  void diveLevel(Level &level, double end);
  void searchLocally(double end, int64_t most = INT64_MAX);
  void mergeSolutions(double end);
  void searchInRounds(double end, int rounds);
  int64_t fixLevel(Level &level, double end);
  bool descend(Level &level, int64_t banned);
  bool branch(Level &level, double end);
  /// Returns the answer, with the solutions that local search found on the problem of the first level.
  SolveResult finish(const Level &first) const;

  const Problem &problem;
  SolveOptions options;
  Budget budget;
  std::vector<std::unique_ptr<Level>> levels;
  Incumbent incumbent; // of the first level
  /// The solutions that local search has found on the first level.
  Pool pool;
  /// The solution that came nearest to fitting, from which searches begin while none fits.
  Solution nearest;
  double nearestExcess = INFINITY;
  double bound = 0;
  bool isAllClosed = false;
  int round = 0;
};

void Search::note(const char *what) {
  if (!options.log)
    return;
  char text[256];
  const Level &level = *levels.back();
  snprintf(text, sizeof(text), "%5.1f%% %-10s %d nodes, %d rows, cost %lld, bound %.0f", 100 * budget.share(), what,
           level.model.nodes(), level.model.memoryRows, static_cast<long long>(incumbent.cost), bound);
  options.log(text);
}

/// Runs `count` tasks until a part of the budget is used up. Each gets its number and its own budget, of at most `most`
/// operations.
template <typename Task> void Search::phase(double end, int count, Task task, int64_t most) {
  bool atTheSameTime = options.threads >= count;
  std::vector<int64_t> used(count);
  double begin = budget.share();
  runTasks(options.threads, count, [&](int k) {
    // Tasks that run one after the other each get their part of the time, measured anew because the clock went on.
    double until = atTheSameTime ? end : begin + (end - begin) * (k + 1) / count;
    Meter meter = options.seconds < 0 ? budget.meter(end, count, most) : budget.meter(until, 1, most);
    task(k, meter);
    used[k] = meter.getUsed();
  });
  for (int64_t operations : used)
    budget.spend(operations);
}

void Search::learn(const Incumbent &found) {
  if (found.cost >= incumbent.cost)
    return;
  Solution labels = found.labels;
  for (size_t l = levels.size(); l-- > 1;)
    labels = levels[l]->shrunk.expand(labels);
  incumbent.offer(levels.front()->shrunk.problem, labels);
}

/// Finds prices under which labels that are chosen one after the other fit: such labels are solutions, with which local
/// search begins.
void Search::findStarts(Level &level, double end) {
  const Model &m = level.model;
  // Where the bound no longer rises, steps get shorter, by a fifth each time.
  constexpr double kFirstProgress[kSearches] = {0.3, 0.5}, kShorter = 0.05;
  constexpr int kMostStalls = 3;
  const int patience = m.passWork < 500'000 ? std::clamp(m.nodes(), 10, 300) : 60;
  Incumbent found[kSearches];
  Solution near[kSearches];
  double nearExcess[kSearches] = {INFINITY, INFINITY};
  phase(end, kSearches, [&](int k, Meter &meter) {
    level.duals[k] = std::make_unique<Dual>(m);
    Dual &dual = *level.duals[k];
    Prices prices(m, kRules[k], dual.prices());
    found[k].cost = incumbent.cost;
    Solution decoded(m.nodes());
    std::vector<double> usage;
    int stalls = 0, sinceBest = 0;
    while (!meter.isOver() && stalls < kMostStalls && prices.bestBound() <= found[k].mostBound() &&
           !isCutOff(prices.bestBound())) {
      dual.forward(&decoded);
      usageOf(m, decoded, usage);
      double excess = 0;
      for (int32_t r = 0; r < m.memoryRows; ++r)
        excess += std::max((usage[r] - static_cast<double>(m.problem.capacity[r])) / m.scale[r], 0.0);
      if (excess < nearExcess[k]) {
        nearExcess[k] = excess;
        near[k] = decoded;
      }
      if (excess == 0)
        found[k].offer(m.problem, decoded);
      double value = dual.backward();
      sinceBest = value > prices.bestBound() ? 0 : sinceBest + 1;
      if (sinceBest >= patience) {
        sinceBest = 0;
        ++stalls;
        prices.returnToBest();
      } else {
        prices.setProgress(kFirstProgress[k] + kShorter * stalls);
        prices.steer(usage, value, static_cast<double>(found[k].cost));
      }
      dual.setPrices(prices.current());
      meter.spend(2 * m.passWork + 2 * m.rows);
    }
    dual.setPrices(prices.best());
    dual.forward();
    dual.backward();
    level.bounds[k] = prices.bestBound();
    level.startPrices[k] = prices.best();
  });
  for (int k = 0; k < kSearches; ++k) {
    learn(found[k]);
    raise(level.bounds[k]);
    if (levels.size() == 1 && nearExcess[k] < nearestExcess) {
      nearestExcess = nearExcess[k];
      nearest = near[k];
    }
  }
  note("starts");
}

/// Finds the messages and prices of the best bound.
void Search::raiseBounds(Level &level, double end) {
  const Model &m = level.model;
  // Small problems do not need all the time that they have.
  const int64_t mostSteps = m.nodes() <= kMostDived ? 40 + 20 * int64_t(m.nodes()) : INT64_MAX;
  phase(end, kSearches, [&](int k, Meter &meter) {
    Dual &dual = *level.duals[k];
    Prices prices(m, kRules[k], dual.prices());
    const double most = incumbent.mostBound(), target = static_cast<double>(incumbent.cost);
    for (int64_t step = 0;
         step < mostSteps && !meter.isOver() && prices.bestBound() <= most && !isCutOff(prices.bestBound()); ++step) {
      dual.forward();
      double value = dual.backward();
      double progress = std::max(meter.share(), static_cast<double>(step) / static_cast<double>(mostSteps));
      prices.setProgress(level.isRaised ? 0.5 + 0.5 * progress : progress);
      prices.step(dual, value, target);
      dual.setPrices(prices.current());
      meter.spend(2 * m.passWork + 2 * m.rows);
    }
    dual.setPrices(prices.best());
    dual.forward();
    dual.backward();
    level.bounds[k] = std::max(level.bounds[k], prices.bestBound());
  });
  level.isRaised = true; // later steps need not go far
  for (double value : level.bounds)
    raise(value);
  note("bounds");
}

void Search::diveLevel(Level &level, double end) {
  constexpr int kMostDives = 60;
  const int mostFailures = std::clamp(level.model.nodes() / 10, 1, 20);
  Incumbent found[kSearches];
  phase(end, kSearches, [&](int k, Meter &meter) {
    Random random(static_cast<uint64_t>(100 + k));
    found[k].cost = incumbent.cost;
    int failures = 0;
    for (int d = 0; d < kMostDives && failures < mostFailures && !meter.isOver(); ++d) {
      int64_t before = found[k].cost;
      dive(*level.duals[k], found[k], d ? 0.1 : 0, random, meter);
      failures = found[k].cost < before ? 0 : failures + 1;
    }
  });
  for (const Incumbent &one : found)
    learn(one);
  note("dives");
}

void Search::searchLocally(double end, int64_t most) {
  Level &level = *levels.front();
  const Solution &start = incumbent.cost < kForbidden ? incumbent.labels : nearest;
  Incumbent found[kSearches], last[kSearches];
  phase(
      end, kSearches,
      [&](int k, Meter &meter) {
        TreeSearchOptions tree;
        tree.temperature = kTemperatures[k];
        tree.seed = static_cast<uint64_t>(1000 * round + k);
        TreeSearch search(level.model, level.startPrices[k], tree);
        Solution best = search.run(start, meter);
        if (!best.empty())
          found[k].offer(level.shrunk.problem, best);
        last[k].offer(level.shrunk.problem, search.last());
      },
      most);
  for (const Incumbent &one : last)
    pool.add(one);
  ++round;
  for (const Incumbent &one : found) {
    pool.add(one);
    if (one.cost < incumbent.cost)
      incumbent = one;
  }
  note("trees");
}

/// Merges solutions of local search, which agree on most nodes: their parts together make a small problem, which
/// branching solves.
void Search::mergeSolutions(double end) {
  const Problem &whole = levels.front()->shrunk.problem;
  std::optional<Shrunk> small = pool.merge(whole, kMostDived);
  if (!small)
    return;
  auto merged = std::make_shared<const ShrunkModel>(std::move(*small));
  SolveOptions inner = options;
  inner.cutoff = std::min(options.cutoff, incumbent.cost);
  inner.log = nullptr;
  Search search(whole, merged, inner, budget.until(end));
  search.incumbent.offer(merged->shrunk.problem, merged->shrunk.contract(incumbent.labels));
  SolveResult best = search.run();
  budget.spend(search.budget.getUsed());
  if (best.cost < incumbent.cost) {
    incumbent = {best.solution, best.cost};
    pool.add(incumbent);
  }
  note("merged");
}

void Search::searchInRounds(double end, int rounds) {
  for (; rounds > 0 && !isOver(); --rounds) {
    double share = budget.share(), part = (end - share) / rounds;
    searchLocally(share + 0.9 * part);
    if (!isOver())
      mergeSolutions(share + part);
  }
}

/// Bans labels in the better of the duals. Returns the number of banned labels.
int64_t Search::fixLevel(Level &level, double end) {
  const Model &m = level.model;
  Dual &dual = level.better();
  constexpr int kFixSteps = 60;
  int64_t banned = 0;
  Incumbent found;
  found.cost = incumbent.cost;
  phase(end, 1, [&](int, Meter &meter) {
    Prices prices(m, PriceRule::Polyak, dual.prices());
    if (!banWhatOverflows(dual, meter) || fixLabels(dual, prices, found, kFixSteps, meter))
      isAllClosed = true;
    raise(std::min(prices.bestBound(), static_cast<double>(found.cost)));
  });
  learn(found);
  for (int32_t i = 0; i < m.nodes(); ++i)
    banned += m.labels[i] - dual.allowedLabels(i);
  note("fixing");
  return banned;
}

/// Makes a smaller problem of the labels that fixing left. Returns false when too few were banned.
bool Search::descend(Level &level, int64_t banned) {
  const Model &m = level.model;
  int64_t labels = 0;
  for (int32_t count : m.labels)
    labels += count;
  if (static_cast<double>(banned) < 0.08 * static_cast<double>(labels))
    return false;
  const Dual &dual = level.better();
  Problem smaller = level.shrunk.problem;
  for (int32_t i = 0; i < m.nodes(); ++i)
    for (int32_t x = 0; x < m.labels[i]; ++x)
      if (dual.isBanned(i, x))
        smaller.nodes[i].costs[x] = kForbidden;
  auto next = std::make_unique<Level>(std::make_shared<const ShrunkModel>(shrink(smaller)));
  if (next->shrunk.isInfeasible) {
    isAllClosed = true;
    return false;
  }
  levels.push_back(std::move(next));
  note("shrunk");
  return true;
}

/// Branches until the end, or until a better solution makes it worthwhile to shrink again. Returns whether there is a
/// smaller problem, or nothing left to search.
bool Search::branch(Level &level, double end) {
  BranchAndBound tree(level.better(), 1);
  std::vector<std::unique_ptr<Dual>> workers;
  int64_t nextNote = 8, nextFix = 64, fixedAt = incumbent.cost;
  while (!tree.isDone() && !isCutOff(bound) && budget.share() < end) {
    std::vector<std::shared_ptr<BranchAndBound::Open>> batch = tree.takeBatch();
    int count = static_cast<int>(batch.size());
    while (workers.size() < batch.size())
      workers.push_back(std::make_unique<Dual>(level.model));
    std::vector<Incumbent> found(count);
    for (Incumbent &one : found)
      one.cost = incumbent.cost;
    phase(end, count, [&](int k, Meter &meter) { tree.process(*batch[k], *workers[k], found[k], meter); });
    for (const Incumbent &one : found)
      learn(one);
    for (const auto &open : batch)
      tree.put(open, incumbent);
    raise(std::min(tree.bound(), static_cast<double>(incumbent.cost)));
    if (tree.processedCount() >= nextNote) {
      nextNote *= 2;
      note("branching");
    }
    if (tree.processedCount() < nextFix || tree.isDone())
      continue;
    nextFix *= 2;
    if (incumbent.cost < fixedAt && levels.size() < kMostLevels) {
      fixedAt = incumbent.cost;
      if (descend(level, fixLevel(level, end)) || isAllClosed)
        return true;
    }
  }
  if (tree.isDone())
    isAllClosed = true;
  note("branched");
  return false;
}

SolveResult Search::finish(const Level &first) const {
  SolveResult result;
  // Solutions are checked on the problem as it came.
  if (incumbent.cost < kForbidden) {
    Solution solution = first.shrunk.expand(incumbent.labels);
    Evaluation value = evaluate(problem, solution);
    if (value.isFeasible()) {
      result.solution = std::move(solution);
      result.cost = value.cost;
    }
  }
  // Costs are integers, so the amount that rounding may have added comes off.
  if (isClosed())
    result.bound = result.cost;
  else
    result.bound =
        std::min(result.cost, std::max<int64_t>(0, static_cast<int64_t>(std::ceil(bound - roundingOf(bound)))));
  return result;
}

SolveResult Search::run() {
  Level &first = *levels.front();
  if (first.shrunk.isInfeasible) {
    SolveResult none;
    none.bound = kForbidden;
    return none;
  }
  note("shrunk");
  auto until = [&](double part) { return std::min(1.0, budget.share() + part * (1 - budget.share())); };
  while (true) {
    Level &level = *levels.back();
    if (level.model.nodes() == 0) {
      Incumbent only;
      only.offer(level.shrunk.problem, {});
      learn(only);
      isAllClosed = true;
      break;
    }
    bool isSmall = level.model.nodes() <= kMostDived;
    findStarts(level, until(isSmall ? 0.04 : 0.12));
    if (isOver())
      break;
    if (isSmall)
      diveLevel(level, until(0.03));
    if (isOver())
      break;
    // Small problems are closed by other means, for which this only finds a start.
    int64_t nodes = std::min(level.model.nodes(), kMostDived);
    if (levels.size() == 1 && isSmall)
      searchLocally(until(0.04), 64 * nodes * nodes * nodes);
    else if (levels.size() == 1)
      searchInRounds(until(0.2), 1);
    if (isOver())
      break;
    raiseBounds(level, until(isSmall ? 0.06 : 0.1));
    if (isOver())
      break;
    int64_t banned = fixLevel(level, until(0.1));
    if (isOver())
      break;
    if (levels.size() < kMostLevels && descend(level, banned))
      continue;
    if (isOver())
      break;
    if (level.model.nodes() <= kMostBranched) {
      if (branch(level, 1) && !isOver())
        continue;
      break;
    }
    // A better solution may ban enough to go on with a smaller problem.
    searchInRounds(until(0.6), kRounds);
    if (isOver())
      break;
    raiseBounds(level, until(0.1));
    if (isOver())
      break;
    banned = fixLevel(level, until(0.1));
    if (isOver() || levels.size() == kMostLevels || !descend(level, banned))
      break;
  }
  // Branching would leave no time.
  if (first.model.nodes() > kMostDived)
    searchInRounds(1, 1);
  return finish(first);
}

} // namespace

Solver::Solver(const Problem &problem)
    : problem(problem), shrunk(std::make_shared<const ShrunkModel>(shrink(problem))) {}

SolveResult Solver::solve(const SolveOptions &options) const {
  return Search(problem, shrunk, options, Budget(options.workLimit, options.seconds)).run();
}

SolveResult windlass::search::solve(const Problem &problem, const SolveOptions &options) {
  return Solver(problem).solve(options);
}
