// The optimizer steps against doubles. A rounded weight is the new weight, rounded once.
#include "testing.h"

#include "windlass/rt/detail/half.h"

#include <limits>

namespace windlass::rt::testing {
namespace {

using detail::bf16;
using detail::f16;

/// A scalar operand.
tensor scalar_tensor(float value) {
  tensor t{sizes{}};
  t[0] = value;
  return t;
}

template <class H> constexpr element_type type_of = std::is_same_v<H, bf16> ? element_type::bf16 : element_type::f16;

constexpr double rate = 0.01, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-3, decay = 0.1, correction1 = 0.4,
                 correction2 = 0.3, scale = 0.5, momentum = 0.9;

status run_adamw(stream &s, const view &w, const view &m, const view &v, const view &rounded, const view &g,
                 float factor, decay_mode decays) {
  return adamw(s, w, m, v, rounded, g, scalar_tensor(rate), scalar_tensor(1 - beta1), scalar_tensor(1 - beta2),
               scalar_tensor(epsilon), scalar_tensor(decay), scalar_tensor(correction1), scalar_tensor(correction2),
               scalar_tensor(factor), decays);
}
status run_lamb(stream &s, const view &d, const view &w, const view &m, const view &v, const view &g, float factor,
                bool decays) {
  return lamb(s, d, w, m, v, g, scalar_tensor(1 - beta1), scalar_tensor(1 - beta2), scalar_tensor(epsilon),
              scalar_tensor(decay), scalar_tensor(correction1), scalar_tensor(correction2), scalar_tensor(factor),
              decays);
}
status run_lion(stream &s, const view &w, const view &m, const view &rounded, const view &g, float factor,
                bool decays) {
  return lion(s, w, m, rounded, g, scalar_tensor(rate), scalar_tensor(1 - beta1), scalar_tensor(1 - beta2),
              scalar_tensor(decay), scalar_tensor(factor), decays);
}
status run_sgd(stream &s, const view &w, const view &v, const view &rounded, const view &g, float factor, bool decays) {
  return sgd(s, w, v, rounded, g, scalar_tensor(rate), scalar_tensor(momentum), scalar_tensor(decay),
             scalar_tensor(factor), decays);
}

/// What a step should leave, of the values before it.
struct expected_values {
  std::vector<double> w, m, v;
};
expected_values expect_adamw(const tensor &w, const tensor &m, const tensor &v, const tensor &g, decay_mode mode) {
  expected_values e = {w.values(), m.values(), v.values()};
  for (std::size_t i = 0; i < e.w.size(); ++i) {
    const double d = double(g[std::int64_t(i)]) * scale + (mode == decay_mode::coupled ? decay * e.w[i] : 0);
    e.m[i] = beta1 * e.m[i] + (1 - beta1) * d;
    e.v[i] = beta2 * e.v[i] + (1 - beta2) * d * d;
    e.w[i] = e.w[i] * (mode == decay_mode::decoupled ? 1 - rate * decay : 1) -
             rate * (e.m[i] / correction1) / (std::sqrt(e.v[i] / correction2) + epsilon);
  }
  return e;
}

void make_positive(const tensor &v) {
  for (std::int64_t i = 0; i < v.elements(); ++i)
    v[i] = std::fabs(v[i]);
}

constexpr decay_mode decay_modes[] = {decay_mode::none, decay_mode::decoupled, decay_mode::coupled};

TEST(AdamW, Formula) {
  for (const decay_mode decays : decay_modes) {
    test_stream s(3);
    const tensor w({131, 257}), m({131, 257}), v({131, 257}), g({131, 257}, {1, 0});
    make_positive(v);
    const expected_values e = expect_adamw(w, m, v, g, decays);
    EXPECT_STATUS_OK(run_adamw(s, w, m, v, view(), g, scale, decays));
    expect_near(w, e.w, 1e-6);
    expect_near(m, e.m, 1e-6);
    expect_near(v, e.v, 1e-6);
  }
}

// 1 - 0.999 taken in f32 is wrong by 1.3e-5 of itself, and so would the first second moment be.
TEST(AdamW, FirstSecondMomentIsExact) {
  test_stream s;
  const tensor w(sizes{1}), m(sizes{1}), v(sizes{1}), g(sizes{1});
  v[0] = 0;
  g[0] = 0.75f;
  EXPECT_STATUS_OK(adamw(s, w, m, v, view(), g, scalar_tensor(0.01f), scalar_tensor(static_cast<float>(1 - 0.9)),
                         scalar_tensor(static_cast<float>(1 - 0.999)), scalar_tensor(1e-8f), scalar_tensor(0),
                         scalar_tensor(0.1f), scalar_tensor(0.001f), scalar_tensor(1), decay_mode::none));
  EXPECT_NEAR(v[0], 0.001 * 0.75 * 0.75, 1e-7 * 0.001);
}

TEST(Lion, Formula) {
  for (const bool decays : {false, true}) {
    test_stream s(3);
    const tensor w({131, 257}), m({131, 257}), g({131, 257}, {1, 0});
    m[5] = g[5] = 0;
    std::vector<double> e_w = w.values(), e_m = m.values();
    for (std::size_t i = 0; i < e_w.size(); ++i) {
      const double d = double(g[std::int64_t(i)]) * scale, direction = beta1 * e_m[i] + (1 - beta1) * d;
      e_w[i] = e_w[i] * (decays ? 1 - rate * decay : 1) - rate * ((direction > 0) - (direction < 0));
      e_m[i] = beta2 * e_m[i] + (1 - beta2) * d;
    }
    EXPECT_STATUS_OK(run_lion(s, w, m, view(), g, scale, decays));
    expect_near(w, e_w, 1e-6);
    expect_near(m, e_m, 1e-6);
  }
}

// A gradient that is no number is not hidden by the sign.
TEST(Lion, NaNReachesTheWeight) {
  test_stream s;
  const tensor w({3}), m({3}), g({3});
  g[1] = NAN;
  EXPECT_STATUS_OK(run_lion(s, w, m, view(), g, 1, true));
  EXPECT_TRUE(std::isnan(w[1]) && std::isnan(m[1]));
  EXPECT_FALSE(std::isnan(w[0]) || std::isnan(w[2]));
}

TEST(Lamb, Formula) {
  for (const bool decays : {false, true}) {
    test_stream s(3);
    const tensor w({131, 57}), m({131, 57}), v({131, 57}), g({131, 57}, {1, 0}), d({131, 57});
    make_positive(v);
    expected_values e = {w.values(), m.values(), v.values()};
    std::vector<double> e_d = e.w;
    for (std::size_t i = 0; i < e_d.size(); ++i) {
      const double scaled = double(g[std::int64_t(i)]) * scale;
      e.m[i] = beta1 * e.m[i] + (1 - beta1) * scaled;
      e.v[i] = beta2 * e.v[i] + (1 - beta2) * scaled * scaled;
      e_d[i] = (e.m[i] / correction1) / (std::sqrt(e.v[i] / correction2) + epsilon) + (decays ? decay * e_d[i] : 0);
    }
    EXPECT_STATUS_OK(run_lamb(s, d, w, m, v, g, scale, decays));
    expect_near(d, e_d, 1e-6);
    EXPECT_EQ(w.values(), e.w);
    expect_near(m, e.m, 1e-6);
    expect_near(v, e.v, 1e-6);
    // Where gradients have overflowed, nothing moves.
    const std::vector<double> kept = m.values();
    EXPECT_STATUS_OK(run_lamb(s, d, w, m, v, g, std::numeric_limits<float>::quiet_NaN(), decays));
    EXPECT_EQ(d.values(), std::vector<double>(e_d.size()));
    EXPECT_EQ(m.values(), kept);
  }
}

TEST(Momentum, Formula) {
  test_stream s(2);
  const tensor b({131, 57}), g({131, 57}, {1, 0}), d({131, 57});
  std::vector<double> e_b = b.values(), e_d = e_b;
  for (std::size_t i = 0; i < e_d.size(); ++i) {
    const double scaled = double(g[std::int64_t(i)]) * scale;
    e_b[i] += 0.25 * (scaled - e_b[i]);
    e_d[i] = scaled + 0.75 * (e_b[i] - scaled);
  }
  EXPECT_STATUS_OK(rt::momentum(s, d, b, g, scalar_tensor(0.75f), scalar_tensor(scale)));
  expect_near(b, e_b, 1e-6);
  expect_near(d, e_d, 1e-6);
  // Where gradients have overflowed, nothing moves.
  const std::vector<double> kept = b.values();
  EXPECT_STATUS_OK(rt::momentum(s, d, b, g, scalar_tensor(0.75f), scalar_tensor(NAN)));
  EXPECT_EQ(d.values(), std::vector<double>(e_d.size()));
  EXPECT_EQ(b.values(), kept);
}

TEST(Ema, MovesByTheRate) {
  test_stream s(2);
  const tensor average({37, 130}, {1, 0}), w({37, 130}, {0, 1}, 3);
  for (const float share : {1.0f, 0.25f}) {
    std::vector<double> e = average.values();
    const std::vector<double> weights = w.values();
    for (std::size_t i = 0; i < e.size(); ++i)
      e[i] += share * (weights[i] - e[i]);
    EXPECT_STATUS_OK(ema(s, average, w, scalar_tensor(share)));
    expect_near(average, e, 1e-6);
    EXPECT_EQ(w.values(), weights);
  }
}

TEST(Sgd, Formula) {
  for (const bool decays : {false, true}) {
    test_stream s;
    const tensor w({131}), v({131}), g({131});
    std::vector<double> e_w = w.values(), e_v = v.values();
    for (std::size_t i = 0; i < e_w.size(); ++i) {
      e_v[i] = momentum * e_v[i] + double(g[std::int64_t(i)]) * scale + (decays ? decay * e_w[i] : 0);
      e_w[i] -= rate * e_v[i];
    }
    EXPECT_STATUS_OK(run_sgd(s, w, v, view(), g, scale, decays));
    expect_near(w, e_w, 1e-6);
    expect_near(v, e_v, 1e-6);
  }
}

/// A copy of the values, in a layout of its own.
tensor copy_of(const tensor &t) {
  tensor made({t.elements()});
  for (std::int64_t i = 0; i < t.elements(); ++i)
    made[i] = t[i];
  return made;
}

/// The elements from `first` on.
view behind(const view &v, std::int64_t first) {
  view part = v;
  part.data += first * size_of(v.type);
  part.sizes[0] -= first;
  return part;
}

template <class H> void expect_rounding(const basic_tensor<H> &rounded, const tensor &w) {
  for (std::int64_t i = 0; i < w.elements(); ++i)
    ASSERT_EQ(rounded[i].bits, H(w[i]).bits) << "element " << i << " of " << w.elements();
}

/// A step that rounds leaves the same bits as one that does not, and the rounded weight beside; also where operands
/// begin at no multiple of 16 bytes, and where gradients have overflowed.
template <class H> void check_rounding(std::int64_t n, std::int64_t offset, float factor, decay_mode mode) {
  test_stream s(2);
  const tensor w({n}), m({n}), v({n}), g({n});
  make_positive(v);
  const tensor w2 = copy_of(w), m2 = copy_of(m), v2 = copy_of(v);
  const basic_tensor<H> rounded({n}, type_of<H>);
  for (std::int64_t i = 0; i < n; ++i)
    rounded[i] = H(i < offset ? w[i] : -77.0f);
  const auto at = [offset](const view &of) { return behind(of, offset); };
  EXPECT_STATUS_OK(run_adamw(s, at(w), at(m), at(v), view(), at(g), factor, mode));
  EXPECT_STATUS_OK(run_adamw(s, at(w2), at(m2), at(v2), at(rounded), at(g), factor, mode));
  EXPECT_EQ(w2.values(), w.values());
  EXPECT_EQ(m2.values(), m.values());
  EXPECT_EQ(v2.values(), v.values());
  expect_rounding(rounded, w2);
  for (const auto run : {run_lion, run_sgd}) {
    EXPECT_STATUS_OK(run(s, at(w), at(m), view(), at(g), factor, mode != decay_mode::none));
    EXPECT_STATUS_OK(run(s, at(w2), at(m2), at(rounded), at(g), factor, mode != decay_mode::none));
    EXPECT_EQ(w2.values(), w.values());
    EXPECT_EQ(m2.values(), m.values());
    expect_rounding(rounded, w2);
  }
}

template <class H> class RoundedWeights : public ::testing::Test {};
struct type_names {
  template <class H> static std::string GetName(int) { return std::is_same_v<H, bf16> ? "bf16" : "f16"; }
};
using half_types = ::testing::Types<bf16, f16>;
TYPED_TEST_SUITE(RoundedWeights, half_types, type_names);

TYPED_TEST(RoundedWeights, AreTheNewWeightRounded) {
  for (const decay_mode mode : decay_modes)
    for (const std::int64_t n : {1, 7, 255, 4096, 20003})
      for (const std::int64_t offset : {0, 1, 2})
        if (offset < n)
          check_rounding<TypeParam>(n, offset, scale, mode);
}

TYPED_TEST(RoundedWeights, StayWhereGradientsOverflow) {
  for (const std::int64_t n : {1, 4099})
    check_rounding<TypeParam>(n, 0, std::numeric_limits<float>::quiet_NaN(), decay_mode::decoupled);
}

TYPED_TEST(RoundedWeights, Descend) {
  test_stream s(2);
  const tensor w({37, 130}, {1, 0}), d({37, 130}, {0, 1}, 3);
  const basic_tensor<TypeParam> rounded({37, 130}, type_of<TypeParam>, {1, 0}, 5);
  std::vector<double> e = w.values();
  for (const bool rounds : {false, true}) {
    const std::vector<double> directions = d.values();
    for (std::size_t i = 0; i < e.size(); ++i)
      e[i] = 0.5 * e[i] - 0.25 * directions[i];
    EXPECT_STATUS_OK(descend(s, w, rounds ? view(rounded) : view(), d, scalar_tensor(0.25f), scalar_tensor(0.5f)));
    expect_near(w, e, 1e-6);
  }
  expect_rounding(rounded, w);
}

TYPED_TEST(RoundedWeights, AnyStrides) {
  test_stream s(2);
  const tensor w({37, 130}), m({37, 130}), v({37, 130}), g({37, 130}, {1, 0}, 3);
  make_positive(v);
  const basic_tensor<TypeParam> rounded({37, 130}, type_of<TypeParam>, {1, 0}, 5);
  const expected_values e = expect_adamw(w, m, v, g, decay_mode::decoupled);
  EXPECT_STATUS_OK(run_adamw(s, w, m, v, rounded, g, scale, decay_mode::decoupled));
  expect_near(w, e.w, 1e-6);
  expect_near(m, e.m, 1e-6);
  expect_near(v, e.v, 1e-6);
  expect_rounding(rounded, w);
}

/// A parameter with its state and gradient, twice.
template <class H> struct parameter {
  tensor w, m, v, g, w2, m2, v2;
  basic_tensor<H> rounded;
  explicit parameter(std::int64_t n)
      : w({n}), m({n}), v({n}), g({n}), w2(copy_of(w)), m2(copy_of(m)), v2(copy_of(v)), rounded({n}, type_of<H>) {
    make_positive(v);
    make_positive(v2);
  }
};

/// One command for several parameters leaves the bits that one for each leaves.
template <class H> void check_list(std::int64_t offset, bool rounds, float factor, decay_mode mode) {
  test_stream s(2);
  std::vector<parameter<H>> all;
  for (const std::int64_t n : {1, 7, 4096, 20003, 4097, 12})
    all.emplace_back(n + offset);
  updated_parameters list;
  list.rounded = rounds ? type_of<H> : element_type::f32;
  for (const parameter<H> &p : all) {
    const auto at = [offset](const view &of) { return behind(of, offset); };
    list.of[list.count++] = {p.w.elements() - offset,
                             at(p.w2).template as<float>(),
                             at(p.m2).template as<float>(),
                             at(p.v2).template as<float>(),
                             at(p.g).data,
                             rounds ? at(p.rounded).data : nullptr};
    for (std::int64_t i = 0; i < p.w.elements(); ++i)
      p.rounded[i] = H(i < offset || !rounds ? p.w[i] : -77.0f);
    EXPECT_STATUS_OK(run_adamw(s, at(p.w), at(p.m), at(p.v), view(), at(p.g), factor, mode));
  }
  EXPECT_STATUS_OK(adamw_list(s, list, scalar_tensor(rate), scalar_tensor(1 - beta1), scalar_tensor(1 - beta2),
                              scalar_tensor(epsilon), scalar_tensor(decay), scalar_tensor(correction1),
                              scalar_tensor(correction2), scalar_tensor(factor), mode));
  for (const parameter<H> &p : all) {
    EXPECT_EQ(p.w2.values(), p.w.values());
    EXPECT_EQ(p.m2.values(), p.m.values());
    EXPECT_EQ(p.v2.values(), p.v.values());
    if (rounds)
      expect_rounding(p.rounded, p.w);
  }
}

TYPED_TEST(RoundedWeights, OfSeveralParametersInOneCommand) {
  for (const std::int64_t offset : {0, 1, 2})
    for (const bool rounds : {false, true})
      for (const decay_mode mode : decay_modes)
        check_list<TypeParam>(offset, rounds, scale, mode);
  for (const bool rounds : {false, true})
    check_list<TypeParam>(0, rounds, std::numeric_limits<float>::quiet_NaN(), decay_mode::decoupled);
}

/// The view with half as many elements, every second one.
view every_second(view v) {
  v.sizes[0] /= 2;
  v.strides[0] *= 2;
  return v;
}

/// A gradient in bf16 gives the bits that its numbers give in f32, alone and in a list, whether operands are dense or
/// not.
TEST(AdamW, ReadsGradientsInBf16) {
  for (const std::int64_t n : {8, 4099})
    for (const std::int64_t offset : {0, 1})
      for (const bool rounds : {false, true})
        for (const bool is_dense : {true, false}) {
          test_stream s(2);
          const tensor w({n}), m({n}), v({n}), g({n});
          make_positive(v);
          const tensor w2 = copy_of(w), m2 = copy_of(m), v2 = copy_of(v), w3 = copy_of(w), m3 = copy_of(m),
                       v3 = copy_of(v);
          const basic_tensor<bf16> narrow({n}, element_type::bf16), r({n}, element_type::bf16),
              r2({n}, element_type::bf16);
          for (std::int64_t i = 0; i < n; ++i) {
            narrow[i] = bf16(g[i]);
            g[i] = static_cast<float>(narrow[i]);
            r[i] = r2[i] = bf16(0.0f);
          }
          const auto at = [&](const view &of) {
            return is_dense ? behind(of, offset) : every_second(behind(of, offset));
          };
          const auto to = [&](const basic_tensor<bf16> &of) { return rounds ? at(of) : view(); };
          EXPECT_STATUS_OK(run_adamw(s, at(w), at(m), at(v), to(r), at(g), scale, decay_mode::decoupled));
          EXPECT_STATUS_OK(run_adamw(s, at(w2), at(m2), at(v2), to(r2), at(narrow), scale, decay_mode::decoupled));
          EXPECT_EQ(w2.values(), w.values());
          EXPECT_EQ(m2.values(), m.values());
          EXPECT_EQ(v2.values(), v.values());
          for (std::int64_t i = 0; i < n; ++i)
            ASSERT_EQ(r2[i].bits, r[i].bits);
          if (!is_dense)
            continue;
          updated_parameters list;
          list.gradients = element_type::bf16;
          list.rounded = rounds ? element_type::bf16 : element_type::f32;
          list.count = 1;
          list.of[0] = {n - offset,         at(w3).as<float>(), at(m3).as<float>(),
                        at(v3).as<float>(), at(narrow).data,    to(r2).data};
          EXPECT_STATUS_OK(adamw_list(s, list, scalar_tensor(rate), scalar_tensor(1 - beta1), scalar_tensor(1 - beta2),
                                      scalar_tensor(epsilon), scalar_tensor(decay), scalar_tensor(correction1),
                                      scalar_tensor(correction2), scalar_tensor(scale), decay_mode::decoupled));
          EXPECT_EQ(w3.values(), w.values());
          EXPECT_EQ(m3.values(), m.values());
          EXPECT_EQ(v3.values(), v.values());
        }
}

TEST(Updates, RefuseOperandsThatDoNotFit) {
  test_stream s;
  const tensor w({4}), m({4}), v({4}), g({4}), longer({5});
  const basic_tensor<bf16> half({4}, element_type::bf16), longer_half({5}, element_type::bf16);
  EXPECT_EQ(run_adamw(s, w, m, v, view(), longer, scale, decay_mode::none).code(), status_code::internal);
  EXPECT_EQ(run_adamw(s, w, m, v, longer_half, g, scale, decay_mode::none).code(), status_code::internal);
  EXPECT_EQ(run_adamw(s, w, m, v, m, g, scale, decay_mode::none).code(), status_code::internal) << "not of 16 bits";
  EXPECT_EQ(run_lion(s, w, longer, view(), g, scale, false).code(), status_code::internal);
  EXPECT_EQ(run_sgd(s, half, m, view(), g, scale, false).code(), status_code::internal) << "not f32";
}

// Gradients of a scaled loss that overflowed.
TEST(Updates, AFactorThatIsNoNumberChangesNothing) {
  for (const decay_mode mode : decay_modes) {
    test_stream s;
    const tensor w({131}), m({131}), v({131}), g({131});
    g[7] = INFINITY;
    const std::vector<double> w_before = w.values(), m_before = m.values(), v_before = v.values();
    EXPECT_STATUS_OK(run_adamw(s, w, m, v, view(), g, NAN, mode));
    for (const auto run : {run_lion, run_sgd})
      EXPECT_STATUS_OK(run(s, w, v, view(), g, NAN, mode != decay_mode::none));
    EXPECT_EQ(w.values(), w_before);
    EXPECT_EQ(m.values(), m_before);
    EXPECT_EQ(v.values(), v_before);
  }
}

} // namespace
} // namespace windlass::rt::testing
