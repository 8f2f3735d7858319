// Reads manifests by the runtime's reader, and checks that what it accepts is written and read back unchanged.
#include "windlass/rt/checkpoint.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

using namespace windlass::rt;

namespace {

/// A folder for one manifest, of this process.
class manifest_folder {
public:
  manifest_folder() {
    std::error_code error;
    path_ = (std::filesystem::temp_directory_path(error) / "windlass-fuzz-XXXXXX").string();
    if (error || !mkdtemp(path_.data()))
      std::abort();
  }
  ~manifest_folder() {
    std::remove((path_ + "/manifest.json").c_str());
    std::remove(path_.c_str());
  }
  status read(std::string_view text, checkpoint_manifest &out) {
    std::ofstream(path_ + "/manifest.json", std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
    return read_manifest(path_, out);
  }

private:
  std::string path_;
};

std::string text_of(const checkpoint_manifest &manifest) {
  std::string text;
  const status written = write_manifest(manifest, [&text](std::string_view part) {
    text += part;
    return ok_status();
  });
  if (!written.is_ok())
    std::abort();
  return text;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static manifest_folder folder;
  checkpoint_manifest manifest, again;
  if (!folder.read({reinterpret_cast<const char *>(data), size}, manifest).is_ok())
    return 0;
  const std::string text = text_of(manifest);
  if (!folder.read(text, again).is_ok() || text_of(again) != text)
    std::abort();
  return 0;
}
