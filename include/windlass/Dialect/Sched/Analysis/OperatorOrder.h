// Which of two operators of a block comes first, while operators of the block move.
#ifndef WINDLASS_DIALECT_SCHED_ANALYSIS_OPERATORORDER_H
#define WINDLASS_DIALECT_SCHED_ANALYSIS_OPERATORORDER_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace windlass::sched {

/// The order of the operators of a block. Operation::isBeforeInBlock renumbers the whole block after each operator that
/// moves; here moved operators get numbers from the gaps between others, so that thousands of moves need few passes
/// over a block of thousands. All moves must use `moveBefore`, and no operator may be added or erased.
class OperatorOrder {
public:
  explicit OperatorOrder(mlir::Block &block) : block(block) { number(); }

  bool isBefore(mlir::Operation *a, mlir::Operation *b) const { return numbers.lookup(a) < numbers.lookup(b); }

  /// Moves `ops`, which must not be empty, in their order in front of `place`.
  void moveBefore(llvm::ArrayRef<mlir::Operation *> ops, mlir::Operation *place) {
    for (mlir::Operation *op : ops)
      op->moveBefore(place);
    mlir::Operation *previous = ops.front()->getPrevNode();
    int64_t low = previous ? numbers.lookup(previous) : 0, high = numbers.lookup(place);
    int64_t step = (high - low) / static_cast<int64_t>(ops.size() + 1);
    if (step == 0)
      return number();
    for (mlir::Operation *op : ops)
      numbers[op] = low += step;
  }

private:
  void number() {
    constexpr int64_t kGap = int64_t(1) << 32;
    int64_t next = 0;
    for (mlir::Operation &op : block)
      numbers[&op] = next += kGap;
  }

  mlir::Block &block;
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;
};

} // namespace windlass::sched

#endif
