// Which algorithm a product is computed by, with a library in which it makes a difference.
#include "testing.h"

#include "products.h"

namespace windlass::rt::testing {
namespace {

using cuda::column_gemm;

/// Guesses 7, which takes long, then 8, which it can not have again, 9, which fails, 5 and 6, of which 5 takes longer.
/// "Computes" by writing its number to the result, after some writing elsewhere.
class slow_gemm final : public cuda::prepared_gemm {
public:
  explicit slow_gemm(const tensor &elsewhere) : elsewhere_(elsewhere) {}
  status guess(std::size_t most, std::vector<product_algorithm> &out) override {
    for (const std::int32_t id : {7, 8, 9, 5, 6})
      if (out.size() < most)
        out.push_back({{id, 1, 2, 3, 4, 5, 6, 7, 8}});
    return {};
  }
  bool use(const product_algorithm &algorithm) override {
    if (algorithm.numbers[0] == 8 || algorithm.numbers[8] != 8)
      return false;
    used_ = algorithm.numbers[0];
    return true;
  }
  void use_first() override { used_ = 7; }
  status run(stream &s, const column_gemm &call, std::byte *, std::int64_t) override {
    if (used_ == 9)
      return internal_error("seemed to be possible");
    for (int i = 0; i < (used_ == 6 ? 1 : used_ == 5 ? 20 : 40); ++i)
      WINDLASS_TRY(fill(s, elsewhere_, 1));
    return fill(s, dense_view(call.d.data, call.d.type, {1}), static_cast<float>(used_));
  }

private:
  const tensor &elsewhere_;
  std::int32_t used_ = 7;
};

class slow_library final : public cuda::gemm_library {
public:
  slow_library() : elsewhere_({1 << 18}) {}
  std::string version() const override { return "slow 1"; }
  status prepare(const column_gemm &, int, std::int64_t, std::unique_ptr<cuda::prepared_gemm> &out) override {
    out = std::make_unique<slow_gemm>(elsewhere_);
    return {};
  }

private:
  tensor elsewhere_;
};

struct Products : ::testing::Test {
  std::unique_ptr<stream> s = make_worker_stream(1, nullptr, 0);
  tensor result{{64}};
  column_gemm call = {{result.v().data, element_type::bf16, true, 4, 3, 4, 12},
                      {result.v().data, element_type::bf16, false, 4, 5, 4, 20},
                      {result.v().data, element_type::f32, false, 3, 5, 3, 15},
                      3,
                      5,
                      4,
                      2,
                      1.0f,
                      false};
  std::string name = "bf16 TN f32 3x5x4 leading 4,4,3 batch 2 apart 12,20,15 adds aligned 64";

  float computed_by(cuda::products &of) {
    EXPECT_STATUS_OK(of.run(*s, call, nullptr, 0));
    EXPECT_STATUS_OK(s->synchronize());
    return result[0];
  }
};

TEST_F(Products, AreComputedAsTheLibraryGuesses) {
  cuda::products own(std::make_unique<slow_library>());
  EXPECT_EQ(computed_by(own), 7);
  EXPECT_TRUE(own.tuned().empty());
}

TEST_F(Products, TheFastestIsFoundAtTheFirstOfAShape) {
  cuda::products own(std::make_unique<slow_library>());
  own.tune();
  EXPECT_EQ(computed_by(own), 6);
  EXPECT_EQ(computed_by(own), 6);
  ASSERT_EQ(own.tuned().size(), 1u);
  const detail::tuned_product &found = own.tuned().front();
  EXPECT_EQ(found.product, name);
  EXPECT_EQ(found.algorithm.numbers[0], 6);
  EXPECT_EQ(found.algorithm.numbers[8], 8);
  EXPECT_LT(found.seconds, found.first_seconds);
  call.beta = 0;
  EXPECT_EQ(computed_by(own), 6);
  EXPECT_EQ(own.tuned().size(), 2u);
  EXPECT_EQ(own.shapes(), 2u);
}

TEST_F(Products, ChoicesAreTakenWhereTheLibraryKnowsThem) {
  cuda::products own(std::make_unique<slow_library>());
  const product_choice choices[] = {{"another", {{6, 1, 2, 3, 4, 5, 6, 7, 8}}},
                                    {name.c_str(), {{5, 1, 2, 3, 4, 5, 6, 7, 8}}}};
  own.choose({choices, 2});
  EXPECT_EQ(computed_by(own), 5);
  EXPECT_EQ(own.chosen(), 1u);
  call.rounds_to_tf32 = true; // another shape, of which nothing is chosen
  EXPECT_EQ(computed_by(own), 7);
  EXPECT_EQ(own.chosen(), 1u);
  EXPECT_EQ(own.shapes(), 2u);
  cuda::products other(std::make_unique<slow_library>());
  const product_choice unknown = {name.c_str(), {{6, 1, 2, 3, 4, 5, 6, 7, 9}}};
  other.choose({&unknown, 1});
  EXPECT_EQ(computed_by(other), 7);
  EXPECT_EQ(other.chosen(), 0u);
}

} // namespace
} // namespace windlass::rt::testing
