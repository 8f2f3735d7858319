// What every transport must do; used by the tests of threads and of processes.
#ifndef WINDLASS_CONFORMANCE_COLLECTIVE_CHECKS_H
#define WINDLASS_CONFORMANCE_COLLECTIVE_CHECKS_H

#include "windlass/rt/context.h"
#include "windlass/rt/streams.h"

#include "one_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace windlass::rt::testing {

/// Value i of member m: sums of these depend on their order. The factors are powers of two, so that a fused
/// multiply-add here gives the same bits.
inline float value_of(std::int64_t i, std::int32_t m) {
  return static_cast<float>(std::sin(static_cast<double>(i * 7 + m * 13 + 1))) * (m % 2 == 0 ? 1024.0f : 1.0f / 1024);
}

template <class T> std::byte *bytes_of(std::vector<T> &v) { return reinterpret_cast<std::byte *>(v.data()); }

/// The checks of one communicator's collectives with `n` elements each. Every check returns what is wrong, or nothing.
class collective_checks {
public:
  collective_checks(communicator &c, std::int64_t n)
      : c_(c), n_(n), size_(c.size()), me_(c.index()), x_(static_cast<std::size_t>(n)),
        parts_(static_cast<std::size_t>(n * size_)), all_(parts_.size()) {}

  std::string all_reduces(reduction kind) {
    fill(x_);
    if (const status s = c_.all_reduce(bytes_of(x_), n_, element_type::f32, kind); !s.is_ok())
      return s.message();
    return compare("all-reduce", x_, [&](std::int64_t i) {
      float e = value_of(i, 0);
      for (std::int32_t m = 1; m < size_; ++m) {
        const float next = value_of(i, m);
        e = kind == reduction::sum ? e + next : kind == reduction::max ? std::max(e, next) : std::min(e, next);
      }
      return e; // the same bits: the order of addition is fixed
    });
  }

