#include "placement.h"

#include "windlass/rt/detail/backend.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace windlass::rt {

namespace {

cpu_set_t usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    CPU_ZERO(&set);
  return set;
}

/// Returns memory node, package, core and number.
std::array<std::int64_t, 4> position_of(std::int32_t processor) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(processor);
  const auto number = [&](const char *file) {
    std::int64_t value = 0;
    std::ifstream(folder + "/topology/" + file) >> value;
    return value;
  };
  std::int64_t node = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const std::string name = entry->path().filename(); name.compare(0, 4, "node") == 0)
      node = std::strtoll(name.c_str() + 4, nullptr, 10);
  return {node, number("physical_package_id"), number("core_id"), processor};
}

/// Returns whether the user told OpenMP where threads go.
bool is_bound_by_openmp() {
  for (const char *name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"})
    if (std::getenv(name) != nullptr)
      return true;
  return false;
}

} // namespace

rank_place own_place() {
  rank_place out = {};
  std::string name;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> name;
  name.copy(out.host, sizeof out.host - 1);
  out.processors = usable_processors();
  out.instructions = detail::instructions();
  return out;
}

std::vector<std::int32_t> in_order_of_place(const cpu_set_t &processors) {
  std::vector<std::array<std::int64_t, 4>> places;
  for (std::int32_t i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &processors))
      places.push_back(position_of(i));
  std::sort(places.begin(), places.end());
  std::vector<std::int32_t> out;
  for (const std::array<std::int64_t, 4> &place : places)
    out.push_back(static_cast<std::int32_t>(place[3]));
  return out;
}

sharers sharers_of(span<rank_place> ranks, std::int32_t rank) {
  sharers out;
  const rank_place &own = ranks[rank];
  for (std::int32_t i = 0; i < ranks.size; ++i) {
    const rank_place &other = ranks[i];
    if (std::strcmp(other.host, own.host) != 0)
      continue;
    if (!CPU_EQUAL(&other.processors, &own.processors)) {
      out.all = false;
      continue;
    }
    out.index += i < rank ? 1 : 0;
    ++out.count;
  }
  return out;
}

std::vector<std::int32_t> share_of(const std::vector<std::int32_t> &processors, std::int32_t count,
                                   std::int32_t index) {
  const auto size = static_cast<std::int64_t>(processors.size());
  if (size < count)
    return {};
  return {processors.begin() + size * index / count, processors.begin() + size * (index + 1) / count};
}

status take_place(control &ranks, bool is_process, const options &o, std::int32_t &threads) {
  detail::limit_instructions(o.instructions);
  const rank_place own = own_place();
  span<rank_place> all;
  WINDLASS_TRY(ranks.gather(own, all));
  // Sums are rounded alike on all ranks, which may hold the same values.
  for (const rank_place &each : all)
    detail::limit_instructions(each.instructions);
  const sharers among = sharers_of(all, ranks.rank());
  std::int32_t processors = CPU_COUNT(&own.processors) / among.count;
  const bool may_bind = o.binds && is_process && !detail::backend_has_device;
  if (may_bind && among.count > 1 && among.all && own.host[0] != 0 && !is_bound_by_openmp()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::int32_t each : share_of(in_order_of_place(own.processors), among.count, among.index))
      CPU_SET(each, &set);
    // Where the system refuses, the rank runs as it did.
    if (CPU_COUNT(&set) > 0 && sched_setaffinity(0, sizeof set, &set) == 0)
      processors = CPU_COUNT(&set);
  }
  threads = o.threads > 0 ? o.threads : std::max(1, processors);
  return ok_status();
}

std::string describe_processors() {
  const cpu_set_t set = usable_processors();
  std::string out;
  for (std::int32_t first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &set))
      continue;
    std::int32_t last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
      ++last;
    out += (out.empty() ? "" : ",") + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
    first = last;
  }
  return out;
}

} // namespace windlass::rt
