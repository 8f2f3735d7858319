// What flags, records and schedules know of an optimizer.
#ifndef WINDLASS_RT_SRC_PROGRAM_OPTIMIZERS_H
#define WINDLASS_RT_SRC_PROGRAM_OPTIMIZERS_H

#include "windlass/rt/program.h"

#include <array>
#include <optional>

namespace windlass::rt {

/// The shares of the old averages that a step of Adam, LAMB or Lion keeps.
using beta_pair = std::array<double, 2>;

/// An optimizer and the defaults of its flags: those of PyTorch, for LAMB and Lion those of their authors.
struct optimizer_facts {
  const char *name;
  beta_pair betas; ///< zeros for one that has none
  double weight_decay;
  double epsilon;                 ///< 0 for one that has none; Adafactor's least scale of a weight
  std::optional<double> momentum; ///< none for one that has none
  bool has_betas() const { return betas[0] > 0; }
};

inline optimizer_facts facts_of(optimizer kind) {
  switch (kind) {
  case optimizer::adamw:
    return {"adamw", {0.9, 0.999}, 0.01, 1e-8, {}};
  case optimizer::adafactor:
    return {"adafactor", {}, 0, 1e-3, {}};
  case optimizer::adam:
    return {"adam", {0.9, 0.999}, 0, 1e-8, {}};
  case optimizer::lamb:
    return {"lamb", {0.9, 0.999}, 0.01, 1e-6, {}};
  case optimizer::lion:
    return {"lion", {0.9, 0.99}, 0, 0, {}};
  case optimizer::muon:
    return {"muon", {0.9, 0.999}, 0.1, 1e-8, 0.95};
  case optimizer::sgd:
    break;
  }
  return {"sgd", {}, 0, 0, 0.0};
}

} // namespace windlass::rt

#endif
