#include "windlass/Simulator/EventSimulation.h"

#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <map>
#include <random>

using namespace windlass::simulation;

namespace {

Task work(int64_t stream, int64_t picoseconds, int64_t uses = -1) {
  return {Task::Kind::Work, stream, 0, picoseconds, uses};
}
Task record(int64_t stream, int64_t event) { return {Task::Kind::Record, stream, event}; }
Task wait(int64_t stream, int64_t event, int64_t skips = 0) { return {Task::Kind::Wait, stream, event, 0, -1, skips}; }
Task send(int64_t stream, int64_t channel, int64_t picoseconds, int64_t uses = -1) {
  return {Task::Kind::Send, stream, channel, picoseconds, uses};
}
Task receive(int64_t stream, int64_t channel) { return {Task::Kind::Receive, stream, channel}; }

Result run(const Problem &problem, const std::function<void(const Span &)> &visit = {}) {
  llvm::Expected<Result> result = simulate(problem, visit);
  if (result)
    return std::move(*result);
  ADD_FAILURE() << llvm::toString(result.takeError());
  return {};
}

std::string errorOf(const Problem &problem) {
  llvm::Expected<Result> result = simulate(problem);
  return result ? "" : llvm::toString(result.takeError());
}

/// The end of a rank's step in the order of the text, in which each stream, each record and the host is one number.
int64_t replay(const Rank &rank) {
  std::map<int64_t, int64_t> streams;
  std::map<int64_t, std::vector<int64_t>> events;
  int64_t host = 0, end = 0;
  for (const Loop &loop : rank.loops)
    for (int64_t i = 0; i < loop.count; ++i)
      for (int64_t function : loop.calls)
        for (const Task &task : rank.functions[function].tasks) {
          int64_t &time = streams[task.stream];
          if (task.kind == Task::Kind::Record) {
            events[task.object].push_back(time);
          } else if (task.kind == Task::Kind::Wait) {
            const std::vector<int64_t> &records = events[task.object];
            if (int64_t number = static_cast<int64_t>(records.size()) - 1 - task.skips; number >= 0)
              time = std::max(time, records[number]);
          } else {
            host += rank.functions[function].issuePicoseconds;
            time = std::max({time, host, rank.isSerial ? end : 0}) + task.picoseconds;
            end = std::max(end, time);
          }
        }
  return std::max(end, host);
}

Rank drawRank(std::mt19937 &random) {
  auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  Rank rank;
  rank.isSerial = draw(0, 5) == 0;
  for (int64_t f = draw(1, 4); f > 0; --f) {
    Function function;
    function.issuePicoseconds = draw(0, 2) == 0 ? draw(0, 6) : 0;
    for (int64_t i = draw(0, 12); i > 0; --i) {
      int64_t stream = draw(0, 2);
      switch (draw(0, 3)) {
      case 0:
        function.tasks.push_back(record(stream, draw(0, 3)));
        break;
      case 1:
        function.tasks.push_back(wait(stream, draw(0, 3), draw(0, 2) == 0 ? draw(1, 4) : 0));
        break;
      default:
        function.tasks.push_back(work(stream, draw(0, 9)));
      }
    }
    rank.functions.push_back(function);
  }
  int64_t functions = static_cast<int64_t>(rank.functions.size());
  for (int64_t s = draw(1, 4); s > 0; --s) {
    Loop loop;
    for (int64_t c = draw(0, 4); c > 0; --c)
      loop.calls.push_back(draw(0, functions - 1));
    loop.count = draw(0, 1) ? 1 : draw(1, 40);
    rank.loops.push_back(loop);
  }
  return rank;
}

/// The loops of a problem, call by call.
Problem unroll(Problem problem) {
  for (Rank &rank : problem.ranks) {
    Loop all;
    for (const Loop &loop : rank.loops)
      for (int64_t i = 0; i < loop.count; ++i)
        all.calls.insert(all.calls.end(), loop.calls.begin(), loop.calls.end());
    rank.loops = {all};
  }
  return problem;
}

TEST(EventSimulation, EqualsAReplayInTheOrderOfTheText) {
  std::mt19937 random(7);
  for (int i = 0; i < 4000; ++i) {
    Problem problem;
    problem.ranks.push_back(drawRank(random));
    EXPECT_EQ(run(problem).picoseconds, replay(problem.ranks.front())) << "draw " << i;
  }
}

TEST(EventSimulation, TotalsAddUpToTheStep) {
  std::mt19937 random(8);
  for (int i = 0; i < 500; ++i) {
    Problem problem;
    problem.ranks.push_back(drawRank(random));
    Rank &rank = problem.ranks.front();
    std::vector<double> runs(rank.functions.size());
    double seen = 0;
    for (const Loop &loop : rank.loops)
      for (int64_t function : loop.calls)
        runs[function] += static_cast<double>(loop.count);
    for (Function &function : rank.functions)
      function.issuePicoseconds = 0;
    Result result = run(problem);
    double elapsed = 0;
    for (auto [total, count] : llvm::zip_equal(result.totals.front(), runs)) {
      EXPECT_EQ(total.runs, count);
      elapsed += total.elapsedPicoseconds;
    }
    EXPECT_EQ(elapsed, static_cast<double>(result.picoseconds)) << "draw " << i;
    // A rank is busy where the spans are, once where they overlap.
    std::vector<std::pair<int64_t, int64_t>> spans;
    run(unroll(problem),
        [&](const Span &span) { spans.emplace_back(span.beginPicoseconds, span.beginPicoseconds + span.picoseconds); });
    llvm::sort(spans);
    int64_t busy = 0, covered = 0;
    for (auto [begin, end] : spans) {
      busy += std::max<int64_t>(0, end - std::max(begin, covered));
      covered = std::max(covered, end);
    }
    EXPECT_EQ(result.busyPicoseconds, std::vector<double>{static_cast<double>(busy)}) << "draw " << i;
    // What is left out is not seen; what is seen comes in the order of the text.
    for (Loop &loop : rank.loops)
      loop.count = 1;
    double once = 0;
    for (const Loop &loop : rank.loops)
      for (int64_t function : loop.calls)
        for (const Task &task : rank.functions[function].tasks)
          once += static_cast<double>(task.kind == Task::Kind::Work ? task.picoseconds : 0);
    run(problem, [&](const Span &span) { seen += static_cast<double>(span.picoseconds); });
    EXPECT_EQ(seen, once) << "draw " << i;
  }
}

/// Positions of a pipeline, one micro-batch forward and one backward in turn; each position is one rank, whose sends
/// and receives have a stream for each neighbour and direction.
Problem makePipeline(int64_t positions, int64_t microBatches, int64_t forward, int64_t backward, int64_t hop) {
  Problem problem;
  for (int64_t s = 0; s < positions; ++s) {
    bool isFirst = s == 0, isLast = s == positions - 1;
    Rank rank;
    rank.functions.resize(2);
    auto &f = rank.functions[0].tasks, &b = rank.functions[1].tasks;
    if (!isFirst) {
      // Its input arrives on stream 1; its gradient leaves on stream 2.
      f.insert(f.end(), {receive(1, 2 * s - 2), record(1, 0), wait(0, 0)});
    }
    f.push_back(work(0, forward));
    if (!isLast) {
      f.insert(f.end(), {record(0, 1), wait(3, 1), send(3, 2 * s, hop)});
      b.insert(b.end(), {receive(4, 2 * s + 1), record(4, 2), wait(0, 2)});
    }
    b.push_back(work(0, backward));
    if (!isFirst)
      b.insert(b.end(), {record(0, 3), wait(2, 3), send(2, 2 * s - 1, hop)});
    int64_t warmUp = std::min(positions - s - 1, microBatches);
    rank.loops = {{{0}, warmUp}, {{0, 1}, microBatches - warmUp}, {{1}, warmUp}};
    problem.ranks.push_back(rank);
  }
  return problem;
}

/// Without hops a pipeline of p positions and m micro-batches takes (m + p - 1) of its slowest pair.
TEST(EventSimulation, OneForwardOneBackward) {
  for (int64_t positions : {1, 2, 3, 4, 8})
    for (int64_t microBatches : {8, 9, 64}) {
      EXPECT_EQ(run(makePipeline(positions, microBatches, 10, 20, 0)).picoseconds, (microBatches + positions - 1) * 30)
          << positions << " positions, " << microBatches << " micro-batches";
    }
}

TEST(EventSimulation, IterationsThatAreLeftOutChangeNothing) {
  std::mt19937 random(9);
  auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int i = 0; i < 300; ++i) {
    Problem problem = makePipeline(draw(1, 5), draw(5, 60), draw(1, 30), draw(1, 30), draw(0, 12));
    for (Rank &rank : problem.ranks)
      for (Function &function : rank.functions) {
        function.issuePicoseconds = draw(0, 3) == 0 ? draw(1, 9) : 0;
        for (Task &task : function.tasks)
          task.picoseconds += task.kind == Task::Kind::Work ? draw(0, 5) : 0;
      }
    // All hops over one link, which slows them down in half of the draws.
    problem.uses = {{{0, draw(0, 1) ? 0.75 : 0.0}}};
    for (Rank &rank : problem.ranks)
      for (Function &function : rank.functions)
        for (Task &task : function.tasks)
          task.uses = task.kind == Task::Kind::Send ? 0 : -1;
    Result left = run(problem), all = run(unroll(problem));
    EXPECT_EQ(left.picoseconds, all.picoseconds) << "draw " << i;
    EXPECT_EQ(left.busyPicoseconds, all.busyPicoseconds) << "draw " << i;
    for (auto [few, many] : llvm::zip_equal(left.totals, all.totals))
      for (auto [one, other] : llvm::zip_equal(few, many)) {
        EXPECT_EQ(one.runs, other.runs) << "draw " << i;
        EXPECT_EQ(one.elapsedPicoseconds, other.elapsedPicoseconds) << "draw " << i;
        EXPECT_EQ(one.busyPicoseconds, other.busyPicoseconds) << "draw " << i;
      }
  }
}

