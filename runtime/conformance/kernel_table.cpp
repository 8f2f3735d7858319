// Every entry of the compiler's table of kernels is a function of this back end, or this does not link.
#include "windlass/rt/kernels.h"

#include <gtest/gtest.h>

namespace windlass::rt {
namespace {

using function = void (*)();

TEST(KernelTable, EveryEntryIsThere) {
  const struct {
    const char *name;
    function entry;
  } kernels[] = {
#define KERNEL(name, origin, operands, results, in_place, accumulation, rows, flops, bytes, key, settings, family,     \
               indices, scratch, entry, interpreter, null_backend, host)                                               \
  {#name, reinterpret_cast<function>(&rt::entry)},
#include "windlass/Dialect/Sched/IR/Kernels.def"
#undef KERNEL
  };
  for (const auto &kernel : kernels)
    EXPECT_NE(kernel.entry, nullptr) << kernel.name;
}

} // namespace
} // namespace windlass::rt
