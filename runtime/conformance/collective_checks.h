// What every transport must do; used by the tests of threads and of processes.
#ifndef WINDLASS_CONFORMANCE_COLLECTIVE_CHECKS_H
#define WINDLASS_CONFORMANCE_COLLECTIVE_CHECKS_H

#include "windlass/rt/communicator.h"
#include "windlass/rt/streams.h"

#include <cmath>
#include <string>
#include <vector>

namespace windlass::rt::testing {

/// Value i of member m: sums of these depend on their order. The factors are powers of two, so that a fused
/// multiply-add here gives the same bits.
inline float value_of(std::int64_t i, std::int32_t m) {
  return static_cast<float>(std::sin(static_cast<double>(i * 7 + m * 13 + 1))) * (m % 2 == 0 ? 1024.0f : 1.0f / 1024);
}

template <class T> std::byte *bytes_of(std::vector<T> &v) { return reinterpret_cast<std::byte *>(v.data()); }

/// The collectives of one communicator with `n` elements; empty when all is right.
inline std::string check_communicator(communicator &c, std::int64_t n) {
  const std::int32_t size = c.size(), me = c.index();
  const auto fail = [&](const char *what, std::int64_t i) {
    return std::string(what) + " of " + std::to_string(n) + " among " + std::to_string(size) + " is wrong on member " +
           std::to_string(me) + " at " + std::to_string(i);
  };
  std::vector<float> x(static_cast<std::size_t>(n)), parts(static_cast<std::size_t>(n * size)), all(parts.size());
  for (const reduction kind : {reduction::sum, reduction::max, reduction::min}) {
    for (std::int64_t i = 0; i < n; ++i)
      x[static_cast<std::size_t>(i)] = value_of(i, me);
    if (const status s = c.all_reduce(bytes_of(x), n, element_type::f32, kind); !s.is_ok())
      return s.message();
    for (std::int64_t i = 0; i < n; ++i) {
      float e = value_of(i, 0);
      for (std::int32_t m = 1; m < size; ++m) {
        const float next = value_of(i, m);
        e = kind == reduction::sum ? e + next : kind == reduction::max ? std::max(e, next) : std::min(e, next);
      }
      if (x[static_cast<std::size_t>(i)] != e) // the same bits: the order of addition is fixed
        return fail("all-reduce", i);
    }
  }
  std::vector<std::int64_t> counts(static_cast<std::size_t>(n), me + 1);
  if (const status s = c.all_reduce(bytes_of(counts), n, element_type::i64, reduction::sum); !s.is_ok())
    return s.message();
  for (std::int64_t i = 0; i < n; ++i)
    if (counts[static_cast<std::size_t>(i)] != size * (size + 1) / 2)
      return fail("all-reduce of integers", i);

  for (std::int64_t i = 0; i < n; ++i)
    x[static_cast<std::size_t>(i)] = value_of(i, me);
  if (const status s = c.all_gather(bytes_of(all), bytes_of(x), n * 4); !s.is_ok())
    return s.message();
  for (std::int64_t i = 0; i < n * size; ++i)
    if (all[static_cast<std::size_t>(i)] != value_of(i % n, static_cast<std::int32_t>(i / n)))
      return fail("all-gather", i);

  for (std::int64_t i = 0; i < n * size; ++i)
    parts[static_cast<std::size_t>(i)] = value_of(i, me);
  if (const status s = c.reduce_scatter(bytes_of(x), bytes_of(parts), n, element_type::f32); !s.is_ok())
    return s.message();
  for (std::int64_t i = 0; i < n; ++i) {
    float e = value_of(me * n + i, 0);
    for (std::int32_t m = 1; m < size; ++m)
      e += value_of(me * n + i, m);
    if (x[static_cast<std::size_t>(i)] != e)
      return fail("reduce-scatter", i);
  }

  if (const status s = c.all_to_all(bytes_of(all), bytes_of(parts), n * 4); !s.is_ok())
    return s.message();
  for (std::int64_t i = 0; i < n * size; ++i)
    if (all[static_cast<std::size_t>(i)] != value_of(me * n + i % n, static_cast<std::int32_t>(i / n)))
      return fail("all-to-all", i);

  for (std::int32_t root = 0; root < size; ++root) {
    for (std::int64_t i = 0; i < n; ++i)
      x[static_cast<std::size_t>(i)] = value_of(i, me);
    if (const status s = c.broadcast(bytes_of(x), n * 4, root); !s.is_ok())
      return s.message();
    for (std::int64_t i = 0; i < n; ++i)
      if (x[static_cast<std::size_t>(i)] != value_of(i, root))
        return fail("broadcast", i);
  }
  const status s = c.barrier();
  return s.is_ok() ? "" : s.message();
}

/// What a communicator counts of collectives on a stream, against the formulas of a ring; empty when all is right.
inline std::string check_counts(communicator &c) {
  const std::int64_t n = c.size();
  const std::unique_ptr<stream> s = make_inline_stream(1, nullptr, 0);
  std::vector<float> small(static_cast<std::size_t>(3 * n), 1), large(static_cast<std::size_t>(3 * n * n), 1), one(1);
  const auto viewed = [](std::vector<float> &v) {
    return dense_view(bytes_of(v), element_type::f32, {static_cast<std::int64_t>(v.size())});
  };
  collective_bytes sent;
  for (const std::int64_t turns : {1, 2}) {
    c.take_sent(sent = {});
    for (std::int64_t turn = 0; turn < turns; ++turn)
      for (const status &result :
           {all_reduce(*s, c, viewed(small), reduction::sum), all_reduce(*s, c, viewed(one), reduction::max),
            all_gather(*s, c, viewed(large), viewed(small)), reduce_scatter(*s, c, viewed(small), viewed(large)),
            all_to_all(*s, c, viewed(small), viewed(small)), s->synchronize()})
        if (!result.is_ok())
          return result.message();
    // What the runtime itself exchanges, beside streams, does not count.
    if (const status result = c.broadcast(bytes_of(small), 12, 0); !result.is_ok())
      return result.message();
    c.take_sent(sent = {});
    const double parts = turns * (n - 1) * 4; // bytes of one element that goes once around
    const std::pair<collective_kind, double> expected[] = {{collective_kind::all_reduce, 2 * 3 * parts},
                                                           {collective_kind::scalars, 2 * parts / n},
                                                           {collective_kind::all_gather, 3 * n * parts},
                                                           {collective_kind::reduce_scatter, 3 * n * parts},
                                                           {collective_kind::all_to_all, 3 * parts}};
    for (const auto &[kind, bytes] : expected)
      if (std::abs(sent[kind] - bytes) > 1e-9 * bytes)
        return std::string(collective_names[static_cast<std::size_t>(kind)]) + " among " + std::to_string(n) +
               " counts " + std::to_string(sent[kind]) + " bytes instead of " + std::to_string(bytes);
  }
  return "";
}

/// All ranks together, and two groups of every other rank.
inline std::string check_collectives(transport &world) {
  std::vector<std::int32_t> all, alternate;
  for (std::int32_t rank = 0; rank < world.size(); ++rank) {
    all.push_back(rank);
    if (rank % 2 == world.rank() % 2)
      alternate.push_back(rank);
  }
  std::unique_ptr<communicator> a, b;
  if (const status s = world.make_communicator(all, a); !s.is_ok())
    return s.message();
  if (const status s = world.make_communicator(alternate, b); !s.is_ok())
    return s.message();
  // Below and above the sizes of blocks and of staging areas, and not multiples of them.
  for (const std::int64_t n :
       {std::int64_t(0), std::int64_t(1), std::int64_t(37), std::int64_t(5003), std::int64_t(140009)}) {
    if (std::string failure = check_communicator(*a, n); !failure.empty())
      return failure;
    if (std::string failure = check_communicator(*b, n); !failure.empty())
      return failure;
  }
  std::string failure = check_counts(*a);
  return failure.empty() ? check_counts(*b) : failure;
}

} // namespace windlass::rt::testing

#endif
