#include "local_input.h"

#include "windlass/rt/detail/backend.h"

#include <utility>

namespace windlass::rt {

status local_input::open(context &c, std::int32_t slots, std::int32_t threads) {
  const std::int64_t bytes = input_.elements() * size_of(job_.inputs[row_.input].type);
  for (std::int32_t slot = 0; slot < slots; ++slot)
    slots_.push_back(c.at({row_.at.arena, row_.at.offset + slot * row_.slot_stride}));
  if constexpr (detail::backend_has_device)
    if (bytes > 0 && c.get_arena(row_.at.arena).kind() == memory_kind::device) {
      staging_ = std::make_unique<staging>();
      return staging_->allocate(c.compute(), bytes, threads);
    }
  return ok_status();
}

status local_input::read_staged(data_source &from, std::uint64_t seed, const micro_batch_range &which) {
  std::byte *block = nullptr;
  WINDLASS_TRY(staging_->take(block));
  return input_.read(from, seed, which, block);
}

status local_input::write(data_source &from, std::uint64_t seed, const micro_batch_range &which, std::int32_t slot) {
  std::byte *to = slots_[static_cast<std::size_t>(slot)];
  if (staging_ == nullptr)
    return input_.read(from, seed, which, to);
  const std::optional<read_block> ahead = std::exchange(ahead_, std::nullopt);
  WINDLASS_TRY(ahead && ahead->from == &from && ahead->first == which.first ? ahead->result
                                                                            : read_staged(from, seed, which));
  return staging_->send(to, input_.elements() * size_of(job_.inputs[row_.input].type));
}

void local_input::read_ahead(data_source &from, std::uint64_t seed, const micro_batch_range &which) {
  if (staging_ != nullptr)
    ahead_ = {&from, which.first, read_staged(from, seed, which)};
}

} // namespace windlass::rt
