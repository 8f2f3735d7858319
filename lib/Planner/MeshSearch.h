// The search on one mesh.
#ifndef WINDLASS_LIB_PLANNER_MESHSEARCH_H
#define WINDLASS_LIB_PLANNER_MESHSEARCH_H

#include "RangeProblem.h"

#include "windlass/Planner/Candidate.h"
#include "windlass/Search/Solver.h"

namespace windlass::planner {

/// Returns the setting of a whole step of `function` on `mesh`: memory without a limit, one micro-batch in flight.
RangeSetting makeStepSetting(mlir::func::FuncOp function, plan::MeshAttr mesh, const CostModel &costs, int threads);

/// Returns the labels of a copy of the module at L3 after `choice`; nothing where repeats differ, or where the copy has
/// something that the search would not choose.
std::optional<search::Solution> encodeAlike(const RangeProblem &problem, const Groups &groups,
                                            const plan::StrategyChoice &choice, const Counterparts &planned);

/// Returns the cost of a step of a copy of the module at L3 after `choice`, in nanoseconds, with what its segments
/// recompute; nothing where `encodeAlike` finds no labels.
std::optional<int64_t> evaluateOn(RangeProblem &problem, const Groups &groups, const plan::StrategyChoice &choice,
                                  const Counterparts &planned);

/// Returns the nanoseconds that the step of a copy of the module at L3 after `choice` takes at least, by the problem
/// whose bound is claimed (`RangeProblem::buildBound`): for a pipeline of S positions, S times those nanoseconds.
/// Returns nothing where `encodeAlike` finds no labels.
std::optional<int64_t> evaluateLeastOn(RangeProblem &problem, const Groups &groups, const plan::StrategyChoice &choice,
                                       const Counterparts &planned, plan::PipelineAttr pipeline);

/// The problems of one mesh and what is known of their solutions. Each problem is built once, for any limit of memory.
class MeshSearch {
public:
  MeshSearch(const plan::StrategyChoice &choice, const Groups &groups, const RecomputeClasses &recompute,
             const CostModel &costs, int threads);

  /// The mesh and what is pinned.
  const plan::StrategyChoice &getChoice() const { return builder.getBase(); }
  RangeProblem &getBuilder() { return builder; }
  std::string findUnmetPin() const { return builder.findUnmetPin(); }

  /// Sets the bytes that are expected besides the rows of memory.
  void setBesideBytes(int64_t bytes) { besideBytes = bytes; }
  /// Adds a plan that is known before the search; returns false where it is not allowed.
  bool addKnown(const std::string &name, search::Solution solution);

  /// Builds the problem with `parts` of `kRecomputeParts` of the blocks recomputed, before it is solved on a thread.
  void build(int parts);
  /// Returns that problem for a rank's memory, and builds it where needed.
  const search::Problem &getProblem(int parts, int64_t memoryBytes);
  /// Builds the problem that bounds the steps of all plans that fit into a rank's memory. With a `pipeline` of S
  /// positions, which is null for none, it bounds S times the step of the pipelines whose positions have this mesh.
  search::Problem buildBound(int64_t memoryBytes, plan::PipelineAttr pipeline);

  /// Evaluates the known plans for a rank's memory, adds them to `named`, and returns the least cost of those that fit.
  int64_t evaluateKnown(int64_t memoryBytes, std::vector<NamedCost> &named);
  /// Solves the problem with nothing recomputed, whose answer is one of the known plans where none is better. Solves it
  /// without a limit of memory first: where that answer fits, it is the answer with the limit too. Gives up where no
  /// solution costs less than `best`. Returns the cost of the answer.
  int64_t solveKept(const SearchLimits &limits, int64_t best);
  /// Solves the problem with `parts` of the blocks recomputed, which has been built. What was found before for more
  /// memory bounds it, and is the answer where that fits and nothing better is left.
  void solve(int parts, const SearchLimits &limits, int64_t best);
  /// Whether plans that recompute may be better than the one without, and than `best`.
  bool mayRecompute(int64_t best) const;

  /// Adds the plans found for a rank's memory to `candidates`, and the known ones that fit to `fittingNamed`.
  void report(int64_t memoryBytes, SearchReport &report) const;

private:
  void setMemory(int parts, int64_t bytes);
  Candidate makeCandidate(int parts, const search::Solution &solution) const;

  int64_t besideBytes = 0;
  RangeProblem builder;
  /// The problems by the number of recomputed parts of the blocks; all but the first are built when they are needed.
  search::Problem problems[kRecomputeParts + 1];
  struct KnownPlan {
    std::string name;
    search::Solution solution;
  };
  std::vector<KnownPlan> known;
  /// The answer without a limit of memory.
  std::optional<search::SolveResult> free;
  /// The answers with a limit of `solvedBytes`, where there are any.
  std::optional<search::SolveResult> results[kRecomputeParts + 1];
  int64_t solvedBytes[kRecomputeParts + 1] = {};
};

} // namespace windlass::planner

#endif
