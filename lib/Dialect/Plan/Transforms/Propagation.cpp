#include "windlass/Dialect/Plan/Transforms/Propagation.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

bool plan::canSplit(const train::OpFactors &factors, unsigned index, const FactorSplit &split, const Splits &others,
                    MeshAttr mesh) {
  const train::Factor &factor = factors.factors[index];
  if (factor.kind == train::FactorKind::Replicated)
    return false;
  int64_t parts = split.blocks;
  for (StringAttr axis : split.axes) {
    parts *= mesh.sizeOf(axis.getValue());
    for (auto &[other, used] : others)
      if (other != index && llvm::is_contained(used.axes, axis))
        return false;
  }
  if (factor.kind == train::FactorKind::Flat)
    return split.blocks == 1;
  if (factor.size % parts != 0 || factor.size / parts < factor.leastPart)
    return false;
  return factor.kind != train::FactorKind::Parallel ||
         llvm::all_of(factors.results, [&](const train::ValueFactors &result) {
           return llvm::any_of(result, [&](const train::DimFactors &dim) { return llvm::is_contained(dim, index); });
         });
}

int64_t plan::countParts(Operation *op) {
  if (auto split = llvm::dyn_cast<train::SplitOp>(op))
    return split.getNumResults();
  // Each slice is compared with every other one, so there may not be many.
  constexpr unsigned mostReaders = 64;
  auto slice = llvm::dyn_cast<train::SliceOp>(op);
  if (!slice || slice.getInput().hasNUsesOrMore(mostReaders))
    return 1;
  int64_t parts = 1;
  auto from = llvm::cast<RankedTensorType>(slice.getInput().getType());
  for (auto [whole, size] : llvm::zip_equal(from.getShape(), slice.getSizes())) {
    if (whole == size)
      continue;
    if (parts > 1 || size == 0 || whole % size != 0)
      return 1;
    parts = whole / size;
  }
  // A slice that is taken alone, such as the token of a class, is no part of a fused projection.
  int64_t alike = llvm::count_if(slice.getInput().getUsers(), [&](Operation *user) {
    auto other = llvm::dyn_cast<train::SliceOp>(user);
    return other && other.getSizes() == slice.getSizes();
  });
  return alike == parts ? parts : 1;
}

bool plan::takeAxes(const train::OpFactors &factors, const train::DimFactors &dim, DimLayoutAttr layout, Splits &splits,
                    MeshAttr mesh) {
  SmallVector<int64_t> sizes;
  for (unsigned index : dim)
    sizes.push_back(factors.factors[index].size);
  auto wanted = mapAxes(layout, sizes, mesh);
  if (!wanted)
    return false;
  bool hasAll = true;
  for (auto [index, split] : llvm::zip_equal(dim, *wanted)) {
    if (split.axes.empty())
      continue;
    // The split from another operand is kept, unless this one has all its axes and more.
    auto it = splits.find(index);
    bool saysMore = it != splits.end() && split.axes.size() > it->second.axes.size() &&
                    llvm::all_of(it->second.axes,
                                 [&, &axes = split.axes](StringAttr axis) { return llvm::is_contained(axes, axis); });
    if ((it == splits.end() || saysMore) && canSplit(factors, index, split, splits, mesh))
      it = splits.insert_or_assign(index, split).first;
    hasAll &= it != splits.end() && it->second.axes == split.axes && it->second.blocks == split.blocks;
  }
  return hasAll;
}

StrategyAttr plan::getStrategy(MLIRContext *context, const train::OpFactors &factors, const Splits &splits) {
  SmallVector<FactorAxesAttr> attributes;
  for (auto &[index, split] : splits)
    if (!split.axes.empty())
      attributes.push_back(FactorAxesAttr::get(context, StringAttr::get(context, factors.factors[index].name),
                                               split.axes, split.blocks));
  return StrategyAttr::get(context, attributes, -1);
}

LogicalResult Propagation::run() {
  SmallVector<Operation *> ops;
  for (Operation &op : function.front().without_terminator())
    ops.push_back(&op);
  return run(ops);
}

LogicalResult Propagation::run(ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (failed(choose(*op)))
      return failure();
  for (Operation *op : llvm::reverse(ops))
    if (failed(followConsumers(*op)))
      return failure();
  for (Operation *op : ops)
    if (failed(layOut(*op)))
      return failure();
  return success();
}

/// Returns the layout of a value; `@update` sees gradients as `@reduce` leaves them, in the layout of the master copy.
LayoutAttr Propagation::layoutOf(Value value) {
  if (LayoutAttr layout = found.lookup(value))
    return layout;
  auto argument = llvm::dyn_cast<BlockArgument>(value);
  if (argument && function.getName() == train::kUpdateFunction)
    if (auto name = function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kGradientAttr))
      if (auto parameter = getSymbols().lookup<train::ParameterOp>(name.getAttr()))
        if (auto master = parameter->getAttrOfType<LayoutAttr>(kMasterLayoutAttr))
          return master;
  return getLayout(value);
}

SmallVector<LayoutAttr> Propagation::getOperandLayouts(Operation &op) {
  SmallVector<LayoutAttr> layouts;
  for (Value operand : op.getOperands())
    layouts.push_back(layoutOf(operand));
  return layouts;
}

const SymbolTable &Propagation::getSymbols() {
  if (!symbols)
    symbols.emplace(function->getParentOfType<ModuleOp>());
  return *symbols;
}

