#include "windlass/Conversion/PlanToSched/Passes.h"

#include "ChunkNumbers.h"
#include "CutChunks.h"
#include "Lowering.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/TensorBytes.h"

namespace windlass::sched {
#define GEN_PASS_DEF_PLANTOSCHED
#include "windlass/Conversion/PlanToSched/Passes.h.inc"
} // namespace windlass::sched

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;
using plan::LayoutAttr;
using plan::MeshAttr;

namespace {

/// Clones operators of one function of L3b, with local shapes, into functions of L4.
class LocalLowering {
public:
  /// With `keepsLayouts`, operators keep `plan.layouts`: those of what may cross the border of two chunks.
  LocalLowering(Resources &resources, MeshAttr mesh, bool keepsLayouts, OpBuilder builder)
      : resources(resources), mesh(mesh), builder(builder), keepsLayouts(keepsLayouts) {}

  /// Lowers an op that is neither a stash nor a terminator. Everything it uses is mapped afterwards.
  LogicalResult lower(Operation &op) {
    if (ResourceOp reduced = getReducedGradient(op))
      return load(op.getResult(0), reduced, op);
    // Each memory in which operators read a hyperparameter has a resource of it.
    for (Value operand : op.getOperands())
      if (!operand.getDefiningOp<train::HyperparameterOp>() && failed(provide(operand, op)))
        return failure();
    bool isUpdate = op.getParentOfType<func::FuncOp>().getName() == train::kUpdateFunction;
    if (auto read = llvm::dyn_cast<train::ReadOp>(op))
      return load(read.getResult(),
                  isUpdate ? resources.ofMaster(read.getParameter()) : resources.ofParameter(read.getParameter()), op);
    if (auto hyperparameter = llvm::dyn_cast<train::HyperparameterOp>(op)) {
      // Operators on the host load their own.
      ResourceOp scalar = resources.ofScalar(hyperparameter.getName(), plan::MemoryKind::device);
      return scalar ? load(hyperparameter.getResult(), scalar, op) : success();
    }
    if (auto write = llvm::dyn_cast<train::WriteOp>(op))
      return lower(write);
    bool isOnHost = runsOnHost(op);
    if (isOnHost)
      bringToHost(op);
    else
      bringToDevice(op);
    if (auto reshard = llvm::dyn_cast<plan::ReshardOp>(op))
      return lower(reshard);
    FailureOr<Operation *> local = cloneLocal(builder, op, isOnHost ? onHost : mapping, mesh);
    if (failed(local))
      return failure();
    if (!keepsLayouts)
      (*local)->removeAttr(plan::kLayoutsAttr);
    return success();
  }

  /// Maps a value of the old function to one of the new function, if it has none yet: a load of its resource.
  LogicalResult provide(Value value, Operation &user) {
    if (mapping.contains(value) || onHost.contains(value))
      return success();
    auto argument = llvm::dyn_cast<BlockArgument>(value);
    if (!argument)
      return user.emitOpError("uses a value of the forward pass that no train.stash hands over");
    // Arguments belong to no repeated block: they are loaded at the start.
    OpBuilder::InsertionGuard guard(builder);
    if (lastArgument)
      builder.setInsertionPointAfter(lastArgument);
    else
      builder.setInsertionPointToStart(builder.getInsertionBlock());
    ResourceOp resource = resources.ofArgument(argument);
    if (!resource)
      return user.emitOpError("uses an argument that no resource holds");
    lastArgument = LoadOp::create(builder, argument.getLoc(), resource.getTensorType(), resource.getSymName());
    getMappingFor(resource).map(value, lastArgument->getResult(0));
    return success();
  }

  LogicalResult load(Value value, ResourceOp resource, Operation &op) {
    if (!resource)
      return op.emitOpError("uses a value that no resource holds");
    auto load = LoadOp::create(builder, op.getLoc(), resource.getTensorType(), resource.getSymName());
    copyLabels(op, load);
    Value part = load.getResult();
    // Nothing computes on a disk.
    if (resource.getLayout().getMemory() == plan::MemoryKind::disk)
      part = move(op, part, plan::MemoryKind::host);
    getMappingFor(resource).map(value, part);
    return success();
  }

