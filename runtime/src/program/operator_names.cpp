#include "operator_names.h"

#include "windlass/rt/json.h"

#include <tuple>

namespace windlass::rt {

namespace {

constexpr std::size_t max_name_bytes = 1024; ///< the most bytes of one name; the emission cuts longer ones
constexpr std::int64_t max_chunk = 1 << 16;

status not_as_emitted(const std::string &what) { return bad_input("operators.json " + what + "; emit it again"); }

} // namespace

status operator_names::read(std::string_view text, std::int32_t position, std::int32_t streams) {
  names_.clear();
  commands_.clear();
  json root;
  WINDLASS_TRY(parse_json(text, root));
  const json *version = root.find("version"), *names = root.find("names"), *positions = root.find("positions");
  if (!version || !version->is_integer || version->integer != 4)
    return not_as_emitted("is not of version 4");
  if (!names || !names->is_array() || !positions || !positions->is_array())
    return not_as_emitted("lacks 'names' or 'positions'");
  for (const json &name : names->items) {
    if (!name.is_string() || name.string.size() > max_name_bytes)
      return not_as_emitted("has a name that is no text of at most " + std::to_string(max_name_bytes) + " bytes");
    names_.push_back(name.string);
  }
  if (positions->items.size() <= static_cast<std::size_t>(position))
    return not_as_emitted("lacks position " + std::to_string(position));
  const json &chunks = positions->items[static_cast<std::size_t>(position)];
  if (!chunks.is_array())
    return not_as_emitted("has a position that is no list of chunks");
  for (const json &chunk : chunks.items)
    WINDLASS_TRY(read_chunk(chunk, streams));
  return ok_status();
}

status operator_names::read_chunk(const json &chunk, std::int32_t streams) {
  const json *number = chunk.is_object() ? chunk.find("chunk") : nullptr;
  if (!number || !number->is_integer || number->integer < 0 || number->integer > max_chunk)
    return not_as_emitted("has a chunk without a number");
  const auto own = static_cast<std::int32_t>(number->integer);
  for (auto [kind, is_last, key] :
       {std::tuple(action_kind::forward, false, "forward"), std::tuple(action_kind::backward, false, "backward"),
        std::tuple(action_kind::backward, true, "last_backward"),
        std::tuple(action_kind::weight_gradient, false, "weight_gradient"),
        std::tuple(action_kind::weight_gradient, true, "last_weight_gradient"),
        std::tuple(action_kind::reduce, false, "reduce"), std::tuple(action_kind::update, false, "update")}) {
    const json *of_streams = chunk.find(key);
    if (!of_streams || !of_streams->is_array() || of_streams->items.size() != static_cast<std::size_t>(streams))
      return not_as_emitted(std::string("has no list of the commands of '") + key + "' for each of " +
                            std::to_string(streams) + " streams");
    for (const json &stream : of_streams->items) {
      std::vector<std::size_t> &places = commands_[{own, kind, is_last}].emplace_back();
      for (const json &place : stream.items) {
        if (!stream.is_array() || !place.is_unsigned || place.natural >= names_.size())
          return not_as_emitted("has a command of a name that it lacks");
        places.push_back(static_cast<std::size_t>(place.natural));
      }
    }
  }
  return ok_status();
}

std::vector<std::string_view> operator_names::of(std::size_t stream, const std::vector<const action *> &actions) const {
  std::vector<std::string_view> out;
  for (const action *each : actions) {
    const bool is_last =
        (each->kind == action_kind::backward || each->kind == action_kind::weight_gradient) && each->is_last;
    const auto found = commands_.find({each->chunk, each->kind, is_last});
    if (found == commands_.end() || stream >= found->second.size())
      continue; // a message, or a stream of messages
    for (std::size_t place : found->second[stream])
      out.push_back(names_[place]);
  }
  return out;
}

} // namespace windlass::rt
