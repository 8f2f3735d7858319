#include "ParameterCosts.h"

#include "StepCosts.h"

#include "windlass/Dialect/Train/IR/Optimizers.h"
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
  plan::MemoryKind read = isFetched(label) ? plan::MemoryKind::host : plan::MemoryKind::device;
  bool isApart = !traits.isTrainable || !isOwnMaster(label);
  if (isApart)
    bytes[read] += getBytes(compute, traits.computeType);
  if (!traits.isTrainable)
    return bytes;
  plan::LayoutAttr gradient = plan::dropUnreduced(label.copies.gradient);
  bytes[addsOnHost(label) ? plan::MemoryKind::host : plan::MemoryKind::device] +=
      getBytes(gradient, getGradientType(label));
  // The update reads the gradient in the master's layout; a gradient that is accumulated in another layout is kept
  // besides.
  if (gradient != master)
    bytes[plan::MemoryKind::device] += getBytes(master, getGradientType(label));
  bytes[label.memories.state] += getStateBytes(label);
  if (!isApart && label.memories.state == plan::MemoryKind::disk)
    bytes[read] += getBytes(master, traits.type);
  return bytes;
}

RankedTensorType ParameterCosts::getGradientType(const ParameterLabel &label) const {
  bool isOnHost = label.memories.gradient != plan::MemoryKind::device || label.memories.isUpdatedOnHost();
  bool maySend = llvm::any_of(mesh.getAxes(), [](plan::AxisAttr axis) { return axis.getSize() > 1; });
  return counts.accumulationSteps == 1 && (isOnHost || maySend) ? traits.sentType : traits.type;
}

bool ParameterCosts::isOwnMaster(const ParameterLabel &label) const {
  plan::MemoryKind read = isFetched(label) ? plan::MemoryKind::host : plan::MemoryKind::device,
                   state = label.memories.state;
  bool isThere = state == read || (state == plan::MemoryKind::disk && read == plan::MemoryKind::host);
  return isThere && label.copies.compute == label.copies.master && traits.computeType == traits.type;
}

int64_t ParameterCosts::getStateBytes(const ParameterLabel &label) const {
  bool isWithoutMaster = label.memories.state == plan::MemoryKind::disk && isOwnMaster(label);
  return getBytes(label.copies.master, traits.type) * (traits.states + !isWithoutMaster) + traits.wholeStateBytes;
}

bool ParameterCosts::addsOnHost(const ParameterLabel &label) const {
  plan::LayoutAttr gradient = plan::dropUnreduced(label.copies.gradient);
  bool isScattered = llvm::all_of(mesh.getDataAxes(), [&](StringAttr axis) {
    return mesh.sizeOf(axis.getValue()) == 1 || plan::usesAxis(gradient, axis);
  });
  return label.memories.gradient == plan::MemoryKind::host && isScattered && label.accumulatesAsRead(mesh);
}

bool ParameterCosts::isFetched(const ParameterLabel &label) const {
  return label.memories.compute == plan::MemoryKind::host && (!traits.isTrainable || label.keepsWhatItUpdates(mesh));
}

int64_t ParameterCosts::getGatheredBytes(const ParameterLabel &label) const {
  return label.shardsCompute() || isFetched(label) ? getBytes(label.read, traits.computeType) : 0;
}

RankedTensorType ParameterCosts::getReadGradientType(const ParameterLabel &label) const {
  if (!traits.updatesFromSent)
    return traits.type;
  bool isCopiedThere = label.memories.isUpdatedOnHost() && !addsOnHost(label);
  return isCopiedThere ? traits.sentType : getGradientType(label);
}

OperatorWork ParameterCosts::getUpdateWork(const ParameterLabel &label) const {
  plan::LayoutAttr master = label.copies.master;
  OperatorWork update;
  int64_t states = traits.states - traits.hasAverage;
  update.family = states > 1 ? "adamw" : "sgd";
  update.bytes = static_cast<double>(getBytes(master, traits.type) * (2 + 2 * states) +
                                     getBytes(master, getReadGradientType(label)));
  if (traits.computeType != traits.type)
    update.bytes += static_cast<double>(getBytes(master, traits.computeType));
  return update;
}

std::optional<OperatorWork> ParameterCosts::getAverageWork(plan::LayoutAttr master) const {
  if (!traits.hasAverage)
    return std::nullopt;
  OperatorWork average;
  average.family = "sgd";
  average.bytes = static_cast<double>(3 * getBytes(master, traits.type));
  return average;
}