  /// Whether an operator runs on the host: an optimizer step whose state is kept there or on the disk, a sum of
  /// squares, or of such sums, where all that it reads is.
  bool runsOnHost(Operation &op) const {
    if (llvm::isa<train::SquareSumOp, train::AccumulateOp>(op))
      return llvm::all_of(op.getOperands(), [&](Value operand) { return onHost.contains(operand); });
    return resources.getUpdateMemory(&op) != plan::MemoryKind::device;
  }

  /// Maps the operands of an operator that runs on the device to values in its memory.
  void bringToDevice(Operation &op) {
    for (Value operand : op.getOperands())
      if (!mapping.contains(operand) && onHost.contains(operand))
        mapping.map(operand, move(op, onHost.lookup(operand), plan::MemoryKind::device));
  }

  /// Maps the operands of an operator that runs on the host to values in its memory.
  void bringToHost(Operation &op) {
    for (Value operand : op.getOperands()) {
      if (onHost.contains(operand))
        continue;
      Value value = mapping.lookupOrNull(operand);
      if (auto hyperparameter = operand.getDefiningOp<train::HyperparameterOp>()) {
        ResourceOp scalar = resources.ofScalar(hyperparameter.getName(), plan::MemoryKind::host);
        auto load = LoadOp::create(builder, op.getLoc(), scalar.getTensorType(), scalar.getSymName());
        copyLabels(*hyperparameter, load);
        value = load.getResult();
      } else {
        value = move(op, value, plan::MemoryKind::host);
      }
      onHost.map(operand, value);
    }
  }

  /// Returns the value in the host's memory for one of the old function; null where it is not there.
  Value lookupOnHost(Value value) const { return onHost.lookupOrNull(value); }
  void mapOnHost(Value value, Value part) { onHost.map(value, part); }

  Value move(Operation &op, Value value, plan::MemoryKind memory) {
    auto moved = MoveOp::create(builder, op.getLoc(), value, memory);
    copyLabels(op, moved);
    return moved.getResult();
  }

  IRMapping mapping;
  Resources &resources;
  MeshAttr mesh;
  OpBuilder builder;

  /// Returns the local slice of a value under another layout; the ops that make it carry the labels of `op`.
  FailureOr<Value> reshardPart(Operation &op, Value part, RankedTensorType global, LayoutAttr from, LayoutAttr to) {
    Block *block = builder.getInsertionBlock();
    Operation *last = block->empty() ? nullptr : &block->back();
    FailureOr<Value> moved = lowerReshard(builder, op.getLoc(), part, global, from, to, mesh);
    if (failed(moved))
      return failure();
    for (Operation *made = last             ? last->getNextNode()
                           : block->empty() ? nullptr
                                            : &block->front();
         made; made = made->getNextNode())
      copyLabels(op, made);
    if (Operation *made = moved->getDefiningOp(); made && keepsLayouts && *moved != part)
      made->setAttr(plan::kLayoutsAttr, ArrayAttr::get(made->getContext(), {to}));
    return moved;
  }

private:
  /// Values in the host's memory, those from the disk among them, by those of the old function; `mapping` has those in
  /// the device's.
  IRMapping onHost;

  IRMapping &getMappingFor(ResourceOp resource) {
    return resource.getLayout().getMemory() == plan::MemoryKind::device ? mapping : onHost;
  }

  /// Returns the resource with the gradient that `@reduce` has reduced, where `op` is the reshard that asks for it.
  ResourceOp getReducedGradient(Operation &op) {
    auto reshard = llvm::dyn_cast<plan::ReshardOp>(op);
    auto argument = reshard ? llvm::dyn_cast<BlockArgument>(reshard.getInput()) : BlockArgument();
    if (!argument)
      return nullptr;
    auto function = reshard->getParentOfType<func::FuncOp>();
    auto name = function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kGradientAttr);
    ResourceOp reduced = name ? resources.ofReduced(name.getValue()) : ResourceOp();
    if (!reduced)
      return nullptr;
    LayoutAttr layout = plan::dropUnreduced(reduced.getLayout()).withMemory(plan::MemoryKind::device);
    return haveSameParts(layout, reshard.getTo(), mesh) ? reduced : ResourceOp();
  }

