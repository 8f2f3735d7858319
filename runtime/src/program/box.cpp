#include "box.h"

#include <cstring>

namespace windlass::rt {

std::int64_t box::elements() const {
  std::int64_t count = 1;
  for (std::int64_t size : sizes)
    count *= size;
  return count;
}

box whole_box(const std::vector<std::int64_t> &sizes) { return {std::vector<std::int64_t>(sizes.size(), 0), sizes}; }

void copy_overlap(const box &from, const std::byte *source, const box &to, std::byte *target,
                  std::int64_t element_bytes) {
  for_each_run(from, to, [&](std::int64_t a, std::int64_t b, std::int64_t count) {
    std::memcpy(target + b * element_bytes, source + a * element_bytes,
                static_cast<std::size_t>(count * element_bytes));
  });
}

std::int32_t mesh_size(span<axis> axes) {
  std::int32_t size = 1;
  for (const axis &a : axes)
    size *= a.size;
  return size;
}

std::vector<std::int32_t> mesh_coordinates(span<axis> axes, std::int32_t rank) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(axes.size));
  for (std::size_t i = out.size(); i-- > 0;) {
    std::int32_t size = axes[static_cast<std::int64_t>(i)].size;
    out[i] = rank % size;
    rank /= size;
  }
  return out;
}

std::vector<std::int64_t> sizes_of(const tensor_entry &tensor) { return {tensor.sizes.begin(), tensor.sizes.end()}; }

status local_box(const tensor_entry &tensor, span<axis> axes, const std::vector<std::int32_t> &coordinates, box &out) {
  out = whole_box(sizes_of(tensor));
  for (const split &cut : tensor.splits) {
    if (cut.dim < 0 || cut.dim >= tensor.sizes.size || cut.axis < 0 || cut.axis >= axes.size)
      return internal_error(std::string("the program splits '") + tensor.name + "' in a dimension or axis it lacks");
    std::size_t dim = static_cast<std::size_t>(cut.dim);
    std::int64_t parts = axes[cut.axis].size;
    if (parts < 1 || out.sizes[dim] % parts != 0)
      return internal_error(std::string("the program splits dimension ") + std::to_string(cut.dim) + " of '" +
                            tensor.name + "', " + std::to_string(out.sizes[dim]) + ", into " + std::to_string(parts) +
                            " uneven parts");
    out.sizes[dim] /= parts;
    out.begin[dim] += coordinates[static_cast<std::size_t>(cut.axis)] * out.sizes[dim];
  }
  return ok_status();
}

} // namespace windlass::rt
