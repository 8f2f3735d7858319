// The optimizer steps, element by element, the same for every back end.
#ifndef WINDLASS_RT_DETAIL_UPDATES_H
#define WINDLASS_RT_DETAIL_UPDATES_H

#include "windlass/rt/kernels.h"
#include "windlass/rt/map.h"

#include <cmath>

namespace windlass::rt::detail {

/// The addresses of the scalars that `adamw` takes as views.
struct adamw_scalars {
  const float *learning_rate, *one_minus_beta1, *one_minus_beta2, *epsilon, *weight_decay, *bias_correction1,
      *bias_correction2, *gradient_scale;
  decay_mode decay;

  adamw_scalars(const view &learning_rate, const view &one_minus_beta1, const view &one_minus_beta2,
                const view &epsilon, const view &weight_decay, const view &bias_correction1,
                const view &bias_correction2, const view &gradient_scale, decay_mode mode)
      : learning_rate(learning_rate.as<const float>()), one_minus_beta1(one_minus_beta1.as<const float>()),
        one_minus_beta2(one_minus_beta2.as<const float>()), epsilon(epsilon.as<const float>()),
        weight_decay(weight_decay.as<const float>()), bias_correction1(bias_correction1.as<const float>()),
        bias_correction2(bias_correction2.as<const float>()), gradient_scale(gradient_scale.as<const float>()),
        decay(mode) {}
};

struct adamw_step {
  using outputs = type_list<float, float, float>;
  using inputs = type_list<float, float, float, float>;
  float keep, added, one_minus_beta1, one_minus_beta2, step_size, root_scale, epsilon, gradient_scale;

  WINDLASS_FN explicit adamw_step(const adamw_scalars &of)
      : keep(of.decay == decay_mode::decoupled ? 1.0f - *of.learning_rate * *of.weight_decay : 1.0f),
        added(of.decay == decay_mode::coupled ? *of.weight_decay : 0.0f), one_minus_beta1(*of.one_minus_beta1),
        one_minus_beta2(*of.one_minus_beta2), step_size(*of.learning_rate / *of.bias_correction1),
        root_scale(1.0f / std::sqrt(*of.bias_correction2)), epsilon(*of.epsilon), gradient_scale(*of.gradient_scale) {}

  WINDLASS_FN void apply(float &w_out, float &m_out, float &v_out, float w, float m, float v, float g) const {
    g = g * gradient_scale + added * w;
    m = m + one_minus_beta1 * (g - m);
    v = v + one_minus_beta2 * (g * g - v);
    w_out = w * keep - step_size * m / (std::sqrt(v) * root_scale + epsilon);
    m_out = m;
    v_out = v;
  }
};

struct lamb_scalars {
  const float *one_minus_beta1, *one_minus_beta2, *epsilon, *weight_decay, *bias_correction1, *bias_correction2,
      *gradient_scale;
  bool decays;

  lamb_scalars(const view &one_minus_beta1, const view &one_minus_beta2, const view &epsilon, const view &weight_decay,
               const view &bias_correction1, const view &bias_correction2, const view &gradient_scale, bool decays)
      : one_minus_beta1(one_minus_beta1.as<const float>()), one_minus_beta2(one_minus_beta2.as<const float>()),
        epsilon(epsilon.as<const float>()), weight_decay(weight_decay.as<const float>()),
        bias_correction1(bias_correction1.as<const float>()), bias_correction2(bias_correction2.as<const float>()),
        gradient_scale(gradient_scale.as<const float>()), decays(decays) {}
};

/// The direction, and the state that it comes from.
struct lamb_step {
  using outputs = type_list<float, float, float>;
  using inputs = type_list<float, float, float, float>;
  float added, one_minus_beta1, one_minus_beta2, mean_scale, root_scale, epsilon, gradient_scale;

