//===- OnnxToTrain.h - from the onnx dialect to the train dialect -*- C++ -*-===//

#ifndef WINDLASS_CONVERSION_ONNXTOTRAIN_ONNXTOTRAIN_H
#define WINDLASS_CONVERSION_ONNXTOTRAIN_ONNXTOTRAIN_H

#include "windlass/Frontend/Onnx/WeightStore.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace windlass {

struct OnnxToTrainOptions {
  /// The output to train on; empty: `loss`, or the only scalar float output.
  std::string loss;
  /// Whether to accept a file that holds another model than was exported (`OnnxToTrainReport::alterations`).
  bool acceptAltered = false;
};

/// An operator that cannot be legalized.
struct UnsupportedOp {
  /// `TopK`, or `domain.Name`.
  std::string name;
  /// The reason why it cannot be legalized; empty when the operator as such is not known.
  std::string reason;
  int64_t count = 0;
  /// The name of the first node with the operator.
  std::string first;
};

/// A decision of the importer about an initializer without information from the exporter, or against it.
struct ParameterGuess {
  std::string name;
  bool trains = false;
  std::string reason;
};

/// The change that an exporter made to a parameter of the module, where the file does not hold it as the module had it.
struct Alteration {
  enum class Fate { merged, transposed, renamed, copied, folded };
  /// The parameter's path in the module.
  std::string target;
  Fate fate;
  /// The parameter it was merged with, or the initializer that stands for it; empty where it was folded.
  std::string with;
};

/// Returns an alteration as text: "'a.weight' (transposed, now 'val_7')".
std::string describeAlteration(const Alteration &alteration);

struct OnnxToTrainReport {
  std::vector<UnsupportedOp> unsupported;
  std::vector<ParameterGuess> guesses;
  /// The number of parameters that the exporter's graph signature names; 0 without a signature.
  size_t exportedParameters = 0;
  /// The differences between the file and the module that was exported.
  std::vector<Alteration> alterations;
  /// The nodes that contradict the exporter's own record of the module, a line each.
  std::vector<std::string> contradictions;
  /// The facts that a user should look at although training is correct, a line each.
  std::vector<std::string> warnings;
  /// Returns how the file differs from the module, in one line; empty where it does not.
  std::string describeAlterations() const;
  /// The name of the output that is trained on.
  std::string loss;
};

/// Replaces the `onnx.graph` of a module by `@loss` and parameters (L1 before recognition). Fails with one error for
/// bad input; unsupported operators are all listed in the report, with one error at the end. `weights` may be null:
/// then no values of references are read.
mlir::LogicalResult convertOnnxToTrain(mlir::ModuleOp module, const WeightStore *weights,
                                       const OnnxToTrainOptions &options, OnnxToTrainReport &report);

/// Adds the passes from the converted module to L1: recognition of attention, GELU and so on if `recognize` (otherwise
/// primitives compute the same loss), simplification, ids.
void buildTrainImportPipeline(mlir::OpPassManager &manager, bool recognize);

/// Registers `onnx-to-train-pipeline`: the conversion and the pipeline above, with the option `recognize`.
void registerOnnxToTrainPipelines();

/// Returns a scope path and a node's name as one location; `getScopePath` reads the path back (the node's name where
/// there is no path).
mlir::Location makeScopedLocation(llvm::StringRef scope, mlir::Location node);
llvm::StringRef getScopePath(mlir::Location location);

#define GEN_PASS_DECL
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"

} // namespace windlass

#endif // WINDLASS_CONVERSION_ONNXTOTRAIN_ONNXTOTRAIN_H
