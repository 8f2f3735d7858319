#include "windlass/rt/context.h"

#include "windlass/rt/detail/team.h"
#include "windlass/rt/reserve.h"
#include "windlass/rt/streams.h"
#include "windlass/rt/transport.h"
#include "windlass/rt/words.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>

namespace windlass::rt {

arena::~arena() {
  if (base_ == nullptr)
    return;
  if constexpr (detail::backend_has_device)
    detail::free_memory(kind_, base_);
  else
    munmap(base_, static_cast<std::size_t>(size_));
}

status arena::allocate(std::int64_t bytes, const char *what, detail::memory_kind kind, std::int32_t threads) {
  constexpr std::int64_t page = 4096, huge_page = 2 << 20;
  if (base_ != nullptr || bytes < 0)
    return internal_error(std::string("the ") + what + " arena was allocated twice or with a negative size");
  // At least one page, so that even an empty arena has an address.
  const std::int64_t size = (std::max<std::int64_t>(bytes, 1) + page - 1) / page * page;
  kind_ = kind;
  if constexpr (detail::backend_has_device) {
    WINDLASS_TRY(detail::allocate_memory(kind, size, what, base_));
    size_ = size;
    return {};
  }
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (detail::backend_moves_data ? 0 : MAP_NORESERVE);
  void *base = mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, flags, -1, 0);
  if (base == MAP_FAILED)
    return bad_input(std::string("cannot allocate ") + std::to_string(size) + " bytes for the " + what +
                     " arena: " + std::strerror(errno) + "; plan with a smaller --memory-limit or more ranks")
        .as(diagnostic::allocation);
  base_ = static_cast<std::byte *>(base);
  size_ = size;
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

status context::create(const program &p, transport &world, std::int32_t threads) {
  rank_ = world.rank();
  ranks_ = world.size();
  std::int64_t planned = 1;
  for (const axis &a : p.axes)
    planned *= a.size;
  if (planned != ranks_)
    return bad_input("the program was planned for " + count_of(planned, "rank") + ", the job has " +
                     std::to_string(ranks_) + "; start as many as planned, or plan again")
        .as(diagnostic::launch);
  if (threads < 1)
    return bad_input("--threads is " + std::to_string(threads) + ", it must be at least 1");

  // Row-major: the last axis varies fastest with the rank.
  const auto axes = static_cast<std::size_t>(p.axes.size);
  std::vector<std::int32_t> step(axes);
  std::int32_t stride = 1;
  for (std::size_t i = axes; i-- > 0;) {
    step[i] = stride;
    stride *= p.axes[static_cast<std::int64_t>(i)].size;
  }
  coordinates_.resize(axes);
  axis_sizes_.resize(axes);
  for (std::size_t i = 0; i < axes; ++i) {
    axis_sizes_[i] = p.axes[static_cast<std::int64_t>(i)].size;
    coordinates_[i] = rank_ / step[i] % axis_sizes_[i];
  }

  std::int64_t scratch_bytes = p.scratch_bytes * threads;
  if constexpr (detail::backend_has_device) {
    const reserve beside = reserve_of(p, world, threads);
    scratch_bytes = beside.workspaces;
    // The context is there when the device is asked what it has free.
    const std::int64_t wanted = p.device_bytes + beside.total() - beside.context;
    WINDLASS_TRY(detail::open_device(world, wanted).as(diagnostic::backend));
  }
  using detail::memory_kind;
  if constexpr (!detail::backend_has_device)
    detail::prepare_team(threads);
  WINDLASS_TRY(device_.allocate(p.device_bytes, "device", memory_kind::device, threads));
  WINDLASS_TRY(pinned_.allocate(p.pinned_bytes, "pinned", memory_kind::pinned, threads));
  WINDLASS_TRY(scratch_.allocate(scratch_bytes, "scratch", memory_kind::device, threads));

  for (const communicator_entry &entry : p.communicators) {
    // The members, the first of the entry's axes being the slowest.
    std::vector<std::int32_t> members = {rank_};
    for (const std::int32_t a : entry.axes)
      members[0] -= coordinates_[static_cast<std::size_t>(a)] * step[static_cast<std::size_t>(a)];
    for (const std::int32_t a : entry.axes) {
      std::vector<std::int32_t> longer;
      for (const std::int32_t member : members)
        for (std::int32_t c = 0; c < p.axes[a].size; ++c)
          longer.push_back(member + c * step[static_cast<std::size_t>(a)]);
      members = std::move(longer);
    }
    communicators_.emplace_back();
    WINDLASS_TRY(world.make_communicator(members, communicators_.back()));
  }

  events_ = std::vector<event>(static_cast<std::size_t>(p.events));
  WINDLASS_TRY(create_streams(p, world, threads, scratch_bytes));
  return detail::prepare_kernels(threads);
}

/// The caller's thread computes, or a device does; communication that has partners runs beside it.
status context::create_streams(const program &p, transport &world, std::int32_t threads, std::int64_t scratch_bytes) {
  std::vector<std::unique_ptr<communicator> *> served(static_cast<std::size_t>(p.streams.size), nullptr);
  for (std::int64_t i = 0; i < p.communicators.size; ++i)
    served[static_cast<std::size_t>(p.communicators[i].stream)] = &communicators_[static_cast<std::size_t>(i)];
  for (std::int32_t i = 0; i < p.streams.size; ++i) {
    std::unique_ptr<communicator> *const own = served[static_cast<std::size_t>(i)];
    const bool is_alone = own != nullptr && (*own)->size() == 1;
    if (p.streams[i].kind == stream_kind::compute) {
      compute_ = i;
      streams_.push_back(detail::backend_has_device ? make_worker_stream(threads, scratch_.at(0), scratch_bytes)
                                                    : make_inline_stream(threads, scratch_.at(0), scratch_bytes));
    } else if (is_alone && !detail::backend_has_device) {
      streams_.push_back(make_inline_stream(threads, nullptr, 0));
    } else {
      // Kernels of a collective are few and others wait for them: they go first where both could run.
      streams_.push_back(
          make_worker_stream(detail::backend_has_device ? threads : 1, nullptr, 0, stream_priority::high));
    }
    streams_.back()->multiply_tf32(p.precision && std::strcmp(p.precision, "tf32") == 0);
    if constexpr (detail::backend_has_device)
      if (own != nullptr && !is_alone)
        WINDLASS_TRY(detail::make_device_communicator(world, std::move(*own), *streams_.back(), *own));
  }
  return {};
}

collective_bytes context::take_sent() {
  collective_bytes sum;
  for (const std::unique_ptr<communicator> &c : communicators_)
    c->take_sent(sum);
  return sum;
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
