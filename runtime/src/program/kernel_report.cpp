#include "kernel_report.h"

#include "windlass/rt/json.h"

#include <algorithm>
#include <cstdio>

namespace windlass::rt {

namespace {

std::vector<kernel_times::row> longest_first(std::vector<kernel_times::row> rows) {
  std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) { return a.seconds > b.seconds; });
  return rows;
}

} // namespace

double kernel_report::roof(const work &what) const {
  const double compute = flops_rate > 0 ? static_cast<double>(what.flops) / flops_rate : 0;
  const double memory = bytes_rate > 0 ? static_cast<double>(what.bytes) / bytes_rate : 0;
  return std::max(compute, memory);
}

std::string kernel_report::json() const {
  std::string text = "{\n \"version\": 1,\n \"rank\": 0,\n \"steps\": " + std::to_string(steps) +
                     ",\n \"step_seconds\": " + json_number(step_seconds) +
                     ",\n \"peak_flops_per_second\": " + json_number(peak_rate) +
                     ",\n \"flops_per_second\": " + json_number(flops_rate) +
                     ",\n \"bytes_per_second\": " + json_number(bytes_rate) + ",\n \"kernels\": [";
  const char *separator = "\n  ";
  for (const kernel_times::row &row : longest_first(times.rows())) {
    std::string sizes;
    for (const std::int64_t size : row.what.sizes)
      if (size != 0)
        sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    text += separator + ("{\"name\": " + json_string(row.what.name)) + ", \"sizes\": [" + sizes +
            "], \"calls\": " + std::to_string(row.calls) + ", \"seconds\": " + json_number(row.seconds) +
            ", \"flops_per_call\": " + std::to_string(row.what.flops) +
            ", \"bytes_per_call\": " + std::to_string(row.what.bytes) +
            ", \"roof_seconds\": " + json_number(roof(row.what) * static_cast<double>(row.calls)) + "}";
    separator = ",\n  ";
  }
  return text + "]\n}\n";
}

std::string kernel_report::table() const {
  struct line {
    std::string name;
    std::int64_t calls = 0;
    double seconds = 0, roof = 0, flops = 0, bytes = 0;
  };
  std::vector<line> lines;
  line sum = {"all kernels"};
  for (const kernel_times::row &row : times.rows()) {
    auto at = std::find_if(lines.begin(), lines.end(), [&](const line &l) { return l.name == row.what.name; });
    if (at == lines.end())
      at = lines.insert(lines.end(), {row.what.name});
    const auto calls = static_cast<double>(row.calls);
    for (line *to : {&*at, &sum}) {
      to->calls += row.calls;
      to->seconds += row.seconds;
      to->roof += roof(row.what) * calls;
      to->flops += static_cast<double>(row.what.flops) * calls;
      to->bytes += static_cast<double>(row.what.bytes) * calls;
    }
  }
  std::sort(lines.begin(), lines.end(), [](const line &a, const line &b) { return a.seconds > b.seconds; });
  lines.push_back(sum);
  char buffer[256];
  std::snprintf(buffer, sizeof buffer,
                "kernels of %lld steps, %.3f s; roof %.1f GFLOP/s, %.1f GB/s\n"
                "  %9s %6s %8s %9s %7s %6s  %s\n",
                static_cast<long long>(steps), step_seconds, flops_rate * 1e-9, bytes_rate * 1e-9, "ms/step", "share",
                "calls", "GFLOP/s", "GB/s", "roof", "kernel");
  std::string text = buffer;
  const double per_step = steps > 0 ? 1e3 / static_cast<double>(steps) : 0;
  for (const line &l : lines) {
    const double seconds = std::max(l.seconds, 1e-12);
    std::snprintf(buffer, sizeof buffer, "  %9.3f %5.1f%% %8lld %9.1f %7.1f %5.0f%%  ", l.seconds * per_step,
                  100 * l.seconds / std::max(step_seconds, 1e-12), static_cast<long long>(l.calls),
                  l.flops / seconds * 1e-9, l.bytes / seconds * 1e-9, 100 * l.roof / seconds);
    text += buffer + l.name + "\n";
  }
  return text;
}

} // namespace windlass::rt
