#include "ExpertParallel.h"

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/Words.h"

#include <numeric>

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

bool isInput(Value value) {
  auto argument = llvm::dyn_cast<BlockArgument>(value);
  auto function = argument ? llvm::dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
  return function && function.getArgAttr(argument.getArgNumber(), train::kInputAttr) &&
         llvm::cast<RankedTensorType>(value.getType()).getRank() > 0;
}

/// Returns the splits of an operator that reads inputs: of the first factor of their batch.
Splits splitBatch(Operation *op, const FactorSplit &split, MeshAttr mesh) {
  auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
  if (!compute)
    return {};
  train::OpFactors factors = compute.getFactors();
  Splits splits;
  if (factors.operands.size() == op->getNumOperands())
    for (auto [operand, value] : llvm::zip_equal(op->getOperands(), factors.operands))
      if (isInput(operand) && !value.empty() && !value.front().empty())
        if (unsigned index = value.front().front(); canSplit(factors, index, split, splits, mesh))
          splits.try_emplace(index, split);
  return splits;
}

} // namespace

void plan::splitExperts(func::FuncOp function, ArrayRef<NamedSplit> splits, MeshAttr mesh, const Pins &pins,
                        llvm::DenseMap<Operation *, Splits> &found) {
  function.walk([&](Operation *op) {
    if (!llvm::isa<train::ExpertsOp, train::ExpertsGradOp>(op) || pins.ops.contains(op))
      return;
    train::OpFactors factors = llvm::cast<train::TrainOpInterface>(op).getFactors();
    Splits own;
    for (auto &[name, split] : splits)
      for (auto [index, factor] : llvm::enumerate(factors.factors))
        if (factor.name == name && canSplit(factors, index, split, own, mesh))
          own[static_cast<unsigned>(index)] = split;
    if (!own.empty())
      found[op] = std::move(own);
  });
}

llvm::DenseMap<Operation *, Splits> plan::findExpertParallel(func::FuncOp function, ArrayRef<StringAttr> axes,
                                                             MeshAttr mesh, const Pins &pins) {
  llvm::DenseMap<Operation *, Splits> found;
  const FactorSplit experts{llvm::to_vector<1>(axes), 1};
  FactorSplit tokens{llvm::to_vector<1>(mesh.axesOf(AxisRole::batch)), 1}, batch = tokens;
  llvm::append_range(batch.axes, axes);
  for (Operation &op : function.getOps())
    if (Splits splits = splitBatch(&op, batch, mesh); !splits.empty() && !pins.ops.contains(&op))
      found[&op] = std::move(splits);
  SmallVector<NamedSplit> splits = {{"experts", experts}};
  if (!tokens.axes.empty())
    splits.push_back({"tokens", tokens});
  splitExperts(function, splits, mesh, pins, found);
  return found;
}

llvm::Error plan::checkExpertParallel(ModuleOp module, MeshAttr mesh) {
  int64_t experts = 0, batch = 0, ranks = mesh.sizeOf(AxisRole::model);
  module.walk([&](train::ExpertsOp op) {
    experts = std::gcd(experts, llvm::cast<RankedTensorType>(op.getUp().getType()).getDimSize(0));
  });
  if (experts == 0)
    return llvm::createStringError("splits experts, and the model has none that are recognized: use another strategy");
  if (func::FuncOp function = train::getMicrobatchFunction(module))
    batch = getBatch(function);
  if (experts % ranks != 0)
    return llvm::createStringError("cannot share " + llvm::Twine(experts) + " experts among " + countOf(ranks, "rank") +
                                   " evenly: use a divisor of " + llvm::Twine(experts));
  if (int64_t parts = ranks * mesh.sizeOf(AxisRole::batch); batch % parts != 0)
    return llvm::createStringError("cannot share a batch of " + llvm::Twine(batch) + " among " +
                                   countOf(parts, "rank") +
                                   " evenly: use more micro-batches, or fewer ranks for experts");
  return llvm::Error::success();
}
