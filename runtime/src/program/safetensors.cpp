#include "windlass/rt/safetensors.h"

#include "windlass/rt/json.h"

#include <algorithm>

namespace windlass::rt {

namespace {

constexpr std::int64_t max_header_bytes = 64 << 20;

struct type_name {
  element_type type;
  const char *name;
};
constexpr type_name type_names[] = {
    {element_type::f32, "F32"}, {element_type::f64, "F64"}, {element_type::bf16, "BF16"},
    {element_type::f16, "F16"}, {element_type::i64, "I64"}, {element_type::i32, "I32"},
    {element_type::u16, "U16"}, {element_type::u8, "U8"},   {element_type::boolean, "BOOL"}};

/// Computes the bytes of a dense tensor; false when a size is negative or the product overflows.
bool dense_bytes(element_type type, const std::vector<std::int64_t> &sizes, std::int64_t &out) {
  out = size_of(type);
  for (std::int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(out, size, &out))
      return false;
  return true;
}

status parse_entry(const std::string &where, const std::string &name, const json &value, std::int64_t data_start,
                   std::int64_t data_bytes, safetensors_entry &out) {
  const std::string subject = quote(where) + ": tensor " + quote(name);
  const json *type = value.find("dtype"), *shape = value.find("shape"), *range = value.find("data_offsets");
  if (!value.is_object() || !type || !type->is_string() || !shape || !shape->is_array() || !range ||
      !range->is_array() || range->items.size() != 2 || !range->items[0].is_integer || !range->items[1].is_integer)
    return bad_input(subject + " lacks a dtype, a shape or two data offsets");
  out.name = name;
  if (!parse_safetensors_name(type->string, out.type))
    return bad_input(subject + " has the type " + quote(type->string) + ", which is not supported");
  if (shape->items.size() > static_cast<std::size_t>(max_rank))
    return bad_input(subject + " has rank " + std::to_string(shape->items.size()) + ", more than " +
                     std::to_string(max_rank));
  for (const json &size : shape->items) {
    if (!size.is_integer)
      return bad_input(subject + " has a size that is not an integer");
    out.sizes.push_back(size.integer);
  }
  std::int64_t begin = range->items[0].integer, end = range->items[1].integer;
  if (begin < 0 || end < begin || end > data_bytes)
    return bad_input(subject + " lies at bytes " + std::to_string(begin) + " to " + std::to_string(end) + " of " +
                     std::to_string(data_bytes));
  if (!dense_bytes(out.type, out.sizes, out.bytes) || out.bytes != end - begin)
    return bad_input(subject + " is " + type->string + sizes_text(out.sizes) + " but holds " +
                     std::to_string(end - begin) + " bytes");
  out.offset = data_start + begin;
  return ok_status();
}

} // namespace

const char *safetensors_name(element_type type) {
  for (const type_name &row : type_names)
    if (row.type == type)
      return row.name;
  return "";
}

bool parse_safetensors_name(std::string_view name, element_type &out) {
  for (const type_name &row : type_names)
    if (name == row.name) {
      out = row.type;
      return true;
    }
  return false;
}

std::string sizes_text(const std::vector<std::int64_t> &sizes) {
  std::string out = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i)
    out += (i ? ", " : "") + std::to_string(sizes[i]);
  return out + "]";
}

status safetensors_file::open(const std::string &path) {
  WINDLASS_TRY(file_.open(path));
  return read_header();
}

status safetensors_file::open(const folder &in, const std::string &name) {
  WINDLASS_TRY(file_.open(in, name));
  return read_header();
}

