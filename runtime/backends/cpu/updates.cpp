// The optimizer steps.
#include "windlass/rt/detail/host_updates.h"

namespace windlass::rt {

status adamw(stream &s, const view &weight, const view &exp_avg, const view &exp_avg_sq, const view &rounded,
             const view &gradient, const view &learning_rate, const view &one_minus_beta1, const view &one_minus_beta2,
             const view &epsilon, const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
             const view &gradient_scale, decay_mode decay) {
  return detail::adamw_on_host(s, weight, exp_avg, exp_avg_sq, rounded, gradient, learning_rate, one_minus_beta1,
                               one_minus_beta2, epsilon, weight_decay, bias_correction1, bias_correction2,
                               gradient_scale, decay);
}

status adamw_list(stream &s, const updated_parameters &parameters, const view &learning_rate,
                  const view &one_minus_beta1, const view &one_minus_beta2, const view &epsilon,
                  const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
                  const view &gradient_scale, decay_mode decay) {
  return detail::adamw_list_on_host(s, parameters, learning_rate, one_minus_beta1, one_minus_beta2, epsilon,
                                    weight_decay, bias_correction1, bias_correction2, gradient_scale, decay);
}

status lamb(stream &s, const view &direction, const view &weight, const view &exp_avg, const view &exp_avg_sq,
            const view &gradient, const view &one_minus_beta1, const view &one_minus_beta2, const view &epsilon,
            const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
            const view &gradient_scale, bool decays) {
  return detail::lamb_on_host(s, direction, weight, exp_avg, exp_avg_sq, gradient,
                              {one_minus_beta1, one_minus_beta2, epsilon, weight_decay, bias_correction1,
                               bias_correction2, gradient_scale, decays});
}

status momentum(stream &s, const view &direction, const view &buffer, const view &gradient, const view &momentum,
                const view &gradient_scale) {
  return detail::momentum_on_host(s, direction, buffer, gradient,
                                  {momentum.as<const float>(), gradient_scale.as<const float>()});
}

status descend(stream &s, const view &weight, const view &rounded, const view &direction, const view &rate,
               const view &decay) {
  return detail::descend_on_host(s, weight, rounded, direction, {rate.as<const float>(), decay.as<const float>()});
}

status ema(stream &s, const view &average, const view &weight, const view &rate) {
  return detail::ema_on_host(s, average, weight, rate);
}

status lion(stream &s, const view &weight, const view &exp_avg, const view &rounded, const view &gradient,
            const view &learning_rate, const view &one_minus_beta1, const view &one_minus_beta2,
            const view &weight_decay, const view &gradient_scale, bool decays) {
  return detail::lion_on_host(s, weight, exp_avg, rounded, gradient, learning_rate, one_minus_beta1, one_minus_beta2,
                              weight_decay, gradient_scale, decays);
}

status sgd(stream &s, const view &weight, const view &momentum_buffer, const view &rounded, const view &gradient,
           const view &learning_rate, const view &momentum, const view &weight_decay, const view &gradient_scale,
           bool decays) {
  return detail::sgd_on_host(s, weight, momentum_buffer, rounded, gradient, learning_rate, momentum, weight_decay,
                             gradient_scale, decays);
}

} // namespace windlass::rt
