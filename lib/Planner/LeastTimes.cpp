#include "LeastTimes.h"

#include "Epilogues.h"
#include "Makers.h"

#include "windlass/Support/TensorBytes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

namespace {

RankedTensorType typeOf(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }
bool isBackward(Operation *op) { return op->hasAttr(train::kForwardAttr); }
bool isNorm(Operation *op) { return llvm::isa<train::LayerNormOp, train::RmsNormOp>(op); }
bool isNormGradient(Operation *op) { return llvm::isa<train::LayerNormGradOp, train::RmsNormGradOp>(op); }

/// Whether the operator's arithmetic is what counts: products, convolutions, attention.
bool isArithmetic(Operation *op) {
  auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
  return compute && compute.getPrecisionClass() == train::PrecisionClass::Contraction;
}

/// Whether the operator becomes a map. A sum does unless kernels may add all of its terms to one buffer.
bool isMap(Operation *op) {
  if (auto sum = llvm::dyn_cast<train::AccumulateOp>(op))
    return llvm::any_of(sum.getInputs(), [](Value term) {
      Operation *maker = findMaker(term);
      return maker && (llvm::isa<train::ScalarOpInterface, train::AttentionGradOp>(maker) || isNormGradient(maker));
    });
  return llvm::isa<train::ScalarOpInterface>(op) && op->getNumResults() == 1;
}

/// Whether a kernel, which is no element-wise function, writes the value to memory. The input's gradient of a norm may
/// never be written by itself.
bool isMadeByKernel(Value value) {
  Operation *maker = findMaker(value);
  return maker && llvm::isa<train::TrainOpInterface>(maker) && !isMap(maker) && !isPassive(maker) &&
         !isNormGradient(maker) && !llvm::isa<train::AccumulateOp>(maker);
}

/// Whether a kernel reads a value, which is then in memory.
bool isReadByKernel(Value value) {
  bool isRead = false;
  forEachReader(value, [&](Operation *reader) {
    isRead |= !isMap(reader) &&
              (isArithmetic(reader) || isNorm(reader) || isNormGradient(reader) || llvm::isa<train::ReduceOp>(reader));
  });
  return isRead;
}

/// Whether an element-wise function is the first of its pass, in program order, that reads the value.
bool isFirstMap(Operation *op, Value value) {
  bool isFirst = true;
  forEachReader(findRoot(value), [&](Operation *reader) {
    isFirst &= reader == op || !isMap(reader) || isBackward(reader) != isBackward(op) || op->isBeforeInBlock(reader);
  });
  return isFirst;
}

/// Whether a kernel that depends on `value` has run before `op` can: what made the value then stands in another
/// command. Looks at the operators between the two, in program order.
bool isBehindKernelOf(Operation *op, Value value) {
  Operation *maker = value.getDefiningOp();
  llvm::SmallSetVector<Operation *, 32> behind;
  auto addOperands = [&](Operation *of) {
    for (Value operand : of->getOperands())
      if (Operation *its = operand.getDefiningOp(); its && its != maker && maker->isBeforeInBlock(its))
        behind.insert(its);
  };
  addOperands(op);
  for (size_t i = 0; i < behind.size(); ++i) {
    Operation *its = behind[i];
    bool isKernel = !isPassive(its) && !isMap(its) && !llvm::isa<train::AccumulateOp>(its);
    if (isKernel && llvm::any_of(its->getOperands(), [&](Value operand) { return findRoot(operand) == value; }))
      return true;
    addOperands(its);
  }
  return false;
}

/// The operands that an operator is certain to read from memory, the results that it is certain to write, and whether
/// the command that does so is its own.
struct Traffic {
  llvm::SmallVector<unsigned, 4> operands, results;
  bool hasCommand = true;
};

using Copied = llvm::DenseSet<Operation *>;

/// `copied` are the operators that run once more in each chunk that needs them.
Traffic getMapTraffic(Operation *op, const Copied &copied) {
  Traffic traffic;
  traffic.hasCommand = false;
  llvm::SmallVector<Value, 4> seen;
  for (OpOperand &operand : op->getOpOperands()) {
    Value root = findRoot(operand.get());
    Operation *maker = root.getDefiningOp();
    bool isInMemory = isMadeByKernel(operand.get()) ||
                      (maker && isMap(maker) && !copied.contains(maker) && isBehindKernelOf(op, root));
    if (llvm::is_contained(seen, root) || !isInMemory || !isFirstMap(op, operand.get()))
      continue;
    seen.push_back(root);
    traffic.operands.push_back(operand.getOperandNumber());
  }
  if (isReadByKernel(op->getResult(0)))
    traffic.results.push_back(0);
  return traffic;
}

/// Returns the traffic of an operator; nothing for one that may cost nothing.
std::optional<Traffic> getTraffic(Operation *op, const Copied &copied) {
  if (isPassive(op))
    return std::nullopt;
  if (isMap(op))
    return getMapTraffic(op, copied);
  if (isNorm(op)) {
    Traffic traffic;
    if (isMadeByKernel(op->getOperand(0)))
      traffic.operands = {0};
    traffic.results = {0};
    return traffic;
  }
  if (isNormGradient(op)) {
    Traffic traffic;
    traffic.operands = {0, 1};
    if (isReadByKernel(op->getResult(0)))
      traffic.results = {0};
    return traffic;
  }
  if (llvm::isa<train::SoftmaxCrossEntropyGradOp>(op)) {
    Traffic traffic;
    traffic.operands = {1};
    traffic.results = {0};
    return traffic;
  }
  if (isArithmetic(op) || llvm::isa<train::ReduceOp, train::EmbeddingGradOp>(op)) {
    Traffic traffic;
    llvm::SmallVector<Value, 8> seen;
    for (OpOperand &operand : op->getOpOperands())
      if (!llvm::is_contained(seen, findRoot(operand.get()))) {
        seen.push_back(findRoot(operand.get()));
        traffic.operands.push_back(operand.getOperandNumber());
      }
    for (unsigned result = 0; result < op->getNumResults(); ++result)
      traffic.results.push_back(result);
    return traffic;
  }
  if (llvm::isa<train::EmbeddingOp, train::SoftmaxOp, train::SoftmaxGradOp, train::RotaryOp, train::DropoutOp>(op)) {
    Traffic traffic;
    traffic.results = {0};
    return traffic;
  }
  return std::nullopt;
}

} // namespace

