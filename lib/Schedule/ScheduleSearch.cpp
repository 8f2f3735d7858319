#include "windlass/Schedule/ScheduleSearch.h"

#include "windlass/Schedule/NamedSchedules.h"

#include "BranchAndBound.h"
#include "ImproveOrders.h"
#include "ListScheduler.h"
#include "PipelineWriter.h"

#include "llvm/ADT/STLExtras.h"

#include <tuple>

using namespace windlass::schedule;

namespace {

class Searcher {
public:
  Searcher(const ScheduleProblem &problem, const SearchOptions &options)
      : problem(problem), jobs(problem), bound(computeBound(jobs)), lowerBound(bound.makespan),
        workLimit(options.workLimit), work{options.workLimit} {}

  llvm::Expected<SearchedSchedule> run() {
    findOrders();
    PipelineWriter writer(problem.placement);
    for (const std::vector<Job> &order : starts.front().orders)
      for (Job job : order)
        writer.add(jobs.getAction(job), jobs.getChunk(job), jobs.getMicroBatch(job));
    llvm::Expected<Pipeline> pipeline = writer.finish();
    if (!pipeline)
      return pipeline.takeError();
    return SearchedSchedule{std::move(*pipeline), starts.front().makespan, lowerBound};
  }

private:
  /// Orders that keep the caps and make no position wait for ever.
  struct Start {
    int64_t makespan;
    Orders orders;
    /// The place among all starts, which decides between equals.
    int64_t number;
  };

  bool isDone() const { return !starts.empty() && best <= lowerBound; }

  /// Returns the work of a list schedule, for which each job is chosen among the classes of its position.
  int64_t getListWork() const { return (4 + jobs.countClasses() / jobs.countPositions()) * jobs.countJobs(); }

  void add(Orders orders) {
    Evaluation evaluation;
    work.jobs -= getListWork();
    if (!keepsCaps(jobs, orders) || !computeBegins(jobs, orders, evaluation))
      return;
    best = std::min(best, evaluation.makespan);
    starts.push_back({evaluation.makespan, std::move(orders), added++});
  }

  void findOrders() {
    addRules(jobs);
    addNamed();
    addRounds(jobs);
    addWithoutHops();
    addStretched();
    addRandom();
    improve();
  }

  /// Adds schedules that are stretched from one of two thirds of the micro-batches, which the same work searches
  /// better: some micro-batches of the middle come twice, and what is behind them is put off by the time that they take
  /// on the busiest position.
  void addStretched() {
    constexpr int64_t kLeast = 8, kPlaces = 4, kLeastLists = 100;
    int64_t fewer = (2 * jobs.microBatches + 2) / 3, twice = jobs.microBatches - fewer;
    if (isDone() || fewer < kLeast || work.jobs / 4 < kLeastLists * getListWork())
      return;
    ScheduleProblem smaller = problem;
    smaller.microBatches = fewer;
    Searcher other(smaller, {work.jobs / 4});
    other.findOrders();
    work.jobs -= work.jobs / 4;
    Evaluation evaluation;
    computeBegins(other.jobs, other.starts.front().orders, evaluation);
    int64_t shift = twice * jobs.getLargestLoad();
    std::vector<int64_t> keys(jobs.countJobs());
    for (int64_t place = 0; place <= kPlaces; ++place) {
      int64_t last = twice + (fewer - twice) * place / kPlaces;
      for (int64_t aClass = 0; aClass < jobs.countClasses(); ++aClass)
        for (int64_t n = 0; n < jobs.microBatches; ++n)
          keys[jobs.getJob(aClass, n)] = n < last ? evaluation.begins[other.jobs.getJob(aClass, n)]
                                                  : evaluation.begins[other.jobs.getJob(aClass, n - twice)] + shift;
      add(scheduleByKeys(jobs, keys));
    }
  }

