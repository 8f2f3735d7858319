// A bigram language model cut into two chunks, whose activation and gradient pass between two positions.
#include "test_programs.h"

#include "windlass/rt/emitted.h"

#include <algorithm>
#include <cmath>

namespace windlass::rt::test {

namespace {

constexpr std::int64_t V = bigram_vocabulary, B = bigram_batch, T = bigram_tokens;

// The arena of each position, laid out by hand in bytes: what is there once, then what each slot has.
constexpr std::int64_t table_at = 0, table_bytes = V * V * 4, bias_bytes = V * 4;
constexpr std::int64_t table_m_at = table_at + table_bytes, table_v_at = table_m_at + table_bytes;
constexpr std::int64_t bias_at = table_v_at + table_bytes, bias_m_at = bias_at + bias_bytes;
constexpr std::int64_t bias_v_at = bias_m_at + bias_bytes, gradient_at = bias_v_at + bias_bytes;
constexpr std::int64_t bias_gradient_at = gradient_at + table_bytes, loss_at = bias_gradient_at + bias_bytes;
constexpr std::int64_t sum_at = loss_at + 4, count_at = sum_at + 4, dsum_at = count_at + 4, norm_at = dsum_at + 4;
constexpr std::int64_t squares_at = norm_at + 4, evaluated_at = squares_at + 4, scale_at = evaluated_at + 4;
constexpr std::int64_t scalars_at = scale_at + 4, once_bytes = (scalars_at + 4 * 8 + 63) / 64 * 64;
constexpr std::int64_t ids_at = once_bytes, labels_at = ids_at + B * T * 8, hidden_at = labels_at + B * T * 8;
constexpr std::int64_t dhidden_at = hidden_at + B * T * V * 4, lse_at = dhidden_at + B * T * V * 4;
constexpr std::int64_t slot_bytes = lse_at + B * T * 4 - once_bytes, slots = 2;
constexpr std::int64_t arena_bytes = once_bytes + slots * slot_bytes;

// Streams by number; 0 is that of kernels.
constexpr std::int32_t over_data = 1, over_positions = 2, messages = 3;

view floats(context &c, std::int64_t offset, std::initializer_list<std::int64_t> sizes) {
  return view_at(c, {0, offset}, element_type::f32, sizes);
}
view tokens(context &c, std::int64_t offset) { return view_at(c, {0, offset}, element_type::i64, {B, T}); }
float &value(context &c, std::int64_t offset) { return *floats(c, offset, {}).as<float>(); }

/// Chunk 0: hidden = table[ids].
status embed(context &c, bool, std::int64_t slot) {
  const std::int64_t at = slot * slot_bytes;
  return embedding(c.compute(), floats(c, hidden_at + at, {B, T, V}), floats(c, table_at, {V, V}),
                   tokens(c, ids_at + at), {}, 0);
}

status embed_backward(context &c, bool adds, std::int64_t slot, std::int64_t, bool) {
  const std::int64_t at = slot * slot_bytes;
  return embedding_grad(c.compute(), floats(c, gradient_at, {V, V}), tokens(c, ids_at + at),
                        floats(c, dhidden_at + at, {B, T, V}), {}, 0, adds);
}

/// The cross entropy of hidden + bias; the logits are where their gradient will be.
status cross_entropy(context &c, std::int64_t at) {
  const float *hidden = &value(c, hidden_at + at), *bias = &value(c, bias_at);
  float *logits = &value(c, dhidden_at + at);
  for (std::int64_t i = 0; i < B * T * V; ++i)
    logits[i] = hidden[i] + bias[i % V];
  return softmax_cross_entropy(c.compute(), floats(c, sum_at, {}), floats(c, count_at, {}),
                               floats(c, lse_at + at, {B, T}), floats(c, dhidden_at + at, {B, T, V}),
                               tokens(c, labels_at + at), -100);
}

/// Chunk 1; G micro-batches in all.
template <int G> status predict(context &c, bool adds, std::int64_t slot) {
  WINDLASS_TRY(cross_entropy(c, slot * slot_bytes));
  const float loss = value(c, sum_at) / (static_cast<float>(G) * value(c, count_at));
  value(c, loss_at) = !adds ? loss : value(c, loss_at) + loss;
  return ok_status();
}

template <int G> status predict_backward(context &c, bool adds, std::int64_t slot, std::int64_t, bool) {
  const std::int64_t at = slot * slot_bytes;
  value(c, dsum_at) = 1 / (static_cast<float>(G) * static_cast<float>(B * T));
  const view logits = floats(c, dhidden_at + at, {B, T, V});
  WINDLASS_TRY(softmax_cross_entropy_grad(c.compute(), logits, floats(c, dsum_at, {}), logits,
                                          tokens(c, labels_at + at), floats(c, lse_at + at, {B, T}), -100));
  float *dbias = &value(c, bias_gradient_at);
  if (!adds)
    std::fill(dbias, dbias + V, 0.0f);
  for (std::int64_t i = 0; i < B * T * V; ++i)
    dbias[i % V] += logits.as<float>()[i];
  return ok_status();
}

/// Sums over a communicator, on its stream; the compute stream waits for it.
status sum_over(context &c, std::int32_t stream, std::int32_t group, const view &data) {
  WINDLASS_TRY(record_event(c.compute(), event_of(c, 0)));
  WINDLASS_TRY(wait_event(stream_of(c, stream), event_of(c, 0)));
  WINDLASS_TRY(all_reduce(stream_of(c, stream), communicator_of(c, group), data, reduction::sum));
  WINDLASS_TRY(record_event(stream_of(c, stream), event_of(c, 1)));
  return wait_event(c.compute(), event_of(c, 1));
}

status reduce_table(context &c) { return sum_over(c, over_data, 0, floats(c, gradient_at, {V * V})); }
/// And the loss.
status reduce_bias(context &c) { return sum_over(c, over_data, 0, floats(c, bias_gradient_at, {V + 1})); }

/// The norm of all gradients, and what clipping multiplies them by: after the chunks of this position are reduced.
template <bool has_table, bool has_bias> status find_scale(context &c) {
  value(c, squares_at) = 0;
  if (has_table)
    WINDLASS_TRY(square_sum(c.compute(), floats(c, squares_at, {}), floats(c, gradient_at, {V * V}), false));
  if (has_bias) {
    WINDLASS_TRY(square_sum(c.compute(), floats(c, norm_at, {}), floats(c, bias_gradient_at, {V}), false));
    value(c, squares_at) += value(c, norm_at);
  }
  WINDLASS_TRY(sum_over(c, over_positions, 1, floats(c, squares_at, {})));
  value(c, norm_at) = std::sqrt(value(c, squares_at));
  value(c, scale_at) = std::min(1.0f, value(c, scalars_at + 4 * 7) / (value(c, norm_at) + 1e-6f));
  return ok_status();
}

status apply(context &c, std::int64_t w, std::int64_t m, std::int64_t v, std::int64_t g, std::int64_t size) {
  const auto scalar_view = [&](int i) { return floats(c, scalars_at + 4 * i, {}); };
  return adamw(c.compute(), floats(c, w, {size}), floats(c, m, {size}), floats(c, v, {size}), view(),
               floats(c, g, {size}), scalar_view(0), scalar_view(1), scalar_view(2), scalar_view(3), scalar_view(4),
               scalar_view(5), scalar_view(6), floats(c, scale_at, {}), decay_mode::decoupled);
}

template <bool has_bias> status update_table(context &c) {
  WINDLASS_TRY((find_scale<true, has_bias>(c)));
  return apply(c, table_at, table_m_at, table_v_at, gradient_at, V * V);
}

/// In one position the table comes first.
template <bool has_table> status update_bias(context &c) {
  if (!has_table)
    WINDLASS_TRY((find_scale<false, true>(c)));
  return apply(c, bias_at, bias_m_at, bias_v_at, bias_gradient_at, V);
}

status evaluate_table(context &c) { return embed(c, false, 0); }

status evaluate_bias(context &c) {
  WINDLASS_TRY(cross_entropy(c, 0));
  value(c, evaluated_at) = value(c, sum_at) / value(c, count_at);
  return ok_status();
}

const std::int64_t table_sizes[] = {V, V}, bias_sizes[] = {V}, token_sizes[] = {B, T}, hidden_sizes[] = {B, T, V};
constexpr element_type f32 = element_type::f32, i64 = element_type::i64;
const parameter_entry parameters[] = {{"table", f32, {table_sizes, 2}, {}, initializer::normal, true, true},
                                      {"bias", f32, {bias_sizes, 1}, {}, initializer::zeros, true, true}};
const input_entry inputs[] = {{"ids", i64, {token_sizes, 2}, feed::tokens, V},
                              {"labels", i64, {token_sizes, 2}, feed::next, V}};
const arena_entry arenas[] = {{memory_kind::device, arena_bytes, "device"}};
const stream_entry streams[] = {{stream_kind::compute, "compute"},
                                {stream_kind::communicator, "over data"},
                                {stream_kind::communicator, "over positions"},
                                {stream_kind::peer, "messages"}};
const std::int32_t data_axes[] = {0};
const std::int32_t all_positions[] = {0, 1};
/// The communicators of a job of one position, and of one of two.
const communicator_entry communicators[2][2] = {
    {{{data_axes, 1}, over_data}, {{}, over_positions, false, {all_positions, 1}}},
    {{{data_axes, 1}, over_data}, {{}, over_positions, false, {all_positions, 2}}}};
// The first row is of chunk 0, the second of chunk 1.
const parameter_placement placements[] = {{0, f32, {}, {0, table_at}, {}, {0, table_at}},
                                          {1, f32, {}, {0, bias_at}, {}, {0, bias_at}}};
const state_entry states[] = {{0, "exp_avg", {0, table_m_at}},
                              {0, "exp_avg_sq", {0, table_v_at}},
                              {1, "exp_avg", {0, bias_m_at}},
                              {1, "exp_avg_sq", {0, bias_v_at}}};
const gradient_entry gradients[] = {{0, {}, {0, gradient_at}}, {1, {}, {0, bias_gradient_at}}};
const input_placement input_placements[] = {{0, 0, {}, {0, ids_at}, slot_bytes},
                                            {1, 1, {}, {0, labels_at}, slot_bytes}};
const scalar_entry scalars[] = {
    {scalar::learning_rate, {0, scalars_at}},         {scalar::one_minus_beta1, {0, scalars_at + 4}},
    {scalar::one_minus_beta2, {0, scalars_at + 8}},   {scalar::epsilon, {0, scalars_at + 12}},
    {scalar::weight_decay, {0, scalars_at + 16}},     {scalar::bias_correction1, {0, scalars_at + 20}},
    {scalar::bias_correction2, {0, scalars_at + 24}}, {scalar::clip_norm, {0, scalars_at + 28}}};
template <int G, bool is_alone>
const chunk_entry chunks[] = {
    {0, slots, embed, embed_backward, nullptr, reduce_table, update_table<is_alone>, nullptr, evaluate_table},
    {1, slots, predict<G>, predict_backward<G>, nullptr, reduce_bias, update_bias<is_alone>, nullptr, evaluate_bias}};
const peer_entry peers[] = {{1, messages}, {0, messages}};
const message_entry message_rows[] = {
    {direction::send, 0, 1, 0, f32, {hidden_sizes, 3}, {}, {0, hidden_at}, slot_bytes},
    {direction::receive, 0, 1, 0, f32, {hidden_sizes, 3}, {}, {0, dhidden_at}, slot_bytes},
    {direction::receive, 1, 0, 0, f32, {hidden_sizes, 3}, {}, {0, hidden_at}, slot_bytes},
    {direction::send, 1, 0, 0, f32, {hidden_sizes, 3}, {}, {0, dhidden_at}, slot_bytes}};

/// An action of one micro-batch, which has a slot by its parity.
action act(action_kind kind, std::int32_t chunk, std::int32_t micro_batch) {
  action out;
  out.kind = kind;
  out.chunk = chunk;
  const bool is_message = kind == action_kind::send || kind == action_kind::receive;
  out.peer_chunk = is_message ? 1 - chunk : -1;
  out.micro_batch = micro_batch;
  out.slot = micro_batch % 2;
  out.is_first = micro_batch == 0;
  out.is_last = micro_batch == 3;
  return out;
}

/// Actions as letters with a micro-batch each: forward, backward, evaluate, send, receive.
std::vector<action> actions_of(std::int32_t chunk, const char *letters) {
  std::vector<action> out;
  for (const char *at = letters; *at != 0; at += 2)
    out.push_back(act(*at == 'f'   ? action_kind::forward
                      : *at == 'b' ? action_kind::backward
                      : *at == 'e' ? action_kind::evaluate
                      : *at == 's' ? action_kind::send
                                   : action_kind::receive,
                      chunk, at[1] - '0'));
  return out;
}

std::vector<action> operator+(std::vector<action> first, const std::vector<action> &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void finish(std::vector<action> &step, std::initializer_list<std::int32_t> of) {
  for (const action_kind kind : {action_kind::reduce, action_kind::update})
    for (const std::int32_t chunk : of) {
      action out;
      out.kind = kind;
      out.chunk = chunk;
      step.push_back(out);
    }
}

/// Four micro-batches of each rank one after the other: both forwards, then both backwards. The first of them, which
/// adds to nothing, is no turn of the repeat.
std::vector<action> sequential_step() {
  std::vector<action> step;
  const auto add = [&](std::int32_t micro_batch, std::int32_t per_turn) {
    for (const auto &[kind, chunk] : {std::pair(action_kind::forward, 0), std::pair(action_kind::forward, 1),
                                      std::pair(action_kind::backward, 1), std::pair(action_kind::backward, 0)}) {
      step.push_back(act(kind, chunk, micro_batch));
      step.back().per_turn = per_turn;
    }
  };
  add(0, 0);
  action repeat;
  repeat.count = 3;
  repeat.length = 4;
  step.push_back(repeat);
  add(1, 1);
  finish(step, {0, 1});
  return step;
}

/// 1F1B with two micro-batches in flight.
std::vector<action> first_step() {
  std::vector<action> step = actions_of(0, "f0s0f1s1r0b0f2s2r1b1f3s3r2b2r3b3");
  finish(step, {0});
  return step;
}
std::vector<action> second_step() {
  std::vector<action> step = actions_of(1, "r0f0b0r1s0f1b1r2s1f2b2r3s2f3b3s3");
  finish(step, {1});
  return step;
}

template <class T> span<T> part(const T *rows, std::int64_t first, std::int64_t count) { return {rows + first, count}; }

/// The rows of the chunks from `first` on.
template <int G, bool has_table, bool has_bias> program make(const std::vector<action> &step) {
  constexpr std::int64_t first = has_table ? 0 : 1, count = has_table && has_bias ? 2 : 1;
  program p;
  p.arenas = {arenas, 1};
  p.scratch_bytes = 1 << 20;
  p.streams = {streams, count == 2 ? 3 : 4};
  p.events = 2;
  p.communicators = {communicators[count == 2 ? 0 : 1], 2};
  p.parameters = part(placements, first, count);
  p.states = part(states, 2 * first, 2 * count);
  p.gradients = part(gradients, first, count);
  p.inputs = part(input_placements, first, count);
  p.scalars = {scalars, 8};
  if (count == 1) {
    p.peers = part(peers, first, 1);
    p.messages = part(message_rows, 2 * first, 2);
  }
  if (has_bias) {
    p.loss = {0, loss_at};
    p.evaluated = {0, evaluated_at};
  }
  p.grad_norm = {0, norm_at};
  p.chunks = part(chunks<G, count == 2>, first, count);
  p.actions = {step.data(), static_cast<std::int64_t>(step.size())};
  // Between two positions the hidden values go through a message.
  static const std::vector<action> evaluation = count == 2  ? actions_of(0, "e0") + actions_of(1, "e0")
                                                : has_table ? actions_of(0, "e0s0")
                                                            : actions_of(1, "r0e0");
  p.evaluation = {evaluation.data(), static_cast<std::int64_t>(evaluation.size())};
  return p;
}

template <int groups> const job &make_job(int positions) {
  static const axis axes[] = {{"data", groups, axis_role::replica}};
  static const std::vector<action> steps[] = {sequential_step(), first_step(), second_step()};
  constexpr int G = 4 * groups;
  static const program programs[] = {make<G, true, true>(steps[0]), make<G, true, false>(steps[1]),
                                     make<G, false, true>(steps[2])};
  static const position_entry one[] = {{{axes, 1}, 0, groups, &programs[0]}};
  static const position_entry two[] = {{{axes, 1}, 0, groups, &programs[1]}, {{axes, 1}, groups, groups, &programs[2]}};
  const auto make = [](span<position_entry> its) {
    job j;
    j.version = job_version;
    j.model = "pipeline";
    j.plan_hash = "cdef";
    j.precision = "f32";
    j.clips = true;
    j.micro_batches = G;
    j.parameters = {parameters, 2};
    j.inputs = {inputs, 2};
    j.positions = its;
    return j;
  };
  static const job of_one = make({one, 1}), of_two = make({two, 2});
  return positions == 1 ? of_one : of_two;
}

} // namespace

const job &pipeline_job(int positions, int groups) {
  return groups == 1 ? make_job<1>(positions) : make_job<2>(positions);
}

} // namespace windlass::rt::test
