#include "ParameterCosts.h"

#include "StepCosts.h"

#include "windlass/Support/TensorBytes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

int64_t ParameterCosts::getBytes(plan::LayoutAttr layout, RankedTensorType type) const {
  return getTensorBytes(layout.getLocalType(type, mesh));
}

std::map<plan::MemoryKind, int64_t> ParameterCosts::getCopyBytes(const ParameterLabel &label) const {
  plan::LayoutAttr compute = label.copies.compute, master = label.copies.master;
  std::map<plan::MemoryKind, int64_t> bytes;
  if (!traits.isTrainable || compute != master || traits.computeType != traits.type)
    bytes[compute.getMemory()] += getBytes(compute, traits.computeType);
  if (!traits.isTrainable)
    return bytes;
  plan::LayoutAttr gradient = plan::dropUnreduced(label.copies.gradient);
  bytes[gradient.getMemory()] += getBytes(gradient, traits.type);
  // The update reads the gradient in the master's layout; a gradient that is accumulated in another layout is kept
  // besides.
  if (gradient != master)
    bytes[master.getMemory()] += getBytes(master, traits.type);
  bytes[master.getMemory()] += getBytes(master, traits.type) * (1 + traits.states);
  return bytes;
}

int64_t ParameterCosts::getGatheredBytes(const ParameterLabel &label) const {
  return label.shardsCompute() ? getBytes(label.read, traits.computeType) : 0;
}

int64_t ParameterCosts::getUpdateCost(plan::LayoutAttr master) const {
  OperatorWork update;
  update.family = traits.states > 1 ? "adamw" : "sgd";
  update.bytes = static_cast<double>(getBytes(master, traits.type) * (3 + 2 * traits.states));
  if (traits.computeType != traits.type)
    update.bytes += static_cast<double>(getBytes(master, traits.computeType));
  return toCost(1, costs.getPicoseconds(update));
}

ParameterTimes ParameterCosts::getTimes(const ParameterLabel &label) const {
  ParameterTimes times;
  if (!traits.isTrainable)
    return times;
  SmallVector<StringAttr> dataAxes = mesh.getDataAxes();
  int64_t gradientBytes = getBytes(label.read, traits.type), weightBytes = getBytes(label.read, traits.computeType);
  int64_t gradient = reshards.getGatherCost(dataAxes, static_cast<double>(gradientBytes)),
          weight = reshards.getGatherCost(dataAxes, static_cast<double>(weightBytes));
  times.exposed = getUpdateCost(label.copies.master);
  // The gradient of the last micro-batch is brought to the layout of the master; those before it are brought to the
  // layout in which the gradient is sharded.
  times.collectives[WindowKind::lastBackward] =
      label.shardsMaster() ? toCost(1, gradient)
                           : toCost(1, reshards.getReduceCost(dataAxes, gradientBytes, counts.bucketBytes));
  int64_t before = counts.accumulationSteps - 1;
  if (label.shardsGradient())
    times.collectives[WindowKind::backward] = toCost(before, gradient);
  // The update brings the master to the layout that the weight has between steps.
  if (label.copies.compute != label.copies.master)
    times.exposed += toCost(1, weight);
  if (label.shardsCompute()) {
    times.collectives[WindowKind::forward] = toCost(counts.accumulationSteps * traits.forwardReads, weight);
    times.collectives[WindowKind::backward] += toCost(before * traits.backwardReads, weight);
    times.collectives[WindowKind::lastBackward] += toCost(traits.backwardReads, weight);
  }
  return times;
}

int64_t ParameterCosts::getGradientCost(int64_t count, plan::LayoutAttr made, const ParameterLabel &label) const {
  SmallVector<StringAttr> dataAxes = mesh.getDataAxes();
  SmallVector<plan::UnreducedAttr> kept;
  SmallVector<StringAttr> later;
  for (plan::UnreducedAttr unreduced : made.getUnreduced())
    if (!plan::usesAxis(label.read, unreduced.getAxis())) {
      kept.push_back(unreduced);
      if (!llvm::is_contained(dataAxes, unreduced.getAxis()))
        later.push_back(unreduced.getAxis());
    }
  // Each micro-batch brings the gradient to the layout of the weight; sums over axes of the model follow once a step.
  plan::LayoutAttr accumulated = plan::addUnreduced(label.read, kept, mesh);
  int64_t cost = toCost(count * counts.accumulationSteps, reshards.getCost(traits.type, made, accumulated));
  if (cost < search::kForbidden && !later.empty())
    cost += toCost(count, reshards.getReduceCost(later, getBytes(label.read, traits.type), counts.bucketBytes));
  return cost;
}
