#include "../../../../lib/Dialect/Sched/Transforms/Views.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <random>

using namespace windlass;
using namespace windlass::sched;

namespace {

/// Returns the byte offsets of the elements in row-major order.
std::vector<int64_t> enumerateElements(const View &view) {
  std::vector<int64_t> offsets{view.offset};
  for (int64_t dim = 0; dim < view.getRank(); ++dim) {
    std::vector<int64_t> next;
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < view.sizes[dim]; ++i)
        next.push_back(offset + i * view.strides[dim] * getElementBytes(view.element));
    offsets = std::move(next);
  }
  return offsets;
}

class Views : public testing::Test {
protected:
  View dense(llvm::ArrayRef<int64_t> sizes) {
    return View::dense(3, mlir::RankedTensorType::get(sizes, mlir::Float32Type::get(&context)));
  }
  mlir::MLIRContext context;
};

TEST_F(Views, DenseReshapesToAnything) {
  std::optional<View> view = dense({4, 6}).reshaped({2, 1, 3, 4});
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->isDense());
  EXPECT_EQ(view->strides, (llvm::SmallVector<int64_t, 4>{12, 12, 4, 1}));
}

TEST_F(Views, HeadsOfAJointProjectionNeedNoCopy) {
  // [batch, tokens, 3 x heads x depth]: the middle third, heads in front.
  View part = dense({2, 5, 24}).sliced({0, 0, 8}, {2, 5, 8});
  std::optional<View> heads = part.reshaped({2, 5, 2, 4});
  ASSERT_TRUE(heads);
  View front = heads->permuted({0, 2, 1, 3});
  EXPECT_EQ(front.offset, 32);
  EXPECT_EQ(front.strides, (llvm::SmallVector<int64_t, 4>{120, 4, 24, 1}));
  EXPECT_FALSE(front.isDense());
  EXPECT_TRUE(front.hasUnitInnerStride());
}

TEST_F(Views, TransposedDimsDoNotMerge) { EXPECT_FALSE(dense({4, 6}).permuted({1, 0}).reshaped({24})); }

TEST_F(Views, RepeatedDimsMergeAmongThemselves) {
  View repeated = dense({6}).broadcasted({2}, {2, 3, 6});
  std::optional<View> merged = repeated.reshaped({6, 6});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->strides, (llvm::SmallVector<int64_t, 4>{0, 1}));
  EXPECT_FALSE(repeated.reshaped({36}));
}

TEST_F(Views, StridesOfSingleElementsMeanNothing) {
  View a = dense({1, 6}), b = a;
  b.strides[0] = 77;
  EXPECT_TRUE(a == b);
  EXPECT_TRUE(b.isDense());
}

TEST_F(Views, RandomReshapesKeepTheElements) {
  std::mt19937 random(11);
  int made = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    llvm::SmallVector<int64_t, 4> sizes;
    for (int64_t dim = random() % 4 + 1; dim > 0; --dim)
      sizes.push_back(random() % 4 + 1);
    View view = dense(sizes);
    llvm::SmallVector<int64_t, 4> permutation, starts, parts;
    for (int64_t dim = 0; dim < view.getRank(); ++dim) {
      permutation.push_back(dim);
      starts.push_back(random() % sizes[dim]);
      parts.push_back(random() % (sizes[dim] - starts.back()) + 1);
    }
    if (random() % 2)
      view = view.sliced(starts, parts);
    if (random() % 2) {
      std::shuffle(permutation.begin(), permutation.end(), random);
      view = view.permuted(permutation);
    }
    // A random factorisation of the element count.
    llvm::SmallVector<int64_t, 4> shape;
    for (int64_t rest = view.getElements(); rest > 1;) {
      int64_t factor = random() % rest + 1;
      if (rest % factor)
        continue;
      shape.push_back(factor);
      rest /= factor;
    }
    std::optional<View> reshaped = view.reshaped(shape);
    if (!reshaped)
      continue;
    ++made;
    ASSERT_EQ(enumerateElements(*reshaped), enumerateElements(view));
  }
  EXPECT_GT(made, 1000);
}

} // namespace
