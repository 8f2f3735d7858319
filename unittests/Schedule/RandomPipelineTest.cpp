#include "PipelineExecutor.h"

#include "llvm/ADT/STLExtras.h"

#include "gtest/gtest.h"

#include <random>

using namespace windlass::schedule;

namespace {

class Draw {
public:
  explicit Draw(unsigned seed) : random(seed) {}
  int64_t below(int64_t limit) { return static_cast<int64_t>(random() % static_cast<unsigned>(limit)); }

  Placement placement() {
    switch (below(5)) {
    case 0:
      return makeLoopedPlacement(1 + below(3), 1 + below(2));
    case 1:
      return makeWavePlacement(1 + below(3), 1 + below(2));
    case 2:
      return makeBidirectionalPlacement(2, 1);
    case 3:
      return makeBlockedPlacement(1 + below(3), 1 + below(2));
    default:
      break;
    }
    Placement any; // each chunk anywhere, but no position is without one
    any.positions = 1 + below(3);
    any.positionOf.clear();
    for (int64_t chunk = 0; chunk < 4; ++chunk)
      any.positionOf.push_back(chunk < any.positions ? chunk : below(any.positions));
    std::shuffle(any.positionOf.begin(), any.positionOf.end(), random);
    return any;
  }

  /// Any order in which one position after another computes what it can.
  Pipeline computation() {
    Pipeline pipeline;
    pipeline.placement = placement();
    const Placement &placed = pipeline.placement;
    pipeline.positions.resize(placed.positions);
    int64_t microBatches = 1 + below(2);
    std::vector<Action> todo;
    for (int64_t chunk = 0; chunk < placed.countChunks(); ++chunk)
      for (int64_t n = 0; n < microBatches; ++n) {
        bool splits = below(3) == 0;
        todo.push_back(make(ActionKind::Forward, chunk, n));
        todo.push_back(make(splits ? ActionKind::InputGradient : ActionKind::Backward, chunk, n));
        if (splits)
          todo.push_back(make(ActionKind::WeightGradient, chunk, n));
      }
    std::set<std::tuple<int, int64_t, int64_t>> done; // 0: forward, 1: input gradient
    while (!todo.empty()) {
      size_t i = below(todo.size());
      const Action a = todo[i];
      std::optional<int64_t> previous = placed.getPrevious(a.chunk), next = placed.getNext(a.chunk);
      bool isReady = a.kind == ActionKind::Forward ? !previous || done.count({0, *previous, a.microBatch})
                     : a.kind == ActionKind::WeightGradient
                         ? done.count({1, a.chunk, a.microBatch}) > 0
                         : done.count({0, a.chunk, a.microBatch}) && (!next || done.count({1, *next, a.microBatch}));
      if (!isReady)
        continue;
      if (a.kind != ActionKind::WeightGradient)
        done.insert({a.kind == ActionKind::Forward ? 0 : 1, a.chunk, a.microBatch});
      pipeline.positions[placed.positionOf[a.chunk]].actions.push_back(a);
      todo.erase(todo.begin() + i);
    }
    for (ActionKind kind : {ActionKind::Reduce, ActionKind::Update})
      for (int64_t chunk = 0; chunk < placed.countChunks(); ++chunk)
        pipeline.positions[placed.positionOf[chunk]].actions.push_back(make(kind, chunk, 0));
    return pipeline;
  }

