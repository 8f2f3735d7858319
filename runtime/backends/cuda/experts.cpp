// The experts of a mixture on the device's f32 units. Rows are put in the order of their experts; a window of rows at a
// time goes through the matrices, whose tiles each belong to one expert. A block computes a tile of a result by itself,
// and tokens add up their rows themselves, so that sums have one order.
#include "kernel.h"
#include "tile_sums.h"

#include "windlass/rt/detail/expert_plan.h"

#include <utility>

namespace windlass::rt {

namespace cuda {
namespace {

using detail::expert_plan;
using detail::expert_strides;

/// A view of two dims.
struct plane {
  operand values;
  std::int64_t rows, columns;

  plane(const view &v) : values(v), rows(v.strides[0]), columns(v.strides[1]) {} // NOLINT: as operands are made
  __device__ float get(std::int64_t row, std::int64_t column) const {
    return values.get(row * rows + column * columns);
  }
  __device__ void set(std::int64_t row, std::int64_t column, float value) const {
    values.set(row * rows + column * columns, value);
  }
};

/// The matrices of all experts, or their gradients.
struct matrices {
  operand values;
  expert_strides at;

  matrices(const view &v, const expert_layer &of) : values(v), at(detail::strides_of(v, of)) {}
  WINDLASS_FN std::int64_t offset(std::int64_t expert, std::int64_t output, std::int64_t input) const {
    return expert * at.expert + output * at.output + input * at.input;
  }
  __device__ float get(std::int64_t expert, std::int64_t output, std::int64_t input) const {
    return values.get(offset(expert, output, input));
  }
  __device__ void set(std::int64_t expert, std::int64_t output, std::int64_t input, float value) const {
    values.set(offset(expert, output, input), value);
  }
  matrices transposed() const {
    matrices turned = *this;
    std::swap(turned.at.output, turned.at.input);
    return turned;
  }
};

/// The matrices that multiply the input, or their gradients: the first outputs are those of the gate, where it has
/// matrices of its own.
struct first_matrices {
  matrices gate, up;
  std::int64_t gate_outputs;
  bool is_transposed = false;

  first_matrices(const view &gate, const view &up, const expert_plan &plan)
      : gate(plan.gate > 0 ? gate : up, plan.of), up(up, plan.of), gate_outputs(plan.gate) {}
  __device__ float get(std::int64_t expert, std::int64_t row, std::int64_t column) const {
    const std::int64_t output = is_transposed ? column : row, input = is_transposed ? row : column;
    return output < gate_outputs ? gate.get(expert, output, input) : up.get(expert, output - gate_outputs, input);
  }
  __device__ void set(std::int64_t expert, std::int64_t output, std::int64_t input, float value) const {
    if (output < gate_outputs)
      gate.set(expert, output, input, value);
    else
      up.set(expert, output - gate_outputs, input, value);
  }
  first_matrices transposed() const {
    first_matrices turned = *this;
    turned.is_transposed = true;
    return turned;
  }
};

/// What is read to find out which experts are chosen.
struct choice_list {
  const std::int64_t *choices;
  std::int64_t token_stride, choice_stride;
  detail::table_parts parts;
};

/// What each kernel needs to know: the layer, the lists in the scratch, and the window of rows [begin, begin + block).
struct rows_of_experts {
  expert_plan plan;
  std::int32_t *lists;
  std::int64_t begin, block;

