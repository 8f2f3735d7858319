// --config FILE: settings of a run as one JSON object, {"lr": 0.001, "data": ["a.bin", "b.bin"], "bytes": true}.
#include "options.h"

#include "windlass/rt/file.h"
#include "windlass/rt/json.h"

namespace windlass::rt {

namespace {

/// The text of a value as a flag would have it; false where a flag cannot.
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
  case json::type::array:
    out.clear();
    for (const json &item : value.items) {
      std::string text;
      if (item.is_array() || !flag_text(item, text))
        return false;
      out += (out.empty() ? "" : ",") + text;
    }
    return true;
  default:
    return false;
  }
}

} // namespace

status read_config(const std::string &path, std::vector<std::string> &flags) {
  std::string text, value;
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
    } else if (!flag_text(item, value)) {
      return bad_input(quote(path) + " gives " + quote(key) + " a value that is no text, number, boolean or list");
    } else if (key.size() == 1) {
      flags.push_back(flag);
      flags.push_back(value);
    } else {
      flags.push_back(flag + "=" + value);
    }
  }
  return ok_status();
}

} // namespace windlass::rt
