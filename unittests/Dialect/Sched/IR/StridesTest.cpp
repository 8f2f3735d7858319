#include "windlass/Dialect/Sched/IR/Strides.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/DebugStringHelper.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace windlass::sched;

using Strides = std::optional<llvm::SmallVector<int64_t>>;

TEST(Strides, AreThoseThatMlirFinds) {
  MLIRContext context;
  Builder builder(&context);
  Type f32 = builder.getF32Type();
  const std::pair<MemRefType, llvm::SmallVector<int64_t>> cases[] = {
      {MemRefType::get({}, f32), {}},
      {MemRefType::get({5}, f32), {1}},
      {MemRefType::get({2, 3, 4}, f32), {12, 4, 1}},
      {MemRefType::get({2, 1, 4}, f32), {4, 4, 1}},
      {MemRefType::get({2, 3}, f32, StridedLayoutAttr::get(&context, 0, {0, 1})), {0, 1}},
      {MemRefType::get({2, 3}, f32, StridedLayoutAttr::get(&context, 7, {16, 2})), {16, 2}}};
  for (const auto &[type, expected] : cases) {
    Strides strides = getStrides(type);
    ASSERT_TRUE(strides);
    llvm::SmallVector<int64_t> found;
    int64_t offset = 0;
    bool isKnown = succeeded(type.getStridesAndOffset(found, offset));
    EXPECT_EQ(*strides, expected) << debugString(type);
    EXPECT_TRUE(isKnown && *strides == found) << debugString(type);
  }
}

TEST(Strides, OfOtherMapsThereAreNone) {
  MLIRContext context;
  Builder builder(&context);
  AffineMap halves = AffineMap::get(1, 0, builder.getAffineDimExpr(0).floorDiv(2), &context);
  EXPECT_FALSE(getStrides(MemRefType::get({4}, builder.getF32Type(), halves)));
}
