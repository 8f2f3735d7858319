#include "tcp_communicator.h"

#include "message_queue.h"
#include "pair_rounds.h"
#include "staging.h"

#include "windlass/rt/detail/combine.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <poll.h>
#include <sys/socket.h>

namespace windlass::rt {

namespace {

/// What is under way in one direction between this member and another: a list of messages, one after the other, each a
/// header of 8 bytes, which holds its size, and its bytes.
struct flow {
  std::int32_t first = -1, last = -1; ///< of its messages, by number
  std::uint64_t header = 0;
  std::int64_t moved = 0; ///< of the first message, its header included
};

constexpr std::int64_t header_bytes = sizeof(flow::header);

class tcp_communicator final : public communicator {
public:
  tcp_communicator(std::vector<tcp_socket> peers, std::vector<std::int32_t> ranks, std::int32_t index)
      : peers_(std::move(peers)), ranks_(std::move(ranks)), index_(index), received_(staging_bytes(size())),
        sum_(staging_bytes(size())), parts_(peers_.size()) {
    for (std::vector<flow> *flows : {&sends_, &receives_})
      flows->resize(peers_.size());
    polled_.reserve(peers_.size());
    polled_members_.reserve(peers_.size());
  }

  std::int32_t size() const override { return static_cast<std::int32_t>(peers_.size()); }
  std::int32_t index() const override { return index_; }

  /// Each member adds a part of each piece, and gives it to all.
  status all_reduce(std::byte *data, std::int64_t elements, element_type type, reduction kind) override {
    const std::int64_t width = size_of(type), piece = piece_bytes / width;
    for (std::int64_t done = 0; done < elements && size() > 1; done += piece) {
      const std::int64_t n = std::min(piece, elements - done);
      std::byte *here = data + done * width;
      const auto begin_of = [&](std::int32_t m) { return detail::part_begin(n, size(), m) * width; };
      const std::int64_t own = begin_of(index_ + 1) - begin_of(index_);
      for (std::int32_t m = 0; m < size(); ++m) {
        parts_[at(m)] = m == index_ ? here + begin_of(m) : received_.data() + m * own;
        add(direction::send, m, here + begin_of(m), begin_of(m + 1) - begin_of(m));
        add(direction::receive, m, received_.data() + m * own, own);
      }
      WINDLASS_TRY(move());
      std::byte *sum = sum_.data();
      WINDLASS_TRY(detail::combine(&sum, 1, parts_.data(), size(), own / width, type, kind));
      for (std::int32_t m = 0; m < size(); ++m) {
        add(direction::send, m, sum, own);
        add(direction::receive, m, here + begin_of(m), begin_of(m + 1) - begin_of(m));
      }
      WINDLASS_TRY(move());
      std::memcpy(here + begin_of(index_), sum, static_cast<std::size_t>(own));
    }
    return {};
  }

  status all_gather(const collective_pair *pairs, std::int32_t count) override {
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int64_t bytes = pairs[i].part_bytes();
      for (std::int32_t m = 0; m < size(); ++m) {
        add(direction::send, m, pairs[i].in, bytes);
        add(direction::receive, m, pairs[i].out + m * bytes, bytes);
      }
    }
    WINDLASS_TRY(move());
    for (std::int32_t i = 0; i < count; ++i)
      if (const std::int64_t bytes = pairs[i].part_bytes(); bytes > 0)
        std::memcpy(pairs[i].out + index_ * bytes, pairs[i].in, static_cast<std::size_t>(bytes));
    return {};
  }

