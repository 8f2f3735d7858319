// The runtime's reader of safetensors.
#include "memory_file.h"

#include "windlass/rt/safetensors.h"

#include <vector>

using namespace windlass::rt;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  windlass::fuzz::memory_file file(data, size);
  safetensors_file reader;
  if (!reader.open(file.path()).is_ok())
    return 0;
  for (const safetensors_entry &entry : reader.entries()) {
    std::vector<std::byte> values(static_cast<std::size_t>(entry.bytes));
    if (!reader.read(entry, 0, entry.bytes, values.data()).is_ok())
      std::abort(); // what was opened is whole
  }
  return 0;
}
