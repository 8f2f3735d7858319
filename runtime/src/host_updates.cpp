// The optimizer steps as the host's threads run them, in programs for devices too.
#include "windlass/rt/detail/host_updates.h"

#include "dense_update.h"

#include "windlass/rt/detail/convert.h"
#include "windlass/rt/detail/updates.h"

namespace windlass::rt::detail {

namespace {

/// The operands of one parameter's step: the weight, `states_of<Step>` tensors of state, the gradient, and the rounded
/// weight, in whose place the weight stands again where there is none.
template <class Step> using parameter_nest = loop_nest<states_of<Step> + 3>;

/// Calls `f` with a number of the rounded weight's type.
template <class F> void with_rounded(element_type type, F f) {
  if (type == element_type::bf16)
    f(bf16());
  else if (type == element_type::f16)
    f(f16());
  else
    f(unrounded());
}

/// Returns whether the elements of all operands follow each other alike, without gaps.
template <int N> bool is_dense(const loop_nest<N> &nest) {
  bool all = nest.rank == 1;
  for (int k = 0; k < N; ++k)
    all = all && nest.strides[k][0] == 1;
  return all;
}

/// Returns the nest of some of the operands, in the order given.
template <int N, int All> loop_nest<N> choose(const loop_nest<All> &nest, const int (&operands)[N]) {
  loop_nest<N> chosen;
  chosen.rank = nest.rank;
  std::copy_n(nest.sizes, nest.rank, chosen.sizes);
  for (int k = 0; k < N; ++k) {
    chosen.data[k] = nest.data[operands[k]];
    std::copy_n(nest.strides[operands[k]], nest.rank, chosen.strides[k]);
  }
  return chosen;
}

/// Runs the step on operands of any strides, a block at a time through buffers.
template <class H, class Step, std::size_t... S>
void update_strided(const Step &step, const parameter_nest<Step> &nest, std::int32_t threads,
                    std::index_sequence<S...>) {
  constexpr int gradient = sizeof...(S), rounded = gradient + 1;
  if constexpr (std::is_same_v<H, unrounded>)
    map_now(step, choose(nest, {static_cast<int>(S)..., static_cast<int>(S)..., gradient}), threads);
  else
    map_now(rounding_step<Step, H>{step},
            choose(nest, {static_cast<int>(S)..., rounded, static_cast<int>(S)..., gradient}), threads);
}

/// Sets the rounded weight to the weight, which stays.
template <class H, int N> void round_weight(const loop_nest<N> &nest, std::int32_t threads) {
  if constexpr (!std::is_same_v<H, unrounded>)
    map_now(converter<H, float>(), choose(nest, {N - 1, 0}), threads);
}

template <class Step, std::size_t... S>
dense_parameter<states_of<Step>> parameter_of(const parameter_nest<Step> &nest, std::index_sequence<S...>) {
  const auto floats = [&nest](std::size_t k) { return reinterpret_cast<float *>(nest.data[k]); };
  return {nest.sizes[0], floats(0), {floats(1 + S)...}, nest.data[1 + sizeof...(S)], nest.data[2 + sizeof...(S)]};
}

/// Runs the step with gradients of type G. Where gradients of a scaled loss have overflowed, weight and state stay; the
/// rounded weight is written in any case.
template <class H, class G, class Step>
void update(const Step &step, const parameter_nest<Step> &nest, std::int32_t threads) {
  constexpr std::make_index_sequence<states_of<Step>> states;
  if (scalar::is_nan(step.gradient_scale))
    round_weight<H>(nest, threads);
  else if (is_dense(nest))
    update_dense<H, G>(step, 1, [&](std::int32_t) { return parameter_of<Step>(nest, states); }, threads);
  else if constexpr (std::is_same_v<G, float>)
    update_strided<H>(step, nest, threads, std::make_index_sequence<1 + states_of<Step>>());
  else
    update_strided<H>(reading_gradient<Step, G>{step}, nest, threads, std::make_index_sequence<1 + states_of<Step>>());
}

/// Submits the step, which reads the scalars in memory when its turn comes, with gradients of type G.
template <class Step, class G = float, class Scalars>
status submit_update(stream &s, const work &what, const Scalars &of, const view &rounded,
                     const parameter_nest<Step> &nest) {
  const element_type type = rounded.is_absent() ? element_type::f32 : rounded.type;
  return s.submit(what, [of, type, nest, threads = s.threads()]() -> status {
    with_rounded(type, [&](auto h) { update<decltype(h), G>(Step(of), nest, threads); });
    return {};
  });
}

/// Runs the step on several parameters with gradients of type G.
template <class H, class G>
void update_list(const adamw_step &step, const updated_parameters &parameters, std::int32_t threads) {
  if (!scalar::is_nan(step.gradient_scale)) {
    const auto at = [&](std::int32_t i) -> dense_parameter<2> {
      const updated_parameters::parameter &p = parameters.of[i];
      return {p.elements, p.weight, {p.exp_avg, p.exp_avg_sq}, p.gradient, p.rounded};
    };
    return update_dense<H, G>(step, parameters.count, at, threads);
  }
  for (std::int32_t i = 0; i < parameters.count; ++i) {
    const updated_parameters::parameter &p = parameters.of[i];
    loop_nest<2> nest;
    nest.rank = 1;
    nest.sizes[0] = p.elements;
    nest.data[0] = reinterpret_cast<std::byte *>(p.weight);
    nest.data[1] = p.rounded;
    nest.strides[0][0] = nest.strides[1][0] = 1;
    round_weight<H>(nest, threads);
  }
}

} // namespace

status adamw_on_host(stream &s, const view &weight, const view &exp_avg, const view &exp_avg_sq, const view &rounded,
                     const view &gradient, const view &learning_rate, const view &one_minus_beta1,
                     const view &one_minus_beta2, const view &epsilon, const view &weight_decay,
                     const view &bias_correction1, const view &bias_correction2, const view &gradient_scale,
                     decay_mode decay) {
  if (!are_updatable(weight, {exp_avg, exp_avg_sq}, rounded) || !is_gradient_of(weight, gradient))
    return internal_error("adamw got a weight, state and gradient of different sizes or types");
  const adamw_scalars of(learning_rate, one_minus_beta1, one_minus_beta2, epsilon, weight_decay, bias_correction1,
                         bias_correction2, gradient_scale, decay);
  const work what = {
      "adamw", 0, 2 * bytes_of({weight, exp_avg, exp_avg_sq}) + bytes_of({gradient, rounded}), {weight.elements()}};
  const auto nest = nest_of<5>({&weight, &exp_avg, &exp_avg_sq, &gradient, rounded.is_absent() ? &weight : &rounded});
  if (gradient.type == element_type::bf16)
    return submit_update<adamw_step, bf16>(s, what, of, rounded, nest);
  return submit_update<adamw_step>(s, what, of, rounded, nest);
}

status adamw_list_on_host(stream &s, const updated_parameters &parameters, const view &learning_rate,
                          const view &one_minus_beta1, const view &one_minus_beta2, const view &epsilon,
                          const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
                          const view &gradient_scale, decay_mode decay) {
  const adamw_scalars of(learning_rate, one_minus_beta1, one_minus_beta2, epsilon, weight_decay, bias_correction1,
                         bias_correction2, gradient_scale, decay);
  return s.submit(work_of(parameters), [parameters, of, threads = s.threads()]() -> status {
    with_rounded(parameters.rounded, [&](auto h) {
      if (parameters.gradients == element_type::bf16)
        update_list<decltype(h), bf16>(adamw_step(of), parameters, threads);
      else
        update_list<decltype(h), float>(adamw_step(of), parameters, threads);
    });
    return {};
  });
}

status lamb_on_host(stream &s, const view &direction, const view &weight, const view &exp_avg, const view &exp_avg_sq,
                    const view &gradient, const lamb_scalars &of) {
  if (!are_updatable(weight, {direction, exp_avg, exp_avg_sq, gradient}, {}))
    return internal_error("lamb got a weight, direction, state and gradient of different sizes or types");
  return s.submit(lamb_work(direction, weight, exp_avg, exp_avg_sq, gradient),
                  [of,
                   nest = nest_of<7>({&direction, &exp_avg, &exp_avg_sq, &weight, &exp_avg, &exp_avg_sq, &gradient}),
                   threads = s.threads()]() -> status {
                    map_now(lamb_step(of), nest, threads);
                    return {};
                  });
}

status momentum_on_host(stream &s, const view &direction, const view &buffer, const view &gradient,
                        const momentum_scalars &of) {
  if (!are_updatable(buffer, {direction, gradient}, {}))
    return internal_error("momentum got a buffer, direction and gradient of different sizes or types");
  return s.submit(
      momentum_work(direction, buffer, gradient),
      [of, nest = nest_of<4>({&buffer, &direction, &buffer, &gradient}), threads = s.threads()]() -> status {
        map_now(momentum_step(of), nest, threads);
        return {};
      });
}

status descend_on_host(stream &s, const view &weight, const view &rounded, const view &direction,
                       const descend_scalars &of) {
  if (!are_updatable(weight, {direction}, rounded))
    return internal_error("descend got a weight and a direction of different sizes or types");
  const element_type type = rounded.is_absent() ? element_type::f32 : rounded.type;
  const auto nest = nest_of<4>({&weight, rounded.is_absent() ? &weight : &rounded, &weight, &direction});
  return s.submit(descend_work(weight, rounded, direction), [type, nest, of, threads = s.threads()]() -> status {
    with_rounded(type, [&](auto h) {
      using H = decltype(h);
      const descend_step step(of);
      if constexpr (std::is_same_v<H, unrounded>)
        map_now(step, choose(nest, {0, 2, 3}), threads);
      else
        map_now(rounding_step<descend_step, H>{step}, nest, threads);
    });
    return {};
  });
}

status ema_on_host(stream &s, const view &average, const view &weight, const view &rate) {
  if (!are_updatable(average, {weight}, {}))
    return internal_error("ema got an average and a weight of different sizes or types");
  return s.submit(ema_work(average, weight),
                  [of = ema_scalars{rate.as<const float>()}, nest = nest_of<3>({&average, &average, &weight}),
                   threads = s.threads()]() -> status {
                    map_now(ema_step(of), nest, threads);
                    return {};
                  });
}

status lion_on_host(stream &s, const view &weight, const view &exp_avg, const view &rounded, const view &gradient,
                    const view &learning_rate, const view &one_minus_beta1, const view &one_minus_beta2,
                    const view &weight_decay, const view &gradient_scale, bool decays) {
  if (!are_updatable(weight, {exp_avg, gradient}, rounded))
    return internal_error("lion got a weight, state and gradient of different sizes or types");
  const lion_scalars of = {learning_rate.as<const float>(),   one_minus_beta1.as<const float>(),
                           one_minus_beta2.as<const float>(), weight_decay.as<const float>(),
                           gradient_scale.as<const float>(),  decays};
  const work what = {"lion", 0, 2 * bytes_of({weight, exp_avg}) + bytes_of({gradient, rounded}), {weight.elements()}};
  return submit_update<lion_step>(s, what, of, rounded,
                                  nest_of<4>({&weight, &exp_avg, &gradient, rounded.is_absent() ? &weight : &rounded}));
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
  return submit_update<sgd_step>(
      s, what, of, rounded,
      nest_of<4>({&weight, &momentum_buffer, &gradient, rounded.is_absent() ? &weight : &rounded}));
}

} // namespace windlass::rt::detail
