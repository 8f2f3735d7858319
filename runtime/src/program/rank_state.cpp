#include "rank_state.h"

#include "label_counter.h"

#include "windlass/rt/file.h"
#include "windlass/rt/host_copy.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace windlass::rt {

bool has_own_master(const parameter_entry &row) { return row.master_offset != row.tensor.offset; }

std::vector<stored_tensor> stored_tensors(const program &p) {
  std::vector<stored_tensor> out;
  for (const parameter_entry &row : p.parameters)
    out.push_back({row.tensor.name, false, has_own_master(row) ? element_type::f32 : row.tensor.type,
                   sizes_of(row.tensor), row.master_splits, row.master_offset});
  for (const state_entry &row : p.states) {
    const parameter_entry &of = p.parameters[row.parameter];
    out.push_back({std::string(of.tensor.name) + "/" + row.suffix, true, element_type::f32, sizes_of(of.tensor),
                   of.master_splits, row.offset});
  }
  return out;
}

std::vector<stored_tensor> gradient_tensors(const program &p) {
  std::vector<stored_tensor> out;
  for (const gradient_entry &row : p.gradients) {
    const tensor_entry &tensor = p.parameters[row.parameter].tensor;
    out.push_back({tensor.name, false, element_type::f32, sizes_of(tensor), row.splits, row.offset});
  }
  return out;
}

tensor_part stored_part(const program &p, const stored_tensor &tensor, std::int32_t rank) {
  return local_part(tensor.sizes, tensor.splits, p.axes, rank);
}

bool holds_first(const program &p, const stored_tensor &tensor, std::int32_t rank) {
  // Ranks that differ only on axes that cut nothing hold the same part; the lowest of them is at 0 on these.
  const std::vector<std::int32_t> at = mesh_coordinates(p.axes, rank);
  for (std::size_t i = 0; i < at.size(); ++i)
    if (at[i] != 0 && std::none_of(tensor.splits.begin(), tensor.splits.end(),
                                   [&](const split &cut) { return cut.axis == static_cast<std::int32_t>(i); }))
      return false;
  // A range behind the last element holds none, and all parts of a tensor without elements are alike.
  const bool is_empty = std::find(tensor.sizes.begin(), tensor.sizes.end(), 0) != tensor.sizes.end();
  return is_empty ? rank == 0 : !stored_part(p, tensor, rank).boxes.empty();
}

std::vector<held_part> distinct_parts(const program &p, const stored_tensor &tensor) {
  std::vector<held_part> out;
  for (std::int32_t rank = 0, ranks = tensor.splits.size > 0 ? mesh_size(p.axes) : 1; rank < ranks; ++rank)
    if (holds_first(p, tensor, rank))
      out.push_back({stored_part(p, tensor, rank), rank});
  return out;
}

status check_program(const program &p) {
  auto wrong = [](const std::string &what) { return internal_error("the program's tables are wrong: " + what); };
  if (p.version != 1)
    return wrong("version " + std::to_string(p.version) + ", the runtime reads 1");
  for (const axis &a : p.axes)
    if (a.size < 1)
      return wrong("an axis of size " + std::to_string(a.size));
  const std::int32_t groups = count_replicas(p.axes);
  if (p.micro_batches < 1 || p.micro_batches % groups != 0)
    return wrong(std::to_string(p.micro_batches) + " micro-batches over " + std::to_string(groups) + " groups");
  if (!p.precision)
    return wrong("no precision");
  if (!p.forward || !p.backward || !p.reduce || !p.update)
    return wrong("a step function is missing");
  auto fits = [&](std::int64_t offset, std::int64_t bytes) {
    return offset >= 0 && bytes >= 0 && bytes <= p.device_bytes && offset <= p.device_bytes - bytes;
  };
  auto check = [&](const tensor_entry &tensor, span<split> splits, element_type type, std::int64_t offset) -> status {
    WINDLASS_TRY(check_splits(tensor, splits, p.axes));
    tensor_part part = local_part(sizes_of(tensor), splits, p.axes, 0);
    if (tensor.sizes.size > max_rank || !fits(offset, part.elements() * size_of(type)))
      return wrong(std::string("'") + tensor.name + "' lies outside the arena");
    return ok_status();
  };
  for (const parameter_entry &row : p.parameters) {
    WINDLASS_TRY(check(row.tensor, row.tensor.splits, row.tensor.type, row.tensor.offset));
    WINDLASS_TRY(check(row.tensor, row.master_splits, has_own_master(row) ? element_type::f32 : row.tensor.type,
                       row.master_offset));
    bool is_cut_alike = std::equal(
        row.tensor.splits.begin(), row.tensor.splits.end(), row.master_splits.begin(), row.master_splits.end(),
        [](const split &a, const split &b) { return a.dim == b.dim && a.axis == b.axis && a.blocks == b.blocks; });
    if (!has_own_master(row) && !is_cut_alike)
      return wrong(std::string("'") + row.tensor.name + "' and its master lie at one place, but are cut differently");
  }
  for (const input_entry &row : p.inputs)
    WINDLASS_TRY(check(row.tensor, row.tensor.splits, row.tensor.type, row.tensor.offset));
  WINDLASS_TRY(check_labels(p));
  for (const state_entry &row : p.states) {
    if (row.parameter < 0 || row.parameter >= p.parameters.size)
      return wrong("state of no parameter");
    const parameter_entry &of = p.parameters[row.parameter];
    WINDLASS_TRY(check(of.tensor, of.master_splits, element_type::f32, row.offset));
  }
  for (const gradient_entry &row : p.gradients) {
    if (row.parameter < 0 || row.parameter >= p.parameters.size)
      return wrong("a gradient of no parameter");
    WINDLASS_TRY(check(p.parameters[row.parameter].tensor, row.splits, element_type::f32, row.offset));
  }
  // Names are the keys of checkpoints.
  std::set<std::string> names;
  for (const stored_tensor &tensor : stored_tensors(p))
    if (!names.insert(tensor.name).second)
      return wrong("two tensors are named " + quote(tensor.name));
  bool scalars_fit =
      fits(p.loss_offset, 4) && fits(p.grad_norm_offset, 4) && (!p.evaluate || fits(p.evaluate_offset, 4));
  for (const scalar_entry &row : p.scalars)
    scalars_fit &= fits(row.offset, 4);
  return scalars_fit ? ok_status() : wrong("a scalar lies outside the arena");
}

status read_scalar(context &c, std::int64_t offset, float &value) {
  host_copy copy(c, offset, sizeof value);
  WINDLASS_TRY(copy.load());
  std::memcpy(&value, copy.data(), sizeof value);
  return ok_status();
}

status write_scalar(context &c, std::int64_t offset, float value) {
  host_copy copy(c, offset, sizeof value);
  std::memcpy(copy.data(), &value, sizeof value);
  return copy.store();
}

} // namespace windlass::rt
