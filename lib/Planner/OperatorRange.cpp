#include "OperatorRange.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

static bool isForward(Operation *op) { return !op->hasAttr(train::kForwardAttr); }

int64_t OperatorRange::countForward(func::FuncOp microbatch) {
  return llvm::count_if(microbatch.front(),
                        [](Operation &op) { return llvm::isa<train::TrainOpInterface>(op) && isForward(&op); });
}

OperatorRange::OperatorRange(func::FuncOp microbatch) : OperatorRange(microbatch, 0, countForward(microbatch)) {}

OperatorRange::OperatorRange(func::FuncOp microbatch, int64_t begin, int64_t end)
    : function(microbatch), covers(begin <= 0 && end >= countForward(microbatch)) {
  int64_t position = 0;
  llvm::DenseSet<Attribute> ids;
  for (Operation &op : function.front()) {
    if (!llvm::isa<train::TrainOpInterface>(op))
      continue;
    bool isMember = covers || ids.contains(op.getAttr(train::kForwardAttr));
    if (isForward(&op)) {
      isMember = begin <= position && position < end;
      ++position;
      if (Attribute id = op.getAttr(train::kIdAttr); isMember && id)
        ids.insert(id);
    }
    if (isMember)
      members.insert(&op);
  }
}
