#include "rank_state.h"

#include "windlass/rt/host_copy.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace windlass::rt {

member::member(const job &j, std::int32_t rank)
    : j(j), position(j.positions[position_of(j, rank)]), p(*position.runs), rank(rank),
      number(rank - position.first_rank) {}

bool has_own_master(const parameter_placement &row) { return row.master != row.at; }

cut_sizes cut_of(const state_entry &state, const parameter_entry &of, const parameter_placement &at) {
  return state.sizes.size > 0 ? cut_sizes{state.sizes, {}} : cut_sizes{of.sizes, at.master_splits};
}

std::vector<stored_tensor> stored_tensors(const job &j) {
  std::vector<stored_tensor> out;
  for (const position_entry &position : j.positions)
    for (const parameter_placement &row : position.runs->parameters) {
      const parameter_entry &of = j.parameters[row.parameter];
      out.push_back({of.name, false, of.type, sizes_of(of.sizes), row.master_splits, row.master, &position});
    }
  for (const position_entry &position : j.positions) {
    std::vector<const parameter_placement *> placements(static_cast<std::size_t>(j.parameters.size));
    for (const parameter_placement &row : position.runs->parameters)
      placements[static_cast<std::size_t>(row.parameter)] = &row;
    for (const state_entry &row : position.runs->states) {
      const parameter_entry &of = j.parameters[row.parameter];
      const cut_sizes cut = cut_of(row, of, *placements[static_cast<std::size_t>(row.parameter)]);
      out.push_back({std::string(of.name) + "/" + row.suffix, true, element_type::f32, sizes_of(cut.sizes), cut.splits,
                     row.at, &position});
    }
  }
  return out;
}

/// Leaves the first of each name.
static std::vector<stored_tensor> first_copies(std::vector<stored_tensor> all) {
  std::set<std::string> names;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const stored_tensor &tensor) { return !names.insert(tensor.name).second; }),
            all.end());
  return all;
}

std::vector<stored_tensor> written_tensors(const job &j) { return first_copies(stored_tensors(j)); }

std::vector<stored_tensor> gradient_tensors(const job &j) {
  std::vector<stored_tensor> out;
  for (const position_entry &position : j.positions)
    for (const gradient_entry &row : position.runs->gradients) {
      const parameter_entry &of = j.parameters[row.parameter];
      out.push_back({of.name, false, row.type, sizes_of(of.sizes), row.splits, row.at, &position});
    }
  return first_copies(std::move(out));
}

tensor_part stored_part(const stored_tensor &tensor, std::int32_t rank) {
  return local_part(tensor.sizes, tensor.splits, tensor.position->axes, rank - tensor.position->first_rank);
}

bool holds_first(const stored_tensor &tensor, std::int32_t rank) {
  if (!tensor.is_held_by(rank))
    return false;
  // Ranks that differ only on axes that cut nothing hold the same part; the lowest of them is at 0 on these.
  const std::int32_t number = rank - tensor.position->first_rank;
  const std::vector<std::int32_t> at = mesh_coordinates(tensor.position->axes, number);
  for (std::size_t i = 0; i < at.size(); ++i)
    if (at[i] != 0 && std::none_of(tensor.splits.begin(), tensor.splits.end(),
                                   [&](const split &cut) { return cut.axis == static_cast<std::int32_t>(i); }))
      return false;
  // A range behind the last element holds none, and all parts of a tensor without elements are alike.
  const bool is_empty = std::find(tensor.sizes.begin(), tensor.sizes.end(), 0) != tensor.sizes.end();
  return is_empty ? number == 0 : !stored_part(tensor, rank).boxes.empty();
}

std::vector<held_part> distinct_parts(const stored_tensor &tensor) {
  std::vector<held_part> out;
  const std::int32_t first = tensor.position->first_rank;
  for (std::int32_t rank = first; rank < first + (tensor.splits.size > 0 ? tensor.position->ranks : 1); ++rank)
    if (holds_first(tensor, rank))
      out.push_back({stored_part(tensor, rank), rank});
  return out;
}

status read_scalar(context &c, const place &where, float &value) {
  host_copy copy(c, where, sizeof value);
  WINDLASS_TRY(copy.load());
  std::memcpy(&value, copy.data(), sizeof value);
  return ok_status();
}

} // namespace windlass::rt
