// Softmax, and softmax followed by cross entropy. A block for each row.
#include "rows.h"

namespace windlass::rt {

namespace cuda {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

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
        sum += windlass::scalar::exp(in.of[0][w] - most);
    });
    const float factor = 1.0f / reduce_block<add_values>(sum);
    part.each([&](std::int64_t i, auto in) {
      for (int w = 0; w < in.width; ++w)
        in.of[0][w] = windlass::scalar::exp(in.of[0][w] - most) * factor;
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
      sum *= windlass::scalar::exp(before - low());
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
      of_thread.sum += windlass::scalar::exp(in.of[0][w] - of_thread.low());
  });
  of_thread.raise(reduce_block<larger_number>(of_thread.most));
  return of_thread.low() + windlass::scalar::log(reduce_block<add_values>(of_thread.sum));
}

/// Each block sums the losses of its rows.
template <int W>
__global__ void cross_entropy_kernel(double *sums, double *counts, operand lse, rows logits, const std::int64_t *labels,
                                     sequence of_lse, sequence of_labels, std::int64_t classes,
                                     std::int64_t ignore_index, fault *faults) {
  double sum = 0, count = 0;
  for (std::int64_t row = blockIdx.x; row < logits.at.count(); row += gridDim.x) {
    const float total = log_sum_exp<W>(logits, row, classes);
    if (threadIdx.x != 0)
      continue;
    lse.set(of_lse.offset(row), total);
    const std::int64_t label = labels[of_labels.offset(row)];
    if (label == ignore_index)
      continue;
    if (label < 0 || label >= classes) {
      report(faults, label_fault, label, row, classes);
      continue;
    }
    sum += static_cast<double>(total - logits.of.get(logits.at.offset(row) + label * logits.stride));
    count += 1;
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    counts[blockIdx.x] = count;
  }
}

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
    count.set(0, static_cast<float>(rows));
  }
}

/// Each logit is read and written by one thread, so that dlogits may be logits.
template <int W>
__global__ void cross_entropy_grad_kernel(rows dlogits, operand dsum, rows logits, const std::int64_t *labels,
                                          operand lse, sequence of_labels, sequence of_lse, std::int64_t classes,
                                          std::int64_t ignore_index) {
  for (std::int64_t row = blockIdx.x; row < logits.at.count(); row += gridDim.x) {
    const std::int64_t out = dlogits.at.offset(row), base = logits.at.offset(row),
                       label = labels[of_labels.offset(row)];
    const bool is_ignored = label == ignore_index;
    const float factor = is_ignored ? 0.0f : dsum.get(0), total = lse.get(of_lse.offset(row));
    each_pack<1, W>(classes, [&](std::int64_t i, auto x) {
      if (!is_ignored)
        load(x.of[0], logits.of, base + i * logits.stride);
      for (int w = 0; w < x.width; ++w) {
        const float p = is_ignored ? 0.0f : windlass::scalar::exp(x.of[0][w] - total);
        x.of[0][w] = factor * p - (i + w == label ? factor : 0.0f);
      }
      store(dlogits.of, out + i * dlogits.stride, x.of[0]);
    });
  }
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

bool fits_labels(const view &logits, const view &labels, const view &lse) {
  return cuda::are_real({logits, lse}) && labels.type == element_type::i64 && logits.rank >= 1 &&
         labels.rank == logits.rank - 1 && lse.rank == labels.rank &&
         cuda::has_same_dims(labels, logits, labels.rank) && cuda::has_same_dims(lse, logits, labels.rank);
}

} // namespace

status softmax_cross_entropy(stream &s, const view &sum, const view &count, const view &lse, const view &logits,
                             const view &labels, std::int64_t ignore_index) {
  WINDLASS_TRY(
      cuda::check_views(cuda::are_real({sum, count}) && fits_labels(logits, labels, lse), "softmax_cross_entropy"));
  return s.submit(
      {"softmax_cross_entropy", 0, bytes_of({lse, logits, labels}), {labels.elements(), logits.sizes[logits.rank - 1]}},
      [=, &s]() -> status {
        const int lead = logits.rank - 1, width = cuda::has_packs(logits) ? pack_columns : 1;
        const sequence of_lse(lse, 0, lead), of_labels(labels, 0, lead);
        const rows of_logits(logits, lead);
        const std::int64_t room = s.scratch_bytes() / 16, classes = logits.sizes[lead];
        if (room < 1)
          return internal_error("softmax_cross_entropy needs scratch, the stream has none");
        const std::int64_t parts = std::min<std::int64_t>({cuda::blocks_for_rows(of_logits.at.count()), 4096, room});
        double *sums = reinterpret_cast<double *>(s.scratch()), *counts = sums + parts;
        WINDLASS_TRY(cuda::launch(s, static_cast<unsigned>(parts), cuda::threads_for_row(classes, width),
                                  width > 1 ? cuda::cross_entropy_kernel<pack_columns> : cuda::cross_entropy_kernel<1>,
                                  sums, counts, cuda::operand(lse), of_logits, labels.as<const std::int64_t>(), of_lse,
                                  of_labels, classes, ignore_index, cuda::device_stream_of(s).faults()));
        return cuda::launch(s, 1, cuda::block_threads, cuda::join_losses, cuda::operand(sum), cuda::operand(count),
                            sums, counts, parts);
      });
}

status softmax_cross_entropy_grad(stream &s, const view &dlogits, const view &dsum, const view &logits,
                                  const view &labels, const view &lse, std::int64_t ignore_index) {
  WINDLASS_TRY(cuda::check_views(cuda::are_real({dlogits, dsum}) && cuda::has_same_sizes(dlogits, logits) &&
                                     fits_labels(logits, labels, lse),
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

} // namespace windlass::rt