OperatorWork ParameterCosts::getAdditionWork(plan::LayoutAttr gradient) const {
  OperatorWork addition;
  addition.family = "map";
  addition.bytes = static_cast<double>(2 * getBytes(gradient, traits.type) + getBytes(gradient, traits.sentType));
  return addition;
}

OperatorWork ParameterCosts::getConversionWork(plan::LayoutAttr gradient) const {
  OperatorWork conversion;
  conversion.family = "map";
  conversion.bytes = static_cast<double>(getBytes(gradient, traits.type) + getBytes(gradient, traits.sentType));
  return conversion;
}

int64_t ParameterCosts::getConversionPicoseconds(const ParameterLabel &label) const {
  if (traits.sentType == traits.type || addsOnHost(label))
    return 0;
  int64_t read = costs.getPicoseconds(getConversionWork(label.read)),
          updated = costs.getPicoseconds(getConversionWork(label.copies.master));
  bool isUpdatedHere = !label.memories.isUpdatedOnHost();
  // What is held in the type in which it travels is converted for an update that does not take it.
  if (getGradientType(label) != traits.type)
    return isUpdatedHere && !traits.updatesFromSent ? updated : 0;
  // A sum over micro-batches is converted for its reduction and behind it. What is reduced in each micro-batch needs
  // neither: products and sums round it, and additions take it as it is.
  return (label.shardsGradient() ? 0 : read + updated) + (isUpdatedHere ? 0 : updated);
}

OperatorWork ParameterCosts::getSquaresWork(plan::LayoutAttr gradient, const ParameterLabel &label) const {
  OperatorWork squares;
  squares.family = "square_sum";
  squares.bytes = static_cast<double>(getBytes(gradient, getGradientType(label)));
  return squares;
}

/// Returns the time of a cost; 0 where nothing is known about the host, for which the simulator refuses the plan.
static int64_t getPicoseconds(const std::optional<Cost> &cost) { return cost ? cost->picoseconds : 0; }

int64_t ParameterCosts::getCopyPicoseconds(int64_t bytes) const {
  return bytes > 0 ? getPicoseconds(costs.getCopyCost(static_cast<double>(bytes))) : 0;
}

int64_t ParameterCosts::getDiskPicoseconds(const ParameterLabel &label) const {
  bool isThere = label.memories.state == plan::MemoryKind::disk;
  return isThere ? 2 * costs.getDiskCost(static_cast<double>(getStateBytes(label))).picoseconds : 0;
}

void ParameterCosts::addBesideUpdate(const UpdateWork &work, WindowKind window, ParameterTimes &times) const {
  // What is copied and computed of several parameters runs side by side, even without windows.
  if (!costs.overlapsCollectives()) {
    times.exposed += toCost(1, std::max({work.toDevice, work.toHost, work.onHost}));
    return;
  }
  times.fetches[window] += toCost(1, work.toDevice);
  times.copies[window] += toCost(1, work.toHost);
  times.computed[window] += toCost(1, work.onHost);
  times.hostMemory[window] += toCost(1, costs.getHostMemoryPicoseconds(work.bytes));
}

void ParameterCosts::addUpdate(const ParameterLabel &label, ParameterTimes &times) const {
  if (label.memories.isUpdatedOnHost())
    return addUpdateOfHost(label, times);
  plan::LayoutAttr master = label.copies.master;
  std::optional<OperatorWork> average = getAverageWork(master);
  OperatorWork update = getUpdateWork(label);
  bool isHere = label.memories.state == plan::MemoryKind::device;
  // Several small parameters are updated by one command.
  bool isJoined = isHere && costs.overlapsCollectives() &&
                  label.copies.master.getLocalType(traits.type, mesh).getNumElements() <= train::kMostJoinedElements;
  int64_t updated = isJoined ? costs.getLeastPicoseconds(update, /*hasLaunch=*/false) : costs.getPicoseconds(update);
  times.exposed = toCost(1, updated + (average ? costs.getPicoseconds(*average) : 0));
  if (isHere)
    return;
  // All of it comes from the host and goes back there; a disk has it before and behind.
  int64_t state = getStateBytes(label), gradient = addsOnHost(label) ? getBytes(master, getGradientType(label)) : 0,
          weight = isFetched(label) && !isOwnMaster(label) ? getBytes(master, traits.computeType) : 0;
  int64_t copiedState = getCopyPicoseconds(state);
  addBesideUpdate({std::max(copiedState + getCopyPicoseconds(gradient), getDiskPicoseconds(label)),
                   copiedState + getCopyPicoseconds(weight), 0, static_cast<double>(2 * state + gradient + weight)},
                  WindowKind::update, times);
}

