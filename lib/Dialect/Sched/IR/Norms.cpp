#include "windlass/Dialect/Sched/IR/Norms.h"

using namespace windlass::sched;

static constexpr llvm::StringLiteral kSumPrefix = "add_";

size_t windlass::sched::getNormTerms(LaunchOp launch) {
  llvm::StringRef kernel = launch.getKernel();
  if (kernel != "add_layer_norm" && kernel != "add_rms_norm")
    return 0;
  auto terms = launch.getSettings().getAs<mlir::IntegerAttr>("terms");
  return terms && terms.getInt() == 3 ? 3 : 2;
}

llvm::StringRef windlass::sched::getPlainNorm(LaunchOp launch) {
  llvm::StringRef kernel = launch.getKernel();
  kernel.consume_front(kSumPrefix);
  return kernel;
}

std::optional<NormGradOperands> windlass::sched::getNormGradOperands(LaunchOp launch) {
  llvm::StringRef kernel = launch.getKernel();
  size_t operands = kernel == "layer_norm_grad" ? 5 : kernel == "rms_norm_grad" ? 4 : 0, ins = launch.getIns().size();
  if (operands == 0 || ins < operands || ins > operands + 1)
    return std::nullopt;
  return NormGradOperands{operands, ins > operands};
}

bool windlass::sched::addsToResult(LaunchOp launch, size_t out) { return out > 0 || !getNormGradOperands(launch); }
