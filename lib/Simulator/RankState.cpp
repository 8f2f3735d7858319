#include "RankState.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>

using namespace windlass::simulation;

RankState::RankState(const Rank &rank, int64_t index, int64_t events, const std::function<void(const Span &)> &visit)
    : totals(rank.functions.size()), table(rank, events), index(index), visit(visit), reached(events),
      front(table.begin()), last{static_cast<int64_t>(rank.loops.size()), 0, 0} {
  streams.resize(table.getStreams());
  for (auto [s, stream] : llvm::enumerate(streams)) {
    stream.at = table.find(front, static_cast<int64_t>(s));
    if (table.isEnd(stream.at))
      stream.status = StreamState::Status::Ended;
  }
}

int64_t RankState::issueTime(const StreamState &stream) const {
  return table.countBefore(stream.at, table.hostCounter()) +
         table.issueInFunction(table.functionAt(stream.at), getTaskIndex(stream));
}

void RankState::record(const StreamState &stream, const Task &task) {
  int64_t number = table.countBefore(stream.at, table.recordsCounter(task.object)) +
                   table.recordsInFunction(table.functionAt(stream.at), getTaskIndex(stream));
  Reached &its = reached[task.object];
  its.others.insert(number);
  while (!its.others.empty() && *its.others.begin() == its.all) {
    its.others.erase(its.others.begin());
    ++its.all;
  }
}

bool RankState::isReached(const StreamState &stream, const Task &task) const {
  int64_t number = table.countBefore(stream.at, table.recordsCounter(task.object)) +
                   table.recordsInFunction(table.functionAt(stream.at), getTaskIndex(stream)) - 1 - task.skips;
  const Reached &its = reached[task.object];
  return number < its.all || its.others.count(number) != 0;
}

void RankState::begin(int64_t stream, int64_t now) {
  streams[stream].status = StreamState::Status::Running;
  streams[stream].time = now;
  if (running++ == 0)
    busySince = now;
}

void RankState::complete(int64_t stream, int64_t begin, int64_t end) {
  StreamState &its = streams[stream];
  int64_t function = table.functionAt(its.at), task = getTaskIndex(its);
  Completion &call = completions[callsBefore(its.at)];
  ++call.done;
  if (!isMark(getTask(its))) {
    if (--running == 0)
      busy += static_cast<double>(end - busySince);
    call.end = std::max(call.end, end);
    // Tasks of a serial rank name streams too.
    call.busy.resize(std::max(call.busy.size(), static_cast<size_t>(getTask(its).stream) + 1), 0);
    call.busy[getTask(its).stream] += end - begin;
    if (visit) {
      call.spans.resize(table.getTaskCount(function), {-1, 0});
      call.spans[task] = {begin, end - begin};
    }
  }
  its.status = StreamState::Status::Ready;
  if (++its.next < static_cast<int64_t>(table.getSteps(function, stream).size()))
    return;
  its.next = 0;
  its.at = table.find(table.next(its.at), stream);
  if (table.isEnd(its.at))
    its.status = StreamState::Status::Ended;
}

bool RankState::settle() {
  bool endsIteration = false;
  while (!table.isEnd(front)) {
    int64_t function = table.functionAt(front), tasks = table.getTaskCount(function);
    auto found = completions.find(callsBefore(front));
    if (tasks > 0 && (found == completions.end() || found->second.done < tasks))
      break;
    ++totals[function].runs;
    if (found != completions.end()) {
      int64_t before = end;
      end = std::max(end, found->second.end);
      FunctionTotal &total = totals[function];
      total.elapsedPicoseconds += static_cast<double>(end - before);
      total.busyPicoseconds.resize(std::max(total.busyPicoseconds.size(), found->second.busy.size()), 0);
      for (auto [stream, busy] : llvm::enumerate(found->second.busy))
        total.busyPicoseconds[stream] += static_cast<double>(busy);
      for (auto [task, span] : llvm::enumerate(found->second.spans))
        if (span.first >= 0)
          visit({index, function, static_cast<int64_t>(task), span.first, span.second});
      completions.erase(found);
    }
    Position next = table.next(front);
    endsIteration |= next.loop == front.loop && next.iteration != front.iteration;
    front = next;
  }
  return endsIteration;
}

