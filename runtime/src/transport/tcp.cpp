// Ranks as processes that know each other by environment variables, as torchrun sets them.
#include "windlass/rt/transport.h"

#include "shared_memory.h"
#include "socket.h"
#include "tcp_communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <sys/random.h>
#include <unistd.h>

namespace windlass::rt {

namespace {

using clock = std::chrono::steady_clock;

/// How long ranks wait for each other to start.
constexpr std::chrono::seconds start_patience{180};
/// How long whoever connects may take to say who it is.
constexpr std::chrono::seconds hello_patience{5};
constexpr std::uint64_t magic = 0x31737361'6c646e77; // of this form of greeting

/// What a rank tells rank 0.
struct hello {
  std::uint64_t magic = 0;
  std::int32_t rank = 0, size = 0;
  std::uint64_t host = 0; ///< equal where processes can see each other
  std::uint16_t port = 0; ///< at which it waits for others
  std::uint8_t rest[6] = {};
};

/// What rank 0 tells all of a rank.
struct rank_row {
  socket_address address;
  std::uint64_t host = 0;
};

/// What a rank says to another one which it connects to for a communicator.
struct greeting {
  std::uint64_t magic = 0, token = 0;
  std::int64_t call = 0; ///< the number of the communicator
  std::int64_t rank = 0;
};

/// Returns a hash of the host's name, the system's boot and the namespace of process ids. Processes for which it is
/// equal can look at each other.
std::uint64_t host_number() {
  std::string text;
  char part[256];
  if (FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    text.assign(part, std::fread(part, 1, sizeof part, file));
    std::fclose(file);
  }
  if (const ssize_t n = ::readlink("/proc/self/ns/pid", part, sizeof part); n > 0)
    text.append(part, static_cast<std::size_t>(n));
  if (::gethostname(part, sizeof part) == 0)
    text += part;
  std::uint64_t out = 0xcbf29ce484222325; // FNV-1a
  for (const char c : text)
    out = (out ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return out;
}

class tcp_transport final : public transport {
public:
  tcp_transport(const launch_variables &job, bool shares_memory) : job_(job), shares_memory_(shares_memory) {}

  /// Meets the other ranks at rank 0.
  status join() {
    const deadline end = clock::now() + start_patience;
    socket_address meeting;
    WINDLASS_TRY(find_address(job_.address, job_.port, meeting));
    WINDLASS_TRY(waits_.listen(meeting, 0));
    rows_.resize(static_cast<std::size_t>(job_.size));
    if (job_.size > 1)
      WINDLASS_TRY(job_.rank == 0 ? receive_all(meeting, end) : report(meeting, end));
    return ok_status();
  }

  std::int32_t rank() const override { return job_.rank; }
  std::int32_t size() const override { return job_.size; }
  bool is_one_host() const override {
    return std::all_of(rows_.begin(), rows_.end(), [&](const rank_row &row) { return row.host == rows_[0].host; });
  }

  /// A member connects to those of lower index and waits for the connections of those of higher index.
  status make_communicator(const std::vector<std::int32_t> &members, std::unique_ptr<communicator> &out) override {
    const auto mine = std::find(members.begin(), members.end(), job_.rank);
    if (mine == members.end())
      return internal_error("rank " + std::to_string(job_.rank) + " is not a member of its own communicator");
    const auto index = static_cast<std::size_t>(mine - members.begin());
    const std::int64_t call = calls_++;
    const deadline end = clock::now() + start_patience;
    std::vector<tcp_socket> peers(members.size());
    for (std::size_t i = 0; i < index; ++i) {
      const greeting own = {magic, token_, call, job_.rank};
      WINDLASS_TRY(peers[i].connect(rows_[static_cast<std::size_t>(members[i])].address, end));
      WINDLASS_TRY(peers[i].write(&own, sizeof own, end));
    }
    for (std::size_t i = index + 1; i < members.size(); ++i)
      WINDLASS_TRY(take_connection(call, members[i], end, peers[i]));
    for (const tcp_socket &peer : peers)
      if (peer.is_open())
        WINDLASS_TRY(peer.prepare_for_messages());
    out = make_tcp_communicator(std::move(peers), members, static_cast<std::int32_t>(index));
    const std::uint64_t host = rows_[static_cast<std::size_t>(job_.rank)].host;
    const bool is_one_host = std::all_of(members.begin(), members.end(), [&](std::int32_t member) {
      return rows_[static_cast<std::size_t>(member)].host == host;
    });
    if (!shares_memory_ || !is_one_host || members.size() == 1)
      return ok_status();
    communicator &by_messages = *out;
    return try_shared_communicator(
        members, by_messages.index(),
        [&](char *text, std::int64_t bytes) {
          return by_messages.broadcast(reinterpret_cast<std::byte *>(text), bytes, 0);
        },
        [&](bool &is_so) {
          float all = is_so ? 1.0f : 0.0f;
          const status met =
              by_messages.all_reduce(reinterpret_cast<std::byte *>(&all), 1, element_type::f32, reduction::min);
          is_so = all == 1.0f;
          return met;
        },
        out);
  }

  void abort(const status &why) override {
    std::fprintf(stderr, "windlass: rank %d ends the job: %s [%s]\n", job_.rank, why.message().c_str(),
                 diagnostic_code(why.kind()).c_str());
    std::fflush(nullptr);
    // The others notice that the connections are closed.
    std::_Exit(why.is_ok() ? static_cast<int>(status_code::internal) : static_cast<int>(why.code()));
  }

private:
  /// Rank 0's part of the meeting: it hears all, and tells all where the others are.
  status receive_all(const socket_address &meeting, const deadline &end) {
    tcp_socket door;
    WINDLASS_TRY(door.listen(meeting, job_.port));
    if (::getrandom(&token_, sizeof token_, 0) != static_cast<ssize_t>(sizeof token_))
      return internal_error("the system gives no random bytes");
    rows_[0] = {meeting, host_number()};
    rows_[0].address.set_port(waits_.port());
    std::vector<tcp_socket> heard(rows_.size());
    for (std::int32_t missing = job_.size - 1; missing > 0;) {
      tcp_socket one;
      socket_address from;
      if (const status came = door.accept(end, one, from); !came.is_ok())
        return nobody_came(heard);
      hello its;
      // Whoever is not of the job is sent away.
      if (!one.read(&its, sizeof its, clock::now() + hello_patience).is_ok() || its.magic != magic)
        continue;
      if (its.size != job_.size || its.rank < 1 || its.rank >= job_.size)
        return bad_input("a process on " + from.text() + " has RANK=" + std::to_string(its.rank) + " and WORLD_SIZE=" +
                         std::to_string(its.size) + ", but rank 0 has WORLD_SIZE=" + std::to_string(job_.size) +
                         "; give all of a job one size, and each a rank below it")
            .as(diagnostic::launch);
      const auto rank = static_cast<std::size_t>(its.rank);
      if (heard[rank].is_open())
        return bad_input("two processes have RANK=" + std::to_string(its.rank) + ", the second one on " + from.text() +
                         "; give each a rank of its own")
            .as(diagnostic::launch);
      rows_[rank] = {from, its.host};
      rows_[rank].address.set_port(its.port);
      heard[rank] = std::move(one);
      --missing;
    }
    for (std::size_t rank = 1; rank < rows_.size(); ++rank) {
      WINDLASS_TRY(heard[rank].write(&token_, sizeof token_, end));
      WINDLASS_TRY(heard[rank].write(rows_.data(), static_cast<std::int64_t>(rows_.size() * sizeof(rank_row)), end));
    }
    return ok_status();
  }

  status nobody_came(const std::vector<tcp_socket> &heard) const {
    std::string names;
    for (std::size_t rank = 1; rank < heard.size(); ++rank)
      if (!heard[rank].is_open())
        names += (names.empty() ? "" : ", ") + std::to_string(rank);
    return bad_input("these ranks did not come to " + job_.address + ":" + std::to_string(job_.port) + " within " +
                     std::to_string(start_patience.count()) + " s: " + names +
                     "; start a process for each rank, with one MASTER_ADDR and MASTER_PORT")
        .as(diagnostic::launch);
  }

  /// Another rank's part of the meeting.
  status report(const socket_address &meeting, const deadline &end) {
    tcp_socket to_first;
    WINDLASS_TRY(to_first.connect(meeting, end));
    const hello own = {magic, job_.rank, job_.size, host_number(), waits_.port(), {}};
    WINDLASS_TRY(to_first.write(&own, sizeof own, end));
    status told = to_first.read(&token_, sizeof token_, end);
    if (told.is_ok())
      told = to_first.read(rows_.data(), static_cast<std::int64_t>(rows_.size() * sizeof(rank_row)), end);
    if (!told.is_ok())
      return status(status_code::stopped, "rank 0 at " + job_.address + ":" + std::to_string(job_.port) +
                                              " has not answered: " + told.message())
          .as(diagnostic::launch);
    for (const rank_row &row : rows_)
      if (row.address.length > sizeof row.address.bytes)
        return status(status_code::stopped,
                      "what answers at " + job_.address + ":" + std::to_string(job_.port) + " is no rank 0 of this job")
            .as(diagnostic::launch);
    // Who shares rank 0's host reached it by an address that others may not have, such as 127.0.0.1; this rank reaches
    // all of that host where it has reached rank 0.
    const std::uint64_t first = rows_[0].host;
    for (rank_row &row : rows_)
      if (row.host == first) {
        const std::uint16_t port = row.address.port();
        row.address = meeting;
        row.address.set_port(port);
      }
    return ok_status();
  }

  /// Gives the connection of rank `from` for communicator `call`. Others that come meanwhile wait for their turn.
  status take_connection(std::int64_t call, std::int32_t from, const deadline &end, tcp_socket &out) {
    while (true) {
      if (const auto early = early_.find({call, from}); early != early_.end()) {
        out = std::move(early->second);
        early_.erase(early);
        return ok_status();
      }
      tcp_socket one;
      socket_address address;
      if (!waits_.accept(end, one, address).is_ok())
        return status(status_code::stopped, "rank " + std::to_string(from) + " has not connected within " +
                                                std::to_string(start_patience.count()) + " s")
            .as(diagnostic::rank_lost);
      greeting its;
      if (one.read(&its, sizeof its, clock::now() + hello_patience).is_ok() && its.magic == magic &&
          its.token == token_ && its.rank >= 0 && its.rank < job_.size)
        early_[{its.call, static_cast<std::int32_t>(its.rank)}] = std::move(one);
    }
  }

  const launch_variables job_;
  const bool shares_memory_;
  tcp_socket waits_; ///< for the connections of other ranks
  std::uint64_t token_ = 0;
  std::vector<rank_row> rows_; ///< of all ranks
  std::int64_t calls_ = 0;     ///< communicators made
  std::map<std::pair<std::int64_t, std::int32_t>, tcp_socket> early_;
};

} // namespace

status make_tcp_transport(const launch_variables &job, std::unique_ptr<transport> &out, bool shares_memory) {
  auto made = std::make_unique<tcp_transport>(job, shares_memory);
  WINDLASS_TRY(made->join());
  out = std::move(made);
  return ok_status();
}

} // namespace windlass::rt