  __device__ std::int64_t start(std::int64_t expert) const { return lists[plan.starts_at() + expert]; }
  __device__ std::int64_t end() const {
    const std::int64_t all = start(plan.stored);
    return all < begin + block ? all : begin + block;
  }
  __device__ std::int64_t choice(std::int64_t row) const { return lists[row]; }
  __device__ std::int64_t token(std::int64_t row) const { return lists[row] / plan.chosen; }
  /// The rows of an expert in the window.
  __device__ std::int64_t first_of(std::int64_t expert) const { return start(expert) > begin ? start(expert) : begin; }
  __device__ std::int64_t last_of(std::int64_t expert) const {
    return start(expert + 1) < begin + block ? start(expert + 1) : begin + block;
  }
};

/// Lists choices by expert, in one block: a thread counts an expert's, and then puts them in order.
__global__ void sort_choices(rows_of_experts rows, choice_list from, fault *faults) {
  const expert_plan &plan = rows.plan;
  std::int32_t *const order = rows.lists, *const places = rows.lists + plan.places_at(),
                      *const starts = rows.lists + plan.starts_at();
  for (std::int64_t i = threadIdx.x; i < plan.choices(); i += blockDim.x) {
    const std::int64_t expert =
        from.choices[i / plan.chosen * from.token_stride + i % plan.chosen * from.choice_stride];
    const bool is_wrong = expert < 0 || expert >= plan.experts;
    if (is_wrong)
      report(faults, id_fault, expert, i, plan.experts);
    places[i] = static_cast<std::int32_t>(is_wrong ? -1 : from.parts.place_of(expert));
  }
  __syncthreads();
  for (std::int64_t e = threadIdx.x; e < plan.stored; e += blockDim.x) {
    std::int32_t count = 0;
    for (std::int64_t i = 0; i < plan.choices(); ++i)
      count += places[i] == e;
    starts[e + 1] = count;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    starts[0] = 0;
    for (std::int64_t e = 0; e < plan.stored; ++e)
      starts[e + 1] += starts[e];
  }
  __syncthreads();
  for (std::int64_t e = threadIdx.x; e < plan.stored; e += blockDim.x) {
    std::int32_t row = starts[e];
    for (std::int64_t i = 0; i < plan.choices(); ++i)
      if (places[i] == e)
        order[row++] = static_cast<std::int32_t>(i);
  }
  __syncthreads(); // all have read which expert a choice has
  for (std::int64_t row = threadIdx.x; row < starts[plan.stored]; row += blockDim.x)
    places[order[row]] = static_cast<std::int32_t>(row);
}

/// The rows of tokens, as an operand has them.
struct token_rows {
  plane values;
  __device__ float get(const rows_of_experts &r, std::int64_t row, std::int64_t i) const {
    return values.get(r.token(row), i);
  }
};

/// The rows of the window, in the scratch.
struct window_rows {
  const float *values;
  std::int64_t width;
  __device__ float get(const rows_of_experts &r, std::int64_t row, std::int64_t i) const {
    return values[(row - r.begin) * width + i];
  }
};

/// Rows by the matrices of their experts, whose outputs become columns of `result`.
template <class Rows, class Matrices> struct row_product {
  Rows rows;
  Matrices by;
  std::int64_t depth, columns;
  float *result;
};

/// The gradient of matrices: for each expert the products of its rows' outputs and inputs.
template <class Outputs, class Inputs, class Matrices> struct matrix_gradient {
  Outputs outputs;
  Inputs inputs;
  Matrices to;
  std::int64_t rows, columns;
};

template <class Product>
__global__ void __launch_bounds__(tile_threads) row_products(rows_of_experts r, Product p, std::int64_t items) {
  const std::int64_t across = tiles_of(p.columns);
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    // The tiles of an expert begin with its first row in the window.
    std::int64_t number = item / across, expert = 0, row = 0, last = 0;
    for (; expert < r.plan.stored; ++expert) {
      row = r.first_of(expert);
      last = r.last_of(expert);
      const std::int64_t tiles = last > row ? tiles_of(last - row) : 0;
      if (number < tiles)
        break;
      number -= tiles;
    }
    if (expert == r.plan.stored)
      continue;
    row += number * tile;
    const std::int64_t column = item % across * tile;
    tile_sums sums;
    sums.add(
        p.depth, last - row, p.columns - column,
        [&](std::int64_t i, std::int64_t k) { return p.rows.get(r, row + i, k); },
        [&](std::int64_t k, std::int64_t i) { return p.by.get(expert, column + i, k); });
    sums.for_each(last - row, p.columns - column,
                  [&](int i, int j, float sum) { p.result[(row + i - r.begin) * p.columns + column + j] = sum; });
  }
}

template <class Gradient>
__global__ void __launch_bounds__(tile_threads)
    matrix_gradients(rows_of_experts r, Gradient g, bool accumulate, std::int64_t items) {
  const std::int64_t across = tiles_of(g.columns), down = tiles_of(g.rows);
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t expert = item / (across * down), row = item / across % down * tile,
                       column = item % across * tile, first = r.first_of(expert), last = r.last_of(expert);
    const bool is_unchosen = r.start(expert) == r.start(expert + 1);
    // An expert that no token has chosen gets zeros once.
    if (is_unchosen ? accumulate || r.begin > 0 : first >= last)
      continue;
    const bool adds = accumulate || first > r.start(expert);
    tile_sums sums;
    sums.add(
        is_unchosen ? 0 : last - first, g.rows - row, g.columns - column,
        [&](std::int64_t i, std::int64_t k) { return g.outputs.get(r, first + k, row + i); },
        [&](std::int64_t k, std::int64_t i) { return g.inputs.get(r, first + k, column + i); });
    sums.for_each(g.rows - row, g.columns - column, [&](int i, int j, float sum) {
      g.to.set(expert, row + i, column + j, (adds ? g.to.get(expert, row + i, column + j) : 0.0f) + sum);
    });
  }
}

/// A block for each row of the window.
template <expert_activation A> __global__ void activate_rows(rows_of_experts r, const float *hidden, float *active) {
  const std::int64_t width = r.plan.width;
  for (std::int64_t row = r.begin + blockIdx.x; row < r.end(); row += gridDim.x) {
    const float *from = hidden + (row - r.begin) * r.plan.hidden;
    for (std::int64_t f = threadIdx.x; f < width; f += blockDim.x)
      active[(row - r.begin) * width + f] = detail::activate<A>(from[f]) * (r.plan.is_gated() ? from[width + f] : 1.0f);
  }
}

/// Replaces hidden values by their gradients, stores activated values times the weight, and the weight's gradient.
template <expert_activation A>
__global__ void differentiate_rows(rows_of_experts r, float *hidden, const float *slopes, float *active, plane weights,
                                   plane dweights) {
  const std::int64_t width = r.plan.width, chosen = r.plan.chosen;
  for (std::int64_t row = r.begin + blockIdx.x; row < r.end(); row += gridDim.x) {
    const std::int64_t at = row - r.begin, choice = r.choice(row);
    const float weight = weights.get(choice / chosen, choice % chosen);
    float *const values = hidden + at * r.plan.hidden;
    float sum = 0;
    for (std::int64_t f = threadIdx.x; f < width; f += blockDim.x) {
      const float before = values[f], gate = r.plan.is_gated() ? values[width + f] : 1.0f;
      const float after = detail::activate<A>(before), slope = slopes[at * width + f];
      sum += slope * (after * gate);
      active[at * width + f] = weight * (after * gate);
      values[f] = detail::activate_grad<A>(before, weight * slope * gate);
      if (r.plan.is_gated())
        values[width + f] = weight * slope * after;
    }
    sum = reduce_block<add_values>(sum);
    if (threadIdx.x == 0)
      dweights.set(choice / chosen, choice % chosen, sum);
  }
}

/// A block for each token, which adds up its rows of the window, with or without their weights.
__global__ void add_rows(rows_of_experts r, plane to, const float *rows, std::int64_t columns, plane weights,
                         bool is_weighted) {
  const std::int32_t *const places = r.lists + r.plan.places_at();
  for (std::int64_t token = blockIdx.x; token < r.plan.tokens; token += gridDim.x)
    for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
      float sum = r.begin > 0 ? to.get(token, i) : 0.0f;
      for (std::int64_t c = 0; c < r.plan.chosen; ++c)
        if (const std::int64_t row = places[token * r.plan.chosen + c]; row >= r.begin && row < r.begin + r.block)
          sum += (is_weighted ? weights.get(token, c) : 1.0f) * rows[(row - r.begin) * columns + i];
      to.set(token, i, sum);
    }
}

