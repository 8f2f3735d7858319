#include "RangeProblem.h"

#include "BoundPrices.h"
#include "CostPrices.h"
#include "CutStep.h"
#include "RangeAssembly.h"

#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/TensorBytes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// Returns what a step's update writes to a parameter; nothing for one that it does not update.
static SmallVector<Value> getNewValues(train::ParameterOp parameter) {
  SmallVector<Value> values;
  if (func::FuncOp update = train::getUpdateFunction(parameter->getParentOfType<ModuleOp>()))
    for (auto write : update.getOps<train::WriteOp>())
      if (write.getParameter() == parameter.getSymName())
        values.push_back(write.getValue());
  return values;
}

/// Whether the positions of the step have one chunk each.
static bool hasOneChunk(train::ParameterOp parameter) {
  auto pipeline = parameter->getParentOfType<ModuleOp>()->getAttrOfType<plan::PipelineAttr>(plan::kPipelineAttr);
  return !pipeline || pipeline.countChunks() == pipeline.getPositions();
}

/// Whether a parameter's update computes element by element from one gradient only.
static bool updatesFromOneGradient(train::ParameterOp parameter) {
  SmallVector<Value> open = getNewValues(parameter);
  llvm::DenseSet<Value> seen;
  int64_t gradients = 0;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    gradients += llvm::isa<BlockArgument>(value);
    Operation *op = value.getDefiningOp();
    if (!op)
      continue;
    for (Value operand : op->getOperands()) {
      auto type = llvm::cast<RankedTensorType>(operand.getType());
      if (type.getRank() > 0 && type.getShape() != llvm::cast<RankedTensorType>(value.getType()).getShape())
        return false;
      open.push_back(operand);
    }
  }
  return gradients == 1;
}

/// Whether one command of AdamW, or Adam, updates the parameter, whose gradient may be in bf16.
static bool updatesByAdamW(train::ParameterOp parameter) {
  return llvm::any_of(getNewValues(parameter), [](Value value) { return value.getDefiningOp<train::AdamWOp>(); });
}

/// Returns the traits on which the costs of a group's parameters depend besides their layouts; all members have the
/// same.
static ParameterTraits getTraits(const ParameterGroup &group) {
  ParameterTraits traits;
  traits.type = group.getType();
  train::ParameterOp first = group.parameters.front();
  traits.sentType = train::getSentGradientType(first);
  traits.updatesFromSent = updatesByAdamW(first);
  traits.computeType = group.getComputeType();
  traits.isTrainable = first.getTrainable();
  traits.states = group.states;
  traits.wholeStateBytes = group.wholeStateBytes;
  traits.hasAverage = group.hasAverage;
  traits.squaresEarly = hasOneChunk(first);
  traits.updatesEarly = hasOneChunk(first) && updatesFromOneGradient(first);
  auto members = static_cast<int64_t>(group.parameters.size());
  int64_t backward = llvm::count_if(group.reads, [](train::ReadOp read) { return read->hasAttr(train::kForwardAttr); });
  traits.backwardReads = backward / members;
  traits.forwardReads = static_cast<int64_t>(group.reads.size()) / members - traits.backwardReads;
  return traits;
}

/// Returns the bytes of gradients whose rate a reduction is priced at: those of a small model share one bucket. Where
/// the search chooses the size of buckets, none has a better rate than the largest, so that no plan costs less.
static int64_t getBucketBytes(const Groups &groups, const CostModel &costs) {
  int64_t bytes = 0, most = costs.overlapsCollectives() ? plan::kMostBucketBytes : plan::kBucketBytes;
  for (const ParameterGroup &group : groups.getParameters())
    for (train::ParameterOp parameter : group.parameters)
      if (parameter.getTrainable() && bytes < most)
        bytes = std::min(most, bytes + getTensorBytes(train::getSentGradientType(parameter)));
  return bytes;
}

