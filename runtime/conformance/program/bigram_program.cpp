#include "test_programs.h"

#include "windlass/rt/context.h"
#include "windlass/rt/kernels.h"

#include <algorithm>
#include <cmath>

namespace windlass::rt::test {

namespace {

constexpr std::int64_t V = bigram_vocabulary, B = bigram_batch, T = bigram_tokens, G = 2;

// The arena, laid out by hand in bytes.
constexpr std::int64_t table_at = 0, table_bytes = V * V * 4, bias_bytes = V * 4;
constexpr std::int64_t table_m_at = table_at + table_bytes, table_v_at = table_m_at + table_bytes;
constexpr std::int64_t bias_at = table_v_at + table_bytes, bias_m_at = bias_at + bias_bytes;
constexpr std::int64_t bias_v_at = bias_m_at + bias_bytes;
constexpr std::int64_t gradient_at = bias_v_at + bias_bytes, bias_gradient_at = gradient_at + table_bytes;
constexpr std::int64_t loss_at = bias_gradient_at + bias_bytes; // reduced together with the gradients
constexpr std::int64_t reduced_elements = V * V + V + 1;
constexpr std::int64_t ids_at = (loss_at + 4 + 63) / 64 * 64, labels_at = ids_at + B * T * 8;
constexpr std::int64_t logits_at = labels_at + B * T * 8, lse_at = logits_at + B * T * V * 4;
constexpr std::int64_t sum_at = lse_at + B * T * 4, count_at = sum_at + 4, dsum_at = count_at + 4;
constexpr std::int64_t norm_at = dsum_at + 4, evaluate_at = norm_at + 4, scale_at = evaluate_at + 4;
constexpr std::int64_t scalars_at = scale_at + 4, arena_bytes = scalars_at + 4 * 10;
constexpr std::int64_t loss_scale_at = scalars_at + 4 * 8, inverse_scale_at = scalars_at + 4 * 9;

view at(context &c, std::int64_t offset, element_type type, std::initializer_list<std::int64_t> sizes) {
  return dense_view(c.at({0, offset}), type, sizes);
}
view floats(context &c, std::int64_t offset, std::initializer_list<std::int64_t> sizes) {
  return at(c, offset, element_type::f32, sizes);
}
float &value(context &c, std::int64_t offset) { return *reinterpret_cast<float *>(c.at({0, offset})); }

status cross_entropy(context &c) {
  stream &s = c.get_stream(0);
  WINDLASS_TRY(embedding(s, floats(c, logits_at, {B, T, V}), floats(c, table_at, {V, V}),
                         at(c, ids_at, element_type::i64, {B, T}), {}, 0));
  float *logits = &value(c, logits_at), *bias = &value(c, bias_at);
  for (std::int64_t i = 0; i < B * T * V; ++i)
    logits[i] += bias[i % V];
  return softmax_cross_entropy(s, floats(c, sum_at, {}), floats(c, count_at, {}), floats(c, lse_at, {B, T}),
                               floats(c, logits_at, {B, T, V}), at(c, labels_at, element_type::i64, {B, T}), -100);
}

status forward(context &c, bool adds, std::int64_t) {
  WINDLASS_TRY(cross_entropy(c));
  float loss = value(c, sum_at) / (static_cast<float>(G) * value(c, count_at));
  value(c, loss_at) = !adds ? loss : value(c, loss_at) + loss;
  return ok_status();
}

/// With `scales`, as f16 would have it: gradients of the logits that are too large are infinite.
template <bool scales> status backward(context &c, bool adds, std::int64_t, std::int64_t, bool) {
  stream &s = c.get_stream(0);
  value(c, dsum_at) = (scales ? value(c, loss_scale_at) : 1) / (static_cast<float>(G) * value(c, count_at));
  view logits = floats(c, logits_at, {B, T, V});
  WINDLASS_TRY(softmax_cross_entropy_grad(s, logits, floats(c, dsum_at, {}), logits,
                                          at(c, labels_at, element_type::i64, {B, T}), floats(c, lse_at, {B, T}),
                                          -100));
  float *dlogits = &value(c, logits_at), *dbias = &value(c, bias_gradient_at);
  if (!adds)
    std::fill(dbias, dbias + V, 0.0f);
  for (std::int64_t i = 0; i < B * T * V && scales; ++i)
    if (std::fabs(dlogits[i]) > 65504)
      dlogits[i] = INFINITY;
  for (std::int64_t i = 0; i < B * T * V; ++i)
    dbias[i % V] += dlogits[i];
  return embedding_grad(s, floats(c, gradient_at, {V, V}), at(c, ids_at, element_type::i64, {B, T}), logits, {}, 0,
                        adds);
}

status reduce_gradients(context &c) {
  WINDLASS_TRY(c.get_stream(0).record(c.get_event(0)));
  WINDLASS_TRY(c.get_stream(1).wait(c.get_event(0)));
  WINDLASS_TRY(
      all_reduce(c.get_stream(1), c.get_communicator(0), floats(c, gradient_at, {reduced_elements}), reduction::sum));
  WINDLASS_TRY(c.get_stream(1).record(c.get_event(1)));
  return c.get_stream(0).wait(c.get_event(1));
}

template <bool scales> status update(context &c) {
  WINDLASS_TRY(c.get_stream(1).synchronize());
  stream &s = c.get_stream(0);
  WINDLASS_TRY(square_sum(s, floats(c, norm_at, {}), floats(c, gradient_at, {V * V + V}), false));
  const float inverse = scales ? value(c, inverse_scale_at) : 1;
  value(c, norm_at) = std::sqrt(value(c, norm_at)) * inverse;
  auto scalar_view = [&](int i) { return floats(c, scalars_at + 4 * i, {}); };
  value(c, scale_at) = std::min(1.0f, value(c, scalars_at + 4 * 7) / (value(c, norm_at) + 1e-6f)) * inverse;
  if (scales && !std::isfinite(value(c, norm_at)))
    value(c, scale_at) = NAN;
  auto apply = [&](std::int64_t w, std::int64_t m, std::int64_t v, std::int64_t g, std::int64_t size, bool decays) {
    return adamw(s, floats(c, w, {size}), floats(c, m, {size}), floats(c, v, {size}), view(), floats(c, g, {size}),
                 scalar_view(0), scalar_view(1), scalar_view(2), scalar_view(3), scalar_view(4), scalar_view(5),
                 scalar_view(6), floats(c, scale_at, {}), decays ? decay_mode::decoupled : decay_mode::none);
  };
  WINDLASS_TRY(apply(table_at, table_m_at, table_v_at, gradient_at, V * V, true));
  return apply(bias_at, bias_m_at, bias_v_at, bias_gradient_at, V, false);
}

status evaluate(context &c) {
  WINDLASS_TRY(cross_entropy(c));
  value(c, evaluate_at) = value(c, sum_at) / value(c, count_at);
  return ok_status();
}

const std::int64_t table_sizes[] = {V, V}, bias_sizes[] = {V}, token_sizes[] = {B, T};
constexpr element_type f32 = element_type::f32, i64 = element_type::i64;
const source packed = {source_kind::packed, nullptr, 0, 0, element_type::f32};
const parameter_entry parameters[] = {{"table", f32, {table_sizes, 2}, packed, initializer::normal, true, true},
                                      {"bias", f32, {bias_sizes, 1}, packed, initializer::zeros, true, false}};
const input_entry inputs[] = {{"ids", i64, {token_sizes, 2}, feed::tokens, V},
                              {"labels", i64, {token_sizes, 2}, feed::next, V}};
const arena_entry arenas[] = {{memory_kind::device, arena_bytes, "device"}};
const parameter_placement placements[] = {{0, f32, {}, {0, table_at}, {}, {0, table_at}},
                                          {1, f32, {}, {0, bias_at}, {}, {0, bias_at}}};
const state_entry states[] = {{0, "exp_avg", {0, table_m_at}},
                              {0, "exp_avg_sq", {0, table_v_at}},
                              {1, "exp_avg", {0, bias_m_at}},
                              {1, "exp_avg_sq", {0, bias_v_at}}};
const gradient_entry gradients[] = {{0, {}, {0, gradient_at}}, {1, {}, {0, bias_gradient_at}}};
const input_placement input_placements[] = {{0, 0, {}, {0, ids_at}, 0}, {1, 0, {}, {0, labels_at}, 0}};
const scalar_entry scalars[] = {
    {scalar::learning_rate, {0, scalars_at}},         {scalar::one_minus_beta1, {0, scalars_at + 4}},
    {scalar::one_minus_beta2, {0, scalars_at + 8}},   {scalar::epsilon, {0, scalars_at + 12}},
    {scalar::weight_decay, {0, scalars_at + 16}},     {scalar::bias_correction1, {0, scalars_at + 20}},
    {scalar::bias_correction2, {0, scalars_at + 24}}, {scalar::clip_norm, {0, scalars_at + 28}},
    {scalar::loss_scale, {0, loss_scale_at}},         {scalar::inverse_loss_scale, {0, inverse_scale_at}}};
const axis one_axis[] = {{"data", 1, axis_role::replica}}, two_axes[] = {{"data", 2, axis_role::replica}};
const std::int32_t data_axes[] = {0};
const stream_entry streams[] = {{stream_kind::compute, "compute"}, {stream_kind::communicator, "over data"}};
const communicator_entry communicators[] = {{{data_axes, 1}, 1}};

/// Two micro-batches of a rank in turn, or one.
constexpr action act(action_kind kind, std::int32_t micro_batch = 0, bool is_first = true, bool is_last = true) {
  action out;
  out.kind = kind;
  out.micro_batch = micro_batch;
  out.is_first = is_first;
  out.is_last = is_last;
  return out;
}
constexpr action repeat_once() {
  action out;
  out.count = 1;
  out.length = 2;
  return out;
}
const action one_actions[] = {repeat_once(),
                              act(action_kind::forward, 0, true, false),
                              act(action_kind::backward, 0, true, false),
                              act(action_kind::forward, 1, false, true),
                              act(action_kind::backward, 1, false, true),
                              act(action_kind::reduce, 1),
                              act(action_kind::update)};
const action two_actions[] = {act(action_kind::forward), act(action_kind::backward), act(action_kind::reduce),
                              act(action_kind::update)};

template <bool scales> one_job make(span<axis> axes, span<action> actions) {
  static const chunk_entry chunks[] = {
      {0, 1, forward, backward<scales>, nullptr, reduce_gradients, update<scales>, nullptr, evaluate}};
  static const action evaluation[] = {act(action_kind::evaluate)};
  program p = {};
  p.arenas = {arenas, 1};
  p.scratch_bytes = 1 << 20;
  p.streams = {streams, 2};
  p.events = 2;
  p.communicators = {communicators, 1};
  p.parameters = {placements, 2};
  p.states = {states, 4};
  p.gradients = {gradients, 2};
  p.inputs = {input_placements, 2};
  p.scalars = {scalars, scales ? 10 : 8};
  p.loss = {0, loss_at};
  p.grad_norm = {0, norm_at};
  p.evaluated = {0, evaluate_at};
  p.chunks = {chunks, 1};
  p.actions = actions;
  p.evaluation = {evaluation, 1};
  job j = {};
  j.model = "bigram";
  j.plan_hash = "0123";
  j.precision = scales ? "f16" : "f32";
  j.clips = true;
  j.micro_batches = G;
  j.parameters = {parameters, 2};
  j.inputs = {inputs, 2};
  return one_job(axes, p, j);
}

} // namespace

const one_job &bigram_program(int groups) {
  static const one_job one = make<false>({one_axis, 1}, {one_actions, 7});
  static const one_job two = make<false>({two_axes, 1}, {two_actions, 4});
  return groups == 1 ? one : two;
}

const one_job &scaled_bigram_program(int groups) {
  static const one_job one = make<true>({one_axis, 1}, {one_actions, 7});
  static const one_job two = make<true>({two_axes, 1}, {two_actions, 4});
  return groups == 1 ? one : two;
}

} // namespace windlass::rt::test
