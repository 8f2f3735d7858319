// train-merge-micro-batches
#include "windlass/Dialect/Train/Transforms/MergeMicroBatches.h"

#include "windlass/Dialect/Train/IR/FitAttributes.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"

#include "mlir/IR/IRMapping.h"

#include <iterator>
#include <numeric>

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_MERGEMICROBATCHESPASS
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

std::optional<std::string> whyNotMerged(func::FuncOp loss) {
  for (BlockArgument argument : loss.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType()); !type || type.getRank() == 0) {
      auto name = loss.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kInputAttr);
      return "input " + (name ? printable(name.getValue()) : std::to_string(argument.getArgNumber())) +
             " has no dim of samples";
    }
  for (Operation &op : loss.front())
    if (isa<TrackStatisticOp>(op))
      return "the model's running statistics are those of one micro-batch after another";
  return std::nullopt;
}

Value getMergedLosses(ModuleOp module, Value loss) {
  return getMerge(module) == 1 ? Value() : loss.getDefiningOp<MulOp>().getLhs().getDefiningOp<ReduceOp>().getInput();
}

SmallVector<Value> getEachLoss(Value losses) {
  SmallVector<Value> each;
  for (Value row : losses.getDefiningOp<ConcatOp>().getInputs())
    each.push_back(row.getDefiningOp<ReshapeOp>().getInput());
  return each;
}

namespace {

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// Returns the dim of a reshaped tensor in which micro-batches follow one another where they do so in dim `dim` of the
/// tensor before; nothing where no dim begins there.
std::optional<int64_t> findReshaped(ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t dim, int64_t batch) {
  int64_t before = 1, passed = 1;
  for (int64_t size : from.take_front(dim))
    before *= size;
  std::optional<int64_t> found;
  for (auto [index, size] : llvm::enumerate(to)) {
    // Dims of size 1 leave a choice. Operators that follow expect the one that holds the samples.
    if (passed == before && (!found || to[*found] % batch != 0))
      found = static_cast<int64_t>(index);
    passed *= size;
  }
  return found;
}

/// Where an operator's operands and results have their micro-batches: a dim of each, -1 where a value has none.
struct BatchDims {
  SmallVector<int64_t> operands, results;
};

/// Returns the dim of which `factor` is the most significant one, -1 where no dim has it; nothing where micro-batches
/// would not follow one another in one dim.
std::optional<int64_t> findLeading(const ValueFactors &value, unsigned factor) {
  int64_t found = -1;
  for (auto [dim, factors] : llvm::enumerate(value)) {
    auto place = llvm::find(factors, factor);
    if (place == factors.end())
      continue;
    if (place != factors.begin() || found >= 0)
      return std::nullopt;
    found = static_cast<int64_t>(dim);
  }
  return found;
}

/// Returns where `op` has its micro-batches if `factor` iterates over their samples, or nothing if it combines samples.
std::optional<BatchDims> findDimsOf(const OpFactors &factors, unsigned factor) {
  const Factor &its = factors.factors[factor];
  if (its.kind != FactorKind::Parallel || its.isTakenApart())
    return std::nullopt;
  BatchDims dims;
  for (const ValueFactors &operand : factors.operands) {
    std::optional<int64_t> dim = findLeading(operand, factor);
    if (!dim)
      return std::nullopt;
    dims.operands.push_back(*dim);
  }
  for (const ValueFactors &result : factors.results) {
    std::optional<int64_t> dim = findLeading(result, factor);
    if (!dim || *dim < 0)
      return std::nullopt;
    dims.results.push_back(*dim);
  }
  return dims;
}

/// As `findDimsOf`, for the factor of dim `dim` of an operand. `batch` is the number of samples in a micro-batch.
std::optional<BatchDims> findDimsFrom(Operation *op, unsigned operand, int64_t dim, int64_t batch) {
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    std::optional<int64_t> other = findReshaped(shapeOf(reshape.getInput()), shapeOf(reshape.getResult()), dim, batch);
    return other ? std::optional(BatchDims{{dim}, {*other}}) : std::nullopt;
  }
  auto computes = dyn_cast<TrainOpInterface>(op);
  if (!computes)
    return std::nullopt;
  OpFactors factors = computes.getFactors();
  const DimFactors &its = factors.operands[operand][dim];
  return its.empty() ? std::nullopt : findDimsOf(factors, its.front());
}

