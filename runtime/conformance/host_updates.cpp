// The optimizer steps on the host's threads, bit by bit: whatever the vectors, the threads and where operands lie, an
// element becomes what the step's formula makes of it in f32, and a rounded weight the new weight rounded once.
//
// This file is compiled without fused multiply-adds, as the steps are.
#include "testing.h"

#include "windlass/rt/detail/half.h"
#include "windlass/rt/detail/updates.h"

#include <array>
#include <limits>

namespace windlass::rt::testing {
namespace {

using detail::adamw_step;
using detail::bf16;
using detail::bits_from_float;
using detail::f16;
using detail::float_from_bits;
using detail::lion_step;
using detail::sgd_step;

/// The hyperparameters of all steps.
struct hyperparameters {
  float learning_rate = 0.01f, one_minus_beta1 = 0.1f, one_minus_beta2 = 0.01f, epsilon = 1e-3f, weight_decay = 0.1f,
        bias_correction1 = 0.4f, bias_correction2 = 0.3f, gradient_scale = 0.5f, momentum = 0.9f;
  decay_mode decay = decay_mode::decoupled;
  bool decays() const { return decay != decay_mode::none; }

  static view of(const float &value) {
    return dense_view(reinterpret_cast<std::byte *>(const_cast<float *>(&value)), element_type::f32, {});
  }
  detail::adamw_scalars adamw() const {
    return {of(learning_rate),    of(one_minus_beta1),  of(one_minus_beta2), of(epsilon), of(weight_decay),
            of(bias_correction1), of(bias_correction2), of(gradient_scale),  decay};
  }
  detail::lion_scalars lion() const {
    return {&learning_rate, &one_minus_beta1, &one_minus_beta2, &weight_decay, &gradient_scale, decays()};
  }
  detail::sgd_scalars sgd() const { return {&learning_rate, &momentum, &weight_decay, &gradient_scale, decays()}; }
};

/// A parameter of which each operand begins at a place of its own within a line of the cache.
class parameter {
public:
  parameter(std::int64_t n, const std::array<std::int64_t, 5> &offsets, element_type rounded)
      : n(n), offsets_(offsets), rounded_(rounded), memory_(allocate_zeros(4 * bytes_of_one(4) + bytes_of_one(2))) {
    std::mt19937 engine(static_cast<unsigned>(n));
    std::normal_distribution<float> normal;
    for (float *const each : {w(), m(), v(), g()})
      for (std::int64_t i = 0; i < n; ++i)
        each[i] = each == v() ? std::fabs(normal(engine)) : normal(engine);
  }