  std::string all_reduces_integers() {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(n_), me_ + 1);
    if (const status s = c_.all_reduce(bytes_of(counts), n_, element_type::i64, reduction::sum); !s.is_ok())
      return s.message();
    return compare("all-reduce of integers", counts,
                   [&](std::int64_t) { return static_cast<std::int64_t>(size_) * (size_ + 1) / 2; });
  }

  std::string all_gathers() {
    fill(x_);
    if (const status s = c_.all_gather(bytes_of(all_), bytes_of(x_), n_ * 4); !s.is_ok())
      return s.message();
    return compare("all-gather", all_,
                   [&](std::int64_t i) { return value_of(i % n_, static_cast<std::int32_t>(i / n_)); });
  }

  std::string reduce_scatters() {
    fill(parts_);
    if (const status s = c_.reduce_scatter(bytes_of(x_), bytes_of(parts_), n_, element_type::f32); !s.is_ok())
      return s.message();
    return compare("reduce-scatter", x_, [&](std::int64_t i) {
      float e = value_of(me_ * n_ + i, 0);
      for (std::int32_t m = 1; m < size_; ++m)
        e += value_of(me_ * n_ + i, m);
      return e;
    });
  }

  /// Gathers and scatters in one command what other commands do one after another: `count` pairs of different sizes and
  /// types, one of them empty. The bits are those of separate commands.
  std::string moves_pairs(std::int32_t count) {
    std::vector<std::vector<std::byte>> parts, wholes, gathered, expected, sums, expected_sums;
    std::vector<collective_pair> gathers, scatters;
    const auto make = [](std::vector<std::vector<std::byte>> &buffers, std::int64_t bytes) {
      buffers.emplace_back(static_cast<std::size_t>(bytes));
      return buffers.back().data();
    };
    for (std::vector<std::vector<std::byte>> *each : {&parts, &wholes, &gathered, &expected, &sums, &expected_sums})
      each->reserve(static_cast<std::size_t>(count));
    status s;
    for (std::int32_t i = 0; i < count && s.is_ok(); ++i) {
      const element_type types[] = {element_type::f32, element_type::u8, element_type::i64, element_type::f32};
      const element_type type = types[i % 4];
      const std::int64_t elements = i == 3 ? 0 : n_ / (i + 1) + i, bytes = elements * size_of(type);
      std::byte *const part = make(parts, bytes), *const whole = make(wholes, bytes * size_);
      for (std::vector<std::byte> *buffer : {&parts.back(), &wholes.back()})
        fill(*buffer, type, i);
      gathers.push_back({make(gathered, bytes * size_), part, elements, type});
      scatters.push_back({make(sums, bytes), whole, elements, type});
      s = c_.all_gather(make(expected, bytes * size_), part, bytes);
      if (s.is_ok())
        s = c_.reduce_scatter(make(expected_sums, bytes), whole, elements, type);
    }
    if (s.is_ok())
      s = c_.all_gather(gathers.data(), count);
    if (s.is_ok())
      s = c_.reduce_scatter(scatters.data(), count);
    if (!s.is_ok())
      return s.message();
    const std::string where = " of " + std::to_string(count) + " pairs of " + std::to_string(n_) + " among " +
                              std::to_string(size_) + " is wrong on member " + std::to_string(me_);
    return gathered != expected ? "all-gather" + where : sums != expected_sums ? "reduce-scatter" + where : "";
  }

  std::string all_to_alls() {
    fill(parts_);
    if (const status s = c_.all_to_all(bytes_of(all_), bytes_of(parts_), n_ * 4); !s.is_ok())
      return s.message();
    return compare("all-to-all", all_,
                   [&](std::int64_t i) { return value_of(me_ * n_ + i % n_, static_cast<std::int32_t>(i / n_)); });
  }

  /// A rotation by `shift`; -1 reverses all members, of which the middle one sends to itself.
  std::string permutes(std::int32_t shift) {
    const auto destination = [&](std::int32_t m) { return shift < 0 ? size_ - 1 - m : (m + shift) % size_; };
    std::int32_t from = 0;
    while (destination(from) != me_)
      ++from;
    std::vector<float> got(x_.size());
    fill(x_);
    if (const status s = c_.permute(bytes_of(got), bytes_of(x_), n_ * 4, destination(me_), from); !s.is_ok())
      return s.message();
    return compare("permute", got, [&](std::int64_t i) { return value_of(i, from); });
  }

  std::string broadcasts(std::int32_t root) {
    fill(x_);
    if (const status s = c_.broadcast(bytes_of(x_), n_ * 4, root); !s.is_ok())
      return s.message();
    return compare("broadcast", x_, [&](std::int64_t i) { return value_of(i, root); });
  }

  /// Rows of `n` elements for tokens whose choices are `choices_of(token, c)`, and back. Rows that do not reach a
  /// member may be anything; sums are those of a reduce-scatter, of which all other rows are zeros.
  template <class Choice> std::string exchanges_rows(std::int64_t tokens, std::int64_t chosen, Choice choice_of) {
    const std::int64_t experts = 2 * size_, all = size_ * tokens;
    std::vector<std::int64_t> choices(static_cast<std::size_t>(all * chosen));
    for (std::int64_t i = 0; i < all * chosen; ++i)
      choices[static_cast<std::size_t>(i)] = choice_of(i / chosen, i % chosen);
    const detail::row_routes of = {choices.data(), tokens, chosen, 2, n_, element_type::f32};
    std::vector<float> in(static_cast<std::size_t>(tokens * n_)), out(static_cast<std::size_t>(all * n_)),
        scratch(static_cast<std::size_t>(detail::row_scratch_elements(size_, tokens, chosen, n_, 4)));
    fill(in);
    const std::unique_ptr<stream> s = make_inline_stream(1, nullptr, 0);
    const auto viewed = [](std::vector<float> &v, std::int64_t rows) {
      return dense_view(bytes_of(v), element_type::f32, {rows, static_cast<std::int64_t>(v.size()) / rows});
    };
    const view routes = dense_view(bytes_of(choices), element_type::i64, {all, chosen});
    collective_bytes sent;
    c_.take_sent(sent = {});
    if (const status result =
            gather_rows(*s, c_, viewed(out, all), viewed(scratch, 1), viewed(in, tokens), routes, experts);
        !result.is_ok())
      return result.message();
    std::string wrong = compare("gather of rows", out, [&](std::int64_t i) {
      const std::int64_t token = i / n_;
      return of.reaches(token, me_)
                 ? value_of(i - token / tokens * tokens * n_, static_cast<std::int32_t>(token / tokens))
                 : out[static_cast<std::size_t>(i)];
    });
    if (!wrong.empty())
      return wrong;
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = value_of(static_cast<std::int64_t>(i), me_);
    if (const status result =
            scatter_rows(*s, c_, viewed(in, tokens), viewed(scratch, 1), viewed(out, all), routes, experts);
        !result.is_ok())
      return result.message();
    wrong = compare("scatter of rows", in, [&](std::int64_t i) {
      const std::int64_t place = me_ * tokens * n_ + i;
      float sum = 0;
      for (std::int32_t m = 0; m < size_; ++m)
        if (of.reaches(place / n_, m))
          sum += value_of(place, m);
      return sum;
    });
    if (!wrong.empty())
      return wrong;
    std::int64_t rows = 0;
    for (std::int32_t m = 0; m < size_; ++m)
      rows += m == me_ ? 0 : of.count(me_, m) + of.count(m, me_);
    c_.take_sent(sent = {});
    return sent[collective_kind::rows] == static_cast<double>(rows * n_ * 4)
               ? ""
               : "rows count " + std::to_string(sent[collective_kind::rows]) + " bytes";
  }

