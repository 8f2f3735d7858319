//===- ParameterPlanner.h - what trains -------------------------*- C++ -*-===//

#ifndef WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_PARAMETERPLANNER_H
#define WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_PARAMETERPLANNER_H

#include "ExportedModel.h"
#include "Legalizer.h"

namespace windlass {

/// Decides which of the initializers that `@loss` reads train, and writes the parameter symbols.
class ParameterPlanner {
public:
  ParameterPlanner(mlir::func::FuncOp function, llvm::ArrayRef<UsedParameter> parameters, const ExportedModel &exported,
                   OnnxToTrainReport &report);

  /// Decides, and adds guesses, alterations and warnings to the report. `weights` may be null.
  void decide(const WeightStore *weights);
  /// Writes a symbol for each initializer that is read, in the order of the file. Fails when none trains.
  mlir::LogicalResult writeSymbols(mlir::OpBuilder &builder);

private:
  /// An initializer and the decision about it.
  struct Decision {
    const UsedParameter *parameter;
    bool trains = false;
    /// The reason, where nothing marks it, or in spite of its mark.
    std::string reason;
  };

  void markDifferentiable();
  Decision decide(const UsedParameter &parameter);
  void explainVanished(llvm::ArrayRef<size_t> unexplained, const WeightStore *weights);
  bool isOnlyMask(mlir::Value value);
  bool isOnlyRotaryTable(mlir::Value value);
  bool isOnlyEpsilon(mlir::Value value);

  mlir::func::FuncOp function;
  const ExportedModel &exported;
  OnnxToTrainReport &report;
  std::vector<UsedParameter> parameters;
  std::vector<Decision> decisions;
  /// The values through which a gradient of the loss flows.
  llvm::DenseSet<mlir::Value> reached;
};

} // namespace windlass

#endif // WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_PARAMETERPLANNER_H
