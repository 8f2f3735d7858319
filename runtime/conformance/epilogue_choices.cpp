// Who computes a product with what follows it: the library where a profile or a measurement says so, else two kernels.
// With a library of the test's own; epilogues.cpp and half_types.cpp hold the device's to what it computes.
#include "testing.h"

#include "epilogues.h"

namespace windlass::rt::testing {
namespace {

using cuda::column_gemm;
using cuda::epilogue;
using detail::fused_product;

/// "Computes" by writing 6 to the result, after some writing elsewhere.
class fake_gemm final : public cuda::prepared_gemm {
public:
  fake_gemm(const tensor &elsewhere, int slowness) : elsewhere_(elsewhere), slowness_(slowness) {}
  status guess(std::size_t, std::vector<product_algorithm> &) override { return {}; }
  bool use(const product_algorithm &) override { return false; }
  void use_first() override {}
  status run(stream &s, const column_gemm &call, std::byte *, std::int64_t) override {
    for (int i = 0; i < slowness_; ++i)
      WINDLASS_TRY(fill(s, elsewhere_, 1));
    return fill(s, dense_view(call.d.data, call.d.type, {1}), 6);
  }

private:
  const tensor &elsewhere_;
  int slowness_;
};

class fake_library final : public cuda::gemm_library {
public:
  fake_library(int slowness, bool refuses, std::vector<epilogue> &seen)
      : slowness_(slowness), refuses_(refuses), seen_(seen) {}
  std::string version() const override { return "fake 1"; }
  status prepare(const column_gemm &call, int, std::int64_t, std::unique_ptr<cuda::prepared_gemm> &out) override {
    seen_.push_back(call.also);
    if (refuses_)
      return internal_error("no algorithm");
    out = std::make_unique<fake_gemm>(elsewhere_, slowness_);
    return {};
  }

private:
  int slowness_;
  bool refuses_;
  std::vector<epilogue> &seen_;
  tensor elsewhere_{{1 << 18}};
};

struct EpilogueChoices : ::testing::Test {
  test_memory scratch = allocate_zeros(1 << 12);
  std::unique_ptr<stream> s = make_worker_stream(1, scratch.get(), 1 << 12);
  tensor a{{16, 8}}, b{{8, 24}}, out{{16, 24}}, bias{{16, 24}, {}, 0, {0}}, dbias{{24}}, elsewhere{{1 << 18}};
  fused_product product = {fused_product::bias, out, a, b, bias, {}, 1};
  std::vector<epilogue> seen;

  std::unique_ptr<cuda::gemm_library> fake(int slowness, bool refuses = false) {
    return std::make_unique<fake_library>(slowness, refuses, seen);
  }
  /// Two kernels write 1 and take as long as 20 writings elsewhere.
  float computed_by(cuda::epilogues &of) {
    const auto apart = [&]() -> status {
      for (int i = 0; i < 20; ++i)
        WINDLASS_TRY(fill(*s, elsewhere, 1));
      return fill(*s, out, 1);
    };
    EXPECT_STATUS_OK(of.run(*s, product, apart));
    EXPECT_STATUS_OK(s->synchronize());
    return out[0];
  }
};

TEST_F(EpilogueChoices, AreComputedByTheLibrary) {
  cuda::products by(fake(0));
  cuda::epilogues own(by);
  EXPECT_EQ(computed_by(own), 6);
  EXPECT_EQ(own.fused(), 1u);
  EXPECT_EQ(seen, std::vector{epilogue::bias});
  EXPECT_FALSE(own.take_tuned());
}

TEST_F(EpilogueChoices, WhatTheLibraryRefusesStaysTwoKernels) {
  cuda::products by(fake(0, /*refuses=*/true));
  cuda::epilogues own(by);
  own.tune();
  EXPECT_EQ(computed_by(own), 1);
  EXPECT_EQ(computed_by(own), 1);
  EXPECT_EQ(seen.size(), 1u) << "it is asked once";
  EXPECT_FALSE(own.take_tuned());
  EXPECT_EQ(by.shapes(), 0u);
}

TEST_F(EpilogueChoices, TheFasterIsFoundAtTheFirstOfAShape) {
  for (const int slowness : {0, 60}) {
    cuda::products by(fake(slowness));
    cuda::epilogues own(by);
    own.tune();
    EXPECT_EQ(computed_by(own), slowness == 0 ? 6 : 1);
    const std::optional<detail::tuned_epilogue> found = own.take_tuned();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->seconds < found->apart_seconds, slowness == 0);
    EXPECT_FALSE(own.take_tuned());
    EXPECT_EQ(computed_by(own), slowness == 0 ? 6 : 1);
    EXPECT_TRUE(own.take_tuned());
  }
}

TEST_F(EpilogueChoices, OperandsLieAsLibrariesWantThem) {
  cuda::fused_call call;
  EXPECT_TRUE(cuda::as_one_call(*s, product, call));
  EXPECT_EQ(call.call.also, epilogue::bias);
  product.vector.strides[1] = 2;
  EXPECT_FALSE(cuda::as_one_call(*s, product, call)) << "a bias with gaps";
  product.vector = out;
  EXPECT_FALSE(cuda::as_one_call(*s, product, call)) << "a number for each element";
  product.vector = bias;
  product.added = bias;
  EXPECT_FALSE(cuda::as_one_call(*s, product, call)) << "what is added does not lie like the result";
  const tensor more({16, 24});
  product.added = more;
  EXPECT_TRUE(cuda::as_one_call(*s, product, call));
  EXPECT_EQ(call.call.added, more.v().data);
  EXPECT_EQ(call.call.beta, 1.0f);
  product.added = {};
  std::swap(product.out.strides[0], product.out.strides[1]);
  EXPECT_FALSE(cuda::as_one_call(*s, product, call)) << "columns in a row, whose rows would get the bias";
  product.out = out;
  product.what = fused_product::bias_gelu;
  EXPECT_FALSE(cuda::as_one_call(*s, product, call)) << "GELU of f32";
  // The gradient of a bias is that of either operand, whichever way the result lies.
  for (const bool sums_b : {false, true})
    for (const bool turns : {false, true}) {
      const tensor sum({sums_b ? 24 : 16});
      product = {fused_product::bias_grad, out, a, b, sum, {}, 1, sums_b, false};
      if (turns) {
        product.out.strides[0] = 1;
        product.out.strides[1] = 16;
      }
      EXPECT_TRUE(cuda::as_one_call(*s, product, call));
      EXPECT_EQ(call.call.also, sums_b != turns ? epilogue::sum_x : epilogue::sum_y);
      EXPECT_EQ(call.call.vector, sum.v().data);
      EXPECT_EQ(call.vector_bytes(), 0);
      product.accumulate = true;
      EXPECT_TRUE(cuda::as_one_call(*s, product, call));
      EXPECT_EQ(call.call.vector, scratch.get()) << "the library would overwrite what is added to";
      EXPECT_EQ(call.vector_bytes(), 256);
    }
}

} // namespace
} // namespace windlass::rt::testing
