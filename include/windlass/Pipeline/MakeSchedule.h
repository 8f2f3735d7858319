// From a plan to its schedule.
#ifndef WINDLASS_PIPELINE_MAKESCHEDULE_H
#define WINDLASS_PIPELINE_MAKESCHEDULE_H

#include "windlass/Cluster/Cluster.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/rt/reserve.h"

#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <utility>
#include <vector>

namespace windlass {

/// What a plan recomputes in the backward pass, for a rank and a micro-batch.
struct RerunReport {
  /// Blocks in program order, each with the parts that are recomputed.
  std::vector<std::pair<std::string, std::string>> segments;
  /// Bytes that the forward pass leaves for the backward pass: without recompute, and as planned.
  int64_t stashBytesBefore = 0, stashBytes = 0;
  /// FLOPs that are recomputed, and FLOPs without recompute.
  double flops = 0, flopsBefore = 0;
  /// The number of blocks of which a part is recomputed.
  size_t countBlocks() const;
};

/// Whether what is scheduled may become a program.
enum class Purpose {
  /// It may: what is made is verified by the function that makes it.
  program,
  /// It is compared, measured or explained, and thrown away: it is not verified, which takes longer than all the rest.
  trial,
};

/// A module at L5 and what it takes.
struct Schedule {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The program of its only position.
  sched::ProgramOp program;
  /// What a rank takes beside its arenas, as the back end declares it.
  rt::reserve reserve;
  /// Bytes per device: its arena and the reserve, and the same with the largest set that lives in the arena at one
  /// time.
  int64_t bytes = 0, liveBytes = 0;
  RerunReport rerun;
  /// Whether weights that the strategy would gather ahead of their use are gathered where they are used, to fit.
  bool hasDroppedPrefetch = false;
  /// Whether the module has passed `verifySchedule`.
  bool isVerified = false;
};

/// L3 to L3b. What is wrong is an error of kind `code`.
mlir::LogicalResult materialize(mlir::ModuleOp module, Code code);

/// L3, which stays as it is, to L5, verified if it is for a program. `threads` are those of a rank, 0 for its part of
/// this host's processors. What is wrong with layouts is an error of kind `code`.
mlir::LogicalResult makeSchedule(mlir::ModuleOp planned, const Cluster &cluster, int64_t threads, Code code,
                                 Purpose purpose, Schedule &schedule);

/// Verifies a schedule that was made for a trial, or changed since; does nothing for one that is verified.
mlir::LogicalResult verifySchedule(Schedule &schedule);

} // namespace windlass

#endif
