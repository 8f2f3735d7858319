#ifndef WINDLASS_DIALECT_TRAIN_IR_TRAINENUMS_H
#define WINDLASS_DIALECT_TRAIN_IR_TRAINENUMS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

#include "windlass/Dialect/Train/IR/TrainEnums.h.inc"

#endif
