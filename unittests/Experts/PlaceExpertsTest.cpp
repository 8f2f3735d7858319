#include "SmallCells.h"

#include "windlass/Experts/Loads.h"

#include "gtest/gtest.h"

#include <numeric>

using namespace windlass::experts;

namespace {

/// The example in EPLB's README (https://github.com/deepseek-ai/EPLB).
const std::vector<double> kFirstLayer = {90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86};
const std::vector<double> kSecondLayer = {20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27};

void expectOptimal(const Shape &shape, const std::vector<double> &loads, double optimum) {
  LayerAnswer answer = placeLayer(shape, loads);
  EXPECT_EQ(checkPlacement(shape, answer.placement), "");
  EXPECT_DOUBLE_EQ(answer.load, optimum);
  EXPECT_TRUE(answer.isOptimal());
}

// The optima were found by trying everything; EPLB's answers are 156, 179.5, 138.5 and 172.
TEST(PlaceExperts, SolvesTheExampleOfEplb) {
  expectOptimal({12, 16, 4, 2, 8}, kFirstLayer, 151);
  expectOptimal({12, 16, 4, 2, 8}, kSecondLayer, 179.5);
  expectOptimal({12, 16, 1, 1, 8}, kFirstLayer, 136);
  expectOptimal({12, 16, 1, 1, 8}, kSecondLayer, 172);
}

TEST(PlaceExperts, FindsTheOptimumOfSmallCells) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Cell cell = drawCell(seed);
    SCOPED_TRACE(seed);
    ASSERT_EQ(checkShape(cell.shape), "");
    double optimum = std::numeric_limits<double>::infinity();
    visitPlacements(cell.shape,
                    [&](const Placement &placement) { optimum = std::min(optimum, largestLoad(cell, placement)); });
    LayerAnswer answer = placeLayer(cell.shape, cell.loads);
    ASSERT_EQ(checkPlacement(cell.shape, answer.placement), "");
    EXPECT_DOUBLE_EQ(answer.load, largestLoad(cell, answer.placement));
    EXPECT_NEAR(answer.load, optimum, 1e-9 * optimum);
    EXPECT_TRUE(answer.isOptimal());
    EXPECT_LE(answer.bound, optimum * (1 + 1e-9));
    // The search that tries everything finds the optimum without the local search before it.
    LayerAnswer tried = placeLayer(cell.shape, cell.loads, {0, 10'000'000, 0});
    EXPECT_NEAR(tried.load, optimum, 1e-9 * optimum);
    EXPECT_TRUE(tried.isOptimal());
    // A search that may not do anything says less, but nothing wrong.
    LayerAnswer first = placeLayer(cell.shape, cell.loads, {0, 0, 0});
    ASSERT_EQ(checkPlacement(cell.shape, first.placement), "");
    EXPECT_GE(first.load, optimum * (1 - 1e-9));
    EXPECT_LE(first.bound, optimum * (1 + 1e-9));
    if (first.isOptimal()) {
      EXPECT_NEAR(first.load, optimum, 1e-9 * optimum);
    }
  }
}

TEST(PlaceExperts, PlacesLargeLayersNearTheBound) {
  for (LoadKind kind : {LoadKind::uniform, LoadKind::logNormal, LoadKind::zipf, LoadKind::hot})
    for (Shape shape : {Shape{256, 288, 8, 4, 32}, Shape{256, 288, 1, 1, 32}, Shape{256, 256, 8, 4, 32},
                        Shape{256, 320, 32, 8, 64}, Shape{64, 1024, 1, 1, 64}, Shape{3, 64, 1, 1, 8}}) {
      LoadSettings settings;
      settings.kind = kind;
      settings.experts = shape.experts;
      SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << ", " << shape.experts << " experts, "
                                      << shape.replicas << " replicas");
      std::vector<double> loads = makeLoads(settings).front();
      LayerAnswer answer = placeLayer(shape, loads);
      EXPECT_EQ(checkPlacement(shape, answer.placement), "");
      EXPECT_DOUBLE_EQ(answer.load, largestLoad({shape, loads}, answer.placement));
      EXPECT_GE(answer.bound, std::accumulate(loads.begin(), loads.end(), 0.0) / shape.gpus * (1 - 1e-12));
      EXPECT_LE(answer.load, 1.01 * answer.bound);
      EXPECT_EQ(placeLayer(shape, loads).placement, answer.placement);
    }
}

// The hot expert fills its GPU with the smallest of its node, and no placement does better.
TEST(PlaceExperts, ProvesThatAFullGpuIsTheBest) {
  auto place = [](const Shape &shape) {
    LoadSettings settings;
    settings.kind = LoadKind::hot;
    settings.experts = shape.experts;
    return placeLayer(shape, makeLoads(settings).front());
  };
  EXPECT_TRUE(place({256, 256, 8, 4, 32}).isOptimal());
  EXPECT_TRUE(place({256, 256, 1, 1, 32}).isOptimal());
  // With two more replicas the bound is not tight, but the mean is far below it.
  LayerAnswer answer = place({64, 66, 1, 1, 22});
  EXPECT_LE(answer.load, 1.0005 * answer.bound);
}

TEST(PlaceExperts, TakesLoadsOfNothing) {
  LayerAnswer answer = placeLayer({3, 8, 1, 1, 4}, {0, 0, 0});
  EXPECT_EQ(checkPlacement({3, 8, 1, 1, 4}, answer.placement), "");
  EXPECT_EQ(answer.load, 0);
  EXPECT_TRUE(answer.isOptimal());
}

} // namespace
