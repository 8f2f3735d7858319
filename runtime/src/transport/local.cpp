// Ranks as threads of one process: members publish the addresses of their buffers and work on each other's memory.
#include "windlass/rt/transport.h"

#include "message_queue.h"

#include "windlass/rt/detail/combine.h"
#include "windlass/rt/detail/wait.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace windlass::rt {

namespace {

/// A place where a member leaves a message for another one, which copies it from the sender's memory. Nothing is
/// buffered: the sender waits until the mailbox is free again.
struct local_mailbox {
  enum : std::uint32_t { free, full, copying };
  std::atomic<std::uint32_t> state{free};
  const std::byte *data = nullptr;
  std::int64_t bytes = 0;
};

/// A counter that changes whenever one of a member's mailboxes does.
struct local_bell {
  std::atomic<std::uint32_t> word{0}, sleepers{0};
  void ring() {
    word.fetch_add(1);
    detail::wake_all(word, sleepers);
  }
};

/// The state that the members of one communicator share.
struct local_group {
  explicit local_group(std::size_t members)
      : sources(members), targets(members), mailboxes(members * members), bells(members) {}
  /// Returns the mailbox for messages from one member to another.
  local_mailbox &mailbox(std::int32_t from, std::int32_t to) {
    return mailboxes[static_cast<std::size_t>(from) * bells.size() + static_cast<std::size_t>(to)];
  }
  local_bell &bell(std::int32_t member) { return bells[static_cast<std::size_t>(member)]; }

  detail::barrier gate{};
  std::vector<const std::byte *> sources; ///< each member's own place: what the others read
  std::vector<std::byte *> targets;       ///< and write
  std::vector<local_mailbox> mailboxes;
  std::vector<local_bell> bells;
};

/// The state that all ranks of the job share.
struct local_job : detail::wait_guard {
  std::atomic<std::uint32_t> aborted{0};
  bool is_over() override { return aborted.load() != 0; }
  std::mutex mutex; ///< guards what follows
  std::string reason;
  /// The groups by the number of the call and the members.
  std::map<std::pair<std::int64_t, std::vector<std::int32_t>>, std::shared_ptr<local_group>> groups;
};

class local_communicator final : public communicator {
public:
  local_communicator(std::shared_ptr<local_job> job, std::shared_ptr<local_group> group, std::int32_t size,
                     std::int32_t index)
      : job_(std::move(job)), group_(std::move(group)), size_(size), index_(index),
        parts_(static_cast<std::size_t>(size)), outputs_(static_cast<std::size_t>(size)) {}

  std::int32_t size() const override { return size_; }
  std::int32_t index() const override { return index_; }

  status all_reduce(std::byte *data, std::int64_t elements, element_type type, reduction kind) override {
    if (size_ == 1 || elements == 0)
      return {};
    // Each member reduces its part of all buffers and writes the result into all of them; parts do not overlap.
    publish(data, data);
    WINDLASS_TRY(barrier());
    const std::int64_t begin = detail::part_begin(elements, size_, index_);
    const std::int64_t end = detail::part_begin(elements, size_, index_ + 1);
    for (std::size_t m = 0; m < parts_.size(); ++m) {
      outputs_[m] = group_->targets[m] + begin * size_of(type);
      parts_[m] = outputs_[m];
    }
    WINDLASS_TRY(detail::combine(outputs_.data(), size_, parts_.data(), size_, end - begin, type, kind));
    return finish();
  }

  status all_gather(const collective_pair *pairs, std::int32_t count) override {
    publish(reinterpret_cast<const std::byte *>(pairs), nullptr);
    WINDLASS_TRY(barrier());
    for (std::int32_t i = 0; i < count; ++i)
      for (std::int32_t m = 0; m < size_; ++m)
        if (const std::int64_t bytes = pairs[i].part_bytes(); bytes > 0)
          std::memcpy(pairs[i].out + m * bytes, pairs_of(m)[i].in, static_cast<std::size_t>(bytes));
    return finish();
  }

  status reduce_scatter(const collective_pair *pairs, std::int32_t count) override {
    publish(reinterpret_cast<const std::byte *>(pairs), nullptr);
    WINDLASS_TRY(barrier());
    status failed;
    for (std::int32_t i = 0; i < count && failed.is_ok(); ++i) {
      std::byte *out = pairs[i].out;
      for (std::int32_t m = 0; m < size_; ++m)
        parts_[static_cast<std::size_t>(m)] = pairs_of(m)[i].in + index_ * pairs[i].part_bytes();
      if (pairs[i].elements > 0)
        failed = detail::combine(&out, 1, parts_.data(), size_, pairs[i].elements, pairs[i].type, reduction::sum);
    }
    WINDLASS_TRY(failed);
    return finish();
  }

