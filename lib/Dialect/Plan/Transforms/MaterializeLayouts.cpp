#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"

namespace windlass::plan {
#define GEN_PASS_DEF_MATERIALIZELAYOUTS
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace windlass::plan

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

class Materializer {
public:
  Materializer(func::FuncOp function, MeshAttr mesh, const SymbolTable &symbols)
      : function(function), mesh(mesh), symbols(symbols) {}

  LogicalResult run() {
    if (function.getName() == train::kUpdateFunction && failed(reshardGradients()))
      return failure();
    for (Operation &op : llvm::make_early_inc_range(function.front()))
      if (!llvm::isa<ReshardOp>(op)) {
        // The backward pass uses nothing of the forward pass but its stash, so it has reshards of its own.
        if (op.hasAttr(train::kForwardAttr) && !firstOfBackward) {
          firstOfBackward = &op;
          reshards.clear();
        }
        if (failed(materialize(op)))
          return failure();
      }
    return success();
  }

private:
  /// Brings every gradient to the layout of its master copy before anything else uses it.
  LogicalResult reshardGradients() {
    OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
    for (BlockArgument argument : function.getArguments()) {
      auto name = function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kGradientAttr);
      auto parameter = name ? symbols.lookup<train::ParameterOp>(name.getAttr()) : nullptr;
      auto master = parameter ? parameter->getAttrOfType<LayoutAttr>(kMasterLayoutAttr) : LayoutAttr();
      LayoutAttr layout = getLayout(argument);
      if (!master || !layout)
        return function.emitError("argument ") << argument.getArgNumber() << " of @update names no weight with layouts";
      if (haveSameParts(layout, master, mesh))
        continue;
      auto reshard = ReshardOp::create(builder, argument.getLoc(), argument, layout, master);
      argument.replaceAllUsesExcept(reshard.getResult(), reshard);
    }
    return success();
  }

  LogicalResult materialize(Operation &op) {
    SmallVector<LayoutAttr> available;
    for (Value operand : op.getOperands()) {
      available.push_back(getLayout(operand));
      if (!available.back())
        return op.emitOpError("takes a value without a layout");
    }
    FailureOr<OpLayouts> layouts = inferLayouts(&op, available, mesh, &symbols);
    if (failed(layouts))
      return failure();
    for (auto [operand, have, want] : llvm::zip_equal(op.getOpOperands(), available, layouts->operands))
      if (!haveSameParts(have, want, mesh))
        operand.set(getReshard(operand.get(), have, want, &op));
    if (op.getNumResults() == 0)
      return success();

    // Consumers may find a result in another layout than the one in which it is made.
    SmallVector<LayoutAttr> wanted;
    for (OpResult result : op.getResults())
      wanted.push_back(getLayout(result));
    setLayouts(&op, layouts->results);
    for (auto [result, made, want] : llvm::zip_equal(op.getResults(), layouts->results, wanted))
      if (want && !haveSameParts(made, want, mesh)) {
        Value reshard = getReshard(result, made, want, getFirstUser(result));
        result.replaceAllUsesExcept(reshard, reshard.getDefiningOp());
      }
    return success();
  }

  static Operation *getFirstUser(Value value) {
    Operation *first = nullptr;
    for (Operation *user : value.getUsers())
      if (!first || user->isBeforeInBlock(first))
        first = user;
    return first;
  }

  /// Returns the value under another layout; all consumers, of which `consumer` comes first, share one reshard.
  Value getReshard(Value value, LayoutAttr from, LayoutAttr to, Operation *consumer) {
    for (ReshardOp existing : reshards[value])
      if (haveSameParts(existing.getTo(), to, mesh))
        return existing.getResult();
    OpBuilder builder(function.getContext());
    Operation *producer = value.getDefiningOp();
    // Computed results are resharded at once; everything else (weights, inputs, the stash) when it is needed. A value
    // of the forward pass that is returned is resharded there, although it may be a reshard already.
    bool isReturned = consumer && consumer->hasTrait<OpTrait::IsTerminator>() && producer && firstOfBackward &&
                      producer->isBeforeInBlock(firstOfBackward);
    if (producer && (!consumer || llvm::isa<train::TrainOpInterface>(producer) || isReturned)) {
      while (llvm::isa_and_nonnull<ReshardOp>(producer->getNextNode()))
        producer = producer->getNextNode();
      builder.setInsertionPointAfter(producer);
    } else {
      // Stash ops stand together.
      while (llvm::isa<train::StashOp>(consumer) && llvm::isa_and_nonnull<train::StashOp>(consumer->getPrevNode()))
        consumer = consumer->getPrevNode();
      builder.setInsertionPoint(consumer);
    }
    auto reshard = ReshardOp::create(builder, value.getLoc(), value, from, to);
    bool belongsToProducer = producer && llvm::isa<train::TrainOpInterface>(producer);
    if (Operation *owner = belongsToProducer ? producer : consumer)
      if (Attribute repeat = owner->getAttr(kRepeatAttr))
        reshard->setAttr(kRepeatAttr, repeat);
    reshards[value].push_back(reshard);
    return reshard.getResult();
  }

  func::FuncOp function;
  MeshAttr mesh;
  const SymbolTable &symbols;
  Operation *firstOfBackward = nullptr;
  llvm::DenseMap<Value, SmallVector<ReshardOp, 1>> reshards;
};

struct MaterializeLayouts : windlass::plan::impl::MaterializeLayoutsBase<MaterializeLayouts> {
  using MaterializeLayoutsBase::MaterializeLayoutsBase;

  void runOnOperation() override {
    auto mesh = getOperation()->getAttrOfType<MeshAttr>(kMeshAttr);
    if (!mesh) {
      getOperation().emitError("has no plan.mesh: apply a strategy or a plan first");
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    for (func::FuncOp function : getPlannedFunctions(getOperation()))
      if (failed(Materializer(function, mesh, symbols).run()))
        return signalPassFailure();
  }
};

} // namespace
