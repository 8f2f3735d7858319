#include "messages.h"

namespace windlass::rt {

void position_messages::open(const member &its, context &c) {
  context_ = &c;
  p_ = &its.p;
  for (const message_entry &row : p_->messages) {
    const tensor_part part = local_part(sizes_of(row.sizes), row.splits, its.position.axes, its.number);
    parts_.push_back({&row, part.elements() * size_of(row.type)});
  }
  std::size_t slots = 0;
  for (const chunk_entry &row : p_->chunks) {
    first_slot_.push_back(slots);
    slots += static_cast<std::size_t>(row.slots);
  }
  computed_ = std::vector<event>(slots);
  moved_ = std::vector<event>(slots * static_cast<std::size_t>(p_->peers.size));
}

std::size_t position_messages::slot_of(const action &what) const {
  const auto chunk = static_cast<std::size_t>(find_chunk(*p_, what.chunk) - p_->chunks.begin());
  return first_slot_[chunk] + static_cast<std::size_t>(what.slot);
}

status position_messages::move(const action &what) {
  const direction way = what.kind == action_kind::send ? direction::send : direction::receive;
  const std::size_t slot = slot_of(what);
  for (const part &each : parts_) {
    const message_entry &row = *each.of;
    if (row.way != way || row.chunk != what.chunk || row.peer_chunk != what.peer_chunk)
      continue;
    stream &s = context_->get_stream(p_->peers[row.peer].stream);
    communicator &pair = context_->get_peer(row.peer);
    view bytes;
    bytes.data = context_->at({row.at.arena, row.at.offset + what.slot * row.slot_stride});
    bytes.type = element_type::u8;
    bytes.rank = 1;
    bytes.sizes[0] = each.bytes;
    bytes.strides[0] = 1;
    WINDLASS_TRY(s.wait(computed_[slot]));
    WINDLASS_TRY(way == direction::send ? send(s, pair, bytes, 1 - pair.index())
                                        : receive(s, pair, bytes, 1 - pair.index()));
    WINDLASS_TRY(
        s.record(moved_[slot * static_cast<std::size_t>(p_->peers.size) + static_cast<std::size_t>(row.peer)]));
  }
  return ok_status();
}

status position_messages::begin(const action &what) {
  if (parts_.empty())
    return ok_status();
  const auto peers = static_cast<std::size_t>(p_->peers.size);
  for (std::size_t peer = 0, slot = slot_of(what); peer < peers; ++peer)
    WINDLASS_TRY(context_->compute().wait(moved_[slot * peers + peer]));
  return ok_status();
}

status position_messages::end(const action &what) {
  return parts_.empty() ? ok_status() : context_->compute().record(computed_[slot_of(what)]);
}

} // namespace windlass::rt