void RankState::addKey(std::vector<int64_t> &key, int64_t now) const {
  key.push_back(front.loop);
  if (table.isEnd(front))
    return;
  key.push_back(front.call);
  key.push_back(end - now);
  for (const StreamState &stream : streams) {
    bool isHere = isInFrontSegment(stream.at);
    key.push_back(stream.at.loop);
    key.push_back(isHere ? stream.at.iteration - front.iteration : stream.at.iteration);
    key.push_back(stream.at.call);
    key.push_back(stream.next);
    key.push_back(static_cast<int64_t>(stream.status));
    // A task behind the loop is issued at a time that does not depend on how often it is repeated.
    if (isHere && stream.status == StreamState::Status::Issuing)
      key.push_back(stream.time - now);
  }
  int64_t calls = callsBefore(front), behind = countBehind(table.callsCounter());
  for (const auto &[number, completion] : completions) {
    key.push_back(number < behind ? number - calls : number);
    key.push_back(completion.done);
    // Ends before that of the calls in front change nothing.
    key.push_back(std::max(completion.end, end) - now);
    // How long what has ended took, which differs where it shared a link.
    key.push_back(static_cast<int64_t>(completion.busy.size()));
    key.insert(key.end(), completion.busy.begin(), completion.busy.end());
  }
  for (auto [event, its] : llvm::enumerate(reached)) {
    int64_t counter = table.recordsCounter(static_cast<int64_t>(event));
    int64_t before = table.countBefore(front, counter), after = countBehind(counter);
    key.push_back(its.all - before);
    for (int64_t number : its.others)
      key.push_back(number < after ? number - before : number);
    key.push_back(-1);
  }
}

int64_t RankState::countJumps(const Progress &before, int64_t period, int64_t now) const {
  int64_t most = std::numeric_limits<int64_t>::max();
  if (table.isEnd(front))
    return most;
  int64_t iterations = front.iteration - before.front.iteration;
  if (front.loop != before.front.loop || iterations < 0)
    return 0;
  if (iterations == 0)
    return front.call == before.front.call ? most : 0;
  // Either the host keeps its distance, or nothing has waited for it and nothing will.
  int64_t issued = iterations * table.countOfIteration(front.loop, table.hostCounter());
  if (issued != period && (hostWaits != before.hostWaits || issued > period))
    return 0;
  int64_t furthest = front.iteration;
  for (const StreamState &stream : streams) {
    if (isInFrontSegment(stream.at))
      furthest = std::max(furthest, stream.at.iteration);
    else if (stream.status == StreamState::Status::Issuing)
      most = std::min(most, (stream.time - now) / period);
  }
  return std::min(most, (table.getIterations(front.loop) - 1 - furthest) / iterations);
}

void RankState::jump(const Progress &before, int64_t times, int64_t period, int64_t now) {
  busy = getBusy(now) + static_cast<double>(times) * (getBusy(now) - before.busy);
  busySince = now + times * period;
  if (table.isEnd(front) || front.iteration == before.front.iteration)
    return;
  int64_t iterations = times * (front.iteration - before.front.iteration), time = times * period;
  int64_t behind = countBehind(table.callsCounter());
  auto moved = [&](int64_t number, int64_t limit, int64_t counter) {
    return number < limit ? number + iterations * table.countOfIteration(front.loop, counter) : number;
  };
  std::map<int64_t, Completion> shifted;
  for (auto &[number, completion] : completions) {
    completion.end += number < behind ? time : 0;
    shifted[moved(number, behind, table.callsCounter())] = std::move(completion);
  }
  completions = std::move(shifted);
  for (auto [event, its] : llvm::enumerate(reached)) {
    int64_t counter = table.recordsCounter(static_cast<int64_t>(event));
    int64_t after = countBehind(counter);
    its.all += iterations * table.countOfIteration(front.loop, counter);
    std::set<int64_t> others;
    for (int64_t number : its.others)
      others.insert(moved(number, after, counter));
    its.others = std::move(others);
  }
  for (StreamState &stream : streams) {
    if (!isInFrontSegment(stream.at))
      continue;
    stream.at.iteration += iterations;
    stream.time += time;
  }
  for (auto [total, past] : llvm::zip_equal(totals, before.totals)) {
    total.runs += static_cast<double>(times) * (total.runs - past.runs);
    total.elapsedPicoseconds += static_cast<double>(times) * (total.elapsedPicoseconds - past.elapsedPicoseconds);
    for (auto [stream, busy] : llvm::enumerate(total.busyPicoseconds))
      busy += static_cast<double>(times) *
              (busy - (stream < past.busyPicoseconds.size() ? past.busyPicoseconds[stream] : 0));
  }
  front.iteration += iterations;
  end += time;
}
