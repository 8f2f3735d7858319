#include "test_programs.h"

#include "windlass/rt/context.h"

#include <gtest/gtest.h>

namespace windlass::rt::test {

namespace {

constexpr std::int64_t elements = 48, tensor_bytes = elements * 4;
constexpr std::int64_t split_at = 0, master_at = 192, state_at = 384, gradient_at = 576, whole_at = 768;
constexpr std::int64_t input_at = 832, loss_at = 896, norm_at = 900, lr_at = 904, arena_bytes = 960;

constexpr axis no_axes[] = {{"model", 1}}, one_axis[] = {{"model", 2}}, two_axes[] = {{"model", 2}, {"data", 2}};
constexpr axis five[] = {{"data", 5}};
constexpr split columns[] = {{1, 0, 1}}, heads[] = {{1, 0, 3}}, rows_and_inner[] = {{1, 0, 6}, {0, 1, 1}};
constexpr split heads_and_rows[] = {{1, 0, 3}, {0, 1, 1}}, both_inner[] = {{1, 1, 6}, {1, 0, 3}};
constexpr split ranges[] = {{flat_dim, 0, 1}}, heads_and_ranges[] = {{1, 0, 3}, {flat_dim, 1, 1}};

struct cut_facts {
  span<axis> axes;
  span<split> compute, master, gradient;
  std::int64_t compute_parts, master_parts, gradient_parts;
};
constexpr cut_facts facts[] = {
    {{no_axes, 1}, {}, {}, {}, 1, 1, 1},
    {{one_axis, 1}, {columns, 1}, {columns, 1}, {columns, 1}, 2, 2, 2},
    {{one_axis, 1}, {heads, 1}, {heads, 1}, {heads, 1}, 2, 2, 2},
    {{two_axes, 2}, {rows_and_inner, 2}, {rows_and_inner, 2}, {rows_and_inner, 2}, 4, 4, 4},
    {{two_axes, 2}, {heads, 1}, {heads_and_rows, 2}, {heads, 1}, 2, 4, 2},
    {{two_axes, 2}, {}, {both_inner, 2}, {both_inner, 2}, 1, 4, 4},
    {{five, 1}, {}, {ranges, 1}, {ranges, 1}, 1, 5, 5},
    {{two_axes, 2}, {heads, 1}, {heads_and_ranges, 2}, {heads, 1}, 2, 4, 2},
};
/// The elements of a part, filled up.
constexpr std::int64_t elements_of(std::int64_t parts) { return (elements + parts - 1) / parts; }

constexpr bool has_master(cut layout) { return layout >= cut::own_master; }
constexpr const cut_facts &facts_of(cut layout) { return facts[static_cast<int>(layout)]; }

float *floats(context &c, std::int64_t offset) { return reinterpret_cast<float *>(c.at({0, offset})); }

status forward(context &c, bool, std::int64_t) {
  // Element 0 of the whole parameter is the same everywhere.
  *floats(c, loss_at) = *floats(c, whole_at) + *floats(c, input_at);
  return ok_status();
}

template <cut Layout> status backward(context &c, bool, std::int64_t, std::int64_t, bool) {
  const float *from = floats(c, Layout == cut::own_gradient || Layout == cut::flat ? master_at : split_at);
  for (std::int64_t i = 0; i < elements_of(facts_of(Layout).gradient_parts); ++i)
    floats(c, gradient_at)[i] = from[i] * 10;
  return ok_status();
}

status reduce_gradients(context &) { return ok_status(); }

template <cut Layout> status update(context &c) {
  *floats(c, norm_at) = 1;
  for (std::int64_t i = 0; i < elements_of(facts_of(Layout).compute_parts); ++i)
    floats(c, split_at)[i] += *floats(c, lr_at);
  for (std::int64_t i = 0; i < elements_of(facts_of(Layout).master_parts); ++i) {
    if (has_master(Layout))
      floats(c, master_at)[i] += *floats(c, lr_at);
    floats(c, state_at)[i] += 1;
  }
  for (std::int64_t i = 0; i < 4; ++i)
    floats(c, whole_at)[i] += *floats(c, lr_at);
  return ok_status();
}

constexpr std::int64_t split_sizes[] = {4, 12}, whole_sizes[] = {4}, input_sizes[] = {1};
constexpr element_type f32 = element_type::f32;
constexpr source external = {source_kind::external, "values.bin", 4, tensor_bytes, element_type::f32};
constexpr source packed = {source_kind::packed, nullptr, 0, 0, element_type::f32};
constexpr parameter_entry parameters[] = {{"split", f32, {split_sizes, 2}, external, initializer::normal, true, true},
                                          {"whole", f32, {whole_sizes, 1}, packed, initializer::ones, true, false}};
constexpr input_entry inputs[] = {{"x", f32, {input_sizes, 1}, feed::none, 0}};
constexpr arena_entry arenas[] = {{memory_kind::device, arena_bytes, "device"}};
constexpr state_entry states[] = {{0, "momentum_buffer", {0, state_at}}};
constexpr input_placement input_placements[] = {{0, 0, {}, {0, input_at}, 0}};
constexpr scalar_entry scalars[] = {{scalar::learning_rate, {0, lr_at}}};
constexpr stream_entry streams[] = {{stream_kind::compute, "compute"}};
constexpr action act(action_kind kind) {
  action out;
  out.kind = kind;
  out.is_first = out.is_last = true;
  return out;
}
constexpr action actions[] = {act(action_kind::forward), act(action_kind::backward), act(action_kind::reduce),
                              act(action_kind::update)};

template <cut Layout> const one_job &make() {
  constexpr const cut_facts &f = facts_of(Layout);
  static const parameter_placement placements[] = {
      {0, f32, f.compute, {0, split_at}, f.master, {0, has_master(Layout) ? master_at : split_at}},
      {1, f32, {}, {0, whole_at}, {}, {0, whole_at}}};
  static const gradient_entry gradients[] = {{0, f.gradient, {0, gradient_at}}};
  static const chunk_entry chunks[] = {{0, 1, forward, backward<Layout>, nullptr, reduce_gradients, update<Layout>}};
  static const one_job out = [] {
    program p = {};
    p.arenas = {arenas, 1};
    p.streams = {streams, 1};
    p.parameters = {placements, 2};
    p.states = {states, 1};
    p.gradients = {gradients, 1};
    p.inputs = {input_placements, 1};
    p.scalars = {scalars, 1};
    p.loss = {0, loss_at};
    p.grad_norm = {0, norm_at};
    p.chunks = {chunks, 1};
    p.actions = {actions, 4};
    job j = {};
    j.model = "sharded";
    j.plan_hash = "4567";
    j.precision = "f32";
    j.kind = optimizer::sgd;
    j.parameters = {parameters, 2};
    j.inputs = {inputs, 1};
    return one_job(f.axes, p, j);
  }();
  return out;
}

} // namespace

const one_job &sharded_program(cut layout) {
  switch (layout) {
  case cut::whole:
    return make<cut::whole>();
  case cut::columns:
    return make<cut::columns>();
  case cut::heads:
    return make<cut::heads>();
  case cut::rows_and_inner:
    return make<cut::rows_and_inner>();
  case cut::own_master:
    return make<cut::own_master>();
  case cut::own_gradient:
    return make<cut::own_gradient>();
  case cut::flat:
    return make<cut::flat>();
  case cut::flat_heads:
    break;
  }
  return make<cut::flat_heads>();
}

run_result run(const job &j, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"train", "--threads", "1"});
  std::vector<char *> argv;
  for (std::string &flag : flags)
    argv.push_back(flag.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run_result out;
  out.code = run_program(j, static_cast<int>(argv.size()), argv.data());
  out.out = testing::internal::GetCapturedStdout();
  out.err = testing::internal::GetCapturedStderr();
  return out;
}

} // namespace windlass::rt::test
