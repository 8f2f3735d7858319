// The search over plans: one strategy for every operator, one layout for every value and parameter.
#ifndef WINDLASS_PLANNER_CHOOSEPLAN_H
#define WINDLASS_PLANNER_CHOOSEPLAN_H

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Profile/CostModel.h"
#include "windlass/Search/Problem.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace windlass::planner {

class Groups;
class Reruns;

/// Of the labels and costs that plans are searched in: what is claimed by one version says nothing in another. To be
/// raised with each change that gives a problem other numbers.
constexpr int64_t kModelVersion = 9;

/// Replicas, parts of the batch and ranks of the model of a mesh that is searched: no two of them have the same three.
std::array<int64_t, 3> getSizes(plan::MeshAttr mesh);

struct SearchLimits {
  /// Memory that no plan exceeds; sums of what plans need stay within 64 bits.
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 1024;
  /// Of a rank, for all that the plan places.
  int64_t memoryBytes = kUnlimited;
  /// Operations of the solver, for each mesh.
  int64_t workLimit = 200'000'000;
  /// Of the solver; they change nothing of the answer.
  int threads = 1;
  /// Named strategies split the model among so many ranks at most.
  int64_t hostDevices = 1;
};

/// A plan for one mesh.
struct Candidate {
  search::Solution solution;
  /// What the pass that applies strategies takes.
  plan::StrategyChoice choice;
  /// So many parts of the blocks are run again in what it takes of memory; how many are is known once it is scheduled.
  int rerunParts = 0;
  /// Of a step, by the model of costs, with nothing run again: operators, reshards, reductions and updates one after
  /// the other, but for what runs beside operators.
  int64_t costNanoseconds = 0;
  /// The same, with what as many blocks as the memory is counted for would take again.
  int64_t guessNanoseconds = 0;
  /// The peak memory in bytes in that model, with the plan's recompute and without any. Both include `besideBytes`,
  /// which is expected beside the model's rows.
  int64_t peakBytes = 0, keptPeakBytes = 0, besideBytes = 0;
  /// No choice on this mesh that treats repeated blocks alike costs less in that model, with as much memory.
  int64_t boundNanoseconds = 0;
};

/// A named strategy in the model of costs, with nothing run again.
struct NamedCost {
  std::string name;
  int64_t costNanoseconds = 0;
  /// By how much its memory exceeds what there is; 0 or less where it fits.
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
  /// By `guessNanoseconds`; those where nothing fits are left out.
  std::vector<Candidate> candidates;
  /// Those that the labels can say, as they are found.
  std::vector<NamedCost> named;
};

/// Plans of a module at L2 on all meshes of so many ranks. Problems are built once, whatever memory there is.
class PlanSearch {
public:
  /// Fails, at the module, where no mesh suits the micro-batches, or none what is pinned (in the words of
  /// `plan::readPins`); `only` are the sizes (`getSizes`) of the one that is searched, or none. `costs` outlive the
  /// search. Threads change nothing of what is made.
  static mlir::FailureOr<std::unique_ptr<PlanSearch>> create(mlir::ModuleOp module, int64_t ranks,
                                                             const CostModel &costs, int threads,
                                                             llvm::ArrayRef<std::string> pins = {},
                                                             llvm::ArrayRef<int64_t> only = {});
  ~PlanSearch();

  /// Takes what is expected beside the rows of memory on each mesh, its communicators, from what plans on it may take.
  void setBesideBytes(llvm::function_ref<int64_t(const plan::StrategyChoice &)> expect);

  /// Lets the search begin with the plan that the module at L3 is now. False where that has something that the search
  /// would not choose.
  bool startFrom(const std::string &name);

  /// Leaves the module planned in some way.
  SearchReport choose(const SearchLimits &limits);

  size_t countMeshes() const { return meshes.size(); }

  /// What bounds all plans with such a limit of memory from below, whatever they run again.
  std::vector<SearchedMesh> getProblems(int64_t memoryBytes) const;

  /// The one of a mesh that is searched, with so many parts of the blocks run again.
  search::Problem getProblem(const plan::StrategyChoice &choice, int rerunParts, int64_t memoryBytes) const;

  /// As `evaluatePlan` for the module that is searched, once it is planned by `choice`; takes less time.
  std::optional<int64_t> evaluate(const plan::StrategyChoice &choice);

private:
  struct Mesh;
  explicit PlanSearch(mlir::ModuleOp module);
  void solveByName(Mesh &mesh);
  /// Null where it is not searched.
  Mesh *findMesh(const plan::StrategyChoice &choice) const;

  mlir::ModuleOp module;
  std::unique_ptr<Groups> groups;
  std::unique_ptr<Reruns> reruns;
  std::vector<std::unique_ptr<Mesh>> meshes;
};

/// The mesh of a module at L3, and what its ranks share out of each parameter.
plan::StrategyChoice readChoice(mlir::ModuleOp module);

/// Nanoseconds of a step of the module at L3 after `choice`, in the model that plans are searched in, with what its
/// segments run again; nothing where the plan has something that the search would not choose, such as repeats that
/// differ.
std::optional<int64_t> evaluatePlan(mlir::ModuleOp module, const plan::StrategyChoice &choice, const CostModel &costs);

} // namespace windlass::planner

#endif
