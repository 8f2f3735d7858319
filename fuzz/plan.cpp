// The reader of plan files.
#include "windlass/Dialect/Plan/PlanFile.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto plan = windlass::plan::readPlanFile(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!plan)
    llvm::consumeError(plan.takeError());
  return 0;
}