OperatorWork ParameterCosts::getStateUpdateWork(const ParameterLabel &label) const {
  OperatorWork work = getUpdateWork(label);
  if (std::optional<OperatorWork> average = getAverageWork(label.copies.master))
    work.bytes += average->bytes;
  return work;
}

void ParameterCosts::addUpdateOfHost(const ParameterLabel &label, ParameterTimes &times) const {
  plan::LayoutAttr master = label.copies.master;
  OperatorWork update = getStateUpdateWork(label);
  // Additions take gradients as they come, and so do some updates.
  if (traits.sentType != traits.type && !traits.updatesFromSent && !(addsOnHost(label) && counts.accumulationSteps > 1))
    update.bytes += getConversionWork(master).bytes;
  int64_t computed = getPicoseconds(costs.getHostCost("", update)),
          there = addsOnHost(label) ? 0 : getBytes(master, traits.sentType),
          back = isFetched(label) ? 0 : getBytes(master, traits.computeType);
  addBesideUpdate({getCopyPicoseconds(back), getCopyPicoseconds(there), std::max(computed, getDiskPicoseconds(label)),
                   update.bytes + static_cast<double>(there + back)},
                  runsEarly() ? WindowKind::lastBackward : WindowKind::update, times);
}

void ParameterCosts::addHostSquares(const ParameterLabel &label, ParameterTimes &times) const {
  OperatorWork squares = getSquaresWork(label.copies.gradient, label);
  int64_t onHost = toCost(1, getPicoseconds(costs.getHostCost("", squares)));
  if (!traits.squaresEarly) {
    times.exposed += onHost;
  } else if (squaresOnDevice()) {
    times.exposed += toCost(1, costs.getPicoseconds(squares));
  } else {
    times.computed[WindowKind::lastBackward] += onHost;
    times.hostMemory[WindowKind::lastBackward] += toCost(1, costs.getHostMemoryPicoseconds(squares.bytes));
  }
}

