#include "windlass/Schedule/Generators.h"
#include "windlass/Schedule/NamedSchedules.h"

#include "llvm/ADT/STLExtras.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::schedule;

namespace {

std::string check(const Pipeline &pipeline, int64_t capacity = 0) {
  return llvm::toString(checkPipeline(pipeline, capacity));
}

std::string checkPlaced(const Placement &placement) { return llvm::toString(checkPlacement(placement)); }

TEST(Placement, NamedOnes) {
  using testing::ElementsAre;
  EXPECT_THAT(makeBlockedPlacement(2, 2).positionOf, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(makeLoopedPlacement(2, 2).positionOf, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(makeWavePlacement(3, 2).positionOf, ElementsAre(0, 1, 2, 2, 1, 0));
  EXPECT_THAT(makeWavePlacement(2, 3).positionOf, ElementsAre(0, 1, 1, 0, 0, 1));
  Placement both = makeBidirectionalPlacement(3, 1);
  EXPECT_THAT(both.positionOf, ElementsAre(0, 1, 2, 2, 1, 0));
  EXPECT_THAT(both.chains, ElementsAre(0, 3));
  EXPECT_EQ(both.getNext(2), std::nullopt);
  EXPECT_EQ(both.getPrevious(3), std::nullopt);
  EXPECT_EQ(both.getNext(3), 4);
  EXPECT_EQ(makeWavePlacement(3, 2).getNext(2), 3);
  for (int64_t p : {1, 2, 5})
    for (int64_t v : {1, 2, 3})
      for (const Placement &placement : {makeBlockedPlacement(p, v), makeLoopedPlacement(p, v), makeWavePlacement(p, v),
                                         makeBidirectionalPlacement(p, v)})
        EXPECT_EQ(checkPlaced(placement), "");
}

TEST(Placement, WrongOnesAreRefused) {
  EXPECT_EQ(checkPlaced({0, {}, {0}}), "has 0 positions; 1 to 65536 are possible");
  EXPECT_EQ(checkPlaced({1 << 20, {}, {0}}), "has 1048576 positions; 1 to 65536 are possible");
  EXPECT_EQ(checkPlaced({1, std::vector<int64_t>(65537, 0), {0}}), "has 65537 chunks; at most 65536 are possible");
  EXPECT_EQ(checkPlaced({2, {0, 2}, {0}}), "places chunk 1 on position 2 of 2");
  EXPECT_EQ(checkPlaced({2, {0, -1}, {0}}), "places chunk 1 on position -1 of 2");
  EXPECT_EQ(checkPlaced({3, {0, 2}, {0}}), "has no chunk on position 1");
  EXPECT_EQ(checkPlaced({1, {}, {0}}), "has no chunk in chain 0");
  EXPECT_EQ(checkPlaced({1, {0}, {}}), "has no chain that begins with chunk 0");
  EXPECT_EQ(checkPlaced({1, {0}, {1}}), "has no chain that begins with chunk 0");
  EXPECT_EQ(checkPlaced({1, {0, 0}, {0, 2}}), "has no chunk in chain 1");
  EXPECT_EQ(checkPlaced({1, {0, 0, 0}, {0, 2, 1}}), "has no chunk in chain 1");
  EXPECT_EQ(checkPlaced({1, {0, 0, 0}, {0, 2}}), "has 2 chunks in chain 0 but 1 in chain 1");
}

/// The most micro-batches of its chunks, together, that a position keeps at one time.
int64_t countInFlight(const Schedule &schedule) {
  int64_t inFlight = 0, most = 0;
  for (const Action &action : schedule.actions) {
    inFlight += (action.kind == ActionKind::Forward) - (action.kind == ActionKind::Backward);
    most = std::max(most, inFlight);
  }
  return most;
}

void expectLegal(const Pipeline &pipeline, const std::string &what) {
  for (int64_t capacity : {0, 1, 5})
    EXPECT_EQ(check(pipeline, capacity), "") << what;
  llvm::Expected<Pipeline> read = parsePipeline(printPipeline(pipeline));
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(printPipeline(*read), printPipeline(pipeline));
}

template <class F> void sweep(Generator generate, F inFlight) {
  for (int64_t p : {1, 2, 3, 4, 8})
    for (int64_t v : {1, 2, 3})
      for (int64_t m : {1, 2, 3, 4, 7, 8, 16}) {
        std::string what = "p " + std::to_string(p) + ", v " + std::to_string(v) + ", m " + std::to_string(m);
        llvm::Expected<Pipeline> pipeline = generate(p, v, m);
        if (!pipeline) { // the rounds of interleaved 1F1B
          EXPECT_NE(m % std::max<int64_t>(1, m / p), 0) << llvm::toString(pipeline.takeError());
          llvm::consumeError(pipeline.takeError());
          continue;
        }
        expectLegal(*pipeline, what);
        for (int64_t s = 0; s < p; ++s)
          inFlight(*pipeline, p, v, m, s, what);
      }
}

std::vector<int64_t> chunksOf(const Placement &placement, int64_t position) {
  std::vector<int64_t> chunks;
  for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
    if (placement.positionOf[chunk] == position)
      chunks.push_back(chunk);
  return chunks;
}

TEST(Generators, GPipeKeepsAllMicroBatches) {
  sweep(makeGPipe, [](const Pipeline &pipeline, int64_t p, int64_t v, int64_t m, int64_t s, const std::string &what) {
    for (int64_t chunk : chunksOf(pipeline.placement, s))
      EXPECT_EQ(pipeline.positions[s].getSlots(chunk), m) << what;
    EXPECT_EQ(countInFlight(pipeline.positions[s]), m * v) << what;
  });
}

TEST(Generators, OneForwardOneBackwardKeepsThePositionsAhead) {
  sweep(make1F1B, [](const Pipeline &pipeline, int64_t p, int64_t v, int64_t m, int64_t s, const std::string &what) {
    for (int64_t chunk : chunksOf(pipeline.placement, s))
      EXPECT_EQ(pipeline.positions[s].getSlots(chunk), std::min(p - s, m)) << what;
    EXPECT_EQ(countInFlight(pipeline.positions[s]), std::min(p - s, m) * v) << what;
  });
}

TEST(Generators, Interleaved1F1BKeepsItsWarmUpAndOne) {
  sweep(makeInterleaved1F1B,
        [](const Pipeline &pipeline, int64_t p, int64_t v, int64_t m, int64_t s, const std::string &what) {
          int64_t round = m / std::max<int64_t>(1, m / p), warmUp = (v - 1) * round + 2 * (p - 1 - s);
          EXPECT_EQ(countInFlight(pipeline.positions[s]), std::min(warmUp + 1, m * v)) << what;
        });
}

TEST(Generators, Texts) {
  EXPECT_EQ(printPipeline(llvm::cantFail(makeGPipe(2, 1, 4))),
            "positions 2\nchunks 0 1\n"
            "position 0: 4x(forward send:0>1) 4x(receive:0>1 backward) reduce update\n"
            "position 1: 4x(receive:1>0 forward:1) 4x(backward:1 send:1>0) reduce:1 update:1\n");
  EXPECT_EQ(
      printPipeline(llvm::cantFail(make1F1B(2, 1, 4))),
      "positions 2\nchunks 0 1\n"
      "position 0: forward send:0>1 3x(forward receive:0>1 send:0>1 backward) receive:0>1 backward reduce update\n"
      "position 1: 4x(receive:1>0 forward:1 backward:1 send:1>0) reduce:1 update:1\n");
  EXPECT_EQ(printPipeline(llvm::cantFail(make1F1B(3, 1, 5))),
            "positions 3\n"
            "chunks 0 1 2\n"
            "position 0: 2x(forward send:0>1) 3x(forward receive:0>1 send:0>1 backward) 2x(receive:0>1 "
            "backward) reduce update\n"
            "position 1: receive:1>0 forward:1 send:1>2 4x(receive:1>0 forward:1 receive:1>2 send:1>2 "
            "backward:1 send:1>0) receive:1>2 backward:1 send:1>0 reduce:1 update:1\n"
            "position 2: 5x(receive:2>1 forward:2 backward:2 send:2>1) reduce:2 update:2\n");
  // Which of two transfers comes first follows from the times of actions.
  EXPECT_EQ(printPipeline(llvm::cantFail(makeInterleaved1F1B(2, 2, 4))),
            "positions 2\n"
            "chunks 0 1 0 1\n"
            "position 0: forward send:0>1 forward receive:2>1 send:0>1 forward:2 send:2>3 receive:2>1 "
            "forward:2 forward receive:2>3 send:2>3 backward:2 send:2>1 forward receive:2>3 send:0>1 "
            "backward:2 send:2>1 receive:2>1 forward:2 receive:0>1 send:0>1 backward receive:2>1 forward:2 "
            "receive:0>1 send:2>3 backward receive:2>3 send:2>3 backward:2 send:2>1 receive:2>3 backward:2 "
            "receive:0>1 send:2>1 backward receive:0>1 backward reduce:2 reduce update:2 update\n"
            "position 1: receive:1>0 forward:1 send:1>2 receive:1>0 forward:1 receive:3>2 send:1>2 "
            "forward:3 backward:3 send:3>2 receive:3>2 forward:3 backward:3 receive:1>2 send:3>2 "
            "receive:1>0 forward:1 backward:1 receive:1>2 send:1>2 send:1>0 receive:1>0 forward:1 "
            "backward:1 send:1>2 send:1>0 receive:3>2 forward:3 backward:3 send:3>2 receive:3>2 forward:3 "
            "backward:3 receive:1>2 send:3>2 backward:1 send:1>0 receive:1>2 backward:1 send:1>0 reduce:3 "
            "reduce:1 update:3 update:1\n");
  EXPECT_EQ(printPipeline(llvm::cantFail(make1F1B(1, 2, 2))),
            "positions 1\nchunks 0 0\n"
            "position 0: 2x(forward forward:1 backward:1 backward) reduce:1 reduce update:1 update\n");
}

TEST(Generators, SizesAreBounded) {
  auto refusal = [](llvm::Expected<Pipeline> pipeline) { return pipeline ? "" : llvm::toString(pipeline.takeError()); };
  for (Generator generate : {Generator(makeGPipe), Generator(make1F1B), Generator(makeInterleaved1F1B)}) {
    EXPECT_EQ(refusal(generate(0, 1, 1)),
              "a pipeline of 0 positions with 1 chunks each and 1 micro-batches; at least one of each is needed");
    EXPECT_EQ(refusal(generate(int64_t(1) << 40, int64_t(1) << 40, 1)),
              "a pipeline of 1099511627776 positions with 1099511627776 chunks each; 65536 chunks are possible");
    EXPECT_EQ(refusal(generate(64, 4, int64_t(1) << 40)),
              "a pipeline of 256 chunks with 1099511627776 micro-batches has too many actions");
  }
  EXPECT_EQ(refusal(makeInterleaved1F1B(4, 2, 9)),
            "interleaved 1F1B of 4 positions cannot run 9 micro-batches in 2 equal rounds");
}

/// Zero-bubble orders split backwards; waves pass chunks inside a position; two chains run at once.
TEST(Pipeline, OrdersOfOtherKinds) {
  const char *const texts[] = {
      "positions 2\nchunks 0 1\n"
      "position 0: forward send:0>1 forward receive:0>1 send:0>1 input_gradient receive:0>1 input_gradient "
      "weight_gradient weight_gradient reduce update\n"
      "position 1: 2x(receive:1>0 forward:1 input_gradient:1 send:1>0) weight_gradient:1 weight_gradient:1 reduce:1 "
      "update:1\n",
      "positions 2\nchunks 0 1 1 0\n"
      "position 0: forward send:0>1 receive:3>2 forward:3 backward:3 send:3>2 receive:0>1 backward reduce:3 reduce "
      "update:3 update\n"
      "position 1: receive:1>0 forward:1 forward:2 send:2>3 receive:2>3 backward:2 backward:1 send:1>0 reduce:2 "
      "reduce:1 update:2 update:1\n",
      "positions 2\nchunks 0 1 | 1 0\n"
      "position 0: forward send:0>1 receive:3>2 forward:3 backward:3 send:3>2 receive:0>1 backward reduce:3 reduce "
      "update:3 update\n"
      "position 1: forward:2 receive:1>0 send:2>3 forward:1 backward:1 receive:2>3 send:1>0 backward:2 reduce:2 "
      "reduce:1 update:2 update:1\n",
  };
  for (const char *text : texts) {
    llvm::Expected<Pipeline> pipeline = parsePipeline(text);
    ASSERT_TRUE(static_cast<bool>(pipeline)) << llvm::toString(pipeline.takeError());
    EXPECT_EQ(printPipeline(*pipeline), text);
    EXPECT_EQ(check(*pipeline), "");
  }
}

/// By action: micro-batch and slot.
std::vector<std::pair<int64_t, int64_t>> listSlots(llvm::StringRef first, llvm::StringRef second, size_t position) {
  Pipeline pipeline = llvm::cantFail(
      parsePipeline(("positions 2\nchunks 0 1\nposition 0: " + first + "\nposition 1: " + second + "\n").str()));
  std::vector<std::pair<int64_t, int64_t>> slots;
  for (const Action &action : pipeline.positions[position].actions)
    slots.push_back({action.microBatch, action.slot});
  return slots;
}

TEST(Pipeline, SlotsAreKeptUntilTheGradientIsSent) {
  using testing::ElementsAre;
  using testing::Pair;
  EXPECT_THAT(listSlots("", "receive:1>0 forward:1 backward:1 receive:1>0 send:1>0 receive:1>0", 1),
              ElementsAre(Pair(0, 0), Pair(0, 0), Pair(0, 0), Pair(1, 1), Pair(0, 0), Pair(2, 0)));
  // The first position sends no gradients; a weight gradient may come late.
  EXPECT_THAT(listSlots("forward input_gradient forward weight_gradient forward", "", 0),
              ElementsAre(Pair(0, 0), Pair(0, 0), Pair(1, 1), Pair(0, 0), Pair(2, 0)));
  // Numbers go on from the one that is given.
  EXPECT_THAT(listSlots("forward@1 forward forward@0 backward@2 backward@0 backward", "", 0),
              ElementsAre(Pair(1, 0), Pair(2, 1), Pair(0, 2), Pair(2, 1), Pair(0, 2), Pair(1, 0)));
}

TEST(Pipeline, WrongTextsAreRefused) {
  auto refusal = [](llvm::StringRef text) {
    llvm::Expected<Pipeline> pipeline = parsePipeline(text);
    return pipeline ? "" : llvm::toString(pipeline.takeError());
  };
  EXPECT_EQ(refusal(""), "expected 'positions' and their number in line 1 of the pipeline");
  EXPECT_EQ(refusal("positions -1\nchunks 0"), "has -1 positions; 1 to 65536 are possible");
  EXPECT_EQ(refusal("positions 99999999999999999999"),
            "expected 'positions' and their number in line 1 of the pipeline");
  EXPECT_EQ(refusal("positions 1000000000000\nchunks 0"), "has 1000000000000 positions; 1 to 65536 are possible");
  EXPECT_EQ(refusal("positions 1\n"), "expected 'chunks' and the position of each in line 2 of the pipeline");
  EXPECT_EQ(refusal("positions 1\nchunks 0 x"),
            "expected the position of a chunk, or '|' between two chains in line 2 of the pipeline");
  std::string many = "positions 1\nchunks";
  for (int i = 0; i < 70000; ++i)
    many += " 0";
  EXPECT_EQ(refusal(many), "expected at most 65536 chunks in line 2 of the pipeline");
  EXPECT_EQ(refusal("positions 1\nchunks" + std::string(70000, '|')), "has no chunk in chain 0");
  EXPECT_EQ(refusal("positions 1\nchunks 0\nforward"), "expected 'position 0:' in line 3 of the pipeline");
  EXPECT_EQ(refusal("positions 1\nchunks 0\nposition 0: forward\nposition 1:"),
            "expected the end after the last position in line 4 of the pipeline");
  EXPECT_EQ(refusal("positions 1\nchunks 0\nposition 0: forwards"),
            "position 0: expected an action or a repeat at character 2 of the schedule ' forwards'");
  EXPECT_EQ(refusal("positions 1\nchunks 0\nposition 0: send:0"),
            "position 0: expected '>' and the number of the chunk at the other end at character 8 of the schedule "
            "' send:0'");
  EXPECT_EQ(refusal("positions 1\nchunks 0\nposition 0: forward:0@1048576"),
            "position 0: expected the number of a micro-batch below 1048576 at character 12 of the schedule "
            "' forward:0@1048576'");
  EXPECT_EQ(refusal("positions 1\nchunks 0\nposition 0: forward:3"), "position 0: runs forward with chunk 3 of 1");
  EXPECT_EQ(refusal("positions 1\nchunks 0\nposition 0: send:0>3"), "position 0: runs send with chunk 3 of 1");
  // Both positions together have too many.
  EXPECT_EQ(
      refusal("positions 2\nchunks 0 1\nposition 0: 3000000x(forward)\nposition 1: 3000000x(9000000000x(forward:1))"),
      "position 1: has more than 4194304 actions");
}

TEST(Pipeline, TransfersNeedAnOrderOfComputation) {
  auto insert = [](llvm::StringRef text) {
    llvm::Expected<Pipeline> pipeline = insertTransfers(llvm::cantFail(parsePipeline(text)));
    return pipeline ? printPipeline(*pipeline) : llvm::toString(pipeline.takeError());
  };
  EXPECT_EQ(insert("positions 2\nchunks 0 1\nposition 0: forward backward reduce update\n"
                   "position 1: forward:1 backward:1 reduce:1 update:1\n"),
            "positions 2\nchunks 0 1\nposition 0: forward send:0>1 receive:0>1 backward reduce update\n"
            "position 1: receive:1>0 forward:1 backward:1 send:1>0 reduce:1 update:1\n");
  EXPECT_EQ(
      insert("positions 2\nchunks 0 1\nposition 0: backward forward reduce update\n"
             "position 1: forward:1 backward:1 reduce:1 update:1\n"),
      "never ends: position 0 waits at action 0, the backward of micro-batch 0 of chunk 0, for position 1 to run the "
      "backward of micro-batch 0 of chunk 1; position 1 waits at action 0, the forward of micro-batch 0 of chunk 1, "
      "for position 0 to run the forward of micro-batch 0 of chunk 0");
  // The chunk that is waited for stands in no list.
  EXPECT_EQ(
      insert("positions 2\nchunks 0 1\nposition 0: reduce update\n"
             "position 1: forward:1 backward:1 reduce:1 update:1\n"),
      "lacks what is read: position 1 waits at action 0, the forward of micro-batch 0 of chunk 1, for position 0 to "
      "run the forward of micro-batch 0 of chunk 0");
  EXPECT_EQ(insert("positions 2\nchunks 0 1\nposition 0: forward send:0>1\nposition 1: forward:1"),
            "position 0 runs send of chunk 0, where only computation of its own chunks is expected");
  EXPECT_EQ(insert("positions 2\nchunks 0 1\nposition 0: forward:1\nposition 1:"),
            "position 0 runs forward of chunk 1, where only computation of its own chunks is expected");
}

TEST(Pipeline, NeighboursOnOnePositionAreJoined) {
  for (const NamedSchedule &named : getNamedSchedules())
    for (int64_t positions : {2, 3, 4})
      for (int64_t microBatches : {positions, 2 * positions, 3 * positions}) {
        llvm::Expected<Pipeline> made = named.make(positions, named.chunksPerPosition, microBatches);
        if (!made) { // such as two directions of an odd number of positions
          llvm::consumeError(made.takeError());
          continue;
        }
        SCOPED_TRACE(named.name.str() + " of " + std::to_string(positions));
        if (named.isSplit)
          splitBackwards(*made);
        JoinedPipeline joined = llvm::cantFail(joinNeighbours(*made));
        EXPECT_EQ(check(joined.pipeline), "");
        const Placement &placement = joined.pipeline.placement;
        for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
          if (std::optional<int64_t> next = placement.getNext(chunk))
            EXPECT_TRUE(placement.crossesPositions(chunk, *next));
        for (auto [chunk, number] : llvm::enumerate(joined.numberOf))
          EXPECT_EQ(placement.positionOf[number], made->placement.positionOf[chunk]);
        size_t turns = named.placement == PlacementKind::Wave ? 1 : 0;
        EXPECT_EQ(joined.numberOf.size(), placement.positionOf.size() + turns);
      }
}

TEST(Pipeline, AJoinedChunkRunsWhereItsPartsAreComplete) {
  Pipeline wave = llvm::cantFail(makeZeroBubbleV(2, 4));
  splitBackwards(wave);
  JoinedPipeline joined = llvm::cantFail(joinNeighbours(wave));
  EXPECT_THAT(joined.numberOf, testing::ElementsAre(0, 1, 1, 2));
  auto list = [](const Schedule &schedule, int64_t chunk, ActionKind kind) {
    std::string text;
    for (const Action &action : schedule.actions)
      if (action.chunk == chunk && action.kind == kind)
        text += std::to_string(action.microBatch);
    return text;
  };
  for (ActionKind kind : {ActionKind::Forward, ActionKind::InputGradient, ActionKind::WeightGradient})
    EXPECT_EQ(list(joined.pipeline.positions[1], 1, kind), "0123");
}

} // namespace
