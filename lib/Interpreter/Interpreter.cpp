// Which level a module is at, and who runs it.
#include "windlass/Interpreter/Interpreter.h"

#include "Runners.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Interpreter/Kernels.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;

std::optional<Level> windlass::interpreter::levelOf(ModuleOp module) {
  for (sched::ProgramOp program : sched::getPrograms(module))
    return program.getOps<sched::ArenaOp>().empty() ? Level::L4 : Level::L5;
  if (train::getMicrobatchFunction(module))
    return module->hasAttr(plan::kMeshAttr) ? Level::L3 : Level::L2;
  if (train::getLossFunction(module))
    return Level::L1;
  return std::nullopt;
}

int64_t windlass::interpreter::countRanks(ModuleOp module) {
  int64_t ranks = 0;
  for (sched::ProgramOp program : sched::getPrograms(module))
    ranks += program.getMesh().getRanks();
  if (ranks > 0)
    return ranks;
  auto mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  return mesh ? mesh.getRanks() : 1;
}

bool windlass::interpreter::interpreterSupports(StringRef opName) {
  // `sched` ops are executed by the machines of L4 and L5.
  return hasKernel(opName) || opName.starts_with("sched.") || opName == train::ParameterOp::getOperationName() ||
         opName == train::ReadOp::getOperationName() || opName == train::WriteOp::getOperationName() ||
         opName == train::HyperparameterOp::getOperationName() || opName == train::StashOp::getOperationName() ||
         opName == plan::ReshardOp::getOperationName();
}

static LogicalResult checkRanks(ModuleOp module) {
  // Ranks are simulated one after another: more than this is a mistake.
  constexpr int64_t kRankLimit = 1024;
  SmallVector<plan::MeshAttr> meshes;
  for (sched::ProgramOp program : sched::getPrograms(module))
    meshes.push_back(program.getMesh());
  if (auto mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr); mesh && meshes.empty())
    meshes.push_back(mesh);
  int64_t all = 0;
  for (plan::MeshAttr mesh : meshes) {
    int64_t ranks = 1;
    for (plan::AxisAttr axis : mesh.getAxes())
      if (axis.getSize() < 1 || axis.getSize() > kRankLimit || (ranks *= axis.getSize()) > kRankLimit)
        return module.emitError("has the mesh ") << mesh << ", which must have 1 to " << kRankLimit << " ranks";
    if ((all += ranks) > kRankLimit)
      return module.emitError("has positions with more than ") << kRankLimit << " ranks together";
  }
  return success();
}

FailureOr<RunResult> windlass::interpreter::run(ModuleOp module, const RunOptions &options) {
  std::optional<Level> level = levelOf(module);
  if (!level)
    return module.emitError("is of no level: it has neither @loss nor @microbatch, and no sched.program");
  if (options.rounds && (*level != Level::L5 || options.precision != Precision::f64))
    return module.emitError("can be rounded as programs do at level L5 only, and where floats are doubles");
  if (failed(checkRanks(module)))
    return failure();
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
    result = runResources(module, inputs);
    break;
  case Level::L5:
    result = runCommands(module, inputs);
    break;
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