  LogicalResult lower(plan::ReshardOp reshard) {
    FailureOr<Value> part =
        reshardPart(*reshard, mapping.lookup(reshard.getInput()),
                    llvm::cast<RankedTensorType>(reshard.getInput().getType()), reshard.getFrom(), reshard.getTo());
    if (failed(part))
      return failure();
    mapping.map(reshard.getResult(), *part);
    return success();
  }

  /// Stores a new value of the master, and of the compute copy where that is a resource of its own.
  LogicalResult lower(train::WriteOp write) {
    ResourceOp master = resources.ofMaster(write.getParameter()), compute = resources.ofParameter(write.getParameter());
    if (!master || !compute)
      return write.emitOpError("names no train.parameter: ") << write.getParameterAttr();
    plan::MemoryKind kept = master.getLayout().getMemory();
    // What goes to the disk does so last: other streams would wait for it.
    if (kept != plan::MemoryKind::disk)
      storeMaster(write, master);
    if (failed(storeCompute(write, master, compute)))
      return failure();
    if (kept == plan::MemoryKind::disk)
      storeMaster(write, master);
    return success();
  }

  void store(train::WriteOp write, ResourceOp resource, Value value) {
    copyLabels(*write, StoreOp::create(builder, write.getLoc(), resource.getSymName(), value));
  }

  /// Stores the new value where the master copy, or the state, is kept.
  void storeMaster(train::WriteOp write, ResourceOp master) {
    bool isOnHost = onHost.contains(write.getValue());
    Value part = (isOnHost ? onHost : mapping).lookup(write.getValue());
    plan::MemoryKind kept = master.getLayout().getMemory();
    if (kept != plan::MemoryKind::device && !isOnHost)
      part = move(*write, part, plan::MemoryKind::host);
    if (kept == plan::MemoryKind::disk)
      part = move(*write, part, plan::MemoryKind::disk);
    store(write, master, part);
  }

  /// Stores the new weight as operators read it, where that is a resource of its own.
  LogicalResult storeCompute(train::WriteOp write, ResourceOp master, ResourceOp compute) {
    bool hasReaders = !write.getValue().hasOneUse();
    if (master == compute && !hasReaders)
      return success();
    bool isOnHost = onHost.contains(write.getValue());
    Value own = (isOnHost ? onHost : mapping).lookup(write.getValue());
    if (master.getLayout().getMemory() == (isOnHost ? plan::MemoryKind::host : plan::MemoryKind::device)) {
      // Read again, so that the optimizer's result has one use and is made where it is stored.
      auto stored = LoadOp::create(builder, write.getLoc(), master.getTensorType(), master.getSymName());
      copyLabels(*write, stored);
      own = stored.getResult();
      if (hasReaders)
        (isOnHost ? onHost : mapping).map(write.getValue(), own);
    }
    if (master == compute)
      return success();
    Type element = compute.getTensorType().getElementType();
    if (element != master.getTensorType().getElementType()) {
      // The conversion precedes the transfer, so that fewer bytes are sent.
      auto converted = train::CastOp::create(builder, write.getLoc(), master.getTensorType().clone(element), own);
      copyLabels(*write, converted);
      own = converted;
    }
    if (compute.getLayout().getMemory() == plan::MemoryKind::host) {
      // It has the parts of the master copy.
      store(write, compute, isOnHost ? own : move(*write, own, plan::MemoryKind::host));
      return success();
    }
    if (isOnHost)
      own = move(*write, own, plan::MemoryKind::device);
    FailureOr<Value> copy = reshardPart(*write, own, compute.getGlobalTensorType(),
                                        master.getLayout().withMemory(plan::MemoryKind::device), compute.getLayout());
    if (failed(copy))
      return failure();
    store(write, compute, *copy);
    return success();
  }

  static void copyLabels(Operation &from, Operation *to) {
    for (StringRef name : {StringRef(plan::kRepeatAttr), StringRef(train::kIdAttr), StringRef(train::kForwardAttr),
                           StringRef(plan::kChunkAttr)})
      if (Attribute attribute = from.getAttr(name))
        to->setAttr(name, attribute);
  }

  bool keepsLayouts;
  Operation *lastArgument = nullptr;
};

/// The values of the forward pass that `@backward` reads: results of `@forward` that it takes as arguments.
class Stash {
public:
  Stash(Resources &resources, LocalLowering &forward, LocalLowering &backward, func::FuncOp backwardFunction)
      : resources(resources), forward(forward), backward(backward), backwardFunction(backwardFunction) {}

