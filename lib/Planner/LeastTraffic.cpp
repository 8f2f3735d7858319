#include "LeastTraffic.h"

#include "Makers.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

bool planner::isBackward(Operation *op) { return op->hasAttr(train::kForwardAttr); }
bool planner::isNorm(Operation *op) { return llvm::isa<train::LayerNormOp, train::RmsNormOp>(op); }
bool planner::isNormGradient(Operation *op) { return llvm::isa<train::LayerNormGradOp, train::RmsNormGradOp>(op); }

bool planner::isArithmetic(Operation *op) {
  auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
  return compute && compute.getPrecisionClass() == train::PrecisionClass::Contraction;
}

bool planner::isMap(Operation *op) {
  if (auto sum = llvm::dyn_cast<train::AccumulateOp>(op))
    return llvm::any_of(sum.getInputs(), [](Value term) {
      Operation *maker = findMaker(term);
      return maker && (llvm::isa<train::ScalarOpInterface, train::AttentionGradOp>(maker) || isNormGradient(maker));
    });
  return llvm::isa<train::ScalarOpInterface>(op) && op->getNumResults() == 1;
}

/// Whether a kernel, which is no element-wise function, writes the value to memory. The input's gradient of a norm may
/// never be written by itself.
static bool isMadeByKernel(Value value) {
  Operation *maker = findMaker(value);
  return maker && llvm::isa<train::TrainOpInterface>(maker) && !isMap(maker) && !isPassive(maker) &&
         !isNormGradient(maker) && !llvm::isa<train::AccumulateOp>(maker);
}

/// Whether a kernel reads a value, which is then in memory.
static bool isReadByKernel(Value value) {
  bool isRead = false;
  forEachReader(value, [&](Operation *reader) {
    isRead |= !isMap(reader) &&
              (isArithmetic(reader) || isNorm(reader) || isNormGradient(reader) || llvm::isa<train::ReduceOp>(reader));
  });
  return isRead;
}

/// Whether an element-wise function is the first of its pass, in program order, that reads the value.
static bool isFirstMap(Operation *op, Value value) {
  bool isFirst = true;
  forEachReader(findRoot(value), [&](Operation *reader) {
    isFirst &= reader == op || !isMap(reader) || isBackward(reader) != isBackward(op) || op->isBeforeInBlock(reader);
  });
  return isFirst;
}

/// Whether the operator has a command of its own whatever passes fuse.
static bool isKernel(Operation *op) { return !isPassive(op) && !isMap(op) && !llvm::isa<train::AccumulateOp>(op); }

LeastTraffic::LeastTraffic(func::FuncOp function, const Operators &copied) : copied(copied) {
  findBehind(function.front());
}

namespace {

/// An operator of a function in program order.
struct Step {
  Operation *op;
  /// The positions of what made its operands.
  llvm::SmallVector<size_t, 4> makers;
  /// The roots that it reads, by number, where it is an element-wise function or a kernel.
  llvm::SmallVector<unsigned, 4> roots;
  bool isKernel;
};

/// The operators of a block, and the roots of operands that element-wise functions make.
struct Steps {
  Steps(Block &block, const Operators &copied);

  std::vector<Step> steps;
  std::vector<Value> roots;
};

} // namespace

Steps::Steps(Block &block, const Operators &copied) {
  llvm::DenseMap<Operation *, size_t> positions;
  llvm::DenseMap<Value, unsigned> numbers;
  for (Operation &op : block) {
    Step step = {&op, {}, {}, isKernel(&op)};
    for (Value operand : op.getOperands()) {
      if (Operation *maker = operand.getDefiningOp())
        step.makers.push_back(positions.lookup(maker));
      Value root = findRoot(operand);
      Operation *maker = root.getDefiningOp();
      if (!maker || !isMap(maker) || copied.contains(maker) || (!step.isKernel && !isMap(&op)))
        continue;
      step.roots.push_back(numbers.try_emplace(root, roots.size()).first->second);
      if (step.roots.back() == roots.size())
        roots.push_back(root);
    }
    positions[&op] = steps.size();
    steps.push_back(std::move(step));
  }
}

void LeastTraffic::findBehind(Block &block) {
  Steps all(block, copied);
  // A bit for each of 64 roots says whether a kernel that reads it runs before the results of an operator are made.
  constexpr unsigned kRoots = 64;
  std::vector<uint64_t> known(all.steps.size());
  for (unsigned first = 0; first < all.roots.size(); first += kRoots) {
    for (auto [step, out] : llvm::zip_equal(all.steps, known)) {
      out = 0;
      for (size_t maker : step.makers)
        out |= known[maker];
      for (unsigned root : step.roots) {
        if (root < first || root >= first + kRoots)
          continue;
        uint64_t bit = uint64_t(1) << (root - first);
        if (step.isKernel)
          out |= bit;
        else if (out & bit)
          behind.insert({step.op, all.roots[root]});
      }
    }
  }
}

Traffic LeastTraffic::getMapTraffic(Operation *op) const {
  Traffic traffic;
  traffic.hasCommand = false;
  llvm::SmallVector<Value, 4> seen;
  for (OpOperand &operand : op->getOpOperands()) {
    Value root = findRoot(operand.get());
    Operation *maker = root.getDefiningOp();
    bool isInMemory = isMadeByKernel(operand.get()) ||
                      (maker && isMap(maker) && !copied.contains(maker) && behind.contains({op, root}));
    if (llvm::is_contained(seen, root) || !isInMemory || !isFirstMap(op, operand.get()))
      continue;
    seen.push_back(root);
    traffic.operands.push_back(operand.getOperandNumber());
  }
  if (isReadByKernel(op->getResult(0)))
    traffic.results.push_back(0);
  return traffic;
}

/// Whether a value in f32 may be written in 16 bits: a gradient that the product or sum which makes it rounds for the
/// transfer.
static bool mayBeRounded(Value value) {
  Operation *op = value.getDefiningOp();
  return llvm::isa<train::MatmulOp, train::ReduceOp>(op) && op->hasAttr("wide") &&
         train::sendsBf16Gradients(op->getParentOfType<ModuleOp>());
}

std::optional<Traffic> LeastTraffic::get(Operation *op) const {
  if (isPassive(op))
    return std::nullopt;
  if (isMap(op))
    return getMapTraffic(op);
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
      if (!mayBeRounded(op->getResult(result)))
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
