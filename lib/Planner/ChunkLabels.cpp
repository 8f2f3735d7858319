#include "ChunkLabels.h"

#include "windlass/Dialect/Plan/IR/ChunkCounter.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

static llvm::DenseSet<StringAttr> findTrained(const Groups &groups) {
  llvm::DenseSet<StringAttr> trained;
  for (const ParameterGroup &group : groups.getParameters())
    for (train::ParameterOp parameter : group.parameters)
      if (parameter.getTrainable())
        trained.insert(parameter.getSymNameAttr());
  return trained;
}

Operators planner::findCopied(const Groups &groups) {
  llvm::DenseSet<StringAttr> trained = findTrained(groups);
  Operators copied;
  auto isCopied = [&](Value operand) {
    Operation *maker = operand.getDefiningOp();
    return !maker || copied.contains(maker);
  };
  for (Operation &op : groups.getFunction().front()) {
    auto read = llvm::dyn_cast<train::ReadOp>(op);
    if (read ? !trained.contains(read.getParameterAttr().getAttr()) : llvm::all_of(op.getOperands(), isCopied))
      copied.insert(&op);
  }
  return copied;
}

/// Finds the reads of trained weights, and what follows from these and from constants alone.
static Operators findOfWeights(const Groups &groups) {
  llvm::DenseSet<StringAttr> trained = findTrained(groups);
  Operators ofWeights, constant;
  auto isAmong = [](const Operators &ops) {
    return [&ops](Value value) { return value.getDefiningOp() && ops.contains(value.getDefiningOp()); };
  };
  for (Operation &op : groups.getFunction().front().without_terminator()) {
    if (auto read = llvm::dyn_cast<train::ReadOp>(op)) {
      if (trained.contains(read.getParameterAttr().getAttr()))
        ofWeights.insert(&op);
    } else if (llvm::all_of(op.getOperands(), isAmong(constant))) {
      constant.insert(&op);
    } else if (llvm::all_of(op.getOperands(),
                            [&](Value value) { return isAmong(constant)(value) || isAmong(ofWeights)(value); })) {
      ofWeights.insert(&op);
    }
  }
  return ofWeights;
}

ChunkLabels::ChunkLabels(const Groups &groups, plan::PipelineAttr pipeline)
    : groups(groups), count(pipeline.countChunks()) {
  label(pipeline);
  for (const OperatorGroup &group : groups.getOperators())
    operators.push_back(countByChunk(group));
  for (const ParameterGroup &group : groups.getParameters())
    parameters.push_back(countByChunk(group));
}

void ChunkLabels::label(plan::PipelineAttr pipeline) {
  Operators copied = findCopied(groups), ofWeights = findOfWeights(groups);
  plan::ChunkCounter counter(pipeline);
  llvm::DenseMap<Attribute, int64_t> byId;
  bool isForward = true;
  for (Operation &op : groups.getFunction().front().without_terminator()) {
    Attribute forward = op.getAttr(train::kForwardAttr);
    isForward &= !forward && !llvm::isa<train::StashOp>(op);
    std::optional<int64_t> chunk;
    if (isForward) {
      chunk = counter.advance(op);
      if (StringAttr id = plan::getModelId(op))
        byId[id] = *chunk;
    } else if (auto found = byId.find(forward); forward && found != byId.end()) {
      chunk = found->second;
    }
    if (chunk && llvm::isa<train::TrainOpInterface>(op) && !copied.contains(&op) && !ofWeights.contains(&op))
      chunks[&op] = *chunk;
  }
}

std::optional<int64_t> ChunkLabels::find(Operation *op) const {
  auto found = chunks.find(op);
  return found == chunks.end() ? std::nullopt : std::optional(found->second);
}

bool ChunkLabels::runTogether(Operation *a, Operation *b) const {
  std::optional<int64_t> chunk = find(a);
  return chunk && chunk == find(b) && isBackward(a) == isBackward(b);
}

std::vector<int64_t> ChunkLabels::countByChunk(const OperatorGroup &group) const {
  std::vector<int64_t> counts(count, 0);
  for (Operation *op : group.ops)
    if (std::optional<int64_t> chunk = find(op))
      ++counts[*chunk];
  return counts;
}

void ChunkLabels::addReaders(Value value, llvm::DenseSet<int64_t> &readers, Operators &seen) const {
  for (Operation *user : value.getUsers()) {
    if (std::optional<int64_t> chunk = find(user))
      readers.insert(*chunk);
    else if (seen.insert(user).second)
      for (Value result : user->getResults())
        addReaders(result, readers, seen);
  }
}

std::vector<int64_t> ChunkLabels::countByChunk(const ParameterGroup &group) const {
  llvm::DenseMap<StringAttr, llvm::DenseSet<int64_t>> readers;
  for (train::ReadOp read : group.reads) {
    Operators seen;
    addReaders(read.getResult(), readers[read.getParameterAttr().getAttr()], seen);
  }
  std::vector<int64_t> counts(count, 0);
  for (auto &[name, chunks] : readers)
    if (chunks.size() == 1)
      ++counts[*chunks.begin()];
  return counts;
}
