// The optimizer steps on the host's threads.
#ifndef WINDLASS_RT_DETAIL_HOST_UPDATES_H
#define WINDLASS_RT_DETAIL_HOST_UPDATES_H

#include "windlass/rt/detail/updates.h"
#include "windlass/rt/kernels.h"

namespace windlass::rt::detail {

// These do what the functions of the same names in kernels.h do; all views are in host memory.
status adamw_on_host(stream &s, const view &weight, const view &exp_avg, const view &exp_avg_sq, const view &rounded,
                     const view &gradient, const view &learning_rate, const view &one_minus_beta1,
                     const view &one_minus_beta2, const view &epsilon, const view &weight_decay,
                     const view &bias_correction1, const view &bias_correction2, const view &gradient_scale,
                     decay_mode decay);
status adamw_list_on_host(stream &s, const updated_parameters &parameters, const view &learning_rate,
                          const view &one_minus_beta1, const view &one_minus_beta2, const view &epsilon,
                          const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
                          const view &gradient_scale, decay_mode decay);
status lamb_on_host(stream &s, const view &direction, const view &weight, const view &exp_avg, const view &exp_avg_sq,
                    const view &gradient, const lamb_scalars &of);
status momentum_on_host(stream &s, const view &direction, const view &buffer, const view &gradient,
                        const momentum_scalars &of);
status descend_on_host(stream &s, const view &weight, const view &rounded, const view &direction,
                       const descend_scalars &of);
status ema_on_host(stream &s, const view &average, const view &weight, const view &rate);
status lion_on_host(stream &s, const view &weight, const view &exp_avg, const view &rounded, const view &gradient,
                    const view &learning_rate, const view &one_minus_beta1, const view &one_minus_beta2,
                    const view &weight_decay, const view &gradient_scale, bool decays);
status sgd_on_host(stream &s, const view &weight, const view &momentum_buffer, const view &rounded,
                   const view &gradient, const view &learning_rate, const view &momentum, const view &weight_decay,
                   const view &gradient_scale, bool decays);

} // namespace windlass::rt::detail

#endif
