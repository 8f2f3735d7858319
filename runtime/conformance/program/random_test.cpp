#include "random.h"
#include "schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace windlass::rt;

// Known answers of the Random123 distribution.
TEST(Random, PhiloxMatchesKnownAnswers) {
  using words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox(0, 0, 0), (words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822),
            (words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, NormalNumbersHaveMeanZeroAndDeviationOne) {
  double sum = 0, squares = 0, product = 0;
  const int count = 100000;
  for (std::uint64_t pair = 0; pair < count / 2; ++pair) {
    const std::array<double, 2> values = normal_pair(1, 2, pair), others = normal_pair(2, 2, pair);
    for (std::size_t half = 0; half < 2; ++half) {
      sum += values[half];
      squares += values[half] * values[half];
      product += values[half] * others[half];
    }
  }
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.02);
  EXPECT_NEAR(product / count, 0, 0.01);
}

TEST(Random, PermutationsHitEveryPositionOnceAndDependOnTheirKeys) {
  for (std::uint64_t size : {1u, 2u, 3u, 5u, 16u, 17u, 1000u, 4097u}) {
    permutation a(size, 1, 0), b(size, 1, 1), c(size, 2, 0);
    std::set<std::uint64_t> seen;
    std::uint64_t same_b = 0, same_c = 0, fixed = 0;
    for (std::uint64_t i = 0; i < size; ++i) {
      EXPECT_LT(a(i), size);
      seen.insert(a(i));
      same_b += a(i) == b(i);
      same_c += a(i) == c(i);
      fixed += a(i) == i;
    }
    EXPECT_EQ(seen.size(), size);
    if (size >= 1000) {
      EXPECT_LT(same_b, 10u);
      EXPECT_LT(same_c, 10u);
      EXPECT_LT(fixed, 10u);
    }
  }
}

TEST(Schedule, FollowsTheFormulas) {
  options o;
  o.lr = 0.5;
  o.steps = 100;
  o.warmup = 10;
  EXPECT_DOUBLE_EQ(learning_rate(o, 0), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(o, 9), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 99), 0.5);
  o.schedule = lr_schedule::linear;
  EXPECT_DOUBLE_EQ(learning_rate(o, 10), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 55), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(o, 100), 0);
  EXPECT_DOUBLE_EQ(learning_rate(o, 1000), 0);
  o.schedule = lr_schedule::cosine;
  o.schedule_steps = 50;
  EXPECT_DOUBLE_EQ(learning_rate(o, 30), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(o, 20), 0.5 * (1 + std::cos(3.141592653589793 / 4)) / 2);
  EXPECT_NEAR(learning_rate(o, 50), 0, 1e-17);
  o.warmup = 60; // beyond the schedule's end
  EXPECT_DOUBLE_EQ(learning_rate(o, 60), 0.5);
  EXPECT_NEAR(learning_rate(o, 61), 0, 1e-17);
}

TEST(Schedule, BiasCorrectionsCountUpdatesFromOne) {
  options o;
  job p = {};
  o.betas = {0.9, 0.999};
  EXPECT_NEAR(scalar_value(p, o, scalar::bias_correction1, 0), 0.1, 1e-15);
  EXPECT_NEAR(scalar_value(p, o, scalar::bias_correction1, 2), 1 - 0.9 * 0.9 * 0.9, 1e-15);
  EXPECT_NEAR(scalar_value(p, o, scalar::bias_correction2, 0), 0.001, 1e-15);
  EXPECT_EQ(scalar_value(p, o, scalar::one_minus_beta2, 0), 1 - 0.999);
  o.betas = {0, 0.999};
  EXPECT_EQ(scalar_value(p, o, scalar::bias_correction1, 0), 1.0);
  p.kind = optimizer::adamw;
  EXPECT_EQ(scalar_value(p, o, scalar::weight_decay, 0), 0.01);
  p.kind = optimizer::sgd;
  EXPECT_EQ(scalar_value(p, o, scalar::weight_decay, 0), 0.0);
  // Updates that were left out are not counted.
  o.betas = {0.9, 0.999};
  EXPECT_NEAR(scalar_value(p, o, scalar::bias_correction1, 4, {2, {}}), 1 - 0.9 * 0.9 * 0.9, 1e-15);
}

TEST(Schedule, RatesOfAdafactorFallWithTheUpdates) {
  EXPECT_EQ(scalar_value({}, {}, scalar::inverse_sqrt_step, 0), 1);
  EXPECT_EQ(scalar_value({}, {}, scalar::inverse_sqrt_step, 3), 0.5);
  EXPECT_EQ(scalar_value({}, {}, scalar::second_moment_rate, 0), 1);
  EXPECT_NEAR(scalar_value({}, {}, scalar::second_moment_rate, 31), 1.0 / 16, 1e-15);
  // Updates that were left out are not counted, not even where none was made.
  EXPECT_EQ(scalar_value({}, {}, scalar::inverse_sqrt_step, 5, {2, {}}), 0.5);
  EXPECT_EQ(scalar_value({}, {}, scalar::second_moment_rate, 1, {2, {}}), 1);
}

TEST(Schedule, TheMovingAverageBeginsAsTheWeight) {
  options o;
  o.ema_decay = 0.75;
  EXPECT_EQ(scalar_value({}, o, scalar::ema_rate, 0), 1);
  EXPECT_EQ(scalar_value({}, o, scalar::ema_rate, 1), 0.25);
  // The first two updates were left out, so that no weight has moved yet.
  EXPECT_EQ(scalar_value({}, o, scalar::ema_rate, 2, {2, {}}), 1);
}
