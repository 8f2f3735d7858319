#include "windlass/Dialect/Sched/IR/Updates.h"

size_t windlass::sched::getUpdatedOperands(llvm::StringRef kernel) {
  return kernel == "adamw" ? 3 : kernel == "sgd" ? 2 : 0;
}
