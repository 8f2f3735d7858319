// The tables of one position's program, as `rt::program` has them.
#ifndef WINDLASS_LIB_TARGET_CPP_POSITIONTABLES_H
#define WINDLASS_LIB_TARGET_CPP_POSITIONTABLES_H

#include "ProgramResources.h"

#include "windlass/Schedule/Pipeline.h"
#include "windlass/Target/Cpp/ProgramTables.h"
#include "windlass/Target/Cpp/Records.h"

#include "llvm/ADT/MapVector.h"

namespace windlass::cpp {

template <class S> using Rows = llvm::SmallVector<Expr<S>>;

/// A parameter or input of a job: a resource of it, and the number of that resource's position.
struct JobEntry {
  sched::ResourceOp resource;
  size_t position = 0;
};

/// The parameters and inputs of a job, which have the same numbers in all positions.
struct JobEntries {
  /// By the name of the train.parameter, and by logical name.
  llvm::MapVector<mlir::StringAttr, JobEntry> parameters, inputs;

  /// Returns the number of a key's entry.
  static int64_t numberOf(const llvm::MapVector<mlir::StringAttr, JobEntry> &entries, mlir::StringAttr key) {
    return entries.find(key) - entries.begin();
  }
};

/// Defines an array with these numbers and returns its span.
Expr<rt::span<std::int64_t>> makeNumbers(Arrays &arrays, llvm::StringRef prefix, llvm::ArrayRef<int64_t> values);

class PositionTables {
public:
  /// Writes tables for `step`'s position `position` to `arrays`.
  PositionTables(const ProgramResources &its, const JobEntries &entries, const schedule::Pipeline &step,
                 const ProjectOptions &options, Arrays &arrays);

  /// Returns the program. Fails with a diagnostic where the runtime cannot have it.
  llvm::FailureOr<Expr<rt::program>> writeProgram();
  /// Returns the axes of the position's mesh.
  Expr<rt::span<rt::axis>> writeAxes();

private:
  llvm::FailureOr<Expr<rt::span<rt::split>>> splitsOf(sched::ResourceOp resource);
  Expr<rt::place> placeOf(sched::ResourceOp resource) const;
  Expr<std::int64_t> slotStrideOf(sched::ResourceOp resource) const;
  /// Returns the name of the weight that a resource is of. A state names its own train.parameter, which names it.
  mlir::StringAttr weightOf(sched::ResourceOp resource) const;
  /// Returns the number of that weight in the job.
  Expr<std::int32_t> parameterOf(sched::ResourceOp resource) const;
  /// Returns the name of a table, which differs between positions.
  std::string nameOf(llvm::StringRef table) const;

  llvm::FailureOr<Expr<rt::span<rt::parameter_placement>>> placementTable();
  llvm::FailureOr<Expr<rt::span<rt::gradient_entry>>> gradientTable();
  llvm::FailureOr<Expr<rt::span<rt::input_placement>>> inputPlacementTable();
  llvm::FailureOr<Expr<rt::span<rt::message_entry>>> messageTable();
  Expr<rt::span<rt::state_entry>> stateTable();
  Expr<rt::span<rt::scalar_entry>> scalarTable();
  Expr<rt::span<rt::arena_entry>> arenaTable();
  Expr<rt::span<rt::stream_entry>> streamTable();
  Expr<rt::span<rt::communicator_entry>> communicatorTable();
  Expr<rt::span<rt::peer_entry>> peerTable();
  Expr<rt::span<rt::chunk_entry>> chunkTable();
  Expr<rt::span<rt::action>> actionTable();
  Expr<rt::span<rt::action>> evaluationTable();
  Expr<rt::product_choices> products();
  Expr<rt::span<rt::attention_choice>> attentions();
  /// Returns the function of a role and chunk; null where the program has none.
  template <class F> Expr<F *> function(sched::StepRole role, int64_t chunk) {
    return named<F *>(functionName(role, chunk));
  }
  std::string functionName(sched::StepRole role, int64_t chunk) const;

  const ProgramResources &its;
  const JobEntries &entries;
  const schedule::Pipeline &step;
  const ProjectOptions &options;
  Arrays &arrays;
  sched::ProgramOp program;
  plan::MeshAttr mesh;
  int64_t position;
  sched::ArenaTable arenas;
  /// The other positions that this one exchanges messages with, in increasing order.
  llvm::SmallVector<int64_t> peers;
};

} // namespace windlass::cpp

#endif
