#include "CostPrices.h"

#include "RowSites.h"
#include "StepCosts.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// The share 1 / `kExposedShare` of what runs beside operators counts as exposed: no schedule hides all of it, and of
/// plans that hide as much, the one that moves less is better.
static constexpr int64_t kExposedShare = 20;

void CostPrices::addOperators(int32_t node, unsigned group, int64_t recomputed) {
  const RangeSetting &setting = builder.getSetting();
  const OperatorGroup &its = groups.getOperators()[group];
  auto members = static_cast<int64_t>(its.ops.size());
  bool isBackward = its.front()->hasAttr(train::kForwardAttr);
  std::vector<int64_t> forward;
  std::vector<ProblemBuilder::Work> backward;
  for (const OperatorLabel &label : labels.ofOperator(group)) {
    forward.push_back(isBackward ? 0 : toCost(setting.accumulationSteps * members, label.picoseconds));
    backward.push_back({isBackward ? members : recomputed, label.picoseconds});
  }
  if (std::optional<int32_t> stream = setting.windows.find(WindowKind::forward, StreamKind::compute))
    builder.addLoad(node, *stream, std::move(forward));
  else
    builder.addCosts(node, forward);
  builder.addBackwardWork(node, backward);
}

std::vector<int64_t> CostPrices::getRecomputeTimes(unsigned group) const {
  std::vector<int64_t> picoseconds;
  for (const OperatorLabel &label : labels.ofOperator(group))
    picoseconds.push_back(label.picoseconds);
  return picoseconds;
}

void CostPrices::addRecompute(int32_t node, const std::vector<ProblemBuilder::Work> &works) {
  builder.addBackwardWork(node, works);
}

void CostPrices::addParameters(int32_t node, unsigned group) {
  const RangeSetting &setting = builder.getSetting();
  const ParameterCosts &own = parameterCosts[group];
  const std::vector<ParameterLabel> &choices = labels.ofParameter(group);
  auto members = static_cast<int64_t>(groups.getParameters()[group].parameters.size());
  std::vector<int64_t> costs;
  std::map<int32_t, std::vector<int64_t>> loads;
  auto addLoad = [&](int32_t stream, size_t label, int64_t nanoseconds) {
    loads.try_emplace(stream, choices.size(), 0).first->second[label] += multiplyCost(members, nanoseconds);
  };
  for (auto [label, choice] : llvm::enumerate(choices)) {
    ParameterTimes times = own.getTimes(choice);
    int64_t exposed = times.exposed;
    for (auto [kind, beside] : {std::pair(StreamKind::communicator, &times.collectives),
                                {StreamKind::deviceToHost, &times.copies},
                                {StreamKind::hostToDevice, &times.fetches},
                                {StreamKind::host, &times.computed}})
      for (auto [window, nanoseconds] : *beside) {
        std::optional<int32_t> stream = setting.windows.find(window, kind, own.getSpan());
        exposed += stream ? nanoseconds / kExposedShare : nanoseconds;
        if (stream)
          addLoad(*stream, label, nanoseconds);
      }
    for (auto [window, nanoseconds] : times.hostMemory)
      if (std::optional<int32_t> stream = setting.windows.find(window, StreamKind::hostMemory))
        addLoad(*stream, label, nanoseconds);
    costs.push_back(multiplyCost(members, exposed));
  }
  builder.addCosts(node, costs);
  for (auto &[stream, load] : loads)
    builder.addLoad(node, stream, load);
}

int64_t CostPrices::getStashCost(int64_t count, RankedTensorType type, plan::LayoutAttr layout) {
  return toCost(count * builder.getSetting().accumulationSteps,
                reshards.getCost(type, layout, plan::dropUnreduced(layout)));
}

int64_t CostPrices::getReshardCost(const ReshardSite &site, plan::LayoutAttr from, plan::LayoutAttr to) {
  return toCost(site.count * builder.getSetting().accumulationSteps, reshards.getCost(site.type, from, to));
}

void CostPrices::addReshards(int32_t from, int32_t to, const ReshardSite &site, const EdgeLayouts &layouts) {
  // Which axes split the experts is known from the label of their operator, and not from the layouts of rows.
  std::optional<RowSite> rows = findRowSite(groups, site);
  if (rows && (rows->route.isReader ? to : from) == ProblemNodes::ofOperator(rows->group)) {
    builder.addEdge(from, to, site.type, layouts.found, [this, site, rows = *rows, layouts](size_t i, size_t j) {
      const OperatorLabel &label = labels.ofOperator(rows.group)[rows.route.isReader ? j : i];
      return toCost(
          site.count * builder.getSetting().accumulationSteps,
          reshards.getRowCost(site.type, layouts.found[i], layouts.wanted[j], rows.route, rows.getAxes(label)));
    });
    return;
  }
  builder.addEdge(from, to, site.type, layouts, [this, site](plan::LayoutAttr found, plan::LayoutAttr wanted) {
    return getReshardCost(site, found, wanted);
  });
}

void CostPrices::addArgument(const ReshardSite &site, plan::LayoutAttr layout) {
  for (auto [i, label] : llvm::enumerate(labels.ofOperator(site.use.group)))
    builder.addCost(ProblemNodes::ofOperator(site.use.group), i,
                    getReshardCost(site, layout, label.operands[site.use.operand]));
}

void CostPrices::addGradients(int32_t from, int32_t to, unsigned parameter, int64_t count,
                              const std::vector<plan::LayoutAttr> &found) {
  builder.addEdge(from, to, groups.getParameters()[parameter].getType(), found,
                  [this, parameter, count, found](size_t i, size_t j) {
                    return parameterCosts[parameter].getGradientCost(count, found[i], labels.ofParameter(parameter)[j]);
                  });
}