  status all_to_all(std::byte *out, const std::byte *in, std::int64_t bytes) override {
    if (bytes == 0) // on all members
      return {};
    publish(in, nullptr);
    WINDLASS_TRY(barrier());
    for (std::int32_t m = 0; m < size_; ++m)
      std::memcpy(out + m * bytes, source(m) + index_ * bytes, static_cast<std::size_t>(bytes));
    return finish();
  }

  status permute(std::byte *out, const std::byte *in, std::int64_t bytes, std::int32_t, std::int32_t from) override {
    if (bytes == 0) // on all members
      return {};
    publish(in, nullptr);
    WINDLASS_TRY(barrier());
    std::memcpy(out, source(from), static_cast<std::size_t>(bytes));
    return finish();
  }

  status broadcast(std::byte *data, std::int64_t bytes, std::int32_t root) override {
    if (bytes == 0) // on all members
      return {};
    publish(data, nullptr);
    WINDLASS_TRY(barrier());
    if (index_ != root)
      std::memcpy(data, source(root), static_cast<std::size_t>(bytes));
    return finish();
  }

  status gather_rows(std::byte *out, std::byte *, const std::byte *in, const detail::row_routes &of) override {
    publish(in, nullptr);
    for (std::int32_t to = 0; to < size_; ++to)
      count_rows(to, of.count(index_, to), of);
    WINDLASS_TRY(barrier());
    const std::int64_t bytes = of.row_bytes(), all = size_ * of.tokens;
    for (std::int64_t token = 0; token < all; ++token)
      if (of.reaches(token, index_)) {
        const std::byte *const from = source(static_cast<std::int32_t>(token / of.tokens));
        std::memcpy(out + token * bytes, from + token % of.tokens * bytes, static_cast<std::size_t>(bytes));
      }
    return finish();
  }

  status scatter_rows(std::byte *out, std::byte *, std::byte *in, const detail::row_routes &of) override {
    publish(in, nullptr);
    for (std::int32_t to = 0; to < size_; ++to)
      count_rows(to, of.count(to, index_), of);
    WINDLASS_TRY(barrier());
    const std::int64_t bytes = of.row_bytes();
    status failed;
    for (std::int64_t token = 0; token < of.tokens && failed.is_ok(); ++token) {
      const std::int64_t number = index_ * of.tokens + token;
      std::int32_t reached = 0;
      for (std::int32_t m = 0; m < size_; ++m)
        if (of.reaches(number, m))
          parts_[static_cast<std::size_t>(reached++)] = source(m) + number * bytes;
      failed = detail::sum_rows(out + token * bytes, parts_.data(), reached, of);
    }
    WINDLASS_TRY(failed);
    return finish();
  }

  status barrier() override {
    if (group_->gate.wait(static_cast<std::uint32_t>(size_), job_.get()))
      return {};
    return reason_of_abort();
  }

  status transfer(const message *messages, std::int32_t count) override {
    progress states[most_messages] = {};
    detail::message_queue queue(messages, count);
    local_bell &own = group_->bell(index_);
    while (!queue.is_empty()) {
      const std::uint32_t seen = own.word.load();
      bool has_moved = false;
      status failed;
      queue.visit([&](std::int32_t i) {
        const bool is_done = messages[i].way == direction::send ? advance_send(messages[i], states[i], has_moved)
                                                                : advance_receive(messages[i], failed);
        has_moved |= is_done;
        return is_done;
      });
      if (failed.is_ok() && (has_moved || !job_->is_over())) {
        if (!has_moved)
          detail::wait_while_equal(own.word, seen, own.sleepers);
        continue;
      }
      for (std::int32_t i = 0; i < count; ++i)
        if (states[i] == progress::offered)
          withdraw(messages[i].peer);
      return failed.is_ok() ? reason_of_abort() : failed;
    }
    return {};
  }

private:
  /// The progress of a message that is being sent.
  enum class progress : std::uint8_t { waiting, offered, done };

  /// Offers the message where the mailbox is free; returns whether the receiver has taken it.
  bool advance_send(const message &m, progress &state, bool &has_moved) {
    local_mailbox &box = group_->mailbox(index_, m.peer);
    if (state == progress::waiting) {
      box.data = m.data;
      box.bytes = m.bytes;
      box.state.store(local_mailbox::full);
      group_->bell(m.peer).ring();
      state = progress::offered;
      has_moved = true;
    } else if (box.state.load() == local_mailbox::free) {
      state = progress::done;
      return true;
    }
    return false;
  }