LeastTimes::LeastTimes(const Groups &groups, const Labels &labels, const CostModel &costs, plan::MeshAttr mesh,
                       bool isCut)
    : groups(groups), labels(labels), mesh(mesh), isCut(isCut), times(groups.getOperators().size()),
      recomputed(groups.getOperators().size()) {
  if (isCut)
    findCopied();
  findWeightGradients();
  for (unsigned group = 0; group < groups.getOperators().size(); ++group)
    addTimes(group, costs);
  findPositions();
}

void LeastTimes::findCopied() {
  llvm::DenseSet<StringAttr> trained;
  for (const ParameterGroup &group : groups.getParameters())
    for (train::ParameterOp parameter : group.parameters)
      if (parameter.getTrainable())
        trained.insert(parameter.getSymNameAttr());
  auto isCopied = [&](Value operand) {
    Operation *maker = operand.getDefiningOp();
    return !maker || copied.contains(maker);
  };
  for (Operation &op : groups.getFunction().front()) {
    auto read = llvm::dyn_cast<train::ReadOp>(op);
    if (read ? !trained.contains(read.getParameterAttr().getAttr()) : llvm::all_of(op.getOperands(), isCopied))
      copied.insert(&op);
  }
}

/// Returns the traffic that all members of a group have; nothing where one may cost nothing.
static std::optional<Traffic> getCommonTraffic(const OperatorGroup &group, const Copied &copied) {
  std::optional<Traffic> common = getTraffic(group.front(), copied);
  for (Operation *op : llvm::drop_begin(group.ops)) {
    std::optional<Traffic> own = getTraffic(op, copied);
    if (!common || !own)
      return std::nullopt;
    llvm::erase_if(common->operands, [&](unsigned each) { return !llvm::is_contained(own->operands, each); });
    llvm::erase_if(common->results, [&](unsigned each) { return !llvm::is_contained(own->results, each); });
  }
  return common;
}

/// Whether a label splits a factor over which an operator reduces inside.
static bool splitsInner(Operation *op, const OperatorLabel &label) {
  train::OpFactors factors = llvm::cast<train::TrainOpInterface>(op).getFactors();
  return llvm::any_of(factors.factors, [&](const auto &factor) {
    return factor.kind == train::FactorKind::Inner && !label.strategy.axesOf(factor.name).empty();
  });
}

void LeastTimes::addTimes(unsigned group, const CostModel &costs) {
  const OperatorGroup &its = groups.getOperators()[group];
  Operation *op = its.front();
  std::optional<Traffic> traffic = getCommonTraffic(its, copied);
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

bool LeastTimes::isReadNext(unsigned group, unsigned result, bool skipsWeightGradients) const {
  return llvm::all_of(groups.getOperators()[group].ops, [&](Operation *op) {
    Operation *reader = getFirstReader(op->getResult(result));
    if (!reader)
      return false;
    auto count = [&](Operation *at) {
      Position position = positions.lookup(at);
      return skipsWeightGradients ? position.chainBefore : position.before;
    };
    return count(reader) == count(op->getNextNode());
  });
}

bool LeastTimes::readsFirst(unsigned group, unsigned result, const Use &use) const {
  return llvm::all_of(groups.getOperators()[group].ops, [&](Operation *op) {
    Operation *reader = getFirstReader(op->getResult(result));
    return reader && groups.getGroup(reader) == use.group && reader->getOperand(use.operand) == op->getResult(result);
  });
}
