// The search for plans: one strategy for every operator, one layout for every value and parameter.
#ifndef WINDLASS_PLANNER_CHOOSEPLAN_H
#define WINDLASS_PLANNER_CHOOSEPLAN_H

#include "windlass/Planner/Candidate.h"
#include "windlass/Profile/CostModel.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace windlass::planner {

class Counterparts;
class Groups;
class MeshSearch;
class RecomputeClasses;

/// The version of the labels and costs of searched plans: a claim of one version says nothing in another. Every change
/// that gives a problem other numbers raises it.
constexpr int64_t kModelVersion = 14;

/// Returns the numbers of replicas, parts of the batch and ranks of the model of a searched mesh: no two searched
/// meshes have the same three.
std::array<int64_t, 3> getSizes(plan::MeshAttr mesh);

/// The search for plans of a module at L2 on all meshes of a number of ranks. It reads the module and does not change
/// it.
class PlanSearch {
public:
  /// Prepares the search. Fails, at the module, where no mesh suits the micro-batches, or none suits `pins` (in the
  /// words of `plan::readPins`). `only` holds the sizes (`getSizes`) of the one mesh that is searched, or nothing.
  /// `module` and `costs` outlive the search. The number of threads changes nothing in the results.
  static mlir::FailureOr<std::unique_ptr<PlanSearch>> create(mlir::ModuleOp module, int64_t ranks,
                                                             const CostModel &costs, int threads,
                                                             llvm::ArrayRef<std::string> pins = {},
                                                             llvm::ArrayRef<int64_t> only = {});
  ~PlanSearch();

  /// Takes the bytes that are expected besides the rows of memory on each mesh, for its communicators.
  void setBesideBytes(llvm::function_ref<int64_t(const plan::StrategyChoice &)> expect);

  /// Lets the search begin with the plan of `planned`, a copy of the module at L3. Returns false where that plan has
  /// something that the search would not choose.
  bool startFrom(mlir::ModuleOp planned, const std::string &name);

  /// Finds the best plans within limits.
  SearchReport choose(const SearchLimits &limits);

  /// Plans the module, or a copy of it, by a choice for the module: L2 to L3. Fails at what a pin contradicts.
  mlir::LogicalResult apply(const plan::StrategyChoice &choice, mlir::ModuleOp copy, int64_t bucketBytes) const;

  size_t countMeshes() const { return meshes.size(); }

  /// Returns the problems that bound the simulated steps of all plans within a rank's memory from below, whatever they
  /// recompute. With a `pipeline` of S stages, which is null for none, the problems bound S times the steps of all
  /// pipelines whose positions have these meshes and which are cut and scheduled as it says; it does not matter whether
  /// the module is cut.
  std::vector<SearchedMesh> getProblems(int64_t memoryBytes, plan::PipelineAttr pipeline) const;

  /// Returns the problem of the mesh of `choice`, which is searched, with `recomputeParts` of `kRecomputeParts` of the
  /// blocks recomputed.
  search::Problem getProblem(const plan::StrategyChoice &choice, int recomputeParts, int64_t memoryBytes) const;

  /// Evaluates `planned`, a copy of the module at L3 after `choice`, as `evaluatePlan` does, in less time.
  std::optional<int64_t> evaluate(mlir::ModuleOp planned, const plan::StrategyChoice &choice) const;

  /// Returns the nanoseconds that a step of `planned`, which is not cut, takes at least, by the problem whose bound is
  /// claimed; nothing where `evaluate` returns nothing.
  std::optional<int64_t> evaluateLeast(mlir::ModuleOp planned, const plan::StrategyChoice &choice) const;

private:
  explicit PlanSearch(mlir::ModuleOp module);
  /// Adds, for each mesh once, the named strategies that lead to it.
  void addNamed(int64_t hostDevices);
  void addNamed(MeshSearch &mesh, mlir::ModuleOp copy, const Counterparts &counterparts) const;
  /// Returns the search on the mesh of `choice`; null where that mesh is not searched.
  MeshSearch *findMesh(const plan::StrategyChoice &choice) const;

  mlir::ModuleOp module;
  std::unique_ptr<Groups> groups;
  std::unique_ptr<RecomputeClasses> recompute;
  std::vector<std::unique_ptr<MeshSearch>> meshes;
  /// The threads on which problems of several meshes are built.
  int threads = 1;
  /// The meshes whose named strategies are known.
  std::set<const MeshSearch *> named;
};

/// Returns the mesh of a module at L3, and the layouts of its parameters' copies.
plan::StrategyChoice readChoice(mlir::ModuleOp module);

/// Returns the nanoseconds of a step of the module at L3 after `choice`, in the search's model, with what its segments
/// recompute; nothing where the plan has something that the search would not choose, such as repeats that differ.
std::optional<int64_t> evaluatePlan(mlir::ModuleOp module, const plan::StrategyChoice &choice, const CostModel &costs);

} // namespace windlass::planner

#endif
