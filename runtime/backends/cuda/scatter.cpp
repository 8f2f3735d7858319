// Adding rows by index. Rows of the same index are brought together by sorting the places that have it; a block sums
// up a few places that lie next to each other then, and what goes on in the next block's is joined afterwards. So every
// sum has one order, whenever blocks run.
#include "row_layout.h"
#include "rows.h"
#include "sort.h"

#include <utility>

namespace windlass::rt::cuda {
namespace {

/// Sorted places that a block sums up, and how many of their rows it reads at once.
constexpr int tile = 32, ahead = 4;

/// Rows of places [begin, begin + count) as keys, with the places; the number of rows for what leads nowhere.
__global__ void find_rows(keyed_values to, row_layout l, std::int64_t begin, std::int64_t count, fault *faults) {
  for (std::int64_t i = grid_thread(); i < count; i += grid_threads()) {
    const std::int64_t row = place_of(l, begin + i, faults);
    to.keys[i] = static_cast<std::uint32_t>(row == nowhere ? l.axis_size : row);
    to.values[i] = static_cast<std::uint32_t>(i);
  }
}

/// What the runs of equal rows in a tile have in common with its neighbours'.
struct runs {
  const std::uint32_t *keys;
  std::int64_t begin, end, count;

  __device__ runs(const std::uint32_t *keys, std::int64_t tile_number, std::int64_t count)
      : keys(keys), begin(tile_number * tile), end(begin + tile < count ? begin + tile : count), count(count) {}
  __device__ bool ends_at(std::int64_t i) const { return i + 1 == end || keys[i + 1] != keys[i]; }
  /// Whether the first run began before, or the last goes on afterwards.
  __device__ bool began_before() const { return begin > 0 && keys[begin - 1] == keys[begin]; }
  __device__ bool goes_on() const { return end < count && keys[end] == keys[end - 1]; }
};

/// Each tile keeps the sums of its first and of its last run apart where they are of parts of a run only:
/// partial[pre, tile, 0 or 1, column].
__device__ inline std::int64_t partial_at(std::int64_t pre, std::int64_t tiles, std::int64_t tile_number, int slot,
                                          std::int64_t post) {
  return ((pre * tiles + tile_number) * 2 + slot) * post;
}

template <int W>
__global__ void sum_runs(float *partial, row_layout l, keyed_values sorted, std::int64_t first_place,
                         std::int64_t count, element_type full_type, element_type part_type) {
  const operand full(l.full, full_type), part(l.part, part_type);
  const std::int64_t tiles = (count + tile - 1) / tile, post = l.part_post.count();
  for (std::int64_t item = blockIdx.x; item < tiles * l.part_pre.count(); item += gridDim.x) {
    const std::int64_t at = item % tiles, pre = item / tiles;
    const runs of(sorted.keys, at, count);
    if (sorted.keys[of.begin] >= l.axis_size) // and so are all that follow
      continue;
    const bool began_before = of.began_before(), goes_on = of.goes_on();
    for (std::int64_t column = std::int64_t(threadIdx.x) * W; column < post; column += std::int64_t(blockDim.x) * W) {
      const std::int64_t from = l.part_pre.offset(pre) + l.part_post.offset(column),
                         to = l.full_pre.offset(pre) + l.full_post.offset(column);
      float sum[W] = {};
      bool is_first = true;
      for (std::int64_t i = of.begin; i < of.end; i += ahead) {
        float rows[ahead][W];
#pragma unroll
        for (int k = 0; k < ahead; ++k)
          if (i + k < of.end)
            load(rows[k], part, from + l.place_at.offset(first_place + sorted.values[i + k]));
#pragma unroll
        for (int k = 0; k < ahead; ++k) {
          if (i + k >= of.end)
            break;
          for (int w = 0; w < W; ++w)
            sum[w] += rows[k][w];
          if (!of.ends_at(i + k))
            continue;
          const std::int64_t row = sorted.keys[i + k];
          const bool is_part = (is_first && began_before) || (i + k + 1 == of.end && goes_on);
          if (is_part) {
            for (int w = 0; w < W; ++w)
              partial[partial_at(pre, tiles, at, is_first ? 0 : 1, post) + column + w] = sum[w];
          } else if (row < l.axis_size) {
            float old[W];
            load(old, full, to + row * l.axis_stride);
            for (int w = 0; w < W; ++w)
              old[w] += sum[w];
            store(full, to + row * l.axis_stride, old);
          }
          for (int w = 0; w < W; ++w)
            sum[w] = 0;
          is_first = false;
        }
      }
    }
  }
}

/// Joins the parts of runs, each by the block of the tile where it begins.
__global__ void join_runs(row_layout l, const float *partial, const std::uint32_t *keys, std::int64_t count,
                          element_type full_type) {
  const operand full(l.full, full_type);
  const std::int64_t tiles = (count + tile - 1) / tile, post = l.part_post.count();
  for (std::int64_t item = blockIdx.x; item < tiles * l.part_pre.count(); item += gridDim.x) {
    const std::int64_t at = item % tiles, pre = item / tiles;
    const runs of(keys, at, count);
    const std::int64_t row = keys[of.end - 1];
    const bool is_whole_tile = keys[of.begin] == keys[of.end - 1];
    if (!of.goes_on() || (is_whole_tile && of.began_before()) || row >= l.axis_size)
      continue;
    std::int64_t last = at + 1;
    while (runs(keys, last, count).goes_on() && keys[runs(keys, last, count).end - 1] == row)
      ++last;
    for (std::int64_t column = threadIdx.x; column < post; column += blockDim.x) {
      float sum = partial[partial_at(pre, tiles, at, is_whole_tile ? 0 : 1, post) + column];
      for (std::int64_t next = at + 1; next <= last; ++next)
        sum += partial[partial_at(pre, tiles, next, 0, post) + column];
      const std::int64_t to = l.full_pre.offset(pre) + l.full_post.offset(column) + row * l.axis_stride;
      full.set(to, full.get(to) + sum);
    }
  }
}

std::int64_t aligned(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

/// Bytes of scratch that `count` places take at once: keys and values twice, their digits' counts, parts of runs.
std::int64_t bytes_for(std::int64_t count, std::int64_t row_elements) {
  const std::int64_t tiles = (count + tile - 1) / tile;
  return 4 * aligned(4 * count) + aligned(sort_count_bytes(count)) + tiles * 2 * row_elements * 4;
}

status scatter_places(stream &s, const row_layout &l, const view &full, const view &part, std::int64_t begin,
                      std::int64_t count) {
  std::byte *at = s.scratch();
  const auto take = [&](std::int64_t bytes) {
    return reinterpret_cast<std::uint32_t *>(std::exchange(at, at + aligned(bytes)));
  };
  std::uint32_t *const memory[] = {take(4 * count), take(4 * count), take(4 * count), take(4 * count)};
  std::uint32_t *const counts = take(sort_count_bytes(count));
  float *const partial = reinterpret_cast<float *>(at);
  keyed_values sorted = {memory[0], memory[1]};
  WINDLASS_TRY(
      launch(s, blocks_for(count), block_threads, find_rows, sorted, l, begin, count, device_stream_of(s).faults()));
  WINDLASS_TRY(sort_by_key(s, sorted, {memory[2], memory[3]}, counts, count, static_cast<std::uint32_t>(l.axis_size)));
  const std::int64_t items = (count + tile - 1) / tile * l.part_pre.count(), post = l.part_post.count();
  const bool has_packs = has_packs_along(l.full_post, full) && has_packs_along(l.part_post, part);
  WINDLASS_TRY(launch(s, blocks_for(items, 1), threads_for_row(post, has_packs ? pack_columns : 1),
                      has_packs ? sum_runs<pack_columns> : sum_runs<1>, partial, l, sorted, begin, count, full.type,
                      part.type));
  return launch(s, blocks_for(items, 1), threads_for_row(post, 1), join_runs, l, partial, sorted.keys, count,
                full.type);
}

} // namespace

status run_scatter(stream &s, const char *name, const row_layout &l, const view &full, const view &part,
                   bool accumulate) {
  if (l.axis_size >= std::int64_t(1) << 31)
    return internal_error(std::string(name) + " adds to a table of 2^31 rows or more");
  const std::int64_t cleared = accumulate ? 0 : bytes_of({full});
  return s.submit({name, 0, 3 * bytes_of({part}) + cleared, {part.elements()}}, [=, &s]() -> status {
    if (!accumulate)
      WINDLASS_TRY(clear(s, full));
    const std::int64_t places = l.index_at.count(), row_elements = l.part_pre.count() * l.part_post.count();
    // As many places at a time as the scratch is enough for.
    std::int64_t most = places;
    while (most > tile && bytes_for(most, row_elements) > s.scratch_bytes())
      most /= 2;
    if (places > 0 && bytes_for(most, row_elements) > s.scratch_bytes())
      return internal_error(std::string(name) + " needs " + std::to_string(bytes_for(most, row_elements)) +
                            " bytes of scratch, the stream has " + std::to_string(s.scratch_bytes()));
    for (std::int64_t begin = 0; begin < places; begin += most)
      WINDLASS_TRY(scatter_places(s, l, full, part, begin, std::min(most, places - begin)));
    return {};
  });
}

} // namespace windlass::rt::cuda
