#include "progress.h"

#include "windlass/rt/kernel_times.h"

#include <cstdio>

#include <unistd.h>

namespace windlass::rt {

std::string short_number(double value) {
  char text[32];
  if (value < 10000)
    std::snprintf(text, sizeof text, "%.0f", value);
  else if (value < 1e7)
    std::snprintf(text, sizeof text, "%.1fk", value / 1e3);
  else
    std::snprintf(text, sizeof text, "%.1fM", value / 1e6);
  return text;
}

std::string short_bytes(double bytes) {
  const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit)
    bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

std::string short_loss(double loss) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", loss);
  return text;
}

void progress::open(bool wanted, std::int64_t steps) {
  is_open_ = wanted && ::isatty(2) == 1;
  steps_ = steps;
}

void progress::show(const step_metrics &row) {
  double now = clock_seconds();
  // Redrawing more often than the eye follows only costs time.
  if (!is_open_ || (now - last_ < 0.1 && row.step != steps_))
    return;
  last_ = now;
  is_shown_ = true;
  std::fprintf(stderr, "\r\033[Kstep %lld/%lld  loss %s", static_cast<long long>(row.step),
               static_cast<long long>(steps_), short_loss(row.loss).c_str());
  if (row.tokens > 0 && row.seconds > 0)
    std::fprintf(stderr, "  %s tokens/s", short_number(row.tokens / row.seconds).c_str());
  std::fflush(stderr);
}

void progress::clear() {
  if (is_shown_)
    std::fprintf(stderr, "\r\033[K");
  is_shown_ = false;
}

} // namespace windlass::rt
