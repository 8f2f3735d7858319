// The reader of cluster files; what is read is written, and read again as the same.
#include "windlass/Cluster/Cluster.h"
#include "windlass/Support/StrictJson.h"

#include <cstdint>
#include <cstdlib>

using namespace windlass;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto document = parseStrictJson(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!document) {
    llvm::consumeError(document.takeError());
    return 0;
  }
  auto cluster = clusterFromJson(*document, "");
  if (!cluster) {
    llvm::consumeError(cluster.takeError());
    return 0;
  }
  auto again = clusterFromJson(llvm::json::Value(toJson(*cluster)), "");
  if (!again || !findDifference(*cluster, *again).empty() || cluster->getDeviceMemoryBytes() < 1 ||
      cluster->describe().empty())
    std::abort();
  return 0;
}
