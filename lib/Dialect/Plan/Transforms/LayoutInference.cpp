#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"

#include "llvm/ADT/SmallSet.h"

#include <numeric>

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

/// Appends a digit, keeping the normal form.
static void append(Digits &digits, Digit digit) {
  if (digit.size == 1)
    return;
  if (!digit.axis && !digits.empty() && !digits.back().axis)
    digits.back().size *= digit.size;
  else
    digits.push_back(digit);
}

std::optional<Digits> plan::getDigits(DimLayoutAttr dim, MeshAttr mesh) {
  Digits digits;
  for (FactorLayoutAttr factor : dim.getFactors()) {
    int64_t rest = factor.getSize();
    for (StringAttr axis : factor.getAxes()) {
      int64_t size = mesh.sizeOf(axis.getValue());
      if (mesh.indexOf(axis.getValue()) < 0 || rest % size != 0)
        return std::nullopt;
      append(digits, {size, axis});
      rest /= size;
    }
    append(digits, {rest, nullptr});
  }
  return digits;
}

SmallVector<StringAttr> plan::getFlatAxes(LayoutAttr layout, MeshAttr mesh) {
  SmallVector<StringAttr> axes(layout.getFlat());
  llvm::erase_if(axes, [&](StringAttr axis) { return mesh.sizeOf(axis.getValue()) == 1; });
  return axes;
}

static MemoryKind getMemory(train::ParameterOp weight, StringRef name) {
  auto memory = weight->getAttrOfType<MemoryKindAttr>(name);
  return memory ? memory.getValue() : MemoryKind::device;
}

MemoryKind plan::getStateMemory(train::ParameterOp weight) { return getMemory(weight, kStateMemoryAttr); }

MemoryKind plan::getUpdateMemory(train::ParameterOp weight) {
  bool isOnDevice = getStateMemory(weight) == MemoryKind::device || weight->hasAttr(kUpdatesOnDeviceAttr);
  return isOnDevice ? MemoryKind::device : MemoryKind::host;
}

LayoutAttr plan::getStateLayout(train::ParameterOp state, train::ParameterOp weight, LayoutAttr master) {
  RankedTensorType type = state.getTensorType();
  return type == weight.getTensorType() ? master : LayoutAttr::getWhole(type);
}

void plan::setStateLayouts(ModuleOp module) {
  for (auto state : module.getOps<train::ParameterOp>()) {
    auto weight = state.getOf() ? SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(state, state.getOfAttr())
                                : train::ParameterOp();
    if (!weight)
      continue;
    LayoutAttr layout = getStateLayout(state, weight, weight->getAttrOfType<LayoutAttr>(kMasterLayoutAttr));
    state->setAttr(kLayoutAttr, layout);
    state->setAttr(kMasterLayoutAttr, layout);
  }
}

MemoryKind plan::getGradientMemory(train::ParameterOp weight) { return getMemory(weight, kGradientMemoryAttr); }

MemoryKind plan::getComputeMemory(train::ParameterOp weight) { return getMemory(weight, kComputeMemoryAttr); }

LayoutAttr plan::getCopyLayout(train::ParameterOp parameter, StringRef attribute) {
  auto layout = parameter->getAttrOfType<LayoutAttr>(attribute);
  if (!layout)
    return layout;
  return layout.withMemory(attribute == kLayoutAttr         ? getComputeMemory(parameter)
                           : attribute == kMasterLayoutAttr ? getStateMemory(parameter)
                                                            : getGradientMemory(parameter));
}

bool plan::isReadAsAccumulated(LayoutAttr gradient, LayoutAttr master, MeshAttr mesh) {
  return gradient.getUnreduced().empty() && haveSameParts(gradient, master, mesh);
}

bool plan::haveSameParts(LayoutAttr a, LayoutAttr b, MeshAttr mesh) {
  if (a == b)
    return true;
  if (a.getDims().size() != b.getDims().size() || a.getMemory() != b.getMemory() ||
      a.getUnreduced().size() != b.getUnreduced().size() || getFlatAxes(a, mesh) != getFlatAxes(b, mesh))
    return false;
  for (UnreducedAttr unreduced : a.getUnreduced())
    if (!llvm::is_contained(b.getUnreduced(), unreduced))
      return false;
  for (auto [dimA, dimB] : llvm::zip_equal(a.getDims(), b.getDims())) {
    std::optional<Digits> digitsA = getDigits(dimA, mesh), digitsB = getDigits(dimB, mesh);
    if (!digitsA || !digitsB || *digitsA != *digitsB)
      return false;
  }
  return true;
}

