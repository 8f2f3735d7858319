// A folder for a test's files, and small helpers that write and read them.
#ifndef WINDLASS_RT_CONFORMANCE_PROGRAM_TEMPORARY_FOLDER_H
#define WINDLASS_RT_CONFORMANCE_PROGRAM_TEMPORARY_FOLDER_H

#include "windlass/rt/checkpoint.h"
#include "windlass/rt/folder.h"
#include "windlass/rt/view.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace windlass::rt::test {

class temporary_folder {
public:
  temporary_folder();
  ~temporary_folder();
  std::string operator/(const std::string &name) const { return path_ + "/" + name; }
  const std::string &path() const { return path_; }
  /// Writes a file and gives its path.
  std::string write(const std::string &name, std::string_view bytes) const;
  /// A new file in it, or in the folder `below` of it.
  output_file create(const std::string &name, const std::string &below = ".") const;

private:
  std::string path_;
};

std::string read_all(const std::string &path);
/// All of a manifest.
std::string manifest_text(const checkpoint_manifest &manifest);

/// The bytes of dense values.
template <class T> std::string bytes_of(const std::vector<T> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
}

/// A safetensors file made of a header as given and data.
std::string safetensors_bytes(const std::string &header, const std::string &data);

/// Every F32 tensor of a safetensors file.
std::map<std::string, std::vector<float>> read_floats(const std::string &path);

} // namespace windlass::rt::test

#endif
