// A strict JSON reader for small documents (manifests, headers) and helpers that write JSON text.
#ifndef WINDLASS_RT_JSON_H
#define WINDLASS_RT_JSON_H

#include "windlass/rt/status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace windlass::rt {

/// A JSON value. Members of an object keep the order of the text.
struct json {
  enum class type { null, boolean, number, string, array, object };
  type kind = type::null;
  bool boolean = false;
  bool is_integer = false;  ///< the number has no fraction or exponent and fits into `integer`
  bool is_unsigned = false; ///< likewise into `natural`
  double number = 0;
  std::int64_t integer = 0;
  std::uint64_t natural = 0;
  std::string string;
  std::vector<std::string> keys; ///< of an object, one per item
  std::vector<json> items;

  bool is_object() const { return kind == type::object; }
  bool is_array() const { return kind == type::array; }
  bool is_string() const { return kind == type::string; }
  /// Returns the member of that name, or null.
  const json *find(std::string_view key) const;
};

struct json_limits {
  int depth = 32;
  std::int64_t values = 1 << 21;
};

/// Parses one document. Refused: duplicate keys, numbers out of double's range, invalid UTF-8, anything after the
/// value, and documents beyond the limits. Errors give the byte where the text stops being JSON.
status parse_json(std::string_view text, json &out, const json_limits &limits = {});

/// Reads a document from front to back, so that a document of millions of values is never held as a whole. It refuses
/// what `parse_json` refuses; `limits.values` holds for each value that is read as a tree.
class json_reader {
public:
  explicit json_reader(std::string_view text, const json_limits &limits = {}) : text_(text), limits_(limits) {}
  /// Reads an object: `member` gets each key in turn and reads the value behind it.
  status object(const std::function<status(std::string &key)> &member);
  /// Reads an array: `element` reads each of its values.
  status array(const std::function<status()> &element);
  /// Reads a value of any kind.
  status value(json &out);
  /// Checks that nothing follows.
  status end();

private:
  status fail(const char *why) const;
  bool peek(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c);
  bool take(std::string_view word);
  void skip_space();
  status tree(json &out);
  status hexadecimal(std::uint32_t &out);
  status escape(std::string &out);
  status string(std::string &out);
  std::size_t digits();
  status number(json &out);

  std::string_view text_;
  json_limits limits_;
  std::size_t at_ = 0;
  std::int64_t values_ = 0;
  int depth_ = 0;
};

/// Returns `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
/// Returns the shortest text that reads back as the same value; null for NaN and infinities.
std::string json_number(double value);
std::string json_number(float value);
/// Appends `json_number(value)` to `out`.
void append_json_number(std::string &out, double value);
void append_json_number(std::string &out, float value);

} // namespace windlass::rt

#endif
