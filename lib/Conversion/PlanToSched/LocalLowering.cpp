#include "LocalLowering.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;
using plan::LayoutAttr;

static void copyLabels(Operation &from, Operation *to) {
  for (StringRef name : {StringRef(plan::kRepeatAttr), StringRef(train::kIdAttr), StringRef(train::kForwardAttr),
                         StringRef(plan::kChunkAttr)})
    if (Attribute attribute = from.getAttr(name))
      to->setAttr(name, attribute);
}

/// Whether an operator of an update takes a gradient in bf16 as it is.
static bool readsBf16(Operation &op, Value operand) {
  auto step = llvm::dyn_cast<train::AdamWOp>(op);
  return llvm::isa<train::SquareSumOp>(op) || (step && step.getGradient() == operand);
}

static int64_t getNumElements(Value value) { return llvm::cast<RankedTensorType>(value.getType()).getNumElements(); }

/// Returns the weight whose gradient a value of `@update` is, as it is or in another layout; null for others.
static FlatSymbolRefAttr getWeightOfRead(Value value) {
  if (auto reshard = value.getDefiningOp<plan::ReshardOp>())
    value = reshard.getInput();
  auto argument = llvm::dyn_cast<BlockArgument>(value);
  auto function = argument ? llvm::cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  return function ? function.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kGradientAttr)
                  : FlatSymbolRefAttr();
}

/// Returns the weight whose gradient a value is that `@microbatch` returns and nothing else reads; null for others.
static FlatSymbolRefAttr getWeightOfMade(Value value) {
  if (!value.hasOneUse() || !llvm::isa<func::ReturnOp>(*value.user_begin()))
    return {};
  OpOperand &use = *value.use_begin();
  auto function = llvm::cast<func::FuncOp>(use.getOwner()->getParentOp());
  return function.getResultAttrOfType<FlatSymbolRefAttr>(use.getOperandNumber(), train::kGradientAttr);
}

/// Makes a product or a sum, which adds up in f32, round its result to the type of its operands, where that is
/// `element`. Returns whether it does now; it is left as it is otherwise.
static bool stopWidening(Operation *op, Type element) {
  if (!op || !llvm::isa<train::MatmulOp, train::ReduceOp>(op) || getElementTypeOrSelf(op->getOperand(0)) != element)
    return false;
  if (auto product = llvm::dyn_cast<train::MatmulOp>(op))
    product.setWide(false);
  else
    llvm::cast<train::ReduceOp>(op).setWide(false);
  return true;
}

LogicalResult LocalLowering::lower(Operation &op) {
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
  if (auto sum = llvm::dyn_cast<train::AccumulateOp>(op); sum && isMixed(sum)) {
    lowerMixed(sum);
    return success();
  }
  bool isOnHost = runsOnHost(op);
  if (isOnHost)
    bringToHost(op);
  else
    bringToDevice(op);
  if (auto reshard = llvm::dyn_cast<plan::ReshardOp>(op))
    return lower(reshard);
  IRMapping &own = isOnHost ? onHost : mapping;
  // A gradient may be held in the type in which it travels. Readers share what it is converted to where ranks have
  // parts of it; all whole gradients together would take as much memory as they do in f32.
  SmallVector<std::pair<Value, Value>> held;
  for (Value operand : op.getOperands()) {
    Value part = own.lookup(operand);
    if (readsBf16(op, operand))
      continue;
    Value wide = convert(op, part, getElementTypeOrSelf(operand));
    own.map(operand, wide);
    if (wide != part && getNumElements(part) == getNumElements(operand))
      held.push_back({operand, part});
  }
  FailureOr<Operation *> local = cloneLocal(builder, op, own, mesh);
  for (auto [operand, part] : held)
    own.map(operand, part);
  if (failed(local))
    return failure();
  if (!keepsLayouts)
    (*local)->removeAttr(plan::kLayoutsAttr);
  return success();
}

LogicalResult LocalLowering::provide(Value value, Operation &user) {
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

LogicalResult LocalLowering::load(Value value, ResourceOp resource, Operation &op) {
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

bool LocalLowering::runsOnHost(Operation &op) const {
  if (llvm::isa<train::SquareSumOp, train::AccumulateOp>(op))
    return llvm::all_of(op.getOperands(), [&](Value operand) { return onHost.contains(operand); });
  return resources.getUpdateMemory(&op) != plan::MemoryKind::device;
}

void LocalLowering::bringToDevice(Operation &op) {
  for (Value operand : op.getOperands())
    if (!mapping.contains(operand) && onHost.contains(operand))
      mapping.map(operand, move(op, onHost.lookup(operand), plan::MemoryKind::device));
}

void LocalLowering::bringToHost(Operation &op) {
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
      if (FlatSymbolRefAttr weight = getWeightOfRead(operand))
        value = convert(op, value, resources.getSentElement(resources.ofGradient(weight.getValue())));
      value = move(op, value, plan::MemoryKind::host);
    }
    onHost.map(operand, value);
  }
}

Value LocalLowering::move(Operation &op, Value value, plan::MemoryKind memory) {
  auto moved = MoveOp::create(builder, op.getLoc(), value, memory);
  copyLabels(op, moved);
  return moved.getResult();
}

