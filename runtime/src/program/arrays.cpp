#include "arrays.h"

#include "windlass/rt/safetensors.h"
#include "windlass/rt/words.h"

#include <cstring>

namespace windlass::rt {

namespace {

std::uint32_t little32(const unsigned char *bytes) {
  return bytes[0] | static_cast<std::uint32_t>(bytes[1]) << 8 | static_cast<std::uint32_t>(bytes[2]) << 16 |
         static_cast<std::uint32_t>(bytes[3]) << 24;
}

constexpr std::int64_t llmc_header_bytes = 1024;

/// llm.c: a header of 256 int32 (magic, version, count of tokens), then the tokens.
status open_llmc(const std::shared_ptr<input_file> &file, const unsigned char *start, file_array &out) {
  bool is_wide = little32(start) == 20240801;
  std::uint32_t version = little32(start + 4), expected = is_wide ? 7 : 1;
  if (version != expected)
    return bad_input(quote(file->path()) + " is an llm.c token file of version " + std::to_string(version) +
                     "; known is version " + std::to_string(expected));
  std::int64_t count = little32(start + 8);
  out.type = is_wide ? element_type::i32 : element_type::u16;
  out.is_wide_unsigned = is_wide;
  out.offset = llmc_header_bytes;
  out.sizes = {count};
  if (file->size() != llmc_header_bytes + count * size_of(out.type))
    return bad_input(quote(file->path()) + " has " + std::to_string(file->size()) + " bytes, but its header says " +
                     count_of(count, "token") + ", " + std::to_string(llmc_header_bytes + count * size_of(out.type)) +
                     " bytes");
  return ok_status();
}

status open_safetensors(const std::shared_ptr<input_file> &file, std::vector<file_array> &out) {
  safetensors_file reader;
  WINDLASS_TRY(reader.open(file->path()));
  for (const safetensors_entry &entry : reader.entries())
    out.push_back({file, entry.name, entry.type, false, entry.sizes, entry.offset});
  return ok_status();
}

} // namespace

status open_arrays(const std::string &path, bool as_bytes, std::vector<file_array> &out) {
  auto file = std::make_shared<input_file>();
  WINDLASS_TRY(file->open(path));
  if (file->size() == 0)
    return bad_input(quote(path) + " is empty");
  file_array array;
  array.file = file;
  if (as_bytes) {
    array.sizes = {file->size()};
    out.push_back(std::move(array));
    return ok_status();
  }
  unsigned char start[16] = {};
  WINDLASS_TRY(file->read(0, std::min<std::int64_t>(16, file->size()), start));
  if (std::memcmp(start, "\x93NUMPY", 6) == 0)
    return open_npy(file, 0, file->size(), "", out);
  if (std::memcmp(start, "PK\3\4", 4) == 0)
    return open_npz(file, out);
  if (file->size() >= llmc_header_bytes && (little32(start) == 20240520 || little32(start) == 20240801)) {
    WINDLASS_TRY(open_llmc(file, start, array));
    out.push_back(std::move(array));
    return ok_status();
  }
  if (has_extension(path, ".safetensors") || (start[8] == '{' && start[7] == 0 && start[6] == 0 && start[5] == 0))
    return open_safetensors(file, out);
  if (has_extension(path, ".bin")) {
    if (file->size() % 2 != 0)
      return bad_input(quote(path) + " has an odd number of bytes, " + std::to_string(file->size()) +
                       ", so it does not hold 16-bit tokens; give --bytes for plain bytes");
    array.type = element_type::u16;
    array.sizes = {file->size() / 2};
    out.push_back(std::move(array));
    return ok_status();
  }
  return bad_input(quote(path) +
                   " is none of safetensors, npy, npz, llm.c or .bin tokens; give --bytes for plain bytes");
}

} // namespace windlass::rt
