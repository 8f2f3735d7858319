// plan.json: a plan as a file that people read and edit.
#ifndef WINDLASS_DIALECT_PLAN_PLANFILE_H
#define WINDLASS_DIALECT_PLAN_PLANFILE_H

#include "windlass/Cluster/Cluster.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Plan/IR/PlanText.h"
#include "windlass/Dialect/Plan/Transforms/Offload.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace windlass::plan {

/// The settings that are compiled into a program besides the plan itself; another value gives another program.
struct ProgramSettings {
  /// The bound symbolic dimensions.
  std::map<std::string, int64_t> dims;
  /// The output of the graph that is the loss; empty while it is not found.
  std::string loss;
  std::string optimizer = "adamw";
  std::string precision = "f32";
  int64_t microBatches = 1;
  /// How many of them are computed as one.
  int64_t merge = 1;
  /// "micro-batches": a step's loss is the mean of their losses; "tokens": the mean over the labels of all of them.
  std::string average = "micro-batches";
  bool clip = false;
  /// Whether an exponential moving average of each weight is kept.
  bool ema = false;
  /// Whether gradients travel between ranks, and to the host, in bf16.
  bool bf16Gradients = false;
};

struct PlanSettings : ProgramSettings {
  /// The logical names of the parameters that train, sorted.
  std::vector<std::string> trainable;
  std::vector<std::string> noDecay;
  /// By logical name: what the parameter's weight decay and learning rate are times the run's; 1 for all others.
  std::map<std::string, double> decayScales, rateScales;
  /// The pins with which the user fixed parts of the plan (`--pin`), sorted.
  std::vector<std::string> pins;
};

/// Returns the settings that a module of L2 or L3 carries; `dims` and `loss` come from the importer.
PlanSettings getPlanSettings(mlir::ModuleOp module, std::map<std::string, int64_t> dims, std::string loss);

/// Returns the SHA-256, in hex, of an L1 module's text without weights' sources, locations and paths.
std::string hashModel(mlir::ModuleOp module);

/// A planned operator. Layouts are text, such as "[8:batch, 3*64] sum(data)": sizes of factors, major to minor, each
/// with the axes that split it (`8:data+batch`), then axes over which parts are still to be combined.
struct PlannedOp {
  SplitWords splits;
  std::vector<std::string> layouts;
};

struct PlannedFunction {
  /// The layouts of arguments and results, without those of gradients, which are in their weight's row.
  std::vector<std::string> arguments, results;
  /// The operators by id.
  std::map<std::string, PlannedOp> operators;
  /// The ids of operators that split nothing and whose results are whole, sorted.
  std::vector<std::string> whole;
};

/// The layouts of the three copies of a parameter; optimizer state has the layout of its weight's master and no row.
struct PlannedParameter {
  std::string compute, master;
  /// The layout of the gradient; empty for a parameter without one.
  std::string gradient;
  /// Whether the optimizer's state comes to the device for the update, from the memory that holds it.
  bool updatesOnDevice = false;
};

/// The claims that a search makes about the plan that it found. `windlass plan --verify` recomputes them.
struct PlanClaims {
  /// The cost of a step in the search's model.
  int64_t costNanoseconds = 0;
  /// A lower bound of the simulated steps of the plans that the model's rows of memory admit; none where they admit no
  /// plan.
  std::optional<int64_t> boundNanoseconds;
  /// The bytes per device: of the arenas, and of the largest set of values in them that are live at one time.
  int64_t arenaBytes = 0, peakBytes = 0;
  /// The SHA-256, in hex, of the file of certificates that proves the bound, and of the plan that the claims are about.
  std::string certificateHash, planHash;
  /// The SHA-256, in hex, of the profile that costs come from; empty where they come from the analytic model.
  std::string profileHash;
  /// The numbers of stages whose plans the bound is of, ascending; the plan's own is among them.
  std::vector<int64_t> boundStages = {1};
  /// The schedule of the plans of several stages that the bound is of, a published one or `own`, and the number of
  /// chunks of each stage, which counts for published ones.
  std::string boundSchedule = "1f1b";
  int64_t boundChunks = 1;
  /// What the host was asked to hold in the plans that the bound is of.
  Offload boundOffload = Offload::none;
};

