#include "windlass/Interpreter/ScheduleChecker.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::interpreter;
using testing::HasSubstr;

namespace {

Window window(int64_t offset, llvm::SmallVector<int64_t, 4> sizes, llvm::SmallVector<int64_t, 4> strides) {
  Window result;
  result.offset = offset;
  result.sizes = std::move(sizes);
  result.strides = std::move(strides);
  return result;
}

class ScheduleCheckerTest : public testing::Test {
protected:
  std::string write(int64_t stream, const Window &at) {
    checker.begin(nullptr, stream);
    auto finding = checker.write(at);
    return finding ? finding->text : "";
  }
  std::string read(int64_t stream, const Window &at) {
    checker.begin(nullptr, stream);
    auto finding = checker.read(at);
    return finding ? finding->text : "";
  }

  ScheduleChecker checker{{1024}};
  Window left = window(0, {8}, {1}), right = window(32, {8}, {1});
};

TEST_F(ScheduleCheckerTest, OneStreamIsOrdered) {
  EXPECT_EQ(write(0, left), "");
  EXPECT_EQ(read(0, left), "");
  EXPECT_EQ(write(0, left), "");
}

TEST_F(ScheduleCheckerTest, StreamsAreNotOrderedWithoutEvents) {
  EXPECT_EQ(write(0, left), "");
  EXPECT_EQ(write(1, right), "");
  EXPECT_THAT(read(1, left), HasSubstr("reads what an unordered command writes at byte 0"));
}

TEST_F(ScheduleCheckerTest, EventsOrderWhatCameBeforeTheirRecordOnly) {
  EXPECT_EQ(write(0, left), "");
  checker.record(7, 0);
  EXPECT_EQ(write(0, right), "");
  EXPECT_TRUE(checker.wait(7, 1));
  EXPECT_EQ(read(1, left), "");
  EXPECT_THAT(read(1, right), HasSubstr("reads what an unordered command writes at byte 32"));
}

TEST_F(ScheduleCheckerTest, OrderIsTransitive) {
  EXPECT_EQ(write(0, left), "");
  checker.record(1, 0);
  EXPECT_TRUE(checker.wait(1, 1));
  checker.record(2, 1);
  EXPECT_TRUE(checker.wait(2, 2));
  EXPECT_EQ(read(2, left), "");
}

TEST_F(ScheduleCheckerTest, WritesWaitForReads) {
  EXPECT_EQ(write(0, left), "");
  checker.record(1, 0);
  EXPECT_TRUE(checker.wait(1, 1));
  EXPECT_EQ(read(1, left), "");
  EXPECT_THAT(write(0, left), HasSubstr("overwrites what an unordered command reads at byte 0"));
}

TEST_F(ScheduleCheckerTest, EventsMustBeRecorded) { EXPECT_FALSE(checker.wait(3, 0)); }

TEST_F(ScheduleCheckerTest, TheHostOrdersWhatIsIssuedAfterItWaited) {
  EXPECT_EQ(write(1, left), "");
  checker.waitByHost(1);
  EXPECT_EQ(read(0, left), "");
  EXPECT_EQ(write(1, right), "");
  checker.beginHost();
  EXPECT_TRUE(checker.write(right).has_value());
  checker.waitByHost();
  checker.beginHost();
  EXPECT_FALSE(checker.write(right).has_value());
}

TEST_F(ScheduleCheckerTest, StridedWindowsTouchTheirElementsOnly) {
  // Columns 0..1 and 2..3 of a 3 x 4 matrix.
  Window columns = window(0, {3, 2}, {4, 1}), others = window(8, {3, 2}, {4, 1});
  EXPECT_EQ(write(0, columns), "");
  EXPECT_EQ(write(1, others), "");
  EXPECT_EQ(read(1, others), "");
  EXPECT_THAT(read(1, window(0, {12}, {1})), HasSubstr("at byte 0"));
  EXPECT_EQ(write(1, window(256, {3, 4}, {0, 1})), "");
  EXPECT_THAT(read(1, window(256, {5}, {1})), HasSubstr("reads what nothing has written at byte 272"));
}

TEST_F(ScheduleCheckerTest, GapsMayBeAllowed) {
  EXPECT_EQ(write(0, left), "");
  checker.begin(nullptr, 0);
  EXPECT_FALSE(checker.read(window(0, {16}, {1}), /*mayBeUnwritten=*/true).has_value());
  EXPECT_TRUE(checker.read(window(0, {16}, {1})).has_value());
}

} // namespace
