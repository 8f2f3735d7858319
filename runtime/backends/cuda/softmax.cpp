// Softmax, and softmax followed by cross entropy. A block for each row. Exponentials are the device's, which take a
// third of the instructions of those of windlass/rt/scalar.h: with these, arithmetic would take longer than memory.
#include "rows.h"

namespace windlass::rt {

namespace cuda {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Threads of a block that takes losses. A multiprocessor has two such blocks, so that caches hold their rows until the
/// second reading.
constexpr int loss_threads = 768;

/// The larger of the numbers; -infinity where there is none.
template <int W> __device__ inline float largest(const float (&x)[W]) {
  float most = -infinity;
  for (int w = 0; w < W; ++w)
    most = larger_number::join(x[w], most);
  return most;
}

/// A row of -infinity only gives NaN, as in PyTorch. Each element is read and written by one thread, so that y may be
/// x.
template <int W> __global__ void softmax_kernel(rows y, rows x, std::int64_t n) {
  for (std::int64_t row = blockIdx.x; row < x.at.count(); row += gridDim.x) {
    const row_part<1, W> part({x.of}, {x.at.offset(row)}, {x.stride}, n);
    const std::int64_t out = y.at.offset(row);
    float most = -infinity, sum = 0;
    part.each([&](std::int64_t, const auto &in) { most = larger_number::join(largest(in.of[0]), most); });
    most = reduce_block<larger_number>(most);
    part.each([&](std::int64_t, const auto &in) {
      for (int w = 0; w < in.width; ++w)
        sum += std::exp(in.of[0][w] - most);
    });
    const float factor = 1.0f / reduce_block<add_values>(sum);
    part.each([&](std::int64_t i, auto in) {
      for (int w = 0; w < in.width; ++w)
        in.of[0][w] = std::exp(in.of[0][w] - most) * factor;
      store(y.of, out + i * y.stride, in.of[0]);
    });
  }
}

template <int W> __global__ void softmax_grad_kernel(rows dx, rows y, rows dy, std::int64_t n) {
  for (std::int64_t row = blockIdx.x; row < y.at.count(); row += gridDim.x) {
    const row_part<2, W> part({y.of, dy.of}, {y.at.offset(row), dy.at.offset(row)}, {y.stride, dy.stride}, n);
    const std::int64_t out = dx.at.offset(row);
    float dot = 0;
    part.each([&](std::int64_t, const auto &in) {
      for (int w = 0; w < in.width; ++w)
        dot += in.of[0][w] * in.of[1][w];
    });
    dot = reduce_block<add_values>(dot);
    part.each([&](std::int64_t i, auto in) {
      for (int w = 0; w < in.width; ++w)
        in.of[0][w] = in.of[0][w] * (in.of[1][w] - dot);
      store(dx.of, out + i * dx.stride, in.of[0]);
    });
  }
}

/// The sum of exp(x - low()) over what was added, where low() is the largest number so far: one reading of a row is
/// enough. With an infinity as the largest the difference would be NaN where the limit is that infinity.
struct exp_sum {
  float most = -infinity, sum = 0;