template <class Rows, class Matrices>
status multiply_rows(stream &s, const rows_of_experts &r, const row_product<Rows, Matrices> &p) {
  // A tile for each full one of the window, and one that is not full for each expert.
  const std::int64_t most = std::min(r.block, tiles_of(r.block) + r.plan.stored), items = most * tiles_of(p.columns);
  return launch(s, blocks_for_rows(items), tile_threads, row_products<row_product<Rows, Matrices>>, r, p, items);
}

template <class Gradient>
status add_gradients(stream &s, const rows_of_experts &r, const Gradient &g, bool accumulate) {
  const std::int64_t items = r.plan.stored * tiles_of(g.rows) * tiles_of(g.columns);
  return launch(s, blocks_for_rows(items), tile_threads, matrix_gradients<Gradient>, r, g, accumulate, items);
}

/// The operands of a layer.
struct expert_operands {
  view x, choices, weights, up, down, gate, first;
};

status plan_layer(const char *name, const stream &s, const expert_operands &in, const view &result,
                  const expert_layer &of, bool is_gradient, expert_plan &plan) {
  WINDLASS_TRY(check_views(detail::plan_experts(in.x, in.choices, in.up, in.down, in.gate, in.first, of, plan) &&
                               are_real({in.x, in.weights, in.up, in.down, result}) &&
                               in.choices.type == element_type::i64 &&
                               detail::is_plane(in.weights, plan.tokens, plan.chosen, in.weights.type) &&
                               detail::is_plane(result, plan.tokens, plan.out, result.type),
                           name));
  const std::int64_t bytes = plan.scratch_bytes(is_gradient ? plan.gradient_floats() : plan.forward_floats());
  if (s.scratch_bytes() < bytes)
    return internal_error(std::string(name) + " needs " + std::to_string(bytes) + " bytes of scratch, the stream has " +
                          std::to_string(s.scratch_bytes()));
  return {};
}

