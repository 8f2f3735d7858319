#include "schedule.h"

#include <algorithm>
#include <cmath>

namespace windlass::rt {

double learning_rate(const options &o, std::int64_t s) {
  constexpr double pi = 3.141592653589793238463;
  if (s < o.warmup)
    return o.lr * static_cast<double>(s + 1) / static_cast<double>(o.warmup);
  double rest = static_cast<double>(std::max<std::int64_t>(1, o.schedule_steps.value_or(o.steps) - o.warmup));
  double x = std::min(1.0, static_cast<double>(s - o.warmup) / rest);
  switch (o.schedule) {
  case lr_schedule::linear:
    return o.lr * (1 - x);
  case lr_schedule::cosine:
    return o.lr * (1 + std::cos(pi * x)) / 2;
  case lr_schedule::constant:
    break;
  }
  return o.lr;
}

bool has_scalar(const job &j, scalar kind) {
  for (const position_entry &position : j.positions)
    for (const scalar_entry &row : position.runs->scalars)
      if (row.kind == kind)
        return true;
  return false;
}

bool scales_loss(const job &j) { return has_scalar(j, scalar::loss_scale); }

bool keeps_ema(const job &j) { return has_scalar(j, scalar::ema_rate); }

bool averages_tokens(const job &j) { return j.labels.sizes.size > 0; }

beta_pair betas_of(const job &j, const options &o) { return o.betas.value_or(facts_of(j.kind).betas); }

double scalar_value(const job &j, const options &o, scalar kind, std::int64_t s, const update_history &past,
                    std::int64_t labels) {
  double t = static_cast<double>(s + 1 - past.skipped);
  switch (kind) {
  case scalar::learning_rate:
    return learning_rate(o, s);
  case scalar::one_minus_beta1:
    return 1 - betas_of(j, o)[0];
  case scalar::one_minus_beta2:
    return 1 - betas_of(j, o)[1];
  case scalar::epsilon:
    return o.epsilon.value_or(facts_of(j.kind).epsilon);
  case scalar::weight_decay:
    return o.weight_decay.value_or(facts_of(j.kind).weight_decay);
  case scalar::momentum:
    return o.momentum.value_or(facts_of(j.kind).momentum.value_or(0));
  case scalar::clip_norm:
    return o.clip_norm;
  case scalar::bias_correction1:
    return -std::expm1(t * std::log(betas_of(j, o)[0])); // 1 - beta^t without cancellation; 1 for beta = 0
  case scalar::bias_correction2:
    return -std::expm1(t * std::log(betas_of(j, o)[1]));
  case scalar::ema_rate:
    return t <= 1 ? 1 : 1 - o.ema_decay; // the average begins as the weight
  case scalar::inverse_sqrt_step:
    return 1 / std::sqrt(std::max(1.0, t));
  case scalar::second_moment_rate:
    return std::pow(std::max(1.0, t), -0.8); // as its authors chose
  case scalar::loss_scale:
    return past.scale.value;
  case scalar::inverse_loss_scale:
    return 1 / past.scale.value;
  case scalar::inverse_label_count:
    return 1 / static_cast<double>(labels);
  }
  return 0;
}

} // namespace windlass::rt