/// Rewrites the graph of one micro-batch to that of `count` of them. A value of the old graph becomes
///  - one value of the same size, where it depends on no input;
///  - one value with `count` times as many elements in one dim, in which the micro-batches follow one another; or
///  - `count` values, where an operator combines samples, as the mean over a batch does: such operators and all that
///    use their results are copied.
class Merger {
public:
  Merger(func::FuncOp function, int64_t count)
      : function(function), count(count), old(function.front()), builder(function.getContext()) {
    for (BlockArgument argument : old.getArguments())
      batch = std::gcd(batch, shapeOf(argument).front());
  }
  void run();

private:
  // What becomes of each value.
  void analyze();
  std::optional<BatchDims> findDims(Operation &op);
  void moveCut();
  void moveCutBefore(Value value);
  bool isCopied(Operation *op) const { return copied.contains(op); }

  // The new graph.
  Value getMerged(Value value, int64_t dim);
  Value getCopy(Value value, int64_t copy);
  Value repeat(Value value, int64_t dim);
  Operation *enlarge(Operation &op, const BatchDims &its);
  void copy(Operation &op);
  Value buildMean(Value loss);
  RankedTensorType enlarge(RankedTensorType type, int64_t dim) const;

  void setId(Operation *op, const Twine &id) { op->setAttr(kIdAttr, builder.getStringAttr(id)); }
  std::string nameOf(Value value);

  func::FuncOp function;
  int64_t count;
  Block &old;
  OpBuilder builder;
  /// The number of samples that all inputs of a micro-batch have in common.
  int64_t batch = 0;
  /// The dim of micro-batches of each value that is enlarged.
  llvm::DenseMap<Value, int64_t> dims;
  llvm::DenseMap<Operation *, BatchDims> enlarged;
  llvm::DenseSet<Operation *> copied;
  /// Old values to new ones, but those of copied operators.
  IRMapping map;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> repeated;
  llvm::DenseMap<Value, SmallVector<Value>> copies;
};

std::optional<BatchDims> Merger::findDims(Operation &op) {
  auto batched = llvm::find_if(op.getOpOperands(), [&](OpOperand &operand) { return dims.contains(operand.get()); });
  std::optional<BatchDims> its = findDimsFrom(&op, batched->getOperandNumber(), dims.lookup(batched->get()), batch);
  if (!its)
    return std::nullopt;
  for (auto [operand, dim] : llvm::zip_equal(op.getOperands(), its->operands)) {
    auto known = dims.find(operand);
    if (known != dims.end() && dim != known->second)
      return std::nullopt;
  }
  return its;
}

void Merger::analyze() {
  for (BlockArgument argument : old.getArguments())
    dims[argument] = 0;
  for (Operation &op : old.without_terminator()) {
    auto isOfCopy = [&](Value operand) { return operand.getDefiningOp() && isCopied(operand.getDefiningOp()); };
    if (llvm::any_of(op.getOperands(), isOfCopy)) {
      copied.insert(&op);
      continue;
    }
    if (llvm::none_of(op.getOperands(), [&](Value operand) { return dims.contains(operand); }))
      continue;
    std::optional<BatchDims> its = findDims(op);
    if (!its) {
      copied.insert(&op);
      continue;
    }
    for (auto [result, dim] : llvm::zip_equal(op.getResults(), its->results))
      dims[result] = dim;
    enlarged[&op] = std::move(*its);
  }
}

/// Copies the operators right before a cut, too, where less is cut then: the states before the product that makes
/// logits, in place of the logits. It goes no further, because each product that is copied is two smaller ones.
void Merger::moveCut() {
  SmallVector<Value> cut;
  for (Operation &op : old)
    for (Value value : op.getResults())
      if (dims.contains(value) && llvm::any_of(value.getUsers(), [&](Operation *user) { return isCopied(user); }))
        cut.push_back(value);
  for (Value value : cut)
    moveCutBefore(value);
}

