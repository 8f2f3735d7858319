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

class ListScheduler {
public:
  ListScheduler(const Jobs &jobs, const Priority &priority)
      : jobs(jobs), priority(priority), state(jobs), orders(jobs.countPositions()), choices(jobs.countPositions()) {}

  Orders run() {
    for (int64_t position = 0; position < jobs.countPositions(); ++position)
      choose(position);
    for (int64_t left = jobs.countJobs(); left > 0; --left) {
      int64_t first = 0;
      for (int64_t position = 1; position < jobs.countPositions(); ++position)
        if (choices[position].begin < choices[first].begin)
          first = position;
      place(first);
    }
    return std::move(orders);
  }

private:
  /// What a position does next, and when.
  struct Choice {
    int64_t aClass = 0, begin = ListState::kNever;
  };

  void place(int64_t position) {
    auto [aClass, begin] = choices[position];
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
    int64_t earliest = ListState::kNever;
    for (int64_t aClass : classes) {
      begins.push_back(state.getBegin(jobs, aClass));
      earliest = std::min(earliest, begins.back());
    }
    choices[position] = {};
    int64_t best = std::numeric_limits<int64_t>::max();
    for (auto [aClass, begin] : llvm::zip_equal(classes, begins)) {
      if (begin == ListState::kNever || begin - earliest > priority.patience)
        continue;
      int64_t rank = priority.ranks[aClass] + state.next[aClass] * priority.ageWeight;
      if (rank >= best)
        continue;
      best = rank;
      choices[position] = {aClass, begin};
    }
  }

  const Jobs &jobs;
  const Priority &priority;
  ListState state;
  Orders orders;
  std::vector<Choice> choices;
  std::vector<int64_t> begins;
};

} // namespace

Orders windlass::schedule::scheduleList(const Jobs &jobs, const Priority &priority) {
  return ListScheduler(jobs, priority).run();
}
