// Softmax, and softmax followed by cross entropy. A block for each row.
#include "kernel.h"

namespace windlass::rt {

namespace cuda {
namespace {

/// The largest number of a row, the same on every thread; -infinity where there is none.
__device__ inline float row_max(const operand &x, std::int64_t base, std::int64_t stride, std::int64_t n) {
  float most = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
    most = larger_number::join(x.get(base + i * stride), most);
  return reduce_block<larger_number>(most);
}

__device__ inline float row_exp_sum(const operand &x, std::int64_t base, std::int64_t stride, std::int64_t n,
                                    float most) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
    sum += windlass::scalar::exp(x.get(base + i * stride) - most);
  return reduce_block<add_values>(sum);
}

/// A row of -infinity only gives NaN, as in PyTorch. Each element is read and written by one thread, so that y may be
/// x.
__global__ void softmax_kernel(operand y, operand x, sequence to, sequence from, std::int64_t n, std::int64_t to_stride,
                               std::int64_t from_stride) {
  for (std::int64_t row = blockIdx.x; row < from.count(); row += gridDim.x) {
    const std::int64_t base = from.offset(row), out = to.offset(row);
    const float most = row_max(x, base, from_stride, n), sum = row_exp_sum(x, base, from_stride, n, most);
    const float factor = 1.0f / sum;
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
      y.set(out + i * to_stride, windlass::scalar::exp(x.get(base + i * from_stride) - most) * factor);
  }
}

__global__ void softmax_grad_kernel(operand dx, operand y, operand dy, sequence to, sequence of_y, sequence of_dy,
                                    std::int64_t n, std::int64_t dx_stride, std::int64_t y_stride,
                                    std::int64_t dy_stride) {
  for (std::int64_t row = blockIdx.x; row < of_y.count(); row += gridDim.x) {
    const std::int64_t a = of_y.offset(row), b = of_dy.offset(row), out = to.offset(row);
    float dot = 0;
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
      dot += y.get(a + i * y_stride) * dy.get(b + i * dy_stride);
    dot = reduce_block<add_values>(dot);
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
      dx.set(out + i * dx_stride, y.get(a + i * y_stride) * (dy.get(b + i * dy_stride) - dot));
  }
}

/// Each block sums the losses of its rows.
__global__ void cross_entropy_kernel(double *sums, double *counts, operand lse, operand logits,
                                     const std::int64_t *labels, sequence of_lse, sequence of_logits,
                                     sequence of_labels, std::int64_t classes, std::int64_t stride,
                                     std::int64_t ignore_index, fault *faults) {
  double sum = 0, count = 0;
  for (std::int64_t row = blockIdx.x; row < of_logits.count(); row += gridDim.x) {
    const std::int64_t base = of_logits.offset(row);
    const float most = row_max(logits, base, stride, classes);
    // With an infinity as the maximum the difference would be NaN where the limit is that infinity.
    const float low = most - most != 0 ? 0.0f : most;
    const float total = low + windlass::scalar::log(row_exp_sum(logits, base, stride, classes, low));
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
    sum += static_cast<double>(total - logits.get(base + label * stride));
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

__global__ void cross_entropy_grad_kernel(operand dlogits, operand dsum, operand logits, const std::int64_t *labels,
                                          operand lse, sequence to, sequence from, sequence of_labels, sequence of_lse,
                                          std::int64_t classes, std::int64_t to_stride, std::int64_t from_stride,
                                          std::int64_t ignore_index) {
  for (std::int64_t row = blockIdx.x; row < from.count(); row += gridDim.x) {
    const std::int64_t out = to.offset(row), base = from.offset(row), label = labels[of_labels.offset(row)];
    const float factor = label == ignore_index ? 0.0f : dsum.get(0), total = lse.get(of_lse.offset(row));
    for (std::int64_t i = threadIdx.x; i < classes; i += blockDim.x) {
      const float p = label == ignore_index ? 0.0f : windlass::scalar::exp(logits.get(base + i * from_stride) - total);
      dlogits.set(out + i * to_stride, factor * p - (i == label ? factor : 0.0f));
    }
  }
}

} // namespace
} // namespace cuda

using cuda::sequence;

status softmax(stream &s, const view &out, const view &in) {
  WINDLASS_TRY(
      cuda::check_views(cuda::are_real({out, in}) && in.rank >= 1 && cuda::has_same_sizes(out, in), "softmax"));
  return s.submit({"softmax", 0, bytes_of({out, in}), {in.elements()}}, [=, &s]() -> status {
    const int lead = in.rank - 1;
    const sequence to(out, 0, lead), from(in, 0, lead);
    return cuda::launch(s, cuda::blocks_for_rows(from.count()), cuda::block_threads, cuda::softmax_kernel,
                        cuda::operand(out), cuda::operand(in), to, from, in.sizes[lead], cuda::last_stride(out),
                        cuda::last_stride(in));
  });
}

status softmax_grad(stream &s, const view &dx, const view &y, const view &dy) {
  WINDLASS_TRY(cuda::check_views(cuda::are_real({dx, y, dy}) && y.rank >= 1 && cuda::has_same_sizes(dx, y) &&
                                     cuda::has_same_sizes(dy, y),
                                 "softmax_grad"));
  return s.submit({"softmax_grad", 0, bytes_of({dx, y, dy}), {y.elements()}}, [=, &s]() -> status {
    const int lead = y.rank - 1;
    const sequence to(dx, 0, lead), of_y(y, 0, lead), of_dy(dy, 0, lead);
    return cuda::launch(s, cuda::blocks_for_rows(of_y.count()), cuda::block_threads, cuda::softmax_grad_kernel,
                        cuda::operand(dx), cuda::operand(y), cuda::operand(dy), to, of_y, of_dy, y.sizes[lead],
                        cuda::last_stride(dx), cuda::last_stride(y), cuda::last_stride(dy));
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
        const int lead = logits.rank - 1;
        const sequence of_lse(lse, 0, lead), of_logits(logits, 0, lead), of_labels(labels, 0, lead);
        const std::int64_t room = s.scratch_bytes() / 16;
        if (room < 1)
          return internal_error("softmax_cross_entropy needs scratch, the stream has none");
        const std::int64_t parts = std::min<std::int64_t>({cuda::blocks_for_rows(of_logits.count()), 4096, room});
        double *sums = reinterpret_cast<double *>(s.scratch()), *counts = sums + parts;
        WINDLASS_TRY(cuda::launch(s, static_cast<unsigned>(parts), cuda::block_threads, cuda::cross_entropy_kernel,
                                  sums, counts, cuda::operand(lse), cuda::operand(logits),
                                  labels.as<const std::int64_t>(), of_lse, of_logits, of_labels, logits.sizes[lead],
                                  cuda::last_stride(logits), ignore_index, cuda::device_stream_of(s).faults()));
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
                    const int lead = logits.rank - 1;
                    const sequence to(dlogits, 0, lead), from(logits, 0, lead), of_labels(labels, 0, lead),
                        of_lse(lse, 0, lead);
                    return cuda::launch(s, cuda::blocks_for_rows(from.count()), cuda::block_threads,
                                        cuda::cross_entropy_grad_kernel, cuda::operand(dlogits), cuda::operand(dsum),
                                        cuda::operand(logits), labels.as<const std::int64_t>(), cuda::operand(lse), to,
                                        from, of_labels, of_lse, logits.sizes[lead], cuda::last_stride(dlogits),
                                        cuda::last_stride(logits), ignore_index);
                  });
}

} // namespace windlass::rt
