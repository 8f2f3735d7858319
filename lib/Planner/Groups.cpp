#include "Groups.h"

#include "windlass/Support/TensorBytes.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

using Operations = std::vector<Operation *>;

Groups::Groups(OperatorRange its, const plan::Pins &pins) : range(std::move(its)), function(range.getFunction()) {
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  groupOperators(pins, symbols);
  groupParameters(symbols);
  findBorder();
}

/// Whether two blocks have operators of the same kinds and types, one by one.
static bool areAlike(const Operations &a, const Operations &b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](Operation *left, Operation *right) {
           return left->getName() == right->getName() && left->getOperandTypes() == right->getOperandTypes() &&
                  left->getResultTypes() == right->getResultTypes();
         });
}

/// Describes what blocks that choose alike must have in common besides their operators, one by one: the pins of these
/// and of the parameters that they read, and which of those train.
static std::vector<std::string> describe(const Operations &block, const plan::Pins &pins, SymbolTable &symbols) {
  std::vector<std::string> words;
  auto add = [&](Operation *op) {
    auto found = pins.ops.find(op);
    bool isPinned = found != pins.ops.end();
    words.push_back(isPinned ? found->second.strategyPin : "");
    words.push_back(isPinned ? found->second.layoutPin : "");
  };
  for (Operation *op : block) {
    add(op);
    for (Value operand : op->getOperands())
      if (auto read = operand.getDefiningOp<train::ReadOp>()) {
        add(read);
        StringAttr name = read.getParameterAttr().getAttr();
        words.push_back(symbols.lookup<train::ParameterOp>(name).getTrainable() ? "trains" : "");
        if (auto found = pins.parameters.find(name); found != pins.parameters.end())
          for (auto &[copy, pin] : found->second)
            words.push_back(copy + " " + pin.second);
      }
  }
  return words;
}

void Groups::groupOperators(const plan::Pins &pins, SymbolTable &symbols) {
  llvm::MapVector<StringAttr, std::map<int64_t, Operations>> classes;
  for (Operation &op : function.front().without_terminator())
    if (auto repeat = op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr); repeat && range.contains(&op))
      classes[repeat.getClassName()][repeat.getIndex()].push_back(&op);
  // The leader of each operator: the one of the first block that is like its own.
  llvm::DenseMap<Operation *, Operation *> leaders;
  for (auto &[name, blocks] : classes) {
    std::map<std::vector<std::string>, const Operations *> fronts;
    for (auto &[index, block] : blocks) {
      const Operations &front = *fronts.try_emplace(describe(block, pins, symbols), &block).first->second;
      if (areAlike(front, block))
        for (auto [op, leader] : llvm::zip_equal(block, front))
          leaders[op] = leader;
    }
  }
  llvm::DenseMap<Operation *, unsigned> groupOf;
  for (Operation &op : function.front().without_terminator()) {
    if (!range.contains(&op))
      continue;
    Operation *leader = leaders.contains(&op) ? leaders[&op] : &op;
    // The backward pass meets the first block last.
    auto [it, isNew] = groupOf.try_emplace(leader, operators.size());
    if (isNew)
      operators.emplace_back();
    unsigned group = it->second;
    operators[group].ops.push_back(&op);
    operatorGroups[&op] = group;
  }
}

/// Groups parameters that the same operands of one operator group read.
void Groups::groupParameters(SymbolTable &symbols) {
  llvm::EquivalenceClasses<const void *> equal;
  std::map<Use, const void *> readers;
  llvm::MapVector<StringAttr, std::vector<train::ReadOp>> readsOf;
  for (auto read : function.getOps<train::ReadOp>()) {
    if (!range.isWhole() && getUses(read.getResult()).empty())
      continue;
    StringAttr name = read.getParameterAttr().getAttr();
    readsOf[name].push_back(read);
    equal.insert(name.getAsOpaquePointer());
    for (auto &[use, count] : getUses(read.getResult())) {
      auto [it, isNew] = readers.try_emplace(use, name.getAsOpaquePointer());
      if (!isNew)
        equal.unionSets(it->second, name.getAsOpaquePointer());
    }
  }
  llvm::DenseMap<StringAttr, SmallVector<train::ParameterOp, 2>> states;
  for (auto state : function->getParentOfType<ModuleOp>().getOps<train::ParameterOp>())
    if (auto of = state.getOfAttr())
      states[of.getAttr()].push_back(state);
  llvm::DenseMap<const void *, unsigned> groupOf;
  for (auto &[name, reads] : readsOf) {
    auto [it, isNew] = groupOf.try_emplace(equal.getLeaderValue(name.getAsOpaquePointer()), parameters.size());
    if (isNew)
      parameters.emplace_back();
    ParameterGroup &group = parameters[it->second];
    group.parameters.push_back(symbols.lookup<train::ParameterOp>(name));
    llvm::append_range(group.reads, reads);
    if (isNew)
      for (train::ParameterOp state : states.lookup(name)) {
        bool isLikeWeight = state.getTensorType() == group.getType();
        group.states += isLikeWeight;
        group.wholeStateBytes += isLikeWeight ? 0 : getTensorBytes(state.getTensorType());
        group.hasAverage |= state.isMovingAverage();
      }
    parameterGroups[name] = it->second;
  }
}

void Groups::findBorder() {
  for (Operation &op : function.front())
    if (llvm::isa<train::TrainOpInterface>(op) && !range.contains(&op))
      for (Value result : op.getResults())
        if (!getUses(result).empty())
          border.push_back(result);
}

std::optional<unsigned> Groups::getGroup(Operation *op) const {
  auto found = operatorGroups.find(op);
  return found == operatorGroups.end() ? std::nullopt : std::optional<unsigned>(found->second);
}

void Groups::addUses(Value value, bool isStashed, Uses &uses) const {
  for (OpOperand &use : value.getUses()) {
    if (auto stash = llvm::dyn_cast<train::StashOp>(use.getOwner()))
      addUses(stash.getResult(), true, uses);
    else if (std::optional<unsigned> group = getGroup(use.getOwner()))
      ++uses[{*group, use.getOperandNumber(), isStashed}];
  }
}

Uses Groups::getUses(Value value) const {
  Uses uses;
  addUses(value, false, uses);
  return uses;
}

Uses Groups::getUses(unsigned group, unsigned result) const {
  Uses uses;
  for (Operation *op : operators[group].ops)
    addUses(op->getResult(result), false, uses);
  return uses;
}

Uses Groups::getParameterUses(unsigned group) const {
  Uses uses;
  for (train::ReadOp read : parameters[group].reads)
    addUses(read->getResult(0), false, uses);
  return uses;
}

std::map<unsigned, int64_t> Groups::getGradients(unsigned group, unsigned result) const {
  std::map<unsigned, int64_t> counts;
  func::FuncOp microbatch = function;
  for (Operation *op : operators[group].ops)
    for (OpOperand &use : op->getResult(result).getUses())
      if (llvm::isa<func::ReturnOp>(use.getOwner()))
        if (auto name = microbatch.getResultAttrOfType<FlatSymbolRefAttr>(use.getOperandNumber(), train::kGradientAttr))
          if (auto found = parameterGroups.find(name.getAttr()); found != parameterGroups.end())
            ++counts[found->second];
  return counts;
}