  /// The results of `@forward`, in the order of `@backward`'s arguments.
  ValueRange getValues() const { return values; }

  /// Hands a forward value over.
  LogicalResult lower(train::StashOp op) {
    if (failed(forward.provide(op.getValue(), *op)))
      return failure();
    // A weight on the host is copied to the device again.
    if (Value part = forward.lookupOnHost(op.getValue()))
      backward.mapOnHost(op.getResult(), hand(*op, part));
    else
      backward.mapping.map(op.getResult(), hand(*op, forward.mapping.lookup(op.getValue())));
    return success();
  }

  /// Hands over the inputs that an operator of the backward pass reads: when it runs, the resources may hold the inputs
  /// of another micro-batch.
  LogicalResult handInputs(Operation &op) {
    for (Value operand : op.getOperands()) {
      auto argument = llvm::dyn_cast<BlockArgument>(operand);
      ResourceOp resource = argument ? resources.ofArgument(argument) : ResourceOp();
      if (!resource || !resource.isOfSlot() || backward.mapping.contains(operand))
        continue;
      if (failed(forward.provide(operand, op)))
        return failure();
      backward.mapping.map(operand, hand(op, forward.mapping.lookup(operand)));
    }
    return success();
  }

private:
  /// Returns the value of `@backward` for a value of `@forward`: an argument, or a clone of its load or constant, which
  /// costs nothing. Inputs belong to one micro-batch and must be stashed.
  Value hand(Operation &user, Value part) {
    Value &handed = arguments[part];
    if (handed)
      return handed;
    Operation *producer = part.getDefiningOp();
    auto load = llvm::dyn_cast_or_null<LoadOp>(producer);
    bool isOfSlot = load && SymbolTable::lookupNearestSymbolFrom<ResourceOp>(load, load.getResourceAttr()).isOfSlot();
    if (!llvm::isa_and_nonnull<LoadOp, train::ConstantOp>(producer) || isOfSlot) {
      values.push_back(part);
      return handed = backwardFunction.front().addArgument(part.getType(), user.getLoc());
    }
    Operation *again = backward.builder.clone(*producer);
    if (Attribute repeat = user.getAttr(plan::kRepeatAttr))
      again->setAttr(plan::kRepeatAttr, repeat);
    else
      again->removeAttr(plan::kRepeatAttr);
    return handed = again->getResult(0);
  }

  Resources &resources;
  LocalLowering &forward, &backward;
  func::FuncOp backwardFunction;
  SmallVector<Value> values;
  /// The arguments, by the value of `@forward`.
  llvm::DenseMap<Value, Value> arguments;
};

struct PlanToSched : windlass::sched::impl::PlanToSchedBase<PlanToSched> {
  using PlanToSchedBase::PlanToSchedBase;

  void runOnOperation() override {
    if (failed(convert()))
      signalPassFailure();
  }

  LogicalResult convert() {
    ModuleOp module = getOperation();
    mesh = module->getAttrOfType<MeshAttr>(plan::kMeshAttr);
    if (!mesh)
      return module.emitError("has no plan.mesh: apply a strategy or a plan first");
    pipeline = module->getAttrOfType<plan::PipelineAttr>(plan::kPipelineAttr);
    SmallVector<func::FuncOp> planned = plan::getPlannedFunctions(module);
    func::FuncOp microbatch = train::getMicrobatchFunction(module);
    func::FuncOp update = train::getUpdateFunction(module);
    if (!microbatch || !update)
      return module.emitError("has no @") << (microbatch ? train::kUpdateFunction : train::kMicrobatchFunction);

    OpBuilder builder(planned.front());
    program = ProgramOp::create(builder, module.getLoc(), "program", mesh);
    FailureOr<Resources> declared = Resources::create(module, program);
    if (failed(declared))
      return failure();
    resources = &*declared;
    for (func::FuncOp function : planned) {
      LogicalResult done = function == microbatch ? lowerMicrobatch(function)
                           : function == update   ? lowerUpdate(function)
                                                  : lowerPlain(function);
      if (failed(done))
        return failure();
    }
    if (failed(buildSchedule()))
      return failure();
    for (func::FuncOp function : planned)
      function.erase();
    dropPlan();
    return pipeline ? cutChunks(module, program, pipeline) : success();
  }

private:
  /// Creates a function at the end of the program.
  func::FuncOp createFunction(Location loc, StepRole role) {
    OpBuilder builder = OpBuilder::atBlockEnd(program.getBody());
    auto step = StepAttr::get(&getContext(), role, /*chunk=*/0);
    auto function = func::FuncOp::create(builder, loc, getFunctionName(step), builder.getFunctionType({}, {}));
    function->setAttr(kStepAttr, step);
    function.addEntryBlock();
    return function;
  }

