#include "windlass/Report/Run.h"

#include "Html.h"

#include "windlass/Support/Printable.h"
#include "windlass/rt/file.h"
#include "windlass/rt/json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace windlass;
using namespace windlass::report;

namespace {

constexpr int64_t kMostBytes = 32 << 20;
constexpr size_t kMostRanks = 8, kMostCommands = 100'000, kParts = 1440;
/// The longest step: beyond it the parts of a microsecond would be lost.
constexpr double kMostMicroseconds = 1e12;

/// A command of one of the lanes, in microseconds.
struct Command {
  size_t lane;
  std::string name;
  double begin, length;
};

/// Gathers the commands of several ranks.
class TraceReader {
public:
  /// Reads a trace, which is called `of`; returns what is wrong with it.
  std::string read(const std::string &path, const std::string &of) {
    std::string text;
    rt::json root;
    if (rt::status read = rt::read_text(path, kMostBytes, text); !read.is_ok())
      return read.message();
    if (rt::status parsed = rt::parse_json(text, root); !parsed.is_ok())
      return printable(path) + " is " + parsed.message();
    const rt::json *events = root.find("traceEvents");
    if (!events || !events->is_array())
      return printable(path) + " is no trace";
    for (const rt::json &event : events->items)
      add(event, of);
    return "";
  }

  Timeline finish() const;

private:
  std::vector<std::string> lanes;
  std::vector<Command> commands;
  std::map<std::pair<std::string, int64_t>, size_t> numbers; // of lanes, by trace and thread
  bool isCut = false;

  void add(const rt::json &event, const std::string &of);
};

} // namespace

void TraceReader::add(const rt::json &event, const std::string &of) {
  const rt::json *name = event.find("name"), *kind = event.find("ph"), *thread = event.find("tid");
  if (!name || !name->is_string() || !kind || !kind->is_string() || !thread || !thread->is_integer)
    return;
  auto found = numbers.find({of, thread->integer});
  if (found == numbers.end()) {
    if (lanes.size() == kMostLanes) {
      isCut = true;
      return;
    }
    found = numbers.try_emplace({of, thread->integer}, lanes.size()).first;
    lanes.push_back(of + ", stream " + std::to_string(thread->integer));
  }
  if (kind->string == "M" && name->string == "thread_name") {
    const rt::json *arguments = event.find("args"), *stream = arguments ? arguments->find("name") : nullptr;
    if (stream && stream->is_string())
      lanes[found->second] = of + ", " + stream->string.substr(0, 60);
    return;
  }
  const rt::json *begin = event.find("ts"), *length = event.find("dur");
  auto isTime = [](const rt::json *value) {
    return value && value->kind == rt::json::type::number && value->number >= 0 && value->number <= kMostMicroseconds;
  };
  if (kind->string != "X" || !isTime(begin) || !isTime(length))
    return;
  isCut |= commands.size() == kMostCommands;
  if (commands.size() < kMostCommands)
    commands.push_back({found->second, name->string, begin->number, length->number});
}

Timeline TraceReader::finish() const {
  Timeline timeline;
  double first = kMostMicroseconds, last = 0;
  llvm::StringMap<double> seconds;
  for (const Command &command : commands) {
    first = std::min(first, command.begin);
    last = std::max(last, command.begin + command.length);
    seconds[command.name] += command.length;
  }
  if (last <= first)
    return timeline;
  // The kernels that take the most, and all others as one.
  std::vector<std::pair<double, std::string>> order;
  for (const auto &each : seconds)
    order.emplace_back(-each.second, each.first().str());
  llvm::sort(order);
  llvm::StringMap<size_t> occupations;
  for (const auto &[_, name] : order) {
    occupations[name] = std::min(timeline.occupations.size(), kColours - 1);
    if (timeline.occupations.size() < kColours)
      timeline.occupations.push_back(name);
  }
  if (order.size() > kColours)
    timeline.occupations.back() = "all others";
  timeline.seconds = (last - first) * 1e-6;
  for (const std::string &name : lanes)
    timeline.lanes.push_back({name, std::vector<std::vector<double>>(kParts, std::vector<double>(kColours))});
  double part = (last - first) / kParts;
  for (const Command &command : commands) {
    double begin = (command.begin - first) / part, end = begin + command.length / part;
    for (auto i = static_cast<size_t>(begin); i < kParts && static_cast<double>(i) < end; ++i)
      timeline.lanes[command.lane].parts[i][occupations[command.name]] +=
          std::min(end, static_cast<double>(i + 1)) - std::max(begin, static_cast<double>(i));
  }
  llvm::erase_if(timeline.lanes, [](const Lane &lane) {
    return llvm::all_of(
        lane.parts, [](const auto &shares) { return llvm::all_of(shares, [](double share) { return share == 0; }); });
  });
  if (isCut)
    timeline.note =
        llvm::formatv("There is more than the {0} commands and {1} streams that are drawn.", kMostCommands, kMostLanes);
  return timeline;
}

Timeline report::readLastStep(const std::string &folder, const std::string &predicted) {
  TraceReader reader;
  Timeline failed;
  if (!predicted.empty())
    failed.note = reader.read(predicted, "predicted");
  for (size_t rank = 0; rank < kMostRanks && failed.note.empty(); ++rank) {
    std::string path = rt::join_path(folder, llvm::formatv("traces/rank_{0:d5}.json", rank));
    if (!rt::is_file(path))
      break;
    failed.note = reader.read(path, "rank " + std::to_string(rank));
  }
  return failed.note.empty() ? reader.finish() : failed;
}
