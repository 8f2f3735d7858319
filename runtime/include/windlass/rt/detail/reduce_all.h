// Reductions of a sequence of elements to one number, on the host's threads.
#ifndef WINDLASS_RT_DETAIL_REDUCE_ALL_H
#define WINDLASS_RT_DETAIL_REDUCE_ALL_H

#include "windlass/rt/detail/runs.h"
#include "windlass/rt/detail/sequence.h"
#include "windlass/rt/detail/team.h"

#include <algorithm>

namespace windlass::rt::detail {

/// n evenly spaced elements. Lanes make the order of addition fixed and the loop a vector loop.
template <class Op, class T, class Stride> typename Op::value reduce_run(const T *x, Stride stride, std::int64_t n) {
  constexpr int lanes = 32;
  typename Op::value parts[lanes];
  for (typename Op::value &part : parts)
    part = Op::start;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    WINDLASS_SIMD
    for (int l = 0; l < lanes; ++l)
      parts[l] = Op::add(parts[l], static_cast<float>(x[(i + l) * stride]));
  }
  for (; i < n; ++i)
    parts[i % lanes] = Op::add(parts[i % lanes], static_cast<float>(x[i * stride]));
  typename Op::value result = Op::start;
  for (const typename Op::value part : parts)
    result = Op::join(result, part);
  return result;
}

/// The elements [begin, end) of a sequence.
template <class Op, class T>
typename Op::value reduce_range(const T *x, const sequence &seq, std::int64_t begin, std::int64_t end) {
  typename Op::value result = Op::start;
  while (begin < end) {
    const std::int64_t run = seq.run(), n = std::min(run - begin % run, end - begin);
    with_stride(seq.stride(),
                [&](auto stride) { result = Op::join(result, reduce_run<Op>(x + seq.offset(begin), stride, n)); });
    begin += n;
  }
  return result;
}

inline void put(float &out, double value, bool accumulate) {
  out = static_cast<float>(accumulate ? static_cast<double>(out) + value : value);
}

/// One result from everything: parts of a number that does not depend on the threads, joined in order.
template <class Op, class T>
void reduce_all(float &out, const T *x, const sequence &seq, bool accumulate, int threads) {
  constexpr std::int32_t most = 64;
  typename Op::value results[most];
  const std::int32_t parts = part_count(seq.count(), grain, most);
  parallel(threads, parts, 1, [&](std::int64_t first, std::int64_t last, std::int32_t) {
    for (std::int64_t p = first; p < last; ++p)
      results[p] = reduce_range<Op>(x, seq, seq.count() * p / parts, seq.count() * (p + 1) / parts);
  });
  typename Op::value result = Op::start;
  for (std::int32_t p = 0; p < parts; ++p)
    result = Op::join(result, results[p]);
  put(out, static_cast<double>(result), accumulate);
}

} // namespace windlass::rt::detail

#endif
