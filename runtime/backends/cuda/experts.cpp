// The experts of a mixture on the device's f32 units. Rows are put in the order of their experts; a window of rows at a
// time goes through the matrices, whose tiles each belong to one expert. A block computes a tile of a result by itself,
// and tokens add up their rows themselves, so that sums have one order.
#include "kernel.h"

#include "windlass/rt/detail/expert_plan.h"

namespace windlass::rt {

namespace cuda {
namespace {

using detail::expert_plan;
using detail::expert_strides;

/// The rows and columns of a block's tile, what it takes of the depth at once, and what a thread computes of it.
constexpr int tile = 64, slice = 16, own = 4;
constexpr int tile_threads = (tile / own) * (tile / own);

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
};

/// What is read to find out which experts are chosen.
struct choice_list {
  const std::int64_t *choices, *first;
  std::int64_t token_stride, choice_stride, parts, first_stride;
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
    std::int64_t place = from.parts == 0 ? expert : -1;
    if (expert < 0 || expert >= plan.experts) {
      report(faults, id_fault, expert, i, plan.experts);
      place = -1;
    } else
      for (std::int64_t part = 0, length = from.parts == 0 ? 0 : plan.stored / from.parts; part < from.parts; ++part) {
        const std::int64_t at = expert - from.first[part * from.first_stride];
        if (at >= 0 && at < length)
          place = part * length + at;
      }
    places[i] = static_cast<std::int32_t>(place);
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

// Products for the rows of a window: columns and depth, the factors' elements, and where a result goes.

/// Hidden values: inputs by the first matrix.
struct hidden_product {
  plane x;
  matrices up;
  float *hidden;
  WINDLASS_FN static std::int64_t columns(const expert_plan &p) { return p.hidden; }
  WINDLASS_FN static std::int64_t depth(const expert_plan &p) { return p.in; }
  __device__ float left(const rows_of_experts &r, std::int64_t row, std::int64_t k) const {
    return x.get(r.token(row), k);
  }
  __device__ float right(std::int64_t expert, std::int64_t k, std::int64_t column) const {
    return up.get(expert, column, k);
  }
  __device__ float *result() const { return hidden; }
};

/// Results: activated values by the second matrix.
struct result_product {
  const float *active;
  matrices down;
  float *results;
  WINDLASS_FN static std::int64_t columns(const expert_plan &p) { return p.out; }
  WINDLASS_FN static std::int64_t depth(const expert_plan &p) { return p.width; }
  __device__ float left(const rows_of_experts &r, std::int64_t row, std::int64_t k) const {
    return active[(row - r.begin) * r.plan.width + k];
  }
  __device__ float right(std::int64_t expert, std::int64_t k, std::int64_t column) const {
    return down.get(expert, column, k);
  }
  __device__ float *result() const { return results; }
};

/// Gradients of activated values: those of results by the transpose of the second matrix.
struct slope_product {
  plane dy;
  matrices down;
  float *slopes;
  WINDLASS_FN static std::int64_t columns(const expert_plan &p) { return p.width; }
  WINDLASS_FN static std::int64_t depth(const expert_plan &p) { return p.out; }
  __device__ float left(const rows_of_experts &r, std::int64_t row, std::int64_t k) const {
    return dy.get(r.token(row), k);
  }
  __device__ float right(std::int64_t expert, std::int64_t k, std::int64_t column) const {
    return down.get(expert, k, column);
  }
  __device__ float *result() const { return slopes; }
};

/// Gradients of inputs: those of hidden values by the transpose of the first matrix.
struct input_product {
  const float *hidden;
  matrices up;
  float *inputs;
  WINDLASS_FN static std::int64_t columns(const expert_plan &p) { return p.in; }
  WINDLASS_FN static std::int64_t depth(const expert_plan &p) { return p.hidden; }
  __device__ float left(const rows_of_experts &r, std::int64_t row, std::int64_t k) const {
    return hidden[(row - r.begin) * r.plan.hidden + k];
  }
  __device__ float right(std::int64_t expert, std::int64_t k, std::int64_t column) const {
    return up.get(expert, k, column);
  }
  __device__ float *result() const { return inputs; }
};

/// A tile of two factors in shared memory, and the sums of a thread.
struct tile_sums {
  float sums[own][own] = {};