  /// Adds list schedules by the rules that published schedules follow, made for the times of `view`.
  void addRules(const Jobs &view) {
    int64_t shortest = std::numeric_limits<int64_t>::max();
    for (int64_t length : jobs.lengths)
      shortest = std::min(shortest, length);
    for (std::array<int64_t, 3> kinds : {std::array<int64_t, 3>{1, 0, 2}, {0, 1, 2}, {2, 0, 1}})
      for (bool oldestFirst : {false, true})
        for (int64_t patience : {int64_t(0), shortest / 2, problem.times.hop}) {
          if (isDone() || (work.isSpent() && !starts.empty()))
            return;
          PriorityRule rule;
          rule.kinds = kinds;
          rule.oldestFirst = oldestFirst;
          Priority priority = makePriority(view, rule);
          priority.patience = patience;
          add(scheduleList(view, priority));
        }
  }

  /// Adds the list schedules that the rules and rounds give where values arrive at once. Their patterns stay good with
  /// short hops, but a rule that sees the hops leaves them.
  void addWithoutHops() {
    if (problem.times.hop == 0)
      return;
    ScheduleProblem other = problem;
    other.times.hop = 0;
    Jobs view(other);
    addRules(view);
    addRounds(view);
  }

  /// Adds schedules in rounds of nearly equal sizes: the larger ones come first, last or on both sides.
  void addRounds(const Jobs &view) {
    constexpr int64_t kMaxRounds = 32;
    for (int64_t count = 1; count <= std::min(kMaxRounds, jobs.microBatches); ++count) {
      int64_t larger = jobs.microBatches % count;
      for (int arrangement = 0; arrangement < (larger == 0 ? 1 : 3); ++arrangement) {
        if (isDone() || work.isSpent())
          return;
        std::vector<int64_t> rounds(count, jobs.microBatches / count);
        for (int64_t i = 0; i < larger; ++i) {
          int64_t fromOutside = i % 2 == 0 ? i / 2 : count - 1 - i / 2;
          ++rounds[arrangement == 0 ? i : arrangement == 1 ? count - 1 - i : fromOutside];
        }
        if (std::optional<Orders> orders = scheduleRounds(view, rounds))
          add(std::move(*orders));
      }
    }
  }

  /// Adds the published schedules of the placement that keep the caps, even where the work is spent, since none may be
  /// better than what is found.
  void addNamed() {
    const Placement &placement = problem.placement;
    int64_t chunks = placement.countChunks() / placement.positions / jobs.chains;
    for (const NamedSchedule *each : findNamedSchedules(placement, problem.isSplit)) {
      if (isDone())
        return;
      llvm::Expected<Pipeline> pipeline = each->make(placement.positions, chunks, problem.microBatches);
      if (!pipeline) {
        llvm::consumeError(pipeline.takeError());
        continue;
      }
      if (std::optional<Orders> orders = readOrders(jobs, *pipeline))
        add(std::move(*orders));
    }
  }

  /// Adds list schedules by priorities of classes that are random and then improved, a few classes at a time.
  void addRandom() {
    constexpr int64_t kClimbs = 4, kTries = 400;
    RandomNumbers random(1);
    int64_t limit = work.jobs - work.jobs / 8;
    for (int64_t climb = 0; climb < kClimbs; ++climb) {
      Priority priority;
      int64_t makespan = std::numeric_limits<int64_t>::max();
      for (int64_t turn = 0; turn < kTries && work.jobs > limit && !isDone(); ++turn) {
        Priority other = turn < kTries / 10 ? drawPriority(random) : priority;
        if (turn >= kTries / 10)
          change(other, random);
        Orders orders = scheduleList(jobs, other);
        Evaluation evaluation;
        work.jobs -= getListWork();
        computeBegins(jobs, orders, evaluation);
        if (evaluation.makespan > makespan)
          continue;
        makespan = evaluation.makespan;
        priority = std::move(other);
      }
      if (!priority.ranks.empty())
        add(scheduleList(jobs, priority));
    }
  }

