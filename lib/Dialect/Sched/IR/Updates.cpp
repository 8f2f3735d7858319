#include "windlass/Dialect/Sched/IR/Updates.h"

using namespace windlass::sched;

std::optional<UpdateOperands> windlass::sched::getUpdateOperands(LaunchOp launch) {
  const KernelRow &row = launch.getRow();
  if (!row.hasParameters())
    return std::nullopt;
  size_t parameters = row.countParameters(launch.getArity());
  return UpdateOperands{parameters, row.operands.least, row.results.least, launch.getOuts().size() / parameters};
}