/// Sorts the choices and calls f(window, its rows of f32) for windows that cover all of them.
template <class F> status for_windows(stream &s, const expert_plan &plan, const expert_operands &in, F f) {
  rows_of_experts r = {plan, reinterpret_cast<std::int32_t *>(s.scratch()), 0, plan.block(1)};
  const choice_list from = {in.choices.as<const std::int64_t>(), in.choices.strides[0], in.choices.strides[1],
                            detail::table_parts(in.first, plan.stored)};
  WINDLASS_TRY(launch(s, 1, block_threads, sort_choices, r, from, device_stream_of(s).faults()));
  for (; r.begin < plan.choices(); r.begin += r.block)
    WINDLASS_TRY(f(r, reinterpret_cast<float *>(s.scratch() + plan.list_bytes())));
  return {};
}

} // namespace
} // namespace cuda

status experts(stream &s, const view &y, const view &x, const view &choices, const view &weights, const view &up,
               const view &down, const view &gate, const view &first, const expert_layer &of) {
  using namespace cuda;
  const expert_operands in = {x, choices, weights, up, down, gate, first};
  expert_plan plan = {};
  WINDLASS_TRY(plan_layer("experts", s, in, y, of, false, plan));
  const work done = {"experts",
                     plan.flops(1, 1),
                     bytes_of({y, x, weights, up, down, gate}),
                     {plan.choices(), plan.hidden, plan.in, plan.stored}};
  return s.submit(done, [=, &s]() -> status {
    return for_windows(s, plan, in, [&](const rows_of_experts &r, float *rows) -> status {
      float *const hidden = rows, *const active = hidden + r.block * plan.hidden,
                   *const results = active + r.block * plan.width;
      WINDLASS_TRY(multiply_rows(
          s, r, row_product<token_rows, first_matrices>{{x}, {gate, up, plan}, plan.in, plan.hidden, hidden}));
      WINDLASS_TRY(detail::with_activation(of.activation, [&](auto a) {
        return launch(s, blocks_for_rows(r.block), block_threads, activate_rows<decltype(a)::value>, r,
                      static_cast<const float *>(hidden), active);
      }));
      WINDLASS_TRY(multiply_rows(
          s, r, row_product<window_rows, matrices>{{active, plan.width}, {down, of}, plan.width, plan.out, results}));
      return launch(s, blocks_for_rows(plan.tokens), block_threads, add_rows, r, plane(y), results, plan.out,
                    plane(weights), true);
    });
  });
}