TEST(EventSimulation, TheCountsCostNothing) {
  int64_t microBatches = 100'000'000, visited = 0;
  Problem problem = makePipeline(8, microBatches, 10, 20, 3);
  int64_t step = run(problem, [&](const Span &) { ++visited; }).picoseconds;
  EXPECT_LT(visited, 10'000);
  // What a few take, and what each more does; turns repeat in groups of eight.
  auto take = [](int64_t count) { return run(unroll(makePipeline(8, count, 10, 20, 3))).picoseconds; };
  EXPECT_EQ(step, take(200) + (take(1000) - take(200)) * (microBatches - 200) / 800);
}

/// Two transfers of 100 over one link, each of which uses all of it; the second begins 40 later.
TEST(EventSimulation, TransfersShareALink) {
  Problem problem;
  problem.uses = {{{0, 1.0}}, {{0, 0.5}}};
  problem.ranks.resize(1);
  problem.ranks[0].functions = {{{work(0, 100, 0), work(1, 40), work(1, 100, 0)}}};
  problem.ranks[0].loops = {{{0}, 1}};
  // 40 alone, 120 shared for the remaining 60 of the first, 40 alone for what is left of the second.
  std::map<int64_t, std::pair<int64_t, int64_t>> spans;
  Result result = run(problem, [&](const Span &span) { spans[span.task] = {span.beginPicoseconds, span.picoseconds}; });
  EXPECT_EQ(result.picoseconds, 200);
  EXPECT_EQ(spans[0], std::pair(int64_t(0), int64_t(160)));
  EXPECT_EQ(spans[2], std::pair(int64_t(40), int64_t(160)));
  EXPECT_EQ(result.totals[0][0].busyPicoseconds, (std::vector<double>{160, 40 + 160}));
  // Each leaves room for the other.
  for (Task &task : problem.ranks[0].functions[0].tasks)
    task.uses = task.uses == 0 ? 1 : -1;
  EXPECT_EQ(run(problem).picoseconds, 140);
}

TEST(EventSimulation, RanksMeet) {
  Problem problem;
  for (int64_t length : {5, 30, 20})
    problem.ranks.push_back({{{{work(0, length), {Task::Kind::Meet, 0, 0, 10}, work(0, length)}}}, {{{0}, 2}}});
  // The slowest sets the time of both meetings; the others are idle until then.
  Result result = run(problem);
  EXPECT_EQ(result.picoseconds, 30 + 10 + 60 + 10 + 30);
  EXPECT_EQ(result.busyPicoseconds, (std::vector<double>{40, 140, 100}));
  problem.ranks[1].loops.clear();
  EXPECT_EQ(errorOf(problem), "nothing goes on: rank 0 stream 0 meets group 0; rank 2 stream 0 meets group 0");
}

TEST(EventSimulation, RanksThatWaitForEachOtherAreNamed) {
  Problem problem;
  problem.ranks.resize(2);
  for (int64_t r : {0, 1}) {
    problem.ranks[r].functions = {{{send(0, r, 5), receive(0, 1 - r)}}};
    problem.ranks[r].loops = {{{0}, 1}};
  }
  EXPECT_EQ(errorOf(problem),
            "nothing goes on: rank 0 stream 0 sends on channel 0; rank 1 stream 0 sends on channel 1");
  // Another order, or a stream for each direction.
  std::swap(problem.ranks[1].functions[0].tasks[0], problem.ranks[1].functions[0].tasks[1]);
  EXPECT_EQ(run(problem).picoseconds, 10);
  std::swap(problem.ranks[1].functions[0].tasks[0], problem.ranks[1].functions[0].tasks[1]);
  for (Rank &rank : problem.ranks)
    rank.functions[0].tasks[1].stream = 1;
  EXPECT_EQ(run(problem).picoseconds, 5);
  problem.ranks[1].functions[0].tasks[0].object = 0;
  EXPECT_EQ(errorOf(problem), "channel 0 has two senders");
}

} // namespace