  /// Copies a message that has been offered; returns whether there was one.
  bool advance_receive(const message &m, status &failed) {
    local_mailbox &box = group_->mailbox(m.peer, index_);
    std::uint32_t expected = local_mailbox::full;
    if (!box.state.compare_exchange_strong(expected, local_mailbox::copying))
      return false;
    if (box.bytes != m.bytes)
      failed = detail::wrong_message(m, index_, box.bytes);
    else if (m.bytes > 0)
      std::memcpy(m.data, box.data, static_cast<std::size_t>(m.bytes));
    box.state.store(local_mailbox::free);
    group_->bell(m.peer).ring();
    return true;
  }

  /// Takes an offer back, since the sender's memory may go; a copy that has begun is allowed to end.
  void withdraw(std::int32_t peer) {
    local_mailbox &box = group_->mailbox(index_, peer);
    local_bell &own = group_->bell(index_);
    std::uint32_t expected = local_mailbox::full;
    if (box.state.compare_exchange_strong(expected, local_mailbox::free))
      return;
    while (true) {
      const std::uint32_t seen = own.word.load();
      if (box.state.load() != local_mailbox::copying)
        return;
      detail::wait_while_equal(own.word, seen, own.sleepers);
    }
  }

  status reason_of_abort() {
    const std::lock_guard<std::mutex> lock(job_->mutex);
    return status(status_code::stopped, "another rank ended the job: " + job_->reason).as(diagnostic::rank_lost);
  }

  /// Ends a collective. All members are in it and will come, so an abort must not cut this short: a member that left
  /// would free memory that others still read.
  status finish() {
    group_->gate.wait(static_cast<std::uint32_t>(size_), nullptr);
    return {};
  }
  void publish(const std::byte *source, std::byte *target) {
    group_->sources[static_cast<std::size_t>(index_)] = source;
    group_->targets[static_cast<std::size_t>(index_)] = target;
  }
  /// Returns what a member that published its pairs moves.
  const collective_pair *pairs_of(std::int32_t member) const {
    return reinterpret_cast<const collective_pair *>(source(member));
  }
  const std::byte *source(std::int32_t member) const { return group_->sources[static_cast<std::size_t>(member)]; }

  std::shared_ptr<local_job> job_;
  std::shared_ptr<local_group> group_;
  std::int32_t size_, index_;
  std::vector<const std::byte *> parts_;
  std::vector<std::byte *> outputs_;
};

class local_transport final : public transport {
public:
  local_transport(std::shared_ptr<local_job> job, std::int32_t rank, std::int32_t size)
      : job_(std::move(job)), rank_(rank), size_(size) {}

  std::int32_t rank() const override { return rank_; }
  std::int32_t size() const override { return size_; }
  bool is_one_host() const override { return true; }
  bool is_one_process() const override { return true; }

  status make_communicator(const std::vector<std::int32_t> &members, std::unique_ptr<communicator> &out) override {
    std::int32_t index = -1;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i] == rank_)
        index = static_cast<std::int32_t>(i);
    if (index < 0)
      return internal_error("rank " + std::to_string(rank_) + " is not a member of its own communicator");
    std::shared_ptr<local_group> group;
    {
      const std::lock_guard<std::mutex> lock(job_->mutex);
      std::shared_ptr<local_group> &entry = job_->groups[{calls_++, members}];
      if (!entry)
        entry = std::make_shared<local_group>(members.size());
      group = entry;
    }
    out =
        std::make_unique<local_communicator>(job_, std::move(group), static_cast<std::int32_t>(members.size()), index);
    return {};
  }

  void abort(const status &why) override {
    const std::lock_guard<std::mutex> lock(job_->mutex);
    if (job_->aborted.load() != 0)
      return;
    job_->reason = "rank " + std::to_string(rank_) + ": " + why.message();
    job_->aborted.store(1);
    for (auto &group : job_->groups) {
      detail::wake_all(group.second->gate.word, group.second->gate.sleepers);
      for (local_bell &bell : group.second->bells)
        detail::wake_all(bell.word, bell.sleepers);
    }
  }

private:
  std::shared_ptr<local_job> job_;
  std::int32_t rank_, size_;
  std::int64_t calls_ = 0;
};

} // namespace

std::vector<std::unique_ptr<transport>> make_local_transports(std::int32_t ranks) {
  const auto job = std::make_shared<local_job>();
  std::vector<std::unique_ptr<transport>> result;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    result.push_back(std::make_unique<local_transport>(job, rank, ranks));
  return result;
}

} // namespace windlass::rt
