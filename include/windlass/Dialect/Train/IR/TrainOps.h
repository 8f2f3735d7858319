// The `train` dialect in C++.
#ifndef WINDLASS_DIALECT_TRAIN_IR_TRAINOPS_H
#define WINDLASS_DIALECT_TRAIN_IR_TRAINOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "windlass/Dialect/Train/IR/TrainConventions.h"
#include "windlass/Dialect/Train/IR/TrainEnums.h"
#include "windlass/Dialect/Train/IR/TrainInterfaces.h"

#include "windlass/Dialect/Train/IR/TrainDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "windlass/Dialect/Train/IR/TrainAttributes.h.inc"

#define GET_OP_CLASSES
#include "windlass/Dialect/Train/IR/TrainOps.h.inc"

namespace windlass::train {

/// Returns the precision that a training step is compiled for; f32 where its settings name none.
llvm::StringRef getPrecision(mlir::ModuleOp module);

/// Returns G, the number of micro-batches of a step over all ranks; 1 where the settings have none.
int64_t getMicroBatches(mlir::ModuleOp module);

/// Returns K, how many micro-batches are merged into one.
int64_t getMerge(mlir::ModuleOp module);

/// Whether gradients travel in bf16 (kBf16GradientsSetting).
bool sendsBf16Gradients(mlir::ModuleOp module);

/// Returns the type in which the gradient of a weight travels between ranks and to the host. What is added to a running
/// statistic travels in the type of that.
mlir::RankedTensorType getSentGradientType(ParameterOp parameter);

/// Returns the type of one micro-batch of an input of `@microbatch`.
mlir::RankedTensorType getTypeOfOne(mlir::ModuleOp module, mlir::RankedTensorType input);

/// Returns G/K, how often a step runs `@microbatch`.
int64_t getMergedMicroBatches(mlir::ModuleOp module);

} // namespace windlass::train

#endif
