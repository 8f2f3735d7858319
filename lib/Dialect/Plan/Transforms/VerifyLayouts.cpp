#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"

#include "llvm/ADT/SmallSet.h"

namespace windlass::plan {
#define GEN_PASS_DEF_VERIFYLAYOUTS
#include "windlass/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace windlass::plan

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

using Emit = llvm::function_ref<InFlightDiagnostic()>;

/// Checks a layout by itself: it fits the shape; its axes exist, divide their factors and are used once; it is flat
/// only where `mayBeFlat`; and it is in device memory, where operators run. With `isPerReplica` it names
/// no axis of replicas.
LogicalResult verifyLayout(Emit emit, LayoutAttr layout, Type type, MeshAttr mesh, bool isPerReplica, bool mayBeFlat) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return emit() << "is of type " << type << ", which can have no layout";
  if (!layout)
    return emit() << "has no layout";
  if (failed(layout.verifyFits(tensor, emit)))
    return failure();
  if (layout.getMemory() != MemoryKind::device)
    return emit() << "is kept on " << stringifyMemoryKind(layout.getMemory())
                  << ", but only what parameters keep from step to step may be elsewhere than on the device: in the "
                     "host's memory and, of master copies, on its disk (--offload)";
  llvm::SmallSet<StringRef, 4> used;
  auto use = [&](StringAttr axis) -> LogicalResult {
    if (mesh.indexOf(axis.getValue()) < 0)
      return emit() << "names axis " << axis << ", which the mesh " << mesh << " does not have";
    if (isPerReplica && mesh.roleOf(axis.getValue()) == AxisRole::replica)
      return emit() << "names axis " << axis << ", on which each member has values of its own";
    if (!used.insert(axis.getValue()).second)
      return emit() << "names axis " << axis << " twice";
    return success();
  };
  for (DimLayoutAttr dim : layout.getDims())
    for (FactorLayoutAttr factor : dim.getFactors()) {
      int64_t rest = factor.getSize();
      for (StringAttr axis : factor.getAxes()) {
        if (failed(use(axis)))
          return failure();
        if (rest % mesh.sizeOf(axis.getValue()) != 0)
          return emit() << "has a factor of size " << factor.getSize() << ", which axis " << axis << " of size "
                        << mesh.sizeOf(axis.getValue()) << " does not divide evenly";
        rest /= mesh.sizeOf(axis.getValue());
      }
    }
  if (!layout.getFlat().empty() && !mayBeFlat)
    return emit() << "is flat, as only gradients and master copies of parameters may be, and their values in @"
                  << train::kUpdateFunction;
  if (!layout.getFlat().empty() && tensor.getRank() == 0)
    return emit() << "is flat, but a scalar has nothing to shard";
  for (StringAttr axis : layout.getFlat())
    if (failed(use(axis)))
      return failure();
  for (UnreducedAttr unreduced : layout.getUnreduced())
    if (failed(use(unreduced.getAxis())))
      return failure();
  return success();
}

struct VerifyLayouts : windlass::plan::impl::VerifyLayoutsBase<VerifyLayouts> {
  using VerifyLayoutsBase::VerifyLayoutsBase;

  void runOnOperation() override {
    if (failed(verify()))
      signalPassFailure();
  }

  LogicalResult verify() {
    ModuleOp module = getOperation();
    symbols = std::make_shared<SymbolTable>(module);
    mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    if (!mesh)
      return module.emitError("has no plan.mesh: apply a strategy or a plan first");
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (failed(verifyParameter(parameter)))
        return failure();
    for (func::FuncOp function : getPlannedFunctions(module))
      if (failed(verifyFunction(function)))
        return failure();
    for (const SegmentBlock &block : getSegmentBlocks(module))
      if (!block.getLabel())
        return block.ops.front().front()->emitOpError("belongs to block '")
               << block.name << "', whose recomputed operators do not form segments";
    return success();
  }

