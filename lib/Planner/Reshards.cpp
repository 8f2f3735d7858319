#include "Reshards.h"

#include "windlass/Support/TensorBytes.h"

#include <functional>
#include <numeric>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

unsigned Reshards::getNumber(Known &known, plan::LayoutAttr layout) const {
  auto found = known.numbers.find(layout);
  if (found != known.numbers.end())
    return found->second;
  unsigned number = 0;
  while (number < known.distinct.size() && !plan::haveSameParts(known.distinct[number], layout, mesh))
    ++number;
  if (number == known.distinct.size())
    known.distinct.push_back(layout);
  known.numbers[layout] = number;
  return number;
}

int64_t Reshards::getCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to) {
  if (from == to)
    return 0;
  Known &known = types[type];
  unsigned first = getNumber(known, from), second = getNumber(known, to);
  if (first == second)
    return 0;
  auto [it, isNew] = known.costs.try_emplace({first, second}, 0);
  if (isNew)
    it->second = computeCost(type, from, to);
  return it->second;
}

CollectiveWork Reshards::getWork(ArrayRef<StringAttr> axes) const {
  CollectiveWork work;
  int64_t stride = 1;
  // Ranks are numbered with the last axis fastest.
  for (plan::AxisAttr axis : llvm::reverse(mesh.getAxes())) {
    stride *= axis.getSize();
    if (!llvm::is_contained(axes, axis.getName()))
      continue;
    work.members *= axis.getSize();
    work.span = stride;
  }
  return work;
}

int64_t Reshards::computeCost(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to) const {
  llvm::Expected<plan::ReshardPlan> plan = plan::planReshard(type.getShape(), from, to, mesh);
  if (!plan) {
    llvm::consumeError(plan.takeError());
    return search::kForbidden;
  }
  int64_t total = 0, width = getElementBytes(type.getElementType());
  for (const plan::ReshardStep &step : plan->steps) {
    CollectiveWork work = getWork(step.axes);
    int64_t elements = std::accumulate(step.shape.begin(), step.shape.end(), int64_t(1), std::multiplies<int64_t>());
    double members = static_cast<double>(work.members), bytes = static_cast<double>(width * elements);
    work.messages = work.members - 1;
    work.sentBytes = bytes * (members - 1) / members;
    switch (step.kind) {
    case plan::ReshardStep::Kind::AllReduce:
      work.messages *= 2;
      work.sentBytes *= 2;
      break;
    case plan::ReshardStep::Kind::AllGather:
      work.sentBytes *= members;
      break;
    case plan::ReshardStep::Kind::ReduceScatter:
    case plan::ReshardStep::Kind::AllToAll:
      break;
    case plan::ReshardStep::Kind::Permute:
      work.messages = 1;
      work.sentBytes = bytes;
      break;
    case plan::ReshardStep::Kind::Slice:
    case plan::ReshardStep::Kind::Pad:
    case plan::ReshardStep::Kind::Trim:
      work.messages = 0;
      break;
    }
    total += costs.getPicoseconds(work);
  }
  return total;
}

int64_t Reshards::getGatherCost(ArrayRef<StringAttr> axes, double bytes) const {
  CollectiveWork work = getWork(axes);
  work.messages = work.members - 1;
  work.sentBytes = bytes * static_cast<double>(work.members - 1) / static_cast<double>(work.members);
  return costs.getPicoseconds(work);
}
