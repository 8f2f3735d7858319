// The optimizer steps. Their scalars lie in device memory, where each thread reads them.
#include "kernel.h"

#include "windlass/rt/detail/convert.h"
#include "windlass/rt/detail/host_updates.h"
#include "windlass/rt/detail/updates.h"

namespace windlass::rt {

namespace cuda {
namespace {

using detail::adamw_scalars;
using detail::bf16;
using detail::f16;
using detail::lion_scalars;
using detail::nest_of;
using detail::rounding_step;
using detail::sgd_scalars;

// Where gradients of a scaled loss have overflowed, weight and state stay.

struct adamw_element {
  using outputs = detail::adamw_step::outputs;
  using inputs = detail::adamw_step::inputs;
  adamw_scalars of;
  WINDLASS_FN void apply(float &w_out, float &m_out, float &v_out, float w, float m, float v, float g) const {
    w_out = w;
    m_out = m;
    v_out = v;
    if (!scalar::is_nan(*of.gradient_scale))
      detail::adamw_step(of).apply(w_out, m_out, v_out, w, m, v, g);
  }
};

/// A step that reads its scalars where it computes an element.
template <class Step, class Scalars> struct step_element {
  using outputs = typename Step::outputs;
  using inputs = typename Step::inputs;
  Scalars of;
  template <class... Values> WINDLASS_FN void apply(Values &&...values) const { Step(of).apply(values...); }
};

/// A step with one tensor of state.
template <class Step, class Scalars> struct average_element {
  using outputs = typename Step::outputs;
  using inputs = typename Step::inputs;
  Scalars of;
  WINDLASS_FN void apply(float &w_out, float &v_out, float w, float v, float g) const {
    w_out = w;
    v_out = v;
    if (!scalar::is_nan(*of.gradient_scale))
      Step(of).apply(w_out, v_out, w, v, g);
  }
};

template <class F, int N> status submit_map(stream &s, const work &what, const F &f, const detail::loop_nest<N> &nest) {
  return s.submit(what, [f, nest, &s]() -> status { return detail::map_on_device(s, f, nest); });
}

/// `nest` has the rounded weight, of either type, behind the other results.
template <class Element, int N>
status submit_rounding(stream &s, const work &what, const Element &f, element_type type,
                       const detail::loop_nest<N> &nest) {
  return type == element_type::bf16 ? submit_map(s, what, rounding_step<Element, bf16>{f}, nest)
                                    : submit_map(s, what, rounding_step<Element, f16>{f}, nest);
}

/// Submits a step with one tensor of state.
template <class Step, class Scalars>
status submit_step(stream &s, const char *name, const Scalars &of, const view &weight, const view &state,
                   const view &rounded, const view &gradient) {
  const average_element<Step, Scalars> f = {of};
  const work what = {name, 0, 2 * bytes_of({weight, state}) + bytes_of({gradient, rounded}), {weight.elements()}};
  if (rounded.is_absent())
    return submit_map(s, what, f, nest_of<5>({&weight, &state, &weight, &state, &gradient}));
  return submit_rounding(s, what, f, rounded.type, nest_of<6>({&weight, &state, &rounded, &weight, &state, &gradient}));
}

// Several parameters in one launch: blocks walk over chunks of all of them.

constexpr int pack_elements = 4;
constexpr std::int64_t chunk_elements = std::int64_t(block_threads) * pack_elements * 4;

__host__ __device__ inline std::int64_t count_chunks(const updated_parameters::parameter &p) {
  return (p.elements + chunk_elements - 1) / chunk_elements;
}

/// Whether packs of the parameter's elements are aligned, of which f32 has 16 bytes and 16 bits have 8.
template <class G> __device__ inline bool has_aligned_packs(const updated_parameters::parameter &p) {
  const auto all = reinterpret_cast<std::uintptr_t>(p.weight) | reinterpret_cast<std::uintptr_t>(p.exp_avg) |
                   reinterpret_cast<std::uintptr_t>(p.exp_avg_sq) |
                   sizeof(float) / sizeof(G) * reinterpret_cast<std::uintptr_t>(p.gradient) |
                   2 * reinterpret_cast<std::uintptr_t>(p.rounded);
  return all % 16 == 0;
}

/// Elements [W i, W i + W). H is void where no weight is rounded, G the type of the gradient.
template <class H, class G, int W>
__device__ inline void update_pack(const updated_parameters::parameter &p, const detail::adamw_step &step, bool keeps,
                                   std::int64_t i) {
  using floats = detail::pack<float, W>;
  floats w = reinterpret_cast<const floats *>(p.weight)[i];
  if (!keeps) {
    floats m = reinterpret_cast<const floats *>(p.exp_avg)[i], v = reinterpret_cast<const floats *>(p.exp_avg_sq)[i];
    const auto g = reinterpret_cast<const detail::pack<G, W> *>(p.gradient)[i];
    for (int k = 0; k < W; ++k)
      step.apply(w.of[k], m.of[k], v.of[k], w.of[k], m.of[k], v.of[k], static_cast<float>(g.of[k]));
    reinterpret_cast<floats *>(p.weight)[i] = w;
    reinterpret_cast<floats *>(p.exp_avg)[i] = m;
    reinterpret_cast<floats *>(p.exp_avg_sq)[i] = v;
  }
  if constexpr (!std::is_void_v<H>) {
    detail::pack<H, W> rounded;
    for (int k = 0; k < W; ++k)
      rounded.of[k] = H(w.of[k]);
    reinterpret_cast<detail::pack<H, W> *>(p.rounded)[i] = rounded;
  }
}

template <class H, class G> __global__ void update_kernel(updated_parameters parameters, adamw_scalars of) {
  const detail::adamw_step step(of);
  const bool keeps = scalar::is_nan(step.gradient_scale);
  std::int64_t chunk = blockIdx.x; // behind those of earlier parameters
  for (int i = 0; i < parameters.count; ++i) {
    const updated_parameters::parameter p = parameters.of[i];
    const std::int64_t chunks = count_chunks(p);
    const bool has_packs = has_aligned_packs<G>(p);
    for (; chunk < chunks; chunk += gridDim.x) {
      const std::int64_t begin = chunk * chunk_elements, left = p.elements - begin;
      const std::int64_t end = begin + (left < chunk_elements ? left : chunk_elements);
      // Chunks begin at whole packs.
      const std::int64_t packed = has_packs ? end / pack_elements * pack_elements : begin;
      for (std::int64_t k = begin / pack_elements + threadIdx.x; k < packed / pack_elements; k += block_threads)
        update_pack<H, G, pack_elements>(p, step, keeps, k);
      for (std::int64_t k = packed + threadIdx.x; k < end; k += block_threads)
        update_pack<H, G, 1>(p, step, keeps, k);
    }
    chunk -= chunks;
  }
}

template <class H>
status launch_update(const stream &s, const updated_parameters &parameters, const adamw_scalars &of) {
  std::int64_t chunks = 0;
  for (int i = 0; i < parameters.count; ++i)
    chunks += count_chunks(parameters.of[i]);
  return launch(s, blocks_for(chunks, 1), block_threads,
                parameters.gradients == element_type::bf16 ? update_kernel<H, bf16> : update_kernel<H, float>,
                parameters, of);
}

} // namespace
} // namespace cuda

status adamw(stream &s, const view &weight, const view &exp_avg, const view &exp_avg_sq, const view &rounded,
             const view &gradient, const view &learning_rate, const view &one_minus_beta1, const view &one_minus_beta2,
             const view &epsilon, const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
             const view &gradient_scale, decay_mode decay) {
  if (s.is_on_host())
    return detail::adamw_on_host(s, weight, exp_avg, exp_avg_sq, rounded, gradient, learning_rate, one_minus_beta1,
                                 one_minus_beta2, epsilon, weight_decay, bias_correction1, bias_correction2,
                                 gradient_scale, decay);
  using namespace cuda;
  if (!detail::are_updatable(weight, {exp_avg, exp_avg_sq}, rounded) || !detail::is_gradient_of(weight, gradient))
    return internal_error("adamw got a weight, state and gradient of different sizes or types");
  const adamw_element f = {adamw_scalars(learning_rate, one_minus_beta1, one_minus_beta2, epsilon, weight_decay,
                                         bias_correction1, bias_correction2, gradient_scale, decay)};
  const work what = {
      "adamw", 0, 2 * bytes_of({weight, exp_avg, exp_avg_sq}) + bytes_of({gradient, rounded}), {weight.elements()}};
  const auto run = [&](const auto &element) {
    if (rounded.is_absent())
      return submit_map(s, what, element,
                        nest_of<7>({&weight, &exp_avg, &exp_avg_sq, &weight, &exp_avg, &exp_avg_sq, &gradient}));
    return submit_rounding(
        s, what, element, rounded.type,
        nest_of<8>({&weight, &exp_avg, &exp_avg_sq, &rounded, &weight, &exp_avg, &exp_avg_sq, &gradient}));
  };
  return gradient.type == element_type::bf16 ? run(detail::reading_gradient<adamw_element, bf16>{f}) : run(f);
}

status adamw_list(stream &s, const updated_parameters &parameters, const view &learning_rate,
                  const view &one_minus_beta1, const view &one_minus_beta2, const view &epsilon,
                  const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
                  const view &gradient_scale, decay_mode decay) {
  if (s.is_on_host())
    return detail::adamw_list_on_host(s, parameters, learning_rate, one_minus_beta1, one_minus_beta2, epsilon,
                                      weight_decay, bias_correction1, bias_correction2, gradient_scale, decay);
  const cuda::adamw_scalars of(learning_rate, one_minus_beta1, one_minus_beta2, epsilon, weight_decay, bias_correction1,
                               bias_correction2, gradient_scale, decay);
  return s.submit(detail::work_of(parameters), [parameters, of, &s]() -> status {
    switch (parameters.rounded) {
    case element_type::bf16:
      return cuda::launch_update<detail::bf16>(s, parameters, of);
    case element_type::f16:
      return cuda::launch_update<detail::f16>(s, parameters, of);
    default:
      return cuda::launch_update<void>(s, parameters, of);
    }
  });
}

status lamb(stream &s, const view &direction, const view &weight, const view &exp_avg, const view &exp_avg_sq,
            const view &gradient, const view &one_minus_beta1, const view &one_minus_beta2, const view &epsilon,
            const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
            const view &gradient_scale, bool decays) {
  const detail::lamb_scalars of(one_minus_beta1, one_minus_beta2, epsilon, weight_decay, bias_correction1,
                                bias_correction2, gradient_scale, decays);
  if (s.is_on_host())
    return detail::lamb_on_host(s, direction, weight, exp_avg, exp_avg_sq, gradient, of);
  if (!detail::are_updatable(weight, {direction, exp_avg, exp_avg_sq, gradient}, {}))
    return internal_error("lamb got a weight, direction, state and gradient of different sizes or types");
  return cuda::submit_map(
      s, detail::lamb_work(direction, weight, exp_avg, exp_avg_sq, gradient),
      cuda::step_element<detail::lamb_step, detail::lamb_scalars>{of},
      detail::nest_of<7>({&direction, &exp_avg, &exp_avg_sq, &weight, &exp_avg, &exp_avg_sq, &gradient}));
}

status momentum(stream &s, const view &direction, const view &buffer, const view &gradient, const view &momentum,
                const view &gradient_scale) {
  const detail::momentum_scalars of = {momentum.as<const float>(), gradient_scale.as<const float>()};
  if (s.is_on_host())
    return detail::momentum_on_host(s, direction, buffer, gradient, of);
  if (!detail::are_updatable(buffer, {direction, gradient}, {}))
    return internal_error("momentum got a buffer, direction and gradient of different sizes or types");
  return cuda::submit_map(s, detail::momentum_work(direction, buffer, gradient),
                          cuda::step_element<detail::momentum_step, detail::momentum_scalars>{of},
                          detail::nest_of<4>({&buffer, &direction, &buffer, &gradient}));
}

status descend(stream &s, const view &weight, const view &rounded, const view &direction, const view &rate,
               const view &decay) {
  const detail::descend_scalars of = {rate.as<const float>(), decay.as<const float>()};
  if (s.is_on_host())
    return detail::descend_on_host(s, weight, rounded, direction, of);
  if (!detail::are_updatable(weight, {direction}, rounded))
    return internal_error("descend got a weight and a direction of different sizes or types");
  const cuda::step_element<detail::descend_step, detail::descend_scalars> f = {of};
  const work what = detail::descend_work(weight, rounded, direction);
  if (rounded.is_absent())
    return cuda::submit_map(s, what, f, detail::nest_of<3>({&weight, &weight, &direction}));
  return cuda::submit_rounding(s, what, f, rounded.type, detail::nest_of<4>({&weight, &rounded, &weight, &direction}));
}

status ema(stream &s, const view &average, const view &weight, const view &rate) {
  if (s.is_on_host())
    return detail::ema_on_host(s, average, weight, rate);
  if (!detail::are_updatable(average, {weight}, {}))
    return internal_error("ema got an average and a weight of different sizes or types");
  return cuda::submit_map(s, detail::ema_work(average, weight),
                          cuda::step_element<detail::ema_step, detail::ema_scalars>{{rate.as<const float>()}},
                          detail::nest_of<3>({&average, &average, &weight}));
}

status lion(stream &s, const view &weight, const view &exp_avg, const view &rounded, const view &gradient,
            const view &learning_rate, const view &one_minus_beta1, const view &one_minus_beta2,
            const view &weight_decay, const view &gradient_scale, bool decays) {
  if (s.is_on_host())
    return detail::lion_on_host(s, weight, exp_avg, rounded, gradient, learning_rate, one_minus_beta1, one_minus_beta2,
                                weight_decay, gradient_scale, decays);
  if (!detail::are_updatable(weight, {exp_avg, gradient}, rounded))
    return internal_error("lion got a weight, state and gradient of different sizes or types");
  const cuda::lion_scalars of = {learning_rate.as<const float>(),   one_minus_beta1.as<const float>(),
                                 one_minus_beta2.as<const float>(), weight_decay.as<const float>(),
                                 gradient_scale.as<const float>(),  decays};
  return cuda::submit_step<detail::lion_step>(s, "lion", of, weight, exp_avg, rounded, gradient);
}

status sgd(stream &s, const view &weight, const view &momentum_buffer, const view &rounded, const view &gradient,
           const view &learning_rate, const view &momentum, const view &weight_decay, const view &gradient_scale,
           bool decays) {
  if (s.is_on_host())
    return detail::sgd_on_host(s, weight, momentum_buffer, rounded, gradient, learning_rate, momentum, weight_decay,
                               gradient_scale, decays);
  if (!detail::are_updatable(weight, {momentum_buffer, gradient}, rounded))
    return internal_error("sgd got a weight, state and gradient of different sizes or types");
  const cuda::sgd_scalars of = {learning_rate.as<const float>(), momentum.as<const float>(),
                                weight_decay.as<const float>(), gradient_scale.as<const float>(), decays};
  return cuda::submit_step<detail::sgd_step>(s, "sgd", of, weight, momentum_buffer, rounded, gradient);
}

} // namespace windlass::rt
