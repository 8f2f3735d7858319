#include "testing.h"

#include "windlass/rt/scalar.h"

namespace windlass::rt::testing {
namespace {

/// A layer of experts; `parts`: the first of each part of two experts that are here, or none where all are.
struct layer {
  std::int64_t tokens, in, chosen, experts, width, out;
  expert_activation activation;
  bool gated, inputs_first;
  std::vector<std::int64_t> parts = {};
  /// The one expert that all tokens choose, or -1.
  std::int64_t only = -1;
  /// Whether the gate's matrices are apart; the layer is then `gated` too.
  bool gate_apart = false;

  std::int64_t hidden() const { return gated ? 2 * width : width; }
  std::int64_t up_outputs() const { return gate_apart ? width : hidden(); }
  std::int64_t stored() const { return parts.empty() ? experts : 2 * static_cast<std::int64_t>(parts.size()); }
  sizes up_shape() const {
    return inputs_first ? sizes{stored(), in, up_outputs()} : sizes{stored(), up_outputs(), in};
  }
  sizes down_shape() const { return inputs_first ? sizes{stored(), width, out} : sizes{stored(), out, width}; }
  std::int64_t up_at(std::int64_t e, std::int64_t h, std::int64_t i) const {
    return inputs_first ? (e * in + i) * up_outputs() + h : (e * up_outputs() + h) * in + i;
  }
  std::int64_t down_at(std::int64_t e, std::int64_t o, std::int64_t f) const {
    return inputs_first ? (e * width + f) * out + o : (e * out + o) * width + f;
  }
  std::int64_t place_of(std::int64_t expert) const {
    if (parts.empty())
      return expert;
    for (std::size_t part = 0; part < parts.size(); ++part)
      if (expert >= parts[part] && expert < parts[part] + 2)
        return 2 * static_cast<std::int64_t>(part) + expert - parts[part];
    return -1;
  }
  expert_layer of() const { return {activation, gated && !gate_apart, inputs_first, parts.empty() ? 0 : experts}; }
};

double activate(expert_activation activation, double x) {
  return activation == expert_activation::relu        ? windlass::scalar::relu(x)
         : activation == expert_activation::gelu_erf  ? windlass::scalar::gelu_erf(x)
         : activation == expert_activation::gelu_tanh ? windlass::scalar::gelu_tanh(x)
                                                      : windlass::scalar::silu(x);
}

/// The operands of a layer, and what they give in doubles.
struct problem {
  layer l;
  tensor x, weights, up, down, gate_matrices, dy;
  index_tensor choices, first;
  std::vector<double> y, dx, dweights, dup, ddown, dgate;

  explicit problem(const layer &of)
      : l(of), x({l.tokens, l.in}, {}, 3), weights({l.tokens, l.chosen}, {1, 0}), up(l.up_shape()),
        down(l.down_shape()), gate_matrices(l.up_shape(), {}, 2), dy({l.tokens, l.out}),
        choices({l.tokens, l.chosen}, 0, l.experts, {1, 0}),
        first({static_cast<std::int64_t>(std::max<std::size_t>(l.parts.size(), 1))}, 0, 1),
        y(static_cast<std::size_t>(l.tokens * l.out)), dx(static_cast<std::size_t>(l.tokens * l.in)),
        dweights(static_cast<std::size_t>(l.tokens * l.chosen)), dup(static_cast<std::size_t>(up.elements())),
        ddown(static_cast<std::size_t>(down.elements())), dgate(static_cast<std::size_t>(up.elements())) {
    for (std::int64_t i = 0; i < choices.elements() && l.only >= 0; ++i)
      choices[i] = l.only;
    for (std::size_t part = 0; part < l.parts.size(); ++part)
      first[static_cast<std::int64_t>(part)] = l.parts[part];
  }
  view gate() const { return l.gate_apart ? gate_matrices.v() : view(); }
  /// The element of a first matrix, or of its gradient, that makes hidden value `h`.
  template <class T> auto &first_matrix(T &of_gate, T &of_up, std::int64_t e, std::int64_t h, std::int64_t i) const {
    const bool is_gate = l.gate_apart && h < l.width;
    return (is_gate ? of_gate
                    : of_up)[static_cast<std::size_t>(l.up_at(e, is_gate || !l.gate_apart ? h : h - l.width, i))];
  }
  view parts() const { return l.parts.empty() ? view() : first.v(); }

