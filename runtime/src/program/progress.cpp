#include "progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

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

std::string short_duration(double seconds) {
  struct unit {
    double seconds;
    const char *name;
  };
  constexpr unit units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
  const double whole = std::round(std::min(seconds, 1e9));
  std::size_t first = 0;
  while (first + 1 < std::size(units) && whole < units[first].seconds)
    ++first;
  char text[32];
  const double count = std::floor(whole / units[first].seconds);
  if (first + 1 == std::size(units))
    std::snprintf(text, sizeof text, "%.0f %s", count, units[first].name);
  else
    std::snprintf(text, sizeof text, "%.0f %s %.0f %s", count, units[first].name,
                  std::floor((whole - count * units[first].seconds) / units[first + 1].seconds), units[first + 1].name);
  return text;
}

void smoothed_rate::add(double elapsed, double busy, double units) {
  // Long steps fade with their number, so that a mean is always one of several.
  constexpr double memory_seconds = 10, memory_steps = 5;
  const double kept = std::exp(-std::min(elapsed / memory_seconds, 1 / memory_steps));
  steps_ = steps_ * kept + 1;
  elapsed_ = elapsed_ * kept + elapsed;
  busy_ = busy_ * kept + busy;
  units_ = units_ * kept + units;
}

void progress::open(progress_style style, std::int64_t steps) {
  style_ = style != progress_style::automatic ? style
           : ::isatty(2) == 1                 ? progress_style::renewed
                                              : progress_style::lines;
  steps_ = steps;
}

void progress::show(const step_metrics &row, double now) {
  if (style_ == progress_style::off)
    return;
  const bool has_tokens = row.tokens > 0;
  // The first step warms caches up: it says nothing about those that follow.
  if (last_step_ > 0)
    rate_.add(now - last_step_, row.seconds, has_tokens ? row.tokens : row.samples);
  last_step_ = now;
  // Redrawing more often than the eye follows only costs time, and a log of lines is to be read as a whole.
  const bool is_renewed = style_ == progress_style::renewed;
  if (last_shown_ > 0 && now - last_shown_ < (is_renewed ? 0.1 : 5.0) && row.step != steps_)
    return;
  last_shown_ = now;
  is_shown_ = is_renewed;
  // Written at once: a launcher forwards what it reads piece by piece.
  line_.start() << (is_renewed ? "\r\033[K" : "") << "step " << row.step << "/" << steps_ << "  loss "
                << short_loss(row.loss);
  if (const double rate = rate_.units_per_second(); rate > 0)
    line_ << "  " << short_number(rate) << (has_tokens ? " tokens/s" : " samples/s");
  if (const double seconds = rate_.seconds_per_step(); seconds > 0 && row.step < steps_)
    line_ << "  " << short_duration(seconds * static_cast<double>(steps_ - row.step)) << " left";
  if (!is_renewed)
    line_ << "\n";
  std::fwrite(line_.text().data(), 1, line_.text().size(), stderr);
  std::fflush(stderr);
}

void progress::clear() {
  if (is_shown_)
    std::fprintf(stderr, "\r\033[K");
  is_shown_ = false;
}

} // namespace windlass::rt
