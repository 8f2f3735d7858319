#include "BoundPrices.h"

#include "RowSites.h"
#include "StepCosts.h"

#include <array>
#include <functional>
#include <numeric>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

namespace {

constexpr uint32_t operator|(StepWork a, StepWork b) { return static_cast<uint32_t>(a) | static_cast<uint32_t>(b); }
constexpr uint32_t operator|(uint32_t a, StepWork b) { return a | static_cast<uint32_t>(b); }

/// Work that no schedule runs at the same time, as a set of `StepWork`.
struct Chain {
  const char *name;
  uint32_t works;
};

constexpr uint32_t kBeforeLast = StepWork::forward | StepWork::backwardBefore | StepWork::weightsBefore;
constexpr uint32_t kBlocks = kBeforeLast | StepWork::lastBackward | StepWork::lastWeights;
constexpr uint32_t kOperators = kBlocks | StepWork::trailing;

/// The chains of the micro-batches; the update follows each.
constexpr Chain kChains[] = {
    {"operators", kOperators | StepWork::awaitedReshard | StepWork::squares},
    {"reshards", StepWork::forward | StepWork::backwardBefore | StepWork::lastBackward | StepWork::trailing |
                     StepWork::awaitedReshard | StepWork::reshardBesideWeights | StepWork::squares},
    {"reductions behind blocks", kBlocks | StepWork::trailingReduction},
    {"last reductions", kBeforeLast | StepWork::lastReduction | StepWork::trailingReduction},
    {"collectives", StepWork::lastReduction | StepWork::trailingReduction | StepWork::reductionBefore |
                        StepWork::gather | StepWork::gatherEarly},
};
/// The chains of the micro-batches of a pipeline that are sums over all positions.
constexpr Chain kCutChains[] = {
    {"operators", kOperators | StepWork::squares},
    {"last reductions", StepWork::forward | StepWork::lastReduction | StepWork::trailingReduction},
    {"collectives", StepWork::lastReduction | StepWork::trailingReduction | StepWork::reductionBefore |
                        StepWork::gather | StepWork::gatherEarly},
};
/// Those of the host's memory and its disk, in plans that keep something there.
constexpr Chain kHostChains[] = {
    {"host", StepWork::hostAddition | StepWork::hostEarly},
    {"copies to the device", StepWork::fetch | StepWork::toDeviceEarly},
    {"copies to the host", StepWork::gradientCopy | StepWork::toHostEarly},
    {"host's memory", StepWork::hostMemory | StepWork::hostMemoryEarly},
    // Gradients are final in the last backward pass.
    {"early updates of the host", kBeforeLast | StepWork::hostEarly},
    {"early updates on the disk", kBeforeLast | StepWork::diskEarly},
    {"early copies to the device", kBeforeLast | StepWork::toDeviceEarly},
    {"early copies to the host", kBeforeLast | StepWork::toHostEarly},
    {"early updates in the host's memory", kBeforeLast | StepWork::hostMemoryEarly},
};
/// The chains of the update, and those of the host's memory and its disk.
constexpr Chain kUpdateChains[] = {{"update", uint32_t(StepWork::update)},
                                   {"gathers", uint32_t(StepWork::updateGather)}};
constexpr Chain kHostUpdateChains[] = {{"host's update", uint32_t(StepWork::hostUpdate)},
                                       {"disk", uint32_t(StepWork::diskUpdate)},
                                       {"copies to the device", uint32_t(StepWork::toDeviceUpdate)},
                                       {"copies to the host", uint32_t(StepWork::toHostUpdate)},
                                       {"host's memory", uint32_t(StepWork::hostMemoryUpdate)}};

/// Returns the chains of both windows, of the micro-batches and of the update.
std::array<llvm::SmallVector<Chain>, 2> getWindows(bool isCut, bool usesHost) {
  std::array<llvm::SmallVector<Chain>, 2> windows;
  llvm::append_range(windows[0], isCut ? llvm::ArrayRef(kCutChains) : llvm::ArrayRef(kChains));
  llvm::append_range(windows[1], kUpdateChains);
  if (usesHost) {
    llvm::append_range(windows[0], kHostChains);
    llvm::append_range(windows[1], kHostUpdateChains);
  }
  return windows;
}

/// Whether the host holds something of some parameter.
bool keepsOnHost(const Groups &groups) {
  return llvm::any_of(groups.getParameters(), [](const ParameterGroup &group) {
    train::ParameterOp first = group.parameters.front();
    return first->hasAttr(plan::kMayOffloadAttr) || plan::getStateMemory(first) != plan::MemoryKind::device ||
           plan::getComputeMemory(first) == plan::MemoryKind::host;
  });
}

} // namespace

