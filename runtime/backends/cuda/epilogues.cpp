#include "epilogues.h"

#include "kernel.h"
#include "turns.h"

#include <algorithm>
#include <utility>

namespace windlass::rt {
namespace cuda {

namespace {

using detail::fused_product;

/// The most of the two kernels' time that the library may take to be chosen: a smaller gain is noise.
constexpr double worth = 0.98;
/// Elements that the rows of GELU's input begin at multiples of.
constexpr std::int64_t input_row_multiple = 8;

/// One number for each column of the result, next to each other.
bool is_row(const view &bias, const view &out) {
  bool fits = bias.type == out.type && has_same_sizes(bias, out) && bias.strides[bias.rank - 1] == 1;
  for (int d = 0; d + 1 < bias.rank && fits; ++d)
    fits = bias.strides[d] == 0 || bias.sizes[d] == 1;
  return fits;
}

bool lies_alike(const view &a, const view &b) {
  return a.type == b.type && has_same_sizes(a, b) && std::equal(a.strides, a.strides + a.rank, b.strides);
}

/// Whether the library can read or write the input of GELU of a result of 16 bits, by `call`. Its GELU need not be as
/// exact as numbers of f32.
bool takes_gelu_input(const fused_product &of, const column_gemm &call) {
  return of.out.type != element_type::f32 && lies_alike(of.input, of.out) && call.d.leading % input_row_multiple == 0;
}

bool is_dense(const view &v) {
  std::int64_t expected = 1;
  for (int d = v.rank - 1; d >= 0; expected *= v.sizes[d--])
    if (v.sizes[d] != 1 && v.strides[d] != expected)
      return false;
  return true;
}

__global__ void add_vector(operand sum, operand vector, std::int64_t elements) {
  for (std::int64_t i = grid_thread(); i < elements; i += grid_threads())
    sum.set(i, sum.get(i) + vector.get(i));
}

} // namespace

bool as_one_call(const stream &s, const fused_product &of, fused_call &out) {
  gemm_call rows;
  if (!as_one_call(of.out, of.a, of.b, of.contract_rank, of.accumulate, rows))
    return false;
  rows.rounds_to_tf32 = s.multiplies_tf32() && of.a.type == element_type::f32;
  out = {as_columns(rows), {}};
  out.call.vector = of.vector.data;
  const bool turns = is_transposed(rows);
  if (of.what == fused_product::bias_grad) {
    const std::int64_t elements = of.sums_b ? rows.n : rows.m;
    if (of.vector.type != of.out.type || of.vector.elements() != elements || !is_dense(of.vector))
      return false;
    out.call.also = of.sums_b == turns ? epilogue::sum_x : epilogue::sum_y;
    if (of.accumulate) {
      out.adds_to = of.vector;
      out.call.vector = s.scratch();
    }
    return out.vector_bytes() <= s.scratch_bytes();
  }
  out.call.input = of.input.data;
  if (of.what == fused_product::gelu_grad) {
    out.call.also = epilogue::gelu_grad;
    return takes_gelu_input(of, out.call);
  }
  // The library adds a number to each row of columns, so to each column of rows.
  if (!turns || of.b.rank != of.contract_rank + 1 || !is_row(of.vector, of.out))
    return false;
  out.call.also = of.what == fused_product::bias ? epilogue::bias
                  : of.input.is_absent()         ? epilogue::bias_gelu
                                                 : epilogue::bias_gelu_input;
  if (!of.added.is_absent()) {
    out.call.added = of.added.data;
    out.call.beta = 1;
  }
  if (of.what == fused_product::bias_gelu && of.out.type == element_type::f32)
    return false;
  return (of.added.is_absent() || lies_alike(of.added, of.out)) &&
         (of.input.is_absent() || takes_gelu_input(of, out.call));
}

std::int64_t fused_call::vector_bytes() const {
  return adds_to.is_absent() ? 0 : (adds_to.elements() * size_of(adds_to.type) + 255) / 256 * 256;
}

status fused_call::run(stream &s, products &by) const {
  const std::int64_t used = vector_bytes();
  WINDLASS_TRY(by.run(s, call, s.scratch() + used, s.scratch_bytes() - used));
  if (used == 0)
    return {};
  return launch(s, blocks_for(adds_to.elements()), block_threads, add_vector, operand(adds_to),
                operand(call.vector, adds_to.type), adds_to.elements());
}

status epilogues::run(stream &s, const fused_product &of, const std::function<status()> &apart) {
  fused_call fused;
  if (!as_one_call(s, of, fused))
    return apart();
  auto [found, is_new] = entries_.try_emplace(products::shape_of(fused.call));
  entry &known = found->second;
  if (is_new)
    WINDLASS_TRY(decide(s, fused, apart, known));
  last_ = known.times;
  if (!known.is_fused)
    return apart();
  const work what = {detail::name_of(of.what),
                     2 * fused.call.m * fused.call.n * fused.call.k,
                     bytes_of({of.out, of.a, of.b, of.vector, of.input, of.added}),
                     {fused.call.n, fused.call.m, fused.call.k}};
  return s.submit(what, [fused, &s, this]() -> status { return fused.run(s, by_); });
}

status epilogues::decide(stream &s, const fused_call &fused, const std::function<status()> &apart, entry &of) {
  const std::int64_t used = fused.vector_bytes();
  of.is_fused = by_.prepare(s, fused.call, s.scratch() + used, s.scratch_bytes() - used).is_ok();
  if (!tunes_ || !of.is_fused)
    return {};
  std::vector<double> medians;
  WINDLASS_TRY(time_in_turns(s, 2, [&](std::size_t way) { return way == 0 ? apart() : fused.run(s, by_); }, medians));
  of.is_fused = medians[1] < worth * medians[0];
  if (medians[1] != failed_seconds)
    of.times = {medians[1], medians[0]};
  return {};
}

std::size_t epilogues::fused() const {
  std::size_t count = 0;
  for (const auto &[shape, of] : entries_)
    count += of.is_fused;
  return count;
}

std::optional<detail::tuned_epilogue> epilogues::take_tuned() { return std::exchange(last_, std::nullopt); }

} // namespace cuda

status detail::run_fused(stream &s, const fused_product &of, const std::function<status()> &apart) {
  return cuda::device_stream_of(s).epilogues().run(s, of, apart);
}

bool detail::take_tuned_epilogue(stream &s, tuned_epilogue &out) {
  const std::optional<tuned_epilogue> taken = cuda::device_stream_of(s).epilogues().take_tuned();
  if (taken)
    out = *taken;
  return taken.has_value();
}

} // namespace windlass::rt
