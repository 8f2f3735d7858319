#include "windlass/Search/Shrink.h"

#include "ShrinkGraph.h"

using namespace windlass::search;

Shrunk windlass::search::shrink(const Problem &problem, int64_t work) {
  ShrinkGraph graph(problem, work);
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    auto apply = [&](bool (ShrinkGraph::*step)()) {
      if (!graph.infeasible())
        changed |= (graph.*step)();
    };
    apply(&ShrinkGraph::dropUnsupported);
    apply(&ShrinkGraph::foldSingles);
    apply(&ShrinkGraph::foldSums);
    apply(&ShrinkGraph::joinBijections);
    apply(&ShrinkGraph::reduceRows);
    apply(&ShrinkGraph::dropDominated);
    apply(&ShrinkGraph::foldSingles);
    apply(&ShrinkGraph::eliminateLeaves);
    if (!changed || graph.infeasible())
      break;
  }
  // The amounts that the last steps took out of pieces come off the capacities.
  if (!graph.infeasible())
    graph.reduceRows();
  return graph.finish();
}
