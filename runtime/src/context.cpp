#include "windlass/rt/context.h"

#include "windlass/rt/detail/team.h"
#include "windlass/rt/reserve.h"
#include "windlass/rt/streams.h"
#include "windlass/rt/transport.h"
#include "windlass/rt/words.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>

namespace windlass::rt {

arena::~arena() {
  if (base_ == nullptr)
    return;
  if (detail::backend_has_device && kind_ != memory_kind::disk)
    detail::free_memory(kind_, base_);
  else
    munmap(base_, static_cast<std::size_t>(size_));
}

static constexpr std::int64_t page = 4096, huge_page = 2 << 20;

/// Returns the bytes of an arena of at least `bytes`: at least one page, so that even an empty one has an address.
static std::int64_t whole_pages(std::int64_t bytes) {
  return (std::max<std::int64_t>(bytes, 1) + page - 1) / page * page;
}

status arena::map(std::int64_t bytes, const char *what, int protection, int flags) {
  void *base = mmap(nullptr, static_cast<std::size_t>(bytes), protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (base == MAP_FAILED)
    return bad_input(std::string("cannot allocate ") + std::to_string(bytes) + " bytes for the " + what +
                     " arena: " + std::strerror(errno) + "; plan with a smaller --memory-limit or more ranks")
        .as(diagnostic::allocation);
  base_ = static_cast<std::byte *>(base);
  size_ = bytes;
  return {};
}

status arena::open(std::int64_t bytes, const char *what, const std::string &folder) {
  kind_ = memory_kind::disk;
  WINDLASS_TRY(map(whole_pages(bytes), what, PROT_NONE, MAP_NORESERVE));
  if constexpr (detail::backend_moves_data)
    return file_.open(folder, bytes);
  return {};
}

status arena::allocate(std::int64_t bytes, const char *what, memory_kind kind, std::int32_t threads) {
  if (base_ != nullptr || bytes < 0)
    return internal_error(std::string("the ") + what + " arena was allocated twice or with a negative size");
  const std::int64_t size = whole_pages(bytes);
  kind_ = kind;
  if constexpr (detail::backend_has_device) {
    WINDLASS_TRY(detail::allocate_memory(kind, size, what, base_));
    size_ = size;
    return {};
  }
  WINDLASS_TRY(map(size, what, PROT_READ | PROT_WRITE, detail::backend_moves_data ? 0 : MAP_NORESERVE));
#if defined(MADV_HUGEPAGE)
  madvise(base_, static_cast<std::size_t>(size_), MADV_HUGEPAGE); // a hint: fewer page faults and TLB misses
#endif
  if (detail::backend_moves_data)
    detail::parallel(threads, size_ / page, huge_page / page,
                     [this](std::int64_t begin, std::int64_t end, std::int32_t) {
                       for (std::int64_t i = begin; i < end; ++i)
                         base_[i * page] = std::byte(0);
                     });
  return {};
}

bool is_same_spanning(const communicator_entry &a, const communicator_entry &b) {
  return a.positions.size > 0 &&
         std::equal(a.positions.begin(), a.positions.end(), b.positions.begin(), b.positions.end()) &&
         std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end());
}

std::int32_t position_of(const job &j, std::int32_t rank) {
  for (std::int32_t i = 0; i < j.positions.size; ++i)
    if (rank >= j.positions[i].first_rank && rank < j.positions[i].first_rank + j.positions[i].ranks)
      return i;
  return -1;
}

const chunk_entry *find_chunk(const program &p, std::int32_t chunk) {
  for (const chunk_entry &row : p.chunks)
    if (row.chunk == chunk)
      return &row;
  return nullptr;
}

std::int32_t count_ranks(const job &j) {
  std::int32_t ranks = 0;
  for (const position_entry &each : j.positions)
    ranks += each.ranks;
  return ranks;
}

status context::create(const job &j, transport &world, std::int32_t threads, const std::string &disk) {
  rank_ = world.rank();
  ranks_ = world.size();
  if (count_ranks(j) != ranks_)
    return bad_input("the program was planned for " + count_of(count_ranks(j), "rank") + ", the job has " +
                     std::to_string(ranks_) + "; start as many as planned, or plan again")
        .as(diagnostic::launch);
  if (threads < 1)
    return bad_input("--threads is " + std::to_string(threads) + ", it must be at least 1");
  const std::int32_t position = position_of(j, rank_);
  if (position < 0)
    return internal_error("rank " + std::to_string(rank_) + " is in no position");
  const position_entry &own = j.positions[position];
  const program &p = *own.runs;

  // Row-major: the last axis varies fastest with the member's number.
  const auto axes = static_cast<std::size_t>(own.axes.size);
  coordinates_.resize(axes);
  axis_sizes_.resize(axes);
  for (std::int32_t i = static_cast<std::int32_t>(axes), rest = rank_ - own.first_rank; i-- > 0;) {
    const std::int32_t size = own.axes[i].size;
    axis_sizes_[static_cast<std::size_t>(i)] = size;
    coordinates_[static_cast<std::size_t>(i)] = rest % size;
    rest /= size;
  }

  std::int64_t scratch_bytes = p.scratch_bytes * threads;
  if constexpr (detail::backend_has_device) {
    const reserve beside = reserve_of(j, position, world, threads);
    scratch_bytes = beside.workspaces;
    // The context already exists when the device is asked for its free memory. What is allocated here is wanted
    // whatever total was given.
    std::int64_t wanted = std::max(beside.total() - beside.context, scratch_bytes);
    for (const arena_entry &each : p.arenas)
      wanted += each.kind == memory_kind::device ? each.bytes : 0;
    WINDLASS_TRY(detail::open_device(world, wanted).as(diagnostic::backend));
  }
  if constexpr (!detail::backend_has_device)
    detail::prepare_team(threads);
  for (const arena_entry &each : p.arenas) {
    arena &made = arenas_.emplace_back();
    if (each.kind == memory_kind::disk) {
      WINDLASS_TRY(made.open(each.bytes, each.name, disk));
      made.file()->keep_rate(j.emulated.disk);
    } else {
      WINDLASS_TRY(made.allocate(each.bytes, each.name, each.kind, threads));
    }
  }
  WINDLASS_TRY(scratch_.allocate(scratch_bytes, "scratch", memory_kind::device, threads));

  WINDLASS_TRY(create_communicators(j, position, world));
  events_ = std::vector<event>(static_cast<std::size_t>(p.events));
  WINDLASS_TRY(create_streams(j, p, threads, scratch_bytes));
  WINDLASS_TRY(create_device_communicators(j, p, world));
  return detail::prepare_kernels(threads);
}

static bool is_one_of(span<std::int32_t> all, std::int32_t one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Calls `visit` with each communicator over positions, as the first of these lists it, and the place of the same one
/// in the list of position `own`; -1 where it has no part in it. All ranks visit them in one order.
template <class Visit> static status for_each_spanning(const job &j, std::int32_t own, const Visit &visit) {
  for (std::int32_t a = 0; a < j.positions.size; ++a)
    for (const communicator_entry &row : j.positions[a].runs->communicators) {
      if (row.positions.size == 0 || row.positions[0] != a)
        continue; // made from its first position
      span<communicator_entry> its = j.positions[own].runs->communicators;
      std::int32_t place = -1;
      for (std::int32_t i = 0; i < its.size; ++i)
        if (is_same_spanning(its[i], row))
          place = i;
      WINDLASS_TRY(visit(place));
    }
  return {};
}

/// Returns the ranks of one communicator of a rank: those of its position, or of the positions that it spans, that
/// differ on `axes` only, the first of which is the slowest.
static std::vector<std::int32_t> members_of(const job &j, std::int32_t position, std::int32_t rank,
                                            const communicator_entry &entry) {
  const position_entry &own = j.positions[position];
  std::vector<std::int32_t> members = {rank - own.first_rank};
  for (const std::int32_t axis : entry.axes) {
    std::int32_t step = 1;
    for (std::int64_t i = own.axes.size; --i > axis;)
      step *= own.axes[i].size;
    const std::int32_t size = own.axes[axis].size;
    std::vector<std::int32_t> longer;
    for (const std::int32_t member : members)
      for (std::int32_t c = 0; c < size; ++c)
        longer.push_back(member + (c - member / step % size) * step);
    members = std::move(longer);
  }
  std::vector<std::int32_t> ranks;
  for (std::int32_t i = 0; i < j.positions.size; ++i)
    if (i == position || is_one_of(entry.positions, i))
      for (const std::int32_t member : members)
        ranks.push_back(j.positions[i].first_rank + member);
  return ranks;
}

/// Makes the communicators, which takes all ranks: first those over positions, then the positions' own side by side,
/// then those of each two positions that are peers. A rank that has no part in one is alone in it.
status context::create_communicators(const job &j, std::int32_t position, transport &world) {
  const position_entry &own = j.positions[position];
  const program &p = *own.runs;
  communicators_.resize(static_cast<std::size_t>(p.communicators.size));
  std::unique_ptr<communicator> alone;
  WINDLASS_TRY(for_each_spanning(j, position, [&](std::int32_t i) {
    return i < 0 ? world.make_communicator({rank_}, alone)
                 : world.make_communicator(members_of(j, position, rank_, p.communicators[i]),
                                           communicators_[static_cast<std::size_t>(i)]);
  }));
  std::int64_t most = 0, made = 0;
  for (const position_entry &each : j.positions)
    most = std::max(most, each.runs->communicators.size);
  for (std::int64_t i = 0; i < p.communicators.size; ++i)
    if (p.communicators[i].positions.size == 0) {
      WINDLASS_TRY(world.make_communicator(members_of(j, position, rank_, p.communicators[i]),
                                           communicators_[static_cast<std::size_t>(i)]));
      ++made;
    }
  for (; made < most; ++made)
    WINDLASS_TRY(world.make_communicator({rank_}, alone));
  peers_.resize(static_cast<std::size_t>(p.peers.size));
  for (std::int32_t a = 0; a < j.positions.size; ++a)
    for (const peer_entry &peer : j.positions[a].runs->peers) {
      if (peer.position < a)
        continue; // made from the other side
      const std::int32_t other = position == a ? peer.position : position == peer.position ? a : -1;
      const std::int32_t number = rank_ - own.first_rank;
      std::unique_ptr<communicator> *to = &alone;
      for (std::int64_t i = 0; i < p.peers.size; ++i)
        if (p.peers[i].position == other)
          to = &peers_[static_cast<std::size_t>(i)];
      WINDLASS_TRY(
          world.make_communicator(other < 0 ? std::vector<std::int32_t>{rank_}
                                            : std::vector<std::int32_t>{j.positions[a].first_rank + number,
                                                                        j.positions[peer.position].first_rank + number},
                                  *to));
    }
  return {};
}

/// Makes the streams. The caller's thread computes, or a device does; communication that has partners, and copies, run
/// concurrently.
status context::create_streams(const job &j, const program &p, std::int32_t threads, std::int64_t scratch_bytes) {
  std::vector<bool> is_alone(static_cast<std::size_t>(p.streams.size), false);
  for (std::int64_t i = 0; i < p.communicators.size; ++i)
    is_alone[static_cast<std::size_t>(p.communicators[i].stream)] =
        communicators_[static_cast<std::size_t>(i)]->size() == 1;
  to_device_.set_rate(j.emulated.link);
  to_host_.set_rate(j.emulated.link);
  for (std::int32_t i = 0; i < p.streams.size; ++i) {
    if (p.streams[i].kind == stream_kind::compute) {
      compute_ = i;
      streams_.push_back(detail::backend_has_device ? make_worker_stream(threads, scratch_.at(0), scratch_bytes)
                                                    : make_inline_stream(threads, scratch_.at(0), scratch_bytes));
    } else if (p.streams[i].kind == stream_kind::host) {
      streams_.push_back(make_host_stream(threads));
    } else if (is_of_disk(p.streams[i].kind)) {
      streams_.push_back(make_host_stream(1));
    } else if (is_alone[static_cast<std::size_t>(i)] && !detail::backend_has_device) {
      streams_.push_back(make_inline_stream(threads, nullptr, 0));
    } else {
      // Kernels of a collective are few and others wait for them: they go first where both could run.
      streams_.push_back(
          make_worker_stream(detail::backend_has_device ? threads : 1, nullptr, 0, stream_priority::high));
    }
    // Streams of one direction share the link.
    if (p.streams[i].kind == stream_kind::h2d)
      streams_.back()->use_link(&to_device_);
    else if (p.streams[i].kind == stream_kind::d2h)
      streams_.back()->use_link(&to_host_);
    streams_.back()->multiply_tf32(j.precision && std::strcmp(j.precision, "tf32") == 0);
  }
  return {};
}

/// Makes the communicators on a device, where there is one: in the order in which the hosts' were made, which all
/// members have in common.
status context::create_device_communicators(const job &j, const program &p, transport &world) {
  auto make = [&](std::unique_ptr<communicator> &own, std::int32_t number) -> status {
    if constexpr (detail::backend_has_device)
      if (own->size() > 1)
        return detail::make_device_communicator(world, std::move(own), get_stream(number), own);
    return {};
  };
  const std::int32_t position = position_of(j, rank_);
  WINDLASS_TRY(for_each_spanning(j, position, [&](std::int32_t i) {
    return i < 0 ? status() : make(communicators_[static_cast<std::size_t>(i)], p.communicators[i].stream);
  }));
  for (std::int64_t i = 0; i < p.communicators.size; ++i)
    if (p.communicators[i].positions.size == 0)
      WINDLASS_TRY(make(communicators_[static_cast<std::size_t>(i)], p.communicators[i].stream));
  for (std::int32_t a = 0; a < j.positions.size; ++a)
    for (const peer_entry &peer : j.positions[a].runs->peers)
      for (std::int64_t i = 0; i < p.peers.size && peer.position > a; ++i)
        if ((position == a && p.peers[i].position == peer.position) ||
            (position == peer.position && p.peers[i].position == a))
          WINDLASS_TRY(make(peers_[static_cast<std::size_t>(i)], p.peers[i].stream));
  return {};
}

collective_bytes context::take_sent() {
  collective_bytes sum;
  for (const auto *all : {&communicators_, &peers_})
    for (const std::unique_ptr<communicator> &c : *all)
      c->take_sent(sum);
  return sum;
}

arena *context::find_disk(const std::byte *address) {
  for (arena &each : arenas_)
    if (each.kind() == memory_kind::disk && address >= each.at(0) && address < each.at(each.size()))
      return &each;
  return nullptr;
}

status context::synchronize() {
  status first;
  for (const std::unique_ptr<stream> &s : streams_) {
    status result = s->synchronize();
    if (first.is_ok())
      first = std::move(result);
  }
  return first;
}

} // namespace windlass::rt
