// Ranks as processes that an MPI launcher started.
#include "windlass/rt/transport.h"

#include "message_queue.h"
#include "pair_rounds.h"
#include "shared_memory.h"
#include "staging.h"

#include "windlass/rt/detail/combine.h"

#include <mpi.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include <unistd.h>

#ifdef WINDLASS_SANITIZE
static bool has_started_mpi = false;

/// Tells the leak sanitizer at exit to report nothing after MPI: its modules leak memory and are unloaded by then, so
/// that their leaks cannot be told from ours.
extern "C" int __lsan_is_turned_off() { return has_started_mpi; }
#endif

namespace windlass::rt {

namespace {

status check(int code, const char *what) {
  if (code == MPI_SUCCESS)
    return {};
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return status(status_code::stopped, std::string("MPI failed in ") + what + ": " + text).as(diagnostic::rank_lost);
}

/// MPI itself; the last transport or communicator that goes ends it, if this program started it.
struct session {
  bool finalizes = false;
  int thread_level = MPI_THREAD_SINGLE;
  ~session() {
    int is_finalized = 0;
    MPI_Finalized(&is_finalized);
    if (finalizes && is_finalized == 0)
      MPI_Finalize();
  }
};

/// Returns bytes as a count that MPI's `int` can hold.
struct extent {
  MPI_Datatype type = MPI_BYTE;
  int count = 0;
  bool fits = true;

  extent() = default;
  extent(std::int64_t bytes, MPI_Datatype page, std::int64_t page_bytes) {
    constexpr std::int64_t limit = 0x7fffffff;
    if (bytes <= limit) {
      count = static_cast<int>(bytes);
    } else if (bytes % page_bytes == 0 && bytes / page_bytes <= limit) {
      type = page;
      count = static_cast<int>(bytes / page_bytes);
    } else if (bytes % 4 == 0 && bytes / 4 <= limit) {
      type = MPI_FLOAT;
      count = static_cast<int>(bytes / 4);
    } else {
      fits = false;
    }
  }
};

/// Members on several hosts. Reductions exchange parts and add them in order, since MPI's own may add in any.
class mpi_communicator final : public communicator {
public:
  mpi_communicator(std::shared_ptr<session> owner, MPI_Comm comm, std::int32_t size, std::int32_t index)
      : owner_(std::move(owner)), comm_(comm), size_(size), index_(index), sent_(staging_bytes(size)),
        received_(staging_bytes(size)), parts_(static_cast<std::size_t>(size)), counts_(parts_.size()),
        offsets_(parts_.size()), own_counts_(parts_.size()), own_offsets_(parts_.size()) {
    MPI_Type_contiguous(page_bytes, MPI_BYTE, &page_);
    MPI_Type_commit(&page_);
  }
  ~mpi_communicator() override {
    MPI_Type_free(&page_);
    MPI_Comm_free(&comm_);
  }

  std::int32_t size() const override { return size_; }
  std::int32_t index() const override { return index_; }

  status all_reduce(std::byte *data, std::int64_t elements, element_type type, reduction kind) override {
    const std::int64_t width = size_of(type), piece = piece_bytes / width;
    for (std::int64_t done = 0; done < elements; done += piece) {
      const std::int64_t n = std::min(piece, elements - done);
      std::byte *here = data + done * width;
      const std::int64_t begin = detail::part_begin(n, size_, index_), end = detail::part_begin(n, size_, index_ + 1);
      for (std::int32_t m = 0; m < size_; ++m) {
        const auto i = static_cast<std::size_t>(m);
        offsets_[i] = static_cast<int>(detail::part_begin(n, size_, m) * width);
        counts_[i] = static_cast<int>(detail::part_begin(n, size_, m + 1) * width) - offsets_[i];
        own_counts_[i] = static_cast<int>((end - begin) * width);
        own_offsets_[i] = m * own_counts_[i];
        parts_[i] = received_.data() + own_offsets_[i];
      }
      WINDLASS_TRY(check(MPI_Alltoallv(here, counts_.data(), offsets_.data(), MPI_BYTE, received_.data(),
                                       own_counts_.data(), own_offsets_.data(), MPI_BYTE, comm_),
                         "all-reduce"));
      std::byte *sum = sent_.data();
      WINDLASS_TRY(detail::combine(&sum, 1, parts_.data(), size_, end - begin, type, kind));
      WINDLASS_TRY(check(MPI_Allgatherv(sum, static_cast<int>((end - begin) * width), MPI_BYTE, here, counts_.data(),
                                        offsets_.data(), MPI_BYTE, comm_),
                         "all-reduce"));
    }
    return {};
  }

