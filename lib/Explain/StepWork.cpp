#include "windlass/Explain/StepWork.h"

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace windlass;

/// Returns the number of parts that the operator's work is split into.
static double countParts(Operation *op, plan::MeshAttr mesh) {
  double parts = 1;
  for (plan::FactorAxesAttr split : op->getAttrOfType<plan::StrategyAttr>(plan::kStrategyAttr).getSplits())
    for (StringAttr axis : split.getAxes())
      parts *= static_cast<double>(mesh.sizeOf(axis.getValue()));
  return parts;
}

/// Counts tokens as the runtime does: the elements of the first input that is integers of [batch, tokens].
static double countTokens(func::FuncOp microbatch) {
  for (BlockArgument argument : microbatch.getArguments()) {
    auto type = llvm::dyn_cast<RankedTensorType>(argument.getType());
    if (type && type.getRank() == 2 && type.getElementType().isInteger() && !type.getElementType().isInteger(1) &&
        microbatch.getArgAttr(argument.getArgNumber(), train::kInputAttr))
      return static_cast<double>(type.getNumElements());
  }
  return 0;
}

StepWork windlass::measureStep(ModuleOp planned) {
  auto mesh = planned->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  auto microbatch = train::getMicrobatchFunction(planned);
  // Each replica has micro-batches of its own.
  auto devices = static_cast<double>(mesh.getRanks() / mesh.sizeOf(plan::AxisRole::replica));
  double flops = 0, computed = 0;
  for (Operation &op : microbatch.front())
    if (auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
        compute && compute.getPrecisionClass() == train::PrecisionClass::Contraction) {
      double its = compute.getCost().flops;
      flops += its;
      computed += its * devices / countParts(&op, mesh);
    }
  auto microBatches = static_cast<double>(train::getMergedMicroBatches(planned));
  StepWork work;
  work.flops = microBatches * flops;
  work.repeats = flops > 0 ? computed / flops : 1;
  work.tokens = microBatches * countTokens(microbatch);
  return work;
}

std::optional<double> windlass::getPeakFlops(const Cluster &cluster, const std::string &precision) {
  double sum = 0;
  for (const HostGroup &group : cluster.hosts) {
    const std::map<std::string, int64_t> &peaks = cluster.deviceTypes.at(group.deviceType).peakFlopsPerSecond;
    // A device that lacks a type computes in f32, as the model of costs has it; so do CPU ranks.
    auto found = cluster.getBackend() == "cpu" ? peaks.end() : peaks.find(precision);
    if (found == peaks.end())
      found = peaks.find("f32");
    if (found == peaks.end())
      return std::nullopt;
    sum += static_cast<double>(group.count * group.devices) * static_cast<double>(found->second);
  }
  return sum;
}
