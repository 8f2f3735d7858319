#include "ChunkUpdates.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

ChunkUpdates::ChunkUpdates(ProgramOp whole, ChunkPrograms &programs, const schedule::Placement &placement,
                           const ParameterChunks &chunks)
    : whole(whole), module(whole->getParentOfType<ModuleOp>()), programs(programs), placement(placement),
      chunks(chunks) {}

SmallVector<int64_t, 1> ChunkUpdates::getChunks(FlatSymbolRefAttr name) const {
  ResourceOp resource = programs.getResource(name);
  if (resource.getKind() == ResourceKind::loss)
    return {placement.countChunks() - 1};
  FlatSymbolRefAttr parameter = resource.getOfAttr();
  if (!parameter)
    return {};
  auto symbol = parameter.getAttr();
  if (auto state = module.lookup<train::ParameterOp>(symbol))
    if (FlatSymbolRefAttr weight = state.getOfAttr())
      symbol = weight.getAttr();
  auto found = chunks.find(symbol);
  return found == chunks.end() ? SmallVector<int64_t, 1>() : found->second;
}

SmallVector<int64_t, 1> ChunkUpdates::getChunks(Operation *op) const {
  if (auto name = op->getAttrOfType<FlatSymbolRefAttr>("resource"))
    return getChunks(name);
  for (Value operand : op->getOperands())
    if (SmallVector<int64_t, 1> its = getChunks(operand.getDefiningOp()); !its.empty())
      return its;
  return {};
}

func::FuncOp ChunkUpdates::buildReduce(int64_t chunk) {
  func::FuncOp old = getStepFunction(whole, StepRole::reduce);
  func::FuncOp function = programs.createFunction(old.getLoc(), StepRole::reduce, chunk);
  OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
  IRMapping mapping;
  for (Operation &op : old.front().without_terminator()) {
    auto reduce = llvm::dyn_cast<AllReduceOp>(op);
    if (!reduce) {
      if (llvm::is_contained(getChunks(&op), chunk))
        programs.clone(builder, op, mapping, chunk);
      continue;
    }
    SmallVector<Value> inputs, results;
    for (auto [input, result] : llvm::zip_equal(reduce.getInputs(), reduce.getResults()))
      if (llvm::is_contained(getChunks(input.getDefiningOp()), chunk)) {
        inputs.push_back(mapping.lookup(input));
        results.push_back(result);
      }
    if (inputs.empty())
      continue;
    auto own = AllReduceOp::create(builder, op.getLoc(), ValueRange(inputs).getTypes(), inputs, reduce.getAxes(),
                                   /*positions=*/nullptr, reduce.getKind());
    own->setDiscardableAttrs(reduce->getDiscardableAttrDictionary());
    mapping.map(results, own.getResults());
  }
  func::ReturnOp::create(builder, old.getLoc());
  return function;
}

void ChunkUpdates::buildTiedSums(func::FuncOp lastReduce) {
  OpBuilder builder(lastReduce.front().getTerminator());
  int64_t chunk = getStep(lastReduce).getChunk();
  llvm::DenseSet<Attribute> seen;
  for (auto load : getStepFunction(whole, StepRole::update).front().getOps<LoadOp>()) {
    ResourceKind kind = programs.getResource(load.getResourceAttr()).getKind();
    SmallVector<int64_t, 1> chunksOfIt = getChunks(load.getResourceAttr());
    if ((kind != ResourceKind::gradient && kind != ResourceKind::reduced) || chunksOfIt.size() < 2 ||
        !seen.insert(load.getResourceAttr()).second)
      continue;
    SmallVector<int64_t> positions =
        llvm::map_to_vector(chunksOfIt, [&](int64_t its) { return placement.positionOf[its]; });
    llvm::sort(positions);
    if (!llvm::is_contained(positions, placement.positionOf[chunk]))
      continue;
    StringRef name = programs.use(load.getResourceAttr(), chunk).getValue();
    Value part = LoadOp::create(builder, load.getLoc(), load.getType(), name).getResult();
    bool isOnHost = programs.getResource(load.getResourceAttr()).getLayout().getMemory() == plan::MemoryKind::host;
    if (isOnHost)
      part = MoveOp::create(builder, load.getLoc(), part, plan::MemoryKind::device).getResult();
    auto sum = AllReduceOp::create(builder, load.getLoc(), TypeRange(part.getType()), ValueRange(part),
                                   builder.getArrayAttr({}), builder.getDenseI64ArrayAttr(positions),
                                   train::ReductionKind::sum);
    StringRef weight = programs.getResource(load.getResourceAttr()).getLogicalName().value_or("");
    sum->setAttr(train::kIdAttr, builder.getStringAttr("update/" + weight + "/tied_sum"));
    Value whole = sum.getResult(0);
    if (isOnHost)
      whole = MoveOp::create(builder, load.getLoc(), whole, plan::MemoryKind::host).getResult();
    StoreOp::create(builder, load.getLoc(), name, whole);
  }
}