  /// All are under way at once.
  status all_gather(const collective_pair *pairs, std::int32_t count) override {
    extent extents[collective_pairs::most];
    for (std::int32_t i = 0; i < count; ++i) {
      extents[i] = extent(pairs[i].part_bytes(), page_, page_bytes);
      if (!extents[i].fits)
        return too_large(pairs[i].part_bytes());
    }
    if (count == 1)
      return check(
          MPI_Allgather(pairs->in, extents->count, extents->type, pairs->out, extents->count, extents->type, comm_),
          "all-gather");
    MPI_Request requests[collective_pairs::most];
    for (std::int32_t i = 0; i < count; ++i)
      WINDLASS_TRY(check(MPI_Iallgather(pairs[i].in, extents[i].count, extents[i].type, pairs[i].out, extents[i].count,
                                        extents[i].type, comm_, &requests[i]),
                         "all-gather"));
    return check(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE), "all-gather");
  }

  /// What all pairs add goes through the staging areas together.
  status reduce_scatter(const collective_pair *pairs, std::int32_t count) override {
    constexpr std::int64_t alignment = detail::pair_rounds::alignment;
    detail::pair_rounds rounds(pairs, count, std::max(piece_bytes / size_ / alignment * alignment, alignment));
    while (rounds.advance()) {
      const auto slot = static_cast<int>(rounds.bytes());
      for (std::int32_t m = 0; m < size_; ++m)
        for (const detail::stretch &part : rounds)
          std::memcpy(sent_.data() + m * slot + part.place, part.pair->in + m * part.pair->part_bytes() + part.begin,
                      static_cast<std::size_t>(part.bytes));
      WINDLASS_TRY(
          check(MPI_Alltoall(sent_.data(), slot, MPI_BYTE, received_.data(), slot, MPI_BYTE, comm_), "reduce-scatter"));
      for (const detail::stretch &part : rounds) {
        for (std::int32_t m = 0; m < size_; ++m)
          parts_[static_cast<std::size_t>(m)] = received_.data() + m * slot + part.place;
        std::byte *sum = part.pair->out + part.begin;
        const element_type type = part.pair->type;
        WINDLASS_TRY(detail::combine(&sum, 1, parts_.data(), size_, part.bytes / size_of(type), type, reduction::sum));
      }
    }
    return {};
  }

  status all_to_all(std::byte *out, const std::byte *in, std::int64_t bytes) override {
    const extent each(bytes, page_, page_bytes);
    if (!each.fits)
      return too_large(bytes);
    return check(MPI_Alltoall(in, each.count, each.type, out, each.count, each.type, comm_), "all-to-all");
  }

  status permute(std::byte *out, const std::byte *in, std::int64_t bytes, std::int32_t to, std::int32_t from) override {
    const extent all(bytes, page_, page_bytes);
    if (!all.fits)
      return too_large(bytes);
    return check(
        MPI_Sendrecv(in, all.count, all.type, to, 0, out, all.count, all.type, from, 0, comm_, MPI_STATUS_IGNORE),
        "permute");
  }

  status broadcast(std::byte *data, std::int64_t bytes, std::int32_t root) override {
    constexpr std::int64_t most = 1 << 30;
    for (std::int64_t done = 0; done < bytes; done += most)
      WINDLASS_TRY(check(MPI_Bcast(data + done, static_cast<int>(std::min(most, bytes - done)), MPI_BYTE, root, comm_),
                         "broadcast"));
    return {};
  }

  status barrier() override { return check(MPI_Barrier(comm_), "barrier"); }

  /// All requests are posted before any is waited for. MPI may buffer small messages; no program counts on that.
  status transfer(const message *messages, std::int32_t count) override {
    MPI_Request requests[most_messages];
    MPI_Status arrived[most_messages];
    extent extents[most_messages];
    for (std::int32_t i = 0; i < count; ++i) {
      extents[i] = extent(messages[i].bytes, page_, page_bytes);
      if (!extents[i].fits)
        return too_large(messages[i].bytes);
    }
    for (std::int32_t i = 0; i < count; ++i) {
      const message &m = messages[i];
      const extent &e = extents[i];
      WINDLASS_TRY(check(m.way == direction::send ? MPI_Isend(m.data, e.count, e.type, m.peer, 0, comm_, &requests[i])
                                                  : MPI_Irecv(m.data, e.count, e.type, m.peer, 0, comm_, &requests[i]),
                         "transfer"));
    }
    WINDLASS_TRY(check(MPI_Waitall(count, requests, arrived), "transfer"));
    for (std::int32_t i = 0; i < count; ++i) {
      MPI_Count bytes = 0;
      if (messages[i].way == direction::receive && MPI_Get_elements_x(&arrived[i], MPI_BYTE, &bytes) == MPI_SUCCESS &&
          bytes != messages[i].bytes)
        return detail::wrong_message(messages[i], index_, bytes);
    }
    return {};
  }

private:
  static constexpr std::int64_t page_bytes = 4096;
  static status too_large(std::int64_t bytes) {
    return internal_error("a collective of " + std::to_string(bytes) + " bytes is more than MPI can count");
  }

