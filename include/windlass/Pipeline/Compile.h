// The compilation from a model file to each level, as the verbs of the command line use it.
#ifndef WINDLASS_PIPELINE_COMPILE_H
#define WINDLASS_PIPELINE_COMPILE_H

#include "windlass/Cluster/Cluster.h"
#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/Frontend/Onnx/Import.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Target/Cpp/Project.h"
#include "windlass/rt/reserve.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"

#include <optional>
#include <string>
#include <vector>

namespace windlass {

/// Exit codes of the command line; those of errors are in the table of diagnostics. `kDifferent` is what
/// `windlass diff` finds.
enum ExitCode { kDone = 0, kDifferent = 1, kInternal = 70 };

/// Settings as the user gives them: parameters by patterns.
struct CompileSettings : plan::ProgramSettings {
  std::vector<std::string> freeze;
  std::vector<std::string> noDecay;
  /// When set, exactly these parameters train, by logical name (a plan's; `freeze` is empty then).
  std::optional<std::vector<std::string>> trainable;
};

/// How a plan is made. Values that the user did not give are absent.
struct PlanChoice {
  std::string strategy = "ddp";
  /// What the strategy may not change, PATTERN=VALUE (`Pins.h`).
  std::vector<std::string> pins;
  /// The configuration of the model whose sharding annotations are pins too; empty for none.
  std::string onnxPins;
  /// Bytes per device; 0: the device's memory in the cluster.
  int64_t memoryLimit = 0;
  /// The compute team of a rank; 0: its part of this host's processors, as programs take it.
  int64_t threads = 0;
  Cluster cluster;
};

/// One compilation. Every step returns an exit code; what went wrong has been printed to standard error as one line.
class Compilation {
public:
  Compilation(mlir::MLIRContext &context, std::string modelPath) : context(context), modelPath(std::move(modelPath)) {}

  /// File to L1.
  int import(const CompileSettings &settings);
  /// L1 to L2.
  int buildFunctions(const CompileSettings &settings);
  /// L2 to L3 by a named strategy. Sets the plan's text.
  int applyStrategy(const PlanChoice &choice);
  /// The same by a random plan.
  int applyRandomPlan(const PlanChoice &choice, uint64_t seed);
  /// L2 to L3 by a plan that has been read; `settings` are those that L2 was made with.
  int applyPlan(const plan::PlanFile &plan, const CompileSettings &settings);
  /// The model with what the plan says of its tensors, as ONNX annotations; at L3b.
  int exportOnnx(std::string &bytes);
  /// L3 to L5; fails where arena and reserve of a device exceed `memoryLimit` bytes.
  int schedule(int64_t memoryLimit, int64_t threads);
  /// L5 to the emitted project. Fails for devices that no back end can run yet.
  int emit(cpp::ProjectFiles &files);

  mlir::ModuleOp getModule() { return *module; }
  const WeightStore &getWeights() const { return *weights; }
  const std::string &getPlanText() const { return planText; }
  const Cluster &getCluster() const { return cluster; }
  /// What a rank takes beside its arenas, by the back end's word; nothing of a back end that is not ours to ask.
  const rt::reserve &getReserve() const { return reserve; }
  int64_t getRanks() const { return cluster.getDevices(); }

private:
  int readOnnxPins(const PlanChoice &choice, std::vector<std::string> &pins);
  int makePlan(const PlanChoice &choice, llvm::ArrayRef<std::string> pins, std::unique_ptr<mlir::Pass> pass);
  int materialize(Code code);

  mlir::MLIRContext &context;
  std::string modelPath;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::shared_ptr<WeightStore> weights;
  std::string planText, modelHash;
  CompileSettings compiled;
  Cluster cluster;
  rt::reserve reserve;
};

} // namespace windlass

#endif
