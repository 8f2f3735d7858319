#include "LeastTimes.h"

#include "ChunkLabels.h"
#include "Epilogues.h"
#include "LeastTraffic.h"
#include "Makers.h"

#include "windlass/Support/TensorBytes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

static RankedTensorType typeOf(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

/// Returns the traffic that all members of a group have; nothing where one may cost nothing.
static std::optional<Traffic> getCommonTraffic(const OperatorGroup &group, const LeastTraffic &traffic) {
  std::optional<Traffic> common = traffic.get(group.front());
  for (Operation *op : llvm::drop_begin(group.ops)) {
    std::optional<Traffic> own = traffic.get(op);
    if (!common || !own)
      return std::nullopt;
    llvm::erase_if(common->operands, [&](unsigned each) { return !llvm::is_contained(own->operands, each); });
    llvm::erase_if(common->results, [&](unsigned each) { return !llvm::is_contained(own->results, each); });
  }
  return common;
}

LeastTimes::LeastTimes(const Groups &groups, const Labels &labels, const CostModel &costs, plan::MeshAttr mesh,
                       bool isCut)
    : groups(groups), labels(labels), mesh(mesh), isCut(isCut), times(groups.getOperators().size()),
      recomputed(groups.getOperators().size()) {
  if (isCut)
    copied = findCopied(groups);
  findWeightGradients();
  LeastTraffic traffic(groups.getFunction(), copied);
  for (unsigned group = 0; group < groups.getOperators().size(); ++group)
    addTimes(group, getCommonTraffic(groups.getOperators()[group], traffic), costs);
  findPositions();
}

/// Whether a label splits a factor over which an operator reduces inside.
static bool splitsInner(Operation *op, const OperatorLabel &label) {
  train::OpFactors factors = llvm::cast<train::TrainOpInterface>(op).getFactors();
  return llvm::any_of(factors.factors, [&](const auto &factor) {
    return factor.kind == train::FactorKind::Inner && !label.strategy.axesOf(factor.name).empty();
  });
}

void LeastTimes::addTimes(unsigned group, std::optional<Traffic> traffic, const CostModel &costs) {
  const OperatorGroup &its = groups.getOperators()[group];
  Operation *op = its.front();
  if ((isCut && isForWeights[group] && llvm::isa<train::AccumulateOp>(op)) ||
      (costs.fusesEpilogues() && llvm::any_of(its.ops, mayBeEpilogue)))
    traffic.reset();
  for (const OperatorLabel &label : labels.ofOperator(group)) {
    int64_t least = 0;
    bool isSplit = splitsInner(op, label);
    if (traffic &&
        !(isSplit && (isNorm(op) || isNormGradient(op) || llvm::isa<train::SoftmaxOp, train::SoftmaxGradOp>(op)))) {
      OperatorWork work = label.work;
      work.bytes = 0;
      for (unsigned operand : traffic->operands)
        work.bytes += static_cast<double>(
            getTensorBytes(label.operands[operand].getLocalType(typeOf(op->getOperand(operand)), mesh)));
      for (unsigned result : traffic->results)
        work.bytes += static_cast<double>(
            getTensorBytes(label.results[result].getLocalType(typeOf(op->getResult(result)), mesh)));
      if (!isArithmetic(op))
        work.flops = 0;
      least = costs.getLeastPicoseconds(work, traffic->hasCommand && !isSplit);
    }
    times[group].push_back(least);
    recomputed[group].push_back(isMap(op) ? 0 : least);
  }
}

void LeastTimes::findWeightGradients() {
  func::FuncOp function = groups.getFunction();
  llvm::DenseSet<Operation *> forWeights;
  auto isForWeight = [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (llvm::isa<func::ReturnOp>(user))
      return bool(function.getResultAttr(use.getOperandNumber(), train::kGradientAttr));
    return forWeights.contains(user);
  };
  for (Operation &op : llvm::reverse(function.front().without_terminator())) {
    bool isBackwardOrView = isBackward(&op) || isPassive(&op);
    if (isBackwardOrView && !op.use_empty() && llvm::all_of(op.getUses(), isForWeight))
      forWeights.insert(&op);
  }
  for (const OperatorGroup &group : groups.getOperators())
    isForWeights.push_back(isBackward(group.front()) &&
                           llvm::all_of(group.ops, [&](Operation *op) { return forWeights.contains(op); }));
}

void LeastTimes::findPositions() {
  func::FuncOp function = groups.getFunction();
  Position at = {0, 0, 0};
  int64_t lastOfBlocks = -1;
  for (Operation &op : function.front()) {
    positions[&op] = at;
    ++at.index;
    std::optional<unsigned> group = groups.getGroup(&op);
    if (!group)
      continue;
    bool counts = llvm::any_of(times[*group], [](int64_t each) { return each > 0; });
    at.before += counts;
    at.chainBefore += counts && !isForWeights[*group];
    if (groups.getOperators()[*group].ops.size() > 1)
      lastOfBlocks = positions[&op].index;
  }
  for (const OperatorGroup &group : groups.getOperators())
    isBehindBlocks.push_back(isBackward(group.front()) && lastOfBlocks >= 0 &&
                             positions.lookup(group.front()).index > lastOfBlocks);
}

Operation *LeastTimes::getFirstReader(Value value) const {
  Operation *first = nullptr;
  auto visit = [&](Operation *user) {
    if (groups.getGroup(user) && (!first || user->isBeforeInBlock(first)))
      first = user;
  };
  for (Operation *user : value.getUsers()) {
    visit(user);
    if (llvm::isa<train::StashOp>(user))
      llvm::for_each(user->getResult(0).getUsers(), visit);
  }
  return first;
}

bool LeastTimes::isReadNext(OpResult value, bool skipsWeightGradients) const {
  Operation *reader = getFirstReader(value);
  if (!reader)
    return false;
  auto count = [&](Operation *at) {
    Position position = positions.lookup(at);
    return skipsWeightGradients ? position.chainBefore : position.before;
  };
  return count(reader) == count(value.getOwner()->getNextNode());
}

bool LeastTimes::mayRecomputeBefore(OpResult value) const {
  auto isComputedStash = [](Value operand) {
    auto stash = operand.getDefiningOp<train::StashOp>();
    Operation *maker = stash ? findMaker(stash.getValue()) : nullptr;
    return maker && !isPassive(maker);
  };
  if (!isBackward(value.getOwner()))
    return false;
  Operation *op = value.getOwner(), *reader = getFirstReader(value);
  while (op != reader) {
    op = op->getNextNode();
    if (llvm::any_of(op->getOperands(), isComputedStash))
      return true;
  }
  return false;
}

bool LeastTimes::readsFirst(OpResult value, const Use &use) const {
  Operation *reader = getFirstReader(value);
  return reader && groups.getGroup(reader) == use.group && reader->getOperand(use.operand) == value;
}
