#include "windlass/Search/Problem.h"

#include <algorithm>
#include <limits>

using namespace windlass::search;

std::vector<int64_t> windlass::search::rowUsage(const Problem &problem, const Solution &solution) {
  std::vector<int64_t> usage(problem.rowCount() + 1);
  for (size_t i = 0; i < problem.nodes.size(); ++i)
    for (const Piece &piece : problem.nodes[i].pieces) {
      usage[piece.begin] += piece.usage[solution[i]];
      usage[piece.end] -= piece.usage[solution[i]];
    }
  for (size_t row = 1; row < usage.size(); ++row)
    usage[row] += usage[row - 1];
  usage.pop_back();
  return usage;
}

Evaluation windlass::search::evaluate(const Problem &problem, const Solution &solution) {
  Evaluation result;
  int64_t cost = std::min(problem.constant, kForbidden);
  for (size_t i = 0; i < problem.nodes.size(); ++i)
    cost = addCosts(cost, problem.nodes[i].costs[solution[i]]);
  for (const Edge &edge : problem.edges) {
    size_t index = solution[edge.from] * problem.nodes[edge.to].costs.size() + solution[edge.to];
    cost = addCosts(cost, problem.tables[edge.table][index]);
  }
  std::vector<int64_t> usage = rowUsage(problem, solution);
  size_t memoryRows = problem.capacity.size();
  result.excess = memoryRows ? std::numeric_limits<int64_t>::min() : 0;
  for (size_t row = 0; row < memoryRows; ++row)
    result.excess = std::max(result.excess, usage[row] - problem.capacity[row]);
  int32_t stream = 0;
  for (int32_t end : problem.windowEnd) {
    int64_t busiest = 0;
    for (; stream < end; ++stream)
      busiest = std::max(busiest, problem.load[stream] + usage[memoryRows + stream]);
    cost = addCosts(cost, busiest);
  }
  result.cost = cost;
  return result;
}
