// The experts of a mixture: rows are put in the order of their experts, and some at a time go through both matrices of
// one expert. Sums are in that order, whatever the number of threads.
#include "clear.h"
#include "rows.h"
#include "team_gemm.h"

#include "windlass/rt/kernels.h"

#include "windlass/rt/detail/expert_plan.h"

#include <string>
#include <type_traits>
#include <utility>

namespace windlass::rt {

namespace {

using cpu::matrix;
using cpu::team_gemm;
using detail::expert_plan;

/// The views of a layer's operands.
struct operands {
  view x, choices, weights, up, down, gate, first;
};

/// One call of `experts` or its gradient.
struct call {
  expert_plan plan;
  operands in;
  view y, dx, dweights, dup, ddown, dgate, dy;
  bool accumulate;
  std::byte *scratch;

  std::int32_t *order() const { return reinterpret_cast<std::int32_t *>(scratch); }
  std::int32_t *starts() const { return order() + plan.starts_at(); }
  float *rows() const { return reinterpret_cast<float *>(scratch + plan.list_bytes()); }

  static float *row_of(const view &v, std::int64_t row) { return v.as<float>() + row * v.strides[0]; }
  static float &element(const view &v, std::int64_t choice, std::int64_t columns) {
    return v.as<float>()[choice / columns * v.strides[0] + choice % columns * v.strides[1]];
  }
  /// The matrix [outputs, inputs] of an expert.
  matrix matrix_of(const view &v, std::int64_t expert) const {
    const detail::expert_strides at = detail::strides_of(v, plan.of);
    const int output = plan.of.inputs_first ? 2 : 1;
    return {v.as<float>() + expert * at.expert, v.sizes[output], v.sizes[3 - output], at.output, at.input};
  }
  /// Calls f(matrices, their gradients, the hidden values that they give) for those that multiply the input.
  template <class F> void for_first_matrices(const matrix &hidden, F f) const {
    const auto columns = [&](std::int64_t begin, std::int64_t end) {
      return matrix{hidden.data + begin * hidden.column_stride, hidden.rows, end - begin, hidden.row_stride,
                    hidden.column_stride};
    };
    if (plan.gate > 0)
      f(in.gate, dgate, columns(0, plan.gate));
    f(in.up, dup, columns(plan.gate, plan.hidden));
  }
  void compute_hidden(const matrix &hidden, const matrix &x, std::int64_t expert, std::int32_t threads) const {
    for_first_matrices(hidden, [&](const view &matrices, const view &, const matrix &part) {
      team_gemm(part, x, matrix_of(matrices, expert).transposed(), 0.0f, threads);
    });
  }

  std::int64_t choice(std::int64_t number) const {
    const view &c = in.choices;
    return c.as<const std::int64_t>()[number / plan.chosen * c.strides[0] + number % plan.chosen * c.strides[1]];
  }

  /// Lists the choices in the order of their experts. Bad data where a choice names no expert.
  status sort() const {
    std::int32_t *const begins = starts();
    const detail::table_parts parts(in.first, plan.stored);
    std::fill_n(begins, plan.stored + 1, 0);
    for (std::int64_t i = 0; i < plan.choices(); ++i) {
      if (const std::int64_t expert = choice(i); expert < 0 || expert >= plan.experts)
        return bad_input("expert " + std::to_string(expert) + " at position " + std::to_string(i) +
                         " is none of the layer's " + std::to_string(plan.experts) + "; check the data");
      else if (const std::int64_t place = parts.place_of(expert); place >= 0)
        ++begins[place + 1];
    }
    for (std::int64_t e = 0; e < plan.stored; ++e)
      begins[e + 1] += begins[e];
    // Each expert's beginning moves to its end, which is the next one's beginning.
    for (std::int64_t i = 0; i < plan.choices(); ++i)
      if (const std::int64_t place = parts.place_of(choice(i)); place >= 0)
        order()[begins[place]++] = static_cast<std::int32_t>(i);
    for (std::int64_t e = plan.stored; e > 0; --e)
      begins[e] = begins[e - 1];
    begins[0] = 0;
    return {};
  }

  /// Calls f(expert, first row, rows) for blocks of rows of one expert.
  template <class F> void for_blocks(std::int32_t threads, F f) const {
    for (std::int64_t e = 0; e < plan.stored; ++e)
      for (std::int64_t row = starts()[e]; row < starts()[e + 1];) {
        const std::int64_t count = std::min<std::int64_t>(plan.block(threads), starts()[e + 1] - row);
        f(e, row, count);
        row += count;
      }
  }

  /// Copies the rows of tokens whose choices begin at `first`.
  matrix collect(float *buffer, const view &from, std::int64_t first, std::int64_t count, std::int32_t threads) const {
    const std::int64_t columns = from.sizes[1];
    cpu::for_rows(threads, count, columns, [&](std::int64_t row) {
      const float *source = row_of(from, order()[first + row] / plan.chosen);
      float *to = buffer + row * columns;
      for (std::int64_t i = 0; i < columns; ++i)
        to[i] = source[i * from.strides[1]];
    });
    return {buffer, count, columns, columns, 1};
  }

