#include "nccl.h"

#include "streams.h"

#include "windlass/rt/detail/combine.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace emulation = windlass::rt::cuda::emulation;
using windlass::rt::element_type;
using windlass::rt::reduction;

namespace {

/// One command of one member.
struct nccl_command {
  enum { send, receive, move, reduce } what;
  const std::byte *in = nullptr;
  std::byte *out = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t op = ncclSum;
  int peer = 0;              ///< of a message; the root of a broadcast, -1: each member's data goes to all
  bool is_scattered = false; ///< of a reduction: each member gets its part only
};

element_type type_of(ncclDataType_t type) {
  switch (type) {
  case ncclInt32:
    return element_type::i32;
  case ncclInt64:
    return element_type::i64;
  case ncclFloat16:
    return element_type::f16;
  case ncclFloat32:
    return element_type::f32;
  case ncclFloat64:
    return element_type::f64;
  case ncclBfloat16:
    return element_type::bf16;
  case ncclUint8:
    break;
  }
  return element_type::u8;
}

std::size_t bytes_of(const nccl_command &c) {
  return c.count * static_cast<std::size_t>(windlass::rt::size_of(type_of(c.type)));
}

/// What the members of a group share. Everything happens under its lock.
struct nccl_group {
  explicit nccl_group(int members) : size(members), offers(members * members), arrived(members) {}
  /// From one member to another: messages that nobody has received yet.
  std::deque<const nccl_command *> &offers_of(int from, int to) { return offers[from * size + to]; }

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::deque<const nccl_command *>> offers;
  std::vector<const nccl_command *> arrived; ///< each member's collective
  int arrivals = 0;
  std::uint64_t finished = 0; ///< collectives
  bool is_aborted = false;
};

/// A rank of a group. It lives as long as its communicator, or as a command of it that is still to be done.
struct nccl_member {
  nccl_member(std::shared_ptr<nccl_group> group, int index) : group(std::move(group)), index(index) {}

  std::shared_ptr<nccl_group> group;
  int index;
  std::atomic<ncclResult_t> state = ncclSuccess;

  /// Messages that go at once, and which of them are through once they have been offered.
  struct messages {
    std::vector<nccl_command> all;
    std::vector<bool> are_through;
    std::size_t left = 0;
  };

  /// Moves messages; returns whether all are through, for which it waits if it may.
  bool exchange(messages &own, bool may_wait) {
    std::unique_lock<std::mutex> lock(group->mutex);
    if (own.left == 0) {
      own.left = own.all.size();
      own.are_through.assign(own.all.size(), false);
      for (const nccl_command &c : own.all)
        if (c.what == nccl_command::send)
          group->offers_of(index, c.peer).push_back(&c);
      group->changed.notify_all();
    }
    // A message that was sent is through when it stands in its queue no longer.
    const auto is_sent = [&](const nccl_command &c) {
      const std::deque<const nccl_command *> &queue = group->offers_of(index, c.peer);
      return std::find(queue.begin(), queue.end(), &c) == queue.end();
    };
    while (own.left > 0) {
      bool has_moved = false;
      for (std::size_t i = 0; i < own.all.size(); ++i) {
        const nccl_command &c = own.all[i];
        if (own.are_through[i] || (c.what == nccl_command::send ? !is_sent(c) : !receive(c)))
          continue;
        own.are_through[i] = has_moved = true;
        --own.left;
      }
      if (has_moved) {
        group->changed.notify_all();
      } else if (group->is_aborted) { // a member that has gone took what was for it
        withdraw();
        own.left = 0;
      } else if (may_wait) {
        group->changed.wait(lock);
      } else {
        return false;
      }
    }
    return true;
  }

  /// A collective of all members, and how many the group had finished when this member came to it.
  struct collective {
    nccl_command command;
    std::optional<std::uint64_t> begun;
  };

  /// Takes part in a collective, of which the last to come does the work; returns whether it is through, for which it
  /// waits if it may.
  bool collect(collective &own, bool may_wait) {
    std::unique_lock<std::mutex> lock(group->mutex);
    if (!own.begun) {
      if (group->is_aborted) {
        state = ncclRemoteError;
        return true;
      }
      own.begun = group->finished;
      group->arrived[index] = &own.command;
      if (++group->arrivals == group->size) {
        for (int m = 0; m < group->size; ++m)
          work(m);
        group->arrivals = 0;
        ++group->finished;
        group->changed.notify_all();
      }
    }
    const auto is_over = [&] { return group->finished != *own.begun || group->is_aborted; };
    if (may_wait)
      group->changed.wait(lock, is_over);
    else if (!is_over())
      return false;
    if (group->finished == *own.begun)
      state = ncclRemoteError;
    own.begun = std::nullopt;
    return true;
  }

private:
  /// Nobody may take what this member leaves.
  void withdraw() {
    for (int to = 0; to < group->size; ++to)
      group->offers_of(index, to).clear();
    state = ncclRemoteError;
  }

  bool receive(const nccl_command &c) {
    std::deque<const nccl_command *> &queue = group->offers_of(c.peer, index);
    if (queue.empty())
      return false;
    if (bytes_of(*queue.front()) != bytes_of(c))
      state = ncclInvalidUsage;
    else
      std::memcpy(c.out, queue.front()->in, bytes_of(c));
    queue.pop_front();
    return true;
  }

