#include "ListScheduler.h"

#include "ListState.h"

#include "llvm/ADT/STLExtras.h"

using namespace windlass::schedule;

Priority windlass::schedule::makePriority(const Jobs &jobs, const PriorityRule &rule) {
  Priority priority;
  int64_t chunks = jobs.countClasses() / jobs.kinds;
  for (int64_t aClass = 0; aClass < jobs.countClasses(); ++aClass) {
    int64_t kind = aClass % jobs.kinds, chunk = aClass / jobs.kinds;
    int64_t along = chunk % jobs.chainLength;
    int64_t ahead = kind == kForward ? jobs.chainLength - 1 - along : along;
    int64_t within = rule.finishesFirst ? ahead : jobs.chainLength - 1 - ahead;
    priority.ranks.push_back(rule.kinds[kind] * chunks + within);
  }
  priority.ageWeight = rule.oldestFirst ? 3 * chunks : 0;
  return priority;
}

namespace {

/// Times of positions, of which the first can be found without looking at all.
class FirstTime {
public:
  explicit FirstTime(int64_t positions) {
    while (leaves < positions)
      leaves *= 2;
    tree.assign(2 * leaves, ListState::kNever);
  }

  void set(int64_t position, int64_t time) {
    int64_t node = leaves + position;
    tree[node] = time;
    for (node /= 2; node > 0; node /= 2)
      tree[node] = std::min(tree[2 * node], tree[2 * node + 1]);
  }
  /// Returns the first position of those whose time is least.
  int64_t find() const {
    int64_t node = 1;
    while (node < leaves)
      node = tree[2 * node] == tree[node] ? 2 * node : 2 * node + 1;
    return node - leaves;
  }

private:
  int64_t leaves = 1;
  /// A tree in an array: each node has the least time of its two children, 2 n and 2 n + 1.
  std::vector<int64_t> tree;
};

/// Schedules job after job on the position whose next choice comes first. `Rule` says what a position chooses.
template <class Rule> class ListScheduler {
public:
  ListScheduler(const Jobs &jobs, Rule rule)
      : jobs(jobs), rule(rule), state(jobs), orders(jobs.countPositions()), choices(jobs.countPositions()),
        first(jobs.countPositions()) {}

  /// Returns nothing where the rule makes a position wait for ever.
  std::optional<Orders> run() {
    for (int64_t position = 0; position < jobs.countPositions(); ++position)
      choose(position);
    for (int64_t left = jobs.countJobs(); left > 0; --left) {
      int64_t position = first.find();
      if (choices[position].time == ListState::kNever)
        return std::nullopt;
      place(position);
    }
    return std::move(orders);
  }

private:
  /// What a position does next, when that begins, and the time by which positions are compared.
  struct Choice {
    int64_t aClass = 0, begin = ListState::kNever, time = ListState::kNever;
  };

  void place(int64_t position) {
    auto [aClass, begin, time] = choices[position];
    Job job = jobs.getJob(aClass, state.next[aClass]);
    orders[position].push_back(job);
    state.place(jobs, aClass, begin);
    choose(position);
    if (Job output = jobs.output[job]; output != kNoJob && jobs.getPosition(output) != position)
      choose(jobs.getPosition(output));
  }

  void choose(int64_t position) {
    const std::vector<int64_t> &classes = jobs.classesOf[position];
    begins.clear();
    int64_t time = ListState::kNever;
    for (int64_t aClass : classes) {
      begins.push_back(rule.isNext(state, aClass) ? state.getBegin(jobs, aClass) : ListState::kNever);
      if (begins.back() != ListState::kNever)
        time = std::min(time, rule.getTime(aClass, begins.back()));
    }
    choices[position] = {};
    int64_t best = std::numeric_limits<int64_t>::max();
    for (auto [aClass, begin] : llvm::zip_equal(classes, begins)) {
      if (begin == ListState::kNever || !rule.mayWait(begin, time))
        continue;
      int64_t rank = rule.getRank(aClass, state.next[aClass]);
      if (rank >= best)
        continue;
      best = rank;
      choices[position] = {aClass, begin, time};
    }
    first.set(position, choices[position].time);
  }

  const Jobs &jobs;
  Rule rule;
  ListState state;
  Orders orders;
  std::vector<Choice> choices;
  FirstTime first;
  std::vector<int64_t> begins;
};

/// Chooses by a priority of classes among the jobs that begin first, or nearly.
struct PriorityOrder {
  const Priority &priority;

  bool isNext(const ListState &, int64_t) const { return true; }
  int64_t getTime(int64_t, int64_t begin) const { return begin; }
  bool mayWait(int64_t begin, int64_t time) const { return begin - time <= priority.patience; }
  int64_t getRank(int64_t aClass, int64_t age) const { return priority.ranks[aClass] + age * priority.ageWeight; }
};

/// Chooses by the keys of jobs among those that begin before the one that would end first has ended.
struct KeyOrder {
  const Jobs &jobs;
  llvm::ArrayRef<int64_t> keys;

  bool isNext(const ListState &, int64_t) const { return true; }
  int64_t getTime(int64_t aClass, int64_t begin) const { return begin + jobs.lengths[aClass]; }
  bool mayWait(int64_t begin, int64_t time) const { return begin < time || begin == time; }
  int64_t getRank(int64_t aClass, int64_t microBatch) const { return keys[jobs.getJob(aClass, microBatch)]; }
};

/// Keeps the classes' turns within rounds; backwards first.
struct RoundOrder {
  RoundOrder(const Jobs &jobs, llvm::ArrayRef<int64_t> rounds) : jobs(jobs), turns(jobs.countPositions()) {
    for (auto [position, classes] : llvm::enumerate(jobs.classesOf))
      for (int64_t round : rounds)
        for (int64_t kind = 0; kind < jobs.kinds; ++kind) {
          std::vector<int64_t> ofKind;
          for (int64_t aClass : classes)
            if (aClass % jobs.kinds == kind)
              ofKind.push_back(aClass);
          if (kind != kForward)
            std::reverse(ofKind.begin(), ofKind.end());
          for (int64_t aClass : ofKind)
            turns[position][kind].insert(turns[position][kind].end(), round, aClass);
        }
  }

  bool isNext(const ListState &state, int64_t aClass) const {
    int64_t position = jobs.positions[aClass], kind = aClass % jobs.kinds, done = state.counts[position][kind];
    const std::vector<int64_t> &turn = turns[position][kind];
    return done < static_cast<int64_t>(turn.size()) && turn[done] == aClass;
  }
  int64_t getTime(int64_t, int64_t begin) const { return begin; }
  bool mayWait(int64_t begin, int64_t time) const { return begin == time; }
  int64_t getRank(int64_t aClass, int64_t) const {
    constexpr int64_t kRanks[] = {1, 0, 2};
    return kRanks[aClass % jobs.kinds];
  }

  const Jobs &jobs;
  /// The classes of each position and kind, in the order of their jobs.
  std::vector<std::array<std::vector<int64_t>, 3>> turns;
};

} // namespace

Orders windlass::schedule::scheduleList(const Jobs &jobs, const Priority &priority) {
  return *ListScheduler<PriorityOrder>(jobs, {priority}).run();
}

Orders windlass::schedule::scheduleByKeys(const Jobs &jobs, llvm::ArrayRef<int64_t> keys) {
  return *ListScheduler<KeyOrder>(jobs, {jobs, keys}).run();
}

std::optional<Orders> windlass::schedule::scheduleRounds(const Jobs &jobs, llvm::ArrayRef<int64_t> rounds) {
  return ListScheduler<RoundOrder>(jobs, RoundOrder(jobs, rounds)).run();
}