  LogicalResult verifyParameter(train::ParameterOp parameter) {
    for (StringRef name : {kLayoutAttr, kGradientLayoutAttr, kMasterLayoutAttr}) {
      if (name == kGradientLayoutAttr && !parameter->hasAttr(name))
        continue;
      auto emit = [&] { return parameter.emitOpError() << name << " "; };
      auto layout = parameter->getAttrOfType<LayoutAttr>(name);
      bool mayBeFlat = name != kLayoutAttr || parameter.getRole() == train::Role::state;
      if (failed(verifyLayout(emit, layout, parameter.getTensorType(), mesh, /*isPerReplica=*/false, mayBeFlat)))
        return failure();
      if (name != kGradientLayoutAttr && !layout.getUnreduced().empty())
        return emit() << "is " << layout << ", but only gradients may be partial sums";
    }
    if (auto name = parameter.getOfAttr()) {
      auto weight = symbols->lookup<train::ParameterOp>(name.getAttr());
      auto master = weight ? weight->getAttrOfType<LayoutAttr>(kMasterLayoutAttr) : LayoutAttr();
      LayoutAttr wanted = master ? getStateLayout(parameter, weight, master) : LayoutAttr();
      for (StringRef attribute : {kLayoutAttr, kMasterLayoutAttr})
        if (auto layout = parameter->getAttrOfType<LayoutAttr>(attribute);
            !wanted || !haveSameParts(layout, wanted, mesh))
          return parameter.emitOpError() << "has layout " << layout
                                         << ", but state of the type of its weight has that of the master copy, "
                                         << "and other state is whole: " << wanted;
    }
    auto gradient = parameter->getAttrOfType<LayoutAttr>(kGradientLayoutAttr),
         master = parameter->getAttrOfType<LayoutAttr>(kMasterLayoutAttr);
    if (parameter.isRunningStatistic() &&
        llvm::any_of(ArrayRef({getComputeMemory(parameter), getGradientMemory(parameter), getStateMemory(parameter)}),
                     [](MemoryKind memory) { return memory != MemoryKind::device; }))
      return parameter.emitOpError("is a running statistic that is kept on the host, where nothing averages");
    if (parameter->hasAttr(kUpdatesOnDeviceAttr) && getStateMemory(parameter) == MemoryKind::device)
      return parameter.emitOpError("brings its optimizer's state to the device to update it, but the state is there "
                                   "from step to step");
    if (getComputeMemory(parameter) != MemoryKind::device && parameter.getTrainable()) {
      if (getStateMemory(parameter) == MemoryKind::device)
        return parameter.emitOpError("keeps the weight that operators read on the host, but its master copy, of which "
                                     "that is made, is on the device");
      if (auto compute = parameter->getAttrOfType<LayoutAttr>(kLayoutAttr); !haveSameParts(compute, master, mesh))
        return parameter.emitOpError("keeps the weight that operators read on the host in the layout ")
               << compute << ", but its master copy has " << master
               << ": only weights of which ranks keep just what they update can be there";
    }
    if (!gradient)
      return success();
    if (getGradientMemory(parameter) != MemoryKind::device) {
      if (getStateMemory(parameter) == MemoryKind::device)
        return parameter.emitOpError("accumulates its gradient on the host, but its master copy, which the gradient "
                                     "updates, is on the device");
      if (!isReadAsAccumulated(gradient, master, mesh))
        return parameter.emitOpError("accumulates its gradient on the host in the layout ")
               << gradient << ", but its master copy has " << master
               << ": only gradients that each micro-batch brings to the master copy's layout can be there";
    }
    return verifyReshard(parameter, parameter.getTensorType(), gradient, master);
  }

  LogicalResult verifyReshard(Operation *op, RankedTensorType type, LayoutAttr from, LayoutAttr to) {
    if (haveSameParts(from, to, mesh))
      return success();
    if (llvm::Error error = planReshard(type.getShape(), from, to, mesh).takeError())
      return op->emitOpError() << llvm::toString(std::move(error));
    return success();
  }

  LogicalResult verifyFunction(func::FuncOp function) {
    bool isUpdate = function.getName() == train::kUpdateFunction;
    // Inside these, every replica works on its own micro-batch.
    bool isPerReplica =
        function.getName() == train::kMicrobatchFunction || function.getName() == train::kEvaluateFunction;
    for (BlockArgument argument : function.getArguments()) {
      auto emit = [&] { return function.emitError() << "argument " << argument.getArgNumber() << " "; };
      if (failed(verifyLayout(emit, getLayout(argument), argument.getType(), mesh, isPerReplica, isUpdate)))
        return failure();
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      auto emit = [&] { return function.emitError() << "result " << i << " "; };
      auto layout = function.getResultAttrOfType<LayoutAttr>(i, kLayoutAttr);
      if (failed(verifyLayout(emit, layout, function.getResultTypes()[i], mesh, isPerReplica, isUpdate)))
        return failure();
    }
    if (failed(verifyGradients(function)))
      return failure();
    for (Operation &op : function.front())
      if (failed(verifyOp(op, isPerReplica, isUpdate)))
        return failure();
    return success();
  }

