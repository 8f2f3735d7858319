#ifndef WINDLASS_DIALECT_TRAIN_IR_TRAININTERFACES_H
#define WINDLASS_DIALECT_TRAIN_IR_TRAININTERFACES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "windlass/Dialect/Train/IR/Factors.h"

#include "windlass/Dialect/Train/IR/TrainInterfaces.h.inc"

namespace windlass::train {

/// `Train_Transcendental` of TrainElementwiseOps.td.
template <typename ConcreteOp> class Transcendental : public mlir::OpTrait::TraitBase<ConcreteOp, Transcendental> {};

} // namespace windlass::train

#endif