ParameterTimes ParameterCosts::getTimes(const ParameterLabel &label) const {
  ParameterTimes times;
  int64_t before = counts.accumulationSteps - 1;
  if (isFetched(label)) {
    int64_t bytes = getBytes(label.copies.compute, traits.computeType), copy = getCopyPicoseconds(bytes),
            memory = costs.getHostMemoryPicoseconds(static_cast<double>(bytes));
    int64_t forward = traits.forwardReads > 0, backward = traits.backwardReads > 0;
    for (auto [window, count] : {std::pair(WindowKind::forward, counts.accumulationSteps * forward),
                                 {WindowKind::backward, before * backward},
                                 {WindowKind::lastBackward, backward}}) {
      times.fetches[window] = toCost(count, copy);
      times.hostMemory[window] = toCost(count, memory);
    }
  }
  if (!traits.isTrainable)
    return times;
  SmallVector<StringAttr> dataAxes = mesh.getDataAxes();
  int64_t gradientBytes = getBytes(label.read, traits.sentType), weightBytes = getBytes(label.read, traits.computeType);
  int64_t gradient = reshards.getGatherCost(dataAxes, gradientBytes, counts.unitBytes),
          weight = reshards.getGatherCost(dataAxes, weightBytes, counts.unitBytes);
  // Where the search chooses the size of units, what happens once in a step shares units as large as buckets.
  int64_t lastBytes = costs.overlapsCollectives() ? counts.bucketBytes : counts.unitBytes;
  int64_t lastGradient = reshards.getGatherCost(dataAxes, gradientBytes, lastBytes),
          lastWeight = reshards.getGatherCost(dataAxes, weightBytes, lastBytes);
  addUpdate(label, times);
  // The gradient of the last micro-batch is brought to the layout of the master; those before it are brought to the
  // layout in which the gradient is sharded.
  times.collectives[WindowKind::lastBackward] =
      label.shardsMaster() ? toCost(1, lastGradient)
                           : toCost(1, reshards.getReduceCost(dataAxes, gradientBytes, counts.bucketBytes));
  if (label.shardsGradient()) {
    times.collectives[WindowKind::backward] = toCost(before, gradient);
    // What a collective brings is added by a command of its own; products and sums add where they compute.
    if (!addsOnHost(label) && counts.accumulationSteps > 1)
      times.exposed += toCost(counts.accumulationSteps, costs.getPicoseconds(getAdditionWork(label.copies.gradient)));
  }
  times.exposed += toCost(1, getConversionPicoseconds(label));
  if (addsOnHost(label)) {
    int64_t bytes = getBytes(label.copies.gradient, traits.sentType);
    // A step of one micro-batch adds nothing.
    OperatorWork addition = counts.accumulationSteps > 1 ? getAdditionWork(label.copies.gradient) : OperatorWork();
    int64_t copy = getCopyPicoseconds(bytes),
            added = addition.bytes > 0 ? getPicoseconds(costs.getHostCost("", addition)) : 0,
            memory = costs.getHostMemoryPicoseconds(static_cast<double>(bytes) + addition.bytes);
    for (auto [window, count] : {std::pair(WindowKind::backward, before), {WindowKind::lastBackward, int64_t(1)}}) {
      times.copies[window] += toCost(count, copy);
      times.computed[window] += toCost(count, added);
      times.hostMemory[window] += toCost(count, memory);
    }
    addHostSquares(label, times);
  }
  // The update brings the master to the layout that the weight has between steps.
  if (label.copies.compute != label.copies.master)
    times.exposed += toCost(1, lastWeight);
  if (label.shardsCompute()) {
    times.collectives[WindowKind::forward] = toCost(counts.accumulationSteps * traits.forwardReads, weight);
    times.collectives[WindowKind::backward] += toCost(before * traits.backwardReads, weight);
    times.collectives[WindowKind::lastBackward] += toCost(traits.backwardReads, weight);
  }
  return times;
}

int64_t ParameterCosts::getLeastReduction(const char *kind, int64_t bytes) const {
  // Operators that no axis of the batch or the model splits leave nothing to sum up over it; where one does, its sums
  // may be reduced with those of the replicas.
  SmallVector<StringAttr> replicas, others;
  for (plan::AxisAttr axis : mesh.getAxes())
    (axis.getRole() == plan::AxisRole::replica ? replicas : others).push_back(axis.getName());
  if (replicas.empty())
    return 0;
  int64_t least = INT64_MAX;
  for (unsigned mask = 0; mask < 1u << others.size(); ++mask) {
    SmallVector<StringAttr> axes;
    for (plan::AxisAttr axis : mesh.getAxes()) {
      auto other = llvm::find(others, axis.getName());
      if (other == others.end() || (mask >> (other - others.begin()) & 1))
        axes.push_back(axis.getName());
    }
    least = std::min(
        least, costs.getLeastPicoseconds(CollectiveWork{kind, plan::getGroup(mesh, axes), static_cast<double>(bytes)},
                                         static_cast<double>(counts.mostBytes)));
  }
  return least / 1000;
}

ParameterCosts::LeastCopy ParameterCosts::getLeastCopy(int64_t bytes) const {
  auto moved = static_cast<double>(bytes);
  int64_t time = costs.getLeastCopyPicoseconds(moved);
  // A link that is faster than the host's memory leaves nothing of that to others, and no more.
  return {time / 1000, std::min(time, costs.getHostMemoryPicoseconds(moved)) / 1000};
}

LeastHostTimes ParameterCosts::getLeastHostTimes(const ParameterLabel &label) const {
  LeastHostTimes times;
  auto copy = [&](int64_t &direction, int64_t bytes) {
    LeastCopy least = getLeastCopy(bytes);
    direction += least.time;
    times.memory += least.memory;
  };
  if (label.memories.state == plan::MemoryKind::disk)
    times.disk = 2 * costs.getLeastDiskPicoseconds(static_cast<double>(getStateBytes(label))) / 1000;
  if (!label.memories.isUpdatedOnHost()) {
    copy(times.toDevice, getStateBytes(label));
    copy(times.toHost, getStateBytes(label));
    return times;
  }
  OperatorWork update = getStateUpdateWork(label);
  times.computed = costs.getLeastHostPicoseconds(update) / 1000;
  times.memory += costs.getHostMemoryPicoseconds(update.bytes) / 1000;
  if (!addsOnHost(label))
    copy(times.toHost, getBytes(label.copies.master, traits.sentType));
  if (!isFetched(label))
    copy(times.toDevice, getBytes(label.copies.master, traits.computeType));
  return times;
}

