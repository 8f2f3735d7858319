#include "windlass/Experts/Loads.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace windlass::experts;

namespace {

double sumOf(const std::vector<double> &loads) { return std::accumulate(loads.begin(), loads.end(), 0.0); }

TEST(Loads, AreWholeAndTheSameEachTime) {
  for (size_t kind = 0; kind < getLoadKinds().size(); ++kind) {
    LoadSettings settings;
    settings.kind = static_cast<LoadKind>(kind);
    settings.layers = 2;
    auto layers = makeLoads(settings);
    ASSERT_EQ(layers.size(), 2u);
    EXPECT_NE(layers[0], layers[1]);
    for (const std::vector<double> &loads : layers) {
      ASSERT_EQ(loads.size(), 256u);
      EXPECT_NEAR(sumOf(loads) / 256, 10'000, 1);
      for (double load : loads)
        EXPECT_TRUE(load >= 0 && load == std::round(load));
    }
    settings.layers = 1;
    EXPECT_EQ(makeLoads(settings).front(), layers[0]);
    settings.seed = 2;
    EXPECT_NE(makeLoads(settings).front(), layers[0]);
  }
}

TEST(Loads, HaveTheirShape) {
  LoadSettings settings;
  auto sorted = [&] {
    std::vector<double> loads = makeLoads(settings).front();
    std::sort(loads.begin(), loads.end(), std::greater<>());
    return loads;
  };
  settings.kind = LoadKind::uniform;
  EXPECT_LT(sorted()[0], 25'000);
  settings.kind = LoadKind::logNormal;
  EXPECT_GT(sorted()[0], 60'000);
  settings.kind = LoadKind::zipf;
  EXPECT_NEAR(sorted()[0] / sorted()[9], 10, 0.01);
  settings.kind = LoadKind::hot;
  settings.spread = 3;
  EXPECT_NEAR(sorted()[0], sumOf(sorted()) * 3 / 4, 100);
  EXPECT_NEAR(sorted()[1] / sorted()[255], 1, 0.3);
}

TEST(Loads, DriftFromStepToStep) {
  LoadSettings settings;
  std::vector<std::vector<double>> steps;
  for (settings.step = 0; settings.step < 30; ++settings.step)
    steps.push_back(makeLoads(settings).front());
  auto distance = [&](size_t first, size_t second) {
    double squares = 0;
    for (size_t expert = 0; expert < 256; ++expert)
      squares += std::pow(std::log(steps[second][expert] / steps[first][expert]), 2);
    return std::sqrt(squares / 256);
  };
  EXPECT_NEAR(distance(3, 4), settings.drift, 0.01);
  EXPECT_NEAR(distance(0, 25), 5 * settings.drift, 0.05);
}

} // namespace
