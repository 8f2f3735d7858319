// The compilation from a model file to each level, as the verbs of the command line use it.
#ifndef WINDLASS_PIPELINE_COMPILE_H
#define WINDLASS_PIPELINE_COMPILE_H

#include "windlass/Frontend/Onnx/Import.h"
#include "windlass/Target/Cpp/Project.h"

#include "mlir/IR/MLIRContext.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace windlass {

/// Exit codes of the command line (design §4).
enum ExitCode {
  kDone = 0,
  kBadInput = 1,
  kUsage = 2,
  kNothingFits = 3,
  kUnsupported = 4,
  kStopped = 6,
  kInterrupted = 7,
  kInternal = 70,
};

/// Settings that are compiled in: another value is another program.
struct CompileSettings {
  std::map<std::string, int64_t> dims;
  /// Name of the output to train on; empty: the scalar one.
  std::string loss;
  std::string optimizer = "adamw";
  std::string precision = "f32";
  int64_t microBatches = 1;
  bool clip = false;
  std::vector<std::string> freeze;
  std::vector<std::string> noDecay;
};

struct PlanSettings {
  int64_t ranks = 1;
  std::string strategy = "ddp";
  /// Bytes per device; 0: the host's memory divided by its ranks.
  int64_t memoryLimit = 0;
};

/// One compilation. Every step returns an exit code; what went wrong has been printed to standard error as one line.
class Compilation {
public:
  Compilation(mlir::MLIRContext &context, std::string modelPath) : context(context), modelPath(std::move(modelPath)) {}

  /// File to L1.
  int import(const CompileSettings &settings);
  /// L1 to L2.
  int buildFunctions(const CompileSettings &settings);
  /// L2 to L3 by a named strategy, or by a plan file. Sets the plan's text.
  int applyStrategy(const PlanSettings &settings);
  /// L3 to L5.
  int schedule(const PlanSettings &settings);
  /// L5 to the emitted project.
  int emit(cpp::ProjectFiles &files);

  mlir::ModuleOp getModule() { return *module; }
  const WeightStore &getWeights() const { return *weights; }
  const std::string &getPlanText() const { return planText; }
  int64_t getRanks() const { return ranks; }

private:
  mlir::MLIRContext &context;
  std::string modelPath;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::shared_ptr<WeightStore> weights;
  std::string planText;
  int64_t ranks = 1;
};

} // namespace windlass

#endif
