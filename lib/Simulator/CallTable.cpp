#include "CallTable.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace windlass::simulation;

CallTable::CallTable(const Rank &rank, int64_t events) : rank(&rank) {
  for (const Function &function : rank.functions)
    for (const Task &task : function.tasks)
      streams = std::max(streams, streamOf(task) + 1);
  size_t counters = 2 + events;
  for (const Function &function : rank.functions) {
    Counters &counts = ofFunction.emplace_back(counters, 0);
    auto &records = recordsBefore.emplace_back();
    auto &issue = issueUpTo.emplace_back();
    auto &lists = byStream.emplace_back(streams);
    counts[callsCounter()] = 1;
    for (auto [index, task] : llvm::enumerate(function.tasks)) {
      if (!isMark(task))
        counts[hostCounter()] += function.issuePicoseconds;
      issue.push_back(counts[hostCounter()]);
      records.push_back(isMark(task) ? counts[recordsCounter(task.object)] : 0);
      if (task.kind == Task::Kind::Record)
        ++counts[recordsCounter(task.object)];
      lists[streamOf(task)].push_back(static_cast<int64_t>(index));
    }
  }
  Counters before(counters, 0);
  auto add = [](Counters &to, const Counters &what, int64_t times) {
    for (size_t i = 0; i < to.size(); ++i)
      to[i] += what[i] * times;
  };
  for (const Loop &loop : rank.loops) {
    loopsBefore.push_back(before);
    Counters sum(counters, 0);
    auto &calls = callsBefore.emplace_back();
    auto &has = hasStream.emplace_back(streams, false);
    for (int64_t function : loop.calls) {
      calls.push_back(sum);
      add(sum, ofFunction[function], 1);
      for (int64_t stream = 0; stream < streams; ++stream)
        has[stream] = has[stream] || !byStream[function][stream].empty();
    }
    add(before, sum, loop.count);
    iterations.push_back(std::move(sum));
  }
  loopsBefore.push_back(std::move(before));
}

Position CallTable::settle(Position at) const {
  while (!isEnd(at)) {
    const Loop &loop = rank->loops[at.loop];
    if (at.call < static_cast<int64_t>(loop.calls.size()) && at.iteration < loop.count)
      return at;
    at.call = 0;
    if (loop.calls.empty() || ++at.iteration >= loop.count)
      at = {at.loop + 1, 0, 0};
  }
  return at;
}

Position CallTable::find(Position at, int64_t stream) const {
  while (!isEnd(at)) {
    if (!hasStream[at.loop][stream])
      at = settle({at.loop + 1, 0, 0});
    else if (byStream[functionAt(at)][stream].empty())
      at = next(at);
    else
      return at;
  }
  return at;
}

int64_t CallTable::countBefore(const Position &at, int64_t counter) const {
  int64_t count = loopsBefore[at.loop][counter];
  return isEnd(at) ? count
                   : count + at.iteration * iterations[at.loop][counter] + callsBefore[at.loop][at.call][counter];
}
