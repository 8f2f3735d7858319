#include "../../lib/Planner/StepWindows.h"

#include <gtest/gtest.h>

using namespace windlass;
using namespace windlass::planner;

namespace {

TEST(StepWindowsTest, WithoutWindowsNothingIsCarried) {
  StepWindows none;
  EXPECT_EQ(none.find(WindowKind::forward, StreamKind::compute), std::nullopt);
  search::Problem problem;
  none.addTo(problem);
  EXPECT_TRUE(problem.load.empty());
  EXPECT_TRUE(problem.windowEnd.empty());
}

TEST(StepWindowsTest, CollectivesRunBesideOperators) {
  StepWindows windows = StepWindows::withCollectives();
  search::Problem problem;
  windows.addTo(problem);
  EXPECT_EQ(problem.load, std::vector<int64_t>(6, 0));
  EXPECT_EQ(problem.windowEnd, (std::vector<int32_t>{2, 4, 6}));
  EXPECT_EQ(windows.find(WindowKind::forward, StreamKind::compute), 0);
  EXPECT_EQ(windows.find(WindowKind::forward, StreamKind::communicator, 1024), 1);
  EXPECT_EQ(windows.find(WindowKind::backward, StreamKind::compute), 2);
  EXPECT_EQ(windows.find(WindowKind::lastBackward, StreamKind::communicator, 2), 5);
  EXPECT_EQ(windows.find(WindowKind::update, StreamKind::compute), std::nullopt);
  EXPECT_EQ(windows.find(WindowKind::forward, StreamKind::hostToDevice), std::nullopt);
}

TEST(StepWindowsTest, UpdatesOfWhatTheHostHoldsHaveAWindow) {
  StepWindows windows = StepWindows::withCollectives(/*hasHostGradients=*/true, /*hasHostWeights=*/true,
                                                     /*hasHostStates=*/true);
  search::Problem problem;
  windows.addTo(problem);
  EXPECT_EQ(problem.windowEnd, (std::vector<int32_t>{4, 10, 16, 20}));
  EXPECT_EQ(windows.find(WindowKind::forward, StreamKind::hostMemory), 3);
  EXPECT_EQ(windows.find(WindowKind::update, StreamKind::hostToDevice), 16);
  EXPECT_EQ(windows.find(WindowKind::update, StreamKind::host), 18);
  EXPECT_EQ(windows.find(WindowKind::update, StreamKind::compute), std::nullopt);
}

TEST(StepWindowsTest, TiersAndCopiesHaveStreams) {
  StepWindows windows(
      {{WindowKind::lastBackward,
        {{"operators", StreamKind::compute},
         {"inside a host", StreamKind::communicator, 8},
         {"network", StreamKind::communicator}}},
       {WindowKind::update,
        {{"in", StreamKind::hostToDevice}, {"out", StreamKind::deviceToHost}, {"host", StreamKind::host}}}});
  search::Problem problem;
  windows.addTo(problem);
  EXPECT_EQ(problem.windowEnd, (std::vector<int32_t>{3, 6}));
  EXPECT_EQ(windows.find(WindowKind::lastBackward, StreamKind::communicator, 8), 1);
  EXPECT_EQ(windows.find(WindowKind::lastBackward, StreamKind::communicator, 9), 2);
  EXPECT_EQ(windows.find(WindowKind::update, StreamKind::deviceToHost), 4);
  EXPECT_EQ(windows.find(WindowKind::update, StreamKind::peer), std::nullopt);
}

} // namespace