StepWindows BoundPrices::makeWindows(const Groups &groups, bool overlaps, const CutStep *cut) {
  std::vector<Window> windows;
  if (!overlaps)
    return StepWindows();
  for (const auto &chains : getWindows(cut, keepsOnHost(groups))) {
    Window &window = windows.emplace_back();
    for (const Chain &chain : chains)
      window.streams.push_back({chain.name});
  }
  if (cut)
    for (size_t i = 0; i < cut->getChains().size(); ++i)
      windows.front().streams.push_back({"path " + std::to_string(i)});
  return StepWindows(std::move(windows));
}

BoundPrices::BoundPrices(const Groups &groups, const Labels &labels, Reshards &reshards, const LeastTimes &least,
                         const std::vector<ParameterCosts> &parameterCosts, bool overlaps, const CutStep *cut,
                         ProblemBuilder &builder)
    : groups(groups), labels(labels), reshards(reshards), least(least), parameterCosts(parameterCosts),
      overlaps(overlaps), cut(cut), usesHost(keepsOnHost(groups)), builder(builder),
      isTrailing(groups.getParameters().size(), false) {
  // A gradient is a result of one operator, so the last maker of a parameter's is its only one.
  for (unsigned group = 0; group < groups.getOperators().size(); ++group)
    for (unsigned result = 0; result < groups.getOperators()[group].front()->getNumResults(); ++result)
      for (auto [parameter, count] : groups.getGradients(group, result))
        isTrailing[parameter] = least.isTrailing(group) &&
                                count == static_cast<int64_t>(groups.getParameters()[parameter].parameters.size());
}

std::vector<int32_t> BoundPrices::getStreams(StepWork work) const {
  std::vector<int32_t> streams;
  std::array<llvm::SmallVector<Chain>, 2> windows = getWindows(cut, usesHost);
  int32_t stream = 0;
  for (const auto &chains : windows) {
    for (const Chain &chain : chains) {
      if (chain.works & static_cast<uint32_t>(work))
        streams.push_back(stream);
      ++stream;
    }
    // The chains of a cut are the last ones of the first window.
    stream += cut && &chains == &windows.front() ? static_cast<int32_t>(cut->getChains().size()) : 0;
  }
  return streams;
}

void BoundPrices::forEachChain(llvm::function_ref<void(int32_t, const CutChain &)> add) const {
  if (!cut || !overlaps)
    return;
  auto first = static_cast<int32_t>(getWindows(cut, usesHost).front().size());
  for (auto [i, chain] : llvm::enumerate(cut->getChains()))
    add(first + static_cast<int32_t>(i), chain);
}

void BoundPrices::addWork(int32_t node, StepWork work, std::vector<int64_t> nanoseconds) {
  if (!overlaps)
    return builder.addCosts(node, nanoseconds);
  for (int32_t stream : getStreams(work))
    builder.addLoad(node, stream, nanoseconds);
}

void BoundPrices::addPasses(int32_t node, StepWork before, StepWork last,
                            const std::vector<ProblemBuilder::Work> &works) {
  int64_t passesBefore = builder.getSetting().accumulationSteps - 1;
  std::vector<int64_t> ofBefore, ofLast;
  for (const ProblemBuilder::Work &work : works) {
    ofBefore.push_back(toWholeCost(passesBefore * work.count, work.picoseconds));
    ofLast.push_back(toWholeCost(work.count, work.picoseconds));
  }
  addWork(node, before, std::move(ofBefore));
  addWork(node, last, std::move(ofLast));
}

