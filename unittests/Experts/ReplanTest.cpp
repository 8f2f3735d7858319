#include "SmallCells.h"

#include "windlass/Experts/Loads.h"

#include "gtest/gtest.h"

using namespace windlass::experts;

namespace {

/// Draws a placement of a shape.
Placement drawPlacement(std::mt19937_64 &random, const Shape &shape) {
  Placement chosen;
  uint64_t seen = 0;
  visitPlacements(shape, [&](const Placement &placement) {
    if (random() % ++seen == 0)
      chosen = placement;
  });
  return chosen;
}

TEST(Replan, KeepsTheToleranceAndMovesLittle) {
  int64_t moved = 0, fewestMoved = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Cell cell = drawCell(seed);
    std::mt19937_64 random(seed);
    Placement before = drawPlacement(random, cell.shape);
    double tolerance = double(random() % 3) / 10, optimum = placeLayer(cell.shape, cell.loads).load;
    int32_t fewest = cell.shape.replicas;
    visitPlacements(cell.shape, [&](const Placement &placement) {
      if (largestLoad(cell, placement) <= optimum * (1 + tolerance) * (1 + 1e-9))
        fewest = std::min(fewest, countMoved(before, placement, cell.shape.gpus));
    });
    ReplanAnswer answer = replanLayer(cell.shape, cell.loads, before, tolerance);
    ASSERT_EQ(checkPlacement(cell.shape, answer.placement), "");
    EXPECT_DOUBLE_EQ(answer.load, largestLoad(cell, answer.placement));
    EXPECT_DOUBLE_EQ(answer.loadBefore, largestLoad(cell, before));
    EXPECT_LE(answer.load, optimum * (1 + tolerance) * (1 + 1e-9));
    EXPECT_LE(answer.bound, optimum * (1 + 1e-9));
    EXPECT_EQ(answer.moved, countMoved(before, answer.placement, cell.shape.gpus));
    EXPECT_GE(answer.moved, fewest);
    moved += answer.moved;
    fewestMoved += fewest;
  }
  EXPECT_GT(fewestMoved, 0);
  EXPECT_LE(moved, fewestMoved * 1.1) << "fewest " << fewestMoved;
}

TEST(Replan, MovesNothingWhereNothingIsGained) {
  for (Shape shape : {Shape{64, 72, 8, 4, 8}, Shape{64, 72, 1, 1, 8}}) {
    LoadSettings settings;
    settings.experts = shape.experts;
    std::vector<double> loads = makeLoads(settings).front();
    Placement before = placeLayer(shape, loads).placement;
    ReplanAnswer same = replanLayer(shape, loads, before, 0.01);
    EXPECT_EQ(same.placement, before);
    EXPECT_EQ(same.moved, 0);
    settings.seed = 2;
    EXPECT_EQ(replanLayer(shape, makeLoads(settings).front(), before, 100).moved, 0);
  }
}

TEST(Replan, MovesFewReplicasUnderDriftingLoads) {
  for (Shape shape : {Shape{256, 288, 8, 4, 32}, Shape{256, 288, 1, 1, 32}}) {
    LoadSettings settings;
    Placement before = placeLayer(shape, makeLoads(settings).front()).placement;
    settings.step = 4;
    std::vector<double> loads = makeLoads(settings).front();
    double fresh = placeLayer(shape, loads).load;
    ReplanAnswer answer = replanLayer(shape, loads, before, 0.02);
    EXPECT_EQ(checkPlacement(shape, answer.placement), "");
    EXPECT_GT(answer.loadBefore, 1.02 * fresh);
    EXPECT_LE(answer.load, 1.02 * fresh);
    EXPECT_GT(answer.moved, 0);
    EXPECT_LE(answer.moved, shape.replicas / 10);
    // What stays keeps its slot.
    int32_t kept = 0;
    for (int32_t slot = 0; slot < shape.replicas; ++slot)
      kept += before[slot] == answer.placement[slot];
    EXPECT_EQ(kept, shape.replicas - answer.moved);
  }
}

} // namespace
