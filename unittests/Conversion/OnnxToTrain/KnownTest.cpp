// Arithmetic on the tensors that the importer evaluates.
#include "Known.h"

#include "mlir/IR/MLIRContext.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>

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
  EXPECT_THAT(sum->storage->integers, ElementsAre(11, 12, 13, 21, 22, 23));
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

TEST_F(KnownTest, SlicesForwardsAndBackwards) {
  Known x = integers({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(knownSlice(x, {0, 1}, {2, 2}, {1, 2})->storage->integers, ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(knownSlice(x, {1, 3}, {2, 4}, {-1, -1})->storage->integers, ElementsAre(7, 6, 5, 4, 3, 2, 1, 0));
}

TEST_F(KnownTest, MovesElements) {
  Known x = integers({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(knownTranspose(x, {1, 0})->storage->integers, ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(knownConcat({x, integers({2, 1}, {8, 9})}, 1)->storage->integers, ElementsAre(0, 1, 2, 8, 3, 4, 5, 9));
  EXPECT_THAT(knownPad(integers({2}, {1, 2}), {1}, {2}, 7)->storage->integers, ElementsAre(7, 1, 2, 7, 7));
  EXPECT_THAT(knownGather(x, integers({2}, {2, 0}), 1)->storage->integers, ElementsAre(2, 0, 5, 3));
  EXPECT_THAT(knownBroadcast(integers({2, 1}, {4, 5}), {2, 2})->storage->integers, ElementsAre(4, 4, 5, 5));
}

TEST_F(KnownTest, Reduces) {
  Known x = integers({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(knownReduce(ReduceKind::sum, x, {1})->storage->integers, ElementsAre(3, 12));
  EXPECT_THAT(knownReduce(ReduceKind::max, x, {0})->storage->integers, ElementsAre(3, 4, 5));
  EXPECT_THAT(knownReduce(ReduceKind::min, x, {0, 1})->storage->integers, ElementsAre(0));
}

TEST_F(KnownTest, SumsCumulatively) {
  Known x = integers({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(knownCumSum(x, 1, false, false)->storage->integers, ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(knownCumSum(x, 0, false, false)->storage->integers, ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(knownCumSum(x, 1, true, true)->storage->integers, ElementsAre(5, 3, 0, 11, 6, 0));
}

TEST_F(KnownTest, CastsSaturateAndTestForZero) {
  auto i64 = IntegerType::get(&context, 64), i1 = IntegerType::get(&context, 1);
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(knownCast(reals({4}, {-1.9, infinity, -infinity, NAN}), i64)->storage->integers,
              ElementsAre(-1, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), 0));
  EXPECT_THAT(knownCast(reals({3}, {0, -0.0, 0.5}), i1)->storage->booleans, ElementsAre(0, 0, 1));
}

TEST_F(KnownTest, SplatsByBits) {
  EXPECT_TRUE(reals({2}, {NAN, NAN})->isSplat());
  EXPECT_FALSE(reals({2}, {0.0, -0.0})->isSplat());
  EXPECT_TRUE(integers({1}, {4})->isSplat());
}

TEST_F(KnownTest, ComparesAndSelects) {
  Known less = knownCompare(CompareKind::lessEqual, integers({3}, {0, 1, 2}), integers({2, 1}, {0, 1}), {2, 3});
  EXPECT_THAT(less->storage->booleans, ElementsAre(1, 0, 0, 1, 1, 0));
  Known chosen = knownSelect(less, integers({}, {5}), integers({3}, {7, 8, 9}), {2, 3});
  EXPECT_THAT(chosen->storage->integers, ElementsAre(5, 8, 9, 5, 5, 9));
}

} // namespace