  template <class Left, class Right>
  __device__ void add(std::int64_t depth, std::int64_t height, std::int64_t width, Left left, Right right) {
    __shared__ float a[slice][tile + 1], b[slice][tile + 1];
    const int thread = static_cast<int>(threadIdx.x), row = thread / (tile / own), column = thread % (tile / own);
    for (std::int64_t first = 0; first < depth; first += slice) {
      for (int i = thread; i < slice * tile; i += tile_threads) {
        const int k = i % slice, r = i / slice;
        a[k][r] = r < height && first + k < depth ? left(r, first + k) : 0.0f;
      }
      for (int i = thread; i < slice * tile; i += tile_threads) {
        const int k = i / tile, c = i % tile;
        b[k][c] = c < width && first + k < depth ? right(first + k, c) : 0.0f;
      }
      __syncthreads();
      for (int k = 0; k < slice; ++k)
        for (int r = 0; r < own; ++r)
          for (int c = 0; c < own; ++c)
            sums[r][c] += a[k][row + r * (tile / own)] * b[k][column + c * (tile / own)];
      __syncthreads(); // the next slices come to the same places
    }
  }

  /// Calls f(row, column, sum) for those of the thread's sums that are inside.
  template <class F> __device__ void for_each(std::int64_t height, std::int64_t width, F f) const {
    const int thread = static_cast<int>(threadIdx.x);
    for (int r = 0; r < own; ++r)
      for (int c = 0; c < own; ++c) {
        const int row = thread / (tile / own) + r * (tile / own), column = thread % (tile / own) + c * (tile / own);
        if (row < height && column < width)
          f(row, column, sums[r][c]);
      }
  }
};

template <class Product>
__global__ void __launch_bounds__(tile_threads) row_products(rows_of_experts r, Product p, std::int64_t items) {
  const std::int64_t columns = p.columns(r.plan), across = (columns + tile - 1) / tile;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    // The tiles of an expert begin with its first row in the window.
    std::int64_t number = item / across, expert = 0, row = 0, last = 0;
    for (; expert < r.plan.stored; ++expert) {
      row = r.first_of(expert);
      last = r.last_of(expert);
      const std::int64_t tiles = last > row ? (last - row + tile - 1) / tile : 0;
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
        p.depth(r.plan), last - row, columns - column,
        [&](std::int64_t i, std::int64_t k) { return p.left(r, row + i, k); },
        [&](std::int64_t k, std::int64_t i) { return p.right(expert, k, column + i); });
    sums.for_each(last - row, columns - column,
                  [&](int i, int j, float sum) { p.result()[(row + i - r.begin) * columns + column + j] = sum; });
  }
}

// Gradients of the matrices: rows and columns, and the factors' elements for a row of the window.

struct down_gradient {
  plane dy;
  const float *active;
  matrices to;
  WINDLASS_FN static std::int64_t rows(const expert_plan &p) { return p.out; }
  WINDLASS_FN static std::int64_t columns(const expert_plan &p) { return p.width; }
  __device__ float left(const rows_of_experts &r, std::int64_t row, std::int64_t i) const {
    return dy.get(r.token(row), i);
  }
  __device__ float right(const rows_of_experts &r, std::int64_t row, std::int64_t i) const {
    return active[(row - r.begin) * r.plan.width + i];
  }
};

struct up_gradient {
  const float *hidden;
  plane x;
  matrices to;
  WINDLASS_FN static std::int64_t rows(const expert_plan &p) { return p.hidden; }
  WINDLASS_FN static std::int64_t columns(const expert_plan &p) { return p.in; }
  __device__ float left(const rows_of_experts &r, std::int64_t row, std::int64_t i) const {
    return hidden[(row - r.begin) * r.plan.hidden + i];
  }
  __device__ float right(const rows_of_experts &r, std::int64_t row, std::int64_t i) const {
    return x.get(r.token(row), i);
  }
};

template <class Gradient>
__global__ void __launch_bounds__(tile_threads)
    matrix_gradients(rows_of_experts r, Gradient g, bool accumulate, std::int64_t items) {
  const std::int64_t rows = g.rows(r.plan), columns = g.columns(r.plan), across = (columns + tile - 1) / tile,
                     down = (rows + tile - 1) / tile;
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
        is_unchosen ? 0 : last - first, rows - row, columns - column,
        [&](std::int64_t i, std::int64_t k) { return g.left(r, first + k, row + i); },
        [&](std::int64_t k, std::int64_t i) { return g.right(r, first + k, column + i); });
    sums.for_each(rows - row, columns - column, [&](int i, int j, float sum) {
      const std::int64_t at = g.to.offset(expert, row + i, column + j);
      g.to.values.set(at, (adds ? g.to.values.get(at) : 0.0f) + sum);
    });
  }
}