  WINDLASS_FN explicit lamb_step(const lamb_scalars &of)
      : added(of.decays ? *of.weight_decay : 0.0f), one_minus_beta1(*of.one_minus_beta1),
        one_minus_beta2(*of.one_minus_beta2), mean_scale(1.0f / *of.bias_correction1),
        root_scale(1.0f / std::sqrt(*of.bias_correction2)), epsilon(*of.epsilon), gradient_scale(*of.gradient_scale) {}

  WINDLASS_FN void apply(float &d_out, float &m_out, float &v_out, float w, float m, float v, float g) const {
    const bool keeps = scalar::is_nan(gradient_scale);
    g *= gradient_scale;
    m_out = keeps ? m : m + one_minus_beta1 * (g - m);
    v_out = keeps ? v : v + one_minus_beta2 * (g * g - v);
    d_out = keeps ? 0.0f : m_out * mean_scale / (std::sqrt(v_out) * root_scale + epsilon) + added * w;
  }
};

struct momentum_scalars {
  const float *momentum, *gradient_scale;
};

/// The new buffer, and the direction.
struct momentum_step {
  using outputs = type_list<float, float>;
  using inputs = type_list<float, float>;
  float momentum, gradient_scale;

  WINDLASS_FN explicit momentum_step(const momentum_scalars &of)
      : momentum(*of.momentum), gradient_scale(*of.gradient_scale) {}

  WINDLASS_FN void apply(float &buffer_out, float &direction, float buffer, float g) const {
    const bool keeps = scalar::is_nan(gradient_scale);
    g *= gradient_scale;
    buffer_out = keeps ? buffer : buffer + (1.0f - momentum) * (g - buffer);
    direction = keeps ? 0.0f : g + momentum * (buffer_out - g);
  }
};

struct descend_scalars {
  const float *rate, *decay;
};

struct descend_step {
  using outputs = type_list<float>;
  using inputs = type_list<float, float>;
  float rate, keep;

  WINDLASS_FN explicit descend_step(const descend_scalars &of) : rate(*of.rate), keep(1.0f - *of.decay) {}

  WINDLASS_FN void apply(float &out, float weight, float direction) const { out = weight * keep - rate * direction; }
};

struct ema_scalars {
  const float *rate;
};

struct ema_step {
  using outputs = type_list<float>;
  using inputs = type_list<float, float>;
  float rate;

  WINDLASS_FN explicit ema_step(const ema_scalars &of) : rate(*of.rate) {}

  WINDLASS_FN void apply(float &out, float average, float weight) const { out = average + rate * (weight - average); }
};

struct lion_scalars {
  const float *learning_rate, *one_minus_beta1, *one_minus_beta2, *weight_decay, *gradient_scale;
  bool decays;
};

struct lion_step {
  using outputs = type_list<float, float>;
  using inputs = type_list<float, float, float>;
  float learning_rate, keep, one_minus_beta1, one_minus_beta2, gradient_scale;

  WINDLASS_FN explicit lion_step(const lion_scalars &of)
      : learning_rate(*of.learning_rate), keep(of.decays ? 1.0f - *of.learning_rate * *of.weight_decay : 1.0f),
        one_minus_beta1(*of.one_minus_beta1), one_minus_beta2(*of.one_minus_beta2), gradient_scale(*of.gradient_scale) {
  }

  WINDLASS_FN void apply(float &w_out, float &m_out, float w, float m, float g) const {
    g *= gradient_scale;
    const float direction = m + one_minus_beta1 * (g - m);
    // A NaN stays visible, and 0 stays 0.
    const float sign = direction > 0.0f ? 1.0f : direction < 0.0f ? -1.0f : direction;
    w_out = w * keep - learning_rate * sign;
    m_out = m + one_minus_beta2 * (g - m);
  }
};

struct sgd_scalars {
  const float *learning_rate, *momentum, *weight_decay, *gradient_scale;
  bool decays;
};

struct sgd_step {
  using outputs = type_list<float, float>;
  using inputs = type_list<float, float, float>;
  float learning_rate, momentum, decay, gradient_scale;