struct MeshAxis {
  std::string name;
  AxisRole role = AxisRole::model;
  int64_t size = 1;
};

/// How positions run the model one after another.
struct PlannedPipeline {
  int64_t positions = 2;
  /// The name of a published schedule (`windlass/Schedule/NamedSchedules.h`), or `own`.
  std::string schedule;
  /// The id of the first forward operator of each chunk but the first.
  std::vector<std::string> begins;
  /// The lines of the plan's own schedule, as `schedule::printPipeline` writes them; none for a published one.
  std::vector<std::string> orders;

  int64_t countChunks() const { return static_cast<int64_t>(begins.size()) + 1; }
};

struct PlanFile {
  static constexpr int64_t kVersion = 8;
  /// The most bytes of a file; a larger one is not read.
  static constexpr int64_t kMostBytes = int64_t(256) << 20;

  Cluster cluster;
  std::string modelName, modelHash;
  PlanSettings settings;
  /// The mesh of each position.
  std::vector<MeshAxis> mesh;
  /// The device of each rank.
  std::vector<int64_t> deviceOrder;
  /// The number of data-parallel replicas (P, the product of the sizes of the replica axes), and of gradient
  /// accumulation steps (m).
  int64_t replicas = 1, accumulationSteps = 1;
  /// The pipeline, each position of which has a mesh; none: one position runs all of the model.
  std::optional<PlannedPipeline> pipeline;
  int64_t getPositions() const { return pipeline ? pipeline->positions : 1; }
  int64_t bucketBytes = 0;
  int64_t prefetchBytes = 0;
  int64_t unitBytes = 0;
  bool keepsGathers = false;
  /// The bytes per device that the user allowed; 0: the device's memory in the cluster.
  int64_t memoryLimit = 0;
  std::map<std::string, PlannedFunction> functions;
  /// The labels of the blocks by their names: what the backward pass recomputes of each; "kept": nothing.
  std::map<std::string, std::string> segments;
  /// The parameters by logical name.
  std::map<std::string, PlannedParameter> parameters;
  /// The claims of a plan that the search found and nobody has edited.
  std::optional<PlanClaims> claims;
};

/// Returns the plan of a module at L3 (before layouts are materialized). Fails with a diagnostic where ids are not
/// unique.
mlir::FailureOr<PlanFile> buildPlanFile(mlir::ModuleOp module, const Cluster &cluster, const PlanSettings &settings,
                                        std::string modelHash);

/// Returns the file's text; the same plan gives the same bytes.
std::string writePlanFile(const PlanFile &plan);

/// Returns the SHA-256, in hex, of a plan without its claims, and of `modelVersion`, the version of the cost model that
/// the claims are made in.
std::string hashPlan(const PlanFile &plan, int64_t modelVersion);

/// Reads a plan from the text of its file. Fails with one line that names the place and what is wrong.
llvm::Expected<PlanFile> readPlanFile(llvm::StringRef text);

/// Checks that a plan was made for these settings and the model of this module of L2; the error names the first
/// difference. After an error the module is of no further use.
llvm::Error checkPlanFits(const PlanFile &plan, const PlanSettings &settings, llvm::StringRef modelHash,
                          mlir::ModuleOp module);

/// Puts a plan onto a module of L2, which becomes L3 (`plan-verify-layouts materialized=false` holds or says why not).
/// Fails, with one line, where the plan does not fit the model.
llvm::Error applyPlanFile(mlir::ModuleOp module, const PlanFile &plan);

} // namespace windlass::plan

#endif