  /// Adds rows, times their weights where `weights` is not absent, to those of their tokens. Threads divide the
  /// columns: two rows may be of one token.
  void add_back(const view &to, const matrix &values, std::int64_t first, const view &weights,
                std::int32_t threads) const {
    detail::parallel(threads, values.columns, std::max<std::int64_t>(16, cpu::grain / (values.rows + 1)),
                     [&](std::int64_t begin, std::int64_t end, std::int32_t) {
                       for (std::int64_t row = 0; row < values.rows; ++row) {
                         const std::int64_t number = order()[first + row];
                         const float weight = weights.is_absent() ? 1.0f : element(weights, number, plan.chosen);
                         float *sums = row_of(to, number / plan.chosen);
                         const float *from = values.data + row * values.row_stride;
                         for (std::int64_t i = begin; i < end; ++i)
                           sums[i * to.strides[1]] += weight * from[i];
                       }
                     });
  }

  /// Calls f(activation, whether hidden values are gated), both constants.
  template <class F> void with_functions(F f) const {
    detail::with_activation(plan.of.activation, [&](auto activation) {
      if (plan.is_gated())
        f(activation, std::true_type());
      else
        f(activation, std::false_type());
    });
  }

  template <expert_activation A, bool gated> void activate(const float *hidden, float *active) const {
    WINDLASS_SIMD
    for (std::int64_t f = 0; f < plan.width; ++f)
      active[f] = detail::activate<A>(hidden[f]) * (gated ? hidden[plan.width + f] : 1.0f);
  }

  void forward(std::int32_t threads) const {
    cpu::clear(y, threads);
    const std::int64_t most = plan.block(threads);
    float *const inputs = rows(), *const hidden = inputs + most * plan.in, *const active = hidden + most * plan.hidden,
                 *const results = active + most * plan.width;
    for_blocks(threads, [&](std::int64_t expert, std::int64_t first, std::int64_t count) {
      const matrix x = collect(inputs, in.x, first, count, threads);
      const matrix h = {hidden, count, plan.hidden, plan.hidden, 1}, a = {active, count, plan.width, plan.width, 1},
                   z = {results, count, plan.out, plan.out, 1};
      compute_hidden(h, x, expert, threads);
      with_functions([&](auto activation, auto gated) {
        cpu::for_rows(threads, count, 16 * plan.width, [&](std::int64_t row) {
          activate<activation.value, gated.value>(hidden + row * plan.hidden, active + row * plan.width);
        });
      });
      team_gemm(z, a, matrix_of(in.down, expert).transposed(), 0.0f, threads);
      add_back(y, z, first, in.weights, threads);
    });
  }

  /// Replaces hidden values by their gradients and `slopes`, the gradients of activated values by weight 1, by
  /// activated values times the weight; stores the gradient of the weight.
  template <expert_activation A, bool gated>
  void differentiate(float *hidden, const float *slopes, float *active, std::int64_t number) const {
    const float weight = element(in.weights, number, plan.chosen);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t f = 0; f < plan.width; ++f) {
      const float before = hidden[f], gate = gated ? hidden[plan.width + f] : 1.0f;
      const float after = detail::activate<A>(before), slope = slopes[f];
      sum += slope * (after * gate);
      active[f] = weight * (after * gate);
      hidden[f] = detail::activate_grad<A>(before, weight * slope * gate);
      if constexpr (gated)
        hidden[plan.width + f] = weight * slope * after;
    }
    element(dweights, number, plan.chosen) = sum;
  }

