// Conversions between element types of files and of inputs.
#include "data.h"

#include "windlass/rt/detail/half.h"

#include <cstring>
#include <limits>

namespace windlass::rt {

namespace {

template <class T> T load(const std::byte *data, std::int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T> void store(std::byte *data, std::int64_t i, T value) {
  std::memcpy(data + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

enum class family { integer, floating, boolean };
family family_of(element_type type) {
  switch (type) {
  case element_type::f32:
  case element_type::f64:
  case element_type::bf16:
  case element_type::f16:
    return family::floating;
  case element_type::boolean:
    return family::boolean;
  default:
    return family::integer;
  }
}

/// Widens the bits of an IEEE half.
double from_half(std::uint16_t bits) {
  int exponent = bits >> 10 & 31;
  double fraction = bits & 1023;
  double value = exponent == 0    ? fraction * 0x1p-24
                 : exponent == 31 ? (fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                                                   : std::numeric_limits<double>::infinity())
                                  : (1024 + fraction) * 0x1p-25 * static_cast<double>(std::uint64_t(1) << exponent);
  return bits >> 15 ? -value : value;
}

double floating_at(element_type type, const std::byte *data, std::int64_t i) {
  switch (type) {
  case element_type::f64:
    return load<double>(data, i);
  case element_type::f16:
    return from_half(load<std::uint16_t>(data, i));
  case element_type::bf16: {
    std::uint32_t bits = static_cast<std::uint32_t>(load<std::uint16_t>(data, i)) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  default:
    return load<float>(data, i);
  }
}

template <class T> bool store_integer(std::byte *out, std::int64_t i, std::int64_t value) {
  if (value < static_cast<std::int64_t>(std::numeric_limits<T>::min()) ||
      value > static_cast<std::int64_t>(std::numeric_limits<T>::max()))
    return false;
  store<T>(out, i, static_cast<T>(value));
  return true;
}

} // namespace

bool is_integer(element_type type) { return family_of(type) == family::integer; }

std::int64_t integer_at(element_type type, const std::byte *data, std::int64_t i) {
  switch (type) {
  case element_type::i64:
    return load<std::int64_t>(data, i);
  case element_type::i32:
    return load<std::int32_t>(data, i);
  case element_type::u16:
    return load<std::uint16_t>(data, i);
  default:
    return load<std::uint8_t>(data, i);
  }
}

bool convert_elements(element_type from, const std::byte *in, element_type to, std::byte *out, std::int64_t count) {
  if (from == to) {
    std::memcpy(out, in, static_cast<std::size_t>(count * size_of(to)));
    return true;
  }
  if (family_of(from) != family_of(to))
    return false;
  for (std::int64_t i = 0; i < count; ++i) {
    bool fits = true;
    switch (to) {
    case element_type::f32:
      store<float>(out, i, static_cast<float>(floating_at(from, in, i)));
      break;
    case element_type::f64:
      store<double>(out, i, floating_at(from, in, i));
      break;
    case element_type::bf16:
      store<std::uint16_t>(out, i, detail::bf16(static_cast<float>(floating_at(from, in, i))).bits);
      break;
    case element_type::f16:
      store<std::uint16_t>(out, i, detail::f16(static_cast<float>(floating_at(from, in, i))).bits);
      break;
    case element_type::i64:
      store<std::int64_t>(out, i, integer_at(from, in, i));
      break;
    case element_type::i32:
      fits = store_integer<std::int32_t>(out, i, integer_at(from, in, i));
      break;
    case element_type::u16:
      fits = store_integer<std::uint16_t>(out, i, integer_at(from, in, i));
      break;
    case element_type::u8:
      fits = store_integer<std::uint8_t>(out, i, integer_at(from, in, i));
      break;
    default:
      return false;
    }
    if (!fits)
      return false;
  }
  return true;
}

} // namespace windlass::rt
