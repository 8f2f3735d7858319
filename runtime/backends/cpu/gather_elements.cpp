// Reading and adding single elements by index along one axis.
#include "clear.h"
#include "rows.h"

#include "windlass/rt/kernels.h"

#include <cstring>
#include <string>

namespace windlass::rt {

namespace {

/// `full` has the indexed axis, `part` and `indices` have another size there and are otherwise alike.
struct layout {
  view full, part, indices;
  int axis;
};

bool fits(const layout &l) {
  bool same = l.axis >= 0 && l.axis < l.full.rank && l.part.rank == l.full.rank && l.indices.rank == l.full.rank &&
              l.indices.type == element_type::i64 && l.part.type == l.full.type;
  for (int d = 0; d < l.full.rank && same; ++d)
    same = l.part.sizes[d] == l.indices.sizes[d] && (d == l.axis || l.part.sizes[d] == l.full.sizes[d]);
  return same;
}

/// Calls f(offset in full, offset in part) for the indices of each line along the axis, in their order. Threads divide
/// the lines, so that no two of them meet in one element. Fails at an index outside of the axis.
template <class F> status for_elements(const layout &l, std::int32_t threads, F f) {
  const int axis = l.axis, rank = l.full.rank;
  const cpu::sequence full_pre(l.full, 0, axis), full_post(l.full, axis + 1, rank), part_pre(l.part, 0, axis),
      part_post(l.part, axis + 1, rank), index_pre(l.indices, 0, axis), index_post(l.indices, axis + 1, rank);
  const std::int64_t limit = l.full.sizes[axis], count = l.part.sizes[axis], post = part_post.count();
  const auto index_at = [&](std::int64_t line, std::int64_t i) {
    return l.indices.as<const std::int64_t>()[index_pre.offset(line / post) + index_post.offset(line % post) +
                                              i * l.indices.strides[axis]];
  };
  const std::int64_t lines = part_pre.count() * post;
  for (std::int64_t line = 0; line < lines; ++line)
    for (std::int64_t i = 0; i < count; ++i)
      if (const std::int64_t index = index_at(line, i); index < -limit || index >= limit)
        return bad_input("index " + std::to_string(index) + " at position " + std::to_string(i) + " of line " +
                         std::to_string(line) + " is outside of the axis of " + std::to_string(limit) +
                         "; check the data");
  cpu::for_rows(threads, lines, count, [&](std::int64_t line) {
    const std::int64_t full = full_pre.offset(line / post) + full_post.offset(line % post);
    const std::int64_t part = part_pre.offset(line / post) + part_post.offset(line % post);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t index = index_at(line, i);
      f(full + (index < 0 ? index + limit : index) * l.full.strides[axis], part + i * l.part.strides[axis]);
    }
  });
  return {};
}

} // namespace

status gather_elements(stream &s, const view &out, const view &in, const view &indices, std::int32_t axis) {
  const layout l = {in, out, indices, axis};
  if (!fits(l))
    return internal_error("gather_elements got views whose types, ranks or sizes do not fit");
  return s.submit({"gather_elements", 0, 2 * bytes_of({out}) + bytes_of({indices}), {out.elements()}},
                  [l, bytes = size_of(in.type), threads = s.threads()]() -> status {
                    return for_elements(l, threads, [&](std::int64_t from, std::int64_t to) {
                      std::memcpy(l.part.data + to * bytes, l.full.data + from * bytes,
                                  static_cast<std::size_t>(bytes));
                    });
                  });
}

status scatter_elements_add(stream &s, const view &out, const view &indices, const view &in, std::int32_t axis,
                            bool accumulate) {
  const layout l = {out, in, indices, axis};
  if (!fits(l) || out.type != element_type::f32)
    return internal_error("scatter_elements_add got views whose types, ranks or sizes do not fit");
  const std::int64_t cleared = accumulate ? 0 : bytes_of({out});
  return s.submit({"scatter_elements_add", 0, 3 * bytes_of({in}) + bytes_of({indices}) + cleared, {in.elements()}},
                  [l, accumulate, threads = s.threads()]() -> status {
                    if (!accumulate)
                      cpu::clear(l.full, threads);
                    return for_elements(l, threads, [&](std::int64_t to, std::int64_t from) {
                      l.full.as<float>()[to] += l.part.as<const float>()[from];
                    });
                  });
}

} // namespace windlass::rt