status safetensors_file::read_header() {
  entries_.clear();
  const std::string &path = file_.path();
  const std::string subject = quote(path) + " is not a safetensors file: ";
  if (file_.size() < 8)
    return bad_input(subject + "it has " + std::to_string(file_.size()) + " bytes");
  unsigned char prefix[8];
  WINDLASS_TRY(file_.read(0, 8, prefix));
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | prefix[i];
  if (length > static_cast<std::uint64_t>(std::min(max_header_bytes, file_.size() - 8)))
    return bad_input(subject + "its header would have " + std::to_string(length) + " bytes, the file has " +
                     std::to_string(file_.size()));
  std::string text(static_cast<std::size_t>(length), '\0');
  WINDLASS_TRY(file_.read(8, static_cast<std::int64_t>(length), text.data()));
  std::int64_t data_start = 8 + static_cast<std::int64_t>(length), data_bytes = file_.size() - data_start;
  // An entry at a time: the header of a checkpoint's file may have hundreds of thousands.
  json_limits limits;
  limits.depth = 4;
  json_reader header(text, limits);
  status wrong; // an entry that is JSON, but no tensor
  status parsed = header.object([&](std::string &key) -> status {
    json value;
    WINDLASS_TRY(header.value(value));
    if (key == "__metadata__")
      return ok_status();
    safetensors_entry entry;
    WINDLASS_TRY(wrong = parse_entry(path, key, value, data_start, data_bytes, entry));
    entries_.push_back(std::move(entry));
    return ok_status();
  });
  WINDLASS_TRY(wrong);
  if (parsed.is_ok())
    parsed = header.end();
  if (!parsed.is_ok())
    return bad_input(subject + "its header is " + parsed.message());
  // The format demands that the tensors fill the data without holes; this also finds files that were cut or added to.
  std::sort(entries_.begin(), entries_.end(), [](const safetensors_entry &a, const safetensors_entry &b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  std::int64_t expected = data_start;
  for (const safetensors_entry &entry : entries_) {
    if (entry.offset != expected)
      return bad_input(quote(path) + ": tensor " + quote(entry.name) + " starts at byte " +
                       std::to_string(entry.offset - data_start) + " of the data, where byte " +
                       std::to_string(expected - data_start) + " is next");
    expected += entry.bytes;
  }
  if (expected != file_.size())
    return bad_input(quote(path) + " has " + std::to_string(file_.size()) + " bytes, its tensors end at " +
                     std::to_string(expected));
  std::sort(entries_.begin(), entries_.end(),
            [](const safetensors_entry &a, const safetensors_entry &b) { return a.name < b.name; });
  return ok_status();
}

const safetensors_entry *safetensors_file::find(std::string_view name) const {
  auto found = std::lower_bound(entries_.begin(), entries_.end(), name,
                                [](const safetensors_entry &entry, std::string_view key) { return entry.name < key; });
  return found != entries_.end() && found->name == name ? &*found : nullptr;
}

status safetensors_file::read(const safetensors_entry &entry, std::int64_t offset, std::int64_t bytes,
                              void *out) const {
  if (offset < 0 || bytes < 0 || offset > entry.bytes || bytes > entry.bytes - offset)
    return internal_error("a read outside tensor " + quote(entry.name) + " of " + quote(path()));
  return file_.read(entry.offset + offset, bytes, out);
}

status safetensors_writer::lay_out(std::vector<safetensors_entry> &entries, std::string &header) {
  // Wide types first keeps every tensor aligned to its element size.
  std::sort(entries.begin(), entries.end(), [](const safetensors_entry &a, const safetensors_entry &b) {
    return size_of(a.type) != size_of(b.type) ? size_of(a.type) > size_of(b.type) : a.name < b.name;
  });
  std::string text = "{";
  std::int64_t offset = 0;
  for (safetensors_entry &entry : entries) {
    if (!dense_bytes(entry.type, entry.sizes, entry.bytes))
      return internal_error("tensor " + quote(entry.name) + " has impossible sizes " + sizes_text(entry.sizes));
    text += (offset || text.size() > 1 ? "," : "") + json_string(entry.name) + ":{\"dtype\":\"" +
            safetensors_name(entry.type) + "\",\"shape\":" + sizes_text(entry.sizes) + ",\"data_offsets\":[" +
            std::to_string(offset) + "," + std::to_string(offset + entry.bytes) + "]}";
    entry.offset = offset;
    offset += entry.bytes;
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (static_cast<std::int64_t>(text.size()) > max_header_bytes)
    return bad_input("a header of " + std::to_string(entries.size()) + " tensors would have " +
                     std::to_string(text.size()) + " bytes, more than the " + std::to_string(max_header_bytes) +
                     " that are read");
  header.assign(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    header[i] = static_cast<char>(text.size() >> (8 * i) & 255);
  for (safetensors_entry &entry : entries)
    entry.offset += static_cast<std::int64_t>(8 + text.size());
  header += text;
  return ok_status();
}

status safetensors_writer::create(output_file file, std::vector<safetensors_entry> &entries) {
  std::string header;
  WINDLASS_TRY(lay_out(entries, header));
  file_ = std::move(file);
  expected_ = static_cast<std::int64_t>(header.size());
  for (const safetensors_entry &entry : entries)
    expected_ += entry.bytes;
  return append(header.data(), static_cast<std::int64_t>(header.size()));
}

status safetensors_writer::append(const void *data, std::int64_t bytes) {
  hash_.update(data, static_cast<std::size_t>(bytes));
  written_ += bytes;
  return file_.write(data, bytes);
}

status safetensors_writer::finish(std::string &digest, std::int64_t &bytes) {
  if (written_ != expected_)
    return internal_error(quote(file_.path()) + " got " + std::to_string(written_) + " bytes where " +
                          std::to_string(expected_) + " were declared");
  WINDLASS_TRY(file_.finish());
  digest = hash_.finish_hex();
  bytes = written_;
  return ok_status();
}

} // namespace windlass::rt