  std::shared_ptr<session> owner_;
  MPI_Comm comm_;
  std::int32_t size_, index_;
  std::vector<std::byte> sent_, received_;
  std::vector<const std::byte *> parts_;
  std::vector<int> counts_, offsets_, own_counts_, own_offsets_;
  MPI_Datatype page_ = MPI_DATATYPE_NULL;
};

class mpi_transport final : public transport {
public:
  mpi_transport(std::shared_ptr<session> owner, bool shares_memory)
      : owner_(std::move(owner)), shares_memory_(shares_memory) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  /// Finds out which ranks share a host: each host is known by its lowest rank.
  status find_hosts() {
    MPI_Comm host = MPI_COMM_NULL;
    WINDLASS_TRY(
        check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host), "start"));
    int lowest = rank_;
    WINDLASS_TRY(check(MPI_Bcast(&lowest, 1, MPI_INT, 0, host), "start"));
    MPI_Comm_free(&host);
    hosts_.resize(static_cast<std::size_t>(size_));
    return check(MPI_Allgather(&lowest, 1, MPI_INT, hosts_.data(), 1, MPI_INT, MPI_COMM_WORLD), "start");
  }

  std::int32_t rank() const override { return rank_; }
  std::int32_t size() const override { return size_; }
  bool is_one_host() const override {
    return std::all_of(hosts_.begin(), hosts_.end(), [&](int host) { return host == hosts_[0]; });
  }

  status make_communicator(const std::vector<std::int32_t> &members, std::unique_ptr<communicator> &out) override {
    const auto mine = std::find(members.begin(), members.end(), rank_);
    if (mine == members.end())
      return internal_error("rank " + std::to_string(rank_) + " is not a member of its own communicator");
    const auto index = static_cast<std::int32_t>(mine - members.begin());
    const auto size = static_cast<std::int32_t>(members.size());
    MPI_Comm comm = MPI_COMM_NULL;
    WINDLASS_TRY(check(MPI_Comm_split(MPI_COMM_WORLD, *std::min_element(members.begin(), members.end()), index, &comm),
                       "start"));
    bool is_one_host = true;
    for (const std::int32_t member : members)
      is_one_host = is_one_host && hosts_[static_cast<std::size_t>(member)] == hosts_[static_cast<std::size_t>(rank_)];
    // Where memory cannot be reserved, the slower way remains.
    if (shares_memory_ && is_one_host) {
      WINDLASS_TRY(try_shared_communicator(
          members, index,
          [&](char *text, std::int64_t bytes) {
            return check(MPI_Bcast(text, static_cast<int>(bytes), MPI_CHAR, 0, comm), "start");
          },
          [&](bool &is_so) {
            int all = is_so ? 1 : 0;
            const status met = check(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm), "start");
            is_so = all == 1;
            return met;
          },
          out));
      if (out) {
        MPI_Comm_free(&comm);
        return {};
      }
    }
    if (size > 1 && owner_->thread_level < MPI_THREAD_MULTIPLE)
      return bad_input("the MPI library does not let several threads communicate (MPI_THREAD_MULTIPLE), which ranks "
                       "on several hosts need; use one that does");
    out = std::make_unique<mpi_communicator>(owner_, comm, size, index);
    return {};
  }

  void abort(const status &why) override {
    std::fprintf(stderr, "windlass: rank %d ends the job: %s [%s]\n", rank_, why.message().c_str(),
                 diagnostic_code(why.kind()).c_str());
    std::fflush(nullptr);
    // MPI ends the ranks, this one too, by a signal that otherwise asks them to save; and where MPI already ends the
    // job, because a rank has died, it may never answer.
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGALRM, SIG_DFL);
    alarm(2);
    MPI_Abort(MPI_COMM_WORLD, why.is_ok() ? static_cast<int>(status_code::internal) : static_cast<int>(why.code()));
  }

private:
  std::shared_ptr<session> owner_;
  bool shares_memory_;
  int rank_ = 0, size_ = 1;
  std::vector<int> hosts_;
};

} // namespace

status make_mpi_transport(std::unique_ptr<transport> &out, bool shares_memory) {
#ifdef WINDLASS_SANITIZE
  has_started_mpi = true;
#endif
  auto owner = std::make_shared<session>();
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  if (is_initialized == 0) {
    WINDLASS_TRY(check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &owner->thread_level), "start"));
    owner->finalizes = true;
  } else {
    MPI_Query_thread(&owner->thread_level);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); // communicators made from it inherit this
  auto result = std::make_unique<mpi_transport>(std::move(owner), shares_memory);
  WINDLASS_TRY(result->find_hosts());
  out = std::move(result);
  return {};
}

bool has_mpi() { return true; }

} // namespace windlass::rt