const OpLayouts *Propagation::infer(Operation &op) {
  auto strategy = op.getAttrOfType<StrategyAttr>(kStrategyAttr);
  SmallVector<LayoutAttr> available = getOperandLayouts(op);
  Inferred &last = inferred[&op];
  // The layouts of other ops depend on more, such as those of parameters.
  bool isKnown =
      llvm::isa<train::TrainOpInterface>(op) && strategy && last.strategy == strategy && last.available == available;
  if (!isKnown) {
    bool namesParameter = llvm::isa<train::ReadOp, train::WriteOp>(op);
    FailureOr<OpLayouts> layouts = inferLayouts(&op, available, mesh, namesParameter ? &getSymbols() : nullptr);
    if (failed(layouts))
      return nullptr;
    last = {strategy, std::move(available), std::move(*layouts)};
  }
  return &last.layouts;
}

const PinnedOp *Propagation::getPin(Operation &op) const {
  auto found = pins.ops.find(&op);
  return found == pins.ops.end() ? nullptr : &found->second;
}

/// Gives the op the splits of its operands.
LogicalResult Propagation::choose(Operation &op) {
  StrategyAttr strategy = getWholeStrategy(context);
  if (const PinnedOp *pin = getPin(op); pin && pin->strategy) {
    strategy = *pin->strategy;
  } else if (auto compute = llvm::dyn_cast<train::TrainOpInterface>(op)) {
    train::OpFactors factors = compute.getFactors();
    Splits splits = seeds.lookup(&op);
    if (factors.operands.size() == op.getNumOperands())
      for (auto [operand, value] : llvm::zip_equal(op.getOperands(), factors.operands)) {
        LayoutAttr layout = layoutOf(operand);
        if (layout && layout.getDims().size() == value.size())
          for (auto [dim, dimLayout] : llvm::zip_equal(value, layout.getDims()))
            takeAxes(factors, dim, dimLayout, splits, mesh);
        // The first operand that is flat decides.
        if (std::optional<unsigned> flat = factors.findFlat(); flat && layout && !layout.getFlat().empty())
          if (FactorSplit split{SmallVector<StringAttr, 1>(layout.getFlat()), 1};
              canSplit(factors, *flat, split, splits, mesh))
            splits.try_emplace(*flat, split);
      }
    strategy = getStrategy(context, factors, splits);
  }
  op.setAttr(kStrategyAttr, strategy);
  return layOut(op);
}

LogicalResult Propagation::layOut(Operation &op) {
  SmallVector<LayoutAttr> layouts;
  auto read = llvm::dyn_cast<train::ReadOp>(op);
  if (read && function.getName() != train::kUpdateFunction) {
    LayoutAttr layout = reads.lookup(read.getParameterAttr().getAttr());
    layouts = {layout ? layout : LayoutAttr::getWhole(llvm::cast<RankedTensorType>(read.getType()))};
  } else {
    const OpLayouts *its = infer(op);
    if (!its)
      return failure();
    layouts.assign(its->results.begin(), its->results.end());
  }
  if (const PinnedOp *pin = getPin(op))
    for (auto [layout, pinned] : llvm::zip(layouts, pin->layouts))
      if (pinned)
        layout = pinned;
  setLayouts(&op, layouts);
  return success();
}

/// Splits an unsplit op where all its consumers want local slices only, which leaves less to compute and needs no
/// communication.
LogicalResult Propagation::followConsumers(Operation &op) {
  auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
  const PinnedOp *pin = getPin(op);
  if (!compute || (pin && pin->strategy))
    return success();
  train::OpFactors factors = compute.getFactors();
  Splits splits;
  auto strategy = op.getAttrOfType<StrategyAttr>(kStrategyAttr);
  for (auto [i, factor] : llvm::enumerate(factors.factors))
    if (FactorAxesAttr split = strategy.splitOf(factor.name))
      splits[i] = {SmallVector<StringAttr, 1>(split.getAxes()), split.getBlocks()};
  size_t before = splits.size();
  for (OpResult result : op.getResults()) {
    FailureOr<LayoutAttr> common = getWanted(result);
    if (failed(common))
      return failure();
    LayoutAttr wanted = *common;
    if (!wanted)
      continue;
    const train::ValueFactors &value = factors.results[result.getResultNumber()];
    for (auto [dim, layout] : llvm::zip_equal(value, wanted.getDims()))
      // Parts of a result that come from parts of an inner reduction would cost communication.
      if (llvm::none_of(dim, [&](unsigned i) { return factors.factors[i].kind == train::FactorKind::Inner; }))
        takeAxes(factors, dim, layout, splits, mesh);
  }
  if (splits.size() == before)
    return success();
  op.setAttr(kStrategyAttr, getStrategy(context, factors, splits));
  return layOut(op);
}

FailureOr<LayoutAttr> Propagation::getWanted(Value value) {
  LayoutAttr wanted;
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    LayoutAttr layout;
    if (auto stash = llvm::dyn_cast<train::StashOp>(op)) {
      FailureOr<LayoutAttr> common = getWanted(stash.getResult());
      if (failed(common))
        return failure();
      layout = *common;
    } else if (llvm::isa<train::TrainOpInterface>(op)) {
      const OpLayouts *its = infer(*op);
      if (!its)
        return failure();
      layout = dropUnreduced(its->operands[use.getOperandNumber()]);
    }
    if (!layout || (wanted && !haveSameParts(wanted, layout, mesh)))
      return LayoutAttr();
    wanted = layout;
  }
  return wanted;
}