void Merger::moveCutBefore(Value value) {
  auto bytesOf = [](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getNumElements() * static_cast<int64_t>(type.getElementTypeBitWidth());
  };
  // Views and casts stand between a loss and its product, so that not each step makes the cut smaller.
  constexpr int kFarthest = 8;
  llvm::SmallSetVector<Operation *, 8> passed;
  const int64_t bytes = bytesOf(value);
  for (int step = 0; step < kFarthest; ++step) {
    Operation *op = value.getDefiningOp();
    auto isLeft = [&](Operation *user) { return isCopied(user) || passed.contains(user); };
    if (!op || !llvm::all_of(op->getUsers(), isLeft))
      return;
    SmallVector<Value> operands;
    llvm::copy_if(op->getOperands(), std::back_inserter(operands), [&](Value each) { return dims.contains(each); });
    if (operands.size() != 1)
      return;
    passed.insert(op);
    value = operands.front();
    if (bytesOf(value) >= bytes)
      continue;
    for (Operation *each : passed) {
      copied.insert(each);
      enlarged.erase(each);
      for (Value result : each->getResults())
        dims.erase(result);
    }
    return;
  }
}

RankedTensorType Merger::enlarge(RankedTensorType type, int64_t dim) const {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] *= count;
  return RankedTensorType::get(shape, type.getElementType());
}

/// Builds `op` for all micro-batches.
Operation *Merger::enlarge(Operation &op, const BatchDims &its) {
  IRMapping operands;
  for (auto [operand, dim] : llvm::zip_equal(op.getOperands(), its.operands))
    operands.map(operand, dim < 0 ? map.lookup(operand) : getMerged(operand, dim));
  Operation *all = builder.clone(op, operands);
  for (auto [result, dim] : llvm::zip_equal(all->getResults(), its.results))
    result.setType(enlarge(cast<RankedTensorType>(result.getType()), dim));
  // Its factors say that it can be computed at any number of samples.
  [[maybe_unused]] std::string wrong = fitAttributes(op, all);
  assert(wrong.empty() && "a parallel factor whose size an attribute fixes");
  return all;
}

Value Merger::getMerged(Value value, int64_t dim) {
  if (dims.contains(value))
    return map.lookup(value);
  Value &known = repeated[{value, dim}];
  if (!known)
    known = repeat(value, dim);
  return known;
}

/// Builds what a value that depends on no input is for all micro-batches: the same for each.
Value Merger::repeat(Value value, int64_t dim) {
  RankedTensorType type = enlarge(cast<RankedTensorType>(value.getType()), dim);
  Location loc = value.getLoc();
  std::string name = nameOf(value) + ".repeated." + std::to_string(dim);
  if (auto constant = value.getDefiningOp<ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return ConstantOp::create(builder, loc, type, splat.resizeSplat(type));
  if (auto broadcast = value.getDefiningOp<BroadcastOp>(); broadcast && !llvm::is_contained(broadcast.getDims(), dim)) {
    Value all = BroadcastOp::create(builder, loc, type, map.lookup(broadcast.getInput()), broadcast.getDims());
    setId(all.getDefiningOp(), name);
    return all;
  }
  SmallVector<int64_t> shape(shapeOf(value)), kept;
  shape.insert(shape.begin() + dim, count);
  for (int64_t each = 0; each < static_cast<int64_t>(shape.size()); ++each)
    if (each != dim)
      kept.push_back(each);
  Value all =
      BroadcastOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), map.lookup(value), kept);
  setId(all.getDefiningOp(), name);
  auto joined = ReshapeOp::create(builder, loc, type, all);
  setId(joined, name + ".joined");
  return joined;
}

std::string Merger::nameOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return "input." + std::to_string(argument.getArgNumber());
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  auto id = op->getAttrOfType<StringAttr>(kIdAttr);
  // Constants need no id.
  std::string name =
      id ? id.getValue().str() : "unnamed." + std::to_string(std::distance(old.begin(), op->getIterator()));
  return name + "." + std::to_string(result.getResultNumber());
}

Value Merger::getCopy(Value value, int64_t copy) {
  auto dim = dims.find(value);
  if (auto known = copies.find(value); known != copies.end())
    return known->second[copy];
  if (dim == dims.end())
    return map.lookup(value);
  SmallVector<Value> &parts = copies[value];
  SmallVector<int64_t> starts(shapeOf(value).size(), 0);
  for (int64_t part = 0; part < count; ++part) {
    starts[dim->second] = part * shapeOf(value)[dim->second];
    parts.push_back(SliceOp::create(builder, value.getLoc(), map.lookup(value), starts, shapeOf(value)));
    setId(parts.back().getDefiningOp(), nameOf(value) + ".micro_batch." + Twine(part));
  }
  return parts[copy];
}

