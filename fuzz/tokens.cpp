// The readers of training data: token files, .npy, .npz, safetensors.
#include "memory_file.h"

#include "arrays.h"

using namespace windlass::rt;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  windlass::fuzz::memory_file file(data, size);
  std::vector<file_array> arrays;
  if (!open_arrays(file.path(), false, arrays).is_ok())
    return 0;
  for (const file_array &array : arrays) {
    std::vector<std::byte> values(static_cast<std::size_t>(array.elements() * size_of(array.type)));
    if (!array.file->read(array.offset, static_cast<std::int64_t>(values.size()), values.data()).is_ok())
      std::abort(); // what was opened is whole
  }
  return 0;
}
