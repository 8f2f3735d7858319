#include "staging.h"

#include "windlass/rt/detail/backend.h"

namespace windlass::rt {

status staging::allocate(stream &s, std::int64_t bytes, std::int32_t threads) {
  stream_ = &s;
  bytes_ = bytes;
  return blocks_.allocate(2 * bytes, "input", memory_kind::pinned, threads);
}

status staging::take(std::byte *&out) {
  out = blocks_.at(static_cast<std::int64_t>(next()) * bytes_);
  if constexpr (detail::backend_has_device)
    return sends_ < 2 ? status() : detail::wait_on_host(*stream_, copied_[next()]);
  return ok_status();
}

status staging::send(std::byte *to, std::int64_t bytes) {
  event &copied = copied_[next()];
  const std::byte *from = blocks_.at(static_cast<std::int64_t>(next()) * bytes_);
  ++sends_;
  if constexpr (detail::backend_has_device)
    WINDLASS_TRY(detail::copy_to_device(*stream_, to, from, bytes));
  return stream_->record(copied);
}

} // namespace windlass::rt
