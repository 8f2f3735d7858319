//===- AssignIds.cpp - a name for every operator --------------------------===//

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "windlass/Dialect/Train/IR/TrainConventions.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_TRAINASSIGNIDS
#include "windlass/Conversion/OnnxToTrain/Passes.h.inc"
} // namespace windlass

namespace {
struct TrainAssignIdsPass : windlass::impl::TrainAssignIdsBase<TrainAssignIdsPass> {
  void runOnOperation() override {
    llvm::StringMap<int64_t> ordinals;
    Builder builder(&getContext());
    getOperation().walk([&](Operation *op) {
      if (!isa<train::TrainDialect>(op->getDialect()))
        return;
      // `<scope>.<kind>.<ordinal>`: the ordinal counts within scope and kind, so the parts before it are unique
      // together and no other scope can end in the same two parts with the same prefix.
      std::string prefix = getScopePath(op->getLoc()).str();
      prefix += (prefix.empty() ? "" : ".") + op->getName().stripDialect().str();
      op->setAttr(train::kIdAttr, builder.getStringAttr(prefix + "." + std::to_string(ordinals[prefix]++)));
    });
  }
};
} // namespace
