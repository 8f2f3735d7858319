// The programs of the positions of a pipeline while they are built from the program of one position.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKPROGRAMS_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_CHUNKPROGRAMS_H

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "mlir/IR/IRMapping.h"

#include <deque>
#include <map>

namespace windlass::sched {

class ChunkFlow;

/// Builds functions of chunks in the programs of their positions. What a function names is declared in its program by
/// `declareResources`.
class ChunkPrograms {
public:
  /// Creates an empty program for each position of `placement` before `whole`.
  ChunkPrograms(ProgramOp whole, const schedule::Placement &placement);

  llvm::ArrayRef<ProgramOp> getPrograms() const { return programs; }
  ProgramOp getProgram(int64_t chunk) const { return programs[placement.positionOf[chunk]]; }

  /// Returns a resource of the whole program.
  ResourceOp getResource(mlir::FlatSymbolRefAttr name) const { return symbols.lookup<ResourceOp>(name.getAttr()); }

  /// Creates a function of a chunk, whose body is empty.
  mlir::func::FuncOp createFunction(mlir::Location loc, StepRole role, int64_t chunk);

  /// Clones an operator into the function of a chunk, without the labels that only cutting needs.
  mlir::Operation *clone(mlir::OpBuilder &builder, mlir::Operation &op, mlir::IRMapping &mapping, int64_t chunk);

  /// Returns the name in a chunk's program of a resource of the whole program: inputs exist once for each chunk.
  mlir::FlatSymbolRefAttr use(mlir::FlatSymbolRefAttr resource, int64_t chunk);

  /// Whether a function in the program of `chunk` uses a resource of the whole program.
  bool isUsed(mlir::FlatSymbolRefAttr resource, int64_t chunk) const {
    return used[placement.positionOf[chunk]].contains({resource.getAttr(), 0});
  }

  /// Fills the function of a chunk with its part of `flow`: loads of what it receives, its operators, stores of what
  /// it sends. `mapping` has the function's arguments, and gets all values that the function makes. Fails at a value
  /// that crosses a border without a layout.
  mlir::LogicalResult fill(mlir::func::FuncOp function, const ChunkFlow &flow, int64_t chunk, mlir::IRMapping &mapping);

  /// Declares the resources that functions use, in the order of the whole program, then the borders.
  void declareResources();

private:
  /// A value that passes from one chunk to a neighbour; `number` counts the values that pass there, from 0.
  struct Border {
    int64_t from, to;
    size_t number;
    mlir::RankedTensorType type, global;
    plan::LayoutAttr layout;

    /// Returns the name of the resource on the sending or on the receiving side.
    std::string getName(bool isSent) const;
  };

  /// Returns the border of a value that passes from one chunk to another: one of the same type, which has another value
  /// in another function, or a new one. `taken` are those of this function. Fails for a value without a layout.
  mlir::FailureOr<const Border *> getBorder(mlir::Value value, int64_t from, int64_t to,
                                            llvm::DenseSet<const Border *> &taken);
  void declareBorder(const Border &border, bool isSent);

  ProgramOp whole;
  mlir::SymbolTable symbols;
  schedule::Placement placement;
  llvm::SmallVector<ProgramOp> programs;
  /// By position, the resources of the whole program that functions use; with the chunk for those of a slot, else with
  /// chunk 0.
  std::vector<llvm::DenseSet<std::pair<mlir::StringAttr, int64_t>>> used;
  std::map<std::pair<int64_t, int64_t>, std::deque<Border>> borders;
};

} // namespace windlass::sched

#endif
