#include "windlass/Dialect/Sched/Transforms/RouteRows.h"

#include "CollectiveChains.h"

#include "windlass/Dialect/Sched/Transforms/Passes.h"
#include "windlass/Support/RowShare.h"
#include "windlass/Support/TensorBytes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_ROUTEROWS
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Returns what reshapes make a value of; with `isOnlyUse`, a value has no other use than the next reshape.
Value skipReshapes(Value value, bool isOnlyUse) {
  while (auto reshape = value.getDefiningOp<train::ReshapeOp>()) {
    value = reshape.getInput();
    if (isOnlyUse && !value.hasOneUse())
      return {};
  }
  return value;
}

/// Returns the gather of the members' rows that gives [rows, columns]; null where it is none.
AllGatherOp findGather(Value rows, bool isOnlyUse) {
  if (isOnlyUse && !rows.hasOneUse())
    return {};
  Value value = skipReshapes(rows, isOnlyUse);
  auto gather = value ? value.getDefiningOp<AllGatherOp>() : AllGatherOp();
  if (!gather || gather.getInputs().size() != 1 || !isInBlocks(typeOf(value), gather.getDim()))
    return {};
  int64_t members = typeOf(value).getNumElements() / typeOf(gather.getInputs()[0]).getNumElements();
  return typeOf(rows).getDimSize(0) % members == 0 ? gather : AllGatherOp();
}

/// Returns the scatter to which [rows, columns] go and nothing else; null where it is none.
ReduceScatterOp findScatter(Value rows) {
  Operation *user = nullptr;
  for (Value value = rows; value.hasOneUse(); value = user->getResult(0)) {
    user = *value.user_begin();
    if (!isa<train::ReshapeOp>(user))
      break;
  }
  auto scatter = dyn_cast_if_present<ReduceScatterOp>(user);
  if (!scatter || scatter.getInputs().size() != 1 || !isInBlocks(typeOf(scatter.getInputs()[0]), scatter.getDim()))
    return {};
  int64_t members = typeOf(scatter.getInputs()[0]).getNumElements() / typeOf(scatter.getResult(0)).getNumElements();
  return typeOf(rows).getDimSize(0) % members == 0 ? scatter : ReduceScatterOp();
}

/// A layer of experts of which ranks have equal parts, in order.
struct Layer {
  Value choices;
  ArrayAttr axes;
  int64_t experts;
  double share;
};

/// Returns the layer of an operator whose rows may be routed: choices of all members' tokens are gathered over the axes
/// that the experts are split over.
template <class Op> std::optional<Layer> findLayer(Op op) {
  AllGatherOp choices = findGather(op.getChoices(), /*isOnlyUse=*/false);
  Value first = op.getFirst() ? skipReshapes(op.getFirst(), /*isOnlyUse=*/false) : Value();
  auto own = first ? first.getDefiningOp<OwnPartOp>() : OwnPartOp();
  if (!choices || !own || own.getAxes() != choices.getAxes() || typeOf(first).getNumElements() != 1)
    return std::nullopt;
  auto numbers = skipReshapes(own.getInput(), /*isOnlyUse=*/false).template getDefiningOp<train::IotaOp>();
  int64_t members = typeOf(own.getInput()).getNumElements(), experts = static_cast<int64_t>(*op.getAllRows()),
          chosen = typeOf(op.getChoices()).getDimSize(1);
  if (!numbers || numbers.getStart().convertToDouble() != 0 ||
      numbers.getStep().convertToDouble() * static_cast<double>(members) != static_cast<double>(experts))
    return std::nullopt;
  return Layer{op.getChoices(), own.getAxes(), experts, getRowShare(experts, members, chosen)};
}

/// Erases the operations that make a value, from the last to the first, as far as nothing uses them.
void eraseUnused(Value value) {
  while (Operation *maker = value.getDefiningOp()) {
    if (!isOpTriviallyDead(maker) || maker->getNumOperands() == 0)
      return;
    value = maker->getOperand(0);
    maker->erase();
  }
}

using Wants = llvm::function_ref<bool(const GatheredRows &)>;

GatheredRows describe(Value whole, const Layer &layer) {
  return {layer.axes, getTensorBytes(typeOf(whole)), layer.share};
}

/// Gathers the rows of an operand only where they are needed.
void routeOperand(OpOperand &operand, const Layer &layer, Wants wants) {
  Value whole = operand.get();
  AllGatherOp gather = findGather(whole, /*isOnlyUse=*/true);
  if (!gather || gather.getAxes() != layer.axes || !wants(describe(whole, layer)))
    return;
  Value part = gather.getInputs()[0];
  OpBuilder builder(operand.getOwner());
  Location loc = gather.getLoc();
  int64_t columns = typeOf(whole).getDimSize(1);
  auto type = typeOf(whole).clone({typeOf(part).getNumElements() / columns, columns});
  Value rows = train::ReshapeOp::create(builder, loc, type, part);
  auto routed = GatherRowsOp::create(builder, loc, whole.getType(), rows, layer.choices,
                                     builder.getI64IntegerAttr(layer.experts), layer.axes);
  routed->setDiscardableAttrs(gather->getDiscardableAttrDictionary());
  operand.set(routed);
  eraseUnused(whole);
}

/// Scatters the rows of a result only from where they are.
void routeResult(Value whole, const Layer &layer, Wants wants) {
  ReduceScatterOp scatter = findScatter(whole);
  if (!scatter || scatter.getAxes() != layer.axes || !wants(describe(whole, layer)))
    return;
  Value part = scatter.getResult(0);
  OpBuilder builder(scatter);
  Location loc = scatter.getLoc();
  int64_t columns = typeOf(whole).getDimSize(1);
  auto type = typeOf(whole).clone({typeOf(part).getNumElements() / columns, columns});
  auto routed = ScatterRowsOp::create(builder, loc, type, whole, layer.choices,
                                      builder.getI64IntegerAttr(layer.experts), layer.axes);
  routed->setDiscardableAttrs(scatter->getDiscardableAttrDictionary());
  part.replaceAllUsesWith(train::ReshapeOp::create(builder, loc, part.getType(), routed));
  eraseUnused(part);
}

struct RouteRows : sched::impl::RouteRowsBase<RouteRows> {
  void runOnOperation() override {
    routeRows(getOperation(), [](const GatheredRows &rows) { return rows.share <= 0.5; });
  }
};

} // namespace

void sched::routeRows(ProgramOp program, Wants wants) {
  SmallVector<Operation *> layers;
  program.walk([&](Operation *op) {
    if (isa<train::ExpertsOp, train::ExpertsGradOp>(op))
      layers.push_back(op);
  });
  for (Operation *op : layers) {
    if (auto experts = dyn_cast<train::ExpertsOp>(op)) {
      if (std::optional<Layer> layer = findLayer(experts)) {
        routeOperand(experts.getInputMutable(), *layer, wants);
        routeResult(experts.getResult(), *layer, wants);
      }
    } else if (auto gradient = cast<train::ExpertsGradOp>(op); std::optional<Layer> layer = findLayer(gradient)) {
      routeOperand(gradient.getGradientMutable(), *layer, wants);
      routeOperand(gradient.getInputMutable(), *layer, wants);
      routeResult(gradient.getInputGradient(), *layer, wants);
    }
  }
}
