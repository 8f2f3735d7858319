// The places of a rank's parameters, state and gradients: boxes of whole tensors, and host access to arenas.
#ifndef WINDLASS_RT_SRC_PROGRAM_RANK_STATE_H
#define WINDLASS_RT_SRC_PROGRAM_RANK_STATE_H

#include "windlass/rt/context.h"
#include "windlass/rt/program.h"

#include "box.h"

#include <string>
#include <vector>

namespace windlass::rt {

/// A rank of a job, and what it runs.
struct member {
  /// Describes `rank`, which is one of the job's.
  member(const job &j, std::int32_t rank);

  const job &j;
  const position_entry &position;
  const program &p;    ///< of the position
  std::int32_t rank;   ///< of the job
  std::int32_t number; ///< of the rank in the position's mesh
};

/// A tensor that is saved or dumped: a parameter's master, one of its state tensors, or its gradient, on a position
/// that holds it.
struct stored_tensor {
  std::string name;
  bool is_state = false;
  element_type type = element_type::f32;
  std::vector<std::int64_t> sizes;
  span<split> splits;
  place at;
  const position_entry *position = nullptr;

  bool is_held_by(std::int32_t rank) const {
    return rank >= position->first_rank && rank < position->first_rank + position->ranks;
  }
};

/// The sizes of a tensor, and how they are cut.
struct cut_sizes {
  span<std::int64_t> sizes;
  span<split> splits;
};
/// Returns those of a state tensor of the parameter `of`, which is placed at `at`.
cut_sizes cut_of(const state_entry &state, const parameter_entry &of, const parameter_placement &at);

/// Returns whether a parameter has a master here that is a buffer of its own.
bool has_own_master(const parameter_placement &row);
/// Returns the masters and state of all positions, in the order of the programs' tables. A weight that several
/// positions train has as many copies, which hold the same.
std::vector<stored_tensor> stored_tensors(const job &j);
/// Returns those that are written: of copies the first one.
std::vector<stored_tensor> written_tensors(const job &j);
/// Returns the gradients; of those that several positions hold, the first one.
std::vector<stored_tensor> gradient_tensors(const job &j);
/// Returns the local slice that a rank of the tensor's position holds.
tensor_part stored_part(const stored_tensor &tensor, std::int32_t rank);

/// Returns whether `rank` is the lowest that holds its part of a tensor, and the part has boxes.
bool holds_first(const stored_tensor &tensor, std::int32_t rank);

/// A distinct part of a tensor, with the lowest rank that holds it.
struct held_part {
  tensor_part part;
  std::int32_t rank;
};
std::vector<held_part> distinct_parts(const stored_tensor &tensor);

status read_scalar(context &c, const place &from, float &value);

} // namespace windlass::rt

#endif
