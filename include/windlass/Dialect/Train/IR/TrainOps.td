// All operators of the `train` dialect, by family.
#ifndef WINDLASS_TRAIN_OPS_TD
#define WINDLASS_TRAIN_OPS_TD

include "windlass/Dialect/Train/IR/TrainModuleOps.td"
include "windlass/Dialect/Train/IR/TrainElementwiseOps.td"
include "windlass/Dialect/Train/IR/TrainStructuralOps.td"
include "windlass/Dialect/Train/IR/TrainContractionOps.td"
include "windlass/Dialect/Train/IR/TrainConvolutionOps.td"
include "windlass/Dialect/Train/IR/TrainReductionOps.td"
include "windlass/Dialect/Train/IR/TrainIndexingOps.td"
include "windlass/Dialect/Train/IR/TrainAttentionOps.td"
include "windlass/Dialect/Train/IR/TrainExpertOps.td"
include "windlass/Dialect/Train/IR/TrainRandomOps.td"
include "windlass/Dialect/Train/IR/TrainLossOps.td"
include "windlass/Dialect/Train/IR/TrainOptimizerOps.td"

#endif
