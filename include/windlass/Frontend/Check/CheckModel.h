//===- CheckModel.h - what a model file holds and what trains ---*- C++ -*-===//

#ifndef WINDLASS_FRONTEND_CHECK_CHECKMODEL_H
#define WINDLASS_FRONTEND_CHECK_CHECKMODEL_H

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"
#include "windlass/Frontend/Onnx/Import.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

namespace windlass {

struct CheckOptions {
  ImportOptions import;
  OnnxToTrainOptions convert;
  /// The globs over the names of parameters that do not train.
  std::vector<std::string> freeze;
  /// Whether warnings are errors.
  bool strict = false;
  /// Whether attention, GELU and other compositions are recognised.
  bool recognize = true;
  /// Whether one JSON object is printed instead of text.
  bool json = false;
  /// Whether ids and all parameters are printed too.
  bool verbose = false;
};

/// A model at L1.
struct TrainModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::shared_ptr<WeightStore> weights;
  OnnxToTrainReport report;
};

/// Returns a line about the parameters that train: "29 parameters with 134,912 elements train, 2 are frozen, 3
/// buffers".
std::string describeTraining(mlir::ModuleOp module);

/// Imports the model file `path` and converts it to L1. Fails with errors of the context; where operators are not
/// supported, the report lists them all.
llvm::LogicalResult importTrainModel(llvm::StringRef path, mlir::MLIRContext &context, const CheckOptions &options,
                                     TrainModel &model);

/// Imports `path` and prints to `out` parameters, inputs and how data feed them, the loss, the operators, the
/// parameters that train and each guess, and everything that is not supported. Fails as `importTrainModel` does, and
/// where a gradient is missing.
llvm::LogicalResult checkModel(llvm::StringRef path, mlir::MLIRContext &context, const CheckOptions &options,
                               llvm::raw_ostream &out);

} // namespace windlass

#endif // WINDLASS_FRONTEND_CHECK_CHECKMODEL_H