void BoundPrices::addRuns(int32_t node, unsigned group) {
  bool isOfBackward = isBackward(groups.getOperators()[group].front()), isForWeights = least.isWeightGradient(group);
  std::vector<ProblemBuilder::Carrier> carriers;
  forEachChain([&](int32_t stream, const CutChain &chain) {
    if (!isForWeights || chain.kind != CutChain::Kind::reshards)
      carriers.push_back({stream, cut->getPositions() *
                                      CutStep::countRuns(chain, cut->getLabels().countOperators(group), isOfBackward)});
  });
  builder.addLoads(node, carriers, least.get(group));
}

void BoundPrices::addOperators(int32_t node, unsigned group, int64_t recomputed) {
  addRuns(node, group);
  const OperatorGroup &its = groups.getOperators()[group];
  auto members = static_cast<int64_t>(its.ops.size());
  auto count = [](int64_t count, const std::vector<int64_t> &picoseconds) {
    std::vector<ProblemBuilder::Work> works;
    for (int64_t each : picoseconds)
      works.push_back({count, each});
    return works;
  };
  if (!its.front()->hasAttr(train::kForwardAttr)) {
    addPasses(node, StepWork::forward, StepWork::forward, count(members, least.get(group)));
    addRecompute(node, count(recomputed, least.getRecomputed(group)));
    return;
  }
  bool isForWeights = least.isWeightGradient(group);
  StepWork last = least.isTrailing(group) ? StepWork::trailing
                  : isForWeights          ? StepWork::lastWeights
                                          : StepWork::lastBackward;
  addPasses(node, isForWeights ? StepWork::weightsBefore : StepWork::backwardBefore, last,
            count(members, least.get(group)));
}

void BoundPrices::addRecompute(int32_t node, const std::vector<ProblemBuilder::Work> &works) {
  addPasses(node, StepWork::backwardBefore, StepWork::lastBackward, works);
}

void BoundPrices::addRecomputeOfFirst(int32_t node, const std::vector<ProblemBuilder::Work> &works) {
  forEachChain([&](int32_t stream, const CutChain &chain) {
    if (chain.kind != CutChain::Kind::recompute)
      return;
    std::vector<int64_t> load;
    for (const ProblemBuilder::Work &work : works)
      load.push_back(toWholeCost(cut->getPositions() * chain.path.backwards.front() * work.count, work.picoseconds));
    builder.addLoad(node, stream, std::move(load));
  });
}

int64_t BoundPrices::countUpdated(unsigned group) const {
  if (!cut || !overlaps || cut->getChains().empty())
    return static_cast<int64_t>(groups.getParameters()[group].parameters.size());
  // The update comes behind chains that end on any position.
  return cut->getPositions() * cut->countLeast(cut->getLabels().countParameters(group));
}

void BoundPrices::addToChains(int32_t node, unsigned group, const std::vector<int64_t> &squares,
                              const std::vector<int64_t> &lastReductions) {
  forEachChain([&](int32_t stream, const CutChain &chain) {
    ArrayRef<int64_t> members = cut->getLabels().countParameters(group);
    int64_t count = chain.reduced ? members[*chain.reduced] : cut->countOn(chain.path.position, members);
    std::vector<int64_t> load;
    for (int64_t each : chain.reduced ? lastReductions : squares)
      load.push_back(multiplyCost(cut->getPositions() * count, each));
    builder.addLoad(node, stream, std::move(load));
  });
}

