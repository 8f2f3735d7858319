#include "WorkKind.h"

#include "llvm/ADT/StringMap.h"

using namespace windlass;

namespace {

// The cells of Kernels.def that count FLOPs.
constexpr WorkKind each(double) { return WorkKind::elements; }
constexpr WorkKind operandsEach(double) { return WorkKind::elements; }
constexpr WorkKind updates(double) { return WorkKind::elements; }
constexpr WorkKind product() { return WorkKind::product; }
constexpr int in(int) { return 0; }
constexpr int out(int) { return 0; }
constexpr WorkKind convolution(int, int) { return WorkKind::convolution; }
constexpr WorkKind attention(double, unsigned) { return WorkKind::attention; }
constexpr WorkKind experts(unsigned, double, double) { return WorkKind::experts; }

} // namespace

WorkKind windlass::getWorkKind(llvm::StringRef family) {
  static const llvm::StringMap<WorkKind> kinds = {
#define KERNEL(name, origin, operands, results, inPlace, accumulation, rows, flops, ...) {#name, flops},
#include "windlass/Dialect/Sched/IR/Kernels.def"
#undef KERNEL
  };
  return kinds.lookup(family.split('.').first);
}
