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

/// Fails where programs for a back end cannot compute in `precision`.
rt::status checkPrecision(llvm::StringRef backend, llvm::StringRef precision);

/// What a compilation tells its caller while it works, beside errors.
struct CompilationEvents {
  /// The model has been read: its report, and the module at L1, or null where the report says why there is none.
  std::function<void(const OnnxToTrainReport &report, mlir::ModuleOp module)> modelRead;
  /// One line: what is done otherwise than asked for.
  std::function<void(llvm::StringRef line)> warning;
};

/// One compilation. What fails has been reported as errors of the context, each with its code.
class Compilation {
public:
  Compilation(mlir::MLIRContext &context, std::string modelPath, CompilationEvents events = {})
      : context(context), modelPath(std::move(modelPath)), events(std::move(events)) {}

  /// File to L1.
  mlir::LogicalResult import(const CompileSettings &settings);
  /// L1 to L2.
  mlir::LogicalResult buildFunctions(const CompileSettings &settings);
  /// L2 to L5 by a named strategy or the search; sets the plan's text. Weights are not gathered ahead, and segments run
  /// again, as far as the memory of a device needs it; fails where that does not help, with what would.
  mlir::LogicalResult applyStrategy(const PlanChoice &choice, Purpose purpose);
  /// The same by a random plan, which says itself what is run again.
  mlir::LogicalResult applyRandomPlan(const PlanChoice &choice, uint64_t seed);
  /// L2 to L5 by a plan that has been read. `choice` has the limit where the plan has none.
  mlir::LogicalResult applyPlan(const plan::PlanFile &plan, const PlanChoice &choice, Purpose purpose);
  /// L2, which stays as it is, to L5 by a named strategy that fits, as a trial; says nothing where it does not.
  bool trySchedule(const PlanChoice &choice, Schedule &schedule);
  /// How long a step takes, at L5.
  StepPrediction predict(const PlanChoice &choice, const std::function<void(const SimulatedCommand &)> &visit = {});
  /// The planned module to L3b.
  mlir::LogicalResult materialize();
  /// The model with what the plan says of its tensors, as ONNX annotations; at L3b.
  mlir::LogicalResult exportOnnx(std::string &bytes);
  /// `verifyClaims` of the plan that has been applied, with its pins.
  mlir::LogicalResult verifyClaims(const plan::PlanClaims &claims, const std::vector<std::string> &pins,
                                   llvm::StringRef certificate, const PlanChoice &choice);
  /// L5 to the emitted project, which takes from the choice's profile how products and attentions are computed
  /// fastest. Fails for devices that no back end can run yet.
  mlir::LogicalResult emit(const PlanChoice &choice, cpp::ProjectFiles &files);

  /// At L2 before a plan is applied, at L3 or L3b after.
  mlir::ModuleOp getPlanned() { return *module; }
  /// At L5.
  mlir::ModuleOp getModule() { return *scheduled.module; }
  sched::ProgramOp getProgram() { return scheduled.program; }
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
  /// Freezes all parameters but those that a plan trains, by their logical names.
  mlir::LogicalResult trainOnly(llvm::ArrayRef<std::string> names);
  mlir::LogicalResult readOnnxPins(const PlanChoice &choice, std::vector<std::string> &pins);
  mlir::LogicalResult makePlan(const PlanChoice &choice, std::unique_ptr<mlir::Pass> pass, Purpose purpose,
                               bool mayRerun);
  mlir::LogicalResult searchPlan(const PlanChoice &choice, Purpose purpose);
  /// Puts the choices of a plan on a module at L2, which it has to fit; `what` names it in messages.
  mlir::LogicalResult putPlan(mlir::ModuleOp unplanned, const plan::PlanFile &plan, llvm::StringRef what);
  mlir::LogicalResult startFrom(planner::PlanSearch &plans, const plan::PlanFile &start);
  /// Sets the plan's text for the module and its schedule.
  mlir::LogicalResult keepPlan(const PlanChoice &choice);
  void addAttentions(const PlanChoice &choice, cpp::ProjectOptions &options);
  mlir::InFlightDiagnostic error(Code code);

  mlir::MLIRContext &context;
  std::string modelPath;
  CompilationEvents events;
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