void BoundPrices::addParameters(int32_t node, unsigned group) {
  auto members = static_cast<int64_t>(groups.getParameters()[group].parameters.size());
  int64_t updated = countUpdated(group);
  std::vector<LeastParameterTimes> times;
  for (const ParameterLabel &label : labels.ofParameter(group))
    times.push_back(parameterCosts[group].getLeastTimes(label));
  auto get = [&](int64_t count, auto time) {
    std::vector<int64_t> nanoseconds;
    for (const LeastParameterTimes &each : times)
      nanoseconds.push_back(multiplyCost(count, std::invoke(time, each)));
    return nanoseconds;
  };
  auto add = [&](StepWork work, int64_t LeastParameterTimes::*time) {
    bool isOfUpdate = work == StepWork::update || work == StepWork::updateGather;
    addWork(node, work, get(isOfUpdate ? updated : members, time));
  };
  addToChains(node, group, get(1, &LeastParameterTimes::squares), get(1, &LeastParameterTimes::lastReduction));
  add(isTrailing[group] ? StepWork::trailingReduction : StepWork::lastReduction, &LeastParameterTimes::lastReduction);
  add(StepWork::reductionBefore, &LeastParameterTimes::reductionsBefore);
  add(StepWork::gather, &LeastParameterTimes::gathers);
  add(StepWork::squares, &LeastParameterTimes::squares);
  add(StepWork::update, &LeastParameterTimes::update);
  add(StepWork::updateGather, &LeastParameterTimes::updateGather);
  // Without overlap there is one sum, of what runs in one order; copies and disks are beside it.
  if (!usesHost || !overlaps)
    return;
  add(StepWork::fetch, &LeastParameterTimes::fetches);
  add(StepWork::gradientCopy, &LeastParameterTimes::gradientCopies);
  add(StepWork::hostAddition, &LeastParameterTimes::hostAdditions);
  add(StepWork::hostMemory, &LeastParameterTimes::hostMemory);
  // What positions share is updated after all micro-batches.
  int64_t early = members;
  if (cut) {
    ArrayRef<int64_t> own = cut->getLabels().countParameters(group);
    early = std::accumulate(own.begin(), own.end(), int64_t(0));
  }
  addWork(node, StepWork::gatherEarly, get(early, &LeastParameterTimes::gatherEarly));
  struct Part {
    int64_t LeastHostTimes::*time;
    StepWork late, early;
  };
  for (const Part &part : {Part{&LeastHostTimes::computed, StepWork::hostUpdate, StepWork::hostEarly},
                           {&LeastHostTimes::disk, StepWork::diskUpdate, StepWork::diskEarly},
                           {&LeastHostTimes::toHost, StepWork::toHostUpdate, StepWork::toHostEarly},
                           {&LeastHostTimes::toDevice, StepWork::toDeviceUpdate, StepWork::toDeviceEarly},
                           {&LeastHostTimes::memory, StepWork::hostMemoryUpdate, StepWork::hostMemoryEarly}}) {
    auto time = part.time;
    addWork(node, part.late, get(updated, [time](const LeastParameterTimes &its) { return its.late.*time; }));
    addWork(node, part.early, get(early, [time](const LeastParameterTimes &its) { return its.early.*time; }));
  }
}

std::vector<OpResult> BoundPrices::findReshards(const ReshardSite &site) const {
  std::vector<OpResult> values;
  if (!site.result || (site.kind != ReshardSite::Kind::made && site.kind != ReshardSite::Kind::used))
    return values;
  for (Operation *op : groups.getOperators()[site.result->first].ops) {
    OpResult value = op->getResult(site.result->second);
    // Readers that want the same layout share a reshard, so that of the first reader is the only one that counts.
    if (site.kind == ReshardSite::Kind::used && !least.readsFirst(value, site.use))
      continue;
    if (cut) {
      Operation *reader = least.getFirstReader(value);
      bool isInOrder = !cut->splitsBackwards() || !isBackward(op);
      if (!reader || !isInOrder || !cut->getLabels().runTogether(op, reader))
        continue;
    }
    values.push_back(value);
  }
  return values;
}

BoundPrices::CountedReshards BoundPrices::sortReshards(const std::vector<OpResult> &values) const {
  CountedReshards sorted;
  for (OpResult value : values)
    if (least.isReadNext(value, /*skipsWeightGradients=*/false)) {
      sorted.awaited.push_back(value);
      if (least.mayRecomputeBefore(value))
        sorted.besideRecompute.push_back(value);
    } else if (least.isReadNext(value, /*skipsWeightGradients=*/true)) {
      sorted.besideWeights.push_back(value);
    }
  return sorted;
}

