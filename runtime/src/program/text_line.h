// A line of text that is built at every step in memory that it keeps.
#ifndef WINDLASS_RT_SRC_PROGRAM_TEXT_LINE_H
#define WINDLASS_RT_SRC_PROGRAM_TEXT_LINE_H

#include "windlass/rt/json.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace windlass::rt {

class text_line {
public:
  text_line() { text_.reserve(1024); }
  /// Begins a new line.
  text_line &start() {
    text_.clear();
    return *this;
  }
  text_line &operator<<(std::string_view text) {
    text_ += text;
    return *this;
  }
  text_line &operator<<(std::int64_t value) {
    char digits[24];
    return *this << std::string_view(
               digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr - digits));
  }
  text_line &operator<<(double value) {
    append_json_number(text_, value);
    return *this;
  }
  text_line &operator<<(float value) {
    append_json_number(text_, value);
    return *this;
  }
  const std::string &text() const { return text_; }

private:
  std::string text_;
};

} // namespace windlass::rt

#endif
