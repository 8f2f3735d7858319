#include "windlass/Report/Run.h"

#include "Html.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"
#include "windlass/rt/file.h"
#include "windlass/rt/json.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>

using namespace windlass;
using namespace windlass::report;

namespace {

constexpr int64_t kMostBytes = 32 << 20;
/// The most commands of all positions, and bytes of one content.
constexpr int64_t kMostCommands = 1 << 20, kMostHeld = int64_t(1) << 50;
constexpr size_t kMostFunctions = 4096;

/// Returns a whole number in [0, most].
std::optional<int64_t> readNumber(const rt::json *value, int64_t most) {
  bool isOne = value && value->is_integer && value->integer >= 0 && value->integer <= most;
  return isOne ? std::optional(value->integer) : std::nullopt;
}

/// Returns the items of a field that is a list; null where it is none.
const std::vector<rt::json> *readList(const rt::json &row, std::string_view key) {
  const rt::json *list = row.find(key);
  return list && list->is_array() ? &list->items : nullptr;
}

/// Adds a layer whose bytes are given wherever they change, in the order of commands.
bool readLayer(const rt::json &row, int64_t commands, MemoryPicture &picture) {
  const rt::json *content = row.find("content");
  const std::vector<rt::json> *changes = readList(row, "bytes");
  if (!content || !content->is_string() || !changes || picture.layers.size() == kColours)
    return false;
  std::vector<double> values;
  double held = 0;
  for (const rt::json &pair : *changes) {
    if (!pair.is_array() || pair.items.size() != 2)
      return false;
    std::optional<int64_t> command = readNumber(&pair.items[0], commands),
                           bytes = readNumber(&pair.items[1], kMostHeld);
    if (!command || !bytes || *command < static_cast<int64_t>(values.size()))
      return false;
    values.resize(static_cast<size_t>(*command), held);
    held = static_cast<double>(*bytes);
  }
  values.resize(static_cast<size_t>(commands), held);
  picture.layers.push_back({content->string, std::move(values)});
  return true;
}

/// Reads a position of which `room` commands are left; returns how many it has.
std::optional<int64_t> readPosition(const rt::json &row, int64_t room, MemoryPicture &picture) {
  std::optional<int64_t> commands = readNumber(row.find("commands"), room);
  const std::vector<rt::json> *functions = readList(row, "functions"), *layers = readList(row, "layers");
  if (!commands || !functions || functions->size() > kMostFunctions || !layers)
    return std::nullopt;
  for (const rt::json &pair : *functions) {
    if (!pair.is_array() || pair.items.size() != 2 || !pair.items[0].is_string())
      return std::nullopt;
    std::optional<int64_t> first = readNumber(&pair.items[1], *commands);
    if (!first)
      return std::nullopt;
    picture.functions.emplace_back(pair.items[0].string, static_cast<size_t>(*first));
  }
  for (const rt::json &layer : *layers)
    if (!readLayer(layer, *commands, picture))
      return std::nullopt;
  return commands;
}

} // namespace

llvm::Expected<std::vector<MemoryPicture>> report::readStepMemory(const std::string &folder) {
  std::vector<MemoryPicture> pictures;
  std::string path = rt::join_path(folder, "memory.json"), text;
  if (!rt::is_file(path))
    return pictures;
  rt::json root;
  if (rt::status read = rt::read_text(path, kMostBytes, text); !read.is_ok())
    return makeError(read.message());
  if (rt::status parsed = rt::parse_json(text, root); !parsed.is_ok())
    return makeError(printable(path) + " is " + parsed.message());
  int64_t room = kMostCommands;
  auto readPositions = [&](const std::vector<rt::json> &positions) {
    return llvm::all_of(positions, [&](const rt::json &row) {
      std::optional<int64_t> commands = readPosition(row, room, pictures.emplace_back());
      room -= commands.value_or(0);
      return commands.has_value();
    });
  };
  if (const std::vector<rt::json> *positions = readList(root, "positions"); !positions || !readPositions(*positions))
    return makeError(printable(path) + " is not as programs write it; emit the program again, or remove the file");
  return pictures;
}