  WINDLASS_FN explicit sgd_step(const sgd_scalars &of)
      : learning_rate(*of.learning_rate), momentum(*of.momentum), decay(of.decays ? *of.weight_decay : 0.0f),
        gradient_scale(*of.gradient_scale) {}

  WINDLASS_FN void apply(float &w_out, float &v_out, float w, float v, float g) const {
    v = momentum * v + (g * gradient_scale + decay * w);
    v_out = v;
    w_out = w - learning_rate * v;
  }
};

template <class T, class... Rest> WINDLASS_FN T first_of(const T &first, const Rest &...) { return first; }

/// A step that also writes its first result, the new weight, as H.
template <class Step, class H, class Outputs = typename Step::outputs, class Inputs = typename Step::inputs>
struct rounding_step;
template <class Step, class H, class... Out, class... In>
struct rounding_step<Step, H, type_list<Out...>, type_list<In...>> {
  using outputs = type_list<Out..., H>;
  using inputs = type_list<In...>;
  Step step;
  WINDLASS_FN void apply(Out &...results, H &rounded, In... arguments) const {
    step.apply(results..., arguments...);
    rounded = H(first_of(results...));
  }
};

/// An AdamW step that reads the gradient as G.
template <class Step, class G> struct reading_gradient {
  using outputs = typename Step::outputs;
  using inputs = type_list<float, float, float, G>;
  Step step;
  WINDLASS_FN void apply(float &w_out, float &m_out, float &v_out, float w, float m, float v, G g) const {
    step.apply(w_out, m_out, v_out, w, m, v, static_cast<float>(g));
  }
};

/// Returns whether all views are f32 with the weight's sizes, and the rounded weight, if there is one, has 16 bits.
inline bool are_updatable(const view &weight, std::initializer_list<view> others, const view &rounded) {
  bool all = weight.type == element_type::f32;
  for (const view &other : others)
    all = all && other.type == element_type::f32 && has_same_sizes(other, weight);
  const bool is_half = rounded.type == element_type::bf16 || rounded.type == element_type::f16;
  return all && (rounded.is_absent() || (is_half && has_same_sizes(rounded, weight)));
}

/// Returns whether AdamW can read the view as the weight's gradient.
inline bool is_gradient_of(const view &weight, const view &gradient) {
  const bool has_type = gradient.type == element_type::f32 || gradient.type == element_type::bf16;
  return has_type && has_same_sizes(gradient, weight);
}

// The work of one command of a step.
inline work lamb_work(const view &direction, const view &weight, const view &exp_avg, const view &exp_avg_sq,
                      const view &gradient) {
  return {
      "lamb", 0, 2 * bytes_of({exp_avg, exp_avg_sq}) + bytes_of({direction, weight, gradient}), {weight.elements()}};
}
inline work momentum_work(const view &direction, const view &buffer, const view &gradient) {
  return {"momentum", 0, 2 * bytes_of({buffer}) + bytes_of({direction, gradient}), {buffer.elements()}};
}
inline work descend_work(const view &weight, const view &rounded, const view &direction) {
  return {"descend", 0, 2 * bytes_of({weight}) + bytes_of({rounded, direction}), {weight.elements()}};
}
inline work ema_work(const view &average, const view &weight) {
  return {"ema", 0, 2 * bytes_of({average}) + bytes_of({weight}), {average.elements()}};
}

/// Returns the work of one command that updates all of the parameters.
inline work work_of(const updated_parameters &parameters) {
  work what;
  what.name = "adamw";
  for (std::int32_t i = 0; i < parameters.count; ++i)
    what.sizes[0] += parameters.of[i].elements;
  const int rounded_bytes = parameters.rounded == element_type::f32 ? 0 : 2;
  what.bytes = what.sizes[0] * (6 * 4 + size_of(parameters.gradients) + rounded_bytes);
  return what;
}

} // namespace windlass::rt::detail

#endif
