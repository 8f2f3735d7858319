// A file in memory with a path, for readers that open paths.
#ifndef WINDLASS_FUZZ_MEMORY_FILE_H
#define WINDLASS_FUZZ_MEMORY_FILE_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace windlass::fuzz {

class memory_file {
public:
  memory_file(const std::uint8_t *data, std::size_t size) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || write(descriptor_, data, size) != static_cast<ssize_t>(size))
      std::abort();
  }
  ~memory_file() { close(descriptor_); }
  memory_file(const memory_file &) = delete;
  memory_file &operator=(const memory_file &) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

private:
  int descriptor_;
};

} // namespace windlass::fuzz

#endif
