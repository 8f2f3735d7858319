#include "windlass/Schedule/ArenaPacker.h"

#include "gtest/gtest.h"

#include <random>

using namespace windlass::schedule;

namespace {

void expectLegal(const std::vector<LiveInterval> &intervals, const Packing &packing, int64_t alignment) {
  ASSERT_EQ(packing.offsets.size(), intervals.size());
  for (size_t a = 0; a < intervals.size(); ++a) {
    EXPECT_EQ(packing.offsets[a] % alignment, 0);
    EXPECT_LE(packing.offsets[a] + intervals[a].bytes, packing.bytes);
    for (size_t b = 0; b < a; ++b) {
      bool shareTime = intervals[a].first <= intervals[b].last && intervals[b].first <= intervals[a].last;
      bool shareBytes = packing.offsets[a] < packing.offsets[b] + intervals[b].bytes &&
                        packing.offsets[b] < packing.offsets[a] + intervals[a].bytes;
      ASSERT_FALSE(shareTime && shareBytes) << "intervals " << a << " and " << b;
    }
  }
}

TEST(ArenaPacker, EmptyProblemNeedsNothing) {
  Packing packing = packIntervals({}, 64);
  EXPECT_EQ(packing.bytes, 0);
  EXPECT_EQ(packing.largestLiveSet, 0);
}

TEST(ArenaPacker, IntervalsOneAfterTheOtherShareTheirBytes) {
  Packing packing = packIntervals({{100, 0, 3}, {80, 4, 6}, {100, 7, 7}}, 64);
  EXPECT_EQ(packing.bytes, 128);
  EXPECT_EQ(packing.largestLiveSet, 128);
}

TEST(ArenaPacker, BothEndsOfAnIntervalCount) {
  Packing packing = packIntervals({{64, 0, 3}, {64, 3, 6}}, 64);
  EXPECT_EQ(packing.bytes, 128);
}

TEST(ArenaPacker, StashOfLayersIsPackedWithoutLoss) {
  // Layer i's stash lives from i to 2 * layers - i; each layer has a transient of its own.
  std::vector<LiveInterval> intervals;
  for (int64_t i = 0; i < 24; ++i) {
    intervals.push_back({4096, i, 48 - i});
    intervals.push_back({1024, i, i});
    intervals.push_back({2048, 48 - i, 48 - i});
  }
  Packing packing = packIntervals(intervals, 64);
  expectLegal(intervals, packing, 64);
  EXPECT_LE(packing.bytes, packing.largestLiveSet + packing.largestLiveSet / 50);
}

TEST(ArenaPacker, WhatCameTooHighIsPlacedEarlier) {
  // Neither largest first, nor largest area, nor by time, nor longest first does.
  std::vector<LiveInterval> intervals = {{192, 0, 5}, {320, 1, 2}, {64, 3, 4}, {256, 7, 8}, {192, 5, 8}};
  Packing packing = packIntervals(intervals, 64);
  expectLegal(intervals, packing, 64);
  EXPECT_EQ(packing.bytes, packing.largestLiveSet);
}

TEST(ArenaPacker, RandomProblemsAreLegalAndNearTheBound) {
  std::mt19937 random(7);
  double total = 0;
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<LiveInterval> intervals;
    int64_t count = 1 + random() % 200;
    for (int64_t i = 0; i < count; ++i) {
      int64_t first = random() % 100;
      intervals.push_back({static_cast<int64_t>(random() % 5000), first, first + static_cast<int64_t>(random() % 30)});
    }
    Packing packing = packIntervals(intervals, 64);
    expectLegal(intervals, packing, 64);
    EXPECT_GE(packing.bytes, packing.largestLiveSet);
    EXPECT_LE(packing.bytes, 1.4 * packing.largestLiveSet);
    total += packing.largestLiveSet ? static_cast<double>(packing.bytes) / packing.largestLiveSet : 1;
    // The same problem has the same solution.
    EXPECT_EQ(packIntervals(intervals, 64).offsets, packing.offsets);
  }
  EXPECT_LE(total / 60, 1.12);
}

} // namespace
