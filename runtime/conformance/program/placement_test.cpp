#include "placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

using namespace windlass::rt;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

rank_place place_of(const char *host, std::initializer_list<int> processors) {
  rank_place out = {};
  std::strcpy(out.host, host);
  for (const int each : processors)
    CPU_SET(each, &out.processors);
  return out;
}

TEST(Placement, SharesAreEvenAndCoverAll) {
  EXPECT_THAT(share_of({4, 5, 6, 7, 8}, 2, 0), ElementsAre(4, 5));
  EXPECT_THAT(share_of({4, 5, 6, 7, 8}, 2, 1), ElementsAre(6, 7, 8));
  EXPECT_THAT(share_of({0, 1}, 2, 1), ElementsAre(1));
  EXPECT_THAT(share_of({0, 1}, 3, 0), IsEmpty());
}

TEST(Placement, RanksOfAHostShareIt) {
  const rank_place ranks[] = {place_of("a", {0, 1, 2, 3}), place_of("b", {0, 1, 2, 3}), place_of("a", {0, 1, 2, 3})};
  const sharers third = sharers_of({ranks, 3}, 2), second = sharers_of({ranks, 3}, 1);
  EXPECT_EQ(third.count, 2);
  EXPECT_EQ(third.index, 1);
  EXPECT_TRUE(third.all);
  EXPECT_EQ(second.count, 1);
  EXPECT_TRUE(second.all);
}

TEST(Placement, RanksThatALauncherPlacedAreSeen) {
  const rank_place ranks[] = {place_of("a", {0, 1}), place_of("a", {0, 1}), place_of("a", {2, 3})};
  const sharers second = sharers_of({ranks, 3}, 1);
  EXPECT_EQ(second.count, 2);
  EXPECT_EQ(second.index, 1);
  EXPECT_FALSE(second.all);
}

TEST(Placement, OrderKeepsAllProcessors) {
  const rank_place own = own_place();
  std::vector<std::int32_t> order = in_order_of_place(own.processors);
  ASSERT_EQ(static_cast<int>(order.size()), CPU_COUNT(&own.processors));
  for (const std::int32_t each : order)
    EXPECT_TRUE(CPU_ISSET(each, &own.processors));
}

} // namespace
