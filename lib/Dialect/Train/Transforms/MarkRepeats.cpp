// train-mark-repeats
#include "Blocks.h"
#include "windlass/Dialect/Train/IR/Optimizers.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <map>

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_MARKREPEATSPASS
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

namespace {

/// The most numbered components of a path that are tried, outermost first.
constexpr unsigned kDeepest = 3;

using Operations = SmallVector<Operation *>;
/// The blocks of one class by their number.
using Blocks = std::map<int64_t, Operations>;

/// Returns the operators, attributes, types and wiring of a block as text, equal for blocks that differ only in their
/// inputs and parameters. Attributes are compared by identity, so the text has a meaning within this process only.
std::string getSignature(ArrayRef<Operation *> block) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::DenseMap<Value, std::pair<unsigned, unsigned>> local;
  llvm::DenseMap<Value, unsigned> inputs;
  for (auto [position, op] : llvm::enumerate(block)) {
    out << op->getName();
    for (NamedAttribute attribute : op->getAttrDictionary()) {
      StringRef name = attribute.getName();
      bool isLabel = name == kIdAttr || name == kForwardAttr || name == plan::kRepeatAttr;
      if (!isLabel && !isa<FlatSymbolRefAttr>(attribute.getValue()))
        out << ' ' << name << '=' << attribute.getValue().getAsOpaquePointer();
    }
    for (Type type : op->getResultTypes())
      out << ' ' << type.getAsOpaquePointer();
    for (Value operand : op->getOperands()) {
      auto known = local.find(operand);
      auto constant = operand.getDefiningOp<ConstantOp>();
      if (known != local.end())
        out << " %" << known->second.first << '#' << known->second.second;
      else if (constant)
        out << " c" << Attribute(constant.getValue()).getAsOpaquePointer();
      else
        out << " i" << inputs.try_emplace(operand, inputs.size()).first->second << ':'
            << operand.getType().getAsOpaquePointer();
    }
    out << '\n';
    for (auto [number, value] : llvm::enumerate(op->getResults()))
      local[value] = {position, number};
  }
  return text;
}

void mark(ArrayRef<Operation *> block, StringRef className, int64_t index) {
  MLIRContext *context = block.front()->getContext();
  auto repeat = plan::RepeatAttr::get(context, StringAttr::get(context, className), index);
  for (Operation *op : block)
    op->setAttr(plan::kRepeatAttr, repeat);
}

/// Marks runs of blocks with consecutive numbers and equal signatures. The first structure found has the name of the
/// class, others have a suffix.
void markRuns(const Blocks &blocks, StringRef name) {
  llvm::StringMap<unsigned> structures;
  std::string previous;
  int64_t previousIndex = 0;
  const Operations *waiting = nullptr;
  for (const auto &[index, block] : blocks) {
    std::string signature = getSignature(block);
    bool isRepeat = waiting && index == previousIndex + 1 && signature == previous;
    if (isRepeat) {
      unsigned number = structures.try_emplace(signature, structures.size()).first->second;
      std::string className = number == 0 ? name.str() : (name + "#" + Twine(number)).str();
      mark(*waiting, className, previousIndex);
      mark(block, className, index);
    }
    previous = std::move(signature);
    previousIndex = index;
    waiting = &block;
  }
}

StringAttr getId(Operation *op) { return op->getAttrOfType<StringAttr>(kIdAttr); }

void markForward(Block &body) {
  llvm::DenseSet<Operation *> weightless = findWeightless(body);
  for (unsigned depth = 0; depth < kDeepest; ++depth) {
    llvm::DenseSet<Operation *> shared = findShared(body, weightless, depth);
    llvm::MapVector<StringAttr, Blocks> classes;
    for (Operation &op : body) {
      // Constants are shared between blocks; each block names those that it uses by value.
      if (!isForward(&op) || isa<ConstantOp>(op) || shared.contains(&op) || op.hasAttr(plan::kRepeatAttr) ||
          !getId(&op))
        continue;
      if (std::optional<Place> place = findPlace(getId(&op).getValue(), depth))
        classes[StringAttr::get(op.getContext(), place->prefix)][place->index].push_back(&op);
    }
    for (auto &[name, blocks] : classes) {
      for (auto block = blocks.begin(); block != blocks.end();)
        block = block->second.size() < kSmallestBlock ? blocks.erase(block) : std::next(block);
      markRuns(blocks, name.getValue());
    }
  }
}

/// Marks stash and adjoint operators: they belong to the block of their forward operator, and are compared among
/// themselves. The sum of a block's input gradients belongs to the block that makes them, although the input is another
/// block's result: so the last block, whose result has one use, does not differ from the others.
void markFollowers(Block &body) {
  llvm::DenseMap<StringAttr, plan::RepeatAttr> repeats;
  llvm::DenseMap<Operation *, plan::RepeatAttr> places;
  for (Operation &op : body)
    if (auto repeat = op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr))
      repeats[getId(&op)] = repeat;
  llvm::MapVector<StringAttr, Blocks> stash, adjoint;
  for (Operation &op : body) {
    plan::RepeatAttr repeat;
    if (isa<ConstantOp>(op))
      continue;
    if (auto sum = dyn_cast<AccumulateOp>(op)) {
      repeat = places.lookup(sum.getInputs().back().getDefiningOp());
    } else if (auto id = op.getAttrOfType<StringAttr>(kForwardAttr)) {
      repeat = repeats.lookup(id);
    } else if (auto stashOp = dyn_cast<StashOp>(op)) {
      if (Operation *source = stashOp.getValue().getDefiningOp())
        repeat = source->getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr);
    }
    places[&op] = repeat;
    if (repeat && !op.hasAttr(plan::kRepeatAttr))
      (isa<StashOp>(op) ? stash : adjoint)[repeat.getClassName()][repeat.getIndex()].push_back(&op);
  }
  for (auto *part : {&stash, &adjoint})
    for (auto &[name, blocks] : *part)
      markRuns(blocks, name.getValue());
}

