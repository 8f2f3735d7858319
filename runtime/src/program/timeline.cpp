#include "timeline.h"

#include "windlass/rt/file.h"
#include "windlass/rt/json.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace windlass::rt {

namespace {

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", seconds * 1e6);
  return text;
}

std::string sizes_of(const work &what) {
  std::string out;
  for (std::int64_t size : what.sizes) {
    if (size == 0)
      break;
    out += (out.empty() ? "" : ", ") + std::to_string(size);
  }
  return "[" + out + "]";
}

std::string metadata(const char *what, const std::string &process, std::size_t thread, const std::string &name) {
  return std::string("{\"name\": \"") + what + "\", \"ph\": \"M\", \"pid\": " + process +
         ", \"tid\": " + std::to_string(thread) + ", \"args\": {\"name\": " + json_string(name) + "}}";
}

} // namespace

std::string timeline_text(std::int32_t rank, const span<stream_entry> &streams, const std::vector<kernel_times> &times,
                          const std::vector<std::vector<std::string_view>> &operators) {
  const std::string process = std::to_string(rank + 1);
  double first = std::numeric_limits<double>::infinity();
  for (const kernel_times &of_stream : times)
    for (const kernel_times::command &command : of_stream.commands())
      first = std::min(first, command.begin);
  std::string out = "{\"traceEvents\": [\n" + metadata("process_name", process, 0, "rank " + std::to_string(rank));
  for (std::size_t i = 0; i < times.size(); ++i) {
    out += ",\n" + metadata("thread_name", process, i, streams[static_cast<std::int64_t>(i)].name);
    for (std::size_t k = 0; k < times[i].commands().size(); ++k) {
      const kernel_times::command &command = times[i].commands()[k];
      const work &what = command.what;
      const std::string_view of = operators[i].empty() ? std::string_view() : operators[i][k];
      out += std::string(",\n{\"name\": ") + json_string(what.is_map ? "map" : what.name) +
             ", \"ph\": \"X\", \"pid\": " + process + ", \"tid\": " + std::to_string(i) +
             ", \"ts\": " + microseconds(command.begin - first) +
             ", \"dur\": " + microseconds(command.end - command.begin) + ", \"args\": {\"source\": \"measured\", " +
             (of.empty() ? "" : "\"operator\": " + json_string(of) + ", ") +
             (what.is_map ? "\"computes\": " + json_string(what.name) + ", " : "") +
             "\"flops\": " + std::to_string(what.flops) + ", \"bytes\": " + std::to_string(what.bytes) +
             ", \"sizes\": " + sizes_of(what) + "}}";
    }
  }
  return out + "\n]}\n";
}

std::string timeline_name(std::int32_t rank) {
  char name[32];
  std::snprintf(name, sizeof name, "rank_%05d.json", static_cast<int>(rank));
  return name;
}

} // namespace windlass::rt
