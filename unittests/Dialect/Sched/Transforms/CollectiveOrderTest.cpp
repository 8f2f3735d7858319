#include "windlass/Dialect/Sched/Transforms/CollectiveOrder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::sched;
using testing::HasSubstr;

namespace {

TEST(CollectiveOrder, EqualTablesEnd) {
  CollectiveTable table = {{{0, 1}, "sum of 4"}, {{0, 1}, "sum of 8"}};
  EXPECT_EQ(replayCollectives({table, table}), "");
  EXPECT_EQ(replayCollectives({}), "");
  EXPECT_EQ(replayCollectives({{}, {}}), "");
}

TEST(CollectiveOrder, GridOfTwoCommunicatorsEnds) {
  // Ranks 0..3 on a 2 x 2 grid: rows, then columns, on all ranks.
  EXPECT_EQ(replayCollectives({{{{0, 1}, "row"}, {{0, 2}, "column"}},
                               {{{0, 1}, "row"}, {{1, 3}, "column"}},
                               {{{2, 3}, "row"}, {{0, 2}, "column"}},
                               {{{2, 3}, "row"}, {{1, 3}, "column"}}}),
            "");
}

TEST(CollectiveOrder, OppositeOrdersDeadlock) {
  EXPECT_THAT(replayCollectives({{{{0, 1}, "row"}, {{0, 2}, "column"}},
                                 {{{1, 3}, "column"}, {{0, 1}, "row"}},
                                 {{{0, 2}, "column"}, {{2, 3}, "row"}},
                                 {{{2, 3}, "row"}, {{1, 3}, "column"}}}),
              HasSubstr("rank 0 at collective 0 (row) waits for rank 1, which is in column with other members"));
}

TEST(CollectiveOrder, MissingCallIsFound) {
  EXPECT_THAT(replayCollectives({{{{0, 1}, "sum"}}, {}}), HasSubstr("waits for rank 1, which has ended"));
}

TEST(CollectiveOrder, DifferentSizesAreFound) {
  EXPECT_THAT(replayCollectives({{{{0, 1}, "sum of 4"}}, {{{0, 1}, "sum of 8"}}}), HasSubstr("but rank"));
}

TEST(CollectiveOrder, ForeignMembersAreFound) {
  EXPECT_THAT(replayCollectives({{{{1}, "sum"}}, {}}), HasSubstr("of which it is no member"));
  EXPECT_THAT(replayCollectives({{{{0, 5}, "sum"}}}), HasSubstr("with rank 5 of 1"));
}

} // namespace