LayoutAttr plan::addUnreduced(LayoutAttr layout, ArrayRef<UnreducedAttr> added, MeshAttr mesh) {
  SmallVector<UnreducedAttr> all(layout.getUnreduced());
  for (UnreducedAttr unreduced : added)
    if (!llvm::is_contained(all, unreduced))
      all.push_back(unreduced);
  llvm::sort(all, [&](UnreducedAttr a, UnreducedAttr b) {
    return std::make_pair(mesh.indexOf(a.getAxis().getValue()), a.getKind()) <
           std::make_pair(mesh.indexOf(b.getAxis().getValue()), b.getKind());
  });
  return layout.withUnreduced(all);
}

LayoutAttr plan::dropUnreduced(LayoutAttr layout) { return layout.withUnreduced({}); }

bool plan::usesAxis(LayoutAttr layout, StringAttr axis) {
  return llvm::is_contained(layout.getFlat(), axis) ||
         llvm::any_of(layout.getUnreduced(), [&](UnreducedAttr each) { return each.getAxis() == axis; }) ||
         llvm::any_of(layout.getDims(), [&](DimLayoutAttr dim) {
           return llvm::any_of(dim.getFactors(),
                               [&](FactorLayoutAttr factor) { return llvm::is_contained(factor.getAxes(), axis); });
         });
}

bool plan::usesDataAxes(LayoutAttr layout, MeshAttr mesh) {
  return llvm::any_of(mesh.getDataAxes(), [&](StringAttr axis) { return usesAxis(layout, axis); });
}

LayoutAttr plan::addReplicaSum(LayoutAttr layout, ModuleOp module) {
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  SmallVector<UnreducedAttr> sums;
  for (StringAttr axis : mesh.axesOf(AxisRole::replica))
    sums.push_back(UnreducedAttr::get(module.getContext(), axis, train::ReductionKind::sum));
  return addUnreduced(layout, sums, mesh);
}

std::optional<SmallVector<FactorSplit>> plan::mapAxes(DimLayoutAttr dim, ArrayRef<int64_t> sizes, MeshAttr mesh) {
  std::optional<Digits> digits = getDigits(dim, mesh);
  if (!digits)
    return std::nullopt;
  SmallVector<FactorSplit> splits(sizes.size());
  size_t next = 0;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    FactorSplit &split = splits[i];
    // The rest of the factor, and the rest of that behind the axes: they stand side by side.
    int64_t rest = size, end = size;
    while (rest > 1) {
      if (next == digits->size())
        return std::nullopt;
      Digit &digit = (*digits)[next];
      if (digit.axis) {
        if (split.axes.empty())
          split.blocks = size / rest;
        else if (rest != end)
          return std::nullopt;
        if (rest % digit.size != 0)
          return std::nullopt;
        split.axes.push_back(digit.axis);
        rest /= digit.size;
        end = rest;
        ++next;
        continue;
      }
      if (rest % digit.size == 0) {
        rest /= digit.size;
        ++next;
      } else if (digit.size % rest == 0) {
        digit.size /= rest;
        rest = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  return splits;
}

FactorAxesAttr plan::getInnerSplit(Operation *op) {
  auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
  auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttr);
  if (!compute || !strategy || strategy.getSplits().empty())
    return nullptr;
  for (const train::Factor &factor : compute.getFactors().factors)
    if (factor.isTakenApart())
      if (FactorAxesAttr split = strategy.splitOf(factor.name); split && !split.getAxes().empty())
        return split;
  return nullptr;
}

StrategyAttr plan::getWholeStrategy(MLIRContext *context) { return StrategyAttr::get(context, {}, -1); }

SmallVector<func::FuncOp> plan::getPlannedFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (StringRef name :
       {train::kInitFunction, train::kMicrobatchFunction, train::kUpdateFunction, train::kEvaluateFunction})
    if (auto function = module.lookupSymbol<func::FuncOp>(name); function && !function.isExternal())
      functions.push_back(function);
  return functions;
}

LayoutAttr plan::getLayout(Value value) {
  if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
    auto function = llvm::dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return function ? function.getArgAttrOfType<LayoutAttr>(argument.getArgNumber(), kLayoutAttr) : LayoutAttr();
  }
  auto result = llvm::cast<OpResult>(value);
  if (auto reshard = llvm::dyn_cast<ReshardOp>(result.getOwner()))
    return reshard.getTo();
  auto layouts = result.getOwner()->getAttrOfType<ArrayAttr>(kLayoutsAttr);
  if (!layouts || layouts.size() != result.getOwner()->getNumResults())
    return nullptr;
  return llvm::dyn_cast<LayoutAttr>(layouts[result.getResultNumber()]);
}

