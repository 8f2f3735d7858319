// Collectives and messages between ranks. A transport connects all ranks; a communicator is a group of them with an
// issue order.
#ifndef WINDLASS_RT_COMMUNICATOR_H
#define WINDLASS_RT_COMMUNICATOR_H

#include "windlass/rt/kernels.h"
#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"
#include "windlass/rt/view.h"

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace windlass::rt {

/// Communication whose bytes are counted apart; `scalars` are all-reduces of one element, such as losses, counts and
/// norms, and `send` is what goes from one member to another.
enum class collective_kind : std::int32_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  permute,
  scalars,
  send
};
constexpr const char *collective_names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute",
                                            "scalars",    "send"};
constexpr std::size_t collective_kinds = sizeof(collective_names) / sizeof(collective_names[0]);

/// Bytes that a rank sends, by kind. They are those of a ring, whichever way a transport moves the data: of n members
/// each sends (n - 1)/n of what a reduce-scatter takes, an all-gather gives or an all-to-all exchanges, and 2(n - 1)/n
/// of what is all-reduced; of a permute, all that goes to another member. Of a message, its sender counts all of it and
/// its receiver nothing.
struct collective_bytes {
  double of[collective_kinds] = {};
  double operator[](collective_kind kind) const { return of[static_cast<std::size_t>(kind)]; }
};

/// What a member does with a message.
enum class direction : std::int32_t { send, receive };

/// A message as one of its two members sees it: `bytes` of dense memory that go to member `peer`, which is another one,
/// or come from it.
struct message {
  direction way;
  std::int32_t peer;
  std::byte *data; ///< read, or written
  std::int64_t bytes;
};

/// The members' ranks in the order of their coordinate, and the blocking operations of one rank of the group.
class communicator {
public:
  virtual ~communicator() = default;
  virtual std::int32_t size() const = 0;
  virtual std::int32_t index() const = 0; ///< this rank's place in the group
  /// Blocking, called from the stream's thread. Buffers are dense; sums add in order of the index on every member, so
  /// that all get the same bits. `out` and `in` do not overlap.
  virtual status all_reduce(std::byte *data, std::int64_t elements, element_type type, reduction kind) = 0;
  /// `bytes` of `in`; `out` holds size() times as many.
  virtual status all_gather(std::byte *out, const std::byte *in, std::int64_t bytes) = 0;
  /// `elements` of `out`; `in` holds size() times as many.
  virtual status reduce_scatter(std::byte *out, const std::byte *in, std::int64_t elements, element_type type) = 0;
  /// `bytes` of the block that goes to one member; `out` and `in` hold size() of them each.
  virtual status all_to_all(std::byte *out, const std::byte *in, std::int64_t bytes) = 0;
  /// Sends `bytes` of `in` to member `to` and receives as many from `from`, which may be this one. Each member sends to
  /// another one.
  virtual status permute(std::byte *out, const std::byte *in, std::int64_t bytes, std::int32_t to,
                         std::int32_t from) = 0;
  virtual status broadcast(std::byte *data, std::int64_t bytes, std::int32_t root) = 0;
  virtual status barrier() = 0;
  /// Moves messages between this member and others, all of them at once: none waits for another one of the list, so
  /// that two members may send to each other. Returns when what was received is in place and what was sent may change.
  ///
  /// From one member to another, messages arrive in the order of calls, and within a call in that of its list; the
  /// receiver knows their sizes, and another size is an internal error. There may be no buffer between the members: a
  /// message may wait until its receiver asks for it, so that an order that needs a buffer may never end. Where a
  /// member is lost, or a rank aborts the job, the call ends as a collective does, with code `stopped`.
  ///
  /// A message of no bytes still lets its members meet. `count` is at most `most_messages`.
  virtual status transfer(const message *messages, std::int32_t count) = 0;
  static constexpr std::int32_t most_messages = 64;

  /// Counts the bytes of all members' data in a collective that this rank issues; its one thread that issues calls
  /// this.
  void count(collective_kind kind, std::int64_t bytes) { issued_[static_cast<std::size_t>(kind)] += bytes; }
  /// Adds what has been issued since the last call.
  void take_sent(collective_bytes &sum) {
    for (std::size_t k = 0; k < collective_kinds; ++k) {
      const auto kind = static_cast<collective_kind>(k);
      const auto bytes = static_cast<double>(std::exchange(issued_[k], 0));
      const bool is_twice = kind == collective_kind::all_reduce || kind == collective_kind::scalars;
      const bool is_exact = kind == collective_kind::permute || kind == collective_kind::send;
      sum.of[k] += is_exact ? bytes : bytes * (is_twice ? 2 : 1) * (size() - 1) / size();
    }
  }

private:
  std::int64_t issued_[collective_kinds] = {};
};

/// Connects the ranks of a job: `mpi` (processes) or `local` (threads of one process).
class transport {
public:
  virtual ~transport() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t size() const = 0;
  /// Whether all ranks run on this host.
  virtual bool is_one_host() const = 0;
  /// Whether all ranks are threads of this process.
  virtual bool is_one_process() const { return false; }
  /// Collective over all ranks: each gives the groups in the same order; the result is the one that holds this rank.
  virtual status make_communicator(const std::vector<std::int32_t> &members, std::unique_ptr<communicator> &out) = 0;
  /// Ends the job on all ranks after an error on this one.
  virtual void abort(const status &why) = 0;
};

/// Issues a collective on `s`: in place all-reduce of a dense view.
status all_reduce(stream &s, communicator &c, const view &data, reduction kind);
/// out is dense with the members' `in` one after the other.
status all_gather(stream &s, communicator &c, const view &out, const view &in);
/// out is this member's part of the sum of the members' `in`.
status reduce_scatter(stream &s, communicator &c, const view &out, const view &in);
status all_to_all(stream &s, communicator &c, const view &out, const view &in);
/// Member m's `in` becomes the `out` of member `destinations[m]`; every member is the destination of one.
status permute(stream &s, communicator &c, const view &out, const view &in,
               std::initializer_list<std::int32_t> destinations);
/// Sends a dense view to member `to`, another one, whose receive has a view of as many bytes.
status send(stream &s, communicator &c, const view &in, std::int32_t to);
/// Fills a dense view with what member `from`, another one, sends.
status receive(stream &s, communicator &c, const view &out, std::int32_t from);

/// A view that goes to member `peer`, or comes from it.
struct message_view {
  direction way;
  std::int32_t peer;
  view data; ///< dense
};
/// Sends and receives at once, at most communicator::most_messages: none waits for another. Two members that send to
/// each other at the same time have to do it so.
status transfer(stream &s, communicator &c, std::initializer_list<message_view> messages);

} // namespace windlass::rt

#endif
