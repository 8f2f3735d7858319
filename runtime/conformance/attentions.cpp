// Who computes an attention: the library where it was chosen or measured to be faster, else the own kernels. With a
// library of the test's own; half_types.cpp compares the device's library with the own kernels.
#include "testing.h"

#include "attentions.h"

namespace windlass::rt::testing {
namespace {

using cuda::attention_memory;

/// "Computes" by writing 6 to the workspace and to the result, after some writing elsewhere.
class fake_attention final : public cuda::prepared_attention {
public:
  fake_attention(stream &s, const tensor &elsewhere, int slowness, bool fails)
      : stream_(s), elsewhere_(elsewhere), slowness_(slowness), fails_(fails) {}
  std::int64_t workspace_bytes() const override { return 400; }
  status run(const attention_memory &memory, std::byte *workspace) override {
    if (fails_)
      return internal_error("seemed to be possible");
    for (int i = 0; i < slowness_; ++i)
      WINDLASS_TRY(fill(stream_, elsewhere_, 1));
    WINDLASS_TRY(fill(stream_, dense_view(workspace, element_type::f32, {100}), 6));
    return fill(stream_, dense_view(memory.operands[attention_shape::out], element_type::f32, {1}), 6);
  }

private:
  stream &stream_;
  const tensor &elsewhere_;
  int slowness_;
  bool fails_;
};

class fake_library final : public cuda::attention_library {
public:
  fake_library(stream &s, int slowness, bool fails) : stream_(s), slowness_(slowness), fails_(fails) {}
  std::string version() const override { return "fake 1"; }
  status prepare(const attention_shape &shape, std::unique_ptr<cuda::prepared_attention> &out) override {
    if (shape.batch == 13)
      return bad_input("13 is too many");
    out = std::make_unique<fake_attention>(stream_, elsewhere_, slowness_, fails_);
    return {};
  }

private:
  stream &stream_;
  int slowness_;
  bool fails_;
  tensor elsewhere_{{1 << 18}};
};

struct Attentions : ::testing::Test {
  test_memory scratch = allocate_zeros(1 << 12);
  std::unique_ptr<stream> s = make_worker_stream(1, scratch.get(), 1 << 12);
  tensor result{{64}}, elsewhere{{1 << 18}};
  attention_shape shape = {element_type::bf16, false, true, 0.5, 2, 4, 4, 64, 64, 8, 8, {}};
  std::string device = detail::device_name();
  attention_choice choice = {shape, 400};

  std::string choose(cuda::attentions &of, std::vector<attention_choice> choices) {
    return of.choose(*s, {choices.data(), static_cast<std::int64_t>(choices.size())}, elsewhere.v().data,
                     elsewhere.v().elements() * 4);
  }

