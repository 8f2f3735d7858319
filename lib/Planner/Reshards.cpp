#include "Reshards.h"

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

Reshards::Cost Reshards::computeCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to) const {
  llvm::Expected<plan::ReshardPlan> plan = plan::planReshard(type.getShape(), from, to, mesh);
  if (!plan) {
    llvm::consumeError(plan.takeError());
    return {search::kForbidden, search::kForbidden};
  }
  int64_t copies = 0, collectives = 0, width = getElementBytes(type.getElementType());
  for (const plan::ReshardStep &step : plan->steps) {
    int64_t elements = std::accumulate(step.shape.begin(), step.shape.end(), int64_t(1), std::multiplies<int64_t>());
    double bytes = static_cast<double>(width * elements);
    switch (step.kind) {
    case plan::ReshardStep::Kind::AllReduce:
      collectives += getCost("all_reduce", step.axes, bytes);
      break;
    case plan::ReshardStep::Kind::AllGather:
      collectives +=
          getCost("all_gather", step.axes, bytes * static_cast<double>(plan::getGroup(mesh, step.axes).getMembers()));
      break;
    case plan::ReshardStep::Kind::ReduceScatter:
      collectives += getCost("reduce_scatter", step.axes, bytes);
      break;
    case plan::ReshardStep::Kind::AllToAll:
      collectives += getCost("all_to_all", step.axes, bytes);
      break;
    case plan::ReshardStep::Kind::Permute:
      collectives += getCost("permute", step.axes, bytes);
      break;
    case plan::ReshardStep::Kind::Slice:
      copies += getCopyCost(type, static_cast<double>(elements / step.members));
      break;
    case plan::ReshardStep::Kind::Pad:
    case plan::ReshardStep::Kind::Trim:
      copies += getCopyCost(type, static_cast<double>(step.elements));
      break;
    }
  }
  return {copies + collectives, collectives};
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