  void gradient(std::int32_t threads) const {
    cpu::clear(dx, threads);
    cpu::clear(dweights, threads);
    const std::int64_t most = plan.block(threads);
    float *const inputs = rows(), *const arrived = inputs + most * plan.in, *const hidden = arrived + most * plan.out,
                 *const slopes = hidden + most * plan.hidden, *const active = slopes + most * plan.width;
    for (std::int64_t e = 0; e < plan.stored && !accumulate; ++e)
      if (starts()[e] == starts()[e + 1])
        for (const view &v : {dup, ddown, dgate}) {
          if (v.is_absent())
            continue;
          const matrix m = matrix_of(v, e);
          cpu::clear(strided_view(reinterpret_cast<std::byte *>(m.data), element_type::f32, {m.rows, m.columns},
                                  {m.row_stride, m.column_stride}),
                     threads);
        }
    for_blocks(threads, [&](std::int64_t expert, std::int64_t first, std::int64_t count) {
      const float adds = accumulate || first > starts()[expert] ? 1.0f : 0.0f;
      const matrix x = collect(inputs, in.x, first, count, threads), g = collect(arrived, dy, first, count, threads);
      const matrix h = {hidden, count, plan.hidden, plan.hidden, 1}, s = {slopes, count, plan.width, plan.width, 1},
                   a = {active, count, plan.width, plan.width, 1};
      compute_hidden(h, x, expert, threads);
      team_gemm(s, g, matrix_of(in.down, expert), 0.0f, threads);
      with_functions([&](auto activation, auto gated) {
        cpu::for_rows(threads, count, 32 * plan.width, [&](std::int64_t row) {
          differentiate<activation.value, gated.value>(hidden + row * plan.hidden, slopes + row * plan.width,
                                                       active + row * plan.width, order()[first + row]);
        });
      });
      team_gemm(matrix_of(ddown, expert), g.transposed(), a, adds, threads);
      for_first_matrices(h, [&](const view &, const view &gradients, const matrix &part) {
        team_gemm(matrix_of(gradients, expert), part.transposed(), x, adds, threads);
      });
      // The inputs are not needed any more.
      float added = 0.0f;
      for_first_matrices(h, [&](const view &matrices, const view &, const matrix &part) {
        team_gemm(x, part, matrix_of(matrices, expert), std::exchange(added, 1.0f), threads);
      });
      add_back(dx, x, first, {}, threads);
    });
  }
};

/// Checks the operands of a layer and its result, or the gradient of that, and plans it.
status plan_call(const char *name, call &c, const view &result, const expert_layer &of) {
  const operands &in = c.in;
  const element_type type = element_type::f32;
  if (!detail::plan_experts(in.x, in.choices, in.up, in.down, in.gate, in.first, of, c.plan) || in.x.type != type ||
      in.up.type != type || in.down.type != type || in.choices.type != element_type::i64 ||
      !detail::is_plane(in.weights, c.plan.tokens, c.plan.chosen, type) ||
      !detail::is_plane(result, c.plan.tokens, c.plan.out, type))
    return internal_error(std::string(name) + " got views whose types, ranks or sizes do not fit");
  return cpu::prepare_gemm();
}

status check_scratch(const char *name, const stream &s, std::int64_t bytes) {
  return s.scratch_bytes() >= bytes
             ? ok_status()
             : internal_error(std::string(name) + " needs " + std::to_string(bytes) +
                              " bytes of scratch, the stream has " + std::to_string(s.scratch_bytes()));
}

bool has_shape(const view &a, const view &b) {
  return a.is_absent() == b.is_absent() && a.rank == b.rank && std::equal(a.sizes, a.sizes + a.rank, b.sizes);
}

} // namespace

status experts(stream &s, const view &y, const view &x, const view &choices, const view &weights, const view &up,
               const view &down, const view &gate, const view &first, const expert_layer &of) {
  call c = {{}, {x, choices, weights, up, down, gate, first}, y, {}, {}, {}, {}, {}, {}, false, s.scratch()};
  WINDLASS_TRY(plan_call("experts", c, y, of));
  WINDLASS_TRY(check_scratch("experts", s, experts_scratch_bytes(x, choices, up, down, gate, of, s.threads())));
  const work done = {"experts",
                     c.plan.flops(1, 1),
                     bytes_of({y, x, weights, up, down, gate}),
                     {c.plan.choices(), c.plan.hidden, c.plan.in, c.plan.stored}};
  return s.submit(done, [c, threads = s.threads()]() -> status {
    WINDLASS_TRY(c.sort());
    c.forward(threads);
    return {};
  });
}

status experts_grad(stream &s, const view &dx, const view &dweights, const view &dup, const view &ddown,
                    const view &dgate, const view &dy, const view &x, const view &choices, const view &weights,
                    const view &up, const view &down, const view &gate, const view &first, const expert_layer &of,
                    bool accumulate) {
  call c = {
      {},         {x, choices, weights, up, down, gate, first}, {}, dx, dweights, dup, ddown, dgate, dy, accumulate,
      s.scratch()};
  WINDLASS_TRY(plan_call("experts_grad", c, dy, of));
  if (!has_shape(dx, x) || !has_shape(dweights, weights) || !has_shape(dup, up) || !has_shape(ddown, down) ||
      !has_shape(dgate, gate))
    return internal_error("experts_grad got views whose types, ranks or sizes do not fit");
  WINDLASS_TRY(
      check_scratch("experts_grad", s, experts_grad_scratch_bytes(x, choices, up, down, gate, of, s.threads())));
  const work done = {"experts_grad",
                     c.plan.flops(3, 2),
                     bytes_of({dx, dy, x, weights, up, down, gate, dup, ddown, dgate}),
                     {c.plan.choices(), c.plan.hidden, c.plan.in, c.plan.stored}};
  return s.submit(done, [c, threads = s.threads()]() -> status {
    WINDLASS_TRY(c.sort());
    c.gradient(threads);
    return {};
  });
}

} // namespace windlass::rt
