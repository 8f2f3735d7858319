// The compilation from a model file to each level, as the verbs of the command line use it.
#ifndef WINDLASS_PIPELINE_COMPILE_H
#define WINDLASS_PIPELINE_COMPILE_H

#include "windlass/Cluster/Cluster.h"
#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/Frontend/Onnx/Import.h"
#include "windlass/Profile/Profile.h"
#include "windlass/Search/Problem.h"
#include "windlass/Simulator/PredictStep.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Target/Cpp/Project.h"
#include "windlass/rt/reserve.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"

#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace windlass::planner {
class PlanSearch;
} // namespace windlass::planner

namespace windlass {

struct OnnxToTrainReport;

/// Exit codes of the command line; those of errors are in the table of diagnostics. `kDifferent` is what
/// `windlass diff` finds.
enum ExitCode { kDone = 0, kDifferent = 1, kInternal = 70 };

/// Settings as the user gives them: parameters by patterns.
struct CompileSettings : plan::ProgramSettings {
  std::vector<std::string> freeze;
  std::vector<std::string> noDecay;
  /// Initializers that train whatever the file says of them.
  std::vector<std::string> train;
  /// Go on with a file that holds another model than was exported.
  bool acceptAltered = false;
  /// Warnings about the model are errors.
  bool strict = false;
  /// When set, exactly these parameters train, by logical name (a plan's; `freeze` is empty then).
  std::optional<std::vector<std::string>> trainable;
};

/// How a plan is made. Values that the user did not give are absent.
struct PlanChoice {
  /// A named one, or "auto".
  std::string strategy = "auto";
  /// What the strategy may not change, PATTERN=VALUE (`Pins.h`).
  std::vector<std::string> pins;
  /// The configuration of the model whose sharding annotations are pins too; empty for none.
  std::string onnxPins;
  /// Bytes per device; 0: the device's memory in the cluster.
  int64_t memoryLimit = 0;
  int64_t getMemoryLimit() const { return memoryLimit ? memoryLimit : cluster.getDeviceMemoryBytes(); }
  /// The compute team of a rank; 0: its part of this host's processors, as programs take it.
  int64_t threads = 0;
  /// Of the search; they change nothing of the plan.
  int64_t searchThreads = std::max(1u, std::thread::hardware_concurrency());
  /// Operations of the search for each mesh.
  int64_t searchWork = 200'000'000;
  /// The plan that the search begins with; null for none.
  std::shared_ptr<const plan::PlanFile> start;
  Cluster cluster;
  /// Of the cluster's devices; null for the analytic model.
  std::shared_ptr<const Profile> profile;
};

/// What a plan runs again in the backward pass, for a rank and a micro-batch.
struct RerunReport {
  /// Blocks in program order, and what of each is run again.
  std::vector<std::pair<std::string, std::string>> segments;
  /// Bytes that the forward pass leaves for the backward pass, if nothing is run again and as planned.
  int64_t stashBytesBefore = 0, stashBytes = 0;
  /// What is run again, and what runs anyway.
  double flops = 0, flopsBefore = 0;
  /// How many blocks something of is run again.
  size_t countBlocks() const;
};

/// A module at L5 and what it takes.
struct Schedule {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// What a rank takes beside its arenas, as the back end declares it.
  rt::reserve reserve;
  /// Bytes per device: its arena and the reserve, and the same with the largest set that lives in the arena at one
  /// time.
  int64_t bytes = 0, liveBytes = 0;
  RerunReport rerun;
  /// Whether weights that the strategy would gather ahead of their use are gathered where they are used, to fit.
  bool hasDroppedPrefetch = false;
};

/// What a search says of the plan that it found.
struct SearchSummary {
  /// That were tried.
  size_t meshes = 0;
  /// The cost of a step in the search's model, which adds operators up: it is not how long a step takes.
  int64_t costNanoseconds = 0;
  /// A lower bound of that cost over all plans of the searched kind that the model's rows of memory admit, whatever
  /// they recompute. Absent where the rows admit none: it would say nothing about the plan that was found in another
  /// way.
  std::optional<int64_t> boundNanoseconds;
  /// By which part of the cost it may be above that bound; 1 where there is none.
  double getGap() const;
  /// The Lagrange multiplier of memory on the plan's mesh: by so much at most another GiB per device lowers the bound.
  double nanosecondsPerGib = 0;
  /// What proves the bound: the text of plan.cert.
  std::string certificate;
  double searchSeconds = 0;
  /// Named strategies in the same model, with nothing run again, and by how many bytes they do not fit.
  struct Named {
    std::string name;
    int64_t costNanoseconds = 0, excessBytes = 0;
  };
  std::vector<Named> named;
  /// The problem of labels that the plan solves.
  search::Problem problem;
  /// Figures that the cluster does not have.
  std::vector<std::string> assumptions;
};

/// Whether programs for a back end can compute in `precision`; an exit code.
int checkPrecision(llvm::StringRef backend, llvm::StringRef precision);

/// One compilation. Every step returns an exit code; what went wrong has been printed to standard error as one line.
class Compilation {
public:
  Compilation(mlir::MLIRContext &context, std::string modelPath) : context(context), modelPath(std::move(modelPath)) {}

