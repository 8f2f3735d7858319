#include "windlass/rt/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

namespace windlass::rt {

const json *json::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i] == key)
      return &items[i];
  return nullptr;
}

namespace {

/// Returns the length of the well-formed UTF-8 sequence at the start of `text`, or 0 (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text) {
  auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return at(i) >= low && at(i) <= high;
  };
  unsigned lead = at(0);
  if (lead < 0x80)
    return text.empty() ? 0 : 1;
  if (lead >= 0xc2 && lead <= 0xdf)
    return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef)
    return follows(1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  if (lead >= 0xf0 && lead <= 0xf4)
    return follows(1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

void append_utf8(std::string &out, std::uint32_t point) {
  auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 63));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 63));
    put(0x80 | (point & 63));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 63));
    put(0x80 | (point >> 6 & 63));
    put(0x80 | (point & 63));
  }
}

/// Returns whether a character stands for itself in a string.
bool is_plain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

/// The keys of an object so far. Most objects have few, which need no table.
class key_set {
public:
  bool insert(const std::string &key) {
    if (few_.size() < 16) {
      if (std::find(few_.begin(), few_.end(), key) != few_.end())
        return false;
      few_.push_back(key);
      return true;
    }
    return std::find(few_.begin(), few_.end(), key) == few_.end() && many_.insert(key).second;
  }

private:
  std::vector<std::string> few_;
  std::unordered_set<std::string> many_;
};

} // namespace

status json_reader::fail(const char *why) const {
  return bad_input(std::string("not JSON: ") + why + " at byte " + std::to_string(at_));
}

bool json_reader::take(char c) {
  bool found = peek(c);
  at_ += found;
  return found;
}

bool json_reader::take(std::string_view word) {
  bool found = text_.substr(at_, word.size()) == word;
  at_ += found ? word.size() : 0;
  return found;
}

void json_reader::skip_space() {
  while (peek(' ') || peek('\n') || peek('\t') || peek('\r'))
    ++at_;
}

status json_reader::end() {
  skip_space();
  return at_ == text_.size() ? ok_status() : fail("text follows the value");
}

status json_reader::value(json &out) {
  values_ = 0;
  out = json();
  return tree(out);
}

status json_reader::tree(json &out) {
  if (++values_ > limits_.values)
    return fail("too many values");
  skip_space();
  if (peek('{')) {
    out.kind = json::type::object;
    return object([&](std::string &key) {
      out.keys.push_back(std::move(key));
      out.items.emplace_back();
      return tree(out.items.back());
    });
  }
  if (peek('[')) {
    out.kind = json::type::array;
    return array([&] {
      out.items.emplace_back();
      return tree(out.items.back());
    });
  }
  if (peek('"')) {
    out.kind = json::type::string;
    return string(out.string);
  }
  if (take("null"))
    return ok_status();
  if (take("true")) {
    out.kind = json::type::boolean;
    out.boolean = true;
    return ok_status();
  }
  if (take("false")) {
    out.kind = json::type::boolean;
    return ok_status();
  }
  return number(out);
}

status json_reader::object(const std::function<status(std::string &key)> &member) {
  skip_space();
  if (!take('{'))
    return fail("an object is missing");
  if (++depth_ > limits_.depth)
    return fail("nested too deeply");
  skip_space();
  if (!take('}')) {
    key_set seen;
    do {
      skip_space();
      std::string key;
      if (!peek('"'))
        return fail("a member's name is missing");
      WINDLASS_TRY(string(key));
      if (!seen.insert(key))
        return fail("a member's name is repeated");
      skip_space();
      if (!take(':'))
        return fail("':' is missing");
      WINDLASS_TRY(member(key));
      skip_space();
    } while (take(','));
    if (!take('}'))
      return fail("'}' is missing");
  }
  --depth_;
  return ok_status();
}

status json_reader::array(const std::function<status()> &element) {
  skip_space();
  if (!take('['))
    return fail("an array is missing");
  if (++depth_ > limits_.depth)
    return fail("nested too deeply");
  skip_space();
  if (!take(']')) {
    do {
      WINDLASS_TRY(element());
      skip_space();
    } while (take(','));
    if (!take(']'))
      return fail("']' is missing");
  }
  --depth_;
  return ok_status();
}

