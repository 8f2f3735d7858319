#include "windlass/Dialect/Sched/IR/Place.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include "llvm/ADT/DenseMap.h"

using namespace windlass::sched;

namespace {

TEST(Place, IsAnArenaAndAnOffset) {
  mlir::MLIRContext context;
  auto device = mlir::StringAttr::get(&context, "device_arena"), host = mlir::StringAttr::get(&context, "host_arena");
  EXPECT_EQ((Place{device, 64}), (Place{device, 64}));
  EXPECT_NE((Place{device, 64}), (Place{device, 0}));
  EXPECT_NE((Place{device, 0}), (Place{host, 0}));
  EXPECT_LT((Place{device, 64}), (Place{host, 0}));
  EXPECT_LT((Place{host, 0}), (Place{host, 64}));

  llvm::DenseMap<Place, int> numbers;
  numbers[{device, 0}] = 1;
  numbers[{host, 0}] = 2;
  numbers[{host, 64}] = 3;
  EXPECT_EQ(numbers.size(), 3u);
  EXPECT_EQ(numbers.lookup({host, 0}), 2);
}

TEST(Place, ExtentsOfTwoArenasShareNoByte) {
  mlir::MLIRContext context;
  auto device = mlir::StringAttr::get(&context, "device_arena"), host = mlir::StringAttr::get(&context, "host_arena");
  Extent extent = {device, {0, 64}};
  EXPECT_TRUE(extent.overlaps({device, {60, 128}}));
  EXPECT_FALSE(extent.overlaps({device, {64, 128}}));
  EXPECT_FALSE(extent.overlaps({host, {0, 64}}));
}

} // namespace
