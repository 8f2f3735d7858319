// Where a rank's parameters, state and gradients lie: boxes of whole tensors, and host access to the device arena.
#ifndef WINDLASS_RT_SRC_PROGRAM_RANK_STATE_H
#define WINDLASS_RT_SRC_PROGRAM_RANK_STATE_H

#include "windlass/rt/context.h"
#include "windlass/rt/program.h"

#include "box.h"

#include <string>
#include <vector>

namespace windlass::rt {

/// A tensor that is saved or dumped: a parameter's master, one of its state tensors, or its gradient.
struct stored_tensor {
  std::string name;
  bool is_state = false;
  element_type type = element_type::f32;
  std::vector<std::int64_t> sizes;
  span<split> splits;
  std::int64_t offset = 0; ///< into the device arena
};

/// Whether a parameter's master is a buffer of its own.
bool has_own_master(const parameter_entry &row);
/// Masters and state in the order of the program's tables.
std::vector<stored_tensor> stored_tensors(const program &p);
std::vector<stored_tensor> gradient_tensors(const program &p);
/// The part that a rank holds.
tensor_part stored_part(const program &p, const stored_tensor &tensor, std::int32_t rank);

/// Whether `rank` is the lowest that holds its part of a tensor, and the part has boxes.
bool holds_first(const program &p, const stored_tensor &tensor, std::int32_t rank);

/// The distinct parts of a tensor over all ranks, with the lowest rank that holds each.
struct held_part {
  tensor_part part;
  std::int32_t rank;
};
std::vector<held_part> distinct_parts(const program &p, const stored_tensor &tensor);

/// Checks the tables against the arena's size before anything is written through them.
status check_program(const program &p);

status read_scalar(context &c, std::int64_t offset, float &value);
status write_scalar(context &c, std::int64_t offset, float value);

} // namespace windlass::rt

#endif
