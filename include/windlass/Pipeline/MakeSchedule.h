// From a plan to its schedule.
#ifndef WINDLASS_PIPELINE_MAKESCHEDULE_H
#define WINDLASS_PIPELINE_MAKESCHEDULE_H

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Pipeline/PlanChoice.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/rt/reserve.h"

#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <utility>
#include <vector>

namespace windlass {

/// The part of a plan that is recomputed in the backward pass, for a rank and a micro-batch.
struct RecomputeReport {
  /// The blocks in program order, each with the parts that are recomputed.
  std::vector<std::pair<std::string, std::string>> segments;
  /// The bytes that the forward pass leaves for the backward pass: without recompute, and as planned.
  int64_t stashBytesBefore = 0, stashBytes = 0;
  /// The recomputed FLOPs, and the FLOPs without recompute.
  double flops = 0, flopsBefore = 0;
  /// Returns the number of blocks of which a part is recomputed.
  size_t countBlocks() const;
};

/// The purpose of a schedule: whether it may become a program.
enum class Purpose {
  /// It may become a program: the function that makes the schedule verifies it.
  program,
  /// It is compared, measured or explained, and thrown away: it is not verified, because verification takes longer than
  /// all the rest.
  trial,
};

/// A module at L5 and the memory that it needs.
struct Schedule {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The program of the position whose ranks need the most memory; `sched::getPrograms` has all.
  sched::ProgramOp program;
  /// The memory of such a rank besides its arenas, as the back end declares it or the user gives it.
  rt::reserve reserve;
  /// The bytes of such a device: its arena and the reserve, and the reserve with the largest set of values in the arena
  /// that are live at one time.
  int64_t bytes = 0, liveBytes = 0;
  RecomputeReport recompute;
  /// Whether weights that the strategy would gather ahead of their use are gathered where they are used, to fit.
  bool hasDroppedPrefetch = false;
  /// Whether the module has passed `verifySchedule`.
  bool isVerified = false;
  /// The module at L4 before collectives became units, from which a trial with other units may begin; null for a
  /// schedule that is no trial, or without units.
  mlir::OwningOpRef<mlir::ModuleOp> distributed;
};

/// Takes a module from L3 to L3b. Errors are of kind `code`.
mlir::LogicalResult materialize(mlir::ModuleOp module, Code code);

/// Schedules a copy of `planned`, at L3, to L5, verified where `purpose` is a program. It reads those settings of
/// `choice` that say how commands run: the cluster, the threads, the profile and whether epilogues are fused. Errors
/// about layouts are of kind `code`.
mlir::LogicalResult makeSchedule(mlir::ModuleOp planned, const PlanChoice &choice, Code code, Purpose purpose,
                                 Schedule &schedule);

/// Schedules the plan of a trial, which has its module at L4, with units of `unitBytes` instead of its own.
mlir::LogicalResult changeUnits(const Schedule &trial, int64_t unitBytes, const PlanChoice &choice, Schedule &schedule);

/// Verifies a schedule that was made for a trial, or changed since; does nothing for one that is verified.
mlir::LogicalResult verifySchedule(Schedule &schedule);

} // namespace windlass

#endif
