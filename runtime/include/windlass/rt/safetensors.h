// Reading and writing the safetensors format: a JSON header, then the tensors' bytes without holes.
#ifndef WINDLASS_RT_SAFETENSORS_H
#define WINDLASS_RT_SAFETENSORS_H

#include "windlass/rt/file.h"
#include "windlass/rt/hash.h"
#include "windlass/rt/status.h"
#include "windlass/rt/view.h"

#include <string>
#include <string_view>
#include <vector>

namespace windlass::rt {

/// Returns the format's name of a type ("F32"); `parse_safetensors_name` gives the type of such a name.
const char *safetensors_name(element_type type);
bool parse_safetensors_name(std::string_view name, element_type &out);
/// Returns sizes as "[2, 3]", for messages.
std::string sizes_text(const std::vector<std::int64_t> &sizes);

struct safetensors_entry {
  std::string name;
  element_type type = element_type::f32;
  std::vector<std::int64_t> sizes;
  std::int64_t offset = 0; ///< bytes from the start of the file
  std::int64_t bytes = 0;
};

/// A checked safetensors file: every entry lies in the file, its bytes agree with type and sizes, none overlap.
class safetensors_file {
public:
  /// Opens a file that the user names, links followed.
  status open(const std::string &path);
  /// Opens the file `name` of a folder, which must not be a link.
  status open(const folder &in, const std::string &name);
  const std::string &path() const { return file_.path(); }
  /// Returns the entries sorted by name.
  const std::vector<safetensors_entry> &entries() const { return entries_; }
  const safetensors_entry *find(std::string_view name) const;
  /// Reads `bytes` bytes of a tensor, from `offset` bytes within it.
  status read(const safetensors_entry &entry, std::int64_t offset, std::int64_t bytes, void *out) const;

private:
  status read_header();
  input_file file_;
  std::vector<safetensors_entry> entries_;
};

/// Writes a safetensors file in one pass: the entries are declared first, then their bytes are appended in that order.
class safetensors_writer {
public:
  /// Sorts `entries` into the order of the file (wide types first, then by name) and sets offsets and bytes.
  static status lay_out(std::vector<safetensors_entry> &entries, std::string &header);
  status create(output_file file, std::vector<safetensors_entry> &entries);
  status append(const void *data, std::int64_t bytes);
  /// Syncs the file and gives its SHA-256 in hexadecimal and its size in bytes.
  status finish(std::string &digest, std::int64_t &bytes);

private:
  output_file file_;
  sha256 hash_;
  std::int64_t written_ = 0, expected_ = 0;
};

} // namespace windlass::rt

#endif