  void mutate(Pipeline &pipeline) {
    std::vector<Action> &list = pipeline.positions[below(pipeline.positions.size())].actions;
    size_t i = below(list.size()), j = below(list.size());
    switch (below(10)) {
    case 0:
      std::swap(list[i], list[j]);
      break;
    case 1:
    case 2:
      if (i + 1 < list.size())
        std::swap(list[i], list[i + 1]);
      break;
    case 3: {
      Action moved = list[i];
      list.erase(list.begin() + i);
      list.insert(list.begin() + std::min(j, list.size()), moved);
      break;
    }
    case 4:
      list.erase(list.begin() + i);
      break;
    case 5:
      list.insert(list.begin() + j, list[i]);
      break;
    case 6:
      list[i].slot = below(3);
      break;
    case 7:
      if (isTransfer(list[i].kind) && below(2) == 0)
        list[i].peer = below(pipeline.placement.positions);
      else
        list[i].microBatch = below(3);
      break;
    default: // two transfers in succession
      for (size_t k = 0; k + 1 < list.size(); ++k, i = (i + 1) % list.size())
        if (i + 1 < list.size() && isTransfer(list[i].kind) && isTransfer(list[i + 1].kind)) {
          std::swap(list[i], list[i + 1]);
          break;
        }
      break;
    }
    if (below(4) != 0)
      markAgain(list);
  }

private:
  static Action make(ActionKind kind, int64_t chunk, int64_t microBatch) {
    Action action;
    action.kind = kind;
    action.chunk = chunk;
    action.microBatch = microBatch;
    return action;
  }
  /// So that not every change of an order is found by its marks.
  static void markAgain(std::vector<Action> &list) {
    for (Action &a : list) {
      auto isSame = [&](const Action &b) {
        auto getClass = [](ActionKind kind) {
          return kind == ActionKind::WeightGradient ? ActionKind::Backward : kind;
        };
        return getClass(a.kind) == getClass(b.kind) && a.chunk == b.chunk && a.peerChunk == b.peerChunk;
      };
      a.isFirst = llvm::find_if(list, isSame) == &a - list.data() + list.begin();
      a.isLast = llvm::none_of(llvm::make_range(&a + 1, list.data() + list.size()), isSame);
    }
  }
  std::mt19937 random;
};

/// The checker says of any order what an executor finds that tries all runs.
TEST(RandomPipeline, CheckerAndExecutorAgree) {
  int64_t legal = 0, illegal = 0, needsRoom = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Draw draw(seed);
    llvm::Expected<Pipeline> made = insertTransfers(draw.computation());
    ASSERT_TRUE(static_cast<bool>(made)) << llvm::toString(made.takeError());
    for (int64_t change = 0; change < 12; ++change) {
      Pipeline pipeline = *made;
      for (int64_t k = 0; k < change % 4; ++k)
        draw.mutate(pipeline);
      bool wasLegal = false;
      for (int64_t capacity : {0, 1, 2}) {
        std::string found = llvm::toString(checkPipeline(pipeline, capacity));
        bool isLegal = windlass::schedule::testing::PipelineExecutor(pipeline, capacity).run();
        ASSERT_EQ(found.empty(), isLegal) << "seed " << seed << ", room " << capacity << ": " << found << "\n"
                                          << printPipeline(pipeline);
        if (change == 0) {
          ASSERT_TRUE(isLegal) << found;
        }
        ASSERT_TRUE(isLegal || !wasLegal) << "more room makes it illegal";
        needsRoom += isLegal && !wasLegal && capacity > 0;
        wasLegal = isLegal;
        (isLegal ? legal : illegal) += change > 0;
      }
    }
  }
  // The changes are such that all verdicts occur often.
  EXPECT_GT(legal, 1000);
  EXPECT_GT(illegal, 1000);
  EXPECT_GT(needsRoom, 20);
}

TEST(RandomPipeline, TextKeepsOrders) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    Pipeline pipeline = llvm::cantFail(insertTransfers(draw.computation()));
    std::string text = printPipeline(pipeline);
    llvm::Expected<Pipeline> read = parsePipeline(text);
    ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError()) << "\n" << text;
    EXPECT_EQ(printPipeline(*read), text);
    EXPECT_TRUE(read->placement == pipeline.placement);
    for (auto [a, b] : llvm::zip_equal(read->positions, pipeline.positions))
      for (auto [x, y] : llvm::zip_equal(a.actions, b.actions))
        EXPECT_EQ(std::tie(x.kind, x.chunk, x.microBatch, x.slot, x.isFirst, x.isLast, x.peerChunk, x.peer),
                  std::tie(y.kind, y.chunk, y.microBatch, y.slot, y.isFirst, y.isLast, y.peerChunk, y.peer));
  }
}

} // namespace