void Merger::copy(Operation &op) {
  for (int64_t number = 0; number < count; ++number) {
    IRMapping operands;
    for (Value operand : op.getOperands())
      operands.map(operand, getCopy(operand, number));
    Operation *its = builder.clone(op, operands);
    if (auto id = op.getAttrOfType<StringAttr>(kIdAttr))
      setId(its, id.getValue() + ".micro_batch." + Twine(number));
    for (auto [result, copy] : llvm::zip_equal(op.getResults(), its->getResults()))
      copies[result].push_back(copy);
  }
}

Value Merger::buildMean(Value loss) {
  Location loc = loss.getLoc();
  std::string name = nameOf(loss);
  Type element = cast<RankedTensorType>(loss.getType()).getElementType();
  SmallVector<Value> rows;
  for (int64_t part = 0; part < count; ++part) {
    rows.push_back(ReshapeOp::create(builder, loc, RankedTensorType::get({1}, element), getCopy(loss, part)));
    setId(rows.back().getDefiningOp(), name + ".row." + Twine(part));
  }
  auto losses = ConcatOp::create(builder, loc, rows, builder.getI64IntegerAttr(0));
  setId(losses, name + ".losses");
  auto sum = ReduceOp::create(builder, loc, ReductionKind::sum, losses, builder.getDenseI64ArrayAttr({0}));
  setId(sum, name + ".sum");
  auto share = DenseElementsAttr::get(cast<RankedTensorType>(loss.getType()),
                                      Attribute(builder.getFloatAttr(element, 1.0 / static_cast<double>(count))));
  auto mean = MulOp::create(builder, loc, sum, ConstantOp::create(builder, loc, loss.getType(), share));
  setId(mean, name + ".mean");
  return mean;
}

void Merger::run() {
  analyze();
  moveCut();
  SmallVector<Type> types;
  for (BlockArgument argument : old.getArguments())
    types.push_back(enlarge(cast<RankedTensorType>(argument.getType()), 0));
  auto *block = new Block();
  function.getBody().push_back(block);
  for (auto [argument, type] : llvm::zip_equal(old.getArguments(), types))
    map.map(argument, block->addArgument(type, argument.getLoc()));
  builder.setInsertionPointToStart(block);
  for (Operation &op : old.without_terminator()) {
    auto its = enlarged.find(&op);
    if (isCopied(&op))
      copy(op);
    else if (its == enlarged.end())
      builder.clone(op, map);
    else
      map.map(op.getResults(), enlarge(op, its->second)->getResults());
  }
  Operation *end = old.getTerminator();
  func::ReturnOp::create(builder, end->getLoc(), buildMean(end->getOperand(0)));
  old.dropAllReferences();
  old.erase();
  function.setType(builder.getFunctionType(types, function.getResultTypes()));
}

class MergeMicroBatchesPass : public impl::MergeMicroBatchesPassBase<MergeMicroBatchesPass> {
public:
  using MergeMicroBatchesPassBase::MergeMicroBatchesPassBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto function = getLossFunction(module);
    if (!function || function.isExternal()) {
      module.emitError() << "there is no function @" << kLossFunction
                         << " with a body; micro-batches are merged before train-differentiate";
      return signalPassFailure();
    }
    if (count < 1 || count > kMostMerged) {
      module.emitError() << "cannot merge " << count.getValue() << " micro-batches; give a number from 1 to "
                         << kMostMerged;
      return signalPassFailure();
    }
    if (count == 1)
      return;
    if (std::optional<std::string> why = whyNotMerged(function)) {
      emitError(function.getLoc(), Code::contradiction)
          << "micro-batches of this model cannot be merged, because " << *why << "; leave --merge out";
      return signalPassFailure();
    }
    Merger(function, count).run();
    Builder builder(module.getContext());
    NamedAttrList settings(module->getAttrOfType<DictionaryAttr>(kSettingsAttr));
    settings.set(kMergeSetting, builder.getI64IntegerAttr(count));
    module->setAttr(kSettingsAttr, settings.getDictionary(module.getContext()));
  }
};

} // namespace
} // namespace windlass::train