  /// Fills the output of member `m`.
  void work(int m) {
    const nccl_command &own = *group->arrived[static_cast<std::size_t>(m)];
    const std::size_t bytes = bytes_of(own);
    if (own.what == nccl_command::move) {
      for (int from = 0; from < group->size; ++from)
        if (own.peer < 0 || own.peer == from)
          std::memmove(own.out + (own.peer < 0 ? from * bytes : 0), group->arrived[from]->in, bytes);
      return;
    }
    std::vector<const std::byte *> parts;
    for (const nccl_command *each : group->arrived)
      parts.push_back(each->in + (own.is_scattered ? m * bytes : 0));
    // In place, the first member's result is an operand of the next: all of it is kept until the last.
    results_.resize(static_cast<std::size_t>(group->size));
    std::vector<std::byte> &result = results_[m];
    result.resize(bytes);
    std::byte *to = result.data();
    const reduction kind = own.op == ncclSum ? reduction::sum : own.op == ncclMax ? reduction::max : reduction::min;
    if (!windlass::rt::detail::combine(&to, 1, parts.data(), group->size, static_cast<std::int64_t>(own.count),
                                       type_of(own.type), kind)
             .is_ok())
      state = ncclInvalidArgument;
    if (m + 1 == group->size)
      for (int each = 0; each < group->size; ++each)
        std::memcpy(group->arrived[each]->out, results_[each].data(), bytes);
  }

  std::vector<std::vector<std::byte>> results_;
};

} // namespace

struct emulated_nccl_member {
  std::shared_ptr<nccl_member> member;
};

namespace {

/// Groups by the number of their name, until all members have joined and gone.
std::map<std::uint64_t, std::weak_ptr<nccl_group>> &groups() {
  static std::map<std::uint64_t, std::weak_ptr<nccl_group>> all;
  return all;
}
std::mutex &groups_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// The commands of the group that this thread has begun.
struct open_group {
  int depth = 0;
  std::vector<nccl_command> messages;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};
open_group &opened() {
  static thread_local open_group one;
  return one;
}

ncclResult_t issue_messages(ncclComm_t comm, cudaStream_t stream, std::vector<nccl_command> messages) {
  auto own = std::make_shared<nccl_member::messages>();
  own->all = std::move(messages);
  emulation::give(stream, [member = comm->member, own](bool may_wait) {
    const emulation::open_memory open;
    return member->exchange(*own, may_wait);
  });
  return comm->member->state;
}

ncclResult_t issue_message(const nccl_command &c, ncclComm_t comm, cudaStream_t stream) {
  if (c.peer < 0 || c.peer >= comm->member->group->size)
    return ncclInvalidArgument;
  open_group &group = opened();
  if (group.depth == 0)
    return issue_messages(comm, stream, {c});
  group.messages.push_back(c);
  group.comm = comm;
  group.stream = stream;
  return ncclSuccess;
}

ncclResult_t issue_collective(const nccl_command &c, ncclComm_t comm, cudaStream_t stream) {
  auto own = std::make_shared<nccl_member::collective>();
  own->command = c;
  emulation::give(stream, [member = comm->member, own](bool may_wait) {
    const emulation::open_memory open;
    return member->collect(*own, may_wait);
  });
  return comm->member->state;
}

const std::byte *bytes(const void *data) { return static_cast<const std::byte *>(data); }
std::byte *bytes(void *data) { return static_cast<std::byte *>(data); }

} // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId *out) {
  static std::uint64_t last = 0;
  const std::lock_guard<std::mutex> lock(groups_mutex());
  *out = {};
  std::memcpy(out->internal, &++last, sizeof last);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int members, ncclUniqueId id, int member, ncclConfig_t *) {
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  const std::lock_guard<std::mutex> lock(groups_mutex());
  std::weak_ptr<nccl_group> &entry = groups()[number];
  std::shared_ptr<nccl_group> group = entry.lock();
  if (group == nullptr)
    entry = group = std::make_shared<nccl_group>(members);
  *out = new emulated_nccl_member{std::make_shared<nccl_member>(std::move(group), member)};
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out) {
  *out = comm->member->state;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    nccl_group &group = *comm->member->group;
    const std::lock_guard<std::mutex> lock(group.mutex);
    group.is_aborted = true;
    group.changed.notify_all();
  }
  delete comm;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : result == ncclRemoteError ? "remote process exited" : "emulated error";
}

ncclResult_t ncclGroupStart() {
  ++opened().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  open_group &group = opened();
  if (--group.depth > 0 || group.messages.empty())
    return ncclSuccess;
  return issue_messages(group.comm, group.stream, std::exchange(group.messages, {}));
}

ncclResult_t ncclAllReduce(const void *in, void *out, std::size_t count, ncclDataType_t type, ncclRedOp_t kind,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue_collective({nccl_command::reduce, bytes(in), bytes(out), count, type, kind}, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, std::size_t count, ncclDataType_t type, ncclRedOp_t kind,
                               ncclComm_t comm, cudaStream_t stream) {
  return issue_collective({nccl_command::reduce, bytes(in), bytes(out), count, type, kind, 0, true}, comm, stream);
}

ncclResult_t ncclAllGather(const void *in, void *out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return issue_collective({nccl_command::move, bytes(in), bytes(out), count, type, ncclSum, -1}, comm, stream);
}

ncclResult_t ncclBroadcast(const void *in, void *out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return issue_collective({nccl_command::move, bytes(in), bytes(out), count, type, ncclSum, root}, comm, stream);
}

ncclResult_t ncclSend(const void *data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return issue_message({nccl_command::send, bytes(data), nullptr, count, type, ncclSum, peer}, comm, stream);
}

ncclResult_t ncclRecv(void *data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return issue_message({nccl_command::receive, nullptr, bytes(data), count, type, ncclSum, peer}, comm, stream);
}
