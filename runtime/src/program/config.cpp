// --config FILE: settings of a run as one JSON object, {"lr": 0.001, "data": ["a.bin", "b.bin"], "bytes": true}.
#include "options.h"

#include "windlass/rt/file.h"
#include "windlass/rt/json.h"

namespace windlass::rt {

namespace {

/// Gives the text of a value as a flag would have it; false where no flag could.
bool flag_text(const json &value, std::string &out) {
  switch (value.kind) {
  case json::type::string:
    out = value.string;
    return true;
  case json::type::number:
    out = value.is_unsigned  ? std::to_string(value.natural)
          : value.is_integer ? std::to_string(value.integer)
                             : json_number(value.number);
    return true;
  default:
    return false;
  }
}

/// Gives the values of an entry, each for a flag of its own: a list of texts is as many flags, a list of numbers is
/// one.
bool flag_values(const json &value, std::vector<std::string> &out) {
  std::string text;
  bool joins = !value.items.empty();
  for (const json &item : value.items)
    joins &= item.kind == json::type::number;
  if (!value.is_array()) {
    out = {""};
    return flag_text(value, out[0]);
  }
  for (const json &item : value.items) {
    if (!flag_text(item, text))
      return false;
    if (joins && !out.empty())
      out[0] += "," + text;
    else
      out.push_back(text);
  }
  return !out.empty();
}

} // namespace

status read_config(const std::string &path, std::vector<std::string> &flags) {
  std::string text;
  WINDLASS_TRY(read_text(path, 1 << 20, text));
  json root;
  if (status parsed = parse_json(text, root); !parsed.is_ok())
    return bad_input(quote(path) + " is " + parsed.message());
  if (!root.is_object())
    return bad_input(quote(path) + " is not a JSON object of settings");
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    const std::string &key = root.keys[i];
    const json &item = root.items[i];
    if (key.empty() || key[0] == '-' || key.find('=') != std::string::npos || key == "config" || key == "help")
      return bad_input(quote(path) + " holds " + quote(key) + ", which is no setting");
    std::string flag = (key.size() == 1 ? "-" : "--") + key;
    if (item.kind == json::type::null || (item.kind == json::type::boolean && !item.boolean))
      continue;
    if (item.kind == json::type::boolean) {
      flags.push_back(flag);
      continue;
    }
    std::vector<std::string> values;
    if (!flag_values(item, values))
      return bad_input(quote(path) + " gives " + quote(key) +
                       " a value that is no text, number, boolean or list of them");
    for (const std::string &value : values) {
      if (key.size() > 1) {
        flags.push_back(flag + "=" + value);
        continue;
      }
      flags.push_back(flag);
      flags.push_back(value);
    }
  }
  return ok_status();
}

} // namespace windlass::rt
