#include "shared_memory.h"

#include "message_queue.h"
#include "pair_rounds.h"
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
#include <thread>
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

/// The counts of the pieces of a member's messages to another one: how many its sender has written, and how many its
/// receiver has taken. They are equal outside of a transfer.
struct piece_counts {
  std::atomic<std::uint32_t> put, taken;
};
/// A counter that changes whenever one of a member's counts does.
struct member_bell {
  std::atomic<std::uint32_t> word, sleepers;
  void ring() {
    word.fetch_add(1);
    detail::wake_all(word, sleepers);
  }
};

constexpr std::int64_t barrier_bytes = 64;

std::int64_t whole_pages(std::int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

/// Bytes of the header: the barrier, the members' bells and the counts of each pair.
std::int64_t header_bytes(std::int32_t members) {
  return whole_pages(barrier_bytes + members * static_cast<std::int64_t>(sizeof(member_bell)) +
                     std::int64_t(members) * members * static_cast<std::int64_t>(sizeof(piece_counts)));
}

/// The bytes of the table of members' processes, which follows the header.
std::int64_t table_bytes(std::int32_t members) {
  return whole_pages(members * static_cast<std::int64_t>(sizeof(partner_entry)));
}

/// The bytes of one staging area; each member has two. Both of them, a piece of the data and what a partner wrote fit
/// into the L2 cache of a server's core.
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
        bells_(reinterpret_cast<member_bell *>(segment_->data() + barrier_bytes)),
        counts_(reinterpret_cast<piece_counts *>(bells_ + size_)),
        stages_(segment_->data() + header_bytes(size_) + table_bytes(size_)),
        table_(reinterpret_cast<partner_entry *>(segment_->data() + header_bytes(size_))),
        partners_(table_, members, index), parts_(members.size()), reads_(members.size(), reading::unknown) {
    token_ = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
             reinterpret_cast<std::uintptr_t>(this);
  }

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

  status all_gather(const collective_pair *pairs, std::int32_t count) override {
    std::int64_t bytes = 0;
    for (std::int32_t i = 0; i < count; ++i)
      bytes += pairs[i].part_bytes();
    bool is_direct = false;
    WINDLASS_TRY(decide(bytes * size_, is_direct));
    if (is_direct)
      return fetch(pairs, count, /*sends_blocks=*/false);
    detail::pair_rounds rounds(pairs, count, stage_);
    while (rounds.advance()) {
      turn_ ^= 1;
      for (const detail::stretch &part : rounds)
        std::memcpy(stage(index_) + part.place, part.pair->in + part.begin, static_cast<std::size_t>(part.bytes));
      WINDLASS_TRY(wait());
      for (std::int32_t m = 0; m < size_; ++m)
        for (const detail::stretch &part : rounds)
          std::memcpy(part.pair->out + m * part.pair->part_bytes() + part.begin,
                      m == index_ ? part.pair->in + part.begin : stage(m) + part.place,
                      static_cast<std::size_t>(part.bytes));
    }
    return {};
  }

  status reduce_scatter(const collective_pair *pairs, std::int32_t count) override {
    const std::int64_t slot = stage_ / size_ / 64 * 64;
    if (slot == 0)
      return bad_input("a group of " + std::to_string(size_) + " ranks of one host is too large for a reduce-scatter");
    detail::pair_rounds rounds(pairs, count, slot);
    while (rounds.advance()) {
      turn_ ^= 1;
      for (std::int32_t m = 0; m < size_; ++m)
        for (const detail::stretch &part : rounds)
          if (m != index_)
            std::memcpy(stage(index_) + m * slot + part.place, own_part(part, m), static_cast<std::size_t>(part.bytes));
      WINDLASS_TRY(wait());
      for (const detail::stretch &part : rounds) {
        for (std::int32_t m = 0; m < size_; ++m)
          parts_[static_cast<std::size_t>(m)] = m == index_ ? own_part(part, m) : stage(m) + index_ * slot + part.place;
        std::byte *sum = part.pair->out + part.begin;
        const element_type type = part.pair->type;
        WINDLASS_TRY(detail::combine(&sum, 1, parts_.data(), size_, part.bytes / size_of(type), type, reduction::sum));
      }
    }
    return {};
  }

  status all_to_all(std::byte *out, const std::byte *in, std::int64_t bytes) override {
    bool is_direct = false;
    WINDLASS_TRY(decide(bytes * size_, is_direct));
    const collective_pair blocks = {out, in, bytes, element_type::u8};
    if (is_direct)
      return fetch(&blocks, 1, /*sends_blocks=*/true);
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

  status gather_rows(std::byte *out, std::byte *scratch, const std::byte *in, const detail::row_routes &of) override {
    const std::int64_t bytes = of.row_bytes(), piece = stage_ / bytes;
    if (piece == 0)
      return communicator::gather_rows(out, scratch, in, of);
    for (std::int32_t to = 0; to < size_; ++to)
      count_rows(to, of.count(index_, to), of);
    for (std::int64_t done = 0; done < of.tokens; done += piece) {
      const std::int64_t last = std::min(done + piece, of.tokens);
      turn_ ^= 1;
      // A row that others need stands once, at its token's place.
      for (std::int64_t token = done; token < last; ++token)
        if (reaches_others(of, index_ * of.tokens + token))
          std::memcpy(stage(index_) + (token - done) * bytes, in + token * bytes, static_cast<std::size_t>(bytes));
      WINDLASS_TRY(wait());
      for (std::int32_t m = 0; m < size_; ++m)
        for (std::int64_t token = done; token < last; ++token)
          if (const std::int64_t number = m * of.tokens + token; of.reaches(number, index_))
            std::memcpy(out + number * bytes, m == index_ ? in + token * bytes : stage(m) + (token - done) * bytes,
                        static_cast<std::size_t>(bytes));
    }
    return {};
  }

  status scatter_rows(std::byte *out, std::byte *scratch, std::byte *in, const detail::row_routes &of) override {
    const std::int64_t bytes = of.row_bytes(), piece = stage_ / size_ / bytes;
    if (piece == 0)
      return communicator::scatter_rows(out, scratch, in, of);
    for (std::int32_t to = 0; to < size_; ++to)
      count_rows(to, of.count(to, index_), of);
    for (std::int64_t done = 0; done < of.tokens; done += piece) {
      const std::int64_t last = std::min(done + piece, of.tokens);
      turn_ ^= 1;
      for (std::int32_t to = 0; to < size_; ++to)
        for (std::int64_t token = done; token < last; ++token)
          if (const std::int64_t number = to * of.tokens + token; to != index_ && of.reaches(number, index_))
            std::memcpy(stage(index_) + (to * piece + token - done) * bytes, in + number * bytes,
                        static_cast<std::size_t>(bytes));
      WINDLASS_TRY(wait());
      for (std::int64_t token = done; token < last; ++token) {
        const std::int64_t number = index_ * of.tokens + token;
        std::int32_t reached = 0;
        for (std::int32_t m = 0; m < size_; ++m)
          if (of.reaches(number, m))
            parts_[static_cast<std::size_t>(reached++)] =
                m == index_ ? in + number * bytes : stage(m) + (index_ * piece + token - done) * bytes;
        WINDLASS_TRY(detail::sum_rows(out + token * bytes, parts_.data(), reached, of));
      }
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

  status transfer(const message *messages, std::int32_t count) override {
    if (count > 0 && piece_bytes() <= piece_header_bytes)
      return bad_input("a group of " + std::to_string(size_) + " ranks of one host is too large for messages");
    std::int64_t done[most_messages] = {};
    detail::message_queue queue(messages, count);
    member_bell &own = bells_[index_];
    while (!queue.is_empty()) {
      const std::uint32_t seen = own.word.load();
      status failed;
      bool has_moved = false;
      queue.visit([&](std::int32_t i) {
        const std::int64_t before = done[i];
        const bool is_through = messages[i].way == direction::send ? advance_send(messages[i], done[i])
                                                                   : advance_receive(messages[i], done[i], failed);
        has_moved |= is_through || done[i] != before;
        return is_through;
      });
      WINDLASS_TRY(failed);
      if (has_moved)
        continue;
      if (partners_.is_over())
        return status(status_code::stopped, partners_.loss()).as(diagnostic::rank_lost);
      detail::wait_while_equal(own.word, seen, own.sleepers);
    }
    return {};
  }

private:
  /// The header of a piece. The first piece of a large message has no data: its receiver may read all of it from the
  /// sender's memory instead, and says so.
  struct piece_header {
    std::int64_t message_bytes;
    const std::byte *data;      ///< of the whole message, in the sender's memory
    const std::uint64_t *token; ///< there too, with `value`: the receiver knows by it that it reads the right process
    std::uint64_t value;
    bool is_taken_whole;
  };
  static constexpr std::int64_t piece_header_bytes = 64;
  static_assert(sizeof(piece_header) <= piece_header_bytes);

  piece_counts &counts(std::int32_t from, std::int32_t to) const { return counts_[from * size_ + to]; }

  // Messages pass through the sender's area that the last collective did not use, so that nobody reads it any more:
  // each receiver uses two pieces of it in turn. A sender leaves when all its pieces are taken, so that the next
  // collective finds the area free.
  std::int64_t piece_bytes() const { return stage_ / (2 * (size_ - 1)) / 64 * 64; }
  std::byte *piece(std::int32_t from, std::int32_t to, std::uint32_t number) const {
    const std::int64_t place = 2 * (to < from ? to : to - 1) + (number & 1);
    return stages_ + (2 * from + (turn_ ^ 1)) * stage_ + place * piece_bytes();
  }
  static bool may_be_read(const message &m) { return m.bytes >= direct_bytes && !detail::backend_has_device; }

  /// Writes pieces as long as there is room for them; returns whether the receiver has taken the last one. `done`
  /// counts the bytes written, and 1 for the first piece.
  bool advance_send(const message &m, std::int64_t &done) {
    piece_counts &c = counts(index_, m.peer);
    const std::uint32_t taken = c.taken.load();
    std::uint32_t put = c.put.load();
    const bool begins_empty = may_be_read(m);
    if (begins_empty && done == 1) { // the receiver decides what becomes of the message
      if (taken != put)
        return false;
      if (reinterpret_cast<piece_header *>(piece(index_, m.peer, put - 1))->is_taken_whole)
        return true;
    }
    while (put - taken < 2 && done <= m.bytes) {
      const bool is_first = done == 0;
      auto *const to = reinterpret_cast<piece_header *>(piece(index_, m.peer, put));
      *to = {m.bytes, m.data, &token_, token_, false};
      const std::int64_t begin = std::max<std::int64_t>(done - 1, 0);
      const std::int64_t n =
          is_first && begins_empty ? 0 : std::min(m.bytes - begin, piece_bytes() - piece_header_bytes);
      if (n > 0)
        std::memcpy(reinterpret_cast<std::byte *>(to) + piece_header_bytes, m.data + begin,
                    static_cast<std::size_t>(n));
      done = begin + n + 1;
      c.put.store(++put);
      bells_[m.peer].ring();
      if (n == 0)
        return false;
    }
    return done > m.bytes && c.taken.load() == put;
  }

  /// Takes the pieces that are there; returns whether the last one was among them. `done` counts the bytes taken, and 1
  /// for the first piece.
  bool advance_receive(const message &m, std::int64_t &done, status &failed) {
    piece_counts &c = counts(m.peer, index_);
    const std::uint32_t put = c.put.load();
    for (std::uint32_t taken = c.taken.load(); taken != put && done <= m.bytes; ++taken) {
      auto *const from = reinterpret_cast<piece_header *>(piece(m.peer, index_, taken));
      if (from->message_bytes != m.bytes) {
        failed = detail::wrong_message(m, index_, from->message_bytes);
        return false;
      }
      const bool is_first = done == 0;
      const std::int64_t begin = std::max<std::int64_t>(done - 1, 0);
      std::int64_t n = std::min(m.bytes - begin, piece_bytes() - piece_header_bytes);
      if (is_first && may_be_read(m)) {
        n = 0;
        if (reads_from(m.peer, *from)) {
          if (!read_member(m.peer, m.data, from->data, m.bytes)) {
            failed = explain_failed_read();
            return false;
          }
          from->is_taken_whole = true;
          n = m.bytes;
        }
      } else if (n > 0) {
        std::memcpy(m.data + begin, reinterpret_cast<const std::byte *>(from) + piece_header_bytes,
                    static_cast<std::size_t>(n));
      }
      done = begin + n + 1;
      c.taken.store(taken + 1);
      bells_[m.peer].ring();
    }
    return done > m.bytes;
  }

  /// Explains a failed read: the loss of the sender is the better message, and is found within a second.
  status explain_failed_read() {
    for (int turn = 0; turn < 100; ++turn) {
      if (partners_.is_over())
        return status(status_code::stopped, partners_.loss()).as(diagnostic::rank_lost);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return internal_error("the memory of another rank of this host is out of reach");
  }

  /// Returns whether the system lets this member read the memory of another; found out by its first large message.
  bool reads_from(std::int32_t member, const piece_header &header) {
    reading &known = reads_[static_cast<std::size_t>(member)];
    if (known == reading::unknown) {
      std::uint64_t seen = 0;
      const auto *const token = reinterpret_cast<const std::byte *>(header.token);
      known = read_member(member, &seen, token, sizeof seen) && seen == header.value ? reading::works : reading::fails;
    }
    return known == reading::works;
  }

  /// The least bytes for which data that is only moved goes directly from one process's memory to another's, where the
  /// system permits that. Sums gain nothing by it: they pass through the cache, as the staging areas do.
  static constexpr std::int64_t direct_bytes = 256 << 10;
  /// The address and value that a member publishes at the start of its staging area.
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

  /// Decides whether `bytes` bytes go without the staging areas. The members decide alike: the first time each tries to
  /// read a word of every other one, and all must have succeeded.
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

  bool reaches_others(const detail::row_routes &of, std::int64_t token) const {
    for (std::int32_t m = 0; m < size_; ++m)
      if (m != index_ && of.reaches(token, m))
        return true;
    return false;
  }
  /// Returns the part for member `m` of what this member adds to a stretch's sum.
  static const std::byte *own_part(const detail::stretch &part, std::int32_t m) {
    return part.pair->in + m * part.pair->part_bytes() + part.begin;
  }

  /// Fills block m of each `out` with `in` of member m or, with `sends_blocks`, with this member's block of it.
  status fetch(const collective_pair *pairs, std::int32_t count, bool sends_blocks) {
    // A reader of several pairs asks first where they are.
    WINDLASS_TRY(publish(count == 1 ? static_cast<const void *>(pairs->in) : pairs, 0));
    const auto move = [&](std::int32_t m, const collective_pair *theirs, const auto &read) {
      for (std::int32_t i = 0; i < count; ++i) {
        const std::int64_t bytes = pairs[i].part_bytes();
        const std::byte *const from =
            (count == 1 ? published(m).address : theirs[i].in) + (sends_blocks ? index_ * bytes : 0);
        if (bytes > 0 && !read(pairs[i].out + m * bytes, from, bytes))
          return false;
      }
      return true;
    };
    bool is_done = move(index_, pairs, [](std::byte *to, const std::byte *from, std::int64_t bytes) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
      return true;
    });
    collective_pair theirs[collective_pairs::most];
    for (std::int32_t step = 1; step < size_ && is_done; ++step) { // each begins with another one
      const std::int32_t m = (index_ + step) % size_;
      is_done =
          count == 1 || read_member(m, theirs, published(m).address, count * static_cast<std::int64_t>(sizeof *theirs));
      is_done = is_done && move(m, theirs, [&](std::byte *to, const std::byte *from, std::int64_t bytes) {
                  return read_member(m, to, from, bytes);
                });
    }
    // Nobody leaves before all have read what they need from it. Where a member is gone, its loss is the better
    // message.
    WINDLASS_TRY(wait());
    return is_done ? status() : internal_error("the memory of another rank of this host is out of reach");
  }

  /// The most bytes for which each member reduces everything itself, which saves a wait.
  static constexpr std::int64_t reduced_by_all = 16 << 10;
  /// Reduces between two members: each reduces its half and puts the results where the other left the operands. A cache
  /// line goes to the other core and back, and the member's own half never leaves its data.
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
  /// Waits for all members. An aborted job ends its processes, so that only a loss without an abort has to be looked
  /// for.
  status wait() {
    if (gate_->wait(static_cast<std::uint32_t>(size_), &partners_))
      return {};
    return status(status_code::stopped, partners_.loss()).as(diagnostic::rank_lost);
  }

  std::unique_ptr<shared_segment> segment_;
  detail::barrier *gate_;
  std::int32_t size_, index_;
  int turn_ = 0;
  std::int64_t stage_;
  member_bell *bells_;
  piece_counts *counts_;
  std::byte *stages_;
  enum class reach { unknown, none, all } reach_ = reach::unknown;
  partner_entry *table_;
  partners partners_;
  std::vector<const std::byte *> parts_;
  enum class reading : std::uint8_t { unknown, works, fails };
  std::vector<reading> reads_; ///< of each member, by messages
  std::uint64_t token_;        ///< what no other process has at its address
};

static_assert(sizeof(detail::barrier) <= barrier_bytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share these words");

} // namespace

std::int64_t shared_group_bytes(std::int32_t members) {
  return header_bytes(members) + table_bytes(members) + 2 * members * stage_bytes(members);
}

std::unique_ptr<communicator> make_shared_communicator(std::unique_ptr<shared_segment> segment,
                                                       const std::vector<std::int32_t> &members, std::int32_t index) {
  return std::make_unique<shared_communicator>(std::move(segment), members, index);
}

status try_shared_communicator(const std::vector<std::int32_t> &members, std::int32_t index,
                               const std::function<status(char *, std::int64_t)> &tell,
                               const std::function<status(bool &)> &agree, std::unique_ptr<communicator> &out) {
  auto segment = std::make_unique<shared_segment>();
  const std::int64_t bytes = shared_group_bytes(static_cast<std::int32_t>(members.size()));
  char address[128] = {};
  std::string text;
  if (index == 0 && segment->create(bytes, text))
    std::snprintf(address, sizeof address, "%s", text.c_str());
  WINDLASS_TRY(tell(address, sizeof address));
  bool is_mapped = address[0] != 0 && (index == 0 || segment->open(address, bytes));
  const status agreed = agree(is_mapped);
  segment->forget_address();
  WINDLASS_TRY(agreed);
  if (is_mapped)
    out = make_shared_communicator(std::move(segment), members, index);
  return ok_status();
}

} // namespace windlass::rt
