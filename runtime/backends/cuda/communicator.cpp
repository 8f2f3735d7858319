// Collectives and messages between ranks that are threads of this process and share one device: copies and reduction
// kernels that work on each other's memory. Hosts exchange addresses and events while they issue; but for exchanges of
// rows, nothing waits for the device.
#include "communicator.h"
#include "device_event.h"
#include "kernel.h"
#include "row_routes.h"

#include "windlass/rt/detail/backend.h"
#include "windlass/rt/detail/combine.h"
#include "windlass/rt/transport.h"

#include <array>
#include <memory>
#include <vector>

namespace windlass::rt {

namespace cuda {
namespace {

constexpr std::int32_t most_members = 64;

/// The parts that a reduction reads, one for each member, and the places that it writes, which may be the same.
struct exchanged {
  const std::byte *parts[most_members];
  std::byte *outputs[most_members];
  std::int32_t members, output_count;
};

/// Reduces in the members' order. T is the stored type, A the type of the sums.
template <class T, class A> __global__ void combine_kernel(exchanged of, std::int64_t elements, reduction kind) {
  for (std::int64_t i = grid_thread(); i < elements; i += grid_threads()) {
    A sum = static_cast<A>(reinterpret_cast<const T *>(of.parts[0])[i]);
    for (std::int32_t m = 1; m < of.members; ++m) {
      const A next = static_cast<A>(reinterpret_cast<const T *>(of.parts[m])[i]);
      sum = kind == reduction::sum   ? static_cast<A>(sum + next)
            : kind == reduction::max ? larger_value::join(sum, next)
                                     : smaller_value::join(sum, next);
    }
    for (std::int32_t o = 0; o < of.output_count; ++o)
      reinterpret_cast<T *>(of.outputs[o])[i] = static_cast<T>(sum);
  }
}

template <class T, class A = T>
status combine_as(const stream &s, const exchanged &of, std::int64_t elements, reduction kind) {
  return launch(s, blocks_for(elements), block_threads, combine_kernel<T, A>, of, elements, kind);
}

status combine(const stream &s, const exchanged &of, std::int64_t elements, element_type type, reduction kind) {
  if (elements == 0)
    return {};
  switch (type) {
  case element_type::f32:
    return combine_as<float>(s, of, elements, kind);
  case element_type::f64:
    return combine_as<double>(s, of, elements, kind);
  case element_type::bf16:
    return combine_as<detail::bf16, float>(s, of, elements, kind);
  case element_type::f16:
    return combine_as<detail::f16, float>(s, of, elements, kind);
  case element_type::i64:
    return combine_as<std::int64_t>(s, of, elements, kind);
  case element_type::i32:
    return combine_as<std::int32_t>(s, of, elements, kind);
  case element_type::u16:
    return combine_as<std::uint16_t>(s, of, elements, kind);
  case element_type::u8:
    return combine_as<std::uint8_t>(s, of, elements, kind);
  case element_type::boolean: // 0 or 1, for which sum is max
    return combine_as<std::uint8_t>(s, of, elements, kind == reduction::sum ? reduction::max : kind);
  }
  return internal_error("unknown element type in a reduction between ranks");
}

/// The events of a member's stream before and after its part of a collective, and after it has copied what each other
/// member sent.
struct milestones {
  explicit milestones(std::int32_t members) : copied(static_cast<std::size_t>(members)) {}
  device_event ready, done;
  std::vector<device_event> copied;
  status create() {
    WINDLASS_TRY(ready.create());
    WINDLASS_TRY(done.create());
    for (device_event &each : copied)
      WINDLASS_TRY(each.create());
    return {};
  }
};

/// What the host of a message's sender tells that of its receiver.
struct offer {
  const std::byte *data;
  std::int64_t bytes;
};

/// Every collective: the stream waits until all members' streams have come to it, works, and waits until all have done
/// their part, so that no buffer changes that another one still reads. Of messages the same, between their members;
/// their hosts meet while they issue, so that an order that would need a buffer between them stops right there.
class shared_communicator final : public communicator {
public:
  shared_communicator(std::unique_ptr<communicator> hosts, stream &s)
      : hosts_(std::move(hosts)), stream_(s), addresses_(static_cast<std::size_t>(hosts_->size())) {}