  __device__ float low() const { return most - most != 0 ? 0.0f : most; }
  /// Takes a larger bound.
  __device__ void raise(float to) {
    const float before = low();
    most = larger_number::join(to, most);
    if (sum != 0)
      sum *= std::exp(before - low());
  }
};

/// The logarithm of the sum of exp over a row, the same on every thread.
template <int W> __device__ inline float log_sum_exp(const rows &x, std::int64_t row, std::int64_t n) {
  exp_sum of_thread;
  const std::int64_t base = x.at.offset(row);
  each_pack<1, W>(n, [&](std::int64_t i, auto in) {
    load(in.of[0], x.of, base + i * x.stride);
    of_thread.raise(largest(in.of[0]));
    for (int w = 0; w < in.width; ++w)
      of_thread.sum += std::exp(in.of[0][w] - of_thread.low());
  });
  of_thread.raise(reduce_block<larger_number>(of_thread.most));
  return of_thread.low() + std::log(reduce_block<add_values>(of_thread.sum));
}

/// The gradient of a row's loss. Each logit is read and written by one thread, so that dlogits may be logits.
template <int W>
__device__ inline void write_gradient(const rows &dlogits, const rows &logits, std::int64_t row, std::int64_t classes,
                                      std::int64_t label, bool is_ignored, float dsum, float log_sum) {
  const std::int64_t out = dlogits.at.offset(row), base = logits.at.offset(row);
  each_pack<1, W>(classes, [&](std::int64_t i, auto x) {
    if (!is_ignored)
      load(x.of[0], logits.of, base + i * logits.stride);
    for (int w = 0; w < x.width; ++w)
      x.of[0][w] = is_ignored ? 0.0f : dsum * std::exp(x.of[0][w] - log_sum);
    if (!is_ignored && label >= i && label < i + x.width)
      for (int w = 0; w < x.width; ++w)
        x.of[0][w] -= i + w == label ? dsum : 0.0f;
    store(dlogits.of, out + i * dlogits.stride, x.of[0]);
  });
}

/// What becomes of a row's log_sum_exp, of rows that are ignored too where `of_ignored`: it is kept,
struct log_sums {
  static constexpr bool of_ignored = true;
  operand to;
  sequence at;
  template <int W>
  __device__ void take(const rows &, std::int64_t row, std::int64_t, std::int64_t, bool, float log_sum) const {
    if (threadIdx.x == 0)
      to.set(at.offset(row), log_sum);
  }
};
/// or the row's logits, which caches still hold, become their gradient.
struct gradients {
  static constexpr bool of_ignored = false;
  operand dsum;
  template <int W>
  __device__ void take(const rows &logits, std::int64_t row, std::int64_t classes, std::int64_t label, bool is_ignored,
                       float log_sum) const {
    write_gradient<W>(logits, logits, row, classes, label, is_ignored, dsum.get(0), log_sum);
  }
};

/// Each block sums the losses of its rows.
template <int W, class Then>
__global__ void __launch_bounds__(loss_threads, 2)
    cross_entropy_kernel(double *sums, double *counts, Then then, rows logits, const std::int64_t *labels,
                         sequence of_labels, std::int64_t classes, std::int64_t ignore_index, fault *faults) {
  double sum = 0, count = 0;
  for (std::int64_t row = blockIdx.x; row < logits.at.count(); row += gridDim.x) {
    const std::int64_t label = labels[of_labels.offset(row)];
    const bool is_ignored = label == ignore_index, is_class = label >= 0 && label < classes;
    // Before another thread may write it.
    float own = 0;
    if (threadIdx.x == 0 && is_class)
      own = logits.of.get(logits.at.offset(row) + label * logits.stride);
    const float total = is_ignored && !Then::of_ignored ? 0.0f : log_sum_exp<W>(logits, row, classes);
    then.template take<W>(logits, row, classes, label, is_ignored, total);
    if (threadIdx.x != 0 || is_ignored)
      continue;
    if (!is_class) {
      report(faults, label_fault, label, row, classes);
      continue;
    }
    sum += static_cast<double>(total - own);
    count += 1;
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    counts[blockIdx.x] = count;
  }
}

/// `count` may be absent.
__global__ void join_losses(operand sum, operand count, const double *sums, const double *counts, std::int64_t parts) {
  double losses = 0, rows = 0;
  for (std::int64_t i = threadIdx.x; i < parts; i += blockDim.x) {
    losses += sums[i];
    rows += counts[i];
  }
  losses = reduce_block<add_values>(losses);
  rows = reduce_block<add_values>(rows);
  if (threadIdx.x == 0) {
    sum.set(0, static_cast<float>(losses));
    if (!count.is_absent())
      count.set(0, static_cast<float>(rows));
  }
}

template <int W>
__global__ void cross_entropy_grad_kernel(rows dlogits, operand dsum, rows logits, const std::int64_t *labels,
                                          operand lse, sequence of_labels, sequence of_lse, std::int64_t classes,
                                          std::int64_t ignore_index) {
  for (std::int64_t row = blockIdx.x; row < logits.at.count(); row += gridDim.x) {
    const std::int64_t label = labels[of_labels.offset(row)];
    write_gradient<W>(dlogits, logits, row, classes, label, label == ignore_index, dsum.get(0),
                      lse.get(of_lse.offset(row)));
  }
}

/// One block.
__global__ void count_labels_kernel(operand count, const std::int64_t *labels, sequence of_labels,
                                    std::int64_t ignore_index) {
  unsigned long long counted = 0;
  for (std::int64_t i = threadIdx.x; i < of_labels.count(); i += blockDim.x)
    counted += labels[of_labels.offset(i)] != ignore_index;
  counted = reduce_block<add_values>(counted);
  if (threadIdx.x == 0)
    count.set(0, static_cast<float>(counted));
}

/// The sum of the losses, and their number where `count` is not absent.
template <class Then>
status sum_losses(stream &s, const view &sum, const view &count, const Then &then, const view &logits,
                  const view &labels, std::int64_t ignore_index) {
  const int lead = logits.rank - 1, width = has_packs(logits) ? pack_columns : 1;
  const rows of_logits(logits, lead);
  const std::int64_t room = s.scratch_bytes() / 16, classes = logits.sizes[lead];
  if (room < 1)
    return internal_error("softmax_cross_entropy needs scratch, the stream has none");
  const std::int64_t parts = std::min<std::int64_t>({blocks_for_rows(of_logits.at.count()), 4096, room});
  double *sums = reinterpret_cast<double *>(s.scratch()), *counts = sums + parts;
  WINDLASS_TRY(launch(s, static_cast<unsigned>(parts), threads_for_row(classes, width, loss_threads),
                      width > 1 ? cross_entropy_kernel<pack_columns, Then> : cross_entropy_kernel<1, Then>, sums,
                      counts, then, of_logits, labels.as<const std::int64_t>(), sequence(labels, 0, lead), classes,
                      ignore_index, device_stream_of(s).faults()));
  return launch(s, 1, block_threads, join_losses, operand(sum), operand(count), sums, counts, parts);
}

} // namespace
} // namespace cuda

