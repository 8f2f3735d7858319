#include "BoundPrices.h"

#include "RowSites.h"
#include "StepCosts.h"

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
    {"collectives",
     StepWork::lastReduction | StepWork::trailingReduction | StepWork::reductionBefore | StepWork::gather},
    {"host", uint32_t(StepWork::hostAddition)},
    {"copies to the device", uint32_t(StepWork::fetch)},
};
/// The chains of the micro-batches of a pipeline.
constexpr Chain kCutChains[] = {
    {"operators", kOperators | StepWork::squares},
    {"last reductions", StepWork::forward | StepWork::lastReduction | StepWork::trailingReduction},
    {"collectives",
     StepWork::lastReduction | StepWork::trailingReduction | StepWork::reductionBefore | StepWork::gather},
    {"host", uint32_t(StepWork::hostAddition)},
    {"copies to the device", uint32_t(StepWork::fetch)},
};
/// The chains of the update.
constexpr Chain kUpdateChains[] = {{"update", uint32_t(StepWork::update)},
                                   {"gathers", uint32_t(StepWork::updateGather)},
                                   {"host's update", uint32_t(StepWork::hostUpdate)}};

/// Returns the chains of each window. The last two and the last one are for the host's memory; plans that keep nothing
/// there do not have them.
std::array<llvm::ArrayRef<Chain>, 2> getWindows(bool isCut, bool usesHost) {
  llvm::ArrayRef<Chain> chains = isCut ? llvm::ArrayRef(kCutChains) : llvm::ArrayRef(kChains);
  return {chains.drop_back(usesHost ? 0 : 2), llvm::ArrayRef(kUpdateChains).drop_back(usesHost ? 0 : 1)};
}

/// Whether the host holds something of some parameter.
bool keepsOnHost(const Groups &groups) {
  return llvm::any_of(groups.getParameters(), [](const ParameterGroup &group) {
    train::ParameterOp first = group.parameters.front();
    return first->hasAttr(plan::kMayOffloadAttr) || plan::getStateMemory(first) == plan::MemoryKind::host ||
           plan::getComputeMemory(first) == plan::MemoryKind::host;
  });
}

/// Returns the whole nanoseconds in `count` times `picoseconds`.
int64_t toWholeCost(int64_t count, int64_t picoseconds) {
  __int128 cost = static_cast<__int128>(count) * picoseconds / 1000;
  return static_cast<int64_t>(std::min<__int128>(cost, search::kForbidden));
}

} // namespace

StepWindows BoundPrices::makeWindows(const Groups &groups, bool overlaps, bool isCut) {
  std::vector<Window> windows;
  if (!overlaps)
    return StepWindows();
  for (llvm::ArrayRef<Chain> chains : getWindows(isCut, keepsOnHost(groups))) {
    Window &window = windows.emplace_back();
    for (const Chain &chain : chains)
      window.streams.push_back({chain.name});
  }
  return StepWindows(std::move(windows));
}

BoundPrices::BoundPrices(const Groups &groups, const Labels &labels, Reshards &reshards, const LeastTimes &least,
                         const std::vector<ParameterCosts> &parameterCosts, bool overlaps, bool isCut,
                         ProblemBuilder &builder)
    : groups(groups), labels(labels), reshards(reshards), least(least), parameterCosts(parameterCosts),
      overlaps(overlaps), isCut(isCut), usesHost(keepsOnHost(groups)), builder(builder),
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
  int32_t stream = 0;
  for (llvm::ArrayRef<Chain> chains : getWindows(isCut, usesHost))
    for (const Chain &chain : chains) {
      if (chain.works & static_cast<uint32_t>(work))
        streams.push_back(stream);
      ++stream;
    }
  return streams;
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

void BoundPrices::addOperators(int32_t node, unsigned group, int64_t recomputed) {
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

void BoundPrices::addParameters(int32_t node, unsigned group) {
  auto members = static_cast<int64_t>(groups.getParameters()[group].parameters.size());
  std::vector<LeastParameterTimes> times;
  for (const ParameterLabel &label : labels.ofParameter(group))
    times.push_back(parameterCosts[group].getLeastTimes(label));
  auto add = [&](StepWork work, int64_t LeastParameterTimes::*time) {
    std::vector<int64_t> nanoseconds;
    for (const LeastParameterTimes &each : times)
      nanoseconds.push_back(multiplyCost(members, each.*time));
    addWork(node, work, std::move(nanoseconds));
  };
  add(isTrailing[group] ? StepWork::trailingReduction : StepWork::lastReduction, &LeastParameterTimes::lastReduction);
  add(StepWork::reductionBefore, &LeastParameterTimes::reductionsBefore);
  add(StepWork::gather, &LeastParameterTimes::gathers);
  add(StepWork::squares, &LeastParameterTimes::squares);
  add(StepWork::update, &LeastParameterTimes::update);
  add(StepWork::updateGather, &LeastParameterTimes::updateGather);
  if (!usesHost)
    return;
  add(StepWork::fetch, &LeastParameterTimes::fetches);
  add(StepWork::hostAddition, &LeastParameterTimes::hostAdditions);
  add(StepWork::hostUpdate, &LeastParameterTimes::hostUpdate);
}

void BoundPrices::addReshards(int32_t from, int32_t to, const ReshardSite &site, const EdgeLayouts &layouts) {
  auto isForbidden = [this, type = site.type](plan::LayoutAttr found, plan::LayoutAttr wanted) {
    return reshards.getCost(type, found, wanted) >= search::kForbidden;
  };
  std::optional<RowSite> rows = findRowSite(groups, site);
  auto getNanoseconds = [this, site, rows](plan::LayoutAttr found, plan::LayoutAttr wanted) {
    return toWholeCost(site.count * builder.getSetting().accumulationSteps,
                       rows ? reshards.getLeastRowCost(site.type, found, wanted, rows->route)
                            : reshards.getLeastCost(site.type, found, wanted));
  };
  // Readers that want the same layout share a reshard, so that of the first reader is the only one that counts.
  bool isCounted =
      !isCut && site.result &&
      (site.kind == ReshardSite::Kind::made ||
       (site.kind == ReshardSite::Kind::used && least.readsFirst(site.result->first, site.result->second, site.use)));
  bool isSerial = isCounted && !overlaps;
  builder.addEdge(from, to, site.type, layouts, [=](plan::LayoutAttr found, plan::LayoutAttr wanted) {
    if (isForbidden(found, wanted))
      return search::kForbidden;
    return isSerial ? getNanoseconds(found, wanted) : 0;
  });
  if (!isCounted || !overlaps)
    return;
  bool isAwaited = least.isReadNext(site.result->first, site.result->second, /*skipsWeightGradients=*/false);
  if (isAwaited || least.isReadNext(site.result->first, site.result->second, /*skipsWeightGradients=*/true))
    builder.addEdgeLoad(from, to, site.type,
                        getStreams(isAwaited ? StepWork::awaitedReshard : StepWork::reshardBesideWeights), layouts,
                        [=](plan::LayoutAttr found, plan::LayoutAttr wanted) {
                          return isForbidden(found, wanted) ? 0 : getNanoseconds(found, wanted);
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
