#include "control.h"

#include <algorithm>

namespace windlass::rt {

status control::create(transport &world) {
  rank_ = world.rank();
  size_ = world.size();
  room_.reserve(static_cast<std::size_t>(size_) * 64); // more than the steps of a run exchange
  if (size_ == 1)
    return ok_status();
  std::vector<std::int32_t> members;
  for (std::int32_t i = 0; i < size_; ++i)
    members.push_back(i);
  return world.make_communicator(members, group_);
}

status control::gather(const void *mine, std::int64_t bytes, std::vector<std::byte> &out) {
  const std::byte *from = static_cast<const std::byte *>(mine);
  if (size_ == 1) {
    out.assign(from, from + bytes);
    return ok_status();
  }
  out.resize(static_cast<std::size_t>(bytes * size_));
  return group_->all_gather(out.data(), from, bytes);
}

status control::share(std::string &text) {
  if (size_ == 1)
    return ok_status();
  span<std::int64_t> lengths;
  WINDLASS_TRY(gather(static_cast<std::int64_t>(text.size()), lengths));
  const std::int64_t length = lengths[0];
  text.resize(static_cast<std::size_t>(length));
  if (text.empty())
    return ok_status();
  return group_->broadcast(reinterpret_cast<std::byte *>(text.data()), length, 0);
}

status control::agree(const status &mine) {
  if (size_ == 1)
    return mine;
  struct report {
    std::int32_t code, kind;
    char message[1016];
  } own = {};
  own.code = static_cast<std::int32_t>(mine.code());
  // That of a wrong input is left open: whoever asks for the agreement may know what the input was.
  own.kind = static_cast<std::int32_t>(mine.kind() == diagnostic::input ? diagnostic::none : mine.kind());
  mine.message().copy(own.message, sizeof own.message - 1);
  span<std::int32_t> codes;
  WINDLASS_TRY(gather(own.code, codes));
  const std::int64_t failed =
      std::find_if(codes.begin(), codes.end(), [](std::int32_t code) { return code != 0; }) - codes.begin();
  if (failed == codes.size)
    return ok_status();
  span<report> all;
  WINDLASS_TRY(gather(own, all));
  const report &first = all[failed];
  return status(static_cast<status_code>(first.code), first.message).as(static_cast<diagnostic>(first.kind));
}

status control::barrier() { return size_ == 1 ? ok_status() : group_->barrier(); }

} // namespace windlass::rt