  status create() {
    if (size() > most_members)
      return bad_input("a plan of " + std::to_string(size()) +
                       " ranks in one group cannot run on one device, which takes " + std::to_string(most_members) +
                       "; start the ranks as processes");
    const auto own = std::make_shared<milestones>(size());
    const status made = own->create();
    using place = const std::shared_ptr<milestones> *;
    const place mine = made.is_ok() ? &own : nullptr;
    std::vector<place> all(addresses_.size());
    WINDLASS_TRY(hosts_->all_gather(reinterpret_cast<std::byte *>(all.data()),
                                    reinterpret_cast<const std::byte *>(&mine), sizeof mine));
    for (const place each : all)
      members_.push_back(each != nullptr ? *each : nullptr);
    WINDLASS_TRY(hosts_->barrier()); // until all have copied it
    WINDLASS_TRY(made);
    for (const std::shared_ptr<milestones> &each : members_)
      if (each == nullptr)
        return internal_error("another rank of this device could not make an event");
    return {};
  }

  std::int32_t size() const override { return hosts_->size(); }
  std::int32_t index() const override { return hosts_->index(); }

  status all_reduce(std::byte *data, std::int64_t elements, element_type type, reduction kind) override {
    if (size() == 1 || elements == 0)
      return {};
    return together(data, [&]() -> status {
      // Each member reduces its part of all buffers and writes the result into all of them; parts do not overlap.
      const std::int64_t begin = detail::part_begin(elements, size(), index());
      const std::int64_t end = detail::part_begin(elements, size(), index() + 1);
      exchanged of = {{}, {}, size(), size()};
      for (std::int32_t m = 0; m < size(); ++m)
        of.parts[m] = of.outputs[m] = address(m) + begin * size_of(type);
      return combine(stream_, of, end - begin, type, kind);
    });
  }

  status all_gather(const collective_pair *pairs, std::int32_t count) override {
    return together(reinterpret_cast<const std::byte *>(pairs), [&]() -> status {
      for (std::int32_t i = 0; i < count; ++i)
        for (std::int32_t m = 0; m < size(); ++m)
          WINDLASS_TRY(move(pairs[i].out + m * pairs[i].part_bytes(), pairs_of(m)[i].in, pairs[i].part_bytes()));
      return {};
    });
  }

  status reduce_scatter(const collective_pair *pairs, std::int32_t count) override {
    return together(reinterpret_cast<const std::byte *>(pairs), [&]() -> status {
      for (std::int32_t i = 0; i < count; ++i) {
        exchanged of = {{}, {pairs[i].out}, size(), 1};
        for (std::int32_t m = 0; m < size(); ++m)
          of.parts[m] = pairs_of(m)[i].in + index() * pairs[i].part_bytes();
        WINDLASS_TRY(combine(stream_, of, pairs[i].elements, pairs[i].type, reduction::sum));
      }
      return {};
    });
  }

  status all_to_all(std::byte *out, const std::byte *in, std::int64_t bytes) override {
    return together(in, [&]() -> status {
      for (std::int32_t m = 0; m < size(); ++m)
        WINDLASS_TRY(move(out + m * bytes, address(m) + index() * bytes, bytes));
      return {};
    });
  }

  status permute(std::byte *out, const std::byte *in, std::int64_t bytes, std::int32_t, std::int32_t from) override {
    return together(in, [&] { return move(out, address(from), bytes); });
  }

  status broadcast(std::byte *data, std::int64_t bytes, std::int32_t root) override {
    return together(data, [&] { return index() == root ? ok_status() : move(data, address(root), bytes); });
  }

  status gather_rows(std::byte *out, std::byte *scratch, const std::byte *in, const detail::row_routes &of) override {
    return cuda::gather_rows(*this, stream_, out, scratch, in, of);
  }
  status scatter_rows(std::byte *out, std::byte *scratch, std::byte *in, const detail::row_routes &of) override {
    return cuda::scatter_rows(*this, stream_, out, scratch, in, of);
  }
  status barrier() override { return hosts_->barrier(); }

