// Where the chunks of a pipeline begin.
#ifndef WINDLASS_PLANNER_CUTMODEL_H
#define WINDLASS_PLANNER_CUTMODEL_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Profile/CostModel.h"
#include "windlass/Schedule/Pipeline.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

#include <memory>

namespace windlass::planner {

/// A pipeline before its model is cut.
struct PipelineChoice {
  int64_t positions = 1;
  /// The name of a published schedule, or `own`.
  std::string schedule = "1f1b";
  int64_t chunksPerPosition = 1;
  /// The own schedule; its chunks count instead of `chunksPerPosition`.
  std::shared_ptr<const schedule::Pipeline> own = nullptr;

  int64_t countChunks() const { return own ? own->placement.countChunks() : positions * chunksPerPosition; }
  bool hasOnePosition() const { return positions == 1; }
};

/// Chooses where a module at L2 is cut into the chunks of a pipeline whose positions have `positionRanks` ranks each.
/// Places where fewer bytes cross than next to them, such as those between two blocks, are considered; the cut is one
/// whose longest chunk is shortest: its operators, forward and backward, and its messages. Strategies do not matter, so
/// all plans of a search have one cut. Fails where the model has fewer such places than are needed.
mlir::FailureOr<plan::PipelineAttr> chooseCut(mlir::ModuleOp module, const PipelineChoice &pipeline,
                                              int64_t positionRanks, const CostModel &costs);

/// Cuts the module so: sets `plan.pipeline`.
mlir::LogicalResult cutModel(mlir::ModuleOp module, const PipelineChoice &pipeline, int64_t positionRanks,
                             const CostModel &costs);

} // namespace windlass::planner

#endif