  cuda::attentions::opener fake(int slowness, bool fails = false) {
    return [=](std::unique_ptr<cuda::attention_library> &out) -> status {
      out = std::make_unique<fake_library>(*s, slowness, fails);
      return {};
    };
  }
  /// The own kernels write 1 and take as long as 20 writings elsewhere.
  float computed_by(cuda::attentions &of, std::int64_t offset = 0) {
    attention_memory memory = {};
    memory.operands[attention_shape::out] = result.v().data + offset;
    const auto own = [&]() -> status {
      for (int i = 0; i < 20; ++i)
        WINDLASS_TRY(fill(*s, elsewhere, 1));
      return fill(*s, dense_view(memory.operands[attention_shape::out], element_type::f32, {1}), 1);
    };
    EXPECT_STATUS_OK(of.run(*s, shape, memory, own));
    EXPECT_STATUS_OK(s->synchronize());
    return result[offset / 4];
  }
};

TEST_F(Attentions, AreComputedByTheOwnKernels) {
  cuda::attentions own([](std::unique_ptr<cuda::attention_library> &) -> status {
    ADD_FAILURE() << "nobody asks for a library";
    return {};
  });
  EXPECT_EQ(computed_by(own), 1);
  EXPECT_FALSE(own.take_tuned());
}

TEST_F(Attentions, ChoicesAreTakenWhereTheirWorkspaceIsPlanned) {
  cuda::attentions own(fake(0));
  EXPECT_EQ(choose(own, {choice}), "attention: 1 of 1 shapes by fake 1 on " + device);
  EXPECT_EQ(elsewhere[0], 6) << "each is tried once";
  EXPECT_EQ(computed_by(own), 6);
  EXPECT_EQ(*reinterpret_cast<float *>(scratch.get()), 6);
  EXPECT_EQ(computed_by(own, 4), 1) << "libraries load 16 bytes at once";
  shape.scale = 0.25;
  EXPECT_EQ(computed_by(own), 1) << "another shape";
  EXPECT_FALSE(own.take_tuned());

  choice.workspace_bytes = 399;
  cuda::attentions without(fake(0));
  EXPECT_EQ(choose(without, {choice}),
            "attention: 0 of 1 shapes by fake 1 on " + device +
                "; own kernels for bf16 2x4x64x8 causal, as it needs 400 bytes of workspace, "
                "399 are planned");
  shape.scale = 0.5;
  EXPECT_EQ(computed_by(without), 1);
}

TEST_F(Attentions, WhatTheLibraryRefusesStaysWithTheOwnKernels) {
  attention_choice large = choice;
  large.shape.batch = 13;
  large.shape.is_gradient = true;
  large.shape.kv_heads = 2;
  cuda::attentions own(fake(0));
  EXPECT_EQ(choose(own, {large, choice}),
            "attention: 1 of 2 shapes by fake 1 on " + device +
                "; own kernels for bf16 gradient 13x4x64x8 on 2x64x8 causal, as 13 is too many");
  EXPECT_EQ(computed_by(own), 6);

  cuda::attentions failing(fake(0, /*fails=*/true));
  EXPECT_EQ(choose(failing, {choice}), "attention: 0 of 1 shapes by fake 1 on " + device +
                                           "; own kernels for bf16 2x4x64x8 causal, as seemed to be possible");
  EXPECT_EQ(computed_by(failing), 1);

  cuda::attentions none([](std::unique_ptr<cuda::attention_library> &) { return bad_input("there is none"); });
  EXPECT_EQ(choose(none, {choice}), "attention: own kernels, as there is none");
  EXPECT_EQ(none.tune(), "attention: own kernels only, as there is none");
  EXPECT_EQ(computed_by(none), 1);
}

TEST_F(Attentions, TheFasterIsFoundAtTheFirstOfAShape) {
  for (const int slowness : {0, 60}) {
    cuda::attentions own(fake(slowness));
    EXPECT_EQ(own.tune(), "attention: fake 1 is measured beside the own kernels");
    EXPECT_EQ(computed_by(own), slowness == 0 ? 6 : 1);
    std::optional<detail::tuned_attention> found = own.take_tuned();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->workspace_bytes, 400);
    EXPECT_EQ(found->seconds < found->own_seconds, slowness == 0);
    EXPECT_FALSE(own.take_tuned());
    EXPECT_EQ(computed_by(own), slowness == 0 ? 6 : 1);
    EXPECT_TRUE(own.take_tuned());
  }
  cuda::attentions failing(fake(0, /*fails=*/true));
  failing.tune();
  EXPECT_EQ(computed_by(failing), 1);
  EXPECT_FALSE(failing.take_tuned());
}

view laid_out(element_type type, std::initializer_list<std::int64_t> shape) { return dense_view(nullptr, type, shape); }

TEST(AttentionShapes, AreThoseThatLibrariesTake) {
  const attention_views good = {laid_out(element_type::f16, {2, 4, 64, 16}),
                                laid_out(element_type::f16, {2, 2, 96, 16}),
                                laid_out(element_type::f16, {2, 2, 96, 8}),
                                {},
                                laid_out(element_type::f16, {2, 4, 64, 8}),
                                laid_out(element_type::f32, {2, 4, 64}),
                                {},
                                {},
                                {},
                                {}};
  attention_shape found, other;
  ASSERT_TRUE(describe_attention(good, 0.5, true, found));
  EXPECT_EQ(found.strides[attention_shape::k][1], 96 * 16);
  EXPECT_EQ(found.strides[attention_shape::dq][0], 0);
  EXPECT_EQ(name_of(found), "f16 2x4x64x16 on 2x96x8 causal");
  ASSERT_TRUE(describe_attention(good, 0.5, false, other));
  EXPECT_FALSE(found == other);
  const auto refuses = [&](auto change) {
    attention_views views = good;
    change(views);
    return !describe_attention(views, 0.5, true, other);
  };
  EXPECT_TRUE(refuses([](attention_views &x) { x.q.type = x.k.type = x.v.type = x.out.type = element_type::f32; }));
  EXPECT_TRUE(refuses([](attention_views &x) { x.v.type = element_type::bf16; }));
  EXPECT_TRUE(refuses([](attention_views &x) { x.mask = x.q; }));
  EXPECT_TRUE(refuses([](attention_views &x) { x.q.sizes[3] = x.k.sizes[3] = 12; }));
  EXPECT_TRUE(refuses([](attention_views &x) { x.q.strides[3] = 2; }));
  EXPECT_TRUE(refuses([](attention_views &x) { x.k.strides[2] = 20; }));
  EXPECT_TRUE(refuses([](attention_views &x) { x.k.strides[0] = 0; }));
  EXPECT_TRUE(refuses([](attention_views &x) { x.lse.strides[1] = 65; }));
  EXPECT_TRUE(refuses([](attention_views &x) { x.k.sizes[2] = x.v.sizes[2] = 63; })) << "a query that sees no key";
  EXPECT_TRUE(refuses([](attention_views &x) { x.dout = x.q; })) << "a gradient without its results";
}

// The first shape is the attention of GPT-2 124M at 16 x 1024. For its gradient cuDNN 9.19 asked for 403439872 bytes: 2
// for each query with each key, and 4 for each query, of each head.
TEST(AttentionShapes, WorkspaceIsWhatTheLibraryNeedsAtMost) {
  attention_shape shape = {element_type::bf16, true, true, 0.125, 16, 12, 12, 1024, 1024, 64, 64, {}};
  constexpr std::int64_t mebibyte = 1 << 20, sums = 16 * 12 * 1024 * 4;
  EXPECT_EQ(library_workspace_bytes(shape), mebibyte + std::int64_t(16) * 12 * 1024 * 1024 * 2 + sums);
  shape.kv_heads = 4; // gradients of keys and values of each head
  EXPECT_EQ(library_workspace_bytes(shape),
            mebibyte + std::int64_t(16) * 12 * 1024 * 1024 * 2 + std::int64_t(16) * 12 * 1024 * 128 * 4 + sums);
  shape.kv_heads = 12;
  shape.queries = shape.keys = 65; // whole tiles, but less than the gradient of queries
  EXPECT_EQ(library_workspace_bytes(shape), mebibyte + 16 * 12 * (128 * 128 * 2 + 65 * 4));
  shape.is_gradient = false;
  EXPECT_EQ(library_workspace_bytes(shape), mebibyte);
}

} // namespace
} // namespace windlass::rt::testing
