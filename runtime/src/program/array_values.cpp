#include "array_values.h"

#include "windlass/rt/safetensors.h"
#include "windlass/rt/words.h"

#include <algorithm>
#include <limits>

namespace windlass::rt {

std::string quote_name(const input_entry &input) { return quote(input.name); }

status check_ids(const input_entry &input, const file_array &array, element_type type, const std::byte *ids,
                 std::int64_t count, std::int64_t position) {
  if (input.vocabulary <= 0)
    return ok_status();
  for (std::int64_t i = 0; i < count; ++i)
    if (std::int64_t id = integer_at(type, ids, i); id >= input.vocabulary)
      return bad_input(quote(array.file->path()) + (array.name.empty() ? "" : ", " + quote(array.name)) +
                       " holds the id " + std::to_string(id) + " at position " + std::to_string(position + i) +
                       "; input " + quote_name(input) + " takes ids below " + std::to_string(input.vocabulary))
          .as(diagnostic::data_value);
  return ok_status();
}

status read_array(const file_array &array, std::int64_t first, std::int64_t count, std::vector<std::byte> &buffer) {
  std::int64_t width = size_of(array.type);
  buffer.resize(static_cast<std::size_t>(count * width));
  WINDLASS_TRY(array.file->read(array.offset + first * width, count * width, buffer.data()));
  if (array.is_wide_unsigned)
    for (std::int64_t i = 0; i < count; ++i)
      if (integer_at(array.type, buffer.data(), i) < 0)
        return bad_input(quote(array.file->path()) + " holds an id of 2^31 or more at position " +
                         std::to_string(first + i))
            .as(diagnostic::data_value);
  return ok_status();
}

/// Returns `count` times `epochs`, or the largest number where that is larger.
static std::int64_t times_epochs(std::int64_t count, std::int64_t epochs) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(count, epochs, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

status check_epochs(const std::string &files, std::int64_t per_epoch, std::int64_t epochs, std::int64_t first,
                    std::int64_t count) {
  if (first + count <= times_epochs(per_epoch, epochs))
    return ok_status();
  return bad_input(files + " has " + std::to_string(per_epoch) + " micro-batches an epoch, --epochs " +
                   std::to_string(epochs) + " gives " + std::to_string(times_epochs(per_epoch, epochs)) +
                   ", but the run takes " + std::to_string(first + count) + "; give more --epochs or fewer --steps");
}

status scan_ids(const input_entry &input, const file_array &array, std::int64_t first, std::int64_t count,
                std::vector<std::byte> &buffer) {
  constexpr std::int64_t chunk = 1 << 18;
  for (std::int64_t at = first; at < first + count; at += chunk) {
    const std::int64_t length = std::min(chunk, first + count - at);
    WINDLASS_TRY(read_array(array, at, length, buffer));
    WINDLASS_TRY(check_ids(input, array, array.type, buffer.data(), length, at));
  }
  return ok_status();
}

bool are_convertible(element_type from, element_type to) {
  std::byte in[8] = {}, out[8];
  return convert_elements(from, in, to, out, 1);
}

} // namespace windlass::rt
