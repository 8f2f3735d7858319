#include "shared_memory.h"

#include "partners.h"
#include "peer_memory.h"

#include "windlass/rt/detail/backend.h"
#include "windlass/rt/detail/combine.h"
#include "windlass/rt/detail/wait.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace windlass::rt {

shared_segment::~shared_segment() {
  forget_address();
  if (data_ != nullptr)
    munmap(data_, static_cast<std::size_t>(bytes_));
}

#if defined(O_TMPFILE)

bool shared_segment::create(std::int64_t bytes, std::string &address) {
  file_ = ::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  struct stat info = {};
  if (file_ < 0 || fstat(file_, &info) != 0 || posix_fallocate(file_, 0, bytes) != 0 || !map(file_, bytes))
    return false;
  address = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_) + " " + std::to_string(info.st_dev) +
            " " + std::to_string(info.st_ino);
  return true;
}

bool shared_segment::open(const std::string &address, std::int64_t bytes) {
  char path[64];
  unsigned long long device = 0, number = 0;
  if (std::sscanf(address.c_str(), "%63s %llu %llu", path, &device, &number) != 3)
    return false;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return false;
  // In a container of its own this process may know another process by that number.
  struct stat info = {};
  const bool done = fstat(file, &info) == 0 && info.st_dev == device && info.st_ino == number && map(file, bytes);
  ::close(file);
  return done;
}

#else

bool shared_segment::create(std::int64_t, std::string &) { return false; }
bool shared_segment::open(const std::string &, std::int64_t) { return false; }

#endif

void shared_segment::forget_address() {
  if (file_ >= 0)
    ::close(file_);
  file_ = -1;
}

bool shared_segment::map(int file, std::int64_t bytes) {
  void *address = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED)
    return false;
  data_ = static_cast<std::byte *>(address);
  bytes_ = bytes;
  return true;
}

namespace {

constexpr std::int64_t header_bytes = 4096;

/// Bytes of the table of members' processes, which follows the header.
std::int64_t table_bytes(std::int32_t members) {
  return (members * static_cast<std::int64_t>(sizeof(partner_entry)) + 4095) / 4096 * 4096;
}

/// Bytes of one staging area; each member has two. Both of them, a piece of the data and what a partner wrote fit into
/// the L2 cache of a server's core.
std::int64_t stage_bytes(std::int32_t members) {
  constexpr std::int64_t most = 256 << 10, of_all = 8 << 20;
  return std::clamp<std::int64_t>(of_all / members / 4096 * 4096, 4096, most);
}

class shared_communicator final : public communicator {
public:
  shared_communicator(std::unique_ptr<shared_segment> segment, const std::vector<std::int32_t> &members,
                      std::int32_t index)
      : segment_(std::move(segment)), gate_(reinterpret_cast<detail::barrier *>(segment_->data())),
        size_(static_cast<std::int32_t>(members.size())), index_(index), stage_(stage_bytes(size_)),
        stages_(segment_->data() + header_bytes + table_bytes(size_)),
        table_(reinterpret_cast<partner_entry *>(segment_->data() + header_bytes)), partners_(table_, members, index),
        parts_(members.size()) {}

  std::int32_t size() const override { return size_; }
  std::int32_t index() const override { return index_; }

  status all_reduce(std::byte *data, std::int64_t elements, element_type type, reduction kind) override {
    const std::int64_t width = size_of(type), piece = (size_ == 2 ? stage_ / 2 : stage_) / width;
    for (std::int64_t done = 0; done < elements; done += piece) {
      const std::int64_t n = std::min(piece, elements - done);
      std::byte *here = data + done * width;
      turn_ ^= 1;
      if (size_ == 2 && n * width > reduced_by_all) {
        WINDLASS_TRY(reduce_between_two(here, n, type, kind));
        continue;
      }
      std::memcpy(stage(index_), here, static_cast<std::size_t>(n * width));
      WINDLASS_TRY(wait());
      if (n * width <= reduced_by_all) {
        for (std::int32_t m = 0; m < size_; ++m)
          parts_[static_cast<std::size_t>(m)] = m == index_ ? here : stage(m);
        WINDLASS_TRY(detail::combine(&here, 1, parts_.data(), size_, n, type, kind));
        continue;
      }
      // The member's own part of all areas, into its own area, where nobody else reads that part before the wait.
      const std::int64_t begin = detail::part_begin(n, size_, index_), end = detail::part_begin(n, size_, index_ + 1);
      for (std::int32_t m = 0; m < size_; ++m)
        parts_[static_cast<std::size_t>(m)] = stage(m) + begin * width;
      std::byte *sum = stage(index_) + begin * width;
      WINDLASS_TRY(detail::combine(&sum, 1, parts_.data(), size_, end - begin, type, kind));
      WINDLASS_TRY(wait());
      for (std::int32_t m = 0; m < size_; ++m) {
        const std::int64_t first = detail::part_begin(n, size_, m) * width;
        const std::int64_t last = detail::part_begin(n, size_, m + 1) * width;
        std::memcpy(here + first, stage(m) + first, static_cast<std::size_t>(last - first));
      }
    }
    return {};
  }