  const std::int64_t n;
  float *w() const { return floats(0); }
  float *m() const { return floats(1); }
  float *v() const { return floats(2); }
  float *g() const { return floats(3); }
  /// Null where the weight is not rounded.
  std::byte *rounded() const {
    return rounded_ == element_type::f32 ? nullptr : memory_.get() + 4 * bytes_of_one(4) + 2 * offsets_[4];
  }
  view of(const float *data) const {
    return dense_view(reinterpret_cast<std::byte *>(const_cast<float *>(data)), element_type::f32, {n});
  }
  view rounded_view() const { return rounded() == nullptr ? view() : dense_view(rounded(), rounded_, {n}); }

private:
  // The gap tells a write behind the end from one in front of the next operand, which stays as it was.
  std::int64_t bytes_of_one(std::int64_t element) const { return (n + 64) * element / 64 * 64 + 128; }
  float *floats(int k) const {
    return reinterpret_cast<float *>(memory_.get() + k * bytes_of_one(4)) + offsets_[static_cast<std::size_t>(k)];
  }
  std::array<std::int64_t, 5> offsets_;
  element_type rounded_;
  test_memory memory_;
};

status run_adamw(stream &s, const parameter &p, const hyperparameters &h) {
  const auto of = hyperparameters::of;
  return adamw(s, p.of(p.w()), p.of(p.m()), p.of(p.v()), p.rounded_view(), p.of(p.g()), of(h.learning_rate),
               of(h.one_minus_beta1), of(h.one_minus_beta2), of(h.epsilon), of(h.weight_decay), of(h.bias_correction1),
               of(h.bias_correction2), of(h.gradient_scale), h.decay);
}
status run_lion(stream &s, const parameter &p, const hyperparameters &h) {
  const auto of = hyperparameters::of;
  return lion(s, p.of(p.w()), p.of(p.m()), p.rounded_view(), p.of(p.g()), of(h.learning_rate), of(h.one_minus_beta1),
              of(h.one_minus_beta2), of(h.weight_decay), of(h.gradient_scale), h.decays());
}
status run_sgd(stream &s, const parameter &p, const hyperparameters &h) {
  const auto of = hyperparameters::of;
  return sgd(s, p.of(p.w()), p.of(p.m()), p.rounded_view(), p.of(p.g()), of(h.learning_rate), of(h.momentum),
             of(h.weight_decay), of(h.gradient_scale), h.decays());
}

/// Weight and state, as they were or as they should become.
struct values {
  std::vector<float> w, m, v;
  explicit values(const parameter &p) : w(p.w(), p.w() + p.n), m(p.m(), p.m() + p.n), v(p.v(), p.v() + p.n) {}
};

/// Makes one step element by element, on this thread, which flushes denormals as the team does.
values expect_adamw(const parameter &p, const hyperparameters &h) {
  values e(p);
  const adamw_step step(h.adamw());
  for (std::size_t i = 0; i < e.w.size(); ++i)
    step.apply(e.w[i], e.m[i], e.v[i], e.w[i], e.m[i], e.v[i], p.g()[i]);
  return e;
}
template <class Step> values expect_average(const parameter &p, const Step &step) {
  values e(p);
  for (std::size_t i = 0; i < e.w.size(); ++i)
    step.apply(e.w[i], e.m[i], e.w[i], e.m[i], p.g()[i]);
  return e;
}

/// Expects the same bits, of a NaN only that it is one: which operand's NaN a sum takes is the compiler's choice.
void expect_bits(const char *what, const float *actual, const std::vector<float> &expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (bits_from_float(actual[i]) != bits_from_float(expected[i]) &&
        !(std::isnan(actual[i]) && std::isnan(expected[i])))
      FAIL() << what << " " << i << " of " << expected.size() << " is " << actual[i] << ", expected " << expected[i];
}
template <class H> void expect_rounded(const parameter &p) {
  const H *const rounded = reinterpret_cast<const H *>(p.rounded());
  for (std::int64_t i = 0; i < p.n; ++i)
    if (rounded[i].bits != H(p.w()[i]).bits)
      FAIL() << "rounded weight " << i << " of " << p.n << ": " << p.w()[i] << " became " << rounded[i].bits
             << ", expected " << H(p.w()[i]).bits;
}
void expect_values(const parameter &p, const values &e, element_type rounded) {
  expect_bits("weight", p.w(), e.w);
  expect_bits("first state", p.m(), e.m);
  expect_bits("second state", p.v(), e.v);
  if (rounded == element_type::bf16)
    expect_rounded<bf16>(p);
  else if (rounded == element_type::f16)
    expect_rounded<f16>(p);
}

constexpr element_type all_types[] = {element_type::f32, element_type::bf16, element_type::f16};
const std::array<std::int64_t, 5> all_offsets[] = {{0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}, {4, 4, 4, 4, 8},
                                                   {1, 2, 3, 5, 7}, {9, 0, 6, 3, 2}, {0, 0, 0, 0, 1}};

/// Runs all steps on `p` and expects their bits.
void check_steps(stream &s, const parameter &p, const hyperparameters &h, element_type rounded) {
  const values adamw_result = expect_adamw(p, h);
  EXPECT_STATUS_OK(run_adamw(s, p, h));
  expect_values(p, adamw_result, rounded);
  const values lion_result = expect_average(p, lion_step(h.lion()));
  EXPECT_STATUS_OK(run_lion(s, p, h));
  expect_values(p, lion_result, rounded);
  const values sgd_result = expect_average(p, sgd_step(h.sgd()));
  EXPECT_STATUS_OK(run_sgd(s, p, h));
  expect_values(p, sgd_result, rounded);
}

TEST(HostUpdates, AnySizeAndPlace) {
  test_stream s(2);
  for (const element_type rounded : all_types)
    for (const std::int64_t n : {0, 1, 7, 31, 32, 33, 63, 64, 65, 100, 255, 1000, 17003})
      for (const auto &offsets : all_offsets)
        for (const decay_mode mode : {decay_mode::none, decay_mode::decoupled, decay_mode::coupled}) {
          hyperparameters h;
          h.decay = mode;
          check_steps(s, parameter(n, offsets, rounded), h, rounded);
        }
}

// More bytes than caches hold, which rounded weights pass by.
TEST(HostUpdates, BeyondTheCaches) {
  for (const std::int32_t threads : {1, 3}) {
    test_stream s(threads);
    for (const element_type rounded : {element_type::bf16, element_type::f16})
      check_steps(s, parameter((7 << 18) + 13, all_offsets[threads], rounded), hyperparameters(), rounded);
  }
}

TEST(HostUpdates, SpecialValues) {
  const float special[] = {0.0f,     -0.0f,    1e-40f,  -1e-40f, 1.2e-38f,
                           1e-20f,   3e38f,    -3e38f,  1.0f,    std::numeric_limits<float>::infinity(),
                           -2.0f,    65520.0f, 6.1e-5f, 6e-8f,   -std::numeric_limits<float>::infinity(),
                           65519.0f, NAN};
  constexpr std::int64_t count = std::size(special);
  for (const element_type rounded : all_types) {
    test_stream s(2);
    const parameter p(count * count * count * count, all_offsets[0], rounded);
    for (std::int64_t i = 0; i < p.n; ++i) {
      std::int64_t rest = i;
      for (float *const each : {p.w(), p.m(), p.v(), p.g()}) {
        each[i] = special[rest % count];
        rest /= count;
      }
    }
    check_steps(s, p, hyperparameters(), rounded);
  }
}

/// The numbers half-way between neighbours of 16 bits, with those beside them.
template <class H> std::vector<float> halfway_numbers() {
  std::vector<float> all;
  for (std::uint32_t bits = 0; bits < 0xffff; ++bits) {
    H low, high;
    low.bits = static_cast<std::uint16_t>(bits);
    high.bits = static_cast<std::uint16_t>(bits + 1);
    const auto middle = static_cast<float>(
        0.5 * (static_cast<double>(static_cast<float>(low)) + static_cast<double>(static_cast<float>(high))));
    for (const std::uint32_t step : {~0u, 0u, 1u})
      all.push_back(float_from_bits(bits_from_float(middle) + step));
    all.push_back(static_cast<float>(low));
  }
  return all;
}

template <class H> void check_every_rounding(element_type type) {
  const std::vector<float> numbers = halfway_numbers<H>();
  test_stream s(2);
  const parameter p(static_cast<std::int64_t>(numbers.size()), all_offsets[0], type);
  std::copy(numbers.begin(), numbers.end(), p.w());
  std::fill_n(p.g(), p.n, 0.0f);
  hyperparameters h;
  h.learning_rate = 0; // the weight stays
  EXPECT_STATUS_OK(run_sgd(s, p, h));
  expect_rounded<H>(p);
  for (std::int64_t i = 0; i < p.n; ++i) {
    const float number = numbers[static_cast<std::size_t>(i)];
    if (std::isfinite(number) && std::fabs(number) >= std::numeric_limits<float>::min() && p.w()[i] != number)
      FAIL() << number << " became " << p.w()[i] << " before it was rounded";
  }
}
TEST(HostUpdates, RoundEveryNumberToNearestEven) {
  check_every_rounding<bf16>(element_type::bf16);
  check_every_rounding<f16>(element_type::f16);
}

/// The parameters as one command, which may stand for none.
updated_parameters list_of(const std::vector<parameter> &all, element_type rounded) {
  updated_parameters list;
  list.rounded = rounded;
  for (const parameter &p : all)
    list.of[list.count++] = {p.n, p.w(), p.m(), p.v(), reinterpret_cast<const std::byte *>(p.g()), p.rounded()};
  return list;
}
status run_list(stream &s, const std::vector<parameter> &all, element_type rounded, const hyperparameters &h) {
  const auto of = hyperparameters::of;
  return adamw_list(s, list_of(all, rounded), of(h.learning_rate), of(h.one_minus_beta1), of(h.one_minus_beta2),
                    of(h.epsilon), of(h.weight_decay), of(h.bias_correction1), of(h.bias_correction2),
                    of(h.gradient_scale), h.decay);
}

// Threads divide all elements, so parts begin and end within parameters, and hold several or none.
TEST(HostUpdates, ManyParametersInOneCommand) {
  for (const std::int32_t threads : {1, 2, 3, 7}) {
    test_stream s(threads);
    for (const element_type rounded : all_types) {
      std::vector<parameter> all;
      for (std::int32_t i = 0; i < updated_parameters::most; ++i)
        all.emplace_back(i % 5 == 4 ? 0 : i % 7 * 1023 + i, all_offsets[i % 6], rounded);
      std::vector<values> expected;
      for (const parameter &p : all)
        expected.push_back(expect_adamw(p, hyperparameters()));
      EXPECT_STATUS_OK(run_list(s, all, rounded, hyperparameters()));
      for (std::size_t i = 0; i < all.size(); ++i)
        expect_values(all[i], expected[i], rounded);
      EXPECT_STATUS_OK(run_list(s, {}, rounded, hyperparameters()));
    }
  }
}

// Gradients of a scaled loss that overflowed.
TEST(HostUpdates, OverflowedGradientsOnlyRound) {
  hyperparameters h;
  h.gradient_scale = NAN;
  for (const element_type rounded : all_types) {
    test_stream s(2);
    std::vector<parameter> all;
    for (const std::int64_t n : {0, 33, 20003})
      all.emplace_back(n, all_offsets[3], rounded);
    const parameter one(20003, all_offsets[3], rounded);
    const values before(one);
    EXPECT_STATUS_OK(run_adamw(s, one, h));
    expect_values(one, before, rounded);
    EXPECT_STATUS_OK(run_lion(s, one, h));
    expect_values(one, before, rounded);
    EXPECT_STATUS_OK(run_sgd(s, one, h));
    expect_values(one, before, rounded);
    std::vector<values> expected(all.begin(), all.end());
    EXPECT_STATUS_OK(run_list(s, all, rounded, h));
    for (std::size_t i = 0; i < all.size(); ++i)
      expect_values(all[i], expected[i], rounded);
  }
}

/// Half the distance of 1 from the next f32: the largest relative error of one rounding.
constexpr double unit = 0x1p-24;

void expect_within(const char *what, double actual, double expected, double bound, std::int64_t i) {
  if (!(std::fabs(actual - expected) <= bound))
    FAIL() << what << " " << i << " is " << actual << ", expected " << expected << " within " << bound;
}

// Bounds count the roundings on the way to a result: of one product or sum each, at the size of its operands.
TEST(HostUpdates, AdamWIsWithinItsRoundings) {
  const hyperparameters h;
  for (const element_type rounded : all_types) {
    test_stream s(2);
    const parameter p(20003, all_offsets[0], rounded);
    const values old(p);
    EXPECT_STATUS_OK(run_adamw(s, p, h));
    for (std::int64_t i = 0; i < p.n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      const double w = old.w[k], m = old.m[k], v = old.v[k], g = double(p.g()[i]) * double(h.gradient_scale);
      const double b1 = h.one_minus_beta1, b2 = h.one_minus_beta2, rate = h.learning_rate;
      const double new_m = m + b1 * (g - m), new_v = v + b2 * (g * g - v);
      const double root = std::sqrt(new_v / double(h.bias_correction2)) + double(h.epsilon);
      const double change = rate / double(h.bias_correction1) / root;
      const double kept = w * (1 - rate * double(h.weight_decay));
      const double m_bound = 3 * unit * (std::fabs(m) + std::fabs(g)), v_bound = 3 * unit * (v + g * g);
      expect_within("first moment", p.m()[i], new_m, m_bound, i);
      expect_within("second moment", p.v()[i], new_v, v_bound, i);
      // The relative error of the root is half of that of the moment, and of six more roundings.
      const double relative = 0.5 * v_bound / new_v + 9 * unit;
      expect_within("weight", p.w()[i], kept - change * new_m,
                    3 * unit * std::fabs(kept) + change * (m_bound + std::fabs(new_m) * relative) +
                        unit * std::fabs(change * new_m),
                    i);
    }
  }
}

TEST(HostUpdates, SgdIsWithinItsRoundings) {
  const hyperparameters h;
  for (const element_type rounded : all_types) {
    test_stream s(2);
    const parameter p(20003, all_offsets[0], rounded);
    const values old(p);
    EXPECT_STATUS_OK(run_sgd(s, p, h));
    for (std::int64_t i = 0; i < p.n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      const double kept = double(h.momentum) * old.m[k], g = double(p.g()[i]) * double(h.gradient_scale),
                   decay = double(h.weight_decay) * old.w[k], rate = h.learning_rate;
      const double bound = 3 * unit * (std::fabs(kept) + std::fabs(g) + std::fabs(decay));
      const double velocity = kept + (g + decay);
      expect_within("velocity", p.m()[i], velocity, bound, i);
      expect_within("weight", p.w()[i], old.w[k] - rate * velocity,
                    rate * bound + 2 * unit * (std::fabs(double(old.w[k])) + rate * std::fabs(velocity)), i);
    }
  }
}

} // namespace
} // namespace windlass::rt::testing