SmallVector<LayoutAttr> plan::getOperandLayouts(Operation *op) {
  SmallVector<LayoutAttr> layouts;
  for (Value operand : op->getOperands())
    layouts.push_back(getLayout(operand));
  return layouts;
}

void plan::setLayouts(Operation *op, ArrayRef<LayoutAttr> layouts) {
  op->setAttr(kLayoutsAttr, ArrayAttr::get(op->getContext(), SmallVector<Attribute>(layouts.begin(), layouts.end())));
}

/// Returns the layout of one operand or result: the axes that the strategy puts on the factors of its dims.
static FailureOr<LayoutAttr> layOut(Operation *op, Type type, const train::OpFactors &factors,
                                    const train::ValueFactors &value, StrategyAttr strategy) {
  MLIRContext *context = op->getContext();
  auto shape = llvm::cast<RankedTensorType>(type).getShape();
  if (value.size() != shape.size())
    return op->emitOpError("describes factors of ") << value.size() << " dims of a value of type " << type;
  // Scalars among the operands of an operator with a flat factor are whole.
  std::optional<unsigned> flat = value.empty() ? std::nullopt : factors.findFlat();
  SmallVector<DimLayoutAttr> dims;
  for (auto [size, dim] : llvm::zip_equal(shape, value)) {
    SmallVector<FactorLayoutAttr> layouts;
    int64_t product = 1;
    for (unsigned index : dim) {
      const train::Factor &factor = factors.factors[index];
      product *= factor.size;
      FactorAxesAttr split = strategy.splitOf(factor.name);
      int64_t blocks = split ? split.getBlocks() : 1;
      if (blocks > 1)
        layouts.push_back(FactorLayoutAttr::get(context, blocks, {}));
      layouts.push_back(
          FactorLayoutAttr::get(context, factor.size / blocks, split ? split.getAxes() : ArrayRef<StringAttr>()));
    }
    if (dim.empty() && size != 1)
      layouts.push_back(FactorLayoutAttr::get(context, product = size, {}));
    else if (dim.empty())
      layouts.push_back(FactorLayoutAttr::get(context, 1, {}));
    if (product != size)
      return op->emitOpError("has factors that multiply to ") << product << " on a dim of size " << size;
    dims.push_back(DimLayoutAttr::get(context, layouts));
  }
  return LayoutAttr::get(context, dims, flat ? strategy.axesOf(factors.factors[*flat].name) : ArrayRef<StringAttr>(),
                         {}, MemoryKind::device);
}

/// Whether a factor is on one of the value's dims.
static bool uses(const train::ValueFactors &value, unsigned factor) {
  return llvm::any_of(value, [&](const train::DimFactors &dim) { return llvm::is_contained(dim, factor); });
}

/// Returns the largest declared set of operands that may be unreduced together and are; empty where there is none.
static ArrayRef<unsigned> chooseUnreduced(const train::OpFactors &factors, ArrayRef<bool> unreduced) {
  ArrayRef<unsigned> best;
  for (ArrayRef<unsigned> set : factors.unreducedTogether)
    if (set.size() > best.size() && llvm::all_of(set, [&](unsigned i) { return i < unreduced.size() && unreduced[i]; }))
      best = set;
  return best;
}

/// Whether the results together have at most as many elements as these operands.
static bool reducesNoMore(Operation *op, ArrayRef<unsigned> operands) {
  auto elementsOf = [](Value value) { return llvm::cast<RankedTensorType>(value.getType()).getNumElements(); };
  int64_t before = 0, after = 0;
  for (unsigned operand : operands)
    before += elementsOf(op->getOperand(operand));
  for (Value result : op->getResults())
    after += elementsOf(result);
  return after <= before;
}