/// Returns the bytes of weights whose rate a gather is priced at: those that a block reads, or the model where there
/// are no blocks, share units. As large as the largest of them is a unit where the search does not choose its size.
static int64_t getUnitBytes(const Groups &groups, const CostModel &costs) {
  int64_t largest[2] = {}, all[2] = {};
  for (const ParameterGroup &group : groups.getParameters()) {
    bool isRepeated = group.parameters.size() > 1;
    int64_t bytes = getTensorBytes(group.getType());
    largest[isRepeated] = std::max(largest[isRepeated], bytes);
    all[isRepeated] += bytes;
  }
  bool hasBlocks = all[true] > 0;
  return costs.overlapsCollectives() ? all[hasBlocks] : largest[hasBlocks];
}

RangeProblem::RangeProblem(const Groups &groups, const RecomputeClasses &recompute, const CostModel &costs,
                           const plan::StrategyChoice &choice, const RangeSetting &setting)
    : groups(groups), recompute(recompute), costs(costs), base(choice), reshards(base.mesh, costs),
      labels(groups, reshards, costs, base.pins, setting.threads), builder(setting, reshards),
      nodes(groups, labels, base) {
  int64_t bucketBytes = getBucketBytes(groups, costs), unitBytes = getUnitBytes(groups, costs), allBytes = 0;
  for (const ParameterGroup &group : groups.getParameters())
    allBytes += static_cast<int64_t>(group.parameters.size()) * getTensorBytes(group.getType());
  for (const ParameterGroup &group : groups.getParameters())
    parameterCosts.emplace_back(getTraits(group), reshards, costs,
                                StepCounts{setting.accumulationSteps, bucketBytes, allBytes, unitBytes});
}

search::Problem RangeProblem::build(int parts) {
  return build(Lifetimes(groups, recompute, parts, builder.getSetting().inFlight), recompute.count(parts));
}

search::Problem RangeProblem::buildWithRecompute(const RecomputeCounts &counts) {
  return build(Lifetimes(groups, recompute, 0, builder.getSetting().inFlight), counts);
}

search::Problem RangeProblem::build(const Lifetimes &lifetimes, const RecomputeCounts &counts) {
  CostPrices prices(groups, labels, reshards, parameterCosts, builder);
  return RangeAssembly(groups, recompute, base, labels, parameterCosts, builder, prices, nodes)
      .build(lifetimes, counts, /*choosesRecompute=*/false);
}

search::Problem RangeProblem::buildBound(plan::PipelineAttr pipeline) {
  return buildBound(recompute.count(0), /*choosesRecompute=*/true, pipeline);
}

search::Problem RangeProblem::buildBoundWithRecompute(const RecomputeCounts &counts, plan::PipelineAttr pipeline) {
  return buildBound(counts, /*choosesRecompute=*/false, pipeline);
}

search::Problem RangeProblem::buildBound(const RecomputeCounts &counts, bool choosesRecompute,
                                         plan::PipelineAttr pipeline) {
  bool overlaps = costs.overlapsCollectives();
  RangeSetting setting = builder.getSetting();
  std::optional<CutStep> step;
  if (pipeline)
    step.emplace(groups, pipeline, costs, base.mesh.getRanks(), setting.accumulationSteps);
  const CutStep *cut = step ? &*step : nullptr;
  setting.windows = BoundPrices::makeWindows(groups, overlaps, cut);
  if (cut) {
    // The positions together hold everything once.
    setting.positions = 1;
    setting.inFlight = 1;
  }
  ProblemBuilder own(setting, reshards);
  LeastTimes least(groups, labels, costs, base.mesh, /*isCut=*/cut);
  BoundPrices prices(groups, labels, reshards, least, parameterCosts, overlaps, cut, own);
  Lifetimes lifetimes = cut ? Lifetimes::ofStash(groups, recompute, &cut->getLabels(), cut->getFirstInFlight())
                            : Lifetimes(groups, recompute, 0, setting.inFlight);
  return RangeAssembly(groups, recompute, base, labels, parameterCosts, own, prices, nodes)
      .build(lifetimes, counts, choosesRecompute);
}
