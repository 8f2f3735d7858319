#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Propagation.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"

#include <numeric>

namespace windlass::plan {
#define GEN_PASS_DEF_APPLYRANDOMPLAN
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace windlass::plan

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

/// A generator of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), equal on every
/// machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  /// Returns a number from 0 to `bound` - 1.
  int64_t below(int64_t bound) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<int64_t>((z ^ (z >> 31)) % static_cast<uint64_t>(bound));
  }
  bool oneIn(int64_t bound) { return below(bound) == 0; }
  template <class T> void shuffle(SmallVectorImpl<T> &values) {
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[below(i)]);
  }

private:
  uint64_t state;
};

struct ApplyRandomPlan : windlass::plan::impl::ApplyRandomPlanBase<ApplyRandomPlan> {
  using ApplyRandomPlanBase::ApplyRandomPlanBase;

  void runOnOperation() override {
    random = Random(static_cast<uint64_t>(seed.getValue()));
    if (failed(apply()))
      signalPassFailure();
  }

  LogicalResult apply() {
    ModuleOp module = getOperation();
    if (ranks < 1 || ranks > 4096)
      return module.emitError("cannot plan for ") << int64_t(ranks) << " ranks: use between 1 and 4096";
    makeMesh();
    // Weights have any layout; the layouts of their gradients depend on how the gradients are made.
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      if (parameter.getRole() == train::Role::state)
        continue;
      LayoutAttr compute = makeLayout(parameter.getTensorType(), allAxes());
      parameter->setAttr(kLayoutAttr, compute);
      bool hasMaster = parameter.getTrainable() && random.oneIn(2);
      parameter->setAttr(kMasterLayoutAttr,
                         hasMaster ? makeLayout(parameter.getTensorType(), allAxes(), true) : compute);
      parameter->removeAttr(kGradientLayoutAttr);
    }
    setStateLayouts(module);
    for (func::FuncOp function : getPlannedFunctions(module))
      if (failed(planFunction(function)))
        return failure();
    for (const SegmentBlock &block : getSegmentBlocks(module)) {
      std::vector<std::string> labels = block.getLabels();
      block.setLabel(labels[random.below(labels.size())]);
    }
    module->setAttr(kUnitBytesAttr, IntegerAttr::get(IntegerType::get(&getContext(), 64), 1 << random.below(20)));
    if (random.oneIn(2))
      chooseMemories();
    return success();
  }

  /// Keeps the state of some parameters on the host or its disk, and of some of these the gradients, or the weights
  /// that operators read, on the host, where that is possible.
  void chooseMemories() {
    auto host = MemoryKindAttr::get(&getContext(), MemoryKind::host),
         disk = MemoryKindAttr::get(&getContext(), MemoryKind::disk);
    for (auto parameter : getOperation().getOps<train::ParameterOp>()) {
      if (parameter.getRole() != train::Role::weight || !parameter.getTrainable() || parameter.isRunningStatistic() ||
          !random.oneIn(2))
        continue;
      parameter->setAttr(kStateMemoryAttr, random.oneIn(3) ? disk : host);
      if (random.oneIn(3))
        parameter->setAttr(kUpdatesOnDeviceAttr, UnitAttr::get(&getContext()));
      auto layoutOf = [&](StringRef name) { return parameter->getAttrOfType<LayoutAttr>(name); };
      if (random.oneIn(2) && isReadAsAccumulated(layoutOf(kGradientLayoutAttr), layoutOf(kMasterLayoutAttr), mesh))
        parameter->setAttr(kGradientMemoryAttr, host);
      if (random.oneIn(2) && haveSameParts(layoutOf(kLayoutAttr), layoutOf(kMasterLayoutAttr), mesh))
        parameter->setAttr(kComputeMemoryAttr, host);
    }
  }

  using Axes = SmallVector<StringAttr>;

  /// Makes a mesh of one to three axes whose sizes multiply to the number of ranks; any of them may have the role of
  /// replicas.
  void makeMesh() {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    SmallVector<int64_t> sizes;
    int64_t rest = ranks, count = 1 + random.below(3);
    for (int64_t i = 1; i < count; ++i) {
      SmallVector<int64_t> divisors;
      for (int64_t divisor = 1; divisor <= rest; ++divisor)
        if (rest % divisor == 0)
          divisors.push_back(divisor);
      sizes.push_back(divisors[random.below(divisors.size())]);
      rest /= sizes.back();
    }
    sizes.push_back(rest);
    random.shuffle(sizes);
    int64_t microBatches = train::getMergedMicroBatches(module);
    SmallVector<AxisAttr> axes;
    for (int64_t size : sizes) {
      if (size == 1)
        continue;
      auto name = StringAttr::get(context, std::string(1, static_cast<char>('x' + axes.size())));
      AxisRole role = AxisRole::model;
      if (microBatches % size == 0 && random.oneIn(2)) {
        role = AxisRole::replica;
        microBatches /= size;
      }
      axes.push_back(AxisAttr::get(context, name, size, role));
    }
    mesh = MeshAttr::get(context, axes);
    module->setAttr(kMeshAttr, mesh);
    // Small buckets give several of them.
    module->setAttr(kBucketBytesAttr, IntegerAttr::get(IntegerType::get(context, 64), 1 << (8 + random.below(16))));
    module->setAttr(kPrefetchBytesAttr, IntegerAttr::get(IntegerType::get(context, 64), 1 << random.below(20)));
    if (random.oneIn(2))
      module->setAttr(kKeepsGathersAttr, UnitAttr::get(context));
  }

  Axes allAxes() const {
    Axes axes;
    for (AxisAttr axis : mesh.getAxes())
      axes.push_back(axis.getName());
    return axes;
  }

  /// Returns the axes that may split values of the function; inside `@microbatch` and `@evaluate` the values of
  /// replicas differ.
  Axes axesOf(func::FuncOp function) const {
    Axes axes = allAxes();
    if (function.getName() == train::kMicrobatchFunction || function.getName() == train::kEvaluateFunction)
      llvm::erase_if(axes, [&](StringAttr axis) { return mesh.roleOf(axis) == AxisRole::replica; });
    return axes;
  }

  /// Makes a layout of reduced values: dims are taken apart into up to two factors, and each axis is on one of them, on
  /// none, or one of those that cut the rest into ranges.
  LayoutAttr makeLayout(RankedTensorType type, Axes axes, bool mayBeFlat = false) {
    MLIRContext *context = &getContext();
    SmallVector<SmallVector<std::pair<int64_t, Axes>>> dims;
    for (int64_t size : type.getShape()) {
      SmallVector<int64_t> divisors;
      for (int64_t divisor = 2; divisor * 2 <= size && divisor <= 64; ++divisor)
        if (size % divisor == 0)
          divisors.push_back(divisor);
      if (divisors.empty() || !random.oneIn(3)) {
        dims.push_back({{size, {}}});
      } else {
        int64_t major = divisors[random.below(divisors.size())];
        dims.push_back({{major, {}}, {size / major, {}}});
      }
    }
    random.shuffle(axes);
    Axes flat;
    mayBeFlat &= !dims.empty();
    for (StringAttr axis : axes) {
      if (mayBeFlat && random.oneIn(3)) {
        flat.push_back(axis);
        continue;
      }
      if (dims.empty() || random.oneIn(2))
        continue;
      auto &dim = dims[random.below(dims.size())];
      auto &[size, own] = dim[random.below(dim.size())];
      int64_t parts = mesh.sizeOf(axis.getValue());
      for (StringAttr other : own)
        parts *= mesh.sizeOf(other.getValue());
      if (size % parts == 0)
        own.push_back(axis);
    }
    SmallVector<DimLayoutAttr> layouts;
    for (auto &dim : dims) {
      SmallVector<FactorLayoutAttr> factors;
      for (auto &[size, own] : dim)
        factors.push_back(FactorLayoutAttr::get(context, size, own));
      layouts.push_back(DimLayoutAttr::get(context, factors));
    }
    return LayoutAttr::get(context, layouts, flat, {}, MemoryKind::device);
  }

  /// Makes a layout to which a value can be brought from `made`: any layout, which may keep some of the partial sums.
  LayoutAttr makeReachable(RankedTensorType type, LayoutAttr made, Axes axes, bool mayBeFlat = false) {
    SmallVector<UnreducedAttr> kept;
    for (UnreducedAttr unreduced : made.getUnreduced())
      // Only sums are added up over micro-batches and by linear operators.
      if (random.oneIn(2) && unreduced.getKind() == train::ReductionKind::sum) {
        kept.push_back(unreduced);
        llvm::erase(axes, unreduced.getAxis());
      }
    return addUnreduced(makeLayout(type, axes, mayBeFlat), kept, mesh);
  }

  StrategyAttr makeStrategy(const train::OpFactors &factors, Axes axes) {
    Splits splits;
    random.shuffle(axes);
    for (StringAttr axis : axes) {
      if (factors.factors.empty() || random.oneIn(4))
        continue;
      unsigned index = random.below(factors.factors.size());
      int64_t size = factors.factors[index].size;
      FactorSplit split;
      if (auto it = splits.find(index); it != splits.end())
        split = it->second;
      else if (int64_t blocks = 1 + random.below(4); random.oneIn(4) && size % blocks == 0)
        split.blocks = blocks;
      split.axes.push_back(axis);
      Splits others = splits;
      others.erase(index);
      if (canSplit(factors, index, split, others, mesh))
        splits[index] = split;
    }
    return getStrategy(&getContext(), factors, splits);
  }

  LogicalResult planFunction(func::FuncOp function) {
    Axes axes = axesOf(function);
    for (BlockArgument argument : function.getArguments()) {
      unsigned i = argument.getArgNumber();
      auto type = llvm::cast<RankedTensorType>(argument.getType());
      LayoutAttr layout;
      if (auto index = function.getArgAttrOfType<IntegerAttr>(i, train::kInitValueAttr))
        layout = initLayouts[index.getInt()];
      else if (auto name = function.getArgAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr))
        layout = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(function, name)
                     ->getAttrOfType<LayoutAttr>(kGradientLayoutAttr);
      else if (auto name = function.getArgAttrOfType<StringAttr>(i, train::kInputAttr)) {
        // An input has one layout in all functions.
        LayoutAttr &known = inputLayouts[name];
        if (!known)
          known = makeLayout(type, axesOf(train::getMicrobatchFunction(getOperation())));
        layout = known;
      }
      if (!layout)
        return function.emitError("argument ") << i << " is neither an input, a value of @init nor a gradient";
      function.setArgAttr(i, kLayoutAttr, layout);
    }
    for (Operation &op : function.front().without_terminator())
      if (failed(planOp(op, axes)))
        return failure();
    for (OpOperand &operand : function.front().getTerminator()->getOpOperands()) {
      unsigned i = operand.getOperandNumber();
      auto type = llvm::cast<RankedTensorType>(operand.get().getType());
      LayoutAttr layout = LayoutAttr::getWhole(type);
      bool isMicrobatch = function.getName() == train::kMicrobatchFunction;
      Axes own = isMicrobatch ? axes : axesOf(train::getMicrobatchFunction(getOperation()));
      if (isMicrobatch)
        layout = makeReachable(type, getLayout(operand.get()), own);
      else if (function.getName() == train::kInitFunction)
        initLayouts.push_back(layout = makeLayout(type, own));
      function.setResultAttr(i, kLayoutAttr, layout);
      auto name = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr);
      if (!name)
        continue;
      layout = addReplicaSum(layout, getOperation());
      if (random.oneIn(2))
        layout = makeReachable(type, layout, allAxes(), true);
      SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(function, name)->setAttr(kGradientLayoutAttr, layout);
    }
    return success();
  }

  /// Returns the layouts in which an operator finds its operands: gradients in that of the master copy, to which they
  /// are brought before anything else uses them.
  static SmallVector<LayoutAttr> getAvailable(Operation &op) {
    SmallVector<LayoutAttr> available(getOperandLayouts(&op));
    for (auto [operand, layout] : llvm::zip_equal(op.getOperands(), available)) {
      auto argument = llvm::dyn_cast<BlockArgument>(operand);
      if (!argument)
        continue;
      auto function = llvm::cast<func::FuncOp>(op.getParentOp());
      if (auto name = function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kGradientAttr))
        layout = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(function, name)
                     ->getAttrOfType<LayoutAttr>(kMasterLayoutAttr);
    }
    return available;
  }

  LogicalResult planOp(Operation &op, const Axes &axes) {
    StrategyAttr strategy = getWholeStrategy(&getContext());
    if (auto compute = llvm::dyn_cast<train::TrainOpInterface>(op))
      strategy = makeStrategy(compute.getFactors(), axes);
    op.setAttr(kStrategyAttr, strategy);
    FailureOr<OpLayouts> layouts = inferLayouts(&op, getAvailable(op), mesh);
    if (failed(layouts))
      return failure();
    // Consumers find a value in the layout in which it is made, or in any other one.
    bool isRead = llvm::isa<train::ReadOp>(op);
    for (auto [result, layout] : llvm::zip_equal(op.getResults(), layouts->results))
      // Only values that `@update` works on may be flat.
      if (isRead || (random.oneIn(3) && llvm::isa<train::TrainOpInterface>(op)))
        layout = makeReachable(llvm::cast<RankedTensorType>(result.getType()), layout, axes,
                               op.getParentOfType<func::FuncOp>().getName() == train::kUpdateFunction);
    setLayouts(&op, layouts->results);
    return success();
  }

  Random random{0};
  MeshAttr mesh;
  SmallVector<LayoutAttr> initLayouts;
  llvm::DenseMap<StringAttr, LayoutAttr> inputLayouts;
};

} // namespace