/// Checks one split of an operator's strategy. `used` are the axes of the splits before it, and of this one afterwards.
static LogicalResult checkSplit(Operation *op, const train::Factor &factor, FactorAxesAttr split, MeshAttr mesh,
                                llvm::SmallSet<StringRef, 4> &used) {
  if (factor.kind == train::FactorKind::Replicated)
    return op->emitOpError("cannot split its factor ") << split.getFactor() << ", as its strategy wants";
  if (split.getBlocks() < 1 || factor.size % split.getBlocks() != 0)
    return op->emitOpError("has factor ") << split.getFactor() << " of size " << factor.size << ", which is not "
                                          << split.getBlocks() << " equal blocks";
  bool isFlat = factor.kind == train::FactorKind::Flat;
  if (isFlat && split.getBlocks() != 1)
    return op->emitOpError("cannot split its factor ") << split.getFactor() << " in blocks";
  int64_t rest = factor.size / split.getBlocks();
  for (StringAttr axis : split.getAxes()) {
    if (mesh.indexOf(axis.getValue()) < 0)
      return op->emitOpError("is split over axis ") << axis << ", which the mesh " << mesh << " does not have";
    if (!used.insert(axis.getValue()).second)
      return op->emitOpError("uses axis ") << axis << " twice";
    int64_t size = mesh.sizeOf(axis.getValue());
    if (!isFlat && rest % size != 0)
      return op->emitOpError("has factor ") << split.getFactor() << " of size " << factor.size << ", which axis "
                                            << axis << " of size " << size << " does not divide evenly";
    rest /= size;
  }
  if (!isFlat && !split.getAxes().empty() && rest < factor.leastPart)
    return op->emitOpError("has factor ")
           << split.getFactor() << " of size " << factor.size << ", of which its strategy makes parts of " << rest
           << "; its windows need parts of at least " << factor.leastPart;
  return success();
}

/// Lays out a result whose factors are `value`. A factor that the result does not have has been combined: the result is
/// left unreduced over the axes that split it.
static FailureOr<LayoutAttr> layOutResult(OpResult result, const train::OpFactors &factors,
                                          const train::ValueFactors &value, StrategyAttr strategy, MeshAttr mesh) {
  Operation *op = result.getOwner();
  FailureOr<LayoutAttr> layout = layOut(op, result.getType(), factors, value, strategy);
  if (failed(layout))
    return failure();
  SmallVector<UnreducedAttr> unreduced;
  for (auto [i, factor] : llvm::enumerate(factors.factors)) {
    ArrayRef<StringAttr> axes = strategy.axesOf(factor.name);
    // A factor that is reduced inside the operator leaves a whole result where the result does not have it.
    bool isFlat = factor.kind == train::FactorKind::Flat;
    if (axes.empty() || uses(value, i) || factor.kind == train::FactorKind::Inner || (isFlat && !value.empty()))
      continue;
    if (factor.kind != train::FactorKind::Reduction && !isFlat)
      return op->emitOpError("splits factor '")
             << factor.name << "', which result " << result.getResultNumber() << " neither has nor reduces";
    for (StringAttr axis : axes)
      unreduced.push_back(UnreducedAttr::get(op->getContext(), axis, factor.reduction));
  }
  return addUnreduced(*layout, unreduced, mesh);
}

/// Passes unreduced axes on, as linear operators do, unless the axis is in `used`, since it splits something here, or
/// there would be more to reduce behind the operator than before it.
static void keepUnreduced(OpLayouts &layouts, Operation *op, const train::OpFactors &factors,
                          ArrayRef<LayoutAttr> available, MeshAttr mesh, const llvm::SmallSet<StringRef, 4> &used) {
  for (AxisAttr axis : mesh.getAxes()) {
    if (used.contains(axis.getName().getValue()))
      continue;
    auto sum = UnreducedAttr::get(op->getContext(), axis.getName(), train::ReductionKind::sum);
    SmallVector<bool> unreduced;
    for (LayoutAttr layout : available)
      unreduced.push_back(layout && llvm::is_contained(layout.getUnreduced(), sum));
    ArrayRef<unsigned> kept = chooseUnreduced(factors, unreduced);
    if (!reducesNoMore(op, kept))
      continue;
    for (unsigned i : kept)
      layouts.operands[i] = addUnreduced(layouts.operands[i], sum, mesh);
    if (!kept.empty())
      for (LayoutAttr &layout : layouts.results)
        layout = addUnreduced(layout, sum, mesh);
  }
}

