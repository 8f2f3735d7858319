// The reader of profiles; what is read is written, and read again as the same, and its fits give finite costs.
#include "windlass/Profile/Profile.h"
#include "windlass/Profile/Report.h"

#include <cstdint>
#include <cstdlib>

using namespace windlass;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto profile = readProfile(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!profile) {
    llvm::consumeError(profile.takeError());
    return 0;
  }
  std::string text = writeProfile(*profile);
  auto again = readProfile(text);
  if (!again || writeProfile(*again) != text || !findMismatch(*profile, profile->cluster).empty())
    std::abort();
  reportProfile(*profile);
  CostModel costs(profile->cluster, &*profile);
  for (const auto &[key, entry] : profile->commands)
    if (costs.getCost(entry.work).picoseconds < 0)
      std::abort();
  for (const auto &[key, time] : profile->collectives)
    if (costs.getCost(CollectiveWork{std::get<0>(key), GroupShape::ofNeighbours(3), 1000}).picoseconds < 0)
      std::abort();
  return 0;
}
