// Collectives and messages between ranks. A transport connects all ranks; a communicator is a group of them with an
// issue order.
#ifndef WINDLASS_RT_COMMUNICATOR_H
#define WINDLASS_RT_COMMUNICATOR_H

#include "windlass/rt/kernels.h"
#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"
#include "windlass/rt/view.h"

#include "windlass/rt/detail/row_routes.h"

#include <atomic>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace windlass::rt {

/// The kinds of communication whose bytes are counted apart; `scalars` are all-reduces of one element, such as losses,
/// counts and norms, `send` is what goes from one member to another, and `rows` are those of tokens that go to the
/// members with the experts of their choice, or come back.
enum class collective_kind : std::int32_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  permute,
  scalars,
  send,
  rows
};
constexpr const char *collective_names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                            "permute",    "scalars",    "send",           "rows"};
constexpr std::size_t collective_kinds = sizeof(collective_names) / sizeof(collective_names[0]);

/// The bytes that a rank sends, by kind. They are those of a ring, whichever way a transport moves the data. Each of n
/// members sends (n - 1)/n of what a reduce-scatter takes, an all-gather gives or an all-to-all exchanges; 2(n - 1)/n
/// of what is all-reduced; and all that a permute takes to another member. The sender of a message counts all of it,
/// its receiver nothing; likewise of rows.
struct collective_bytes {
  double of[collective_kinds] = {};
  double operator[](collective_kind kind) const { return of[static_cast<std::size_t>(kind)]; }
};

/// The direction of a message at one of its members.
enum class direction : std::int32_t { send, receive };

/// A message as one of its two members sees it: `bytes` bytes of dense memory that go to another member, `peer`, or
/// come from it.
struct message {
  direction way;
  std::int32_t peer;
  std::byte *data; ///< read, or written
  std::int64_t bytes;
};

/// What an all-gather or a reduce-scatter moves: a member's part, `elements` elements, and the whole, which has size()
/// times as many. A gather fills the whole, a scatter the part.
struct collective_pair {
  std::byte *out;
  const std::byte *in;
  std::int64_t elements;
  element_type type;
  std::int64_t part_bytes() const { return elements * size_of(type); }
};

/// The pairs that one command moves, by value.
struct collective_pairs {
  static constexpr std::int32_t most = 64;
  std::int32_t count = 0;
  collective_pair of[most];
};

/// The members' ranks in the order of their coordinate, and the blocking operations of one rank of the group.
class communicator {
public:
  virtual ~communicator() = default;
  virtual std::int32_t size() const = 0;
  virtual std::int32_t index() const = 0; ///< this rank's place in the group
  /// Reduces `data` in place. All operations block and are called from the stream's thread. Buffers are dense; sums add
  /// in order of the index on every member, so that all get the same bits. `out` and `in` do not overlap.
  virtual status all_reduce(std::byte *data, std::int64_t elements, element_type type, reduction kind) = 0;
  /// Gathers the members' parts of `count` pairs, which are the same on all members, with the latency of one. At most
  /// collective_pairs::most.
  virtual status all_gather(const collective_pair *pairs, std::int32_t count) = 0;
  /// Gathers `bytes` bytes of `in` from each member; `out` holds size() times as many.
  status all_gather(std::byte *out, const std::byte *in, std::int64_t bytes) {
    const collective_pair pair = {out, in, bytes, element_type::u8};
    return all_gather(&pair, 1);
  }
  /// Leaves this member's parts of the sums of `count` pairs, which are the same on all members, with the latency of
  /// one. At most collective_pairs::most. Each sum has the bits of a reduce-scatter of its own.
  virtual status reduce_scatter(const collective_pair *pairs, std::int32_t count) = 0;
  /// Leaves this member's `elements` elements of the sum in `out`; `in` holds size() times as many.
  status reduce_scatter(std::byte *out, const std::byte *in, std::int64_t elements, element_type type) {
    const collective_pair pair = {out, in, elements, type};
    return reduce_scatter(&pair, 1);
  }
  /// Sends each member its block of `bytes` bytes; `out` and `in` hold size() blocks each.
  virtual status all_to_all(std::byte *out, const std::byte *in, std::int64_t bytes) = 0;
  /// Sends `bytes` bytes of `in` to member `to` and receives as many from `from`; both may be this member. No two
  /// members send to the same one.
  virtual status permute(std::byte *out, const std::byte *in, std::int64_t bytes, std::int32_t to,
                         std::int32_t from) = 0;
  virtual status broadcast(std::byte *data, std::int64_t bytes, std::int32_t root) = 0;
  virtual status barrier() = 0;
  /// Moves messages between this member and others, all of them at once: no message waits for another one of the list,
  /// so that two members may send to each other. Returns when what was received is in place and what was sent may
  /// change.
  ///
  /// Messages from one member to another arrive in the order of calls, and within a call in that of its list; the
  /// receiver knows their sizes, and another size is an internal error. There may be no buffer between the members: a
  /// message may wait until its receiver asks for it, so that an order that needs a buffer may never end. Where a
  /// member is lost, or a rank aborts the job, the call ends as a collective does, with code `stopped`.
  ///
  /// A message of no bytes still lets its members meet. `count` is at most `most_messages`.
  virtual status transfer(const message *messages, std::int32_t count) = 0;
  static constexpr std::int32_t most_messages = 64;

