#include "windlass/rt/host_copy.h"

#include "windlass/rt/detail/backend.h"

namespace windlass::rt {

host_copy::host_copy(context &c, std::int64_t offset, std::int64_t bytes)
    : compute_(c.compute()), memory_(c.device().at(offset)), bytes_(bytes) {
  if constexpr (detail::backend_has_device)
    own_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes));
}

status host_copy::load() {
  if constexpr (detail::backend_has_device)
    return detail::copy_to_host(compute_, own_.get(), memory_, bytes_);
  return {};
}

status host_copy::store() {
  if constexpr (detail::backend_has_device)
    return detail::copy_to_device(compute_, memory_, own_.get(), bytes_);
  return {};
}

} // namespace windlass::rt
