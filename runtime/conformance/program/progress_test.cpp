// The line of progress, by a clock that the test turns.
#include "progress.h"

#include <gtest/gtest.h>

using namespace windlass::rt;

namespace {

/// What a run of `steps` steps prints, each step of which takes `seconds` and computes for half of that.
std::string shown(progress_style style, std::int64_t steps, double seconds, double tokens = 1000) {
  testing::internal::CaptureStderr();
  {
    progress line;
    line.open(style, steps);
    for (std::int64_t step = 1; step <= steps; ++step) {
      step_metrics row;
      row.step = step;
      row.loss = 1.0f / static_cast<float>(step);
      row.seconds = seconds / 2;
      row.tokens = tokens;
      line.show(row, 100 + seconds * static_cast<double>(step));
    }
  }
  return testing::internal::GetCapturedStderr();
}

} // namespace

TEST(Progress, LinesComeEveryFewSecondsAndAtBothEnds) {
  // The rate is that of the computing, the time left that of the clock.
  EXPECT_EQ(shown(progress_style::lines, 60, 0.25), "step 1/60  loss 1.0000\n"
                                                    "step 21/60  loss 0.0476  8000 tokens/s  10 s left\n"
                                                    "step 41/60  loss 0.0244  8000 tokens/s  5 s left\n"
                                                    "step 60/60  loss 0.0167  8000 tokens/s\n");
  EXPECT_EQ(shown(progress_style::lines, 3, 50), "step 1/3  loss 1.0000\n"
                                                 "step 2/3  loss 0.5000  40 tokens/s  50 s left\n"
                                                 "step 3/3  loss 0.3333  40 tokens/s\n");
}

TEST(Progress, OnATerminalTheLineRenewsItselfAndGoes) {
  EXPECT_EQ(shown(progress_style::renewed, 3, 0.0625, 0), "\r\033[Kstep 1/3  loss 1.0000"
                                                          "\r\033[Kstep 3/3  loss 0.3333"
                                                          "\r\033[K");
  EXPECT_EQ(shown(progress_style::renewed, 3, 3600, 0), "\r\033[Kstep 1/3  loss 1.0000"
                                                        "\r\033[Kstep 2/3  loss 0.5000  1 h 0 min left"
                                                        "\r\033[Kstep 3/3  loss 0.3333"
                                                        "\r\033[K");
}

TEST(Progress, NothingIsShownWhereItIsOff) { EXPECT_EQ(shown(progress_style::off, 10, 60), ""); }

TEST(Progress, ASlowStepChangesTheMeanLittleAndALastingChangeSoon) {
  smoothed_rate rate;
  EXPECT_EQ(rate.units_per_second(), 0);
  for (int step = 0; step < 1000; ++step)
    rate.add(0.1, 0.1, 10);
  EXPECT_NEAR(rate.units_per_second(), 100, 1e-9);
  rate.add(1, 1, 10);
  EXPECT_GT(rate.units_per_second(), 90);
  for (int step = 0; step < 100; ++step)
    rate.add(0.5, 0.5, 10);
  EXPECT_NEAR(rate.units_per_second(), 20, 1);
  EXPECT_NEAR(rate.seconds_per_step(), 0.5, 0.025);
}

TEST(Progress, DurationsHaveTwoUnits) {
  EXPECT_EQ(short_duration(0.2), "0 s");
  EXPECT_EQ(short_duration(59.4), "59 s");
  EXPECT_EQ(short_duration(59.6), "1 min 0 s");
  EXPECT_EQ(short_duration(3599), "59 min 59 s");
  EXPECT_EQ(short_duration(7500), "2 h 5 min");
  EXPECT_EQ(short_duration(100000), "1 d 3 h");
}