  /// Checks that each gradient can be brought from the layout in which `@microbatch` returns it to the one that its
  /// weight gives it, and that `@update` receives it in that layout.
  LogicalResult verifyGradients(func::FuncOp function) {
    if (function.getName() == train::kMicrobatchFunction)
      for (unsigned i = 1; i < function.getNumResults(); ++i) {
        auto name = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr);
        auto parameter = name ? symbols->lookup<train::ParameterOp>(name.getAttr()) : nullptr;
        auto layout = parameter ? parameter->getAttrOfType<LayoutAttr>(kGradientLayoutAttr) : LayoutAttr();
        if (!layout)
          return function.emitError("result ") << i << " is the gradient of no weight with a plan.gradient_layout";
        LayoutAttr made = addReplicaSum(function.getResultAttrOfType<LayoutAttr>(i, kLayoutAttr), getOperation());
        if (failed(verifyReshard(parameter, parameter.getTensorType(), made, layout)))
          return failure();
      }
    if (function.getName() != train::kUpdateFunction)
      return success();
    for (BlockArgument argument : function.getArguments()) {
      auto name = function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kGradientAttr);
      auto parameter = name ? symbols->lookup<train::ParameterOp>(name.getAttr()) : nullptr;
      auto layout = parameter ? parameter->getAttrOfType<LayoutAttr>(kGradientLayoutAttr) : LayoutAttr();
      if (!layout || !haveSameParts(layout, getLayout(argument), mesh))
        return function.emitError("argument ")
               << argument.getArgNumber() << " has another layout than its weight's plan.gradient_layout";
    }
    return success();
  }

  LogicalResult verifyOp(Operation &op, bool isPerReplica, bool mayBeFlat) {
    auto reshard = llvm::dyn_cast<ReshardOp>(op);
    if (reshard && !materialized)
      return op.emitOpError("does not belong to this level: layouts are not materialized yet");
    bool isReturn = llvm::isa<func::ReturnOp>(op);
    if (!reshard && !isReturn) {
      auto strategy = op.getAttrOfType<StrategyAttr>(kStrategyAttr);
      if (!strategy)
        return op.emitOpError("has no plan.strategy");
      if (strategy.getSegment() >= 0 && !op.hasAttr(kSegmentAttr))
        return op.emitOpError("is to be recomputed, but is in no segment");
      if (op.getNumResults() > 0) {
        auto layouts = op.getAttrOfType<ArrayAttr>(kLayoutsAttr);
        if (!layouts || layouts.size() != op.getNumResults())
          return op.emitOpError("has ") << (layouts ? layouts.size() : 0) << " plan.layouts but " << op.getNumResults()
                                        << " results";
      }
    }
    // A value that is read from a parameter is the same in every replica, so axes of replicas may split it.
    isPerReplica &= !llvm::isa<train::ReadOp>(op);
    for (OpResult result : op.getResults()) {
      auto emit = [&] { return op.emitOpError() << "result " << result.getResultNumber() << " "; };
      if (failed(verifyLayout(emit, getLayout(result), result.getType(), mesh, isPerReplica, mayBeFlat)))
        return failure();
    }
    // Operands are arguments and results of earlier ops, all of which have a layout.
    SmallVector<LayoutAttr> available;
    for (Value operand : op.getOperands())
      available.push_back(getLayout(operand));
    FailureOr<OpLayouts> layouts = inferLayouts(&op, available, mesh, symbols.get());
    if (failed(layouts))
      return failure();
    if (!materialized) {
      for (auto [result, made] : llvm::zip_equal(op.getResults(), layouts->results))
        if (failed(verifyReshard(&op, llvm::cast<RankedTensorType>(result.getType()), made, getLayout(result))))
          return failure();
      return success();
    }
    if (FactorAxesAttr inner = getInnerSplit(&op))
      return op.emitOpError("is split along factor ")
             << inner.getFactor() << ", which it reduces inside: run plan-decompose-split-reductions before";
    for (auto [i, have, want] : llvm::enumerate(available, layouts->operands))
      if (!haveSameParts(have, want, mesh))
        return op.emitOpError("takes operand ") << i << " as " << have << " but needs it as " << want;
    for (auto [result, made] : llvm::zip_equal(op.getResults(), layouts->results))
      if (!haveSameParts(getLayout(result), made, mesh))
        return op.emitOpError("makes result ")
               << result.getResultNumber() << " as " << made << " but its layout is " << getLayout(result);
    return success();
  }

  std::shared_ptr<SymbolTable> symbols;
  MeshAttr mesh;
};

} // namespace
