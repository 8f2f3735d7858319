// Which level a module is at, and who runs it.
#include "windlass/Interpreter/Interpreter.h"

#include "Runners.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Interpreter/Kernels.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;

std::optional<Level> windlass::interpreter::levelOf(ModuleOp module) {
  if (!module.getOps<sched::ArenaOp>().empty())
    return Level::L5;
  if (!module.getOps<sched::ResourceOp>().empty())
    return Level::L4;
  if (module.lookupSymbol<func::FuncOp>(train::kMicrobatchFunction))
    return module->hasAttr(plan::kMeshAttr) ? Level::L3 : Level::L2;
  if (module.lookupSymbol<func::FuncOp>(train::kLossFunction))
    return Level::L1;
  return std::nullopt;
}

bool windlass::interpreter::interpreterSupports(StringRef opName) {
  return hasKernel(opName) || opName == train::ParameterOp::getOperationName() ||
         opName == train::ReadOp::getOperationName() || opName == train::WriteOp::getOperationName() ||
         opName == train::HyperparameterOp::getOperationName() || opName == train::StashOp::getOperationName() ||
         opName == plan::ReshardOp::getOperationName();
}

FailureOr<RunResult> windlass::interpreter::run(ModuleOp module, const RunOptions &options) {
  std::optional<Level> level = levelOf(module);
  if (!level)
    return module.emitError("is of no level: it has neither @loss nor @microbatch, resources or arenas");
  // A module of L1 or L2 may name nothing of it, but runs on a mesh of one rank.
  module.getContext()->getOrLoadDialect<plan::PlanDialect>();
  RunInputs inputs(module, options);
  FailureOr<RunResult> result = failure();
  switch (*level) {
  case Level::L1:
    result = runLoss(module, inputs);
    break;
  case Level::L2:
  case Level::L3:
    result = runFunctions(module, inputs);
    break;
  case Level::L4:
  case Level::L5:
    return module.emitError("holds resources, which are not executed");
  }
  if (failed(result))
    return failure();
  result->level = *level;
  for (auto [step, loss] : llvm::enumerate(result->losses))
    result->tensors.emplace("loss." + std::to_string(step), Tensor::filled(ElementKind::f64, {}, loss));
  for (auto [step, norm] : llvm::enumerate(result->gradientNorms))
    result->tensors.emplace("grad_norm." + std::to_string(step), Tensor::filled(ElementKind::f64, {}, norm));
  return result;
}