status experts_grad(stream &s, const view &dx, const view &dweights, const view &dup, const view &ddown,
                    const view &dgate, const view &dy, const view &x, const view &choices, const view &weights,
                    const view &up, const view &down, const view &gate, const view &first, const expert_layer &of,
                    bool accumulate) {
  using namespace cuda;
  const expert_operands in = {x, choices, weights, up, down, gate, first};
  expert_plan plan = {};
  WINDLASS_TRY(plan_layer("experts_grad", s, in, dy, of, true, plan));
  WINDLASS_TRY(
      check_views(are_real({dx, dweights, dup, ddown}) && has_same_sizes(dx, x) && has_same_sizes(dweights, weights) &&
                      has_same_sizes(dup, up) && has_same_sizes(ddown, down) &&
                      (gate.is_absent() ? dgate.is_absent() : has_same_sizes(dgate, gate) && dgate.type == dup.type),
                  "experts_grad"));
  const work done = {"experts_grad",
                     plan.flops(3, 2),
                     bytes_of({dx, dy, x, weights, up, down, gate, dup, ddown, dgate}),
                     {plan.choices(), plan.hidden, plan.in, plan.stored}};
  return s.submit(done, [=, &s]() -> status {
    WINDLASS_TRY(clear(s, dweights));
    return for_windows(s, plan, in, [&](const rows_of_experts &r, float *rows) -> status {
      float *const inputs = rows, *const hidden = inputs + r.block * plan.in,
                   *const slopes = hidden + r.block * plan.hidden, *const active = slopes + r.block * plan.width;
      WINDLASS_TRY(multiply_rows(
          s, r, row_product<token_rows, first_matrices>{{x}, {gate, up, plan}, plan.in, plan.hidden, hidden}));
      WINDLASS_TRY(multiply_rows(
          s, r,
          row_product<token_rows, matrices>{{dy}, matrices(down, of).transposed(), plan.out, plan.width, slopes}));
      WINDLASS_TRY(detail::with_activation(of.activation, [&](auto a) {
        return launch(s, blocks_for_rows(r.block), block_threads, differentiate_rows<decltype(a)::value>, r, hidden,
                      static_cast<const float *>(slopes), active, plane(weights), plane(dweights));
      }));
      WINDLASS_TRY(add_gradients(s, r,
                                 matrix_gradient<token_rows, window_rows, matrices>{
                                     {dy}, {active, plan.width}, {ddown, of}, plan.out, plan.width},
                                 accumulate));
      WINDLASS_TRY(add_gradients(s, r,
                                 matrix_gradient<window_rows, token_rows, first_matrices>{
                                     {hidden, plan.hidden}, {x}, {dgate, dup, plan}, plan.hidden, plan.in},
                                 accumulate));
      WINDLASS_TRY(multiply_rows(
          s, r,
          row_product<window_rows, first_matrices>{
              {hidden, plan.hidden}, first_matrices(gate, up, plan).transposed(), plan.hidden, plan.in, inputs}));
      return launch(s, blocks_for_rows(plan.tokens), block_threads, add_rows, r, plane(dx), inputs, plan.in,
                    plane(weights), false);
    });
  });
}

} // namespace windlass::rt
