// What a run is given: parameters, micro-batches, hyperparameters. The same for every level.
#ifndef WINDLASS_LIB_INTERPRETER_RUNINPUTS_H
#define WINDLASS_LIB_INTERPRETER_RUNINPUTS_H

#include "windlass/Dialect/Train/IR/TrainOps.h"
#include "windlass/Interpreter/Interpreter.h"
#include "windlass/rt/loss_scale.h"

namespace windlass::interpreter {

/// The loss scale of a module that has one, and the updates that it made the run skip.
class LossScaling {
public:
  LossScaling(mlir::ModuleOp module, const RunOptions &options);
  /// Returns whether gradients are of a scaled loss.
  bool isOn() const { return on; }
  double getScale() const { return on ? scale.value : 1; }
  int64_t getSkippedUpdates() const { return skipped; }
  /// Returns a gradient as it is dumped, without the scale.
  Tensor unscale(Tensor gradient) const;
  /// Ends a step with this gradient norm.
  mlir::LogicalResult finishStep(mlir::Location loc, int64_t step, double norm);

private:
  bool on = false;
  rt::loss_scale_settings settings;
  rt::loss_scale scale;
  int64_t skipped = 0;
};

class RunInputs {
public:
  RunInputs(mlir::ModuleOp module, const RunOptions &options);

  const RunOptions &options;
  /// How many micro-batches are computed as one, by the module's settings. The functions below count these together as
  /// one, unless they say otherwise.
  int64_t merge = 1;
  /// The number of merged micro-batches of a step: of those of the options, else of the module's settings, else 1.
  int64_t microBatches = 1;

  /// Returns the whole initial value of a weight, buffer or state.
  llvm::Expected<Tensor> parameter(llvm::StringRef name, mlir::RankedTensorType type, train::Role role) const;
  /// Returns the parameter as a run with a trajectory left it before step `step`.
  llvm::Expected<Tensor> parameterBefore(llvm::StringRef name, mlir::RankedTensorType type, int64_t step) const;
  /// Returns the whole value of an input in micro-batch k. Of its attributes `train.feed` and `train.vocabulary` are
  /// read: random ids are below the latter.
  llvm::Expected<Tensor> input(llvm::StringRef name, mlir::RankedTensorType type, mlir::DictionaryAttr attributes,
                               int64_t k) const;
  /// Returns whether a step's loss is the mean over the labels of all its micro-batches, not the mean of their losses.
  bool averagesTokens() const { return static_cast<bool>(countedLabels); }
  /// Adds what evaluation gives for micro-batch k, its loss or, where several are merged, a tensor of their losses, to
  /// `result` as `evaluate.<number>`, where each micro-batch of the data has a number of its own.
  void addEvaluation(int64_t k, const Tensor &losses, RunResult &result) const;
  /// Returns the number of labels of micro-batch k that count.
  llvm::Expected<int64_t> labelCount(int64_t k) const;
  /// Returns a runtime scalar in step `step`.
  llvm::Expected<double> hyperparameter(train::Hyperparameter which, int64_t step, const LossScaling &scaling) const;
  ElementKind floatKind() const { return options.precision == Precision::f64 ? ElementKind::f64 : ElementKind::f32; }

private:
  /// Returns an input of one micro-batch of the data.
  llvm::Expected<Tensor> inputOfOne(llvm::StringRef name, mlir::RankedTensorType type, mlir::DictionaryAttr attributes,
                                    int64_t k) const;
  /// Returns the number of labels of one micro-batch of the data.
  llvm::Expected<int64_t> labelsOfOne(int64_t k) const;

  mlir::ModuleOp module;
  train::CountedLabelsAttr countedLabels;

  llvm::Expected<Tensor> find(const TensorMap &map, const std::string &key, mlir::RankedTensorType type) const;
};

} // namespace windlass::interpreter

#endif
