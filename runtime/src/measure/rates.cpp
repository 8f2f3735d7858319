#include "rates.h"

#include "windlass/rt/file.h"
#include "windlass/rt/kernel_times.h"
#include "windlass/rt/kernels.h"
#include "windlass/rt/streams.h"

#include "windlass/rt/detail/sample.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

namespace windlass::rt {

namespace {

constexpr int turns = 5;
constexpr std::int64_t most_bytes = std::int64_t(64) << 20;

/// Sets `out` to `amount`, which one turn moves, over the median of the turns' seconds; the first turn does not count.
template <class Turn> status rate_of(double amount, Turn turn, double &out) {
  std::vector<turn_time> times;
  for (int i = 0; i <= turns; ++i) {
    const double start = clock_seconds();
    WINDLASS_TRY(turn());
    if (i > 0)
      times.push_back({clock_seconds() - start, 0});
  }
  out = amount / std::max(summarize(std::move(times), turns).median, 1e-9);
  return {};
}

/// A block of the host's pinned memory.
class pinned_block {
public:
  pinned_block() = default;
  pinned_block(const pinned_block &) = delete;
  pinned_block &operator=(const pinned_block &) = delete;
  ~pinned_block() {
    if constexpr (detail::backend_has_device)
      if (data != nullptr)
        detail::free_memory(memory_kind::pinned, data);
  }
  status allocate(std::int64_t bytes) {
    if constexpr (detail::backend_has_device)
      WINDLASS_TRY(detail::allocate_memory(memory_kind::pinned, bytes, "measured", data));
    return {};
  }
  std::byte *data = nullptr;
};

status measure_copies(context &c, std::vector<machine_rate> &out) {
  const std::int64_t bytes = std::min(most_bytes, c.get_arena(0).size() / 2) / 4096 * 4096;
  stream &there = c.compute();
  const std::unique_ptr<stream> back = make_worker_stream(1, nullptr, 0);
  std::byte *const first = c.get_arena(0).at(0), *const second = c.get_arena(0).at(bytes);
  double rate = 0;
  const auto moved = static_cast<double>(bytes);
  WINDLASS_TRY(rate_of(
      2 * moved,
      [&]() -> status {
        WINDLASS_TRY(copy(there, dense_view(second, element_type::f32, {bytes / 4}),
                          dense_view(first, element_type::f32, {bytes / 4})));
        return there.synchronize();
      },
      rate));
  out.push_back({"memory_bytes_per_second", rate}); // read and written
  if constexpr (detail::backend_has_device) {
    pinned_block to, from;
    WINDLASS_TRY(to.allocate(bytes));
    WINDLASS_TRY(from.allocate(bytes));
    const auto send = [&] { return detail::copy_to_device(there, first, to.data, bytes); };
    const auto fetch = [&] { return detail::copy_to_host(*back, from.data, second, bytes); };
    WINDLASS_TRY(rate_of(
        moved,
        [&]() -> status {
          WINDLASS_TRY(send());
          return there.synchronize();
        },
        rate));
    out.push_back({"host_to_device_bytes_per_second", rate});
    WINDLASS_TRY(rate_of(moved, fetch, rate));
    out.push_back({"device_to_host_bytes_per_second", rate});
    WINDLASS_TRY(rate_of(
        2 * moved,
        [&]() -> status {
          WINDLASS_TRY(send());
          WINDLASS_TRY(fetch());
          return there.synchronize();
        },
        rate));
    out.push_back({"both_ways_bytes_per_second", rate}); // together
    WINDLASS_TRY(rate_of(moved, [&] { return pinned_block().allocate(bytes); }, rate));
    out.push_back({"pinned_bytes_per_second", rate});
  }
  return {};
}

/// Measures AdamW of f32 on the host, as programs whose optimizer runs there call it.
status measure_host_adam(std::int32_t threads, std::vector<machine_rate> &out) {
  constexpr std::int64_t elements = 1 << 22;
  const auto floats = [](std::vector<float> &of) {
    return dense_view(reinterpret_cast<std::byte *>(of.data()), element_type::f32,
                      {static_cast<std::int64_t>(of.size())});
  };
  std::vector<float> w(elements, 1), m(elements, 0.5f), v(elements, 0.25f), g(elements, 0.1f),
      numbers = {1e-3f, 0.1f, 1};
  const auto number = [&](std::size_t i) {
    return dense_view(reinterpret_cast<std::byte *>(&numbers[i]), element_type::f32, {});
  };
  const view small = number(0), tenth = number(1), one = number(2);
  const std::unique_ptr<stream> host = make_host_stream(threads);
  double rate = 0;
  WINDLASS_TRY(rate_of(
      static_cast<double>(elements),
      [&]() -> status {
        WINDLASS_TRY(adamw(*host, floats(w), floats(m), floats(v), view(), floats(g), small, tenth, small, small, small,
                           one, one, one, decay_mode::decoupled));
        return host->synchronize();
      },
      rate));
  out.push_back({"host_adam_elements_per_second", rate});
  return {};
}

/// Measures writing to the disk, and reading from it where the system gives up the pages that it holds.
status measure_disk(const std::string &folder, std::vector<machine_rate> &out) {
  const std::string path = join_path(folder, ".windlass-measured-disk");
  const std::vector<char> block(std::size_t(4) << 20, 'w');
  const auto failed = [&](const char *what) {
    unlink(path.c_str());
    return bad_input(std::string("cannot ") + what + " " + quote(path) +
                     " to measure the disk: " + std::strerror(errno))
        .as(diagnostic::output);
  };
  double rate = 0;
  const auto moved = static_cast<double>(most_bytes);
  WINDLASS_TRY(rate_of(
      moved,
      [&]() -> status {
        const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        bool is_good = file >= 0;
        for (std::int64_t at = 0; at < most_bytes && is_good; at += static_cast<std::int64_t>(block.size()))
          is_good = write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size());
        is_good = is_good && fsync(file) == 0;
        if (file >= 0)
          close(file);
        return is_good ? ok_status() : failed("write");
      },
      rate));
  out.push_back({"disk_write_bytes_per_second", rate});
  std::vector<char> buffer(block.size());
  WINDLASS_TRY(rate_of(
      moved,
      [&]() -> status {
        const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0)
          return failed("read");
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        std::int64_t seen = 0;
        for (ssize_t got = 1; got > 0; seen += std::max<ssize_t>(got, 0))
          got = read(file, buffer.data(), buffer.size());
        close(file);
        return seen == most_bytes ? ok_status() : failed("read");
      },
      rate));
  out.push_back({"disk_read_bytes_per_second", rate});
  unlink(path.c_str());
  return {};
}

} // namespace

status measure_rates(context &c, std::int32_t threads, const std::string &folder, std::vector<machine_rate> &out) {
  WINDLASS_TRY(measure_copies(c, out));
  WINDLASS_TRY(measure_host_adam(threads, out));
  return measure_disk(folder, out);
}

} // namespace windlass::rt