  status reduce_scatter(const collective_pair *pairs, std::int32_t count) override {
    constexpr std::int64_t alignment = detail::pair_rounds::alignment;
    detail::pair_rounds rounds(pairs, count, std::max(piece_bytes / size() / alignment * alignment, alignment));
    while (rounds.advance()) {
      for (const detail::stretch &part : rounds)
        for (std::int32_t m = 0; m < size(); ++m) {
          add(direction::send, m, part.pair->in + m * part.pair->part_bytes() + part.begin, part.bytes);
          add(direction::receive, m, received_.data() + m * rounds.bytes() + part.place, part.bytes);
        }
      WINDLASS_TRY(move());
      for (const detail::stretch &part : rounds) {
        for (std::int32_t m = 0; m < size(); ++m)
          parts_[at(m)] = m == index_ ? part.pair->in + m * part.pair->part_bytes() + part.begin
                                      : received_.data() + m * rounds.bytes() + part.place;
        std::byte *sum = part.pair->out + part.begin;
        const element_type type = part.pair->type;
        WINDLASS_TRY(detail::combine(&sum, 1, parts_.data(), size(), part.bytes / size_of(type), type, reduction::sum));
      }
    }
    return {};
  }

  status all_to_all(std::byte *out, const std::byte *in, std::int64_t bytes) override {
    for (std::int32_t m = 0; m < size(); ++m) {
      add(direction::send, m, in + m * bytes, bytes);
      add(direction::receive, m, out + m * bytes, bytes);
    }
    WINDLASS_TRY(move());
    if (bytes > 0)
      std::memcpy(out + index_ * bytes, in + index_ * bytes, static_cast<std::size_t>(bytes));
    return {};
  }

  status permute(std::byte *out, const std::byte *in, std::int64_t bytes, std::int32_t to, std::int32_t from) override {
    add(direction::send, to, in, bytes);
    add(direction::receive, from, out, bytes);
    WINDLASS_TRY(move());
    if (from == index_ && bytes > 0)
      std::memcpy(out, in, static_cast<std::size_t>(bytes));
    return {};
  }

  status broadcast(std::byte *data, std::int64_t bytes, std::int32_t root) override {
    if (index_ != root)
      add(direction::receive, root, data, bytes);
    else
      for (std::int32_t m = 0; m < size(); ++m)
        add(direction::send, m, data, bytes);
    return move();
  }

  /// All come to member 0, which lets them go.
  status barrier() override {
    for (const direction way : {direction::receive, direction::send}) {
      for (std::int32_t m = 1; m < size(); ++m)
        if (index_ == 0)
          add_message({way, m, nullptr, 0});
      if (index_ != 0)
        add_message({way == direction::send ? direction::receive : direction::send, 0, nullptr, 0});
      WINDLASS_TRY(move());
    }
    return {};
  }

  status transfer(const message *messages, std::int32_t count) override {
    for (std::int32_t i = 0; i < count; ++i)
      add_message(messages[i]);
    return move();
  }

private:
  static std::size_t at(std::int32_t member) { return static_cast<std::size_t>(member); }

  /// Adds a part of a collective, whose members all know which parts are empty and which stay where they are.
  void add(direction way, std::int32_t peer, const std::byte *data, std::int64_t bytes) {
    if (bytes > 0 && peer != index_)
      add_message({way, peer, const_cast<std::byte *>(data), bytes});
  }

  void add_message(const message &m) {
    flow &its = (m.way == direction::send ? sends_ : receives_)[at(m.peer)];
    const auto number = static_cast<std::int32_t>(messages_.size());
    messages_.push_back(m);
    next_.push_back(-1);
    (its.last < 0 ? its.first : next_[at(its.last)]) = number;
    its.last = number;
  }

  /// Moves all that was added.
  status move() {
    status result;
    std::int64_t left = static_cast<std::int64_t>(messages_.size());
    while (left > 0 && result.is_ok()) {
      bool has_moved = false;
      for (std::int32_t m = 0; m < size() && result.is_ok(); ++m)
        for (const direction way : {direction::send, direction::receive})
          if (result.is_ok())
            result = advance(way, m, has_moved, left);
      if (left > 0 && !has_moved && result.is_ok())
        result = wait();
    }
    messages_.clear();
    next_.clear();
    if (!result.is_ok()) // nothing more goes over these connections
      for (std::vector<flow> *flows : {&sends_, &receives_})
        std::fill(flows->begin(), flows->end(), flow());
    return result;
  }

