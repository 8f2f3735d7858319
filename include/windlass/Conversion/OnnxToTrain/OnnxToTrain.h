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
  /// Go on with a file that holds another model than was exported (`OnnxToTrainReport::alterations`).
  bool acceptAltered = false;
};

/// An operator that cannot be legalized.
struct UnsupportedOp {
  /// `TopK`, or `domain.Name`.
  std::string name;
  /// What about it; empty when the operator as such is not known.
  std::string reason;
  int64_t count = 0;
  /// Name of the first node.
  std::string first;
};

/// What the importer decided about an initializer without the exporter's word for it, or against it.
struct ParameterGuess {
  std::string name;
  bool trains = false;
  std::string reason;
};

/// What an exporter made of a parameter of the module, when the file does not hold it as the module had it.
struct Alteration {
  enum class Fate { merged, transposed, renamed, copied, folded };
  /// Its path in the module.
  std::string target;
  Fate fate;
  /// The parameter it was merged with, or the initializer that stands for it; empty where it was folded.
  std::string with;
};

/// "'a.weight' (transposed, now 'val_7')".
std::string describeAlteration(const Alteration &alteration);

struct OnnxToTrainReport {
  std::vector<UnsupportedOp> unsupported;
  std::vector<ParameterGuess> guesses;
  /// How many parameters the exporter's graph signature names; 0 without one.
  size_t exportedParameters = 0;
  /// What differs between the file and the module that was exported.
  std::vector<Alteration> alterations;
  /// Nodes that lack what the exporter's own record of the module says, a line each.
  std::vector<std::string> contradictions;
  /// What should be looked at though training is right, a line each.
  std::vector<std::string> warnings;
  /// How the file differs from the module, in one line; empty where it does not.
  std::string describeAlterations() const;
  /// Name of the output that is trained on.
  std::string loss;
};

/// Replaces the `onnx.graph` of a module by `@loss` and parameters (L1 before recognition). Fails with one error for
/// bad input; unsupported operators are all listed in the report, with one error at the end. `weights` may be null:
/// then no values of references are read.
mlir::LogicalResult convertOnnxToTrain(mlir::ModuleOp module, const WeightStore *weights,
                                       const OnnxToTrainOptions &options, OnnxToTrainReport &report);

/// Everything from the converted module to L1: recognition of attention, GELU and so on (if asked for; off, the same
/// loss is computed by primitives), simplification, ids.
void buildTrainImportPipeline(mlir::OpPassManager &manager, bool recognize);

/// Registers `onnx-to-train-pipeline`: the conversion and the pipeline above, with the option `recognize`.
void registerOnnxToTrainPipelines();

/// A scope path and a node's name as one location; `getScopePath` reads it back (the node's name where there is no
/// path).
mlir::Location makeScopedLocation(llvm::StringRef scope, mlir::Location node);
llvm::StringRef getScopePath(mlir::Location location);

#define GEN_PASS_DECL
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"

} // namespace windlass

#endif // WINDLASS_CONVERSION_ONNXTOTRAIN_ONNXTOTRAIN_H
