#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"

#include <map>

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace windlass::plan {
#define GEN_PASS_DEF_KEEPGATHERS
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace windlass::plan

namespace {

struct KeepGathers : plan::impl::KeepGathersBase<KeepGathers> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->removeAttr(kKeepsGathersAttr))
      return;
    func::FuncOp function = train::getMicrobatchFunction(module);
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    if (!function || !mesh)
      return;
    train::StashOp last;
    std::map<std::pair<StringRef, const void *>, ReshardOp> gathers;
    SmallVector<ReshardOp> again;
    for (Operation &op : function.getOps()) {
      if (auto stash = llvm::dyn_cast<train::StashOp>(op))
        last = stash;
      auto gather = llvm::dyn_cast<ReshardOp>(op);
      if (!gather || !isGather(gather, mesh))
        continue;
      if (last)
        again.push_back(gather);
      else
        gathers.try_emplace(getKey(gather), gather);
    }
    std::map<Operation *, train::StashOp> kept;
    for (ReshardOp gather : again)
      if (auto found = gathers.find(getKey(gather)); found != gathers.end()) {
        train::StashOp &stash = kept[found->second];
        if (!stash)
          stash = last = keep(found->second, last);
        gather.replaceAllUsesWith(stash.getResult());
        Operation *read = gather.getInput().getDefiningOp();
        gather.erase();
        if (read->use_empty())
          read->erase();
      }
  }

  static train::ReadOp getRead(ReshardOp gather) { return gather.getInput().getDefiningOp<train::ReadOp>(); }

  /// Whether the reshard makes a weight, or a part of one, of what ranks for the data hold of it.
  static bool isGather(ReshardOp reshard, MeshAttr mesh) {
    return getRead(reshard) && llvm::any_of(mesh.getDataAxes(), [&](StringAttr axis) {
             return usesAxis(reshard.getFrom(), axis) && !usesAxis(reshard.getTo(), axis);
           });
  }

  static std::pair<StringRef, const void *> getKey(ReshardOp gather) {
    return {getRead(gather).getParameter(), gather.getTo().getAsOpaquePointer()};
  }

  /// Hands a gathered weight over, behind the other values that are stashed.
  static train::StashOp keep(ReshardOp gather, train::StashOp last) {
    OpBuilder builder(last->getContext());
    builder.setInsertionPointAfter(last);
    auto stash = train::StashOp::create(builder, gather.getLoc(), gather.getResult());
    stash->setAttr(kLayoutsAttr, builder.getArrayAttr({gather.getTo()}));
    stash->setAttr(kStrategyAttr, last->getAttr(kStrategyAttr));
    if (auto id = getRead(gather)->getAttrOfType<StringAttr>(train::kIdAttr))
      stash->setAttr(train::kIdAttr, builder.getStringAttr(id.getValue() + ".stash"));
    return stash;
  }
};

} // namespace