private:
  void fill(std::vector<float> &v) const {
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = value_of(static_cast<std::int64_t>(i), me_);
  }

  /// Fills a buffer of one of several with values of a type, the same in every run.
  void fill(std::vector<std::byte> &buffer, element_type type, std::int32_t number) const {
    const std::int64_t width = size_of(type), elements = static_cast<std::int64_t>(buffer.size()) / width;
    for (std::int64_t i = 0; i < elements; ++i) {
      const float value = value_of(i + number, me_);
      const std::int64_t integer = (i * 7 + number * 5 + me_ * 3) % 11;
      const void *const from = type == element_type::f32 ? static_cast<const void *>(&value) : &integer;
      std::memcpy(buffer.data() + i * width, from, static_cast<std::size_t>(width));
    }
  }

  template <class T, class Expected>
  std::string compare(const char *what, const std::vector<T> &got, const Expected &expected) const {
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != expected(static_cast<std::int64_t>(i)))
        return std::string(what) + " of " + std::to_string(n_) + " among " + std::to_string(size_) +
               " is wrong on member " + std::to_string(me_) + " at " + std::to_string(i);
    return "";
  }

  communicator &c_;
  std::int64_t n_;
  std::int32_t size_, me_;
  std::vector<float> x_, parts_, all_;
};

/// The collectives of one communicator with `n` elements; empty when all is right.
inline std::string check_communicator(communicator &c, std::int64_t n) {
  collective_checks checks(c, n);
  std::string wrong;
  for (const reduction kind : {reduction::sum, reduction::max, reduction::min})
    if (wrong = checks.all_reduces(kind); !wrong.empty())
      return wrong;
  if (wrong = checks.all_reduces_integers(); !wrong.empty())
    return wrong;
  if (wrong = checks.all_gathers(); !wrong.empty())
    return wrong;
  if (wrong = checks.reduce_scatters(); !wrong.empty())
    return wrong;
  for (const std::int32_t count : {2, 5})
    if (wrong = checks.moves_pairs(count); !wrong.empty())
      return wrong;
  if (wrong = checks.all_to_alls(); !wrong.empty())
    return wrong;
  // Spread out, all to one expert, most of them to none, and each token to all members.
  const std::int64_t experts = 2 * c.size();
  if (n > 0 && n < 6000)
    for (const std::int64_t tokens : {1, 13}) {
      const auto mixed = [=](std::int64_t token, std::int64_t k) { return (token * 5 + k * 3 + token * k) % experts; };
      if (wrong = checks.exchanges_rows(tokens, 2, mixed); !wrong.empty())
        return wrong;
      if (wrong = checks.exchanges_rows(tokens, 1, [](std::int64_t, std::int64_t) { return 1; }); !wrong.empty())
        return wrong;
      if (wrong = checks.exchanges_rows(tokens, 1,
                                        [=](std::int64_t token, std::int64_t) { return token == 0 ? 0 : experts; });
          !wrong.empty())
        return wrong;
      if (wrong = checks.exchanges_rows(tokens, experts, [](std::int64_t, std::int64_t k) { return k; });
          !wrong.empty())
        return wrong;
    }
  for (const std::int32_t shift : {0, 1, c.size() - 1, -1})
    if (wrong = checks.permutes(shift); !wrong.empty())
      return wrong;
  for (std::int32_t root = 0; root < c.size(); ++root)
    if (wrong = checks.broadcasts(root); !wrong.empty())
      return wrong;
  const status s = c.barrier();
  return s.is_ok() ? "" : s.message();
}

/// Checks what a communicator counts for collectives against the formulas of a ring; empty when all is right.
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

/// A permute on a stream, and destinations that are none.
inline std::string check_permutes(communicator &c) {
  const std::unique_ptr<stream> s = make_inline_stream(1, nullptr, 0);
  std::vector<float> x = {static_cast<float>(c.index()), 7}, y(2);
  const view in = dense_view(bytes_of(x), element_type::f32, {2}),
             out = dense_view(bytes_of(y), element_type::f32, {2});
  collective_bytes sent;
  c.take_sent(sent = {});
  status result;
  switch (c.size()) {
  case 2:
    result = permute(*s, c, out, in, {1, 0});
    break;
  case 3:
    result = permute(*s, c, out, in, {1, 2, 0});
    break;
  case 4:
    result = permute(*s, c, out, in, {1, 2, 3, 0});
    break;
  default:
    return "";
  }
  if (result.is_ok())
    result = s->synchronize();
  if (!result.is_ok())
    return result.message();
  c.take_sent(sent = {});
  if (y[0] != static_cast<float>((c.index() + c.size() - 1) % c.size()) || sent[collective_kind::permute] != 8)
    return "a permute on a stream is wrong on member " + std::to_string(c.index());
  for (const status &refused :
       {permute(*s, c, out, in, {0}), permute(*s, c, out, in, {1, 1}), permute(*s, c, out, in, {1, 2, 1}),
        permute(*s, c, out, in, {0, 1, 2, 4}), permute(*s, c, out, in, {0, 1, 2, 3, -1})})
    if (refused.code() != status_code::internal)
      return "destinations that leave a member out were taken";
  return "";
}

