#include "Counterparts.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

Counterparts::Counterparts(ModuleOp module, ModuleOp copy) {
  std::vector<Operation *> originals, copies;
  module.walk([&](Operation *op) { originals.push_back(op); });
  copy.walk([&](Operation *op) { copies.push_back(op); });
  for (auto [original, its] : llvm::zip_equal(originals, copies))
    counterparts[original] = its;
}

Value Counterparts::find(Value value) const {
  auto result = llvm::cast<OpResult>(value);
  return find(result.getOwner())->getResult(result.getResultNumber());
}

plan::StrategyChoice Counterparts::translate(plan::StrategyChoice choice) const {
  llvm::DenseMap<Operation *, plan::PinnedOp> ops;
  for (auto &[op, pinned] : choice.pins.ops)
    ops[find(op)] = std::move(pinned);
  choice.pins.ops = std::move(ops);
  return choice;
}
