#include "windlass/Dialect/Plan/Transforms/Elixir.h"

#include "gmock/gmock.h"

#include <numeric>

using namespace windlass::plan::elixir;
using ::testing::Each;
using ::testing::ElementsAre;

namespace {

constexpr int64_t kMega = int64_t(1) << 20, kGiga = int64_t(1) << 30;

/// Eight weights of 32 MiB in 16 bits, with AdamW.
Problem makeProblem(int64_t ranks, int64_t deviceBytes) {
  Problem problem;
  problem.deviceBytes = deviceBytes;
  problem.ranks = ranks;
  problem.weights.assign(8, 16 * kMega);
  return problem;
}

/// Returns the bytes of a device whose capacity is a little more than `elements`.
int64_t getDeviceBytes(int64_t elements) {
  return 2 * kGiga + static_cast<int64_t>(2.0 * static_cast<double>(elements + 1) / 0.95) + 1;
}

} // namespace

TEST(ElixirTest, TheSavingsAreThePublishedOnes) {
  const double published[][3] = {{1, 0.190, 0.091}, {2, 0.107, 0.118}, {4, 0.058, 0.155}, {8, 0.030, 0.215}};
  for (auto &[ranks, cache, state] : published) {
    Savings savings = compareSavings(static_cast<int64_t>(ranks), /*elementBytes=*/2, /*stateFactor=*/7);
    EXPECT_NEAR(savings.cache, cache, 5e-4) << ranks;
    EXPECT_NEAR(savings.state, state, 5e-4) << ranks;
    EXPECT_EQ(savings.isCacheFirst(), ranks == 1);
  }
}

TEST(ElixirTest, TheStateOfAWeightIsAMultipleOfIt) {
  Problem problem;
  EXPECT_EQ(getStateFactor(problem), 7);
  problem.states = 1;
  EXPECT_EQ(getStateFactor(problem), 5);
  problem.elementBytes = 4;
  EXPECT_EQ(getStateFactor(problem), 3);
}

TEST(ElixirTest, TheCapacityIsWhatActivationsAndModulesLeave) {
  Problem problem;
  problem.deviceBytes = 12 * kGiga;
  problem.bufferBytes = 2 * kGiga;
  problem.activationBytes = 4 * kGiga;
  // 12 - 2 - 2 - 1.25 * 4 GiB are 3 GiB.
  int64_t room = static_cast<int64_t>(0.95 * static_cast<double>(3 * kGiga) / 2);
  EXPECT_EQ(getCapacity(problem), room);
  problem.largestModule = 1000;
  problem.shared = {300, 20};
  EXPECT_EQ(getCapacity(problem), room - 1320);
  problem.activationBytes = 8 * kGiga;
  EXPECT_LT(getCapacity(problem), 0);
}

TEST(ElixirTest, ChunksAreFilledInOrder) {
  EXPECT_THAT(packChunks({3, 3, 5, 1, 6, 2}, 6), ElementsAre(0, 0, 1, 1, 2, 3));
  EXPECT_TRUE(packChunks({}, 6).empty());
}

TEST(ElixirTest, ChunksThatStayAreNotMovedAgain) {
  // The forward pass moves four, the backward pass those two that are no longer there, each in and out.
  EXPECT_EQ(countMoves(/*chunks=*/4, /*blocks=*/2), 12);
  EXPECT_EQ(countMoves(4, 1), 14);
  EXPECT_EQ(countMoves(4, 4), 8);
  EXPECT_EQ(countMoves(4, 9), 8);
}

TEST(ElixirTest, ALargeDeviceHoldsAll) {
  for (int64_t ranks : {1, 2}) {
    std::optional<Placement> placement = place(makeProblem(ranks, 16 * kGiga));
    ASSERT_TRUE(placement);
    EXPECT_EQ(placement->chunk, 16 * kMega) << "the smallest chunks that waste nothing";
    EXPECT_EQ(placement->blocks, 8);
    EXPECT_THAT(placement->isOnDevice, Each(true));
  }
}

TEST(ElixirTest, OneDeviceTakesGatheredChunksBeforeState) {
  // Room for six chunks, of which two are in flight, and for the state of no chunk besides.
  std::optional<Placement> placement = place(makeProblem(1, getDeviceBytes(6 * 16 * kMega)));
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->blocks, 4);
  EXPECT_THAT(placement->isOnDevice, Each(false));
}

TEST(ElixirTest, SeveralDevicesTakeStateBeforeGatheredChunks) {
  // Six of the ten chunks of the cache are needed; the rest of the room holds the state of two chunks. With four
  // devices a chunk's shard and state take 18 / 2 / 4 chunks.
  Problem problem = makeProblem(4, getDeviceBytes((6 + 5) * 16 * kMega));
  std::optional<Placement> several = place(problem);
  ASSERT_TRUE(several);
  EXPECT_EQ(several->blocks, 6);
  EXPECT_THAT(several->isOnDevice, ElementsAre(true, true, false, false, false, false, false, false));
  // One device fills the cache first.
  problem.ranks = 1;
  std::optional<Placement> one = place(problem);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->blocks, 8);
  EXPECT_THAT(one->isOnDevice, Each(false));
}

TEST(ElixirTest, WeightsThatAreSharedComeLast) {
  Problem problem = makeProblem(4, 16 * kGiga);
  problem.shared = {kMega};
  std::optional<Placement> placement = place(problem);
  ASSERT_TRUE(placement);
  EXPECT_THAT(placement->isSharedOnDevice, ElementsAre(true));
  problem.deviceBytes = getDeviceBytes(6 * 16 * kMega + kMega);
  placement = place(problem);
  ASSERT_TRUE(placement);
  EXPECT_THAT(placement->isOnDevice, Each(false)) << "a smaller weight may fit behind them";
  EXPECT_THAT(placement->isSharedOnDevice, ElementsAre(true));
}

TEST(ElixirTest, ADeviceWithoutRoomHasNoPlacement) {
  EXPECT_FALSE(place(makeProblem(1, 2 * kGiga)));
  EXPECT_FALSE(place(makeProblem(1, getDeviceBytes(2 * 16 * kMega)))) << "two chunks are in flight";
  Problem tiny = makeProblem(1, getDeviceBytes(100));
  tiny.weights = {60, 40};
  std::optional<Placement> placement = place(tiny);
  ASSERT_TRUE(placement) << "a model below the least chunk is one chunk";
  EXPECT_EQ(placement->chunk, 100);
}
