// The functions of a step program, command by command.
#ifndef WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_STEPEMITTER_H
#define WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_STEPEMITTER_H

#include "BufferContents.h"
#include "BufferTable.h"
#include "Constants.h"
#include "Repeats.h"

#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Dialect/Sched/IR/Updates.h"
#include "windlass/Target/Cpp/CppBuilder.h"

namespace windlass {

/// Writes functions as lines of C++, one for each command, and the tables that they refer to.
class StepEmitter {
public:
  /// Takes the functions in the order in which they run. `functors` are the names of the scalar functions.
  StepEmitter(sched::ProgramOp program, llvm::ArrayRef<mlir::func::FuncOp> functions,
              const llvm::StringMap<std::string> &functors, const Constants &constants);

  /// Writes the repeated blocks, then the functions of a step.
  llvm::LogicalResult emitStep();
  /// Writes the only command of each function as a block all of whose offsets are columns.
  llvm::LogicalResult emitCommands();

  /// Returns what has been written: functions, buffers, rows of blocks.
  const std::vector<std::string> &getLines() const { return lines; }
  const std::vector<std::string> &getBufferLines() const { return buffers.getLines(); }
  const std::vector<std::string> &getRowLines() const { return rows; }

private:
  struct Scope;
  /// Whether places in a table are columns of a row, and whether some are offsets.
  struct TablePlaces {
    bool hasColumns = false, hasOffsets = false;
  };

  static int nextColumn(Scope &scope);
  BufferPlace placeOf(Scope &scope, mlir::Value buffer);
  cpp::Event eventOf(Scope &scope, int64_t event);
  cpp::Stream streamOf(Scope &scope, mlir::Operation *command);
  template <class Function> auto withBuffer(Scope &scope, mlir::OpOperand &operand, Function use);
  cpp::View viewOf(Scope &scope, mlir::OpOperand &operand);
  /// Returns the pairs of a collective that moves several.
  cpp::Pairs pairsOf(Scope &scope, sched::LaunchCollectiveOp op);
  llvm::SmallVector<cpp::View> viewsOf(Scope &scope, mlir::MutableOperandRange operands);

  llvm::LogicalResult emitCommands(Scope &scope, llvm::ArrayRef<mlir::Operation *> commands);
  llvm::LogicalResult emitCommand(Scope &scope, mlir::Operation *command);
  llvm::LogicalResult emitLaunch(Scope &scope, sched::LaunchOp op);
  static cpp::Expr<bool> accumulateOf(Scope &scope, sched::LaunchOp op);
  BufferPlace placeInTable(Scope &scope, mlir::Value buffer, TablePlaces &seen);
  llvm::LogicalResult checkTable(sched::LaunchOp op, llvm::StringRef things, const TablePlaces &places,
                                 mlir::Type gradients, llvm::function_ref<bool(size_t)> isGradient);
  llvm::LogicalResult emitSquares(Scope &scope, sched::LaunchOp op);
  llvm::LogicalResult emitUpdates(Scope &scope, sched::LaunchOp op, const sched::UpdateOperands &its);
  llvm::LogicalResult emitMap(Scope &scope, sched::LaunchMapOp op);
  llvm::LogicalResult emitCollective(Scope &scope, sched::LaunchCollectiveOp op);
  llvm::LogicalResult emitBlock(const RepeatedBlock &block, size_t index);
  llvm::LogicalResult emitFunction(mlir::func::FuncOp source, Repeats &repeats);
  void callBlock(Scope &scope, llvm::ArrayRef<Instance> instances, bool hasSlot, bool hasLast);
  void emitRows(const RepeatedBlock &block, size_t index);
  cpp::Expr<rt::place> slotPlace(Scope &scope, const cpp::Signature &signature, sched::SlotsOp slots,
                                 llvm::StringRef parameter) const;
  void finish(Scope &scope, const cpp::Signature &signature, const cpp::Label &label, std::optional<int64_t> chunk);
  void declareStream(cpp::RuntimeCalls &calls, int64_t number) const;

  sched::ProgramOp program;
  llvm::ArrayRef<mlir::func::FuncOp> functions;
  const llvm::StringMap<std::string> &functors;
  const Constants &constants;
  BufferContents contents;
  sched::StreamTable streams;
  sched::ArenaTable arenas;
  llvm::StringMap<int64_t> communicators; // name -> index
  BufferTable buffers;
  std::vector<std::string> lines, rows;
};

} // namespace windlass

#endif