FailureOr<OpLayouts> plan::inferLayouts(Operation *op, const train::OpFactors &factors, StrategyAttr strategy,
                                        ArrayRef<LayoutAttr> available, MeshAttr mesh) {
  if (factors.operands.size() != op->getNumOperands() || factors.results.size() != op->getNumResults())
    return op->emitOpError("describes factors of ")
           << factors.operands.size() << " operands and " << factors.results.size() << " results but has "
           << op->getNumOperands() << " and " << op->getNumResults();
  llvm::SmallSet<StringRef, 4> used;
  bool isSplitInside = false;
  for (FactorAxesAttr split : strategy.getSplits()) {
    const train::Factor *factor =
        llvm::find_if(factors.factors, [&](const train::Factor &f) { return f.name == split.getFactor().getValue(); });
    if (factor == factors.factors.end())
      return op->emitOpError("has no factor ") << split.getFactor() << ", which its strategy splits";
    if (failed(checkSplit(op, *factor, split, mesh, used)))
      return failure();
    isSplitInside |= factor->kind == train::FactorKind::Inner || factor->halo > 0;
  }

  OpLayouts layouts;
  for (auto [operand, value] : llvm::zip_equal(op->getOperands(), factors.operands)) {
    FailureOr<LayoutAttr> layout = layOut(op, operand.getType(), factors, value, strategy);
    if (failed(layout))
      return failure();
    layouts.operands.push_back(*layout);
  }
  for (auto [result, value] : llvm::zip_equal(op->getResults(), factors.results)) {
    FailureOr<LayoutAttr> layout = layOutResult(result, factors, value, strategy, mesh);
    if (failed(layout))
      return failure();
    layouts.results.push_back(*layout);
  }
  // An operator that is taken apart is not linear step by step.
  if (!isSplitInside)
    keepUnreduced(layouts, op, factors, available, mesh, used);
  return layouts;
}

/// Returns the layout of a parameter as a function sees it: `@update` works on the master copy.
static FailureOr<LayoutAttr> getParameterLayout(Operation *op, FlatSymbolRefAttr name, const SymbolTable *symbols) {
  auto parameter = symbols ? symbols->lookup<train::ParameterOp>(name.getAttr())
                           : SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(op, name);
  if (!parameter)
    return op->emitOpError("names no train.parameter: ") << name;
  auto function = op->getParentOfType<func::FuncOp>();
  bool master = function && function.getName() == train::kUpdateFunction;
  auto layout = parameter->getAttrOfType<LayoutAttr>(master ? kMasterLayoutAttr : kLayoutAttr);
  if (!layout || layout.getDims().size() != parameter.getTensorType().getShape().size())
    return op->emitOpError("names ") << name << ", whose " << (master ? kMasterLayoutAttr : kLayoutAttr)
                                     << " is missing or does not fit its type " << parameter.getTensorType();
  return layout;
}

FailureOr<OpLayouts> plan::inferLayouts(Operation *op, ArrayRef<LayoutAttr> available, MeshAttr mesh,
                                        const SymbolTable *symbols) {
  OpLayouts layouts;
  if (auto read = llvm::dyn_cast<train::ReadOp>(op)) {
    FailureOr<LayoutAttr> layout = getParameterLayout(op, read.getParameterAttr(), symbols);
    if (failed(layout))
      return failure();
    layouts.results = {*layout};
    return layouts;
  }
  if (auto write = llvm::dyn_cast<train::WriteOp>(op)) {
    FailureOr<LayoutAttr> layout = getParameterLayout(op, write.getParameterAttr(), symbols);
    if (failed(layout))
      return failure();
    layouts.operands = {*layout};
    return layouts;
  }
  if (llvm::isa<train::HyperparameterOp>(op)) {
    layouts.results = {LayoutAttr::getWhole(llvm::cast<RankedTensorType>(op->getResult(0).getType()))};
    return layouts;
  }
  if (llvm::isa<train::StashOp>(op)) {
    // Values that the backward pass reads are stored reduced: one reshard, made in the forward pass.
    if (!available.front())
      return op->emitOpError("stashes a value without a layout");
    layouts.operands = {dropUnreduced(available.front())};
    layouts.results =
        layouts.operands.front() ? SmallVector<LayoutAttr, 2>{layouts.operands.front()} : SmallVector<LayoutAttr, 2>{};
    return layouts;
  }
  if (auto reshard = llvm::dyn_cast<ReshardOp>(op)) {
    layouts.operands = {reshard.getFrom()};
    layouts.results = {reshard.getTo()};
    return layouts;
  }
  if (llvm::isa<func::ReturnOp>(op)) {
    auto function = op->getParentOfType<func::FuncOp>();
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      auto layout = function.getResultAttrOfType<LayoutAttr>(i, kLayoutAttr);
      if (!layout)
        return op->emitOpError("returns result ") << i << " of @" << function.getName() << ", which has no plan.layout";
      layouts.operands.push_back(layout);
    }
    return layouts;
  }
  auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
  if (!compute)
    return op->emitOpError("has no place in a planned function");
  auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttr);
  if (!strategy)
    return op->emitOpError("has no plan.strategy");
  return inferLayouts(op, compute.getFactors(), strategy, available, mesh);
}
