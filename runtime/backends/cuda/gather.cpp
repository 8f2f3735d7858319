// Reading and adding rows, and single elements, by index.
#include "kernel.h"

#include "windlass/rt/detail/table_rows.h"

namespace windlass::rt {

namespace cuda {
namespace {

/// A gather or its adjoint: `full` has the indexed axis, `part` has the dims of the indices in its place. Where there
/// are `parts`, `full` consists of that many parts, which begin at `first` of `limit` places along the axis.
struct row_layout {
  std::byte *full, *part;
  const std::int64_t *indices, *first;
  sequence full_pre, part_pre, full_post, part_post, index_at, place_at;
  std::int64_t axis_stride, axis_size, limit, parts, first_stride;
  bool allows_negative;
};

constexpr std::int64_t nowhere = -1;

/// Where along the axis an index leads; nowhere in parts that do not have it, and where it is wrong, which is noted.
__device__ inline std::int64_t place_of(const row_layout &l, std::int64_t position, fault *faults) {
  const std::int64_t index = l.indices[l.index_at.offset(position)];
  if (index >= l.limit || index < (l.allows_negative ? -l.limit : 0)) {
    report(faults, l.allows_negative ? index_fault : id_fault, index, position, l.limit);
    return nowhere;
  }
  if (l.parts == 0)
    return index < 0 ? index + l.limit : index;
  const std::int64_t length = l.axis_size / l.parts;
  for (std::int64_t part = 0; part < l.parts; ++part) {
    const std::int64_t place = index - l.first[part * l.first_stride];
    if (place >= 0 && place < length)
      return part * length + place;
  }
  return nowhere;
}

/// T has the element's size.
template <class T> __global__ void gather_kernel(row_layout l, fault *faults) {
  const std::int64_t places = l.index_at.count(), post = l.part_post.count();
  for (std::int64_t i = grid_thread(); i < l.part_pre.count() * places * post; i += grid_threads()) {
    const std::int64_t column = i % post, place = i / post % places, pre = i / post / places;
    const std::int64_t found = place_of(l, place, faults);
    T value = 0;
    if (found != nowhere)
      value = reinterpret_cast<const T *>(
          l.full)[l.full_pre.offset(pre) + found * l.axis_stride + l.full_post.offset(column)];
    reinterpret_cast<T *>(l.part)[l.part_pre.offset(pre) + l.place_at.offset(place) + l.part_post.offset(column)] =
        value;
  }
}

/// A block for each place of the indices: the first one with its index adds the rows of all that have it, in their
/// order, so that no two blocks write to one row and sums do not depend on when blocks run.
__global__ void scatter_kernel(row_layout l, element_type full_type, element_type part_type, fault *faults) {
  __shared__ std::int64_t found[block_threads];
  __shared__ int earlier;
  const operand full(l.full, full_type), part(l.part, part_type);
  const std::int64_t places = l.index_at.count(), post = l.part_post.count();
  for (std::int64_t item = blockIdx.x; item < places * l.part_pre.count(); item += gridDim.x) {
    const std::int64_t first = item % places, pre = item / places;
    const std::int64_t mine = place_of(l, first, faults);
    if (mine == nowhere) // for all threads of the block
      continue;
    if (threadIdx.x == 0)
      earlier = 0;
    __syncthreads();
    for (std::int64_t q = threadIdx.x; q < first; q += blockDim.x)
      if (place_of(l, q, faults) == mine)
        earlier = 1;
    __syncthreads();
    const bool is_first = earlier == 0;
    __syncthreads();
    if (!is_first)
      continue;
    const std::int64_t to = l.full_pre.offset(pre) + mine * l.axis_stride;
    for (std::int64_t begin = first; begin < places; begin += blockDim.x) {
      const std::int64_t q = begin + threadIdx.x;
      found[threadIdx.x] = q < places ? place_of(l, q, faults) : nowhere;
      __syncthreads();
      for (std::int64_t column = threadIdx.x; column < post; column += blockDim.x) {
        const std::int64_t at = to + l.full_post.offset(column),
                           from = l.part_pre.offset(pre) + l.part_post.offset(column);
        float sum = full.get(at);
        for (unsigned k = 0; k < blockDim.x; ++k)
          if (found[k] == mine)
            sum += part.get(from + l.place_at.offset(begin + k));
        full.set(at, sum);
      }
      __syncthreads();
    }
  }
}

row_layout layout_of(const view &full, const view &part, const view &indices, int axis, bool allows_negative,
                     const view &first = {}, std::int64_t all_rows = 0) {
  const int rank = indices.rank;
  return {full.data,
          part.data,
          indices.as<const std::int64_t>(),
          first.as<const std::int64_t>(),
          sequence(full, 0, axis),
          sequence(part, 0, axis),
          sequence(full, axis + 1, full.rank),
          sequence(part, axis + rank, part.rank),
          sequence(indices, 0, rank),
          sequence(part, axis, axis + rank),
          full.strides[axis],
          full.sizes[axis],
          first.is_absent() ? full.sizes[axis] : all_rows,
          first.is_absent() ? 0 : first.sizes[0],
          first.is_absent() ? 0 : first.strides[0],
          allows_negative};
}

status run_gather(stream &s, const char *name, const row_layout &l, const view &part) {
  return s.submit({name, 0, 2 * bytes_of({part}), {part.elements()}},
                  [l, bytes = size_of(part.type), n = part.elements(), &s]() -> status {
                    fault *const faults = device_stream_of(s).faults();
                    const unsigned blocks = blocks_for(n);
                    switch (bytes) {
                    case 8:
                      return launch(s, blocks, block_threads, gather_kernel<std::int64_t>, l, faults);
                    case 4:
                      return launch(s, blocks, block_threads, gather_kernel<std::int32_t>, l, faults);
                    case 2:
                      return launch(s, blocks, block_threads, gather_kernel<std::int16_t>, l, faults);
                    default:
                      return launch(s, blocks, block_threads, gather_kernel<std::int8_t>, l, faults);
                    }
                  });
}

status run_scatter(stream &s, const char *name, const row_layout &l, const view &full, const view &part,
                   bool accumulate) {
  if (!accumulate)
    WINDLASS_TRY(fill(s, full, 0.0));
  return s.submit({name, 0, 3 * bytes_of({part}), {part.elements()}},
                  [l, to = full.type, from = part.type, &s]() -> status {
                    return launch(s, blocks_for_rows(l.index_at.count() * l.part_pre.count()), block_threads,
                                  scatter_kernel, l, to, from, device_stream_of(s).faults());
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
  return cuda::run_gather(s, "embedding", cuda::layout_of(table, out, ids, 0, false, first, all_rows), out);
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
  return cuda::run_gather(s, "gather", cuda::layout_of(in, out, indices, axis, true), out);
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
  return s.submit(
      {"gather_elements", 0, 2 * bytes_of({out}) + bytes_of({indices}), {out.elements()}},
      [l, bytes = size_of(in.type), &s]() -> status {
        cuda::fault *const faults = cuda::device_stream_of(s).faults();
        const unsigned blocks = cuda::blocks_for(l.part_pre.count() * l.part_post.count());
        switch (bytes) {
        case 8:
          return cuda::launch(s, blocks, cuda::block_threads, cuda::gather_elements_kernel<std::int64_t>, l, faults);
        case 4:
          return cuda::launch(s, blocks, cuda::block_threads, cuda::gather_elements_kernel<std::int32_t>, l, faults);
        case 2:
          return cuda::launch(s, blocks, cuda::block_threads, cuda::gather_elements_kernel<std::int16_t>, l, faults);
        default:
          return cuda::launch(s, blocks, cuda::block_threads, cuda::gather_elements_kernel<std::int8_t>, l, faults);
        }
      });
}

status scatter_elements_add(stream &s, const view &out, const view &indices, const view &in, std::int32_t axis,
                            bool accumulate) {
  WINDLASS_TRY(cuda::check_views(cuda::fits_elements(out, in, indices, axis) && cuda::are_real({out, in}),
                                 "scatter_elements_add"));
  if (!accumulate)
    WINDLASS_TRY(fill(s, out, 0.0));
  const cuda::element_layout l = cuda::elements_of(out, in, indices, axis);
  return s.submit({"scatter_elements_add", 0, 3 * bytes_of({in}) + bytes_of({indices}), {in.elements()}},
                  [l, to = out.type, from = in.type, &s]() -> status {
                    return cuda::launch(s, cuda::blocks_for(l.part_pre.count() * l.part_post.count()),
                                        cuda::block_threads, cuda::scatter_elements_kernel, l, to, from,
                                        cuda::device_stream_of(s).faults());
                  });
}

} // namespace windlass::rt
