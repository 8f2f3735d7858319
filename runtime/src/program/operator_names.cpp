#include "operator_names.h"

#include "windlass/rt/json.h"

#include <tuple>

namespace windlass::rt {

namespace {

constexpr std::size_t max_name_bytes = 1024; ///< the most bytes of one name; the emission cuts longer ones

status not_as_emitted(const std::string &what) { return bad_input("operators.json " + what + "; emit it again"); }

} // namespace

status operator_names::read(std::string_view text, std::int32_t streams) {
  names_.clear();
  commands_.clear();
  json root;
  WINDLASS_TRY(parse_json(text, root));
  const json *version = root.find("version"), *names = root.find("names"), *commands = root.find("commands");
  if (!version || !version->is_integer || version->integer != 2)
    return not_as_emitted("is not of version 2");
  if (!names || !names->is_array() || !commands || !commands->is_object())
    return not_as_emitted("lacks 'names' or 'commands'");
  for (const json &name : names->items) {
    if (!name.is_string() || name.string.size() > max_name_bytes)
      return not_as_emitted("has a name that is no text of at most " + std::to_string(max_name_bytes) + " bytes");
    names_.push_back(name.string);
  }
  for (auto [kind, is_last, key] :
       {std::tuple(action_kind::forward, false, "forward"), std::tuple(action_kind::backward, false, "backward"),
        std::tuple(action_kind::backward, true, "last_backward"), std::tuple(action_kind::reduce, false, "reduce"),
        std::tuple(action_kind::update, false, "update")}) {
    const json *of_streams = commands->find(key);
    if (!of_streams || !of_streams->is_array() || of_streams->items.size() != static_cast<std::size_t>(streams))
      return not_as_emitted(std::string("has no list of the commands of '") + key + "' for each of " +
                            std::to_string(streams) + " streams");
    for (const json &stream : of_streams->items) {
      std::vector<std::size_t> &places = commands_[{kind, is_last}].emplace_back();
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
  for (const action *each : actions)
    for (std::size_t place : commands_.at({each->kind, each->kind == action_kind::backward && each->is_last})[stream])
      out.push_back(names_[place]);
  return out;
}

} // namespace windlass::rt
