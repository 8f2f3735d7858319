// Rows between tokens and the members that have their experts: lists of the rows are made on the device, the host reads
// how many there are, and messages carry them packed.
#include "row_routes.h"

#include "kernel.h"

#include "windlass/rt/detail/backend.h"
#include "windlass/rt/detail/row_messages.h"

#include <vector>

namespace windlass::rt::cuda {
namespace {

using detail::row_routes;

/// The lists behind the rows of the scratch. Lists are numbered by the other member: first those of rows that leave
/// this member, and then those of rows that come to it.
struct row_lists {
  std::int32_t *numbers; ///< [2 * members]
  std::int32_t *tokens;  ///< [2 * members, tokens]: the tokens of a list's rows in order
  std::int64_t length;   ///< the tokens of a member
  std::int32_t members, me;

  WINDLASS_FN std::int32_t *of(std::int32_t list) const { return tokens + list * length; }
};

/// Makes one list in each block. In a gather the rows of this member's tokens leave it. In a scatter they come to it,
/// and each of the lists of those has the place of every token in it instead, or -1.
__global__ void list_rows(row_lists lists, row_routes of, bool is_gather) {
  __shared__ std::int32_t reached[block_threads];
  const auto list = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t other = list % lists.members;
  const bool comes = list >= lists.members, is_own = comes != is_gather;
  // Whose tokens these are, and whose experts they may choose.
  const std::int32_t owner = is_own ? lists.me : other, chosen = is_own ? other : lists.me;
  std::int32_t number = 0;
  for (std::int64_t first = 0; first < of.tokens; first += block_threads) {
    const std::int64_t token = first + threadIdx.x;
    const bool reaches = token < of.tokens && of.reaches(owner * of.tokens + token, chosen);
    reached[threadIdx.x] = reaches ? 1 : 0;
    __syncthreads();
    std::int32_t before = 0, all = 0;
    for (int t = 0; t < block_threads; ++t) {
      before += t < static_cast<int>(threadIdx.x) ? reached[t] : 0;
      all += reached[t];
    }
    if (comes && !is_gather) {
      if (token < of.tokens)
        lists.of(list)[token] = reaches ? number + before : -1;
    } else if (reaches) {
      lists.of(list)[number + before] = static_cast<std::int32_t>(token);
    }
    number += all;
    __syncthreads(); // the next tokens come to the same place
  }
  if (threadIdx.x == 0)
    lists.numbers[list] = number;
}

/// Puts the rows that leave this member one after another. A block copies a row at a time, in words of type T.
template <class T> __global__ void pack_rows(T *to, const T *from, row_lists lists, std::int64_t words) {
  std::int64_t begin = 0;
  for (std::int32_t m = 0; m < lists.members; ++m) {
    if (m == lists.me)
      continue;
    for (std::int64_t row = blockIdx.x; row < lists.numbers[m]; row += gridDim.x) {
      const T *const source = from + lists.of(m)[row] * words;
      for (std::int64_t i = threadIdx.x; i < words; i += blockDim.x)
        to[(begin + row) * words + i] = source[i];
    }
    begin += lists.numbers[m];
  }
}

constexpr int rows_at_once = 16;

/// Moves the rows at the beginning of each other member's block to where their tokens' rows belong, or with `packs`
/// back. A thread moves one word of each row. It reads some rows before it writes them; no row moves to the front, or
/// with `packs` to the back, so that it starts with the last one, or the first.
template <class T> __global__ void move_rows(T *blocks, row_lists lists, std::int64_t words, bool packs) {
  const std::int64_t slices = (words + blockDim.x - 1) / blockDim.x;
  const auto other = static_cast<std::int32_t>(blockIdx.x / slices);
  const std::int64_t word = blockIdx.x % slices * blockDim.x + threadIdx.x;
  const std::int32_t list = packs ? other : lists.members + other;
  if (other == lists.me || word >= words)
    return;
  T *const column = blocks + other * lists.length * words + word;
  const std::int32_t *const tokens = lists.of(list);
  const std::int32_t rows = lists.numbers[list];
  for (std::int32_t moved = 0; moved < rows; moved += rows_at_once) {
    T values[rows_at_once];
    const auto place_of = [&](std::int32_t i) { return packs ? moved + i : rows - 1 - moved - i; };
#pragma unroll
    for (int i = 0; i < rows_at_once; ++i)
      if (moved + i < rows)
        values[i] = column[(packs ? tokens[place_of(i)] : place_of(i)) * words];
#pragma unroll
    for (int i = 0; i < rows_at_once; ++i)
      if (moved + i < rows)
        column[(packs ? place_of(i) : tokens[place_of(i)]) * words] = values[i];
  }
}

/// Adds up the rows of this member's tokens in the members' order. A block takes a token at a time.
template <class T, class A>
__global__ void add_rows(T *out, const T *own, const T *others, row_lists lists, std::int64_t columns) {
  for (std::int64_t token = blockIdx.x; token < lists.length; token += gridDim.x)
    for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
      A sum = 0;
      bool is_first = true;
      std::int64_t begin = 0;
      for (std::int32_t m = 0; m < lists.members; ++m) {
        const std::int64_t place = lists.of(lists.members + m)[token];
        if (place >= 0) {
          const T value = m == lists.me ? own[token * columns + i] : others[(begin + place) * columns + i];
          sum = is_first ? static_cast<A>(value) : static_cast<A>(sum + static_cast<A>(value));
          is_first = false;
        }
        begin += m == lists.me ? 0 : lists.numbers[lists.members + m];
      }
      out[token * columns + i] = static_cast<T>(sum);
    }
}

/// One exchange of a member.
class row_exchange {
public:
  row_exchange(communicator &c, stream &s, std::byte *scratch, const row_routes &of)
      : c_(c), s_(s), scratch_(scratch), of_(of), bytes_(of.row_bytes()) {
    auto *const memory =
        reinterpret_cast<std::int32_t *>(scratch + detail::row_bytes_of_others(c.size(), of.tokens, of.chosen, bytes_));
    lists_ = {memory, memory + 2 * c.size(), of.tokens, c.size(), c.index()};
  }

