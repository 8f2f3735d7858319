#include "ChunkUpdates.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

ChunkUpdates::ChunkUpdates(ProgramOp whole, ChunkPrograms &programs, const ParameterChunks &chunks, int64_t lossChunk)
    : whole(whole), programs(programs), chunks(chunks), lossChunk(lossChunk) {}

std::optional<int64_t> ChunkUpdates::getChunk(FlatSymbolRefAttr name) const {
  ProgramOp program = whole;
  auto resource = program.lookupSymbol<ResourceOp>(name.getAttr());
  if (resource.getKind() == ResourceKind::loss)
    return lossChunk;
  FlatSymbolRefAttr parameter = resource.getOfAttr();
  if (!parameter)
    return std::nullopt;
  auto symbol = parameter.getAttr();
  if (auto state = whole->getParentOfType<ModuleOp>().lookupSymbol<train::ParameterOp>(symbol))
    if (FlatSymbolRefAttr weight = state.getOfAttr())
      symbol = weight.getAttr();
  auto found = chunks.find(symbol);
  return found == chunks.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int64_t> ChunkUpdates::getChunk(Operation *op) const {
  if (auto name = op->getAttrOfType<FlatSymbolRefAttr>("resource"))
    return getChunk(name);
  for (Value operand : op->getOperands())
    if (std::optional<int64_t> chunk = getChunk(operand.getDefiningOp()))
      return chunk;
  return std::nullopt;
}

LogicalResult ChunkUpdates::buildReduce(int64_t chunk) {
  func::FuncOp old = getStepFunction(whole, StepRole::reduce);
  func::FuncOp function = programs.createFunction(old.getLoc(), StepRole::reduce, chunk);
  OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
  IRMapping mapping;
  for (Operation &op : old.front().without_terminator()) {
    auto reduce = llvm::dyn_cast<AllReduceOp>(op);
    if (!reduce) {
      if (getChunk(&op) == chunk)
        programs.clone(builder, op, mapping, chunk);
      continue;
    }
    SmallVector<Value> inputs, results;
    for (auto [input, result] : llvm::zip_equal(reduce.getInputs(), reduce.getResults()))
      if (getChunk(input.getDefiningOp()) == chunk) {
        inputs.push_back(mapping.lookup(input));
        results.push_back(result);
      }
    if (inputs.empty())
      continue;
    auto own = AllReduceOp::create(builder, op.getLoc(), ValueRange(inputs).getTypes(), inputs, reduce.getAxes(),
                                   /*positions=*/false, reduce.getKind());
    own->setDiscardableAttrs(reduce->getDiscardableAttrDictionary());
    mapping.map(results, own.getResults());
  }
  func::ReturnOp::create(builder, old.getLoc());
  return success();
}

bool ChunkUpdates::isOfPosition(Value value, int64_t chunk) const {
  Operation *op = value.getDefiningOp();
  if (auto load = llvm::dyn_cast<LoadOp>(op)) {
    std::optional<int64_t> own = getChunk(load.getResourceAttr());
    return own && programs.getProgram(*own) == programs.getProgram(chunk);
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

/// Returns the operation that stores the norm of all gradients.
static StoreOp findNormStore(func::FuncOp update) {
  auto program = update->getParentOfType<ProgramOp>();
  for (auto store : update.front().getOps<StoreOp>())
    if (program.lookupSymbol<ResourceOp>(store.getResource()).getKind() == ResourceKind::grad_norm)
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
  auto all = AllReduceOp::create(builder, root->getLoc(), TypeRange(own.getType()), ValueRange(own),
                                 builder.getArrayAttr({}), /*positions=*/true, train::ReductionKind::sum);
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
    if (store != normStore && getChunk(store.getResourceAttr()) == chunk)
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
