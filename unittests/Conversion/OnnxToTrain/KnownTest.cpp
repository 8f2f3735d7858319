// Arithmetic on the tensors that the importer evaluates.
#include "Known.h"

#include "mlir/IR/MLIRContext.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

using namespace mlir;
using namespace windlass;
using testing::ElementsAre;

namespace {

struct KnownTest : testing::Test {
  Known integers(llvm::ArrayRef<int64_t> shape, std::vector<int64_t> values) {
    auto type = RankedTensorType::get(shape, IntegerType::get(&context, 64));
    return makeKnown(type, [&](KnownStorage &out) { out.integers = values; });
  }
  Known reals(llvm::ArrayRef<int64_t> shape, std::vector<double> values, Type type = {}) {
    auto tensor = RankedTensorType::get(shape, type ? type : Type(Float32Type::get(&context)));
    return makeKnown(tensor, [&](KnownStorage &out) { out.reals = values; });
  }
  MLIRContext context;
};

TEST_F(KnownTest, BinaryBroadcastsBothOperands) {
  Known sum = knownBinary(BinaryKind::add, integers({2, 1}, {10, 20}), integers({3}, {1, 2, 3}), {2, 3});
  EXPECT_THAT(sum->getStorage().integers, ElementsAre(11, 12, 13, 21, 22, 23));
}

TEST_F(KnownTest, IntegersWrapAndDivideWithoutTraps) {
  int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(knownBinary(BinaryKind::add, integers({}, {most}), integers({}, {1}), {})->getInteger(0), least);
  EXPECT_EQ(knownBinary(BinaryKind::div, integers({}, {least}), integers({}, {-1}), {})->getInteger(0), least);
  EXPECT_EQ(knownBinary(BinaryKind::div, integers({}, {5}), integers({}, {0}), {})->getInteger(0), 0);
  EXPECT_EQ(knownBinary(BinaryKind::div, integers({}, {-7}), integers({}, {2}), {})->getInteger(0), -3);
  EXPECT_EQ(knownBinary(BinaryKind::mod, integers({}, {-7}), integers({}, {3}), {})->getInteger(0), 2);
}

TEST_F(KnownTest, RealsRoundToTheirType) {
  Known third = knownBinary(BinaryKind::div, reals({}, {1}), reals({}, {3}), {});
  EXPECT_EQ(third->getReal(0), double(1.0f / 3.0f));
  EXPECT_EQ(roundReal(1.0009765625, BFloat16Type::get(&context)), 1.0);
  EXPECT_EQ(roundReal(70000.0, Float16Type::get(&context)), std::numeric_limits<double>::infinity());
}

TEST_F(KnownTest, WhatIsComputedOnLargeBroadcastsIsOne) {
  std::vector<double> values(64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = double(i) - 9;
  Known row = reals({1, 64}, values), zero = reals({}, {0}), column = reals({2, 1}, {1, 2});
  Known large = knownBroadcast(row, {1 << 20, 64});
  EXPECT_EQ(large->getSource(), row);
  EXPECT_EQ(large->getReal(64 * 5000 + 7), -2);
  EXPECT_FALSE(large->isSplat());
  Known hidden = knownCompare(CompareKind::less, large, zero, large->getShape());
  Known chosen = knownSelect(hidden, large, knownUnary(UnaryKind::neg, large), large->getShape());
  for (const Known &tensor : {hidden, chosen, knownCast(chosen, Float64Type::get(&context)),
                              knownBinary(BinaryKind::mul, large, large, large->getShape())}) {
    ASSERT_TRUE(tensor->getSource());
    EXPECT_EQ(tensor->getSource()->getSize(), 64);
    EXPECT_EQ(tensor->getShape(), large->getShape());
  }
  EXPECT_EQ(chosen->getReal(64 * 77 + 63), -54);
  EXPECT_TRUE(knownBroadcast(zero, {1 << 20, 64})->isSplat());
  // A sum of two broadcasts along different dims is one of the smallest tensor that holds all of its elements.
  Known both = knownBinary(BinaryKind::add, knownBroadcast(row, {300, 2, 64}), knownBroadcast(column, {300, 2, 64}),
                           {300, 2, 64});
  ASSERT_TRUE(both->getSource());
  EXPECT_EQ(both->getSource()->getSize(), 128);
  EXPECT_EQ(both->getReal(128 * 299 + 64 + 10), 3);
  for (const Known &turned :
       {knownTranspose(both, {2, 1, 0}), knownReshape(knownTranspose(both, {2, 1, 0}), {1, 64, 2, 1, 300})}) {
    ASSERT_TRUE(turned->getSource());
    EXPECT_EQ(turned->getReal(10 * 600 + 300 + 299), 3);
    EXPECT_EQ(turned->getStorage().reals[10 * 600 + 300 + 299], 3);
  }
  Known part = knownSlice(both, {100, 1, 60}, {150, 1, 4}, {1, 1, -1});
  EXPECT_EQ(part->getStorage().reals, std::vector<double>([] {
              std::vector<double> expected;
              for (int i = 0; i < 600; ++i)
                expected.push_back(60 - i % 4 - 9 + 2);
              return expected;
            }()));
  EXPECT_FALSE(knownReshape(both, {300, 128})->getSource()) << "rows of several rows are stored";
}

TEST_F(KnownTest, WhatDependsOnTwoPlacesDifferenceIsAList) {
  std::vector<int64_t> places(100);
  std::iota(places.begin(), places.end(), 5);
  Known columns = integers({1, 100}, places), rows = integers({100, 1}, places);
  EXPECT_TRUE(areRanges(*columns, *rows));
  EXPECT_FALSE(areRanges(*columns, *columns));
  EXPECT_FALSE(areRanges(*columns, *integers({2, 1}, {0, 2}))) << "with other steps";
  auto expectBand = [&](const Known &band, llvm::function_ref<bool(int64_t, int64_t)> isInside) {
    std::optional<Diagonals> diagonals = findDiagonals(*band);
    ASSERT_TRUE(diagonals);
    EXPECT_EQ(diagonals->list->getSize(), 199);
    for (int64_t i = 0; i < 100; ++i)
      for (int64_t j = 0; j < 100; ++j)
        EXPECT_EQ(band->getInteger(i * 100 + j), isInside(i, j)) << i << ", " << j;
  };
  Shape square = {100, 100};
  Known causal = knownCompare(CompareKind::lessEqual, columns, rows, square);
  expectBand(causal, [](int64_t i, int64_t j) { return j <= i; });
  expectBand(knownCompare(CompareKind::less, rows, columns, square), [](int64_t i, int64_t j) { return i < j; });
  expectBand(knownTranspose(causal, {1, 0}), [](int64_t i, int64_t j) { return i <= j; });
  Known window =
      knownBinary(BinaryKind::bitAnd, causal, makeBand(&context, 100, 100, [](int64_t d) { return d > -8; }), square);
  expectBand(window, [](int64_t i, int64_t j) { return j <= i && i - j < 8; });
  // Over a batch it is still a list, and so is a part of it.
  Known batch = knownBroadcast(knownReshape(window, {1, 1, 100, 100}), {1 << 20, 4, 100, 100});
  Known scores = knownSelect(batch, reals({}, {0}), reals({}, {-1}), batch->getShape());
  Known part = knownSlice(scores, {7, 0, 20, 10}, {9, 2, 40, 30}, {1, 1, 1, 1});
  std::optional<Diagonals> diagonals = findDiagonals(*part);
  ASSERT_TRUE(diagonals);
  EXPECT_EQ(diagonals->rows, 2);
  EXPECT_EQ(diagonals->list->getSize(), 69);
  EXPECT_EQ(part->getReal(30 * 15 + 24), 0) << "row 35, column 34";
  EXPECT_EQ(part->getReal(30 * 15 + 27), -1) << "row 35, column 37";
  EXPECT_EQ(part->getReal(30 * 20 + 20), -1) << "row 40, column 30";
  EXPECT_FALSE(findDiagonals(*knownBinary(BinaryKind::add, scores,
                                          knownBroadcast(reals({100, 1}, std::vector<double>(100, 1)), {4, 100, 100}),
                                          scores->getShape())));
}

TEST_F(KnownTest, SlicesForwardsAndBackwards) {
  Known x = integers({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(knownSlice(x, {0, 1}, {2, 2}, {1, 2})->getStorage().integers, ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(knownSlice(x, {1, 3}, {2, 4}, {-1, -1})->getStorage().integers, ElementsAre(7, 6, 5, 4, 3, 2, 1, 0));
}

TEST_F(KnownTest, MovesElements) {
  Known x = integers({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(knownTranspose(x, {1, 0})->getStorage().integers, ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(knownConcat({x, integers({2, 1}, {8, 9})}, 1)->getStorage().integers,
              ElementsAre(0, 1, 2, 8, 3, 4, 5, 9));
  EXPECT_THAT(knownPad(integers({2}, {1, 2}), {1}, {2}, 7)->getStorage().integers, ElementsAre(7, 1, 2, 7, 7));
  EXPECT_THAT(knownGather(x, integers({2}, {2, 0}), 1)->getStorage().integers, ElementsAre(2, 0, 5, 3));
  EXPECT_THAT(knownBroadcast(integers({2, 1}, {4, 5}), {2, 2})->getStorage().integers, ElementsAre(4, 4, 5, 5));
}

TEST_F(KnownTest, Reduces) {
  Known x = integers({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(knownReduce(ReduceKind::sum, x, {1})->getStorage().integers, ElementsAre(3, 12));
  EXPECT_THAT(knownReduce(ReduceKind::max, x, {0})->getStorage().integers, ElementsAre(3, 4, 5));
  EXPECT_THAT(knownReduce(ReduceKind::min, x, {0, 1})->getStorage().integers, ElementsAre(0));
}

TEST_F(KnownTest, SumsCumulatively) {
  Known x = integers({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(knownCumSum(x, 1, false, false)->getStorage().integers, ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(knownCumSum(x, 0, false, false)->getStorage().integers, ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(knownCumSum(x, 1, true, true)->getStorage().integers, ElementsAre(5, 3, 0, 11, 6, 0));
}

TEST_F(KnownTest, CastsSaturateAndTestForZero) {
  auto i64 = IntegerType::get(&context, 64), i1 = IntegerType::get(&context, 1);
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(knownCast(reals({4}, {-1.9, infinity, -infinity, NAN}), i64)->getStorage().integers,
              ElementsAre(-1, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), 0));
  EXPECT_THAT(knownCast(reals({3}, {0, -0.0, 0.5}), i1)->getStorage().booleans, ElementsAre(0, 0, 1));
}

TEST_F(KnownTest, SplatsByBits) {
  EXPECT_TRUE(reals({2}, {NAN, NAN})->isSplat());
  EXPECT_FALSE(reals({2}, {0.0, -0.0})->isSplat());
  EXPECT_TRUE(integers({1}, {4})->isSplat());
}

TEST_F(KnownTest, ComparesAndSelects) {
  Known less = knownCompare(CompareKind::lessEqual, integers({3}, {0, 1, 2}), integers({2, 1}, {0, 1}), {2, 3});
  EXPECT_THAT(less->getStorage().booleans, ElementsAre(1, 0, 0, 1, 1, 0));
  Known chosen = knownSelect(less, integers({}, {5}), integers({3}, {7, 8, 9}), {2, 3});
  EXPECT_THAT(chosen->getStorage().integers, ElementsAre(5, 8, 9, 5, 5, 9));
}

} // namespace
