// Rows between tokens and the members that have their experts, as messages in the host's memory. All members know all
// choices, and so the sizes of all messages: nothing is agreed on first.
#include "windlass/rt/communicator.h"

#include "windlass/rt/detail/combine.h"
#include "windlass/rt/detail/row_messages.h"

#include <cstring>

namespace windlass::rt {

namespace {

using detail::row_routes;

void copy_bytes(std::byte *to, const std::byte *from, std::int64_t bytes) {
  std::memmove(to, from, static_cast<std::size_t>(bytes));
}

/// Calls f(number, token) for the tokens of member `from` that reach member `to`, in order; tokens are numbered from 0
/// in each member.
template <class F> void for_rows(const row_routes &of, std::int32_t from, std::int32_t to, F f) {
  std::int64_t number = 0;
  for (std::int64_t token = 0; token < of.tokens; ++token)
    if (of.reaches(from * of.tokens + token, to))
      f(number++, token);
}

/// Moves the rows that lie at the beginning of `block` to where their tokens' rows belong. The last comes first, since
/// no row moves to the front.
void spread(std::byte *block, const row_routes &of, std::int32_t from, std::int32_t to) {
  const std::int64_t bytes = of.row_bytes();
  std::int64_t number = of.count(from, to);
  for (std::int64_t token = of.tokens - 1; token >= 0 && number > 0; --token)
    if (of.reaches(from * of.tokens + token, to))
      copy_bytes(block + token * bytes, block + --number * bytes, bytes);
}

} // namespace

status detail::sum_rows(std::byte *out, const std::byte *const *rows, std::int32_t count, const row_routes &of) {
  if (count == 0)
    std::memset(out, 0, static_cast<std::size_t>(of.row_bytes()));
  return count == 0 ? ok_status() : combine(&out, 1, rows, count, of.columns, of.type, reduction::sum);
}

status communicator::gather_rows(std::byte *out, std::byte *scratch, const std::byte *in, const row_routes &of) {
  const std::int32_t me = index();
  const std::int64_t bytes = of.row_bytes();
  std::byte *next = scratch;
  const auto send = [&](std::int32_t to) {
    std::byte *const first = next;
    for_rows(of, me, to, [&](std::int64_t, std::int64_t token) {
      copy_bytes(next, in + token * bytes, bytes);
      next += bytes;
    });
    count(collective_kind::rows, next - first);
    return message{direction::send, to, first, next - first};
  };
  const auto receive = [&](std::int32_t from) {
    return message{direction::receive, from, out + from * of.tokens * bytes, of.count(from, me) * bytes};
  };
  WINDLASS_TRY(detail::exchange_rows(*this, send, receive));
  for (std::int32_t from = 0; from < size(); ++from)
    if (from != me)
      spread(out + from * of.tokens * bytes, of, from, me);
  for_rows(of, me, me, [&](std::int64_t, std::int64_t token) {
    copy_bytes(out + (me * of.tokens + token) * bytes, in + token * bytes, bytes);
  });
  return {};
}

status communicator::scatter_rows(std::byte *out, std::byte *scratch, std::byte *in, const row_routes &of) {
  const std::int32_t me = index();
  const std::int64_t bytes = of.row_bytes();
  // Where the next row of each member is, and the rows of one token.
  auto **const parts =
      reinterpret_cast<const std::byte **>(scratch + detail::row_bytes_of_others(size(), of.tokens, of.chosen, bytes));
  const std::byte **const rows = parts + size();
  std::byte *next = scratch;
  const auto send = [&](std::int32_t to) {
    std::byte *const block = in + to * of.tokens * bytes;
    std::byte *last = block;
    for_rows(of, to, me, [&](std::int64_t number, std::int64_t token) {
      copy_bytes(block + number * bytes, block + token * bytes, bytes);
      last += bytes;
    });
    count(collective_kind::rows, last - block);
    return message{direction::send, to, block, last - block};
  };
  const auto receive = [&](std::int32_t from) {
    std::byte *const first = next;
    parts[from] = first;
    next += of.count(me, from) * bytes;
    return message{direction::receive, from, first, next - first};
  };
  WINDLASS_TRY(detail::exchange_rows(*this, send, receive));
  for (std::int64_t token = 0; token < of.tokens; ++token) {
    std::int32_t reached = 0;
    for (std::int32_t from = 0; from < size(); ++from)
      if (of.reaches(me * of.tokens + token, from)) {
        rows[reached++] = from == me ? in + (me * of.tokens + token) * bytes : parts[from];
        if (from != me)
          parts[from] += bytes;
      }
    WINDLASS_TRY(detail::sum_rows(out + token * bytes, rows, reached, of));
  }
  return {};
}

} // namespace windlass::rt
