// Reading and adding rows by index.
#include "clear.h"
#include "rows.h"

#include "windlass/rt/kernels.h"

#include "windlass/rt/detail/table_rows.h"

#include <cstring>
#include <string>

namespace windlass::rt {

namespace {

using cpu::sequence;

status wrong_index(const char *what, std::int64_t index, std::int64_t position, std::int64_t limit) {
  return bad_input(std::string(what) + " " + std::to_string(index) + " at position " + std::to_string(position) +
                   " is outside of the table of " + std::to_string(limit) + "; check the data");
}

/// First position whose index is outside of [lowest, limit), or -1.
std::int64_t find_wrong(const view &indices, const sequence &positions, std::int64_t lowest, std::int64_t limit) {
  for (std::int64_t i = 0; i < positions.count(); ++i) {
    const std::int64_t index = indices.as<const std::int64_t>()[positions.offset(i)];
    if (index < lowest || index >= limit)
      return i;
  }
  return -1;
}

/// A gather or its adjoint: `full` has the indexed axis, `part` has the dims of the indices in its place. Where `first`
/// is not absent, `full` consists of parts that begin at these of `limit` places along the axis.
struct layout {
  view full, part, indices;
  int axis;
  std::int64_t limit = full.sizes[axis];
  view first = {};
};

constexpr std::int64_t nowhere = -1;

/// Where along the axis an index leads; nowhere in parts that do not have it.
std::int64_t place_of(const layout &l, std::int64_t index) {
  return detail::table_parts(l.first, l.full.sizes[l.axis]).place_of(index < 0 ? index + l.limit : index);
}

bool fits(const view &full, const view &part, const view &indices, int axis) {
  return detail::fits_rows(full, part, indices, axis) && part.type == full.type;
}

layout table_of(const view &table, const view &rows, const view &ids, const view &first, std::int64_t all_rows) {
  return {table, rows, ids, 0, first.is_absent() ? table.sizes[0] : all_rows, first};
}

/// Calls f(full, part, n, full_stride, part_stride) for evenly spaced runs of n elements that cover the elements
/// [begin, end) of two sequences of equal sizes; the first two are offsets.
template <class F>
void for_runs(const sequence &full, const sequence &part, std::int64_t begin, std::int64_t end, F f) {
  while (begin < end) {
    const std::int64_t n = std::min({full.run() - begin % full.run(), part.run() - begin % part.run(), end - begin});
    f(full.offset(begin), part.offset(begin), n, full.stride(), part.stride());
    begin += n;
  }
}

template <class T> void gather_as(const layout &l, std::int32_t threads) {
  const int rank = l.indices.rank;
  const sequence full_pre(l.full, 0, l.axis), part_pre(l.part, 0, l.axis);
  const sequence full_post(l.full, l.axis + 1, l.full.rank), part_post(l.part, l.axis + rank, l.part.rank);
  const sequence indices(l.indices, 0, rank), places(l.part, l.axis, l.axis + rank);
  const std::int64_t post = full_post.count();
  cpu::for_rows(threads, full_pre.count() * indices.count(), post, [&](std::int64_t row) {
    const std::int64_t pre = row / indices.count(), place = row % indices.count();
    const std::int64_t found = place_of(l, l.indices.as<const std::int64_t>()[indices.offset(place)]);
    T *to = l.part.as<T>() + part_pre.offset(pre) + places.offset(place);
    if (found == nowhere) {
      for (std::int64_t i = 0; i < post; ++i)
        to[part_post.offset(i)] = 0;
      return;
    }
    const T *from = l.full.as<const T>() + full_pre.offset(pre) + found * l.full.strides[l.axis];
    for_runs(full_post, part_post, 0, post,
             [&](std::int64_t a, std::int64_t b, std::int64_t n, std::int64_t stride_a, std::int64_t stride_b) {
               if (stride_a == 1 && stride_b == 1) {
                 std::memcpy(to + b, from + a, static_cast<std::size_t>(n) * sizeof(T));
                 return;
               }
               for (std::int64_t i = 0; i < n; ++i)
                 to[b + i * stride_b] = from[a + i * stride_a];
             });
  });
}

/// Adds rows in the order of the indices. Threads divide the elements before and after the axis, so that no two of
/// them add to the same place.
void scatter(const layout &l, std::int32_t threads) {
  const int rank = l.indices.rank;
  const sequence full_pre(l.full, 0, l.axis), part_pre(l.part, 0, l.axis);
  const sequence full_post(l.full, l.axis + 1, l.full.rank), part_post(l.part, l.axis + rank, l.part.rank);
  const sequence indices(l.indices, 0, rank), places(l.part, l.axis, l.axis + rank);
  const std::int64_t pre = full_pre.count(), post = full_post.count();
  const auto add = [&](std::int64_t pre_index, std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = 0; place < indices.count(); ++place) {
      const std::int64_t found = place_of(l, l.indices.as<const std::int64_t>()[indices.offset(place)]);
      if (found == nowhere)
        continue;
      float *to = l.full.as<float>() + full_pre.offset(pre_index) + found * l.full.strides[l.axis];
      const float *from = l.part.as<const float>() + part_pre.offset(pre_index) + places.offset(place);
      for_runs(full_post, part_post, begin, end,
               [&](std::int64_t a, std::int64_t b, std::int64_t n, std::int64_t stride_a, std::int64_t stride_b) {
                 if (stride_a == 1 && stride_b == 1) {
                   WINDLASS_SIMD
                   for (std::int64_t i = 0; i < n; ++i)
                     to[a + i] += from[b + i];
                   return;
                 }
                 for (std::int64_t i = 0; i < n; ++i)
                   to[a + i * stride_a] += from[b + i * stride_b];
               });
    }
  };
  const std::int64_t work = indices.count() * post + 1;
  if (pre >= threads)
    detail::parallel(threads, pre, cpu::grain / work + 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
      for (std::int64_t i = begin; i < end; ++i)
        add(i, 0, post);
    });
  else
    detail::parallel(threads, post, std::max<std::int64_t>(16, cpu::grain / (indices.count() + 1)),
                     [&](std::int64_t begin, std::int64_t end, std::int32_t) {
                       for (std::int64_t i = 0; i < pre; ++i)
                         add(i, begin, end);
                     });
}

