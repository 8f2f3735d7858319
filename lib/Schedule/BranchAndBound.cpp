#include "BranchAndBound.h"

#include "ListState.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <tuple>

using namespace windlass::schedule;

namespace {

/// Walks the active schedules (Giffler and Thompson, 1960): at the position whose next job could end first, each job
/// that could begin before that end is a branch. Without caps, one of them is optimal, since the job that ends first
/// could be moved before whatever is run instead. A forward that is moved so may take the room of another one; so where
/// the position's cap may bind, a further branch puts the forward off until the position has run something else.
class Brancher {
public:
  Brancher(const Jobs &jobs, const ScheduleBound &bound, Orders &best, int64_t &makespan, int64_t nodes)
      : jobs(jobs), bound(bound), best(best), makespan(makespan), nodes(nodes), current(best.size()) {}

  bool run() {
    visit(ListState(jobs), 0, 0);
    return nodes > 0;
  }

private:
  struct Branch {
    int64_t aClass, begin, least;
  };

  /// A set of classes, with a bit for each.
  using ClassSet = uint64_t;

  static int64_t getBegin(const Jobs &jobs, const ListState &state, ClassSet putOff, int64_t aClass) {
    return putOff >> aClass & 1 ? ListState::kNever : state.getBegin(jobs, aClass);
  }

  void visit(const ListState &state, ClassSet putOff, int64_t placed) {
    if (--nodes <= 0)
      return;
    if (placed == jobs.countJobs())
      return takeOver(state);
    int64_t first = -1, firstEnd = ListState::kNever;
    for (int64_t aClass = 0; aClass < jobs.countClasses(); ++aClass) {
      int64_t begin = getBegin(jobs, state, putOff, aClass);
      if (begin == ListState::kNever || begin + jobs.lengths[aClass] >= firstEnd)
        continue;
      firstEnd = begin + jobs.lengths[aClass];
      first = aClass;
    }
    if (first < 0)
      return; // all that could run is put off
    int64_t position = jobs.positions[first];
    std::vector<Branch> branches;
    for (int64_t aClass : jobs.classesOf[position]) {
      int64_t begin = getBegin(jobs, state, putOff, aClass);
      if (begin == ListState::kNever || (begin >= firstEnd && begin + jobs.lengths[aClass] > firstEnd))
        continue;
      ListState next = state;
      next.place(jobs, aClass, begin);
      branches.push_back({aClass, begin, getLeast(next)});
    }
    llvm::sort(branches, [](const Branch &a, const Branch &b) {
      return std::tie(a.least, a.aClass) < std::tie(b.least, b.aClass);
    });
    for (const Branch &branch : branches) {
      if (branch.least >= makespan)
        break;
      ListState next = state;
      next.place(jobs, branch.aClass, branch.begin);
      current[position].push_back(jobs.getJob(branch.aClass, state.next[branch.aClass]));
      descend(next, putOff & ~getClasses(position), placed + 1);
      current[position].pop_back();
    }
    if (first % jobs.kinds != kForward || !mayFill(state, position))
      return;
    // What else the position runs then begins no earlier: the rest was a branch above.
    ListState next = state;
    next.clocks[position] = std::max(next.clocks[position], firstEnd);
    if (getLeast(next) < makespan)
      descend(next, putOff | ClassSet(1) << first, placed);
  }

  void descend(const ListState &state, ClassSet putOff, int64_t placed) {
    if (nodes > 0 && makespan > bound.makespan && !isDominated(state, putOff))
      visit(state, putOff, placed);
  }

  void takeOver(const ListState &state) {
    int64_t end = *std::max_element(state.clocks.begin(), state.clocks.end());
    if (end >= makespan)
      return;
    makespan = end;
    best = current;
  }

  ClassSet getClasses(int64_t position) const {
    ClassSet classes = 0;
    for (int64_t aClass : jobs.classesOf[position])
      classes |= ClassSet(1) << aClass;
    return classes;
  }

  /// Returns whether the forwards to come may need more room than the position has.
  bool mayFill(const ListState &state, int64_t position) const {
    int64_t forwards = 0;
    for (int64_t aClass : jobs.classesOf[position])
      forwards += aClass % jobs.kinds == kForward ? jobs.microBatches - state.next[aClass] : 0;
    return state.live[position] + forwards > jobs.caps[position];
  }

  /// Returns a time that no schedule which begins like this one goes below.
  int64_t getLeast(const ListState &state) const {
    int64_t least = 0;
    for (const std::vector<int64_t> &classes : jobs.classesOf) {
      int64_t begin = std::numeric_limits<int64_t>::max(), tail = begin, load = 0;
      for (int64_t aClass : classes) {
        int64_t done = state.next[aClass];
        if (done == jobs.microBatches)
          continue;
        Job job = jobs.getJob(aClass, done), input = jobs.input[job];
        int64_t head = std::max(bound.heads[job], state.clocks[jobs.positions[aClass]]);
        if (input != kNoJob && state.ends[input] != ListState::kUnknown)
          head = std::max(head, state.ends[input] + jobs.lag[job]);
        least = std::max(least, head + jobs.lengths[aClass] + bound.tails[job]);
        begin = std::min(begin, head);
        tail = std::min(tail, bound.tails[jobs.getJob(aClass, jobs.microBatches - 1)]);
        load += (jobs.microBatches - done) * jobs.lengths[aClass];
      }
      least = std::max(least, load > 0 ? begin + load + tail : state.clocks[jobs.positions[classes.front()]]);
    }
    return least;
  }

  /// Returns whether a state with the same jobs was visited in which nothing is later. Remembers the state otherwise.
  bool isDominated(const ListState &state, ClassSet putOff) {
    std::vector<int64_t> times = state.clocks;
    for (int64_t aClass = 0; aClass < jobs.countClasses(); ++aClass)
      for (int64_t n = 0; n < state.next[aClass]; ++n)
        if (Job job = jobs.getJob(aClass, n), output = jobs.output[job];
            output != kNoJob && state.ends[output] == ListState::kUnknown)
          times.push_back(state.ends[job]);
    std::vector<std::vector<int64_t>> &others = visited[{putOff, state.next}];
    for (const std::vector<int64_t> &other : others)
      if (llvm::all_of(llvm::zip_equal(other, times), [](auto pair) { return std::get<0>(pair) <= std::get<1>(pair); }))
        return true;
    others.push_back(std::move(times));
    return false;
  }

  const Jobs &jobs;
  const ScheduleBound &bound;
  Orders &best;
  int64_t &makespan;
  int64_t nodes;
  Orders current;
  /// The times that matter for what comes after, by the classes that are put off and the number of jobs of each class.
  std::map<std::pair<ClassSet, std::vector<int64_t>>, std::vector<std::vector<int64_t>>> visited;
};

} // namespace

bool windlass::schedule::branchAndBound(const Jobs &jobs, const ScheduleBound &bound, Orders &orders, int64_t &makespan,
                                        int64_t nodes) {
  return Brancher(jobs, bound, orders, makespan, nodes).run();
}
