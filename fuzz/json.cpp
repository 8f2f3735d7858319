// The runtime's JSON parser: manifests, settings, headers of safetensors.
#include "windlass/rt/json.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  windlass::rt::json value;
  static_cast<void>(
      windlass::rt::parse_json(std::string_view(reinterpret_cast<const char *>(data), size), value).is_ok());
  return 0;
}