  status lost(std::int32_t member, const std::string &how) const {
    return status(status_code::stopped, "the connection to rank " + std::to_string(ranks_[at(member)]) + " " + how)
        .as(diagnostic::rank_lost);
  }

  /// Moves as much as the connection takes or gives at once.
  status advance(direction way, std::int32_t member, bool &has_moved, std::int64_t &left) {
    flow &its = (way == direction::send ? sends_ : receives_)[at(member)];
    while (its.first >= 0) {
      const message &m = messages_[at(its.first)];
      if (way == direction::send && its.moved == 0)
        its.header = static_cast<std::uint64_t>(m.bytes);
      iovec parts[2] = {};
      msghdr both = {};
      both.msg_iov = parts;
      if (its.moved < header_bytes)
        parts[both.msg_iovlen++] = {reinterpret_cast<std::byte *>(&its.header) + its.moved,
                                    static_cast<std::size_t>(header_bytes - its.moved)};
      const std::int64_t done = std::max<std::int64_t>(its.moved - header_bytes, 0);
      // Another size is found before any byte behind the header is taken.
      if (m.bytes > 0 && (way == direction::send || its.moved >= header_bytes))
        parts[both.msg_iovlen++] = {m.data + done, static_cast<std::size_t>(m.bytes - done)};
      const int peer = peers_[at(member)].descriptor();
      const ssize_t n = way == direction::send ? ::sendmsg(peer, &both, MSG_NOSIGNAL | MSG_DONTWAIT)
                                               : ::recvmsg(peer, &both, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return {};
      if (n < 0)
        return lost(member, std::string("is gone (") + std::strerror(errno) + ")");
      if (n == 0)
        return lost(member, "was closed");
      has_moved = true;
      its.moved += n;
      if (way == direction::receive && its.moved == header_bytes && its.header != static_cast<std::uint64_t>(m.bytes))
        return detail::wrong_message(m, index_, static_cast<std::int64_t>(its.header));
      if (its.moved == header_bytes + m.bytes) {
        its.first = next_[at(its.first)];
        its.last = its.first < 0 ? -1 : its.last;
        its.moved = 0;
        --left;
      }
    }
    return {};
  }

  /// Waits until one of the connections that are in use can go on.
  status wait() {
    polled_.clear();
    polled_members_.clear();
    for (std::int32_t m = 0; m < size(); ++m) {
      const short events =
          static_cast<short>((sends_[at(m)].first >= 0 ? POLLOUT : 0) | (receives_[at(m)].first >= 0 ? POLLIN : 0));
      if (events != 0) {
        polled_.push_back({peers_[at(m)].descriptor(), events, 0});
        polled_members_.push_back(m);
      }
    }
    constexpr int look_milliseconds = 2000;
    const int ready = ::poll(polled_.data(), polled_.size(), look_milliseconds);
    if (ready < 0 && errno != EINTR)
      return internal_error(std::string("poll failed: ") + std::strerror(errno));
    for (std::size_t i = 0; ready == 0 && i < polled_.size(); ++i)
      if (!peers_[at(polled_members_[i])].is_answered())
        return lost(polled_members_[i], "is no longer answered");
    return {};
  }

  std::vector<tcp_socket> peers_;
  std::vector<std::int32_t> ranks_;
  std::int32_t index_;
  std::vector<std::byte> received_, sum_;
  std::vector<const std::byte *> parts_;
  std::vector<message> messages_;  ///< that are under way
  std::vector<std::int32_t> next_; ///< of each, the next of its flow, or -1
  std::vector<flow> sends_, receives_;
  std::vector<pollfd> polled_;
  std::vector<std::int32_t> polled_members_;
};

} // namespace

std::unique_ptr<communicator> make_tcp_communicator(std::vector<tcp_socket> peers, std::vector<std::int32_t> ranks,
                                                    std::int32_t index) {
  return std::make_unique<tcp_communicator>(std::move(peers), std::move(ranks), index);
}

} // namespace windlass::rt