status json_reader::hexadecimal(std::uint32_t &out) {
  out = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    char c = at_ < text_.size() ? text_[at_] : ' ';
    if (c >= '0' && c <= '9')
      out = out * 16 + static_cast<std::uint32_t>(c - '0');
    else if ((c | 32) >= 'a' && (c | 32) <= 'f')
      out = out * 16 + static_cast<std::uint32_t>((c | 32) - 'a' + 10);
    else
      return fail("an escape is not four hexadecimal digits");
  }
  return ok_status();
}

status json_reader::escape(std::string &out) {
  static constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
  if (take('u')) {
    std::uint32_t point = 0, low = 0;
    WINDLASS_TRY(hexadecimal(point));
    if (point >= 0xd800 && point < 0xdc00) {
      if (!take("\\u"))
        return fail("half of a surrogate pair");
      WINDLASS_TRY(hexadecimal(low));
      if (low < 0xdc00 || low > 0xdfff)
        return fail("half of a surrogate pair");
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    } else if (point >= 0xdc00 && point <= 0xdfff) {
      return fail("half of a surrogate pair");
    }
    append_utf8(out, point);
    return ok_status();
  }
  std::size_t which = at_ < text_.size() ? names.find(text_[at_]) : std::string_view::npos;
  if (which == std::string_view::npos)
    return fail("an unknown escape");
  out += values[which];
  ++at_;
  return ok_status();
}

status json_reader::string(std::string &out) {
  ++at_;
  while (!peek('"')) {
    if (take('\\')) {
      WINDLASS_TRY(escape(out));
      continue;
    }
    std::size_t plain = at_;
    while (plain < text_.size() && is_plain(text_[plain]))
      ++plain;
    if (plain > at_) {
      out.append(text_.substr(at_, plain - at_));
      at_ = plain;
      continue;
    }
    std::size_t length = utf8_length(text_.substr(at_));
    if (length == 0 || static_cast<unsigned char>(text_[at_]) < 0x20)
      return fail(at_ >= text_.size() ? "a string is not closed" : "a string holds a bad byte");
    out.append(text_.substr(at_, length));
    at_ += length;
  }
  ++at_;
  return ok_status();
}

std::size_t json_reader::digits() {
  std::size_t start = at_;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
    ++at_;
  return at_ - start;
}

status json_reader::number(json &out) {
  std::size_t start = at_;
  bool is_plain = true;
  take('-');
  bool leads_with_zero = peek('0');
  std::size_t whole = digits();
  if (whole == 0 || (leads_with_zero && whole > 1))
    return fail("a value is missing or malformed");
  if (take('.')) {
    is_plain = false;
    if (digits() == 0)
      return fail("a fraction has no digits");
  }
  if (take('e') || take('E')) {
    is_plain = false;
    if (!take('+'))
      take('-');
    if (digits() == 0)
      return fail("an exponent has no digits");
  }
  const char *first = text_.data() + start, *last = text_.data() + at_;
  out.kind = json::type::number;
  if (std::from_chars(first, last, out.number).ec != std::errc())
    return fail("a number is out of range");
  if (is_plain) {
    out.is_integer = std::from_chars(first, last, out.integer).ec == std::errc();
    out.is_unsigned = *first != '-' && std::from_chars(first, last, out.natural).ec == std::errc();
  }
  return ok_status();
}

namespace {

template <class T> void append_shortest(std::string &out, T value) {
  char buffer[64];
  if (std::isfinite(value))
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  else
    out += "null";
}

template <class T> std::string shortest(T value) {
  std::string out;
  append_shortest(out, value);
  return out;
}

} // namespace

status parse_json(std::string_view text, json &out, const json_limits &limits) {
  json_reader reader(text, limits);
  WINDLASS_TRY(reader.value(out));
  return reader.end();
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t plain =
        static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty())
      break;
    std::size_t length = utf8_length(text);
    unsigned char byte = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\xef\xbf\xbd";
      length = 1;
    } else if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[0];
    } else if (byte < 0x20 || byte == 0x7f) {
      const char *hex = "0123456789abcdef";
      out += "\\u00";
      out += hex[byte >> 4];
      out += hex[byte & 15];
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return out + "\"";
}

std::string json_number(double value) { return shortest(value); }
std::string json_number(float value) { return shortest(value); }
void append_json_number(std::string &out, double value) { append_shortest(out, value); }
void append_json_number(std::string &out, float value) { append_shortest(out, value); }

} // namespace windlass::rt
