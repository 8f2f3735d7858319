#include "../../../../lib/Dialect/Sched/Transforms/MemoryTimeline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::sched;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

namespace {

TEST(ByteRanges, DenseAndTransposedWindowsAreOneRange) {
  bool isExact = false;
  EXPECT_THAT(getByteRanges(8, 4, {3, 5}, {5, 1}, isExact), ElementsAre(Pair(8, 68)));
  EXPECT_THAT(getByteRanges(8, 4, {5, 3}, {1, 5}, isExact), ElementsAre(Pair(8, 68)));
  EXPECT_TRUE(isExact);
}

TEST(ByteRanges, ColumnsAreOneRangePerRow) {
  bool isExact = false;
  EXPECT_THAT(getByteRanges(4, 4, {2, 2}, {5, 1}, isExact), ElementsAre(Pair(4, 12), Pair(24, 32)));
}

TEST(ByteRanges, RepeatedDimsAddNothing) {
  bool isExact = false;
  EXPECT_THAT(getByteRanges(0, 4, {9, 2}, {0, 1}, isExact), ElementsAre(Pair(0, 8)));
  EXPECT_TRUE(getByteRanges(0, 4, {9, 0}, {0, 1}, isExact).empty());
}

TEST(ByteRanges, TooManyRunsBecomeOneRange) {
  bool isExact = true;
  EXPECT_THAT(getByteRanges(0, 4, {100, 1}, {2, 1}, isExact, 10), ElementsAre(Pair(0, 796)));
  EXPECT_FALSE(isExact);
}

TEST(MemoryTimeline, FindsUnwrittenAndOverwrittenBytes) {
  MemoryTimeline memory;
  memory.beginCommand(0);
  EXPECT_THAT(memory.read({{0, 16}}, 1), HasSubstr("byte 0 before it is written"));
  EXPECT_EQ(memory.write({{0, 16}}, 1), "");
  EXPECT_EQ(memory.read({{0, 16}}, 1), "");
  EXPECT_EQ(memory.write({{12, 20}}, 2), "");
  EXPECT_THAT(memory.read({{0, 16}}, 1), HasSubstr("reads byte 12 of value 1 after value 2"));
  EXPECT_EQ(memory.read({{0, 12}}, 1), "");
  memory.forget({0, 4});
  EXPECT_THAT(memory.read({{0, 12}}, 1), HasSubstr("before it is written"));
}

TEST(MemoryTimeline, StreamsNeedEvents) {
  MemoryTimeline memory;
  memory.beginCommand(0);
  EXPECT_EQ(memory.write({{0, 16}}, 1), "");
  memory.record(0, 0);
  memory.beginCommand(1);
  EXPECT_THAT(memory.read({{0, 16}}, 1), HasSubstr("without waiting for its write on stream 0"));
  EXPECT_EQ(memory.wait(0, 1), "");
  memory.beginCommand(1);
  EXPECT_EQ(memory.read({{0, 16}}, 1), "");
  memory.beginCommand(0);
  EXPECT_THAT(memory.write({{0, 16}}, 2), HasSubstr("without waiting for its reader on stream 1"));
  memory.record(1, 1);
  EXPECT_EQ(memory.wait(1, 0), "");
  memory.beginCommand(0);
  EXPECT_EQ(memory.write({{0, 16}}, 2), "");
  EXPECT_THAT(memory.wait(9, 0), HasSubstr("nothing has recorded"));
}

TEST(MemoryTimeline, PaddingBetweenPartsIsAdopted) {
  MemoryTimeline memory;
  memory.beginCommand(0);
  EXPECT_EQ(memory.write({{0, 40}, {64, 128}}, 1), "");
  memory.adoptPadding({0, 128}, 1, 64);
  EXPECT_EQ(memory.read({{0, 128}}, 1), "");
  // A part that is missing is no padding.
  EXPECT_EQ(memory.write({{256, 300}}, 1), "");
  memory.adoptPadding({0, 300}, 1, 64);
  EXPECT_THAT(memory.read({{0, 300}}, 1), HasSubstr("byte 128 before it is written"));
}

} // namespace