using cuda::pack_columns;
using cuda::rows;
using cuda::sequence;

status softmax(stream &s, const view &out, const view &in) {
  WINDLASS_TRY(
      cuda::check_views(cuda::are_real({out, in}) && in.rank >= 1 && cuda::has_same_sizes(out, in), "softmax"));
  return s.submit({"softmax", 0, bytes_of({out, in}), {in.elements()}}, [=, &s]() -> status {
    const int lead = in.rank - 1, width = cuda::have_packs({out, in}) ? pack_columns : 1;
    const rows from(in, lead);
    return cuda::launch(s, cuda::blocks_for_rows(from.at.count()), cuda::threads_for_row(in.sizes[lead], width),
                        width > 1 ? cuda::softmax_kernel<pack_columns> : cuda::softmax_kernel<1>, rows(out, lead), from,
                        in.sizes[lead]);
  });
}

status softmax_grad(stream &s, const view &dx, const view &y, const view &dy) {
  WINDLASS_TRY(cuda::check_views(cuda::are_real({dx, y, dy}) && y.rank >= 1 && cuda::has_same_sizes(dx, y) &&
                                     cuda::has_same_sizes(dy, y),
                                 "softmax_grad"));
  return s.submit({"softmax_grad", 0, bytes_of({dx, y, dy}), {y.elements()}}, [=, &s]() -> status {
    const int lead = y.rank - 1, width = cuda::have_packs({dx, y, dy}) ? pack_columns : 1;
    const rows of_y(y, lead);
    return cuda::launch(s, cuda::blocks_for_rows(of_y.at.count()), cuda::threads_for_row(y.sizes[lead], width),
                        width > 1 ? cuda::softmax_grad_kernel<pack_columns> : cuda::softmax_grad_kernel<1>,
                        rows(dx, lead), of_y, rows(dy, lead), y.sizes[lead]);
  });
}