/// Bad data, not a bad program, when an index lies outside; `what` the indices are called.
status check_indices(const layout &l, const char *what, bool allows_negative) {
  const sequence positions(l.indices, 0, l.indices.rank);
  const std::int64_t wrong = find_wrong(l.indices, positions, allows_negative ? -l.limit : 0, l.limit);
  return wrong < 0 ? ok_status()
                   : wrong_index(what, l.indices.as<const std::int64_t>()[positions.offset(wrong)], wrong, l.limit);
}

status gather_or_fail(stream &s, const char *name, const layout &l, const char *what, bool allows_negative) {
  const work done = {name, 0, 2 * bytes_of({l.part}), {l.part.elements()}};
  return s.submit(done, [l, what, allows_negative, threads = s.threads()]() -> status {
    WINDLASS_TRY(check_indices(l, what, allows_negative));
    switch (size_of(l.full.type)) {
    case 8:
      gather_as<std::int64_t>(l, threads);
      break;
    case 4:
      gather_as<std::int32_t>(l, threads);
      break;
    case 2:
      gather_as<std::int16_t>(l, threads);
      break;
    default:
      gather_as<std::int8_t>(l, threads);
      break;
    }
    return {};
  });
}

status scatter_or_fail(stream &s, const char *name, const layout &l, const char *what, bool allows_negative,
                       bool accumulate) {
  const work done = {name, 0, 3 * bytes_of({l.part}) + (accumulate ? 0 : bytes_of({l.full})), {l.part.elements()}};
  return s.submit(done, [l, what, allows_negative, accumulate, threads = s.threads()]() -> status {
    if (!accumulate)
      cpu::clear(l.full, threads);
    WINDLASS_TRY(check_indices(l, what, allows_negative));
    scatter(l, threads);
    return {};
  });
}

} // namespace

status embedding(stream &s, const view &out, const view &table, const view &ids, const view &first,
                 std::int64_t all_rows) {
  if (!fits(table, out, ids, 0) || !detail::fits_parts(table, first, all_rows))
    return internal_error("embedding got views whose types, ranks or sizes do not fit");
  const layout l = table_of(table, out, ids, first, all_rows);
  return gather_or_fail(s, "embedding", l, "id", false);
}

status embedding_grad(stream &s, const view &dtable, const view &ids, const view &dout, const view &first,
                      std::int64_t all_rows, bool accumulate) {
  if (!fits(dtable, dout, ids, 0) || !detail::fits_parts(dtable, first, all_rows) || dtable.type != element_type::f32)
    return internal_error("embedding_grad got views whose types, ranks or sizes do not fit");
  const layout l = table_of(dtable, dout, ids, first, all_rows);
  return scatter_or_fail(s, "embedding_grad", l, "id", false, accumulate);
}

status gather(stream &s, const view &out, const view &in, const view &indices, std::int32_t axis) {
  if (!fits(in, out, indices, axis))
    return internal_error("gather got views whose types, ranks or sizes do not fit");
  const layout l = {in, out, indices, axis};
  return gather_or_fail(s, "gather", l, "index", true);
}

status scatter_add(stream &s, const view &out, const view &indices, const view &in, std::int32_t axis,
                   bool accumulate) {
  if (!fits(out, in, indices, axis) || out.type != element_type::f32)
    return internal_error("scatter_add got views whose types, ranks or sizes do not fit");
  const layout l = {out, in, indices, axis};
  return scatter_or_fail(s, "scatter_add", l, "index", true, accumulate);
}

} // namespace windlass::rt