  status all_gather(std::byte *out, const std::byte *in, std::int64_t bytes) override {
    bool is_direct = false;
    WINDLASS_TRY(decide(bytes * size_, is_direct));
    if (is_direct)
      return fetch(out, in, bytes, 0);
    for (std::int64_t done = 0; done < bytes; done += stage_) {
      const std::int64_t n = std::min(stage_, bytes - done);
      turn_ ^= 1;
      std::memcpy(stage(index_), in + done, static_cast<std::size_t>(n));
      WINDLASS_TRY(wait());
      for (std::int32_t m = 0; m < size_; ++m)
        std::memcpy(out + m * bytes + done, m == index_ ? in + done : stage(m), static_cast<std::size_t>(n));
    }
    return {};
  }

  status reduce_scatter(std::byte *out, const std::byte *in, std::int64_t elements, element_type type) override {
    const std::int64_t width = size_of(type), piece = stage_ / size_ / 64 * 64 / width;
    for (std::int64_t done = 0; done < elements; done += piece) {
      const std::int64_t n = std::min(piece, elements - done);
      WINDLASS_TRY(scatter_to_stage(in + done * width, elements * width, n * width, piece * width));
      for (std::int32_t m = 0; m < size_; ++m)
        parts_[static_cast<std::size_t>(m)] =
            m == index_ ? in + (m * elements + done) * width : stage(m) + index_ * piece * width;
      std::byte *sum = out + done * width;
      WINDLASS_TRY(detail::combine(&sum, 1, parts_.data(), size_, n, type, reduction::sum));
    }
    return {};
  }

  status all_to_all(std::byte *out, const std::byte *in, std::int64_t bytes) override {
    bool is_direct = false;
    WINDLASS_TRY(decide(bytes * size_, is_direct));
    if (is_direct)
      return fetch(out, in, bytes, bytes);
    const std::int64_t piece = stage_ / size_ / 64 * 64;
    for (std::int64_t done = 0; done < bytes; done += piece) {
      const std::int64_t n = std::min(piece, bytes - done);
      WINDLASS_TRY(scatter_to_stage(in + done, bytes, n, piece));
      for (std::int32_t m = 0; m < size_; ++m)
        std::memcpy(out + m * bytes + done, m == index_ ? in + m * bytes + done : stage(m) + index_ * piece,
                    static_cast<std::size_t>(n));
    }
    return {};
  }

  status permute(std::byte *out, const std::byte *in, std::int64_t bytes, std::int32_t, std::int32_t from) override {
    for (std::int64_t done = 0; done < bytes; done += stage_) {
      const std::int64_t n = std::min(stage_, bytes - done);
      turn_ ^= 1;
      std::memcpy(stage(index_), in + done, static_cast<std::size_t>(n));
      WINDLASS_TRY(wait());
      std::memcpy(out + done, stage(from), static_cast<std::size_t>(n));
    }
    return {};
  }

  status broadcast(std::byte *data, std::int64_t bytes, std::int32_t root) override {
    for (std::int64_t done = 0; done < bytes; done += stage_) {
      const std::int64_t n = std::min(stage_, bytes - done);
      turn_ ^= 1;
      if (index_ == root)
        std::memcpy(stage(root), data + done, static_cast<std::size_t>(n));
      WINDLASS_TRY(wait());
      if (index_ != root)
        std::memcpy(data + done, stage(root), static_cast<std::size_t>(n));
    }
    return {};
  }

  status barrier() override { return wait(); }

private:
  /// From so many bytes on what is only moved goes from one process's memory to the other's at once, where the system
  /// permits that. Sums gain nothing by it: they pass through the cache, as the staging areas do.
  static constexpr std::int64_t direct_bytes = 256 << 10;
  /// What a member says of its memory, at the start of its staging area.
  struct publication {
    const std::byte *address;
    std::uint64_t value;
  };
  publication &published(std::int32_t member) const { return *reinterpret_cast<publication *>(stage(member)); }
  status publish(const void *address, std::uint64_t value) {
    turn_ ^= 1;
    published(index_) = {static_cast<const std::byte *>(address), value};
    return wait();
  }
  bool read_member(std::int32_t member, void *to, const std::byte *from, std::int64_t bytes) const {
    const std::int64_t process = table_[member].process.load();
    return process != 0 && read_peer(process, static_cast<std::byte *>(to), from, bytes);
  }

