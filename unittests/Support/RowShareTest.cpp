#include "windlass/Support/RowShare.h"

#include "gtest/gtest.h"

using namespace windlass;

namespace {

TEST(RowShareTest, IsThatOfAllChoices) {
  // A given one of 4 experts is in 3 of the 6 pairs.
  EXPECT_DOUBLE_EQ(getRowShare(4, 4, 2), 0.5);
  EXPECT_DOUBLE_EQ(getRowShare(8, 8, 2), 0.25);
  // 6 of the 28 pairs of 8 experts have no expert of a given half.
  EXPECT_DOUBLE_EQ(getRowShare(8, 2, 2), 22.0 / 28);
  EXPECT_DOUBLE_EQ(getRowShare(6, 3, 1), 1.0 / 3);
}

TEST(RowShareTest, IsWholeWhereTheOthersAreTooFew) {
  EXPECT_DOUBLE_EQ(getRowShare(4, 2, 3), 1);
  EXPECT_DOUBLE_EQ(getRowShare(4, 1, 1), 1);
  EXPECT_DOUBLE_EQ(getRowShare(4, 4, 4), 1);
}

} // namespace
