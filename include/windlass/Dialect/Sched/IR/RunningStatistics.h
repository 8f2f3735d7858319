// Which resources are of running statistics.
#ifndef WINDLASS_DIALECT_SCHED_IR_RUNNINGSTATISTICS_H
#define WINDLASS_DIALECT_SCHED_IR_RUNNINGSTATISTICS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

namespace windlass::sched {

/// Returns whether a resource holds a running statistic or what is accumulated for one. Resources of hand-written
/// commands may be of no parameter.
inline bool isOfRunningStatistic(ResourceOp resource) {
  mlir::FlatSymbolRefAttr name = resource.getOfAttr();
  auto parameter = name ? resource->getParentOfType<mlir::ModuleOp>().lookupSymbol<train::ParameterOp>(name.getAttr())
                        : train::ParameterOp();
  return parameter && parameter.isRunningStatistic();
}

} // namespace windlass::sched

#endif
