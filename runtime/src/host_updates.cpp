// The optimizer steps as the host's threads run them, in programs for devices too.
#include "windlass/rt/detail/host_updates.h"

#include "windlass/rt/detail/convert.h"
#include "windlass/rt/detail/updates.h"

namespace windlass::rt::detail {

namespace {

/// Where gradients of a scaled loss have overflowed, weight and state stay.
template <class Step, int N> void run(const Step &step, const loop_nest<N> &nest, std::int32_t threads) {
  if (!scalar::is_nan(step.gradient_scale))
    map_now(step, nest, threads);
}

/// The same with the rounded weight, which is written in any case.
template <class H, class Step, int N>
void run_rounding(const Step &step, const loop_nest<N> &nest, const loop_nest<2> &cast, std::int32_t threads) {
  if (scalar::is_nan(step.gradient_scale))
    map_now(converter<H, float>(), cast, threads);
  else
    map_now(rounding_step<Step, H>{step}, nest, threads);
}

// Steps read the scalars in memory when their turn comes.

template <class Step, class Scalars, int N>
status submit_step(stream &s, const work &what, const Scalars &of, const loop_nest<N> &nest) {
  return s.submit(what, [of, nest, threads = s.threads()]() -> status {
    run(Step(of), nest, threads);
    return {};
  });
}

template <class Step, class H, class Scalars, int N>
status submit_rounding_step(stream &s, const work &what, const Scalars &of, const loop_nest<N> &nest,
                            const loop_nest<2> &cast) {
  return s.submit(what, [of, nest, cast, threads = s.threads()]() -> status {
    run_rounding<H>(Step(of), nest, cast, threads);
    return {};
  });
}

/// Makes a nest of N dense operands with `elements` elements.
template <int N> loop_nest<N> flat_nest(std::int64_t elements, const void *const (&operands)[N]) {
  loop_nest<N> nest;
  nest.rank = 1;
  nest.sizes[0] = elements;
  for (int k = 0; k < N; ++k) {
    nest.data[k] = const_cast<std::byte *>(static_cast<const std::byte *>(operands[k]));
    nest.strides[k][0] = 1;
  }
  return nest;
}

template <class H>
void update_rounding(const adamw_step &step, const updated_parameters::parameter &p, std::int32_t threads) {
  run_rounding<H>(step,
                  flat_nest(p.elements, {p.weight, p.exp_avg, p.exp_avg_sq, p.rounded, p.weight, p.exp_avg,
                                         p.exp_avg_sq, p.gradient}),
                  flat_nest(p.elements, {p.rounded, p.weight}), threads);
}

void update(const adamw_step &step, element_type rounded, const updated_parameters::parameter &p,
            std::int32_t threads) {
  if (rounded == element_type::bf16)
    update_rounding<bf16>(step, p, threads);
  else if (rounded == element_type::f16)
    update_rounding<f16>(step, p, threads);
  else
    run(step, flat_nest(p.elements, {p.weight, p.exp_avg, p.exp_avg_sq, p.weight, p.exp_avg, p.exp_avg_sq, p.gradient}),
        threads);
}

} // namespace

status adamw_on_host(stream &s, const view &weight, const view &exp_avg, const view &exp_avg_sq, const view &rounded,
                     const view &gradient, const view &learning_rate, const view &one_minus_beta1,
                     const view &one_minus_beta2, const view &epsilon, const view &weight_decay,
                     const view &bias_correction1, const view &bias_correction2, const view &gradient_scale,
                     bool decays) {
  if (!are_updatable(weight, {exp_avg, exp_avg_sq, gradient}, rounded))
    return internal_error("adamw got a weight, state and gradient of different sizes or types");
  const adamw_scalars of(learning_rate, one_minus_beta1, one_minus_beta2, epsilon, weight_decay, bias_correction1,
                         bias_correction2, gradient_scale, decays);
  const work what = {
      "adamw", 0, 2 * bytes_of({weight, exp_avg, exp_avg_sq}) + bytes_of({gradient, rounded}), {weight.elements()}};
  if (rounded.is_absent())
    return submit_step<adamw_step>(
        s, what, of, nest_of<7>({&weight, &exp_avg, &exp_avg_sq, &weight, &exp_avg, &exp_avg_sq, &gradient}));
  const auto nest = nest_of<8>({&weight, &exp_avg, &exp_avg_sq, &rounded, &weight, &exp_avg, &exp_avg_sq, &gradient});
  const auto cast = nest_of<2>({&rounded, &weight});
  return rounded.type == element_type::bf16 ? submit_rounding_step<adamw_step, bf16>(s, what, of, nest, cast)
                                            : submit_rounding_step<adamw_step, f16>(s, what, of, nest, cast);
}

status adamw_list_on_host(stream &s, const updated_parameters &parameters, const view &learning_rate,
                          const view &one_minus_beta1, const view &one_minus_beta2, const view &epsilon,
                          const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
                          const view &gradient_scale, bool decays) {
  const adamw_scalars of(learning_rate, one_minus_beta1, one_minus_beta2, epsilon, weight_decay, bias_correction1,
                         bias_correction2, gradient_scale, decays);
  return s.submit(work_of(parameters), [parameters, of, threads = s.threads()]() -> status {
    const adamw_step step(of);
    for (std::int32_t i = 0; i < parameters.count; ++i)
      update(step, parameters.rounded, parameters.of[i], threads);
    return {};
  });
}

status sgd_on_host(stream &s, const view &weight, const view &momentum_buffer, const view &rounded,
                   const view &gradient, const view &learning_rate, const view &momentum, const view &weight_decay,
                   const view &gradient_scale, bool decays) {
  if (!are_updatable(weight, {momentum_buffer, gradient}, rounded))
    return internal_error("sgd got a weight, state and gradient of different sizes or types");
  const sgd_scalars of = {learning_rate.as<const float>(), momentum.as<const float>(), weight_decay.as<const float>(),
                          gradient_scale.as<const float>(), decays};
  const work what = {
      "sgd", 0, 2 * bytes_of({weight, momentum_buffer}) + bytes_of({gradient, rounded}), {weight.elements()}};
  if (rounded.is_absent())
    return submit_step<sgd_step>(s, what, of,
                                 nest_of<5>({&weight, &momentum_buffer, &weight, &momentum_buffer, &gradient}));
  const auto nest = nest_of<6>({&weight, &momentum_buffer, &rounded, &weight, &momentum_buffer, &gradient});
  const auto cast = nest_of<2>({&rounded, &weight});
  return rounded.type == element_type::bf16 ? submit_rounding_step<sgd_step, bf16>(s, what, of, nest, cast)
                                            : submit_rounding_step<sgd_step, f16>(s, what, of, nest, cast);
}

} // namespace windlass::rt::detail
