#include "box.h"

#include <algorithm>
#include <cstring>

namespace windlass::rt {

std::int64_t box::elements() const {
  std::int64_t count = 1;
  for (std::int64_t size : sizes)
    count *= size;
  return count;
}

box whole_box(const std::vector<std::int64_t> &sizes) { return {std::vector<std::int64_t>(sizes.size(), 0), sizes}; }

void for_each_run(const box &a, const box &b, const std::function<void(std::int64_t, std::int64_t, std::int64_t)> &f) {
  std::size_t rank = a.sizes.size();
  std::vector<std::int64_t> low(rank), extent(rank), a_stride(rank), b_stride(rank);
  std::int64_t a_step = 1, b_step = 1;
  for (std::size_t i = rank; i-- > 0;) {
    low[i] = std::max(a.begin[i], b.begin[i]);
    extent[i] = std::min(a.begin[i] + a.sizes[i], b.begin[i] + b.sizes[i]) - low[i];
    if (extent[i] <= 0)
      return;
    a_stride[i] = a_step;
    b_stride[i] = b_step;
    a_step *= a.sizes[i];
    b_step *= b.sizes[i];
  }
  // Trailing dimensions that both boxes hold whole join the run.
  std::size_t outer = rank;
  std::int64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= extent[outer];
    if (extent[outer] != a.sizes[outer] || extent[outer] != b.sizes[outer])
      break;
  }
  std::vector<std::int64_t> index(outer, 0);
  for (;;) {
    std::int64_t a_offset = 0, b_offset = 0;
    for (std::size_t i = 0; i < rank; ++i) {
      std::int64_t at = low[i] + (i < outer ? index[i] : 0);
      a_offset += (at - a.begin[i]) * a_stride[i];
      b_offset += (at - b.begin[i]) * b_stride[i];
    }
    f(a_offset, b_offset, run);
    std::size_t i = outer;
    while (i > 0 && ++index[i - 1] == extent[i - 1])
      index[--i] = 0;
    if (i == 0)
      return;
  }
}

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