  Priority drawPriority(RandomNumbers &random) const {
    Priority priority;
    int64_t classes = jobs.countClasses();
    std::array<int64_t, 3> kinds = {};
    for (int64_t &kind : kinds)
      kind = random.below(3) * classes;
    int64_t spread = classes * (1 + random.below(4));
    for (int64_t aClass = 0; aClass < classes; ++aClass)
      priority.ranks.push_back(kinds[aClass % jobs.kinds] + random.below(spread));
    changeAgeWeight(priority, random);
    changePatience(priority, random);
    return priority;
  }

  void changeAgeWeight(Priority &priority, RandomNumbers &random) const {
    priority.ageWeight = random.below(4) == 0 ? 0 : random.below(2 * jobs.countClasses());
  }
  void changePatience(Priority &priority, RandomNumbers &random) const {
    int64_t aClass = random.below(jobs.countClasses());
    priority.patience = random.below(3) * jobs.lengths[aClass] / 2;
  }

  void change(Priority &priority, RandomNumbers &random) const {
    int64_t classes = jobs.countClasses();
    for (int64_t count = 1 + random.below(2); count > 0; --count) {
      int64_t what = random.below(8), first = random.below(classes), second = random.below(classes);
      if (what == 0)
        changeAgeWeight(priority, random);
      else if (what == 1)
        changePatience(priority, random);
      else if (what < 5)
        std::swap(priority.ranks[first], priority.ranks[second]);
      else
        priority.ranks[first] = random.below(6 * classes) - classes;
    }
  }

  /// Improves the starts in rounds. Each round takes the better half of those of the round before, with twice the work
  /// for each. The first round has as many starts as can have `kSteps` steps each, at most `kMostStarts`.
  void improve() {
    constexpr int64_t kMostStarts = 16, kSteps = 400;
    uint64_t seed = 0;
    int64_t rest = std::max<int64_t>(work.jobs, 0), workOfStart = 2 * jobs.countJobs() * kSteps, rounds = 1;
    while ((int64_t(1) << rounds) <= kMostStarts && (int64_t(1) << rounds) * workOfStart <= rest / (rounds + 1))
      ++rounds;
    for (int64_t round = rounds; round > 0 && !isDone(); --round) {
      sortStarts();
      starts.resize(std::min(starts.size(), size_t(1) << (round - 1)));
      int64_t share = rest / rounds / static_cast<int64_t>(starts.size());
      for (Start &start : starts) {
        WorkLeft left = {share};
        start.makespan = improveOrders(jobs, start.orders, lowerBound, ++seed, left);
        best = std::min(best, start.makespan);
        if (isDone())
          break;
      }
      sortStarts();
      if (round == rounds)
        close();
    }
    sortStarts();
  }

  void sortStarts() {
    llvm::sort(starts, [](const Start &a, const Start &b) {
      return std::tie(a.makespan, a.number) < std::tie(b.makespan, b.number);
    });
  }

  /// Closes the gap between a small problem's schedule and the bound, where that takes little.
  void close() {
    constexpr int64_t kMaxJobs = 256, kMaxClasses = 64, kWorkOfNode = 1000;
    Start &start = starts.front();
    if (isDone() || jobs.chains > 1 || jobs.countJobs() > kMaxJobs || jobs.countClasses() > kMaxClasses)
      return;
    if (branchAndBound(jobs, bound, start.orders, start.makespan, workLimit / kWorkOfNode))
      lowerBound = start.makespan;
    best = start.makespan;
  }

  const ScheduleProblem &problem;
  Jobs jobs;
  ScheduleBound bound;
  int64_t lowerBound, workLimit;
  WorkLeft work;
  std::vector<Start> starts;
  int64_t added = 0;
  int64_t best = std::numeric_limits<int64_t>::max();
};

} // namespace

llvm::Expected<SearchedSchedule> windlass::schedule::searchSchedule(const ScheduleProblem &problem,
                                                                    const SearchOptions &options) {
  if (llvm::Error error = checkProblem(problem))
    return std::move(error);
  return Searcher(problem, options).run();
}

llvm::Expected<int64_t> windlass::schedule::boundSchedule(const ScheduleProblem &problem) {
  if (llvm::Error error = checkProblem(problem))
    return std::move(error);
  return computeBound(Jobs(problem)).makespan;
}
