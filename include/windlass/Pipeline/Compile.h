// The compilation from a model file to each level, as the subcommands use it.
#ifndef WINDLASS_PIPELINE_COMPILE_H
#define WINDLASS_PIPELINE_COMPILE_H

#include "windlass/Frontend/Check/CheckModel.h"
#include "windlass/Pipeline/CompileSettings.h"
#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Pipeline/PlanChoice.h"
#include "windlass/Pipeline/SearchSummary.h"
#include "windlass/Simulator/PredictStep.h"
#include "windlass/Target/Cpp/Project.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"

#include <optional>
#include <string>
#include <vector>

namespace windlass::planner {
class PlanSearch;
} // namespace windlass::planner

namespace windlass {

struct FoundPlan;

/// Returns an error where programs for a back end do not have the types that the settings ask for.
rt::status checkTypes(llvm::StringRef backend, const plan::ProgramSettings &settings);

/// The events, besides errors, that a compilation reports to its caller while it works.
struct CompilationEvents {
  /// The model has been read: its report, and the module at L1, or null where the report says why there is none.
  std::function<void(const OnnxToTrainReport &report, mlir::ModuleOp module)> modelRead;
  /// One line that says what is done differently from what was asked for.
  std::function<void(llvm::StringRef line)> warning;
};

/// A choice of what the host's memory holds, and the simulated step of the plan with it; none where no plan was found.
struct OffloadTry {
  plan::Offload offload = plan::Offload::none;
  std::optional<double> stepSeconds;
  /// Whether there was a plan before, so that only plans that were likely to be shorter were scheduled.
  bool hadToBeat = false;
};

/// A number of merged micro-batches, and the simulated step of the plan with it; none where no plan fits.
struct MergeTry {
  int64_t merge = 1;
  std::optional<double> stepSeconds;
};

/// One compilation. Before a function returns a failure, it has reported errors of the context, each with its code.
class Compilation {
public:
  Compilation(mlir::MLIRContext &context, std::string modelPath, CompilationEvents events = {})
      : context(context), modelPath(std::move(modelPath)), events(std::move(events)) {}

  /// Reads the model file into a module at L1.
  mlir::LogicalResult import(const CompileSettings &settings);
  /// Takes the module from L1 to L2.
  mlir::LogicalResult buildFunctions(const CompileSettings &settings);
  /// Takes the module from L2 to L5 by a named strategy or the search; sets the plan's text. Where the memory of a
  /// device requires it, weights are not gathered ahead and segments are recomputed; fails where that does not suffice,
  /// with an error that says what would.
  mlir::LogicalResult applyStrategy(const PlanChoice &choice, Purpose purpose);
  /// Does the same by a random plan, which itself determines what is recomputed.
  mlir::LogicalResult applyRandomPlan(const PlanChoice &choice, uint64_t seed);
  /// Takes the module from L2 to L5 by a plan that has been read. `choice` gives the memory limit where the plan has
  /// none.
  mlir::LogicalResult applyPlan(const plan::PlanFile &plan, const PlanChoice &choice, Purpose purpose);
  /// Schedules a copy of the module at L2 by the named strategy of `choice`, as a trial; returns whether it fits, and
  /// reports no errors.
  bool trySchedule(const PlanChoice &choice, Schedule &schedule);
  /// Predicts how long a step takes; at L5.
  StepPrediction predict(const PlanChoice &choice, const std::function<void(const SimulatedCommand &)> &visit = {});
  /// Takes the planned module to L3b.
  mlir::LogicalResult materialize();
  /// Writes to `bytes` the model with the plan's shardings of its tensors as ONNX annotations; at L3b.
  mlir::LogicalResult exportOnnx(std::string &bytes);
  /// Calls `verifyClaims` for the plan that has been applied, with its pins.
  mlir::LogicalResult verifyClaims(const plan::PlanClaims &claims, const std::vector<std::string> &pins,
                                   llvm::StringRef certificate, const PlanChoice &choice);
  /// Takes the module from L5 to the emitted project, which takes from the profile of `choice` how products and
  /// attentions are computed fastest. Fails for devices that no back end supports yet.
  mlir::LogicalResult emit(const PlanChoice &choice, cpp::ProjectFiles &files);