  LocalLowering lowerInto(func::FuncOp function) {
    return LocalLowering(*resources, mesh, bool(pipeline), OpBuilder::atBlockEnd(&function.front()));
  }

  static void finish(func::FuncOp function, ValueRange results = {}) {
    OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
    func::ReturnOp::create(builder, function.getLoc(), results);
    function.setFunctionType(builder.getFunctionType(function.front().getArgumentTypes(), results.getTypes()));
  }

  /// Lowers `@init` or `@evaluate`, whose results go to resources.
  LogicalResult lowerPlain(func::FuncOp old) {
    bool isInit = old.getName() == train::kInitFunction;
    func::FuncOp function = createFunction(old.getLoc(), isInit ? StepRole::init : StepRole::evaluate);
    LocalLowering lowering = lowerInto(function);
    ChunkNumbers chunks(isInit ? plan::PipelineAttr() : pipeline);
    for (Operation &op : old.front().without_terminator()) {
      chunks.labelForward(op);
      if (failed(lowering.lower(op)))
        return failure();
    }
    if (failed(chunks.checkAll(old)))
      return failure();
    for (OpOperand &operand : old.front().getTerminator()->getOpOperands()) {
      ResourceOp resource = isInit ? resources->ofValue(operand.getOperandNumber()) : resources->getEvaluation();
      if (failed(store(lowering, operand.get(), resource, *operand.getOwner())))
        return failure();
    }
    finish(function);
    return success();
  }

  LogicalResult store(LocalLowering &lowering, Value value, ResourceOp resource, Operation &user) {
    if (failed(lowering.provide(value, user)))
      return failure();
    StoreOp::create(lowering.builder, user.getLoc(), resource.getSymName(), lowering.mapping.lookup(value));
    return success();
  }

  LogicalResult lowerUpdate(func::FuncOp old) {
    if (failed(buildReduce(old)))
      return failure();
    func::FuncOp function = createFunction(old.getLoc(), StepRole::update);
    LocalLowering lowering = lowerInto(function);
    for (Operation &op : old.front().without_terminator())
      if (failed(lowering.lower(op)))
        return failure();
    Operation *terminator = old.front().getTerminator();
    if (failed(store(lowering, terminator->getOperand(0), resources->getGradientNorm(), *terminator)))
      return failure();
    finish(function);
    return success();
  }

  /// Adds `value` to the resources of the results of `@microbatch` that it is, right where it is computed.
  LogicalResult addToResources(LocalLowering &lowering, Value value, Operation &user) {
    for (ResourceOp resource : sinks.lookup(value)) {
      if (failed(lowering.provide(value, user)))
        return failure();
      Value part = lowering.mapping.lookup(value);
      LayoutAttr made = plan::addReplicaSum(plan::getLayout(value), getOperation()),
                 wanted = resource.getLayout().withMemory(plan::MemoryKind::device);
      if (!plan::haveSameParts(made, wanted, mesh)) {
        FailureOr<Value> moved = lowering.reshardPart(user, part, resource.getGlobalTensorType(), made, wanted);
        if (failed(moved))
          return failure();
        part = *moved;
      }
      if (resource.getLayout().getMemory() == plan::MemoryKind::host)
        part = lowering.move(user, part, plan::MemoryKind::host);
      auto add = AddToOp::create(lowering.builder, user.getLoc(), resource.getSymName(), part);
      Attribute repeat = user.getAttr(plan::kRepeatAttr);
      if (repeat)
        add->setAttr(plan::kRepeatAttr, repeat);
      if (resource.getKind() == ResourceKind::gradient)
        gradientOrder.push_back({resource, repeat});
    }
    return success();
  }