  /// Brings rows of the members' tokens, `in`, to the members with the experts of their choice: `out` has a place for
  /// the row of every token of all members; those that do not reach this member are undefined. The scratch is of
  /// `row_scratch_elements`.
  virtual status gather_rows(std::byte *out, std::byte *scratch, const std::byte *in, const detail::row_routes &of);
  /// The way back: `out`, of this member's tokens, becomes the sums of their rows in `in` of the members that they
  /// reach, in order of the index; zeros where they reach none. `in` is overwritten.
  virtual status scatter_rows(std::byte *out, std::byte *scratch, std::byte *in, const detail::row_routes &of);

  /// Counts the bytes of all members' data in a collective.
  void count(collective_kind kind, std::int64_t bytes) { issued_[static_cast<std::size_t>(kind)] += bytes; }
  /// Counts rows that go to or come from a member; this member's own do not count.
  void count_rows(std::int32_t member, std::int64_t rows, const detail::row_routes &of) {
    if (member != index())
      count(collective_kind::rows, rows * of.row_bytes());
  }
  /// Adds to `sum` the bytes counted since the last call.
  void take_sent(collective_bytes &sum) {
    for (std::size_t k = 0; k < collective_kinds; ++k) {
      const auto kind = static_cast<collective_kind>(k);
      const auto bytes = static_cast<double>(issued_[k].exchange(0));
      const bool is_twice = kind == collective_kind::all_reduce || kind == collective_kind::scalars;
      const bool is_exact =
          kind == collective_kind::permute || kind == collective_kind::send || kind == collective_kind::rows;
      sum.of[k] += is_exact ? bytes : bytes * (is_twice ? 2 : 1) * (size() - 1) / size();
    }
  }

private:
  /// How many rows go is known when a command runs only, so that several threads count.
  std::atomic<std::int64_t> issued_[collective_kinds] = {};
};

/// Connects the ranks of a job: `mpi` (processes) or `local` (threads of one process).
class transport {
public:
  virtual ~transport() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t size() const = 0;
  /// Returns whether all ranks run on this host.
  virtual bool is_one_host() const = 0;
  /// Returns whether all ranks are threads of this process.
  virtual bool is_one_process() const { return false; }
  /// Makes the communicator of the group that holds this rank. Collective over all ranks: each gives the groups in the
  /// same order.
  virtual status make_communicator(const std::vector<std::int32_t> &members, std::unique_ptr<communicator> &out) = 0;
  /// Ends the job on all ranks after an error on this one.
  virtual void abort(const status &why) = 0;
};

/// Issues an all-reduce of a dense view, in place, on `s`.
status all_reduce(stream &s, communicator &c, const view &data, reduction kind);
/// Issues an all-gather: `out` is dense with the members' `in` one after the other.
status all_gather(stream &s, communicator &c, const view &out, const view &in);
/// Issues one all-gather of several dense buffers.
status all_gather_list(stream &s, communicator &c, const collective_pairs &pairs);
/// Issues a reduce-scatter: `out` is this member's part of the sum of the members' `in`.
status reduce_scatter(stream &s, communicator &c, const view &out, const view &in);
/// Issues one reduce-scatter of several dense buffers.
status reduce_scatter_list(stream &s, communicator &c, const collective_pairs &pairs);
status all_to_all(stream &s, communicator &c, const view &out, const view &in);
/// Issues a collective-permute: member m's `in` becomes the `out` of member `destinations[m]`; every member is the
/// destination of one.
status permute(stream &s, communicator &c, const view &out, const view &in,
               std::initializer_list<std::int32_t> destinations);
/// Issues communicator::gather_rows on `s`. Views are dense: `in` [tokens, columns], `out` [size() * tokens, columns],
/// `choices` [size() * tokens, chosen] of i64, indices of `experts` experts, which the members share evenly and in
/// order.
status gather_rows(stream &s, communicator &c, const view &out, const view &scratch, const view &in,
                   const view &choices, std::int64_t experts);
/// Issues communicator::scatter_rows on `s`, with views as of gather_rows: `in` is the larger one.
status scatter_rows(stream &s, communicator &c, const view &out, const view &scratch, const view &in,
                    const view &choices, std::int64_t experts);
/// Sends a dense view to another member, `to`, whose receive has a view of as many bytes.
status send(stream &s, communicator &c, const view &in, std::int32_t to);
/// Fills a dense view with what another member, `from`, sends.
status receive(stream &s, communicator &c, const view &out, std::int32_t from);

/// A view that goes to member `peer`, or comes from it.
struct message_view {
  direction way;
  std::int32_t peer;
  view data; ///< dense
};
/// Issues at most communicator::most_messages sends and receives at once: none waits for another. Two members that send
/// to each other at the same time have to use one such call each.
status transfer(stream &s, communicator &c, std::initializer_list<message_view> messages);

} // namespace windlass::rt

#endif
