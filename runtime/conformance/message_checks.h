// What messages must do between ranks of every transport; used by the tests of threads and of processes.
#ifndef WINDLASS_CONFORMANCE_MESSAGE_CHECKS_H
#define WINDLASS_CONFORMANCE_MESSAGE_CHECKS_H

#include "windlass/rt/communicator.h"
#include "windlass/rt/streams.h"
#include "windlass/rt/transport.h"

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace windlass::rt::testing {

/// What a message holds: differs between members, messages and places.
class pattern {
public:
  pattern(std::int32_t from, std::int32_t to, std::int64_t number)
      : seed_(static_cast<std::uint64_t>(from * 1000003 + to * 1009 + number * 17 + 1)) {}
  void fill(std::byte *data, std::int64_t bytes) const {
    for (std::int64_t i = 0; i < bytes; i += 8) {
      const std::uint64_t word = at(i);
      std::memcpy(data + i, &word, static_cast<std::size_t>(std::min<std::int64_t>(8, bytes - i)));
    }
  }
  /// Returns whether the data is this, and the 8 bytes behind it are 0.
  bool matches(const std::byte *data, std::int64_t bytes) const {
    for (std::int64_t i = 0; i < bytes; i += 8) {
      const std::uint64_t word = at(i);
      if (std::memcmp(data + i, &word, static_cast<std::size_t>(std::min<std::int64_t>(8, bytes - i))) != 0)
        return false;
    }
    const std::uint64_t nothing = 0;
    return std::memcmp(data + bytes, &nothing, 8) == 0;
  }

private:
  std::uint64_t at(std::int64_t i) const { return (seed_ + static_cast<std::uint64_t>(i)) * 0x9e3779b97f4a7c15u; }
  std::uint64_t seed_;
};

/// The messages of one member, with memory of their own.
class message_set {
public:
  explicit message_set(communicator &c) : c_(c) {}
  void send(std::int32_t to, std::int64_t bytes, std::int64_t number = 0) { add(direction::send, to, bytes, number); }
  void receive(std::int32_t from, std::int64_t bytes, std::int64_t number = 0) {
    add(direction::receive, from, bytes, number);
  }

  status run_together() { return c_.transfer(list_.data(), static_cast<std::int32_t>(list_.size())); }
  status run_in_turn() {
    for (const message &each : list_)
      WINDLASS_TRY(c_.transfer(&each, 1));
    return {};
  }
  /// Empty when all that was received is right.
  std::string check() const {
    for (std::size_t i = 0; i < list_.size(); ++i)
      if (list_[i].way == direction::receive &&
          !pattern(list_[i].peer, c_.index(), numbers_[i]).matches(list_[i].data, list_[i].bytes))
        return "message " + std::to_string(numbers_[i]) + " of " + std::to_string(list_[i].bytes) +
               " bytes from member " + std::to_string(list_[i].peer) + " is wrong on member " +
               std::to_string(c_.index());
    return "";
  }

private:
  void add(direction way, std::int32_t peer, std::int64_t bytes, std::int64_t number) {
    memory_.emplace_back(static_cast<std::size_t>(bytes + 8));
    if (way == direction::send)
      pattern(c_.index(), peer, number).fill(memory_.back().data(), bytes);
    list_.push_back({way, peer, memory_.back().data(), bytes});
    numbers_.push_back(number);
  }
  communicator &c_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<message> list_;
  std::vector<std::int64_t> numbers_;
};

inline std::string outcome(const status &result, const message_set &set) {
  return result.is_ok() ? set.check() : result.message();
}

/// Between members 0 and 1, of that size: forth, back, and both directions at once.
inline std::string check_message_size(communicator &c, std::int64_t bytes) {
  if (c.index() > 1)
    return "";
  const std::int32_t other = 1 - c.index();
  for (const std::int32_t sender : {0, 1}) {
    message_set one(c);
    c.index() == sender ? one.send(other, bytes) : one.receive(other, bytes);
    if (std::string failure = outcome(one.run_together(), one); !failure.empty())
      return failure;
  }
  message_set both(c);
  both.send(other, bytes, 1);
  both.receive(other, bytes, 1);
  return outcome(both.run_together(), both);
}

/// Every member with every other one, in one transfer; sizes differ.
inline std::string check_all_pairs(communicator &c) {
  message_set all(c);
  for (std::int32_t m = 0; m < c.size(); ++m)
    if (m != c.index()) {
      all.send(m, 1000 * (c.index() + 1) + m);
      all.receive(m, 1000 * (m + 1) + c.index());
    }
  return outcome(all.run_together(), all);
}

/// Around the ring, first one by one: only where member 0 begins with its send does that end without a buffer.
inline std::string check_ring(communicator &c) {
  const std::int32_t next = (c.index() + 1) % c.size(), last = (c.index() + c.size() - 1) % c.size();
  for (const std::int64_t bytes : {1, 70000, 600000}) {
    message_set turns(c), once(c);
    if (c.index() == 0)
      turns.send(next, bytes);
    turns.receive(last, bytes);
    if (c.index() != 0)
      turns.send(next, bytes);
    if (std::string failure = outcome(turns.run_in_turn(), turns); !failure.empty())
      return failure;
    once.receive(last, bytes);
    once.send(next, bytes);
    if (std::string failure = outcome(once.run_together(), once); !failure.empty())
      return failure;
  }
  return "";
}

/// Many messages keep their order: in one transfer, one by one, and issued ahead on streams, one for each direction.
inline std::string check_many_in_flight(transport &world, const std::vector<std::int32_t> &members) {
  std::unique_ptr<communicator> forth, back;
  for (std::unique_ptr<communicator> *each : {&forth, &back})
    if (const status s = world.make_communicator(members, *each); !s.is_ok())
      return s.message();
  communicator &c = *forth;
  if (c.index() > 1)
    return "";
  const std::int32_t other = 1 - c.index();
  message_set together(c), in_turn(c);
  for (std::int64_t n = 0; n < communicator::most_messages / 2; ++n) {
    together.send(other, 100 + 7000 * (n % 5), n);
    together.receive(other, 100 + 7000 * (n % 5), n);
  }
  if (std::string failure = outcome(together.run_together(), together); !failure.empty())
    return failure;
  for (std::int64_t n = 0; n < 300; ++n)
    c.index() == 0 ? in_turn.send(1, 1 + 97 * n, n) : in_turn.receive(0, 1 + 97 * n, n);
  if (std::string failure = outcome(in_turn.run_in_turn(), in_turn); !failure.empty())
    return failure;

  // Commands wait in the streams' rings while this thread goes on; nobody batches the two directions.
  const std::unique_ptr<stream> out = make_worker_stream(1, nullptr, 0), in = make_worker_stream(1, nullptr, 0);
  communicator &sends = c.index() == 0 ? *forth : *back, &receives = c.index() == 0 ? *back : *forth;
  constexpr std::int64_t count = 100, elements = 500;
  std::vector<float> sent(count * elements), received(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i)
    sent[i] = static_cast<float>(i % 8191) + static_cast<float>(c.index()) * 10000;
  const auto viewed = [](std::vector<float> &v, std::int64_t n) {
    return dense_view(reinterpret_cast<std::byte *>(v.data() + n * elements), element_type::f32, {elements});
  };
  collective_bytes counted;
  for (std::int64_t n = 0; n < count; ++n)
    for (const status &result :
         {send(*out, sends, viewed(sent, n), other), receive(*in, receives, viewed(received, n), other)})
      if (!result.is_ok())
        return result.message();
  for (const status &result : {out->synchronize(), in->synchronize()})
    if (!result.is_ok())
      return result.message();
  for (std::size_t i = 0; i < received.size(); ++i)
    if (received[i] != static_cast<float>(i % 8191) + static_cast<float>(other) * 10000)
      return "element " + std::to_string(i) + " of messages on streams is wrong";
  sends.take_sent(counted);
  receives.take_sent(counted);
  if (counted[collective_kind::send] != double(count * elements * 4))
    return "messages count " + std::to_string(counted[collective_kind::send]) + " bytes";
  return "";
}

/// Messages and collectives of one communicator take turns.
inline std::string check_messages_between_collectives(communicator &c) {
  for (std::int64_t turn = 0; turn < 6; ++turn)
    for (const std::int64_t n : {5, 40000}) {
      std::vector<float> x(static_cast<std::size_t>(n), static_cast<float>(c.index() + 1));
      if (const status s = c.all_reduce(reinterpret_cast<std::byte *>(x.data()), n, element_type::f32, reduction::sum);
          !s.is_ok())
        return s.message();
      for (const float value : x)
        if (value != static_cast<float>(c.size() * (c.size() + 1) / 2))
          return "an all-reduce between messages is wrong on member " + std::to_string(c.index());
      message_set set(c);
      if (c.index() == turn % c.size())
        set.send((c.index() + 1) % c.size(), n * 4 + 1);
      if (c.index() == (turn + 1) % c.size())
        set.receive((c.index() + c.size() - 1) % c.size(), n * 4 + 1);
      if (std::string failure = outcome(set.run_together(), set); !failure.empty())
        return failure;
    }
  return "";
}

/// Checks what the commands of a stream refuse before anybody waits.
inline std::string check_refused_messages(communicator &c) {
  const std::unique_ptr<stream> s = make_inline_stream(1, nullptr, 0);
  std::vector<float> x(6);
  const view dense = dense_view(reinterpret_cast<std::byte *>(x.data()), element_type::f32, {3});
  const view gaps = strided_view(reinterpret_cast<std::byte *>(x.data()), element_type::f32, {3}, {2});
  const std::int32_t other = (c.index() + 1) % c.size();
  for (const status &refused : {send(*s, c, dense, c.index()), send(*s, c, dense, -1), receive(*s, c, dense, c.size()),
                                send(*s, c, gaps, other), receive(*s, c, gaps, other)})
    if (refused.code() != status_code::internal)
      return "a message was taken that must be refused: '" + refused.message() + "'";
  return transfer(*s, c, {}).message();
}

/// All of these over the ranks of a job, of which there are at least two.
inline std::string check_messages(transport &world) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  std::unique_ptr<communicator> c;
  if (const status s = world.make_communicator(all, c); !s.is_ok())
    return s.message();
  // Around the sizes of pieces, of staging areas, and from which memory is read directly.
  constexpr std::int64_t kib = 1024, mib = kib * kib;
  for (const std::int64_t bytes : {std::int64_t(0), std::int64_t(1), std::int64_t(63), std::int64_t(4097),
                                   64 * kib - 64, 64 * kib - 63, 128 * kib, 256 * kib - 1, 256 * kib, mib + 3, 8 * mib})
    if (std::string failure = check_message_size(*c, bytes); !failure.empty())
      return failure;
  for (auto *check : {check_all_pairs, check_ring, check_messages_between_collectives, check_refused_messages})
    if (std::string failure = check(*c); !failure.empty())
      return failure;
  return check_many_in_flight(world, all);
}

} // namespace windlass::rt::testing

#endif
