#include "windlass/Support/Words.h"

#include <gtest/gtest.h>

using namespace windlass;

TEST(Words, CountsAgreeWithNouns) {
  EXPECT_EQ(countOf(0, "operator"), "0 operators");
  EXPECT_EQ(countOf(1, "operator"), "1 operator");
  EXPECT_EQ(countOf(2, "operator"), "2 operators");
  EXPECT_EQ(countOf(1, "micro-batch", "micro-batches"), "1 micro-batch");
  EXPECT_EQ(countOf(4, "micro-batch", "micro-batches"), "4 micro-batches");
}

TEST(Words, ListsEndInAWord) {
  EXPECT_EQ(listOf({}), "");
  EXPECT_EQ(listOf({1}), "1");
  EXPECT_EQ(listOf({1, 2}), "1 or 2");
  EXPECT_EQ(listOf({1, 2, 4, 8}), "1, 2, 4 or 8");
}

TEST(Words, SizesAreInTheUnitsThatPeopleType) {
  EXPECT_EQ(sizeText(0), "0 bytes");
  EXPECT_EQ(sizeText(1), "1 byte");
  EXPECT_EQ(sizeText(1023), "1023 bytes");
  EXPECT_EQ(sizeText(1024), "1 KiB");
  EXPECT_EQ(sizeText(512 << 20), "512 MiB");
  EXPECT_EQ(sizeText((512 << 20) + (100 << 10)), "512.1 MiB");
  EXPECT_EQ(sizeText((int64_t(1) << 30) - 1), "1 GiB");
  EXPECT_EQ(sizeText(int64_t(80) << 30), "80 GiB");
  EXPECT_EQ(sizeText(int64_t(5000) << 40), "5000 TiB");
  EXPECT_EQ(exactSizeText(1), "1 byte");
  EXPECT_EQ(exactSizeText(1536), "1536 bytes (1.5 KiB)");
}
