// The values of the runtime scalars at a step.
#ifndef WINDLASS_RT_SRC_PROGRAM_SCHEDULE_H
#define WINDLASS_RT_SRC_PROGRAM_SCHEDULE_H

#include "windlass/rt/loss_scale.h"

#include "options.h"

namespace windlass::rt {

/// Returns the learning rate of step `s`, counted from 0. With W = `o.warmup`, S = `o.schedule_steps` (without it
/// `o.steps`) and x = min(1, (s-W) / max(1, S-W)): lr (s+1)/W before W, then lr, lr (1-x) or lr (1 + cos(pi x)) / 2, as
/// `o.schedule` says.
double learning_rate(const options &o, std::int64_t s);

/// The state that a run's steps so far leave for the next step.
struct update_history {
  std::int64_t skipped = 0; ///< steps that left their update out, which the optimizer does not count
  loss_scale scale;
};

/// Returns whether the program of a position reads the scalar.
bool has_scalar(const job &j, scalar kind);

/// Returns whether the program's gradients are of a scaled loss; its updates then skip overflows by themselves.
bool scales_loss(const job &j);

/// Returns whether the program keeps a moving average of its weights.
bool keeps_ema(const job &j);

/// Returns whether a step's loss is the mean over the labels of all its micro-batches, not the mean of their losses.
bool averages_tokens(const job &j);

/// Returns the betas of the program's optimizer; zeros for one that has none.
beta_pair betas_of(const job &j, const options &o);

/// Returns the value of a runtime scalar in step `s`, whose loss is the mean over `labels` labels where the program
/// averages over tokens; computed in double.
double scalar_value(const job &j, const options &o, scalar kind, std::int64_t s, const update_history &past = {},
                    std::int64_t labels = 0);

} // namespace windlass::rt

#endif
