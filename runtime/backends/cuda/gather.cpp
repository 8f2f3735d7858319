// Reading and adding rows, and single elements, by index.
#include "row_layout.h"
#include "rows.h"

#include "windlass/rt/detail/table_rows.h"

namespace windlass::rt {

namespace cuda {
namespace {

/// The table's elements come in T, one or more at once, `post` of them in a row. Threads of a block are `lanes`, a
/// power of two, for each row.
template <class T> __global__ void gather_kernel(row_layout l, std::int64_t post, int width, int lanes, fault *faults) {
  const std::int64_t places = l.index_at.count(), at_once = blockDim.x / lanes, lane = threadIdx.x % lanes;
  for (std::int64_t row = blockIdx.x * at_once + threadIdx.x / lanes; row < l.part_pre.count() * places;
       row += gridDim.x * at_once) {
    const std::int64_t place = row % places, pre = row / places, found = place_of(l, place, faults);
    const std::int64_t from = l.full_pre.offset(pre) + found * l.axis_stride,
                       to = l.part_pre.offset(pre) + l.place_at.offset(place);
    for (std::int64_t column = lane; column < post; column += lanes) {
      T value = {};
      if (found != nowhere)
        value = reinterpret_cast<const T *>(l.full)[(from + l.full_post.offset(column * width)) / width];
      reinterpret_cast<T *>(l.part)[(to + l.part_post.offset(column * width)) / width] = value;
    }
  }
}

/// Runs kernel(n-byte integer, ...) of the given bytes of an element or pack.
template <class F> status with_bytes(std::int64_t bytes, F f) {
  switch (bytes) {
  case 16:
    return f(detail::pack<std::uint32_t, 4>());
  case 8:
    return f(std::int64_t());
  case 4:
    return f(std::int32_t());
  case 2:
    return f(std::int16_t());
  default:
    return f(std::int8_t());
  }
}

status run_gather(stream &s, const char *name, const row_layout &l, const view &full, const view &part) {
  return s.submit({name, 0, 2 * bytes_of({part}), {part.elements()}}, [=, &s]() -> status {
    const std::int64_t bytes = size_of(part.type), pack = 16 / bytes;
    const bool has_packs = has_packs_along(l.full_post, full, pack) && has_packs_along(l.part_post, part, pack);
    const std::int64_t width = has_packs ? pack : 1, post = l.part_post.count() / width;
    const int lanes = lanes_for(post);
    const std::int64_t rows = l.part_pre.count() * l.index_at.count();
    return with_bytes(bytes * width, [&](auto t) {
      return launch(s, blocks_for(rows * lanes), block_threads, gather_kernel<decltype(t)>, l, post,
                    static_cast<int>(width), lanes, device_stream_of(s).faults());
    });
  });
}

/// `full` has the indexed axis, `part` and `indices` have another size there and are otherwise alike.
struct element_layout {
  std::byte *full, *part;
  const std::int64_t *indices;
  sequence full_pre, full_post, part_pre, part_post, index_pre, index_post;
  std::int64_t limit, count, full_stride, part_stride, index_stride;
};

/// A thread for each line along the axis, so that no two meet in one element. f(offset in full, offset in part).
template <class F> __device__ void for_elements(const element_layout &l, fault *faults, F f) {
  const std::int64_t post = l.part_post.count(), lines = l.part_pre.count() * post;
  for (std::int64_t line = grid_thread(); line < lines; line += grid_threads()) {
    const std::int64_t full = l.full_pre.offset(line / post) + l.full_post.offset(line % post);
    const std::int64_t part = l.part_pre.offset(line / post) + l.part_post.offset(line % post);
    const std::int64_t index_base = l.index_pre.offset(line / post) + l.index_post.offset(line % post);
    for (std::int64_t i = 0; i < l.count; ++i) {
      const std::int64_t index = l.indices[index_base + i * l.index_stride];
      if (index < -l.limit || index >= l.limit)
        report(faults, index_fault, index, line * l.count + i, l.limit);
      else
        f(full + (index < 0 ? index + l.limit : index) * l.full_stride, part + i * l.part_stride);
    }
  }
}

template <class T> __global__ void gather_elements_kernel(element_layout l, fault *faults) {
  for_elements(l, faults, [&](std::int64_t from, std::int64_t to) {
    reinterpret_cast<T *>(l.part)[to] = reinterpret_cast<const T *>(l.full)[from];
  });
}

__global__ void scatter_elements_kernel(element_layout l, element_type full_type, element_type part_type,
                                        fault *faults) {
  const operand full(l.full, full_type), part(l.part, part_type);
  for_elements(l, faults, [&](std::int64_t to, std::int64_t from) { full.set(to, full.get(to) + part.get(from)); });
}

bool fits_elements(const view &full, const view &part, const view &indices, int axis) {
  bool same = axis >= 0 && axis < full.rank && part.rank == full.rank && indices.rank == full.rank &&
              indices.type == element_type::i64;
  for (int d = 0; d < full.rank && same; ++d)
    same = part.sizes[d] == indices.sizes[d] && (d == axis || part.sizes[d] == full.sizes[d]);
  return same;
}

element_layout elements_of(const view &full, const view &part, const view &indices, int axis) {
  const int rank = full.rank;
  return {full.data,
          part.data,
          indices.as<const std::int64_t>(),
          sequence(full, 0, axis),
          sequence(full, axis + 1, rank),
          sequence(part, 0, axis),
          sequence(part, axis + 1, rank),
          sequence(indices, 0, axis),
          sequence(indices, axis + 1, rank),
          full.sizes[axis],
          part.sizes[axis],
          full.strides[axis],
          part.strides[axis],
          indices.strides[axis]};
}

} // namespace
} // namespace cuda

status embedding(stream &s, const view &out, const view &table, const view &ids, const view &first,
                 std::int64_t all_rows) {
  WINDLASS_TRY(cuda::check_views(detail::fits_rows(table, out, ids, 0) && out.type == table.type &&
                                     detail::fits_parts(table, first, all_rows),
                                 "embedding"));
  return cuda::run_gather(s, "embedding", cuda::layout_of(table, out, ids, 0, false, first, all_rows), table, out);
}

status embedding_grad(stream &s, const view &dtable, const view &ids, const view &dout, const view &first,
                      std::int64_t all_rows, bool accumulate) {
  WINDLASS_TRY(cuda::check_views(detail::fits_rows(dtable, dout, ids, 0) && cuda::are_real({dtable, dout}) &&
                                     detail::fits_parts(dtable, first, all_rows),
                                 "embedding_grad"));
  return cuda::run_scatter(s, "embedding_grad", cuda::layout_of(dtable, dout, ids, 0, false, first, all_rows), dtable,
                           dout, accumulate);
}

status gather(stream &s, const view &out, const view &in, const view &indices, std::int32_t axis) {
  WINDLASS_TRY(cuda::check_views(detail::fits_rows(in, out, indices, axis) && out.type == in.type, "gather"));
  return cuda::run_gather(s, "gather", cuda::layout_of(in, out, indices, axis, true), in, out);
}

status scatter_add(stream &s, const view &out, const view &indices, const view &in, std::int32_t axis,
                   bool accumulate) {
  WINDLASS_TRY(
      cuda::check_views(detail::fits_rows(out, in, indices, axis) && cuda::are_real({out, in}), "scatter_add"));
  return cuda::run_scatter(s, "scatter_add", cuda::layout_of(out, in, indices, axis, true), out, in, accumulate);
}

status gather_elements(stream &s, const view &out, const view &in, const view &indices, std::int32_t axis) {
  WINDLASS_TRY(
      cuda::check_views(cuda::fits_elements(in, out, indices, axis) && out.type == in.type, "gather_elements"));
  const cuda::element_layout l = cuda::elements_of(in, out, indices, axis);
  return s.submit({"gather_elements", 0, 2 * bytes_of({out}) + bytes_of({indices}), {out.elements()}},
                  [l, bytes = size_of(in.type), &s]() -> status {
                    return cuda::with_bytes(bytes, [&](auto t) {
                      return cuda::launch(s, cuda::blocks_for(l.part_pre.count() * l.part_post.count()),
                                          cuda::block_threads, cuda::gather_elements_kernel<decltype(t)>, l,
                                          cuda::device_stream_of(s).faults());
                    });
                  });
}

status scatter_elements_add(stream &s, const view &out, const view &indices, const view &in, std::int32_t axis,
                            bool accumulate) {
  WINDLASS_TRY(cuda::check_views(cuda::fits_elements(out, in, indices, axis) && cuda::are_real({out, in}),
                                 "scatter_elements_add"));
  const cuda::element_layout l = cuda::elements_of(out, in, indices, axis);
  const std::int64_t cleared = accumulate ? 0 : bytes_of({out});
  return s.submit({"scatter_elements_add", 0, 3 * bytes_of({in}) + bytes_of({indices}) + cleared, {in.elements()}},
                  [l, out, from = in.type, accumulate, &s]() -> status {
                    if (!accumulate)
                      WINDLASS_TRY(cuda::clear(s, out));
                    return cuda::launch(s, cuda::blocks_for(l.part_pre.count() * l.part_post.count()),
                                        cuda::block_threads, cuda::scatter_elements_kernel, l, out.type, from,
                                        cuda::device_stream_of(s).faults());
                  });
}

} // namespace windlass::rt