  LogicalResult lowerMicrobatch(func::FuncOp old) {
    Block &block = old.front();
    if (failed(findSinks(old)))
      return failure();
    func::FuncOp forward = createFunction(old.getLoc(), StepRole::forward);
    LocalLowering lowering = lowerInto(forward);
    ChunkNumbers chunks(pipeline);
    auto op = block.begin(), end = std::prev(block.end());
    for (; op != end && !llvm::isa<train::StashOp>(*op) && !op->hasAttr(train::kForwardAttr); ++op) {
      chunks.labelForward(*op);
      if (failed(lowering.lower(*op)))
        return failure();
      for (Value result : op->getResults())
        if (failed(addToResources(lowering, result, *op)))
          return failure();
    }
    for (BlockArgument argument : block.getArguments())
      if (failed(addToResources(lowering, argument, *block.getTerminator())))
        return failure();

    if (failed(chunks.checkAll(old)))
      return failure();

    func::FuncOp backward = createFunction(old.getLoc(), StepRole::backward);
    LocalLowering backwardLowering = lowerInto(backward);
    Stash stash(*resources, lowering, backwardLowering, backward);
    for (; op != end; ++op) {
      chunks.labelBackward(*op);
      if (auto stashOp = llvm::dyn_cast<train::StashOp>(*op)) {
        if (failed(stash.lower(stashOp)))
          return failure();
      } else if (failed(stash.handInputs(*op)) || failed(backwardLowering.lower(*op))) {
        return failure();
      }
      for (Value result : op->getResults())
        if (failed(addToResources(backwardLowering, result, *op)))
          return failure();
    }
    finish(forward, stash.getValues());
    finish(backward);
    return success();
  }

