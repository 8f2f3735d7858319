#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/IR/Updates.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_FUSEUPDATES
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// The maps that only round f32 to 16 bits, by the place of the buffer that they read, in order.
using Casts = DenseMap<Place, SmallVector<LaunchMapOp>>;

class UpdateFusion {
public:
  explicit UpdateFusion(ProgramOp program) {
    for (auto function : program.getOps<func::FuncOp>())
      if (function->hasAttr(kScalarFunctionAttr) && isCast(function))
        castFunctions.insert(function.getName());
  }

  void run(Block &block) {
    SmallVector<LaunchOp> updates;
    Casts casts;
    for (Operation &op : block) {
      auto launch = dyn_cast<LaunchOp>(op);
      auto map = dyn_cast<LaunchMapOp>(op);
      auto update = launch ? getUpdateOperands(launch) : std::nullopt;
      if (update && update->parameters == 1 && !update->isRounded())
        updates.push_back(launch);
      else if (map && castFunctions.contains(map.getFunction()))
        casts[getPlace(map.getIns()[0])].push_back(map);
    }
    for (LaunchOp update : updates)
      takeCast(update, casts);
  }

  void dropFunctions(ProgramOp program) { dropUnusedFunctions(program, castFunctions); }

private:
  /// Whether the function only rounds f32 to bf16 or f16.
  static bool isCast(func::FuncOp function) {
    Block &body = function.getBody().front();
    auto cast = dyn_cast<train::CastOp>(body.front());
    return cast && cast->getNextNode() == body.getTerminator() && function.getNumArguments() == 1 &&
           body.getTerminator()->getOperands() == cast->getResults() && cast->getOperand(0).getType().isF32() &&
           (cast->getResult(0).getType().isBF16() || cast->getResult(0).getType().isF16());
  }

  /// Makes the first map behind the update that rounds the whole new weight a result of the update.
  static void takeCast(LaunchOp update, Casts &casts) {
    Value weight = update.getOuts()[0];
    auto found = casts.find(getPlace(weight));
    if (found == casts.end())
      return;
    auto *place = llvm::find_if(found->second, [&](LaunchMapOp map) { return update->isBeforeInBlock(map); });
    if (place == found->second.end())
      return;
    LaunchMapOp map = *place;
    Value rounded = map.getOuts()[0];
    if (!isSame(map.getIns()[0], weight) || map.getStreamAttr() != update.getStreamAttr() ||
        map.getAccumulateAfterFirst() || overlap(rounded, update.getIns()))
      return;
    bool movesDown = canMove(update, map);
    if (!movesDown && !canMoveUp(map, update))
      return;
    Operation *stays = movesDown ? map.getOperation() : update.getOperation();
    if (Operation *buffer = rounded.getDefiningOp(); !buffer->isBeforeInBlock(stays))
      moveBefore(buffer, stays);
    found->second.erase(place);
    OpBuilder builder(stays);
    SmallVector<Value> outs(update.getOuts());
    outs.push_back(rounded);
    auto both = LaunchOp::create(builder, update.getLoc(), update.getKernel(), update.getStream(), update.getIns(),
                                 outs, update.getSettings(), update.getAccumulate(), update.getAccumulateAfterFirst());
    both->setDiscardableAttrs(update->getDiscardableAttrDictionary());
    copyRepeat(stays, both);
    update.erase();
    map.erase();
  }

  llvm::StringSet<> castFunctions;
};

struct FuseUpdates : sched::impl::FuseUpdatesBase<FuseUpdates> {
  void runOnOperation() override {
    UpdateFusion fusion(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function->hasAttr(kScalarFunctionAttr))
        fusion.run(function.getBody().front());
    fusion.dropFunctions(getOperation());
  }
};

} // namespace
