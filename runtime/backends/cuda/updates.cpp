// The optimizer steps. Their scalars lie in device memory, where each thread reads them.
#include "kernel.h"

#include "windlass/rt/detail/convert.h"
#include "windlass/rt/detail/updates.h"

namespace windlass::rt {

namespace cuda {
namespace {

using detail::adamw_scalars;
using detail::bf16;
using detail::f16;
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

struct sgd_element {
  using outputs = detail::sgd_step::outputs;
  using inputs = detail::sgd_step::inputs;
  sgd_scalars of;
  WINDLASS_FN void apply(float &w_out, float &v_out, float w, float v, float g) const {
    w_out = w;
    v_out = v;
    if (!scalar::is_nan(*of.gradient_scale))
      detail::sgd_step(of).apply(w_out, v_out, w, v, g);
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

} // namespace
} // namespace cuda

status adamw(stream &s, const view &weight, const view &exp_avg, const view &exp_avg_sq, const view &rounded,
             const view &gradient, const view &learning_rate, const view &one_minus_beta1, const view &one_minus_beta2,
             const view &epsilon, const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
             const view &gradient_scale, bool decays) {
  using namespace cuda;
  if (!detail::are_updatable(weight, {exp_avg, exp_avg_sq, gradient}, rounded))
    return internal_error("adamw got a weight, state and gradient of different sizes or types");
  const adamw_element f = {{learning_rate.as<const float>(), one_minus_beta1.as<const float>(),
                            one_minus_beta2.as<const float>(), epsilon.as<const float>(),
                            weight_decay.as<const float>(), bias_correction1.as<const float>(),
                            bias_correction2.as<const float>(), gradient_scale.as<const float>(), decays}};
  const work what = {
      "adamw", 0, 2 * bytes_of({weight, exp_avg, exp_avg_sq}) + bytes_of({gradient, rounded}), {weight.elements()}};
  if (rounded.is_absent())
    return submit_map(s, what, f,
                      nest_of<7>({&weight, &exp_avg, &exp_avg_sq, &weight, &exp_avg, &exp_avg_sq, &gradient}));
  return submit_rounding(
      s, what, f, rounded.type,
      nest_of<8>({&weight, &exp_avg, &exp_avg_sq, &rounded, &weight, &exp_avg, &exp_avg_sq, &gradient}));
}

status sgd(stream &s, const view &weight, const view &momentum_buffer, const view &rounded, const view &gradient,
           const view &learning_rate, const view &momentum, const view &weight_decay, const view &gradient_scale,
           bool decays) {
  using namespace cuda;
  if (!detail::are_updatable(weight, {momentum_buffer, gradient}, rounded))
    return internal_error("sgd got a weight, state and gradient of different sizes or types");
  const sgd_element f = {{learning_rate.as<const float>(), momentum.as<const float>(), weight_decay.as<const float>(),
                          gradient_scale.as<const float>(), decays}};
  const work what = {
      "sgd", 0, 2 * bytes_of({weight, momentum_buffer}) + bytes_of({gradient, rounded}), {weight.elements()}};
  if (rounded.is_absent())
    return submit_map(s, what, f, nest_of<5>({&weight, &momentum_buffer, &weight, &momentum_buffer, &gradient}));
  return submit_rounding(s, what, f, rounded.type,
                         nest_of<6>({&weight, &momentum_buffer, &rounded, &weight, &momentum_buffer, &gradient}));
}

} // namespace windlass::rt