/// The communicators of a mesh over all ordered sets of its axes: their members, in the order of their coordinates with
/// the first axis as the slowest, and their collectives.
inline std::string check_mesh(transport &world, const std::vector<axis> &axes) {
  std::vector<std::vector<std::int32_t>> sets = {{}};
  for (std::size_t i = 0; i < sets.size(); ++i)
    for (std::int32_t a = 0; a < static_cast<std::int32_t>(axes.size()); ++a)
      if (std::find(sets[i].begin(), sets[i].end(), a) == sets[i].end()) {
        sets.push_back(sets[i]);
        sets.back().push_back(a);
      }
  sets.erase(sets.begin());
  std::vector<stream_entry> streams = {{stream_kind::compute, "compute"}};
  std::vector<communicator_entry> entries;
  for (const std::vector<std::int32_t> &set : sets) {
    entries.push_back({{set.data(), static_cast<std::int64_t>(set.size())}, static_cast<std::int32_t>(streams.size())});
    streams.push_back({stream_kind::communicator, "collectives"});
  }
  program p = {};
  p.communicators = {entries.data(), static_cast<std::int64_t>(entries.size())};
  p.streams = {streams.data(), static_cast<std::int64_t>(streams.size())};
  context mine;
  if (const status s = mine.create(one_job({axes.data(), static_cast<std::int64_t>(axes.size())}, p), world, 1);
      !s.is_ok())
    return s.message();
  const auto coordinate = [&](std::int32_t rank, std::size_t a) {
    for (std::size_t i = axes.size() - 1; i > a; --i)
      rank /= axes[i].size;
    return rank % axes[a].size;
  };
  for (std::size_t i = 0; i < sets.size(); ++i) {
    // By number: the ranks that differ from this one on the set's axes only.
    std::map<std::int32_t, std::int32_t> expected;
    for (std::int32_t rank = 0; rank < world.size(); ++rank) {
      bool is_member = true;
      for (std::size_t a = 0; a < axes.size(); ++a)
        is_member &= coordinate(rank, a) == coordinate(world.rank(), a) ||
                     std::find(sets[i].begin(), sets[i].end(), static_cast<std::int32_t>(a)) != sets[i].end();
      std::int32_t number = 0;
      for (const std::int32_t a : sets[i])
        number = number * axes[static_cast<std::size_t>(a)].size + coordinate(rank, static_cast<std::size_t>(a));
      if (is_member)
        expected[number] = rank;
    }
    communicator &c = mine.get_communicator(static_cast<std::int32_t>(i));
    std::vector<std::int32_t> own = {world.rank()}, members(static_cast<std::size_t>(c.size()));
    if (const status s = c.all_gather(bytes_of(members), bytes_of(own), 4); !s.is_ok())
      return s.message();
    bool is_right = expected.size() == members.size();
    for (std::size_t m = 0; m < members.size() && is_right; ++m)
      is_right = expected[static_cast<std::int32_t>(m)] == members[m];
    if (!is_right || members[static_cast<std::size_t>(c.index())] != world.rank())
      return "communicator " + std::to_string(i) + " of a mesh of " + std::to_string(axes.size()) +
             " axes has other members on rank " + std::to_string(world.rank());
    for (const std::int64_t n : {1, 999})
      if (std::string failure = check_communicator(c, n); !failure.empty())
        return failure;
    if (std::string failure = check_counts(c); !failure.empty())
      return failure;
    if (std::string failure = check_permutes(c); !failure.empty())
      return failure;
  }
  return "";
}

/// All ranks together, and two groups of every other rank; then those of meshes.
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
  if (std::string failure = collective_checks(*a, 37).moves_pairs(collective_pairs::most); !failure.empty())
    return failure;
  const axis a2 = {"a", 2}, b2 = {"b", 2}, c2 = {"c", 2}, b3 = {"b", 3};
  std::vector<std::vector<axis>> meshes = {{{"all", world.size()}}};
  if (world.size() == 4)
    meshes.push_back({a2, b2});
  if (world.size() == 6)
    meshes.push_back({a2, b3});
  if (world.size() == 8)
    meshes.push_back({a2, b2, c2});
  for (const std::vector<axis> &mesh : meshes)
    if (std::string failure = check_mesh(world, mesh); !failure.empty())
      return failure;
  return "";
}

} // namespace windlass::rt::testing

#endif