LeastParameterTimes ParameterCosts::getLeastTimes(const ParameterLabel &label) const {
  LeastParameterTimes times;
  // Several reads of one pass share a copy, and may share a gather.
  int64_t passes = (traits.forwardReads > 0) + (traits.backwardReads > 0);
  if (isFetched(label)) {
    LeastCopy copy = getLeastCopy(getBytes(label.copies.compute, traits.computeType));
    times.fetches = counts.accumulationSteps * passes * copy.time;
    times.hostMemory = counts.accumulationSteps * passes * copy.memory;
  }
  if (!traits.isTrainable)
    return times;
  int64_t gradientBytes = getBytes(label.read, traits.sentType);
  times.lastReduction = getLeastReduction(label.shardsMaster() ? "reduce_scatter" : "all_reduce", gradientBytes);
  int64_t before = counts.accumulationSteps - 1;
  if (label.shardsGradient())
    times.reductionsBefore = before * getLeastReduction("reduce_scatter", gradientBytes);
  auto weightBytes = static_cast<double>(getBytes(label.read, traits.computeType));
  int64_t gather =
      costs.getLeastPicoseconds(CollectiveWork{"all_gather", plan::getGroup(mesh, mesh.getDataAxes()), weightBytes},
                                static_cast<double>(counts.mostBytes));
  // The backward pass may read what was gathered for the forward pass, where plans are tried with that.
  int64_t gathers = costs.overlapsCollectives() ? std::min<int64_t>(passes, 1) : passes;
  if (label.shardsCompute())
    times.gathers = counts.accumulationSteps * gathers * (gather / 1000);
  bool isElsewhere = label.memories.state != plan::MemoryKind::device, updatesEarly = isElsewhere && runsEarly();
  if (label.copies.compute != label.copies.master)
    (updatesEarly ? times.gatherEarly : times.updateGather) = gather / 1000;
  plan::LayoutAttr gradient = plan::dropUnreduced(label.copies.gradient), master = label.copies.master;
  bool isSmaller = getBytes(gradient, traits.type) < getBytes(master, traits.type);
  OperatorWork squares = getSquaresWork(isSmaller ? gradient : master, label);
  if (isElsewhere)
    (updatesEarly ? times.early : times.late) = getLeastHostTimes(label);
  if (!label.memories.isUpdatedOnHost())
    times.update = costs.getLeastPicoseconds(getStateUpdateWork(label), /*hasLaunch=*/false) / 1000;
  bool squaresHere = !addsOnHost(label) || squaresOnDevice();
  if (squaresHere)
    times.squares = costs.getLeastPicoseconds(squares, /*hasLaunch=*/false) / 1000;
  // Where operators may leave partial sums over another axis, the gradient may be on the device.
  bool isSurelyThere = addsOnHost(label) && llvm::all_of(mesh.getAxes(), [&](plan::AxisAttr axis) {
                         return axis.getSize() == 1 || plan::usesAxis(gradient, axis.getName());
                       });
  if (!isSurelyThere)
    return times;
  LeastCopy copy = getLeastCopy(getBytes(gradient, traits.sentType));
  times.gradientCopies = counts.accumulationSteps * copy.time;
  // The first micro-batch's gradient is copied, which is less work.
  OperatorWork addition = getAdditionWork(gradient);
  times.hostAdditions = before * (costs.getLeastHostPicoseconds(addition) / 1000);
  times.hostMemory +=
      counts.accumulationSteps * copy.memory + before * (costs.getHostMemoryPicoseconds(addition.bytes) / 1000);
  if (!squaresHere)
    (traits.squaresEarly ? times.early : times.late).computed += costs.getLeastHostPicoseconds(squares) / 1000;
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
  int64_t cost = toCost(count * counts.accumulationSteps, reshards.getCost(traits.sentType, made, accumulated));
  if (cost < search::kForbidden && !later.empty())
    cost += toCost(count, reshards.getReduceCost(later, getBytes(label.read, traits.sentType), counts.bucketBytes));
  return cost;
}