  /// Lists the rows, and waits until the host knows how many there are.
  status list(bool is_gather) {
    WINDLASS_TRY(launch(s_, static_cast<unsigned>(2 * c_.size()), block_threads, list_rows, lists_, of_, is_gather));
    numbers_.resize(static_cast<std::size_t>(2 * c_.size()));
    WINDLASS_TRY(detail::copy_to_host(s_, reinterpret_cast<std::byte *>(numbers_.data()),
                                      reinterpret_cast<const std::byte *>(lists_.numbers),
                                      static_cast<std::int64_t>(numbers_.size() * sizeof(std::int32_t))));
    for (std::int32_t m = 0; m < c_.size(); ++m)
      if (m != c_.index())
        c_.count(collective_kind::rows, number(m) * bytes_);
    return {};
  }

  status gather(std::byte *out, const std::byte *in) {
    WINDLASS_TRY(list(/*is_gather=*/true));
    WINDLASS_TRY(in_words([&](auto word) { return pack<decltype(word)>(in); }));
    WINDLASS_TRY(detail::exchange_rows(
        c_,
        [&](std::int32_t to) {
          return message{direction::send, to, scratch_ + begin(0, to) * bytes_, number(to) * bytes_};
        },
        [&](std::int32_t from) {
          return message{direction::receive, from, out + from * of_.tokens * bytes_, coming(from) * bytes_};
        }));
    WINDLASS_TRY(
        check(cudaMemcpyAsync(out + c_.index() * of_.tokens * bytes_, in, static_cast<std::size_t>(of_.tokens * bytes_),
                              cudaMemcpyDeviceToDevice, native(s_)),
              "a copy of rows"));
    return in_words([&](auto word) { return move<decltype(word)>(out, /*packs=*/false); });
  }

