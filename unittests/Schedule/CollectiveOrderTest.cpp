#include "windlass/Schedule/CollectiveOrder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <ctime>

using namespace windlass::schedule;
using testing::HasSubstr;

namespace {

/// A call by its members and what it is.
using Call = std::pair<std::vector<int64_t>, std::string>;

template <class T> size_t indexIn(std::vector<T> &all, const T &value) {
  auto found = std::find(all.begin(), all.end(), value);
  if (found == all.end())
    found = all.insert(all.end(), value);
  return found - all.begin();
}

std::string replay(const std::vector<std::vector<Call>> &ranks) {
  CollectiveTables tables;
  for (const std::vector<Call> &calls : ranks) {
    tables.calls.emplace_back();
    for (const auto &[members, signature] : calls)
      tables.calls.back().push_back({indexIn(tables.groups, members), indexIn(tables.signatures, signature)});
  }
  return replayCollectives(tables);
}

TEST(CollectiveOrder, EqualTablesEnd) {
  std::vector<Call> table = {{{0, 1}, "sum of 4"}, {{0, 1}, "sum of 8"}};
  EXPECT_EQ(replay({table, table}), "");
  EXPECT_EQ(replay({}), "");
  EXPECT_EQ(replay({{}, {}}), "");
}

TEST(CollectiveOrder, GridOfTwoCommunicatorsEnds) {
  // Ranks 0..3 on a 2 x 2 grid: rows, then columns, on all ranks.
  EXPECT_EQ(replay({{{{0, 1}, "row"}, {{0, 2}, "column"}},
                    {{{0, 1}, "row"}, {{1, 3}, "column"}},
                    {{{2, 3}, "row"}, {{0, 2}, "column"}},
                    {{{2, 3}, "row"}, {{1, 3}, "column"}}}),
            "");
}

TEST(CollectiveOrder, OppositeOrdersDeadlock) {
  EXPECT_THAT(replay({{{{0, 1}, "row"}, {{0, 2}, "column"}},
                      {{{1, 3}, "column"}, {{0, 1}, "row"}},
                      {{{0, 2}, "column"}, {{2, 3}, "row"}},
                      {{{2, 3}, "row"}, {{1, 3}, "column"}}}),
              HasSubstr("rank 0 at collective 0 (row) waits for rank 1, which is in column with other members"));
}

TEST(CollectiveOrder, MissingCallIsFound) {
  EXPECT_THAT(replay({{{{0, 1}, "sum"}}, {}}), HasSubstr("waits for rank 1, which has ended"));
}

TEST(CollectiveOrder, DifferentSizesAreFound) {
  EXPECT_THAT(replay({{{{0, 1}, "sum of 4"}}, {{{0, 1}, "sum of 8"}}}), HasSubstr("but rank"));
}

TEST(CollectiveOrder, ForeignMembersAreFound) {
  EXPECT_THAT(replay({{{{1}, "sum"}}, {}}), HasSubstr("of which it is no member"));
  EXPECT_THAT(replay({{{{0, 5}, "sum"}}}), HasSubstr("with rank 5 of 1"));
}

TEST(CollectiveOrder, ManyRanksEndSoon) {
  constexpr int64_t kRanks = 65536;
  CollectiveTables tables;
  tables.signatures = {"sum"};
  tables.groups.resize(1);
  for (int64_t rank = 0; rank < kRanks; ++rank)
    tables.groups[0].push_back(rank);
  tables.calls.assign(kRanks, std::vector<CollectiveCall>(50, CollectiveCall{0, 0}));
  // The time of a processor: other work on the machine does not change it.
  std::clock_t begin = std::clock();
  EXPECT_EQ(replayCollectives(tables), "");
  tables.calls[1].pop_back();
  EXPECT_THAT(replayCollectives(tables), HasSubstr("waits for rank 1, which has ended"));
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 10);
}

} // namespace
