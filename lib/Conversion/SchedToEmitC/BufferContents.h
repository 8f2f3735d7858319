// What buffers hold, in words for a person.
#ifndef WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_BUFFERCONTENTS_H
#define WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_BUFFERCONTENTS_H

#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Target/Cpp/Label.h"

#include "llvm/ADT/DenseMap.h"

#include <map>

namespace windlass {

/// Returns the operator that a command belongs to; empty where it belongs to none.
cpp::Label getOperator(mlir::Operation *command);

/// Says what the buffers of commands hold: a resource ("gradient of layers.0.weight"), or else the value last written
/// to their bytes when the functions run in the order given ("layers.0.matmul.0"). A buffer that a command writes holds
/// the command's result.
class BufferContents {
public:
  BufferContents(sched::ProgramOp program, llvm::ArrayRef<mlir::func::FuncOp> functions);

  /// Returns the content of the buffer at this operand of a command; empty where nothing has written it.
  cpp::Label getLabel(mlir::OpOperand &operand) const { return labels.lookup(&operand); }

private:
  /// A range of bytes of an arena, whose first byte is the key: its end, and the command that wrote it as its result
  /// `result`.
  struct Piece {
    int64_t end;
    mlir::Operation *writer;
    unsigned result;
  };
  using Pieces = std::map<int64_t, Piece>;

  void addCommand(mlir::Operation *command);
  cpp::Label getResources(const sched::Extent &extent) const;
  cpp::Label getWritten(const sched::Extent &extent) const;
  void write(const sched::Extent &extent, mlir::Operation *writer, unsigned result);

  llvm::DenseMap<mlir::StringAttr, std::map<int64_t, sched::ResourceOp>> resources; // arena -> by offset
  llvm::DenseMap<mlir::StringAttr, Pieces> written;                                 // arena -> disjoint ranges
  llvm::DenseMap<mlir::OpOperand *, cpp::Label> labels;
};

} // namespace windlass

#endif
