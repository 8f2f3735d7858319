// What a search for plans is limited by, and what it finds.
#ifndef WINDLASS_PLANNER_CANDIDATE_H
#define WINDLASS_PLANNER_CANDIDATE_H

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Search/Problem.h"

#include <string>
#include <vector>

namespace windlass::planner {

struct SearchLimits {
  /// The bytes of a rank for all that the plan places.
  int64_t memoryBytes = search::kUnlimitedBytes;
  /// The operations of the solver, for each mesh.
  int64_t workLimit = 200'000'000;
  /// Threads of the solver; they change nothing of the answer.
  int threads = 1;
  /// The most ranks among which named strategies split the model.
  int64_t hostDevices = 1;
};

/// A plan for one mesh.
struct Candidate {
  search::Solution solution;
  /// The plan, for the module that was searched and, by `PlanSearch::apply`, for copies of it.
  plan::StrategyChoice choice;
  /// The parts of `kRecomputeParts` of the blocks that are recomputed in what it takes of memory; how many are is known
  /// once it is scheduled.
  int recomputeParts = 0;
  /// The cost of a step by the model, with nothing recomputed: operators, reshards, reductions and updates one after
  /// the other, but for what runs beside operators.
  int64_t costNanoseconds = 0;
  /// The same, with as many blocks recomputed as the memory is counted for.
  int64_t guessNanoseconds = 0;
  /// The peak memory in bytes in that model, with the plan's recompute and without any. Both include `besideBytes`,
  /// which is expected beside the model's rows.
  int64_t peakBytes = 0, keptPeakBytes = 0, besideBytes = 0;
  /// No choice on this mesh that treats repeated blocks alike costs less in that model, with as much memory.
  int64_t boundNanoseconds = 0;
};

/// A named strategy in the model of costs, with nothing recomputed.
struct NamedCost {
  std::string name;
  int64_t costNanoseconds = 0;
  /// The bytes by which it exceeds the memory; 0 or less where it fits.
  int64_t excessBytes = 0;
};

/// A mesh, and the problem of labels that the choice of a plan on it is.
struct SearchedMesh {
  plan::StrategyChoice choice;
  search::Problem problem;
};

struct SearchReport {
  /// The named strategies that fit, by their cost.
  std::vector<Candidate> fittingNamed;
  /// The best plans, by `guessNanoseconds`; those where nothing fits are left out.
  std::vector<Candidate> candidates;
  /// The named strategies that the labels can say, as they are found.
  std::vector<NamedCost> named;
};

} // namespace windlass::planner

#endif
