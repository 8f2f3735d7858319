// Strategies by name, such as "zero1*megatron=2".
#ifndef WINDLASS_LIB_DIALECT_PLAN_TRANSFORMS_NAMEDSTRATEGY_H
#define WINDLASS_LIB_DIALECT_PLAN_TRANSFORMS_NAMEDSTRATEGY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace windlass::plan {

struct NamedStrategy {
  /// What data-parallel ranks share out among themselves: nothing, optimizer state, gradients too, weights too.
  int zeroLevel = 0;
  /// Ranks that work on parts of the data, and ranks among which matmuls are split.
  int64_t dataRanks = 1, modelRanks = 1;
};

/// Reads NAME[=K][*NAME[=K]] for so many ranks: one of ddp, zero1, zero2, zero3, and megatron,
/// each of K ranks; one of two may leave K out and gets the rest. Fails with what is wrong and what would do.
llvm::Expected<NamedStrategy> parseStrategy(llvm::StringRef text, int64_t ranks);

} // namespace windlass::plan

#endif