/// Returns the parameter that an operator of a step takes first.
ParameterOp getFirstParameter(Operation *op) {
  auto read = op->getOperand(0).getDefiningOp<ReadOp>();
  return read ? SymbolTable::lookupNearestSymbolFrom<ParameterOp>(op, read.getParameterAttr()) : ParameterOp();
}

/// Whether the operator is the first one that takes state in a step of several operators.
bool beginsStep(Operation *op) {
  if (isa<LambOp, MomentumOp>(op))
    return true;
  // Adafactor's moments are averages of squares.
  ParameterOp state = isa<EmaOp>(op) ? getFirstParameter(op) : ParameterOp();
  return state && !state.isMovingAverage();
}

/// Returns the operators of a step that is several operators, in their order; `first` is one of them. All have ids that
/// begin with that of the weight; the reads come first, and those of the next weight follow.
Operations collectStep(Operation *first) {
  ParameterOp weight = getFirstParameter(first);
  if (weight.getOf())
    weight = SymbolTable::lookupNearestSymbolFrom<ParameterOp>(weight, weight.getOfAttr());
  std::string prefix = ("update/" + weight.getLogicalName() + "/").str();
  auto isOfStep = [&](Operation *op) { return getId(op) && getId(op).getValue().starts_with(prefix); };
  Operations block;
  for (Operation *op = first->getPrevNode(); op && !isa<WriteOp>(op); op = op->getPrevNode())
    if (isOfStep(op))
      block.insert(block.begin(), op);
  // Before the first step are the parts of the norm.
  block.erase(block.begin(), llvm::find_if(block, llvm::IsaPred<ReadOp>));
  for (Operation *op = first; op && !isa<ReadOp>(op); op = op->getNextNode())
    if (isOfStep(op))
      block.push_back(op);
  return block;
}

/// Marks the optimizer steps of parameters of one shape and with the same scalars as instances of one class, each with
/// its reads and writes, and likewise their parts of the norm.
void markUpdate(Block &body) {
  llvm::MapVector<StringAttr, Blocks> classes;
  std::map<SmallVector<void *>, size_t> numbers;
  auto add = [&](Operation *op, StringRef kind, Value shaped, Operations block) {
    std::string name;
    llvm::raw_string_ostream out(name);
    out << "update." << kind << '.';
    auto type = cast<RankedTensorType>(shaped.getType());
    for (int64_t size : type.getShape())
      out << size << 'x';
    out << type.getElementType() << (op->hasAttr("decays") ? ".decays" : "");
    SmallVector<void *> scalars;
    for (Value operand : op->getOperands())
      if (cast<RankedTensorType>(operand.getType()).getRank() == 0)
        scalars.push_back(operand.getAsOpaquePointer());
    // The steps of parameters whose rate or decay is scaled take other scalars.
    if (size_t number = scalars.empty() ? 0 : numbers.try_emplace(scalars, numbers.size()).first->second)
      out << ".scalars_" << number;
    Blocks &blocks = classes[StringAttr::get(op->getContext(), name)];
    blocks[blocks.size()] = std::move(block);
  };
  llvm::DenseSet<Operation *> collected;
  for (Operation &op : body) {
    if (collected.contains(&op))
      continue;
    if (isa<SquareSumOp>(op))
      add(&op, "square_sum", op.getOperand(0), {&op});
    if (!isOptimizerStep(&op))
      continue;
    if (beginsStep(&op)) {
      Operations block = collectStep(&op);
      collected.insert(block.begin(), block.end());
      // The weight is read first.
      Value weight = block.front()->getResult(0);
      add(&op, isa<EmaOp>(op) ? "adafactor" : op.getName().stripDialect(), weight, std::move(block));
      continue;
    }
    Operations block;
    for (Value operand : op.getOperands())
      if (auto read = operand.getDefiningOp<ReadOp>())
        block.push_back(read);
    block.push_back(&op);
    for (Operation *user : op.getUsers())
      if (isa<WriteOp>(user))
        block.push_back(user);
    llvm::sort(block, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    add(&op, op.getName().stripDialect(), op.getOperand(0), block);
  }
  for (auto &[name, blocks] : classes)
    markRuns(blocks, name.getValue());
}

class MarkRepeatsPass : public impl::MarkRepeatsPassBase<MarkRepeatsPass> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (StringRef name : {kMicrobatchFunction, kEvaluateFunction}) {
      auto function = module.lookupSymbol<func::FuncOp>(name);
      if (!function || function.isExternal())
        continue;
      markForward(function.front());
      markFollowers(function.front());
    }
    if (auto function = getUpdateFunction(module); function && !function.isExternal())
      markUpdate(function.front());
  }
};

} // namespace
} // namespace windlass::train