std::vector<ProblemBuilder::Carrier> BoundPrices::getCarriers(const CountedReshards &values) const {
  std::vector<ProblemBuilder::Carrier> carriers;
  auto add = [&](StepWork work, ArrayRef<OpResult> its) {
    for (int32_t stream : getStreams(work))
      carriers.push_back({stream, static_cast<int64_t>(its.size()) * builder.getSetting().accumulationSteps});
  };
  add(StepWork::awaitedReshard, values.awaited);
  add(StepWork::reshardBesideWeights, values.besideWeights);
  forEachChain([&](int32_t stream, const CutChain &chain) {
    auto countRuns = [&](ArrayRef<OpResult> its) {
      int64_t runs = 0;
      for (OpResult value : its) {
        int64_t chunk = *cut->getLabels().find(value.getOwner());
        runs += chain.getCalls(isBackward(value.getOwner()))[chunk];
      }
      return runs;
    };
    int64_t runs = countRuns(values.awaited);
    if (chain.kind == CutChain::Kind::recompute)
      runs -= countRuns(values.besideRecompute);
    if (chain.kind == CutChain::Kind::reshards)
      runs += countRuns(values.besideWeights);
    carriers.push_back({stream, cut->getPositions() * runs});
  });
  return carriers;
}

void BoundPrices::addReshards(int32_t from, int32_t to, const ReshardSite &site, const EdgeLayouts &layouts) {
  auto isForbidden = [this, type = site.type](plan::LayoutAttr found, plan::LayoutAttr wanted) {
    return reshards.getCost(type, found, wanted) >= search::kForbidden;
  };
  std::optional<RowSite> rows = findRowSite(groups, site);
  auto getPicoseconds = [this, type = site.type, rows](plan::LayoutAttr found, plan::LayoutAttr wanted) {
    return rows ? reshards.getLeastRowCost(type, found, wanted, rows->route)
                : reshards.getLeastCost(type, found, wanted);
  };
  std::vector<OpResult> values = findReshards(site);
  int64_t serial = overlaps ? 0 : static_cast<int64_t>(values.size()) * builder.getSetting().accumulationSteps;
  builder.addEdge(from, to, site.type, layouts, [=](plan::LayoutAttr found, plan::LayoutAttr wanted) {
    if (isForbidden(found, wanted))
      return search::kForbidden;
    return serial > 0 ? toWholeCost(serial, getPicoseconds(found, wanted)) : 0;
  });
  if (!overlaps)
    return;
  CountedReshards counted = sortReshards(values);
  if (!counted.awaited.empty() || !counted.besideWeights.empty())
    builder.addEdgeLoad(from, to, site.type, getCarriers(counted), layouts,
                        [=](plan::LayoutAttr found, plan::LayoutAttr wanted) {
                          return isForbidden(found, wanted) ? 0 : getPicoseconds(found, wanted);
                        });
}

void BoundPrices::addArgument(const ReshardSite &site, plan::LayoutAttr layout) {
  for (auto [i, label] : llvm::enumerate(labels.ofOperator(site.use.group)))
    if (reshards.getCost(site.type, layout, label.operands[site.use.operand]) >= search::kForbidden)
      builder.addCost(ProblemNodes::ofOperator(site.use.group), i, search::kForbidden);
}

void BoundPrices::addGradients(int32_t from, int32_t to, unsigned parameter, int64_t count,
                               const std::vector<plan::LayoutAttr> &found) {
  builder.addEdge(from, to, groups.getParameters()[parameter].getType(), found,
                  [this, parameter, count, found](size_t i, size_t j) {
                    int64_t cost =
                        parameterCosts[parameter].getGradientCost(count, found[i], labels.ofParameter(parameter)[j]);
                    return cost >= search::kForbidden ? cost : 0;
                  });
}
