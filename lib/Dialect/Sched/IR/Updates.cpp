#include "windlass/Dialect/Sched/IR/Updates.h"

using namespace windlass::sched;

size_t windlass::sched::getUpdatedOperands(llvm::StringRef kernel) {
  return kernel == "adamw" ? 3 : kernel == "sgd" ? 2 : 0;
}

std::optional<size_t> UpdateOperands::getOperandOf(size_t out) const {
  if (out % results >= updated)
    return std::nullopt;
  return out / results * operands + out % results;
}

std::optional<UpdateOperands> windlass::sched::getUpdateOperands(LaunchOp launch) {
  UpdateOperands its;
  its.updated = getUpdatedOperands(launch.getKernel());
  if (its.updated == 0)
    return std::nullopt;
  its.operands = its.updated + 1; // and the gradient
  size_t scalars = launch.getKernel() == "adamw" ? 8 : 4, ins = launch.getIns().size(), outs = launch.getOuts().size();
  if (ins < its.operands + scalars || (ins - scalars) % its.operands)
    return std::nullopt;
  its.parameters = (ins - scalars) / its.operands;
  its.results = outs / its.parameters;
  if (outs % its.parameters || its.results < its.updated || its.results > its.updated + 1)
    return std::nullopt;
  return its;
}
