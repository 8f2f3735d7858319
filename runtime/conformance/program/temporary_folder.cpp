#include "temporary_folder.h"

#include "windlass/rt/safetensors.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace windlass::rt::test {

temporary_folder::temporary_folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "windlass-test-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string temporary_folder::write(const std::string &name, std::string_view bytes) const {
  std::string path = *this / name;
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

output_file temporary_folder::create(const std::string &name, const std::string &below) const {
  folder in;
  output_file out;
  EXPECT_TRUE(in.open(*this / below).is_ok());
  const status made = out.create(in, name);
  EXPECT_TRUE(made.is_ok()) << made.message();
  return out;
}

std::string manifest_text(const checkpoint_manifest &manifest) {
  std::string out;
  EXPECT_TRUE(write_manifest(manifest, [&](std::string_view part) {
                out += part;
                return ok_status();
              }).is_ok());
  return out;
}

std::string read_all(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string safetensors_bytes(const std::string &header, const std::string &data) {
  std::string out;
  for (std::size_t i = 0; i < 8; ++i)
    out += static_cast<char>(header.size() >> (8 * i) & 255);
  return out + header + data;
}

std::map<std::string, std::vector<float>> read_floats(const std::string &path) {
  std::map<std::string, std::vector<float>> out;
  safetensors_file file;
  status opened = file.open(path);
  EXPECT_TRUE(opened.is_ok()) << opened.message();
  for (const safetensors_entry &entry : file.entries()) {
    std::vector<float> values(static_cast<std::size_t>(entry.bytes / 4));
    EXPECT_TRUE(file.read(entry, 0, entry.bytes, values.data()).is_ok());
    out[entry.name] = values;
  }
  return out;
}

} // namespace windlass::rt::test
