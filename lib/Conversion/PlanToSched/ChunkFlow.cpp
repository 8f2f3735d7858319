#include "ChunkFlow.h"

#include "windlass/Dialect/Plan/Transforms/Segments.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

ChunkFlow::ChunkFlow(func::FuncOp function, ArrayRef<int64_t> positionOf, bool isBackward)
    : function(function), positionOf(positionOf), step(isBackward ? -1 : 1), received(positionOf.size()),
      copies(positionOf.size()) {}

namespace {

/// The operators that depend on nothing but weights that are trained, and the constants. Weights that are not trained
/// may be on several positions.
class WeightOps {
public:
  explicit WeightOps(ProgramOp program) : symbols(program) {
    for (auto resource : program.getOps<ResourceOp>())
      if (resource.getKind() == ResourceKind::gradient)
        trained.insert(resource.getOfAttr());
  }

  /// Adds the next operator if it is one of them or a constant.
  void add(Operation &op) {
    if (auto load = llvm::dyn_cast<LoadOp>(op)) {
      auto resource = symbols.lookup<ResourceOp>(load.getResourceAttr().getAttr());
      if (resource.getKind() == ResourceKind::parameter && trained.contains(resource.getOfAttr()))
        ofWeights.insert(&op);
    } else if (op.getNumResults() > 0 && llvm::all_of(op.getOperands(), [&](Value operand) {
                 return contains(operand) || constant.contains(operand.getDefiningOp());
               })) {
      (readsWeight(op) ? ofWeights : constant).insert(&op);
    }
  }
  bool contains(Operation &op) const { return ofWeights.contains(&op); }
  bool readsWeight(Operation &op) const {
    return llvm::any_of(op.getOperands(), [&](Value operand) { return contains(operand); });
  }

private:
  bool contains(Value value) const { return ofWeights.contains(value.getDefiningOp()); }

  SymbolTable symbols;
  llvm::DenseSet<Attribute> trained;
  llvm::DenseSet<Operation *> ofWeights, constant;
};

} // namespace

void ChunkFlow::assign(llvm::function_ref<int64_t(FlatSymbolRefAttr)> home,
                       llvm::function_ref<bool(BlockArgument)> isOfChunk,
                       llvm::function_ref<std::optional<int64_t>(LoadOp)> madeIn) {
  WeightOps weights(function->getParentOfType<ProgramOp>());
  for (Operation &op : function.front().without_terminator()) {
    if (auto load = llvm::dyn_cast<LoadOp>(op))
      if (std::optional<int64_t> chunk = madeIn(load)) {
        chunkOf[&op] = *chunk;
        continue;
      }
    weights.add(op);
    if (llvm::isa<LoadOp>(op) || weights.contains(op))
      continue;
    std::optional<int64_t> made;
    bool isCopied = !weights.readsWeight(op);
    for (Value operand : op.getOperands()) {
      if (auto argument = llvm::dyn_cast<BlockArgument>(operand)) {
        isCopied &= !isOfChunk(argument);
      } else if (std::optional<int64_t> chunk = getChunk(operand.getDefiningOp())) {
        made = !made || isLater(*chunk, *made) ? chunk : made;
        isCopied = false;
      }
    }
    // In a backward, what only views a value is where that value is, since its readers may be in another chunk than
    // those of the view in the forward. An adjoint that repeats a value is no such view: less crosses before it.
    bool follows = step < 0 && plan::Recomputation::isView(&op) && !(made && llvm::isa<train::BroadcastOp>(op));
    auto label = follows ? IntegerAttr() : op.getAttrOfType<IntegerAttr>(plan::kChunkAttr);
    if (llvm::isa<StoreOp, AddToOp>(op))
      chunkOf[&op] = made ? *made : home(op.getAttrOfType<FlatSymbolRefAttr>("resource"));
    else if (label && !isCopied)
      chunkOf[&op] = label.getInt();
    else if (made)
      chunkOf[&op] = *made;
  }
  assignToReaders([&](Operation &op) { return weights.contains(op) && !llvm::isa<LoadOp>(op); });
}

void ChunkFlow::assignToReaders(llvm::function_ref<bool(Operation &)> isOfWeights) {
  llvm::DenseMap<Operation *, llvm::SmallSet<int64_t, 4>> readers;
  for (Operation &op : llvm::reverse(function.front().without_terminator())) {
    if (!isOfWeights(op))
      continue;
    llvm::SmallSet<int64_t, 4> &chunks = readers[&op];
    for (Operation *user : op.getUsers()) {
      if (std::optional<int64_t> chunk = getChunk(user))
        chunks.insert(*chunk);
      else if (auto its = readers.find(user); its != readers.end())
        chunks.insert(its->second.begin(), its->second.end());
    }
    std::optional<int64_t> first;
    for (int64_t chunk : chunks)
      if (!first || isLater(*first, chunk))
        first = chunk;
    if (first && llvm::all_of(chunks, [&](int64_t chunk) { return positionOf[chunk] == positionOf[*first]; }))
      chunkOf[&op] = *first;
  }
}

std::optional<int64_t> ChunkFlow::getChunk(Operation *op) const {
  auto found = chunkOf.find(op);
  return found == chunkOf.end() ? std::nullopt : std::optional(found->second);
}

LogicalResult ChunkFlow::pass(Value value, int64_t from, int64_t to, Operation *user) {
  if ((to - from) * step < 0)
    return user->emitOpError("belongs to chunk ")
           << to << " but needs what chunk " << from << " makes after it: chunks must follow the order of operators";
  for (int64_t chunk = from; chunk != to; chunk += step)
    received[chunk + step].insert(value);
  return success();
}

LogicalResult ChunkFlow::require(Value value, int64_t chunk, Operation *user, ProvideArgument provide) {
  if (auto argument = llvm::dyn_cast<BlockArgument>(value))
    return pass(value, provide(argument, chunk), chunk, user);
  Operation *producer = value.getDefiningOp();
  if (std::optional<int64_t> from = getChunk(producer))
    return pass(value, *from, chunk, user);
  if (!copies[chunk].insert(producer).second)
    return success();
  for (Value operand : producer->getOperands())
    if (failed(require(operand, chunk, producer, provide)))
      return failure();
  return success();
}

LogicalResult ChunkFlow::requireOperands(ProvideArgument provide) {
  for (Operation &op : function.front().without_terminator())
    if (std::optional<int64_t> chunk = getChunk(&op))
      for (Value operand : op.getOperands())
        if (failed(require(operand, *chunk, &op, provide)))
          return failure();
  return success();
}

bool ChunkFlow::isIn(Operation *op, int64_t chunk) const {
  std::optional<int64_t> own = getChunk(op);
  return own ? *own == chunk : copies[chunk].contains(op);
}
