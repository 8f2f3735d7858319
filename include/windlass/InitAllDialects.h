// All dialects that a module of any level may hold.
#ifndef WINDLASS_INITALLDIALECTS_H
#define WINDLASS_INITALLDIALECTS_H

#include "windlass/Dialect/Onnx/IR/OnnxOps.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace windlass {

inline void registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::emitc::EmitCDialect, mlir::func::FuncDialect, onnx::OnnxDialect,
                  train::TrainDialect, plan::PlanDialect, sched::SchedDialect>();
}

} // namespace windlass

#endif
