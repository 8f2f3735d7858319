#include "windlass/Experts/Placement.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::experts;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Shape makeShape(int32_t experts, int32_t replicas, int32_t groups, int32_t nodes, int32_t gpus) {
  return {experts, replicas, groups, nodes, gpus};
}

TEST(Placement, RefusesShapesThatDoNotDivide) {
  EXPECT_EQ(checkShape(makeShape(12, 16, 4, 2, 8)), "");
  EXPECT_EQ(checkShape(makeShape(1, 1, 1, 1, 1)), "");
  EXPECT_THAT(checkShape(makeShape(0, 16, 1, 1, 8)), HasSubstr("experts is 0"));
  EXPECT_THAT(checkShape(makeShape(12, 16, 1, 1, 0)), HasSubstr("gpus is 0"));
  EXPECT_THAT(checkShape(makeShape(12, kMostReplicas + 1, 1, 1, 1)), HasSubstr("replicas is 65537"));
  EXPECT_THAT(checkShape(makeShape(12, 8, 1, 1, 8)), HasSubstr("12 experts have 8 replicas"));
  EXPECT_THAT(checkShape(makeShape(12, 18, 1, 1, 8)), HasSubstr("18 replicas do not divide over 8 gpus"));
  EXPECT_THAT(checkShape(makeShape(13, 16, 4, 2, 8)), HasSubstr("13 experts do not divide into 4 groups"));
  EXPECT_THAT(checkShape(makeShape(12, 15, 6, 3, 5)), HasSubstr("5 gpus do not divide over 3 nodes"));
}

TEST(Placement, IgnoresGroupsThatDoNotDivideOverNodes) {
  EXPECT_EQ(makeShape(12, 16, 4, 2, 8).getDomains(), 2);
  EXPECT_EQ(makeShape(12, 16, 1, 2, 8).getDomains(), 1);
  EXPECT_EQ(checkShape(makeShape(13, 16, 3, 2, 8)), "");
}

TEST(Placement, ChecksSlotsExpertsAndGroups) {
  Shape shape = makeShape(4, 4, 2, 2, 2);
  EXPECT_EQ(checkPlacement(shape, {2, 3, 1, 0}), "");
  EXPECT_THAT(checkPlacement(shape, {0, 1, 2}), HasSubstr("places 3 replicas, but there are 4 slots"));
  EXPECT_THAT(checkPlacement(shape, {0, 1, 2, 4}), HasSubstr("places expert 4, but there are experts 0 to 3"));
  EXPECT_THAT(checkPlacement(shape, {0, 1, 2, -1}), HasSubstr("places expert -1"));
  EXPECT_THAT(checkPlacement(shape, {0, 1, 2, 2}), HasSubstr("no replica of expert 3"));
  EXPECT_THAT(checkPlacement(shape, {0, 2, 1, 3}), HasSubstr("group 0 on nodes 0 and 1"));
  // Both of 2 groups on one of 2 nodes, which has room for their experts.
  EXPECT_THAT(checkPlacement(makeShape(4, 8, 4, 2, 2), {0, 1, 2, 0, 3, 3, 3, 3}),
              HasSubstr("3 groups on node 0: each of 2 nodes takes 2 of the 4 groups"));
}

TEST(Placement, SharesALoadBetweenReplicas) {
  EXPECT_THAT(computeGpuLoads({0, 1, 1, 2, 1, 1}, {3, 8, 5}, 3), ElementsAre(5, 7, 4));
  EXPECT_THAT(countReplicas({0, 1, 1, 2, 1, 1}, 3), ElementsAre(1, 4, 1));
}

TEST(Placement, CountsReplicasThatAGpuHadNot) {
  EXPECT_EQ(countMoved({0, 1, 1, 2}, {1, 0, 2, 1}, 2), 0);
  EXPECT_EQ(countMoved({0, 1, 1, 2}, {0, 2, 1, 1}, 2), 2);
  EXPECT_EQ(countMoved({0, 0, 1, 2}, {0, 1, 1, 2}, 2), 1);
  EXPECT_EQ(countMoved({0, 1, 1, 2}, {0, 0, 1, 2}, 2), 1);
}

} // namespace