  /// Finds the resources that the results of `@microbatch` go to.
  LogicalResult findSinks(func::FuncOp function) {
    for (OpOperand &operand : function.front().getTerminator()->getOpOperands()) {
      unsigned i = operand.getOperandNumber();
      ResourceOp resource = resources->getLoss();
      if (i > 0) {
        auto name = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr);
        resource = name ? resources->ofGradient(name.getValue()) : ResourceOp();
        if (!resource)
          return function.emitError("result ") << i << " is the gradient of no weight with a plan.gradient_layout";
      }
      sinks[operand.get()].push_back(resource);
    }
    return success();
  }

  using Axes = SmallVector<Attribute, 2>;

  /// Returns the axes over which a resource has partial sums.
  FailureOr<Axes> getSumAxes(ResourceOp resource) {
    Axes axes;
    for (plan::UnreducedAttr unreduced : resource.getLayout().getUnreduced()) {
      if (unreduced.getKind() != train::ReductionKind::sum)
        return resource.emitOpError("is accumulated but not a sum over ") << unreduced.getAxis();
      axes.push_back(unreduced.getAxis());
    }
    return axes;
  }

  /// Brings a gradient to the layout in which `@update` reads it. The ops for that belong to the repeated block that
  /// computes the gradient, and may run in it.
  LogicalResult reduceAlone(OpBuilder &builder, ResourceOp gradient, ResourceOp reduced, Attribute repeat) {
    Operation *load = LoadOp::create(builder, gradient.getLoc(), gradient.getTensorType(), gradient.getSymName());
    FailureOr<Value> moved =
        lowerReshard(builder, gradient.getLoc(), load->getResult(0), gradient.getGlobalTensorType(),
                     gradient.getLayout(), reduced.getLayout(), mesh);
    if (failed(moved))
      return failure();
    StoreOp::create(builder, gradient.getLoc(), reduced.getSymName(), *moved);
    if (repeat)
      for (Operation *op = load; op; op = op->getNextNode())
        op->setAttr(plan::kRepeatAttr, repeat);
    return success();
  }

  LogicalResult buildReduce(func::FuncOp update) {
    int64_t limit = plan::kBucketBytes;
    if (auto attribute = getOperation()->getAttrOfType<IntegerAttr>(plan::kBucketBytesAttr))
      limit = attribute.getInt();
    func::FuncOp function = createFunction(update.getLoc(), StepRole::reduce);
    OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
    auto flush = [&](const Axes &axes, SmallVectorImpl<ResourceOp> &bucket) {
      if (bucket.empty())
        return;
      SmallVector<Value> values;
      for (ResourceOp resource : bucket)
        values.push_back(
            LoadOp::create(builder, resource.getLoc(), resource.getTensorType(), resource.getSymName()).getResult());
      auto reduce = AllReduceOp::create(builder, function.getLoc(), ValueRange(values).getTypes(), values,
                                        builder.getArrayAttr(axes), /*positions=*/nullptr, train::ReductionKind::sum);
      for (auto [resource, result] : llvm::zip_equal(bucket, reduce.getResults()))
        StoreOp::create(builder, resource.getLoc(), resource.getSymName(), result);
      bucket.clear();
    };

    SmallVector<ResourceOp> loss = {resources->getLoss()};
    FailureOr<Axes> lossAxes = getSumAxes(loss.front());
    if (failed(lossAxes))
      return failure();
    if (!lossAxes->empty())
      flush(*lossAxes, loss);

    struct Bucket {
      Axes axes;
      SmallVector<ResourceOp> resources;
      int64_t bytes = 0;
    };
    SmallVector<Bucket, 2> open; // one per set of axes
    llvm::DenseSet<Operation *> seen;
    for (auto [resource, repeat] : gradientOrder) {
      if (!seen.insert(resource).second)
        return resource.emitOpError("is accumulated twice in a micro-batch");
      if (ResourceOp reduced = resources->ofReduced(resource.getOf().value_or("")); reduced != resource) {
        if (failed(reduceAlone(builder, resource, reduced, repeat)))
          return failure();
        continue;
      }
      FailureOr<Axes> axes = getSumAxes(resource);
      if (failed(axes))
        return failure();
      if (axes->empty())
        continue;
      auto *bucket = llvm::find_if(open, [&](const Bucket &b) { return b.axes == *axes; });
      if (bucket == open.end()) {
        open.push_back({*axes, {}, 0});
        bucket = std::prev(open.end());
      }
      if (bucket->bytes + getTensorBytes(resource.getTensorType()) > limit || // one allocation, one element type
          (!bucket->resources.empty() &&
           bucket->resources.front().getTensorType().getElementType() != resource.getTensorType().getElementType())) {
        flush(bucket->axes, bucket->resources);
        bucket->bytes = 0;
      }
      bucket->resources.push_back(resource);
      bucket->bytes += getTensorBytes(resource.getTensorType());
    }
    for (Bucket &bucket : open)
      flush(bucket.axes, bucket.resources);
    finish(function);
    return success();
  }

  LogicalResult buildSchedule() {
    ModuleOp module = getOperation();
    int64_t microBatches = train::getMergedMicroBatches(module), replicas = mesh.sizeOf(plan::AxisRole::replica);
    if (microBatches < 1 || microBatches % replicas != 0)
      return module.emitError("has ") << microBatches << " micro-batches per step, which " << replicas
                                      << " replicas cannot share evenly";
    OpBuilder builder = OpBuilder::atBlockEnd(program.getBody());
    createSchedule(builder, module.getLoc(), schedule::makeSequentialStep(microBatches / replicas));
    return success();
  }

  /// Removes the plan's attributes from the module; `plan.unit_bytes` and `plan.prefetch_bytes` move to the program.
  void dropPlan() {
    ModuleOp module = getOperation();
    for (StringRef name : {plan::kUnitBytesAttr, plan::kPrefetchBytesAttr})
      if (Attribute bytes = module->removeAttr(name))
        program->setAttr(name, bytes);
    for (StringRef name : {plan::kMeshAttr, plan::kBucketBytesAttr, plan::kPipelineAttr})
      module->removeAttr(name);
    for (auto parameter : module.getOps<train::ParameterOp>())
      for (StringRef name : {plan::kLayoutAttr, plan::kGradientLayoutAttr, plan::kMasterLayoutAttr,
                             plan::kStateMemoryAttr, plan::kGradientMemoryAttr, plan::kComputeMemoryAttr})
        parameter->removeAttr(name);
  }

  MeshAttr mesh;
  /// Null for a step of one chunk.
  plan::PipelineAttr pipeline;
  ProgramOp program;
  Resources *resources = nullptr;
  llvm::DenseMap<Value, SmallVector<ResourceOp, 1>> sinks;
  /// The gradients in the order in which the backward pass completes them, each with the `plan.repeat` of its op.
  SmallVector<std::pair<ResourceOp, Attribute>> gradientOrder;
};

} // namespace
