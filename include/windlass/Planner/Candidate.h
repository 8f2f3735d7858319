// The limits of a search for plans, and its results.
#ifndef WINDLASS_PLANNER_CANDIDATE_H
#define WINDLASS_PLANNER_CANDIDATE_H

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Search/Problem.h"

#include <string>
#include <vector>

namespace windlass::planner {

struct SearchLimits {
  /// The bytes of a rank in which everything that the plan places must fit.
  int64_t memoryBytes = search::kUnlimitedBytes;
  /// The most operations of the solver, for each mesh.
  int64_t workLimit = 200'000'000;
  /// The threads of the solver. Their number does not change the answer.
  int threads = 1;
  /// The most ranks among which named strategies split the model.
  int64_t hostDevices = 1;
};

/// A plan for one mesh.
struct Candidate {
  search::Solution solution;
  /// The plan, for the module that was searched and, by `PlanSearch::apply`, for copies of it.
  plan::StrategyChoice choice;
  /// The number of `kRecomputeParts` equal parts of the blocks whose recompute its memory is counted with; the actual
  /// number of recomputed blocks is known once the plan is scheduled.
  int recomputeParts = 0;
  /// The cost of a step in the model, with nothing recomputed: operators, reshards, reductions and updates one after
  /// the other, without what runs beside operators.
  int64_t costNanoseconds = 0;
  /// The same cost, with as many blocks recomputed as its memory is counted with.
  int64_t guessNanoseconds = 0;
  /// The peak memory in bytes in that model, with the plan's recompute and without any. Both include `besideBytes`,
  /// which is expected besides the model's rows.
  int64_t peakBytes = 0, keptPeakBytes = 0, besideBytes = 0;
  /// The lower bound: no choice on this mesh that treats repeated blocks alike and needs at most as much memory costs
  /// less in the model.
  int64_t boundNanoseconds = 0;
};

/// A named strategy in the model of costs, with nothing recomputed.
struct NamedCost {
  std::string name;
  int64_t costNanoseconds = 0;
  /// The bytes by which it exceeds the memory; 0 or less where it fits.
  int64_t excessBytes = 0;
};

/// A mesh, and the problem whose bound holds for all plans on it.
struct SearchedMesh {
  plan::StrategyChoice choice;
  /// The number of stages, each of them on the mesh. The problem bounds the sum over the positions: no step is shorter
  /// than its bound divided by `stages`.
  int64_t stages = 1;
  search::Problem problem;
};

struct SearchReport {
  /// The named strategies that fit, sorted by `guessNanoseconds`. Each has the least number of recomputed parts with
  /// which the rows of memory admit it.
  std::vector<Candidate> fittingNamed;
  /// The best plans, sorted by `guessNanoseconds`; meshes where nothing fits have none.
  std::vector<Candidate> candidates;
  /// The named strategies that labels can express, in the order in which they are found.
  std::vector<NamedCost> named;
};

} // namespace windlass::planner

#endif