  /// What is said on standard error about the model: nothing, warnings, or also what trains and each guess.
  enum class Talk { none, warnings, all };
  Talk talk = Talk::warnings;

  /// File to L1.
  int import(const CompileSettings &settings);
  /// L1 to L2.
  int buildFunctions(const CompileSettings &settings);
  /// L2 to L5 by a named strategy; sets the plan's text. Weights are not gathered ahead, and segments run again, as far
  /// as the memory of a device needs it; fails where that does not help, with what would.
  int applyStrategy(const PlanChoice &choice);
  /// The same by a random plan, which says itself what is run again.
  int applyRandomPlan(const PlanChoice &choice, uint64_t seed);
  /// L2 to L5 by a plan that has been read. `choice` has the limit where the plan has none.
  int applyPlan(const plan::PlanFile &plan, const PlanChoice &choice);
  /// L2, which stays as it is, to L5 by a named strategy that fits; says nothing where it does not.
  bool trySchedule(const PlanChoice &choice, Schedule &schedule);
  /// How long a step takes, at L5.
  StepPrediction predict(const PlanChoice &choice, const std::function<void(const SimulatedCommand &)> &visit = {});
  /// The planned module to L3b.
  int materialize();
  /// The model with what the plan says of its tensors, as ONNX annotations; at L3b.
  int exportOnnx(std::string &bytes);
  /// Verifies L5.
  int verify();
  /// Computes anew what is claimed of the plan that has been applied and its pins, the bound from the text of its
  /// certificates.
  /// Fails at the first claim that does not hold.
  int verifyClaims(const plan::PlanClaims &claims, const std::vector<std::string> &pins, llvm::StringRef certificate,
                   const PlanChoice &choice);
  /// L5 to the emitted project, which takes from the choice's profile how products and attentions are computed
  /// fastest. Fails for devices that no back end can run yet.
  int emit(const PlanChoice &choice, cpp::ProjectFiles &files);

  /// At L2 before a plan is applied, at L3 or L3b after.
  mlir::ModuleOp getPlanned() { return *module; }
  /// At L5.
  mlir::ModuleOp getModule() { return *scheduled.module; }
  const WeightStore &getWeights() const { return *weights; }
  const std::string &getPlanText() const { return planText; }
  const Cluster &getCluster() const { return cluster; }
  const rt::reserve &getReserve() const { return scheduled.reserve; }
  /// The bytes of a device, arenas and reserve; at L5.
  int64_t getDeviceBytes() const { return scheduled.bytes; }
  const RerunReport &getRerun() const { return scheduled.rerun; }
  bool hasDroppedPrefetch() const { return scheduled.hasDroppedPrefetch; }
  /// Nothing where the strategy was named.
  const std::optional<SearchSummary> &getSearch() const { return search; }
  int64_t getRanks() const { return cluster.getDevices(); }

private:
  void printTraining(const OnnxToTrainReport &report);
  int readOnnxPins(const PlanChoice &choice, std::vector<std::string> &pins);
  int makePlan(const PlanChoice &choice, std::unique_ptr<mlir::Pass> pass, bool mayRerun);
  int searchPlan(const PlanChoice &choice);
  /// Puts the choices of a plan on the module of L2, which it has to fit; `what` names it in messages.
  int putPlan(const plan::PlanFile &plan, llvm::StringRef what);
  int startFrom(planner::PlanSearch &plans, const plan::PlanFile &start);
  /// Sets the plan's text for the module and its schedule.
  int keepPlan(const PlanChoice &choice);
  void addAttentions(const PlanChoice &choice, cpp::ProjectOptions &options);

  mlir::MLIRContext &context;
  std::string modelPath;
  /// Up to L3b.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// At L2, where a plan has been applied.
  mlir::OwningOpRef<mlir::ModuleOp> unplanned;
  Schedule scheduled;
  std::shared_ptr<WeightStore> weights;
  std::string planText, modelHash;
  CompileSettings compiled;
  Cluster cluster;
  std::optional<SearchSummary> search;
};

} // namespace windlass

#endif
