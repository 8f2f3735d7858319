#include "windlass/rt/host_copy.h"

#include "windlass/rt/detail/backend.h"

namespace windlass::rt {

host_copy::host_copy(context &c, const place &from, std::int64_t bytes)
    : compute_(c.compute()), memory_(c.at(from)), bytes_(bytes) {
  const memory_kind kind = c.get_arena(from.arena).kind();
  if (kind == memory_kind::disk && detail::backend_moves_data) {
    file_ = c.get_arena(from.arena).file();
    offset_ = from.offset;
  }
  if (kind == memory_kind::disk || (detail::backend_has_device && kind == memory_kind::device))
    own_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes));
}

status host_copy::load() {
  if (file_) {
    WINDLASS_TRY(compute_.synchronize());
    return file_->read(offset_, own_.get(), bytes_);
  }
  if constexpr (detail::backend_has_device)
    return own_ ? detail::copy_to_host(compute_, own_.get(), memory_, bytes_) : compute_.synchronize();
  return {};
}

status host_copy::store() {
  if (file_)
    return file_->write(offset_, own_.get(), bytes_);
  if constexpr (detail::backend_has_device)
    if (own_)
      return detail::copy_to_device(compute_, memory_, own_.get(), bytes_);
  return {};
}

} // namespace windlass::rt