Value LocalLowering::convert(Operation &op, Value value, Type element) {
  Value converted = convertTo(builder, op.getLoc(), value, element);
  if (Operation *made = converted.getDefiningOp(); converted != value)
    copyLabels(op, made);
  return converted;
}

Value LocalLowering::narrow(Operation &op, Value gradient, Type sent, bool isOnlyUse) {
  auto type = llvm::cast<RankedTensorType>(gradient.getType());
  if (sent == type.getElementType() || !isOnlyUse || !stopWidening(gradient.getDefiningOp(), sent))
    return convert(op, gradient, sent);
  gradient.setType(type.clone(sent));
  return gradient;
}

FailureOr<Value> LocalLowering::reshardPart(Operation &op, Value part, RankedTensorType global, LayoutAttr from,
                                            LayoutAttr to) {
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

IRMapping &LocalLowering::getMappingFor(ResourceOp resource) {
  return resource.getLayout().getMemory() == plan::MemoryKind::device ? mapping : onHost;
}

ResourceOp LocalLowering::getReducedGradient(Operation &op) {
  auto reshard = llvm::dyn_cast<plan::ReshardOp>(op);
  FlatSymbolRefAttr weight = reshard ? getWeightOfRead(reshard.getResult()) : FlatSymbolRefAttr();
  ResourceOp reduced = weight ? resources.ofReduced(weight.getValue()) : ResourceOp();
  if (!reduced)
    return nullptr;
  LayoutAttr layout = plan::dropUnreduced(reduced.getLayout()).withMemory(plan::MemoryKind::device);
  return haveSameParts(layout, reshard.getTo(), mesh) ? reduced : ResourceOp();
}

LogicalResult LocalLowering::lower(plan::ReshardOp reshard) {
  auto global = llvm::cast<RankedTensorType>(reshard.getInput().getType());
  Value input = mapping.lookup(reshard.getInput());
  FlatSymbolRefAttr weight = getWeightOfMade(reshard.getResult());
  if (weight && isSent(global, reshard.getFrom(), reshard.getTo(), mesh)) {
    Type sent = resources.getSentElement(resources.ofGradient(weight.getValue()));
    input = narrow(*reshard, input, sent, reshard.getInput().hasOneUse());
    global = global.clone(sent);
  }
  FailureOr<Value> part = reshardPart(*reshard, input, global, reshard.getFrom(), reshard.getTo());
  if (failed(part))
    return failure();
  mapping.map(reshard.getResult(), *part);
  return success();
}

bool LocalLowering::isMixed(train::AccumulateOp sum) const {
  auto isHere = [&](Value term) { return mapping.contains(term); };
  return llvm::any_of(sum.getInputs(), isHere) && !llvm::all_of(sum.getInputs(), isHere);
}

void LocalLowering::lowerMixed(train::AccumulateOp sum) {
  SmallVector<Value> here, there;
  for (Value term : sum.getInputs())
    if (mapping.contains(term))
      here.push_back(mapping.lookup(term));
    else
      there.push_back(onHost.lookup(term));
  auto add = [&](ArrayRef<Value> terms) {
    auto part = train::AccumulateOp::create(builder, sum.getLoc(), terms.front().getType(), terms);
    copyLabels(*sum, part);
    if (Attribute layouts = sum->getAttr(plan::kLayoutsAttr); layouts && keepsLayouts)
      part->setAttr(plan::kLayoutsAttr, layouts);
    return part.getResult();
  };
  Value own = add(here), moved = move(*sum, add(there), plan::MemoryKind::device);
  mapping.map(sum.getResult(), add({own, moved}));
}

LogicalResult LocalLowering::lower(train::WriteOp write) {
  ResourceOp master = resources.ofMaster(write.getParameter()), compute = resources.ofParameter(write.getParameter());
  if (!master || !compute)
    return write.emitOpError("names no train.parameter: ") << write.getParameterAttr();
  plan::MemoryKind kept = master.getLayout().getMemory();
  plan::MemoryKind made = onHost.contains(write.getValue()) ? plan::MemoryKind::host : plan::MemoryKind::device;
  // What goes to another memory does so last: what reads it would wait until it is there.
  if (kept == made)
    storeMaster(write, master);
  if (failed(storeCompute(write, master, compute)))
    return failure();
  if (kept != made)
    storeMaster(write, master);
  return success();
}

void LocalLowering::store(train::WriteOp write, ResourceOp resource, Value value) {
  copyLabels(*write, StoreOp::create(builder, write.getLoc(), resource.getSymName(), value));
}

void LocalLowering::storeMaster(train::WriteOp write, ResourceOp master) {
  bool isOnHost = onHost.contains(write.getValue());
  Value part = (isOnHost ? onHost : mapping).lookup(write.getValue());
  plan::MemoryKind kept = master.getLayout().getMemory();
  if (kept != plan::MemoryKind::device && !isOnHost)
    part = move(*write, part, plan::MemoryKind::host);
  if (kept == plan::MemoryKind::disk)
    part = move(*write, part, plan::MemoryKind::disk);
  store(write, master, part);
}

LogicalResult LocalLowering::storeCompute(train::WriteOp write, ResourceOp master, ResourceOp compute) {
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
  // The conversion precedes the transfer, so that fewer bytes are sent.
  own = convert(*write, own, compute.getTensorType().getElementType());
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