namespace {

bool fits_labels(const view &logits, const view &labels) {
  return cuda::is_real(logits) && labels.type == element_type::i64 && logits.rank >= 1 &&
         labels.rank == logits.rank - 1 && cuda::has_same_dims(labels, logits, labels.rank);
}
bool fits_rows(const view &lse, const view &labels) { return cuda::is_real(lse) && cuda::has_same_sizes(lse, labels); }

} // namespace

status softmax_cross_entropy(stream &s, const view &sum, const view &count, const view &lse, const view &logits,
                             const view &labels, std::int64_t ignore_index) {
  WINDLASS_TRY(cuda::check_views(cuda::are_real({sum, count}) && fits_labels(logits, labels) && fits_rows(lse, labels),
                                 "softmax_cross_entropy"));
  return s.submit(
      {"softmax_cross_entropy", 0, bytes_of({lse, logits, labels}), {labels.elements(), logits.sizes[logits.rank - 1]}},
      [=, &s]() -> status {
        return cuda::sum_losses(s, sum, count, cuda::log_sums{lse, sequence(lse, 0, lse.rank)}, logits, labels,
                                ignore_index);
      });
}

status softmax_cross_entropy_grad(stream &s, const view &dlogits, const view &dsum, const view &logits,
                                  const view &labels, const view &lse, std::int64_t ignore_index) {
  WINDLASS_TRY(cuda::check_views(cuda::are_real({dlogits, dsum}) && cuda::has_same_sizes(dlogits, logits) &&
                                     fits_labels(logits, labels) && fits_rows(lse, labels),
                                 "softmax_cross_entropy_grad"));
  return s.submit({"softmax_cross_entropy_grad",
                   0,
                   bytes_of({dlogits, logits, labels, lse}),
                   {labels.elements(), logits.sizes[logits.rank - 1]}},
                  [=, &s]() -> status {
                    const int lead = logits.rank - 1, width = cuda::have_packs({dlogits, logits}) ? pack_columns : 1;
                    const rows from(logits, lead);
                    const std::int64_t classes = logits.sizes[lead];
                    return cuda::launch(
                        s, cuda::blocks_for_rows(from.at.count()), cuda::threads_for_row(classes, width),
                        width > 1 ? cuda::cross_entropy_grad_kernel<pack_columns> : cuda::cross_entropy_grad_kernel<1>,
                        rows(dlogits, lead), cuda::operand(dsum), from, labels.as<const std::int64_t>(),
                        cuda::operand(lse), sequence(labels, 0, lead), sequence(lse, 0, lead), classes, ignore_index);
                  });
}

status softmax_cross_entropy_with_grad(stream &s, const view &sum, const view &logits, const view &dsum,
                                       const view &labels, std::int64_t ignore_index) {
  WINDLASS_TRY(
      cuda::check_views(cuda::are_real({sum, dsum}) && fits_labels(logits, labels), "softmax_cross_entropy_with_grad"));
  return s.submit({"softmax_cross_entropy_with_grad",
                   0,
                   bytes_of({logits, logits, labels}),
                   {labels.elements(), logits.sizes[logits.rank - 1]}},
                  [=, &s]() -> status {
                    return cuda::sum_losses(s, sum, view(), cuda::gradients{dsum}, logits, labels, ignore_index);
                  });
}

status count_labels(stream &s, const view &count, const view &labels, std::int64_t ignore_index) {
  WINDLASS_TRY(cuda::check_views(cuda::is_real(count) && labels.type == element_type::i64, "count_labels"));
  return s.submit({"count_labels", 0, bytes_of({labels}), {labels.elements()}}, [=, &s]() -> status {
    return cuda::launch(s, 1, cuda::most_threads, cuda::count_labels_kernel, cuda::operand(count),
                        labels.as<const std::int64_t>(), sequence(labels, 0, labels.rank), ignore_index);
  });
}

} // namespace windlass::rt
