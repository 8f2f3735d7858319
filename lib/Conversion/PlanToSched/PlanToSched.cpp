#include "windlass/Conversion/PlanToSched/Passes.h"

#include "ChunkNumbers.h"
#include "CutChunks.h"
#include "LocalLowering.h"
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
      RankedTensorType global = resource.getGlobalTensorType();
      LayoutAttr made = plan::addReplicaSum(plan::getLayout(value), getOperation()),
                 wanted = resource.getLayout().withMemory(plan::MemoryKind::device);
      bool isGradient = resource.getKind() == ResourceKind::gradient,
           isOnHost = resource.getLayout().getMemory() == plan::MemoryKind::host;
      Type held = resource.getTensorType().getElementType(), sent = resources->getSentElement(resource);
      if (isGradient && (held == sent || isOnHost || isSent(global, made, wanted, mesh)))
        part = lowering.narrow(user, part, sent, value.hasOneUse());
      if (!plan::haveSameParts(made, wanted, mesh)) {
        FailureOr<Value> moved =
            lowering.reshardPart(user, part, global.clone(getElementTypeOrSelf(part)), made, wanted);
        if (failed(moved))
          return failure();
        part = *moved;
      }
      if (isOnHost)
        part = lowering.move(user, part, plan::MemoryKind::host);
      part = lowering.convert(user, part, held);
      auto add = AddToOp::create(lowering.builder, user.getLoc(), resource.getSymName(), part);
      Attribute repeat = user.getAttr(plan::kRepeatAttr);
      if (repeat)
        add->setAttr(plan::kRepeatAttr, repeat);
      if (isGradient)
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
    RankedTensorType global = gradient.getGlobalTensorType();
    if (isSent(global, gradient.getLayout(), reduced.getLayout(), mesh))
      global = global.clone(resources->getSentElement(gradient));
    Value part = convertTo(builder, gradient.getLoc(), load->getResult(0), global.getElementType());
    FailureOr<Value> moved =
        lowerReshard(builder, gradient.getLoc(), part, global, gradient.getLayout(), reduced.getLayout(), mesh);
    if (failed(moved))
      return failure();
    StoreOp::create(builder, gradient.getLoc(), reduced.getSymName(),
                    convertTo(builder, gradient.getLoc(), *moved, reduced.getTensorType().getElementType()));
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
      for (ResourceOp resource : bucket) {
        auto load = LoadOp::create(builder, resource.getLoc(), resource.getTensorType(), resource.getSymName());
        values.push_back(convertTo(builder, resource.getLoc(), load.getResult(), resources->getSentElement(resource)));
      }
      auto reduce = AllReduceOp::create(builder, function.getLoc(), ValueRange(values).getTypes(), values,
                                        builder.getArrayAttr(axes), /*positions=*/nullptr, train::ReductionKind::sum);
      for (auto [resource, result] : llvm::zip_equal(bucket, reduce.getResults()))
        StoreOp::create(builder, resource.getLoc(), resource.getSymName(),
                        convertTo(builder, resource.getLoc(), result, resource.getTensorType().getElementType()));
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
      Type element = resources->getSentElement(resource);
      int64_t bytes = getTensorBytes(resource.getTensorType().clone(element));
      if (bucket->bytes + bytes > limit || // one allocation, one element type
          (!bucket->resources.empty() && resources->getSentElement(bucket->resources.front()) != element)) {
        flush(bucket->axes, bucket->resources);
        bucket->bytes = 0;
      }
      bucket->resources.push_back(resource);
      bucket->bytes += bytes;
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
      for (StringRef name :
           {plan::kLayoutAttr, plan::kGradientLayoutAttr, plan::kMasterLayoutAttr, plan::kStateMemoryAttr,
            plan::kUpdatesOnDeviceAttr, plan::kGradientMemoryAttr, plan::kComputeMemoryAttr})
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