  /// Returns the module: at L2 before a plan is applied, at L3 or L3b after.
  mlir::ModuleOp getPlanned() { return *module; }
  /// Returns the module at L5.
  mlir::ModuleOp getModule() { return *scheduled.module; }
  sched::ProgramOp getProgram() { return scheduled.program; }
  const WeightStore &getWeights() const { return *weights; }
  const std::string &getPlanText() const { return planText; }
  const Cluster &getCluster() const { return cluster; }
  const rt::reserve &getReserve() const { return scheduled.reserve; }
  /// Returns the bytes that a device needs, arenas and reserve; at L5.
  int64_t getDeviceBytes() const { return scheduled.bytes; }
  const RecomputeReport &getRecompute() const { return scheduled.recompute; }
  bool hasDroppedPrefetch() const { return scheduled.hasDroppedPrefetch; }
  /// Returns the summary of the search; none where the strategy was named.
  const std::optional<SearchSummary> &getSearch() const { return search; }
  /// Returns what the host might hold from step to step, where that was searched; else nothing.
  llvm::ArrayRef<OffloadTry> getOffloadTries() const { return offloadTries; }
  /// Returns the numbers of micro-batches that were merged on trial, where that was searched; else nothing.
  llvm::ArrayRef<MergeTry> getMergeTries() const { return mergeTries; }
  int64_t getRanks() const { return cluster.getDevices(); }

private:
  /// Freezes all parameters but those that a plan trains, by their logical names.
  mlir::LogicalResult trainOnly(llvm::ArrayRef<std::string> names);
  /// Cuts the module at L2 into the chunks of the pipeline that is wanted, if one is.
  mlir::LogicalResult applyPipeline(const PlanChoice &choice);
  /// Fails where micro-batches are merged, whose shardings ONNX annotations cannot say.
  mlir::LogicalResult checkOneMicroBatch();
  mlir::LogicalResult readOnnxPins(const PlanChoice &choice, std::vector<std::string> &pins);
  /// Takes the module from L2 to L3 by `apply`, and to L5.
  mlir::LogicalResult makePlan(const PlanChoice &choice, llvm::function_ref<mlir::LogicalResult()> apply,
                               Purpose purpose, bool mayRecompute);
  /// Takes the module from L1 to L2 with as many micro-batches merged as the settings say.
  mlir::LogicalResult buildMerged(const CompileSettings &settings);
  /// Does what `applyStrategy` does for 1, 2, 4, ... merged micro-batches, as long as the step becomes shorter, and
  /// keeps the best plan.
  mlir::LogicalResult chooseMerge(const PlanChoice &choice, Purpose purpose);
  mlir::LogicalResult applyOne(const PlanChoice &choice, Purpose purpose);
  mlir::LogicalResult searchPlan(const PlanChoice &choice, Purpose purpose);
  /// Searches a plan for a module at L2 that is labelled with the offload of `choice`, as a trial.
  mlir::FailureOr<FoundPlan> searchWithOffload(mlir::ModuleOp unplanned, const PlanChoice &choice, double mustBeat);
  /// Returns the offload of `choice`; where it is searched, the one with which the named strategy has the shortest
  /// step.
  plan::Offload chooseOffload(const PlanChoice &choice);
  /// Applies the choices of a plan to a module at L2, which the plan must fit; `what` names the plan in messages.
  mlir::LogicalResult putPlan(mlir::ModuleOp unplanned, const plan::PlanFile &plan, llvm::StringRef what);
  mlir::LogicalResult startFrom(planner::PlanSearch &plans, const plan::PlanFile &start, mlir::ModuleOp unplanned);
  /// Fails where the schedule does not fit into the memory of a device or of its host. `unplanned` is at L2.
  mlir::LogicalResult checkMemory(mlir::ModuleOp unplanned, const PlanChoice &choice);
  /// Sets the plan's text for the module and its schedule.
  mlir::LogicalResult keepPlan(const PlanChoice &choice);
  void addAttentions(const PlanChoice &choice, cpp::ProjectOptions &options);
  mlir::InFlightDiagnostic error(Code code);

  mlir::MLIRContext &context;
  std::string modelPath;
  CompilationEvents events;
  /// The module at any level up to L3b.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// A copy at L2, where a plan has been applied.
  mlir::OwningOpRef<mlir::ModuleOp> unplanned;
  /// Where the number of merged micro-batches is searched, a copy at L1 and the settings to take it to L2.
  mlir::OwningOpRef<mlir::ModuleOp> graph;
  CompileSettings merging;
  Schedule scheduled;
  std::shared_ptr<WeightStore> weights;
  std::string planText, modelHash;
  CompileSettings compiled;
  Cluster cluster;
  std::optional<SearchSummary> search;
  std::vector<OffloadTry> offloadTries;
  std::vector<MergeTry> mergeTries;
};

} // namespace windlass

#endif
