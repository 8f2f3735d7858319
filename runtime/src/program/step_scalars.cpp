#include "step_scalars.h"

#include "windlass/rt/detail/backend.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>

namespace windlass::rt {

/// Values begin at multiples of it, so the bytes from one scalar to the next, this far behind, belong to no other
/// value.
constexpr std::int64_t alignment = 64;

std::int64_t step_scalars::run::bytes() const {
  return static_cast<std::int64_t>(numbers.size() - 1) * alignment + static_cast<std::int64_t>(sizeof(float));
}

status step_scalars::open(context &c, span<scalar_entry> rows, std::int32_t threads) {
  values_.resize(static_cast<std::size_t>(rows.size));
  std::vector<std::int64_t> sorted(values_.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::sort(sorted.begin(), sorted.end(), [&](std::int64_t a, std::int64_t b) {
    return std::tie(rows[a].at.arena, rows[a].at.offset) < std::tie(rows[b].at.arena, rows[b].at.offset);
  });
  for (const std::int64_t i : sorted) {
    const place &at = rows[i].at;
    if (runs_.empty() ||
        c.at(at) != runs_.back().to + alignment * static_cast<std::int64_t>(runs_.back().numbers.size()))
      runs_.push_back({c.at(at), {}, nullptr});
    runs_.back().numbers.push_back(static_cast<std::size_t>(i));
    if constexpr (detail::backend_has_device)
      if (runs_.back().staged == nullptr && c.get_arena(at.arena).kind() == memory_kind::device)
        runs_.back().staged = std::make_unique<staging>();
  }
  for (run &each : runs_)
    if (each.staged != nullptr)
      WINDLASS_TRY(each.staged->allocate(c.compute(), each.bytes(), threads));
  return ok_status();
}

status step_scalars::write() {
  for (run &each : runs_) {
    std::byte *out = each.to;
    if (each.staged != nullptr)
      WINDLASS_TRY(each.staged->take(out));
    for (std::size_t i = 0; i < each.numbers.size(); ++i)
      std::memcpy(out + static_cast<std::int64_t>(i) * alignment, &values_[each.numbers[i]], sizeof(float));
    if (each.staged != nullptr)
      WINDLASS_TRY(each.staged->send(each.to, each.bytes()));
  }
  return ok_status();
}

} // namespace windlass::rt
