// NumPy's .npy and .npz (a zip archive; only entries that are stored without compression can be read in place).
#include "arrays.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace windlass::rt {

namespace {

std::uint64_t little(const unsigned char *bytes, int count) {
  std::uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i)
    value = value << 8 | bytes[i];
  return value;
}

struct npy_type {
  const char *name;
  element_type type;
  bool is_wide_unsigned;
};
constexpr npy_type npy_types[] = {{"<f4", element_type::f32, false}, {"<f8", element_type::f64, false},
                                  {"<f2", element_type::f16, false}, {"<i8", element_type::i64, false},
                                  {"<i4", element_type::i32, false}, {"<u2", element_type::u16, false},
                                  {"|u1", element_type::u8, false},  {"|b1", element_type::boolean, false},
                                  {"<u4", element_type::i32, true},  {"<u8", element_type::i64, true}};

/// Returns the text after `'key':` in the header's Python dictionary, spaces skipped.
std::string_view value_of(std::string_view header, const char *key) {
  std::size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos || (at = header.find(':', at)) == std::string_view::npos)
    return {};
  at = header.find_first_not_of(' ', at + 1);
  return at == std::string_view::npos ? std::string_view() : header.substr(at);
}

bool parse_shape(std::string_view text, std::vector<std::int64_t> &out) {
  if (text.empty() || text[0] != '(')
    return false;
  std::size_t at = 1;
  for (;;) {
    while (at < text.size() && (text[at] == ' ' || text[at] == ','))
      ++at;
    if (at >= text.size())
      return false;
    if (text[at] == ')') {
      at = text.find_first_not_of(' ', at + 1);
      return at != std::string_view::npos && (text[at] == ',' || text[at] == '}');
    }
    std::int64_t size = 0;
    auto result = std::from_chars(text.data() + at, text.data() + text.size(), size);
    if (result.ec != std::errc() || size < 0 || out.size() >= static_cast<std::size_t>(max_rank))
      return false;
    out.push_back(size);
    at = static_cast<std::size_t>(result.ptr - text.data());
  }
}

} // namespace

status open_npy(const std::shared_ptr<input_file> &file, std::int64_t offset, std::int64_t length,
                const std::string &name, std::vector<file_array> &out) {
  const std::string subject = quote(file->path()) + (name.empty() ? "" : ", entry " + quote(name)) + ": ";
  unsigned char start[12] = {};
  if (length < 12)
    return bad_input(subject + "not a .npy array");
  WINDLASS_TRY(file->read(offset, 12, start));
  if (std::memcmp(start, "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3)
    return bad_input(subject + "not a .npy array of version 1 to 3");
  std::int64_t prefix = start[6] == 1 ? 10 : 12;
  std::int64_t header_bytes = static_cast<std::int64_t>(little(start + 8, start[6] == 1 ? 2 : 4));
  if (header_bytes > length - prefix || header_bytes > 1 << 16)
    return bad_input(subject + "its header would have " + std::to_string(header_bytes) + " bytes");
  std::string header(static_cast<std::size_t>(header_bytes), '\0');
  WINDLASS_TRY(file->read(offset + prefix, header_bytes, header.data()));

  file_array array;
  array.file = file;
  array.name = name;
  array.offset = offset + prefix + header_bytes;
  std::string_view type = value_of(header, "descr"), order = value_of(header, "fortran_order");
  const npy_type *known = std::find_if(std::begin(npy_types), std::end(npy_types), [&](const npy_type &row) {
    return type.substr(0, 5) == "'" + std::string(row.name) + "'";
  });
  if (known == std::end(npy_types))
    return bad_input(subject + "its type " + quote(type.substr(0, type.find(','))) + " is not supported");
  array.type = known->type;
  array.is_wide_unsigned = known->is_wide_unsigned;
  if (!parse_shape(value_of(header, "shape"), array.sizes))
    return bad_input(subject + "its shape cannot be read");
  if (order.substr(0, 5) != "False" && array.sizes.size() > 1)
    return bad_input(subject + "it is in Fortran order; save it in C order");
  std::int64_t bytes = size_of(array.type);
  for (std::int64_t size : array.sizes)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return bad_input(subject + "its shape is impossible");
  if (bytes != length - prefix - header_bytes)
    return bad_input(subject + "it should hold " + std::to_string(bytes) + " bytes of data, but has " +
                     std::to_string(length - prefix - header_bytes));
  out.push_back(std::move(array));
  return ok_status();
}

status open_npz(const std::shared_ptr<input_file> &file, std::vector<file_array> &out) {
  const std::string subject = quote(file->path()) + ": ";
  // The end record is the last 22 bytes; NumPy writes no archive comment.
  unsigned char end[22];
  if (file->size() < 22)
    return bad_input(subject + "not a whole zip archive");
  WINDLASS_TRY(file->read(file->size() - 22, 22, end));
  if (std::memcmp(end, "PK\5\6", 4) != 0)
    return bad_input(subject + "not a whole zip archive without a comment");
  std::int64_t entries = static_cast<std::int64_t>(little(end + 10, 2));
  std::int64_t bytes = static_cast<std::int64_t>(little(end + 12, 4)),
               at = static_cast<std::int64_t>(little(end + 16, 4));
  if (entries == 65535 || bytes == 0xffffffff || at == 0xffffffff)
    return bad_input(subject + "zip archives of 4 GiB or 65535 entries are not supported; use .npy or .safetensors");
  if (at > file->size() - 22 || bytes > file->size() - 22 - at)
    return bad_input(subject + "its directory lies outside the file");
  std::vector<unsigned char> directory(static_cast<std::size_t>(bytes));
  WINDLASS_TRY(file->read(at, bytes, directory.data()));
  std::int64_t position = 0;
  for (std::int64_t i = 0; i < entries; ++i) {
    const unsigned char *row = directory.data() + position;
    if (bytes - position < 46 || std::memcmp(row, "PK\1\2", 4) != 0)
      return bad_input(subject + "its directory is damaged");
    std::int64_t method = static_cast<std::int64_t>(little(row + 10, 2));
    std::int64_t packed = static_cast<std::int64_t>(little(row + 20, 4));
    std::int64_t unpacked = static_cast<std::int64_t>(little(row + 24, 4));
    std::int64_t name_bytes = static_cast<std::int64_t>(little(row + 28, 2));
    std::int64_t row_bytes = 46 + name_bytes + static_cast<std::int64_t>(little(row + 30, 2) + little(row + 32, 2));
    std::int64_t local = static_cast<std::int64_t>(little(row + 42, 4));
    if (row_bytes > bytes - position)
      return bad_input(subject + "its directory is damaged");
    std::string name(reinterpret_cast<const char *>(row) + 46, static_cast<std::size_t>(name_bytes));
    position += row_bytes;
    if (method != 0 || packed != unpacked)
      return bad_input(subject + "entry " + quote(name) + " is compressed; write it with numpy.savez");
    unsigned char header[30];
    WINDLASS_TRY(file->read(local, 30, header));
    std::int64_t data = local + 30 + static_cast<std::int64_t>(little(header + 26, 2) + little(header + 28, 2));
    if (std::memcmp(header, "PK\3\4", 4) != 0 || data > file->size() || packed > file->size() - data)
      return bad_input(subject + "entry " + quote(name) + " lies outside the file");
    if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0)
      name.resize(name.size() - 4);
    WINDLASS_TRY(open_npy(file, data, packed, name, out));
  }
  return ok_status();
}

} // namespace windlass::rt
