#include "RouterPaths.h"

#include "Blocks.h"

using namespace mlir;

namespace windlass::train {

namespace {

/// Whether an operator asks where the largest number of a row is, or compares probabilities at all.
bool isChosenFrom(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (!isa<CompareOp>(user) || !isForward(user))
      return false;
    return isa_and_nonnull<SoftmaxOp>(value.getDefiningOp()) || llvm::any_of(user->getOperands(), [&](Value other) {
             auto stretched = other.getDefiningOp<BroadcastOp>();
             auto largest = stretched ? stretched.getInput().getDefiningOp<ReduceOp>() : ReduceOp();
             return largest && largest.getKind() == ReductionKind::max && largest.getInput() == value;
           });
  });
}

bool isRead(Value value) {
  while (auto stretched = value.getDefiningOp<BroadcastOp>())
    value = stretched.getInput();
  return value.getDefiningOp<ReadOp>() != nullptr;
}

bool isProduct(Value value) {
  while (isa_and_nonnull<ReshapeOp, TransposeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value.getDefiningOp<MatmulOp>() != nullptr;
}

/// Whether the operator adds a bias to a layer's product.
bool isBiased(Operation *op) {
  return isa<AddOp>(op) && ((isProduct(op->getOperand(0)) && isRead(op->getOperand(1))) ||
                            (isProduct(op->getOperand(1)) && isRead(op->getOperand(0))));
}

class PathFinder {
public:
  explicit PathFinder(RouterPaths &paths) : paths(paths) {}

  void find(Block &block) {
    for (Operation &op : block)
      if (isForward(&op) && op.getNumResults() == 1 &&
          isa<FloatType>(getElementTypeOrSelf(op.getResult(0).getType())) && isChosenFrom(op.getResult(0)))
        toProducts.push_back(op.getResult(0));
    while (!toProducts.empty())
      visitRouter(toProducts.pop_back_val());
    while (!toLayers.empty())
      visitCarried(toLayers.pop_back_val());
    // The walk goes to the end, so that the last layer is like the others.
    for (Operation &op : block)
      if (isForward(&op) && isa<AddOp>(op) && llvm::any_of(op.getOperands(), [&](Value operand) {
            return isa_and_nonnull<AddOp, EmbeddingOp>(operand.getDefiningOp()) &&
                   paths.carried.contains(operand.getDefiningOp());
          }))
        paths.carried.insert(&op);
  }

private:
  /// Walks from the compared numbers back to the router's product.
  void visitRouter(Value value) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<AddOp, BroadcastOp, DivOp, MatmulOp, MulOp, ReshapeOp, SelectOp, SoftmaxOp, SubOp,
                         TransposeOp>(op) ||
        !isa<FloatType>(getElementTypeOrSelf(value.getType())) || !paths.routers.insert(op).second)
      return;
    llvm::append_range(isa<MatmulOp>(op) ? toLayers : toProducts, op->getOperands());
  }

  /// Walks from a router's operand back to the embedding.
  void visitCarried(Value value) {
    SmallVector<Operation *> views;
    Operation *op = value.getDefiningOp();
    for (; isa_and_nonnull<BroadcastOp, DropoutOp, ReshapeOp, SliceOp>(op); op = op->getOperand(0).getDefiningOp()) {
      if (paths.carried.contains(op))
        return;
      views.push_back(op);
    }
    if (!isa_and_nonnull<AddOp, EmbeddingOp, LayerNormOp, ReadOp, RmsNormOp>(op) || isBiased(op))
      return;
    paths.carried.insert(views.begin(), views.end());
    if (!isa<ReadOp>(op) && paths.carried.insert(op).second)
      llvm::append_range(toLayers, op->getOperands());
  }

  RouterPaths &paths;
  SmallVector<Value> toProducts, toLayers;
};

} // namespace

RouterPaths findRouterPaths(ArrayRef<func::FuncOp> functions) {
  RouterPaths paths;
  for (func::FuncOp function : functions)
    PathFinder(paths).find(function.front());
  if (paths.routers.empty())
    return paths;
  llvm::DenseSet<StringAttr> others;
  for (func::FuncOp function : functions)
    function.walk([&](ReadOp read) {
      for (Operation *user : read->getUsers())
        if (paths.contains(user))
          paths.weights.insert(read.getParameterAttr().getAttr());
        else if (isForward(user))
          others.insert(read.getParameterAttr().getAttr());
    });
  for (StringAttr name : others)
    paths.weights.erase(name);
  // A table that a product also reads is narrow for both.
  SmallVector<Operation *> narrow;
  for (Operation *op : paths.carried)
    if (auto embedding = dyn_cast<EmbeddingOp>(op)) {
      auto read = embedding.getTable().getDefiningOp<ReadOp>();
      if (!read || !paths.weights.contains(read.getParameterAttr().getAttr()))
        narrow.push_back(op);
    }
  for (Operation *op : narrow)
    paths.carried.erase(op);
  return paths;
}

} // namespace windlass::train