bool ChunkUpdates::isOfPosition(Value value, int64_t chunk) const {
  Operation *op = value.getDefiningOp();
  if (auto load = llvm::dyn_cast<LoadOp>(op)) {
    SmallVector<int64_t, 1> its = getChunks(load.getResourceAttr());
    return !its.empty() && programs.getProgram(its.front()) == programs.getProgram(chunk);
  }
  return llvm::any_of(op->getOperands(), [&](Value operand) { return isOfPosition(operand, chunk); });
}

Value ChunkUpdates::build(OpBuilder &builder, Value value, int64_t chunk, IRMapping &mapping) {
  if (mapping.contains(value))
    return mapping.lookup(value);
  for (Value operand : value.getDefiningOp()->getOperands())
    build(builder, operand, chunk, mapping);
  programs.clone(builder, *value.getDefiningOp(), mapping, chunk);
  return mapping.lookup(value);
}

Value ChunkUpdates::buildOwnSum(OpBuilder &builder, Value value, int64_t chunk, IRMapping &mapping) {
  if (mapping.contains(value))
    return mapping.lookup(value);
  Operation *op = value.getDefiningOp();
  if (!isOfPosition(value, chunk)) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    return train::ConstantOp::create(builder, op->getLoc(), type,
                                     DenseElementsAttr::get(type, builder.getZeroAttr(type.getElementType())));
  }
  if (auto sum = llvm::dyn_cast<train::AccumulateOp>(op)) {
    SmallVector<Value> own;
    for (Value operand : sum->getOperands())
      if (isOfPosition(operand, chunk))
        own.push_back(buildOwnSum(builder, operand, chunk, mapping));
    auto copy = train::AccumulateOp::create(builder, op->getLoc(), value.getType(), own);
    copy->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    copy->removeAttr(plan::kLayoutsAttr);
    mapping.map(value, copy.getResult());
  } else if (llvm::isa<train::SquareSumOp, LoadOp>(op)) {
    return build(builder, value, chunk, mapping);
  } else {
    for (Value operand : op->getOperands())
      if (Value own = buildOwnSum(builder, operand, chunk, mapping); !mapping.contains(operand))
        mapping.map(operand, own);
    programs.clone(builder, *op, mapping, chunk);
  }
  return mapping.lookup(value);
}

StoreOp ChunkUpdates::findNormStore(func::FuncOp update) const {
  for (auto store : update.front().getOps<StoreOp>())
    if (programs.getResource(store.getResourceAttr()).getKind() == ResourceKind::grad_norm)
      return store;
  return {};
}

LogicalResult ChunkUpdates::buildNorm(OpBuilder &builder, int64_t chunk, IRMapping &mapping) {
  StoreOp store = findNormStore(getStepFunction(whole, StepRole::update));
  if (!store)
    return whole.emitOpError("has an update that stores no norm of the gradients");
  // The root of the sum of squares, below what a loss scale is taken out by.
  Operation *root = store.getValue().getDefiningOp();
  while (!llvm::isa<train::SqrtOp>(root)) {
    root = root->getNumOperands() > 0 ? root->getOperand(0).getDefiningOp() : nullptr;
    if (!root)
      return store.emitOpError("stores a norm that is no root of a sum");
  }
  Value squares = root->getOperand(0);
  Value own = buildOwnSum(builder, squares, chunk, mapping);
  auto all = AllReduceOp::create(
      builder, root->getLoc(), TypeRange(own.getType()), ValueRange(own), builder.getArrayAttr({}),
      builder.getDenseI64ArrayAttr(llvm::to_vector(llvm::seq(placement.positions))), train::ReductionKind::sum);
  if (Attribute id = root->getAttr(train::kIdAttr))
    all->setAttr(train::kIdAttr, id);
  mapping.map(squares, all.getResult(0));
  build(builder, store.getValue(), chunk, mapping);
  programs.clone(builder, *store, mapping, chunk);
  return success();
}

LogicalResult ChunkUpdates::buildUpdate(int64_t chunk, bool isFirst) {
  func::FuncOp old = getStepFunction(whole, StepRole::update);
  func::FuncOp function = programs.createFunction(old.getLoc(), StepRole::update, chunk);
  OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
  IRMapping mapping;
  StoreOp normStore = findNormStore(old);
  if (isFirst) {
    if (failed(buildNorm(builder, chunk, mapping)))
      return failure();
  } else {
    Value norm = normStore.getValue();
    mapping.map(norm, LoadOp::create(builder, old.getLoc(), norm.getType(),
                                     programs.use(normStore.getResourceAttr(), chunk).getValue())
                          .getResult());
  }
  llvm::DenseSet<Operation *> needed;
  SmallVector<Operation *> open;
  for (auto store : old.front().getOps<StoreOp>())
    if (store != normStore && llvm::is_contained(getChunks(store.getResourceAttr()), chunk))
      open.push_back(store);
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!needed.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        open.push_back(operand.getDefiningOp());
  }
  // In their order, because what is stored is read again.
  for (Operation &op : old.front().without_terminator())
    if (needed.contains(&op))
      programs.clone(builder, op, mapping, chunk);
  func::ReturnOp::create(builder, old.getLoc());
  return success();
}