/// A block for each row of the window.
__global__ void activate_rows(rows_of_experts r, const float *hidden, float *active) {
  const std::int64_t width = r.plan.width;
  for (std::int64_t row = r.begin + blockIdx.x; row < r.end(); row += gridDim.x) {
    const float *from = hidden + (row - r.begin) * r.plan.hidden;
    for (std::int64_t f = threadIdx.x; f < width; f += blockDim.x)
      active[(row - r.begin) * width + f] =
          detail::activate(r.plan.of.activation, from[f]) * (r.plan.of.gated ? from[width + f] : 1.0f);
  }
}

/// Replaces hidden values by their gradients, stores activated values times the weight, and the weight's gradient.
__global__ void differentiate_rows(rows_of_experts r, float *hidden, const float *slopes, float *active, plane weights,
                                   plane dweights) {
  const std::int64_t width = r.plan.width, chosen = r.plan.chosen;
  for (std::int64_t row = r.begin + blockIdx.x; row < r.end(); row += gridDim.x) {
    const std::int64_t at = row - r.begin, choice = r.choice(row);
    const float weight = weights.get(choice / chosen, choice % chosen);
    float *const values = hidden + at * r.plan.hidden;
    float sum = 0;
    for (std::int64_t f = threadIdx.x; f < width; f += blockDim.x) {
      const float before = values[f], gate = r.plan.of.gated ? values[width + f] : 1.0f;
      const float after = detail::activate(r.plan.of.activation, before), slope = slopes[at * width + f];
      sum += slope * (after * gate);
      active[at * width + f] = weight * (after * gate);
      values[f] = detail::activate_grad(r.plan.of.activation, before, weight * slope * gate);
      if (r.plan.of.gated)
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

std::int64_t tiles(std::int64_t size) { return (size + tile - 1) / tile; }

template <class Product> status multiply_rows(stream &s, const rows_of_experts &r, const Product &p) {
  // A tile for each full one of the window, and one that is not full for each expert.
  const std::int64_t most = std::min(r.block, tiles(r.block) + r.plan.stored), items = most * tiles(p.columns(r.plan));
  return launch(s, blocks_for_rows(items), tile_threads, row_products<Product>, r, p, items);
}

template <class Gradient>
status add_gradients(stream &s, const rows_of_experts &r, const Gradient &g, bool accumulate) {
  const std::int64_t items = r.plan.stored * tiles(g.rows(r.plan)) * tiles(g.columns(r.plan));
  return launch(s, blocks_for_rows(items), tile_threads, matrix_gradients<Gradient>, r, g, accumulate, items);
}

/// The operands of a layer.
struct expert_operands {
  view x, choices, weights, up, down, first;
};

status plan_layer(const char *name, const stream &s, const expert_operands &in, const view &result,
                  const expert_layer &of, bool is_gradient, expert_plan &plan) {
  WINDLASS_TRY(check_views(detail::plan_experts(in.x, in.choices, in.up, in.down, in.first, of, plan) &&
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
  const choice_list from = {in.choices.as<const std::int64_t>(),
                            in.first.as<const std::int64_t>(),
                            in.choices.strides[0],
                            in.choices.strides[1],
                            in.first.is_absent() ? 0 : in.first.sizes[0],
                            in.first.strides[0]};
  WINDLASS_TRY(launch(s, 1, block_threads, sort_choices, r, from, device_stream_of(s).faults()));
  for (; r.begin < plan.choices(); r.begin += r.block)
    WINDLASS_TRY(f(r, reinterpret_cast<float *>(s.scratch() + plan.list_bytes())));
  return {};
}

} // namespace
} // namespace cuda

status experts(stream &s, const view &y, const view &x, const view &choices, const view &weights, const view &up,
               const view &down, const view &first, const expert_layer &of) {
  using namespace cuda;
  const expert_operands in = {x, choices, weights, up, down, first};
  expert_plan plan = {};
  WINDLASS_TRY(plan_layer("experts", s, in, y, of, false, plan));
  const work done = {"experts",
                     plan.flops(1, 1),
                     bytes_of({y, x, weights, up, down}),
                     {plan.choices(), plan.hidden, plan.in, plan.stored}};
  return s.submit(done, [=, &s]() -> status {
    return for_windows(s, plan, in, [&](const rows_of_experts &r, float *rows) -> status {
      float *const hidden = rows, *const active = hidden + r.block * plan.hidden,
                   *const results = active + r.block * plan.width;
      WINDLASS_TRY(multiply_rows(s, r, hidden_product{x, {up, of}, hidden}));
      WINDLASS_TRY(launch(s, blocks_for_rows(r.block), block_threads, activate_rows, r, hidden, active));
      WINDLASS_TRY(multiply_rows(s, r, result_product{active, {down, of}, results}));
      return launch(s, blocks_for_rows(plan.tokens), block_threads, add_rows, r, plane(y), results, plan.out,
                    plane(weights), true);
    });
  });
}

status experts_grad(stream &s, const view &dx, const view &dweights, const view &dup, const view &ddown, const view &dy,
                    const view &x, const view &choices, const view &weights, const view &up, const view &down,
                    const view &first, const expert_layer &of, bool accumulate) {
  using namespace cuda;
  const expert_operands in = {x, choices, weights, up, down, first};
  expert_plan plan = {};
  WINDLASS_TRY(plan_layer("experts_grad", s, in, dy, of, true, plan));
  WINDLASS_TRY(check_views(are_real({dx, dweights, dup, ddown}) && has_same_sizes(dx, x) &&
                               has_same_sizes(dweights, weights) && has_same_sizes(dup, up) &&
                               has_same_sizes(ddown, down),
                           "experts_grad"));
  const work done = {"experts_grad",
                     plan.flops(3, 2),
                     bytes_of({dx, dy, x, weights, up, down, dup, ddown}),
                     {plan.choices(), plan.hidden, plan.in, plan.stored}};
  return s.submit(done, [=, &s]() -> status {
    WINDLASS_TRY(clear(s, dweights));
    return for_windows(s, plan, in, [&](const rows_of_experts &r, float *rows) -> status {
      float *const inputs = rows, *const hidden = inputs + r.block * plan.in,
                   *const slopes = hidden + r.block * plan.hidden, *const active = slopes + r.block * plan.width;
      WINDLASS_TRY(multiply_rows(s, r, hidden_product{x, {up, of}, hidden}));
      WINDLASS_TRY(multiply_rows(s, r, slope_product{dy, {down, of}, slopes}));
      WINDLASS_TRY(launch(s, blocks_for_rows(r.block), block_threads, differentiate_rows, r, hidden,
                          static_cast<const float *>(slopes), active, plane(weights), plane(dweights)));
      WINDLASS_TRY(add_gradients(s, r, down_gradient{dy, active, {ddown, of}}, accumulate));
      WINDLASS_TRY(add_gradients(s, r, up_gradient{hidden, x, {dup, of}}, accumulate));
      WINDLASS_TRY(multiply_rows(s, r, input_product{hidden, {up, of}, inputs}));
      return launch(s, blocks_for_rows(plan.tokens), block_threads, add_rows, r, plane(dx), inputs, plan.in,
                    plane(weights), false);
    });
  });
}

} // namespace windlass::rt
