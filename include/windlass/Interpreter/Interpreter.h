// Executes a module of any level on the CPU, with as many simulated ranks as its mesh has: what a level means.
#ifndef WINDLASS_INTERPRETER_INTERPRETER_H
#define WINDLASS_INTERPRETER_INTERPRETER_H

#include "windlass/Dialect/Sched/IR/Kernels.h"
#include "windlass/Interpreter/TensorFile.h"
#include "windlass/rt/loss_scale.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <vector>

namespace windlass::interpreter {

/// The level of the compiler that a module is at: L1 `@loss`, L2 functions of the step, L3 layouts, L4 resources, L5
/// buffers.
enum class Level { L1 = 1, L2, L3, L4, L5 };

/// Returns the level that a module's contents show; nothing where they show none.
std::optional<Level> levelOf(mlir::ModuleOp module);

/// Returns the number of ranks that a module runs on: those of all its positions.
int64_t countRanks(mlir::ModuleOp module);

/// Returns whether the interpreter executes the operator: every op of `train`, `plan` and `sched`.
bool interpreterSupports(llvm::StringRef opName);

/// Returns whether the interpreter knows what a launch of the kernel computes, in the way that its row says.
bool interpreterRuns(sched::KernelKind kind);

struct RunOptions {
  Precision precision = Precision::f64;
  /// Whether L5 in f64 rounds doubles where a program rounds: to their types when they are stored, and operands of
  /// products to TF32 where the module's precision is that. The remaining difference from programs is the error of
  /// their kernels.
  bool rounds = false;
  int64_t steps = 2;
  /// The number of micro-batches of a step, G; 0 takes the module's own, or 1 where it has none. L2 to L5 are compiled
  /// for their G.
  int64_t microBatches = 0;
  double learningRate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0.01;
  double momentum = 0.9;
  double clipNorm = 1.0;
  double emaDecay = 0.999;
  /// The settings for modules whose gradients are of a scaled loss.
  rt::loss_scale_settings lossScale;
  /// The parameters by logical name. Null: random numbers of `seed` that depend on the parameters' names only.
  const TensorMap *initial = nullptr;
  /// The inputs of micro-batch k as `<input>.<k>`. Null: random ones.
  const TensorMap *batches = nullptr;
  uint64_t seed = 0;
  /// The parameters before each step, as a run with `keepsTrajectory` left them: L1 has no update of its own.
  const TensorMap *trajectory = nullptr;
  /// Adds `before.<s>.<name>`, the parameters before step s, to the tensors.
  bool keepsTrajectory = false;
};

struct RunResult {
  Level level = Level::L1;
  int64_t ranks = 1;
  std::vector<double> losses;
  std::vector<double> gradientNorms;
  /// The tensors loss.<s>, grad_norm.<s>, gradient.<s>.<name>; after the last step parameter.<name>, state.<name> and
  /// evaluate.<k>, the losses of the first G micro-batches.
  TensorMap tensors;
};

/// Runs `options.steps` steps. A failure is reported at the operation that cannot be executed: an index out of range, a
/// part that should equal its replica, a read that races with a write.
mlir::FailureOr<RunResult> run(mlir::ModuleOp module, const RunOptions &options);

/// The largest deviation of a kind's tensors: the norm of the difference over max(the tensor's norm, 1e-3 of the norm
/// over its kind).
struct Deviation {
  std::string kind;
  std::string worst; ///< the name of the tensor that deviates most
  double value = 0;
  int64_t tensors = 0;
};

/// Returns the worst deviation per kind (the name up to the first dot) of `other` from `reference`. Kinds that one of
/// the two does not have are left out. Fails where a kind that both have does not consist of the same tensors in both.
llvm::Expected<std::vector<Deviation>> compare(const TensorMap &reference, const TensorMap &other);

} // namespace windlass::interpreter

#endif