  /// Whether so many bytes go without the staging areas. The members decide alike: the first time each tries to read a
  /// word of every other one, and all must have succeeded.
  status decide(std::int64_t bytes, bool &is_direct) {
    is_direct = false;
    if (bytes < direct_bytes || size_ == 1 || detail::backend_has_device) // memory of devices cannot be read so
      return {};
    if (reach_ == reach::unknown) {
      const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
      const std::uint64_t word = now ^ reinterpret_cast<std::uintptr_t>(this);
      WINDLASS_TRY(publish(&word, word));
      bool reads = true;
      for (std::int32_t m = 0; m < size_; ++m) {
        std::uint64_t seen = 0;
        reads = reads && (m == index_ || (read_member(m, &seen, published(m).address, sizeof seen) &&
                                          seen == published(m).value)); // an id may mean another process here
      }
      WINDLASS_TRY(publish(nullptr, reads ? 1 : 0));
      for (std::int32_t m = 0; m < size_; ++m)
        reads = reads && published(m).value == 1;
      reach_ = reads ? reach::all : reach::none;
    }
    is_direct = reach_ == reach::all;
    return {};
  }

  /// out[m] is what lies `offset` times this member's index behind `in` of member m.
  status fetch(std::byte *out, const std::byte *in, std::int64_t bytes, std::int64_t offset) {
    WINDLASS_TRY(publish(in, 0));
    bool is_done = true;
    std::memcpy(out + index_ * bytes, in + index_ * offset, static_cast<std::size_t>(bytes));
    for (std::int32_t step = 1; step < size_; ++step) { // each begins with another one
      const std::int32_t m = (index_ + step) % size_;
      is_done = is_done && read_member(m, out + m * bytes, published(m).address + index_ * offset, bytes);
    }
    // Nobody leaves before all have what they need of it. Where a member is gone, its loss is the better message.
    WINDLASS_TRY(wait());
    return is_done ? status() : internal_error("the memory of another rank of this host is out of reach");
  }

  /// Up to so many bytes each member reduces everything itself, which saves a wait.
  static constexpr std::int64_t reduced_by_all = 16 << 10;
  /// Each of two members reduces its half and puts the results where the other left the operands: a cache line goes to
  /// the other core and back, and what is the member's own never leaves its data.
  status reduce_between_two(std::byte *here, std::int64_t n, element_type type, reduction kind) {
    const std::int64_t width = size_of(type), half = detail::part_begin(n, 2, 1) * width;
    const std::int64_t own = index_ * half, lent = half - own;
    const std::int64_t own_bytes = index_ == 0 ? half : n * width - half, lent_bytes = n * width - own_bytes;
    std::memcpy(stage(index_) + lent, here + lent, static_cast<std::size_t>(lent_bytes));
    WINDLASS_TRY(wait());
    std::byte *const both[] = {(index_ == 0 ? here : stage(0)) + own, (index_ == 0 ? stage(1) : here) + own};
    WINDLASS_TRY(detail::combine(both, 2, both, 2, own_bytes / width, type, kind));
    WINDLASS_TRY(wait());
    std::memcpy(here + lent, stage(index_) + lent, static_cast<std::size_t>(lent_bytes));
    return {};
  }
  // Pieces take turns on the two areas of each member. All members wait in every piece, so that whoever writes an area
  // again has waited, one piece ago, for those that read it.
  std::byte *stage(std::int32_t member) const { return stages_ + (2 * member + turn_) * stage_; }
  /// Puts `n` bytes for each other member, `stride` apart in `in`, into this member's area, `slot` apart, and waits.
  status scatter_to_stage(const std::byte *in, std::int64_t stride, std::int64_t n, std::int64_t slot) {
    turn_ ^= 1;
    for (std::int32_t m = 0; m < size_; ++m)
      if (m != index_)
        std::memcpy(stage(index_) + m * slot, in + m * stride, static_cast<std::size_t>(n));
    return wait();
  }
  /// A job that is aborted ends its processes; only one that ends without that has to be looked for.
  status wait() {
    if (gate_->wait(static_cast<std::uint32_t>(size_), &partners_))
      return {};
    return {status_code::stopped, partners_.loss()};
  }

  std::unique_ptr<shared_segment> segment_;
  detail::barrier *gate_;
  std::int32_t size_, index_;
  int turn_ = 0;
  std::int64_t stage_;
  std::byte *stages_;
  enum class reach { unknown, none, all } reach_ = reach::unknown;
  partner_entry *table_;
  partners partners_;
  std::vector<const std::byte *> parts_;
};

static_assert(sizeof(detail::barrier) <= header_bytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share these words");

} // namespace

std::int64_t shared_group_bytes(std::int32_t members) {
  return header_bytes + table_bytes(members) + 2 * members * stage_bytes(members);
}

std::unique_ptr<communicator> make_shared_communicator(std::unique_ptr<shared_segment> segment,
                                                       const std::vector<std::int32_t> &members, std::int32_t index) {
  return std::make_unique<shared_communicator>(std::move(segment), members, index);
}

} // namespace windlass::rt
