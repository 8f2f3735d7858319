#include "box.h"

#include "data.h"

#include "windlass/rt/checkpoint.h"

#include <algorithm>
#include <cstring>

namespace windlass::rt {

static std::int64_t product_of(const std::vector<std::int64_t> &sizes) {
  std::int64_t count = 1;
  for (std::int64_t size : sizes)
    count *= size;
  return count;
}

std::int64_t box::elements() const { return product_of(sizes); }

std::int64_t tensor_part::elements() const { return product_of(sizes); }

void fill_up(const tensor_part &part, std::byte *memory, std::int64_t element_bytes) {
  std::int64_t held = 0;
  for (const local_box &each : part.boxes)
    held += each.held.elements();
  std::memset(memory + held * element_bytes, 0, static_cast<std::size_t>((part.elements() - held) * element_bytes));
}

box whole_box(const std::vector<std::int64_t> &sizes) { return {std::vector<std::int64_t>(sizes.size(), 0), sizes}; }

tensor_part part_of(const box &held) { return {held.sizes, {{held, held}}}; }

void copy_overlap(const box &from, const std::byte *source, const tensor_part &to, std::byte *target,
                  std::int64_t element_bytes) {
  for_each_run(from, to, [&](std::int64_t a, std::int64_t b, std::int64_t count) {
    std::memcpy(target + b * element_bytes, source + a * element_bytes,
                static_cast<std::size_t>(count * element_bytes));
  });
}

void copy_overlap(const tensor_part &from, const std::byte *source, const box &to, std::byte *target,
                  std::int64_t element_bytes) {
  for_each_run(to, from, [&](std::int64_t a, std::int64_t b, std::int64_t count) {
    std::memcpy(target + a * element_bytes, source + b * element_bytes,
                static_cast<std::size_t>(count * element_bytes));
  });
}

status read_overlap(const box &from, element_type type,
                    const std::function<status(std::int64_t, std::int64_t, void *)> &read, const tensor_part &to,
                    element_type wanted, std::byte *target, bool &fits) {
  const std::int64_t width = size_of(type), total = from.elements();
  const std::int64_t most = std::min<std::int64_t>(total, (1 << 20) / width);
  std::vector<std::byte> window(static_cast<std::size_t>(most * width));
  std::int64_t first = 0, last = 0; // the elements in the window
  status result;
  fits = true;
  for_each_run(from, to, [&](std::int64_t at, std::int64_t place, std::int64_t count) {
    while (count > 0 && result.is_ok() && fits) {
      if (at < first || at >= last) {
        first = at;
        last = std::min(total, at + most);
        result = read(first * width, (last - first) * width, window.data());
        if (!result.is_ok())
          return;
      }
      const std::int64_t n = std::min(count, last - at);
      fits = convert_elements(type, window.data() + (at - first) * width, wanted, target + place * size_of(wanted), n);
      at += n;
      place += n;
      count -= n;
    }
  });
  return result;
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

std::int32_t count_replicas(span<axis> axes) {
  std::int32_t count = 1;
  for (const axis &a : axes)
    if (a.role == axis_role::replica)
      count *= a.size;
  return count;
}

std::int32_t replica_of(span<axis> axes, std::int32_t rank) {
  const std::vector<std::int32_t> at = mesh_coordinates(axes, rank);
  std::int32_t replica = 0;
  for (std::size_t i = 0; i < at.size(); ++i)
    if (const axis &a = axes[static_cast<std::int64_t>(i)]; a.role == axis_role::replica)
      replica = replica * a.size + at[i];
  return replica;
}

std::vector<std::int64_t> sizes_of(span<std::int64_t> sizes) { return {sizes.begin(), sizes.end()}; }

/// Returns the cuts of one dim that cut at all, outermost first.
static std::vector<split> cuts_of(std::int32_t dim, span<split> splits, span<axis> axes) {
  std::vector<split> out;
  for (const split &cut : splits)
    if (cut.dim == dim && axes[cut.axis].size > 1)
      out.push_back(cut);
  std::sort(out.begin(), out.end(), [](const split &a, const split &b) { return a.blocks < b.blocks; });
  return out;
}

status check_splits(const char *name, span<std::int64_t> sizes, span<split> splits, span<axis> axes) {
  auto wrong = [&](const std::string &what) {
    return internal_error(std::string("the program splits '") + name + "' " + what);
  };
  std::vector<bool> is_used(static_cast<std::size_t>(axes.size));
  for (const split &cut : splits) {
    if (cut.dim < (sizes.size > 0 ? flat_dim : 0) || cut.dim >= sizes.size || cut.axis < 0 || cut.axis >= axes.size)
      return wrong("in a dimension or axis it lacks");
    if (is_used[static_cast<std::size_t>(cut.axis)])
      return wrong(std::string("twice over axis '") + axes[cut.axis].name + "'");
    is_used[static_cast<std::size_t>(cut.axis)] = true;
  }
  std::int64_t boxes = 1;
  for (std::int32_t dim = 0; dim < sizes.size; ++dim) {
    std::int64_t pieces = 1; // in which the cuts so far leave the dim
    for (const split &cut : cuts_of(dim, splits, axes)) {
      const std::string where = "in dimension " + std::to_string(dim) + ", " + std::to_string(sizes[dim]) + ", ";
      if (cut.blocks < 1 || cut.blocks % pieces != 0)
        return wrong(where + "as " + std::to_string(cut.blocks) + " blocks, after a cut into " +
                     std::to_string(pieces));
      if (__builtin_mul_overflow(cut.blocks, static_cast<std::int64_t>(axes[cut.axis].size), &pieces) ||
          sizes[dim] % pieces != 0)
        return wrong(where + "into uneven parts: " + std::to_string(cut.blocks) + " blocks of " +
                     std::to_string(axes[cut.axis].size));
    }
    if (__builtin_mul_overflow(boxes, pieces, &boxes) || boxes > max_pieces)
      return wrong("into more than " + std::to_string(max_pieces) + " pieces");
  }
  std::int64_t ranges = 1;
  for (const split &cut : cuts_of(flat_dim, splits, axes)) {
    if (cut.blocks != ranges)
      return wrong("flat as " + std::to_string(cut.blocks) + " blocks, after a cut into " + std::to_string(ranges));
    ranges *= axes[cut.axis].size;
    if (ranges * boxes * boxes_of_range(sizes.size) > max_pieces)
      return wrong("into more than " + std::to_string(max_pieces) + " pieces");
  }
  return ok_status();
}

/// Returns the boxes that the elements [begin, end) of a dense tensor make, in order; `outer` holds their first dims.
static void add_boxes(const std::vector<std::int64_t> &sizes, const box &outer, std::int64_t begin, std::int64_t end,
                      std::vector<box> &out) {
  const std::size_t dim = outer.sizes.size();
  std::int64_t slice = 1; // elements of one index of this dim
  for (std::size_t i = dim + 1; i < sizes.size(); ++i)
    slice *= sizes[i];
  const auto extended = [&](std::int64_t from, std::int64_t size) {
    box next = outer;
    next.begin.push_back(from);
    next.sizes.push_back(size);
    return next;
  };
  std::int64_t low = begin / slice, high = end / slice;
  if (low * slice < begin) {
    add_boxes(sizes, extended(low, 1), begin - low * slice, std::min(end - low * slice, slice), out);
    ++low;
  }
  if (low < high) {
    out.push_back(extended(low, high - low));
    for (std::size_t i = dim + 1; i < sizes.size(); ++i) {
      out.back().begin.push_back(0);
      out.back().sizes.push_back(sizes[i]);
    }
  }
  if (low <= high && high * slice < end)
    add_boxes(sizes, extended(high, 1), 0, end - high * slice, out);
}

/// Returns the elements of a dense part that lie in number `range` of `ranges` equal ranges.
static tensor_part range_of(const tensor_part &part, std::int64_t range, std::int64_t ranges) {
  const std::int64_t total = part.elements(), length = (total + ranges - 1) / ranges;
  const std::int64_t begin = std::min(range * length, total), end = std::min(begin + length, total);
  std::vector<box> held;
  if (begin < end)
    add_boxes(part.sizes, {{}, {}}, begin, end, held);
  tensor_part out = {{length}, {}};
  for (const local_box &whole : part.boxes)
    for (const box &each : held) {
      local_box next = whole;
      next.skipped = range * length;
      for (std::size_t i = 0; i < part.sizes.size(); ++i) {
        const std::int64_t at = whole.frame.begin[i] + each.begin[i]; // in the whole tensor
        next.held.begin[i] = std::max(whole.held.begin[i], at);
        next.held.sizes[i] =
            std::min(whole.held.begin[i] + whole.held.sizes[i], at + each.sizes[i]) - next.held.begin[i];
      }
      if (std::all_of(next.held.sizes.begin(), next.held.sizes.end(), [](std::int64_t size) { return size > 0; }))
        out.boxes.push_back(std::move(next));
    }
  return out;
}

tensor_part local_part(const std::vector<std::int64_t> &sizes, span<split> splits, span<axis> axes, std::int32_t rank) {
  const std::vector<std::int32_t> coordinates = mesh_coordinates(axes, rank);
  tensor_part out = part_of({{}, {}});
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    // The rank's stretches of this dim begin here, all of one length.
    std::vector<std::int64_t> begins = {0};
    std::int64_t length = sizes[dim], pieces = 1;
    for (const split &cut : cuts_of(static_cast<std::int32_t>(dim), splits, axes)) {
      const std::int64_t members = axes[cut.axis].size, blocks = cut.blocks / pieces;
      length /= blocks * members;
      pieces = cut.blocks * members;
      std::vector<std::int64_t> next;
      for (std::int64_t begin : begins)
        for (std::int64_t block = 0; block < blocks; ++block)
          next.push_back(begin + (block * members + coordinates[static_cast<std::size_t>(cut.axis)]) * length);
      begins = std::move(next);
    }
    const std::int64_t local = length * static_cast<std::int64_t>(begins.size());
    std::vector<local_box> next;
    for (const local_box &outer : out.boxes)
      for (std::size_t i = 0; i < begins.size(); ++i) {
        next.push_back(outer);
        next.back().held.begin.push_back(begins[i]);
        next.back().held.sizes.push_back(length);
        next.back().frame.begin.push_back(begins[i] - static_cast<std::int64_t>(i) * length);
        next.back().frame.sizes.push_back(local);
      }
    out.boxes = std::move(next);
    out.sizes.push_back(local);
  }
  std::int64_t range = 0, ranges = 1;
  for (const split &cut : cuts_of(flat_dim, splits, axes)) {
    ranges *= axes[cut.axis].size;
    range = range * axes[cut.axis].size + coordinates[static_cast<std::size_t>(cut.axis)];
  }
  return ranges > 1 ? range_of(out, range, ranges) : out;
}

} // namespace windlass::rt
