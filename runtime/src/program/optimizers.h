// What flags, records and schedules know of an optimizer.
#ifndef WINDLASS_RT_SRC_PROGRAM_OPTIMIZERS_H
#define WINDLASS_RT_SRC_PROGRAM_OPTIMIZERS_H

#include "windlass/rt/program.h"

#include <array>

namespace windlass::rt {

/// The shares of the old averages that a step of Adam or Lion keeps.
using beta_pair = std::array<double, 2>;

/// An optimizer and the defaults of its flags: those of PyTorch, for Lion those of its authors.
struct optimizer_facts {
  const char *name;
  beta_pair betas; ///< zeros for one that has none
  double weight_decay;
  bool has_epsilon, has_momentum;
  bool has_betas() const { return betas[0] > 0; }
};

inline optimizer_facts facts_of(optimizer kind) {
  switch (kind) {
  case optimizer::adamw:
    return {"adamw", {0.9, 0.999}, 0.01, true, false};
  case optimizer::adam:
    return {"adam", {0.9, 0.999}, 0, true, false};
  case optimizer::lion:
    return {"lion", {0.9, 0.99}, 0, false, false};
  case optimizer::sgd:
    break;
  }
  return {"sgd", {}, 0, false, true};
}

} // namespace windlass::rt

#endif