  status scatter(std::byte *out, std::byte *in) {
    WINDLASS_TRY(list(/*is_gather=*/false));
    WINDLASS_TRY(in_words([&](auto word) { return move<decltype(word)>(in, /*packs=*/true); }));
    WINDLASS_TRY(detail::exchange_rows(
        c_,
        [&](std::int32_t to) {
          return message{direction::send, to, in + to * of_.tokens * bytes_, number(to) * bytes_};
        },
        [&](std::int32_t from) {
          return message{direction::receive, from, scratch_ + begin(c_.size(), from) * bytes_, coming(from) * bytes_};
        }));
    switch (of_.type) {
    case element_type::f32:
      return add<float, float>(out, in);
    case element_type::f64:
      return add<double, double>(out, in);
    case element_type::bf16:
      return add<detail::bf16, float>(out, in);
    case element_type::f16:
      return add<detail::f16, float>(out, in);
    default:
      return internal_error("rows of tokens are floats");
    }
  }

private:
  std::int64_t number(std::int32_t to) const { return numbers_[static_cast<std::size_t>(to)]; }
  std::int64_t coming(std::int32_t from) const { return numbers_[static_cast<std::size_t>(c_.size() + from)]; }
  /// Returns the number of rows in the lists before that of `member`, without this member's own; `first` is the number
  /// of the first list.
  std::int64_t begin(std::int32_t first, std::int32_t member) const {
    std::int64_t rows = 0;
    for (std::int32_t m = 0; m < member; ++m)
      rows += m == c_.index() ? 0 : numbers_[static_cast<std::size_t>(first + m)];
    return rows;
  }

  /// Calls f with a word of 8 bytes where rows are made of them, and else of 2 or 4.
  template <class F> status in_words(F f) const {
    if (bytes_ % 8 == 0)
      return f(std::uint64_t());
    return bytes_ % 4 == 0 ? f(std::uint32_t()) : f(std::uint16_t());
  }
  template <class T> std::int64_t words() const { return bytes_ / static_cast<std::int64_t>(sizeof(T)); }

  template <class T> status pack(const std::byte *in) {
    return launch(s_, blocks_for_rows(of_.tokens), block_threads, pack_rows<T>, reinterpret_cast<T *>(scratch_),
                  reinterpret_cast<const T *>(in), lists_, words<T>());
  }
  template <class T> status move(std::byte *blocks, bool packs) {
    const std::int64_t slices = (words<T>() + block_threads - 1) / block_threads;
    return launch(s_, static_cast<unsigned>(slices * c_.size()), block_threads, move_rows<T>,
                  reinterpret_cast<T *>(blocks), lists_, words<T>(), packs);
  }
  template <class T, class A> status add(std::byte *out, const std::byte *in) {
    return launch(s_, blocks_for_rows(of_.tokens), block_threads, add_rows<T, A>, reinterpret_cast<T *>(out),
                  reinterpret_cast<const T *>(in + c_.index() * of_.tokens * bytes_),
                  reinterpret_cast<const T *>(scratch_), lists_, of_.columns);
  }

  communicator &c_;
  stream &s_;
  std::byte *scratch_;
  row_routes of_;
  std::int64_t bytes_;
  row_lists lists_;
  std::vector<std::int32_t> numbers_; ///< of the lists' rows
};

} // namespace

status gather_rows(communicator &c, stream &s, std::byte *out, std::byte *scratch, const std::byte *in,
                   const detail::row_routes &of) {
  return row_exchange(c, s, scratch, of).gather(out, in);
}

status scatter_rows(communicator &c, stream &s, std::byte *out, std::byte *scratch, std::byte *in,
                    const detail::row_routes &of) {
  return row_exchange(c, s, scratch, of).scatter(out, in);
}

} // namespace windlass::rt::cuda