  status transfer(const message *messages, std::int32_t count) override {
    milestones &own = *members_[static_cast<std::size_t>(index())];
    WINDLASS_TRY(own.ready.record(native(stream_)));
    offer offers[most_messages];
    message told[most_messages];
    for (std::int32_t i = 0; i < count; ++i) {
      offers[i] = {messages[i].data, messages[i].bytes};
      told[i] = {messages[i].way, messages[i].peer, reinterpret_cast<std::byte *>(&offers[i]), sizeof(offer)};
    }
    WINDLASS_TRY(hosts_->transfer(told, count));
    status failed;
    for (std::int32_t i = 0; i < count && failed.is_ok(); ++i)
      if (messages[i].way == direction::receive)
        failed = take(messages[i], offers[i], own);
    // Each member says that it has told its stream to copy, and the sender's stream waits for that.
    for (std::int32_t i = 0; i < count; ++i)
      told[i] = {messages[i].way == direction::send ? direction::receive : direction::send, messages[i].peer, nullptr,
                 0};
    WINDLASS_TRY(failed);
    WINDLASS_TRY(hosts_->transfer(told, count));
    for (std::int32_t i = 0; i < count; ++i)
      if (messages[i].way == direction::send)
        WINDLASS_TRY(
            members_[static_cast<std::size_t>(messages[i].peer)]->copied[static_cast<std::size_t>(index())].hold(
                native(stream_)));
    return {};
  }

private:
  /// Copies a message when its sender's stream has come to it. The event is recorded again only when the sender's host
  /// has told its stream to wait for it: it makes its next offer after that.
  status take(const message &m, const offer &from, milestones &own) {
    if (from.bytes != m.bytes)
      return internal_error("member " + std::to_string(m.peer) + " sends " + std::to_string(from.bytes) +
                            " bytes, but member " + std::to_string(index()) + " receives " + std::to_string(m.bytes));
    WINDLASS_TRY(members_[static_cast<std::size_t>(m.peer)]->ready.hold(native(stream_)));
    WINDLASS_TRY(move(m.data, from.data, m.bytes));
    return own.copied[static_cast<std::size_t>(m.peer)].record(native(stream_));
  }

  /// Returns what a member that came with its pairs moves: they are in the memory of this process until all have told
  /// their streams.
  const collective_pair *pairs_of(std::int32_t member) const {
    return reinterpret_cast<const collective_pair *>(address(member));
  }
  std::byte *address(std::int32_t member) const { return addresses_[static_cast<std::size_t>(member)]; }

  status move(std::byte *to, const std::byte *from, std::int64_t bytes) {
    if (bytes == 0)
      return {};
    return check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, native(stream_)),
                 "a copy between ranks");
  }

  /// Waits, on the device, until all members' streams have come to where they are now. An event is recorded again only
  /// when all hosts have told their streams to wait for it: they exchange once more before.
  status meet(const std::byte *data, device_event milestones::*reached) {
    milestones &own = *members_[static_cast<std::size_t>(index())];
    WINDLASS_TRY((own.*reached).record(native(stream_)));
    WINDLASS_TRY(hosts_->all_gather(reinterpret_cast<std::byte *>(addresses_.data()),
                                    reinterpret_cast<const std::byte *>(&data), sizeof data));
    for (const std::shared_ptr<milestones> &each : members_)
      WINDLASS_TRY(((*each).*reached).hold(native(stream_)));
    return {};
  }

  template <class F> status together(const std::byte *data, F work) {
    WINDLASS_TRY(meet(data, &milestones::ready));
    WINDLASS_TRY(work());
    return meet(data, &milestones::done);
  }

  std::unique_ptr<communicator> hosts_;
  stream &stream_;
  std::vector<std::byte *> addresses_; ///< of the members' data
  /// The milestones of all members, which each member keeps alive: a slow member still waits for those of one that has
  /// finished and gone.
  std::vector<std::shared_ptr<milestones>> members_;
};

} // namespace
} // namespace cuda

status detail::make_device_communicator(const transport &world, std::unique_ptr<communicator> hosts, stream &s,
                                        std::unique_ptr<communicator> &out) {
  if (!world.is_one_process())
    return cuda::make_nccl_communicator(std::move(hosts), s, out);
  auto made = std::make_unique<cuda::shared_communicator>(std::move(hosts), s);
  WINDLASS_TRY(made->create());
  out = std::move(made);
  return {};
}

} // namespace windlass::rt