  /// Computes what is expected; gradients of the matrices are added to what is there. Derivatives of activations are
  /// differences, which are exact enough for f32.
  void compute() {
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    const std::vector<double> gate_values = gate_matrices.values(), up_values = up.values();
    for (std::int64_t c = 0; c < l.tokens * l.chosen; ++c) {
      const std::int64_t e = l.place_of(choices[c]), t = c / l.chosen;
      if (e < 0)
        continue;
      std::vector<double> before(at(l.hidden())), dbefore(at(l.hidden()));
      for (std::int64_t h = 0; h < l.hidden(); ++h)
        for (std::int64_t i = 0; i < l.in; ++i)
          before[at(h)] += static_cast<double>(first_matrix(gate_values, up_values, e, h, i)) * x[t * l.in + i];
      for (std::int64_t f = 0; f < l.width; ++f) {
        const double value = before[at(f)], gate = l.gated ? before[at(l.width + f)] : 1.0, step = 1e-5;
        const double active = activate(l.activation, value);
        double slope = 0;
        for (std::int64_t o = 0; o < l.out; ++o) {
          const double w = down[l.down_at(e, o, f)], d = dy[t * l.out + o];
          y[at(t * l.out + o)] += weights[c] * w * active * gate;
          slope += w * d;
          ddown[at(l.down_at(e, o, f))] += weights[c] * d * active * gate;
        }
        dweights[at(c)] += slope * active * gate;
        dbefore[at(f)] = weights[c] * slope * gate *
                         (activate(l.activation, value + step) - activate(l.activation, value - step)) / (2 * step);
        if (l.gated)
          dbefore[at(l.width + f)] = weights[c] * slope * active;
      }
      for (std::int64_t h = 0; h < l.hidden(); ++h)
        for (std::int64_t i = 0; i < l.in; ++i) {
          dx[at(t * l.in + i)] += first_matrix(gate_values, up_values, e, h, i) * dbefore[at(h)];
          first_matrix(dgate, dup, e, h, i) += x[t * l.in + i] * dbefore[at(h)];
        }
    }
  }
};

void check(const layer &of, bool accumulate, std::int32_t threads) {
  problem p(of);
  const tensor y({of.tokens, of.out}, {}, 1), dx({of.tokens, of.in}), dweights({of.tokens, of.chosen}),
      dup(of.up_shape()), ddown(of.down_shape()), dgate(of.up_shape());
  if (accumulate) {
    p.dup = dup.values();
    p.ddown = ddown.values();
    p.dgate = dgate.values();
  }
  p.compute();
  const std::int64_t bytes = experts_grad_scratch_bytes(p.x, p.choices, p.up, p.down, p.gate(), of.of(), threads);
  ASSERT_GE(bytes, 64);
  test_stream s(threads, bytes);
  ASSERT_LE(experts_scratch_bytes(p.x, p.choices, p.up, p.down, p.gate(), of.of(), threads),
            bytes + 4 * 256 * of.out * threads);
  test_stream forward(threads, experts_scratch_bytes(p.x, p.choices, p.up, p.down, p.gate(), of.of(), threads));
  EXPECT_STATUS_OK(experts(forward, y, p.x, p.choices, p.weights, p.up, p.down, p.gate(), p.parts(), of.of()));
  EXPECT_STATUS_OK(experts_grad(s, dx, dweights, dup, ddown, of.gate_apart ? dgate.v() : view(), p.dy, p.x, p.choices,
                                p.weights, p.up, p.down, p.gate(), p.parts(), of.of(), accumulate));
  expect_near(y, p.y, 5e-6);
  expect_near(dx, p.dx, 5e-6);
  expect_near(dweights, p.dweights, 5e-6);
  expect_near(dup, p.dup, 5e-6);
  expect_near(ddown, p.ddown, 5e-6);
  if (of.gate_apart)
    expect_near(dgate, p.dgate, 5e-6);
}

void check_all(const layer &of) {
  for (const bool accumulate : {false, true})
    for (const std::int32_t threads : {1, 3})
      check(of, accumulate, threads);
}

TEST(Experts, OfEachActivation) {
  for (const expert_activation activation :
       {expert_activation::gelu_erf, expert_activation::gelu_tanh, expert_activation::silu})
    for (const bool gated : {false, true})
      for (const bool inputs_first : {false, true})
        check_all({37, 19, 2, 5, 11, 23, activation, gated, inputs_first});
}

TEST(Experts, WithRelu) {
  // No hidden value is at the kink.
  check_all({37, 19, 2, 5, 11, 23, expert_activation::relu, false, false});
}

/// More rows than are in the scratch at once, of one expert and of several.
TEST(Experts, OfManyRows) {
  check_all({700, 6, 2, 3, 5, 7, expert_activation::silu, true, false});
  check_all({1300, 6, 1, 3, 5, 7, expert_activation::silu, true, false, {}, 1});
}

/// Experts that no token has chosen get zeros; a token may choose one twice.
TEST(Experts, OfOneForAll) { check_all({20, 6, 2, 70, 5, 7, expert_activation::silu, true, true, {}, 69}); }

TEST(Experts, WithAGateApart) {
  for (const expert_activation activation : {expert_activation::gelu_erf, expert_activation::silu})
    for (const bool inputs_first : {false, true})
      check_all({37, 19, 2, 5, 11, 23, activation, true, inputs_first, {}, -1, true});
  check_all({1300, 6, 1, 3, 5, 7, expert_activation::silu, true, false, {}, 1, true}); // of many rows
  check_all({60, 6, 3, 12, 5, 7, expert_activation::silu, true, false, {3, 9}, -1, true});
}

TEST(Experts, OfSomeParts) {
  check_all({60, 6, 3, 12, 5, 7, expert_activation::silu, true, false, {3, 9}});
  check_all({60, 6, 3, 12, 5, 7, expert_activation::gelu_tanh, false, true, {0}});
  check_all({60, 6, 1, 12, 5, 7, expert_activation::silu, true, false, {3, 9}, 5}); // none of them is here
}

TEST(Experts, RefuseChoicesOutsideOfTheLayer) {
  for (const std::int64_t wrong : {-1, 5}) {
    const problem p({4, 3, 2, 5, 2, 3, expert_activation::silu, false, false});
    p.choices[5] = wrong;
    const tensor y({4, 3});
    test_stream s;
    EXPECT_EQ(experts(s, y, p.x, p.choices, p.weights, p.up, p.down, {}, {}, p.l.of()).code(), status_code::bad_input);
  }
}

TEST(Experts, NeedTheirScratch) {
  const problem p({4, 3, 2, 5, 2, 3, expert_activation::silu, false, false});
  const tensor y({4, 3});
  test_stream s(1, 64);
  EXPECT_EQ(experts(s, y, p.x, p.choices, p.weights, p.up, p.down, {}, {}, p.l.of()).code(), status_code::internal);
}

} // namespace
} // namespace windlass::rt::testing
