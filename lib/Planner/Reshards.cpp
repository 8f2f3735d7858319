#include "Reshards.h"

#include "windlass/Support/RowShare.h"
#include "windlass/Support/TensorBytes.h"

#include <cmath>
#include <functional>
#include <numeric>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

unsigned Reshards::getNumber(TypeCosts &own, plan::LayoutAttr layout) const {
  auto found = own.numbers.find(layout);
  if (found != own.numbers.end())
    return found->second;
  unsigned number = 0;
  while (number < own.distinct.size() && !plan::haveSameParts(own.distinct[number], layout, mesh))
    ++number;
  if (number == own.distinct.size())
    own.distinct.push_back(layout);
  own.numbers[layout] = number;
  return number;
}

int64_t Reshards::getCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to) {
  return findCost(type, from, to).all;
}

int64_t Reshards::getLeastCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to) {
  return findCost(type, from, to).collectives;
}

Reshards::Cost Reshards::findCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to) {
  if (from == to)
    return {};
  TypeCosts &own = types[type];
  unsigned first = getNumber(own, from), second = getNumber(own, to);
  if (first == second)
    return {};
  auto [it, isNew] = own.costs.try_emplace({first, second});
  if (isNew)
    it->second = computeCost(type, from, to);
  return it->second;
}

int64_t Reshards::getCost(const char *kind, ArrayRef<StringAttr> axes, double bytes) const {
  return costs.getPicoseconds(CollectiveWork{kind, plan::getGroup(mesh, axes), bytes});
}

static double getBytes(RankedTensorType type, const plan::ReshardStep &step) {
  int64_t elements = std::accumulate(step.shape.begin(), step.shape.end(), int64_t(1), std::multiplies<int64_t>());
  return static_cast<double>(getElementBytes(type.getElementType()) * elements);
}

Reshards::Cost Reshards::computeCost(RankedTensorType type, const plan::ReshardStep &step) const {
  auto move = [&](const char *kind, double bytes) {
    int64_t cost = getCost(kind, step.axes, bytes);
    return Cost{cost, cost};
  };
  double bytes = getBytes(type, step);
  switch (step.kind) {
  case plan::ReshardStep::Kind::AllReduce:
    return move("all_reduce", bytes);
  case plan::ReshardStep::Kind::AllGather:
    return move("all_gather", bytes * static_cast<double>(plan::getGroup(mesh, step.axes).getMembers()));
  case plan::ReshardStep::Kind::ReduceScatter:
    return move("reduce_scatter", bytes);
  case plan::ReshardStep::Kind::AllToAll:
    return move("all_to_all", bytes);
  case plan::ReshardStep::Kind::Permute:
    return move("permute", bytes);
  case plan::ReshardStep::Kind::Slice:
    return {getCopyCost(type, bytes / static_cast<double>(getElementBytes(type.getElementType()) * step.members)), 0};
  case plan::ReshardStep::Kind::Pad:
  case plan::ReshardStep::Kind::Trim:
    return {getCopyCost(type, static_cast<double>(step.elements)), 0};
  }
  llvm_unreachable("a step of no kind");
}

Reshards::Cost Reshards::computeCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to) const {
  llvm::Expected<plan::ReshardPlan> plan = plan::planReshard(type.getShape(), from, to, mesh);
  if (!plan) {
    llvm::consumeError(plan.takeError());
    return {search::kForbidden, search::kForbidden};
  }
  Cost sum;
  for (const plan::ReshardStep &step : plan->steps) {
    Cost cost = computeCost(type, step);
    sum.all += cost.all;
    sum.collectives += cost.collectives;
  }
  return sum;
}

int64_t Reshards::getRowCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to, const RowRoute &route,
                             ArrayRef<StringAttr> axes) {
  if (from == to)
    return 0;
  const RoutedCost &routed = findRowCost(type, from, to, route);
  return !routed.axes.empty() && ArrayRef(routed.axes) == axes ? routed.cost.all : getCost(type, from, to);
}

int64_t Reshards::getLeastRowCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to,
                                  const RowRoute &route) {
  if (from == to)
    return 0;
  const RoutedCost &routed = findRowCost(type, from, to, route);
  int64_t least = getLeastCost(type, from, to);
  return routed.axes.empty() ? least : std::min(least, routed.cost.collectives);
}

const Reshards::RoutedCost &Reshards::findRowCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to,
                                                  const RowRoute &route) {
  TypeCosts &own = types[type];
  auto [it, isNew] =
      own.routed.try_emplace({getNumber(own, from), getNumber(own, to), route.experts, route.chosen, route.isReader});
  if (isNew)
    it->second = computeRowCost(type, from, to, route);
  return it->second;
}

Reshards::RoutedCost Reshards::computeRowCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to,
                                              const RowRoute &route) const {
  llvm::Expected<plan::ReshardPlan> plan = plan::planReshard(type.getShape(), from, to, mesh);
  if (!plan) {
    llvm::consumeError(plan.takeError());
    return {};
  }
  if (plan->steps.empty())
    return {};
  size_t place = route.isReader ? plan->steps.size() - 1 : 0;
  const plan::ReshardStep &exchanged = plan->steps[place];
  if (exchanged.kind != (route.isReader ? plan::ReshardStep::Kind::AllGather : plan::ReshardStep::Kind::ReduceScatter))
    return {};
  GroupShape group = plan::getGroup(mesh, exchanged.axes);
  int64_t members = group.getMembers();
  RowExchange exchange = {group, getBytes(type, exchanged) * (route.isReader ? static_cast<double>(members) : 1),
                          getRowShare(route.experts, members, route.chosen)};
  if (route.experts % members != 0 || !costs.routesRows(exchange))
    return {};
  RoutedCost routed;
  routed.axes.assign(exchanged.axes.begin(), exchanged.axes.end());
  for (auto [i, step] : llvm::enumerate(plan->steps)) {
    Cost cost;
    if (i == place) {
      int64_t routing = costs.getCost(exchange).picoseconds;
      cost = {routing, routing};
    } else {
      cost = computeCost(type, step);
    }
    routed.cost.all += cost.all;
    routed.cost.collectives += cost.collectives;
  }
  return routed;
}

int64_t Reshards::getCopyCost(RankedTensorType type, double elements) const {
  auto element = llvm::dyn_cast<FloatType>(type.getElementType());
  OperatorWork work;
  work.bytes = 2 * elements * static_cast<double>(getElementBytes(type.getElementType()));
  work.family = makeFamily("copy", element && element.getWidth() < 32);
  return costs.getPicoseconds(work);
}

int64_t Reshards::getReduceCost(ArrayRef<StringAttr> axes, int64_t bytes, int64_t bucketBytes) const {
  auto bucket = static_cast<double>(std::max(bytes, bucketBytes));
  double share = static_cast<double>(bytes) / bucket;
  return std::llround(share * static_cast<double>(getCost("all_reduce", axes, bucket)));
}

int64_t Reshards::getGatherCost(ArrayRef<StringAttr> axes, int64_t bytes, int64_t unitBytes) const {
  int64_t alone = getCost("all_gather", axes, static_cast<double>(bytes));
  if (bytes >= unitBytes)
    return alone;
  auto unit = static_cast<double>(unitBytes);
  double share = static_cast<double>(bytes) / unit;
  return std::min<int64_t>(alone, std::llround(share * static_cast<double>(getCost("all_gather", axes, unit))));
}
