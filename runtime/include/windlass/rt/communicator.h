// Collectives between ranks. A transport connects all ranks; a communicator is a group of them with an issue order.
#ifndef WINDLASS_RT_COMMUNICATOR_H
#define WINDLASS_RT_COMMUNICATOR_H

#include "windlass/rt/kernels.h"
#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"
#include "windlass/rt/view.h"

#include <memory>
#include <vector>

namespace windlass::rt {

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
  virtual status broadcast(std::byte *data, std::int64_t bytes, std::int32_t root) = 0;
  virtual status barrier() = 0;
};

/// Connects the ranks of a job: `mpi` (processes) or `local` (threads of one process).
class transport {
public:
  virtual ~transport() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t size() const = 0;
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

} // namespace windlass::rt

#endif
