#include "windlass/Dialect/Sched/Analysis/Accumulation.h"
#include "windlass/Dialect/Sched/Analysis/OperatorOrder.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// Whether an operator becomes a map; sums that kernels compute need none.
bool isElementwise(Operation *op) {
  if (auto sum = dyn_cast<train::AccumulateOp>(op))
    return !isSummedByKernels(sum);
  return isa<train::ScalarOpInterface>(op) && op->getNumResults() == 1;
}

ArrayRef<int64_t> getSpace(Operation *op) { return cast<RankedTensorType>(op->getResult(0).getType()).getShape(); }

/// Whether the function costs about as much as reading its operand from memory.
bool isCheap(Operation *op) {
  return isa<train::AddOp, train::SubOp, train::MulOp, train::NegOp, train::AbsOp, train::MaxOp, train::MinOp,
             train::AndOp, train::OrOp, train::NotOp, train::CompareOp, train::SelectOp, train::CastOp, train::ReluOp,
             train::ReluGradOp, train::IsNanOp>(op);
}

int64_t getBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

/// Whether the value is a constant that can be written into a scalar function.
bool isLiteral(Value value) {
  auto constant = value.getDefiningOp<train::ConstantOp>();
  if (!constant)
    return false;
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  return elements && elements.isSplat();
}

/// The value that an operand reads, and which dims of the iteration space it has.
struct Operand {
  Value value;
  SmallVector<int64_t> dims;
  bool operator==(const Operand &other) const { return value == other.value && dims == other.dims; }
};

Operand lookThroughBroadcasts(Value value) {
  Operand operand{value, {}};
  for (int64_t dim = 0; dim < cast<RankedTensorType>(value.getType()).getRank(); ++dim)
    operand.dims.push_back(dim);
  while (auto broadcast = operand.value.getDefiningOp<train::BroadcastOp>()) {
    SmallVector<int64_t> dims;
    for (int64_t dim : broadcast.getDims())
      dims.push_back(operand.dims[dim]);
    operand = {broadcast.getInput(), dims};
  }
  return operand;
}

/// Replaces train.loss, train.clip_factor and train.average by arithmetic.
void expandArithmetic(func::FuncOp function) {
  function.walk([](Operation *op) {
    if (!isa<train::LossOp, train::ClipFactorOp, train::AverageOp>(op))
      return;
    OpBuilder builder(op);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    auto constant = [&](double value) -> Value {
      auto attribute = DenseElementsAttr::get(type, Attribute(builder.getFloatAttr(type.getElementType(), value)));
      return train::ConstantOp::create(builder, op->getLoc(), type, attribute);
    };
    Value result;
    if (auto loss = dyn_cast<train::LossOp>(op)) {
      result = train::DivOp::create(builder, op->getLoc(), type, loss.getSum(), loss.getCount());
    } else if (auto average = dyn_cast<train::AverageOp>(op)) {
      Value step = train::MulOp::create(builder, op->getLoc(), type, average.getGradient(),
                                        constant(average.getRate().convertToDouble()));
      step.getDefiningOp()->setDiscardableAttrs(op->getDiscardableAttrDictionary());
      result = train::SubOp::create(builder, op->getLoc(), type, average.getRunning(), step);
    } else {
      auto clip = cast<train::ClipFactorOp>(op);
      Value padded = train::AddOp::create(builder, op->getLoc(), type, clip.getNorm(), constant(1e-6));
      Value ratio = train::DivOp::create(builder, op->getLoc(), type, clip.getLimit(), padded);
      result = train::MinOp::create(builder, op->getLoc(), type, ratio, constant(1));
      for (Value value : {padded, ratio})
        value.getDefiningOp()->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    }
    result.getDefiningOp()->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  });
}

/// The most terms of a sum in one map: a command of the runtime has at most 40 operands.
constexpr size_t kMostTerms = 32;

/// Splits sums of more terms into several, which add up from the left.
void splitLongSums(func::FuncOp function) {
  function.walk([](train::AccumulateOp sum) {
    if (isSummedByKernels(sum) || sum.getInputs().size() <= kMostTerms)
      return;
    OpBuilder builder(sum);
    SmallVector<Value> terms(sum.getInputs());
    while (terms.size() > kMostTerms) {
      auto partial = train::AccumulateOp::create(builder, sum.getLoc(), sum.getType(),
                                                 ArrayRef<Value>(terms).take_front(kMostTerms));
      partial->setDiscardableAttrs(sum->getDiscardableAttrDictionary());
      terms.erase(terms.begin() + 1, terms.begin() + kMostTerms);
      terms.front() = partial;
    }
    sum.getInputsMutable().assign(terms);
  });
}

/// Operators that become one map. They are adjacent in their block, in order.
struct Cluster {
  SmallVector<Operation *> ops;
};

class FunctionFusion {
public:
  FunctionFusion(Block &block, int64_t maxOps, int64_t maxOperands)
      : block(block), maxOps(maxOps), maxOperands(maxOperands) {}

  /// Makes a cluster of each element-wise operator.
  void collect() {
    for (Operation &op : block)
      if (isElementwise(&op)) {
        clusters.push_back(std::make_unique<Cluster>());
        clusters.back()->ops.push_back(&op);
        clusterOf[&op] = clusters.back().get();
      }
  }

  /// Copies cheap producers into their consumers where that moves fewer bytes than storing the result.
  void recompute() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isElementwise(&op) || !isCheap(&op) || op.getResult(0).hasOneUse() || op.use_empty())
        continue;
      SmallVector<OpOperand *> uses;
      llvm::SmallSetVector<Operation *, 4> users;
      bool canCopy = true;
      for (OpOperand &use : op.getResult(0).getUses()) {
        Operation *user = use.getOwner();
        canCopy &= isElementwise(user) && getSpace(user) == getSpace(&op) &&
                   user->getAttr(plan::kRepeatAttr) == op.getAttr(plan::kRepeatAttr);
        uses.push_back(&use);
        users.insert(user);
      }
      if (!canCopy || users.size() < 2)
        continue;
      int64_t inputs = 0;
      for (Value operand : op.getOperands())
        if (!isLiteral(operand))
          inputs += getBytes(lookThroughBroadcasts(operand).value);
      int64_t result = getBytes(op.getResult(0));
      int64_t copies = users.size();
      if (inputs + result + copies * result <= copies * inputs)
        continue;
      // The first user keeps the original.
      for (Operation *user : llvm::drop_begin(users)) {
        OpBuilder builder(user);
        Operation *copy = builder.clone(op);
        for (OpOperand *use : uses)
          if (use->getOwner() == user)
            use->set(copy->getResult(0));
      }
    }
  }

  /// Joins producers with consumers, then readers of the same values; operators are visited in order.
  void fuse() {
    SmallVector<Operation *> ops;
    for (auto &cluster : clusters)
      ops.push_back(cluster->ops.front());
    OperatorOrder order(block);
    for (Operation *op : ops)
      for (Value operand : op->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (producer && clusterOf.contains(producer) && clusterOf[producer] != clusterOf[op])
          join(clusterOf[producer], clusterOf[op], order);
      }
    for (Operation *op : ops)
      for (Value operand : op->getOperands())
        joinReaders(operand, op, order);
  }

  template <typename Callback> void forEachCluster(Callback callback) {
    llvm::DenseSet<Cluster *> seen;
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    for (Operation *op : ops)
      if (Cluster *cluster = clusterOf.lookup(op); cluster && seen.insert(cluster).second)
        callback(*cluster);
  }

private:
  static bool isIn(const Cluster &cluster, Operation *op) { return llvm::is_contained(cluster.ops, op); }

  /// Joins the operator with earlier readers of `value`, which is then read from memory once.
  void joinReaders(Value value, Operation *op, OperatorOrder &order) {
    if (cast<RankedTensorType>(value.getType()).getShape() != getSpace(op))
      return;
    SmallVector<Operation *> readers;
    for (Operation *user : value.getUsers())
      if (clusterOf.contains(user) && order.isBefore(user, op))
        readers.push_back(user);
    llvm::sort(readers, [&](Operation *a, Operation *b) { return order.isBefore(a, b); });
    for (Operation *reader : readers)
      if (Cluster *first = clusterOf[reader], *second = clusterOf[op];
          first != second && freesWhatItTakes(*second, order))
        join(first, second, order);
  }

  /// Whether the values that a cluster reads last are no smaller than its results: then it can run earlier without more
  /// bytes live at one time.
  bool freesWhatItTakes(const Cluster &cluster, const OperatorOrder &order) const {
    llvm::SmallSetVector<Value, 8> freed;
    int64_t bytes = 0;
    for (Operation *op : cluster.ops) {
      for (Value operand : op->getOperands())
        if (Operation *definition = operand.getDefiningOp();
            definition && !isLiteral(operand) && !isIn(cluster, definition) &&
            llvm::all_of(operand.getUsers(), [&](Operation *user) {
              return isIn(cluster, user) || order.isBefore(user, cluster.ops.front());
            }))
          freed.insert(operand);
      if (llvm::any_of(op->getUsers(), [&](Operation *user) { return !isIn(cluster, user); }))
        bytes -= getBytes(op->getResult(0));
    }
    for (Value value : freed)
      bytes += getBytes(value);
    return bytes >= 0;
  }

  /// Moves both to one place where one exists: behind all that they read, before all that reads them.
  void join(Cluster *producer, Cluster *consumer, OperatorOrder &order) {
    Operation *head = producer->ops.front(), *tail = consumer->ops.front();
    if (getSpace(head) != getSpace(tail) || head->getAttr(plan::kRepeatAttr) != tail->getAttr(plan::kRepeatAttr) ||
        static_cast<int64_t>(producer->ops.size() + consumer->ops.size()) > maxOps)
      return;
    auto isInside = [&](Operation *op) { return isIn(*producer, op) || isIn(*consumer, op); };

    llvm::SetVector<Value> inputs;
    int64_t results = 0;
    Operation *lastInput = nullptr;
    // A position inside the consumer's run: its last operator, unless a reader comes before.
    Operation *before = consumer->ops.back()->getNextNode();
    for (Cluster *cluster : {producer, consumer})
      for (Operation *op : cluster->ops) {
        for (Value operand : op->getOperands()) {
          Operation *definition = operand.getDefiningOp();
          if (definition && isInside(definition))
            continue;
          if (!isLiteral(operand))
            inputs.insert(lookThroughBroadcasts(operand).value);
          if (definition && (!lastInput || order.isBefore(lastInput, definition)))
            lastInput = definition;
        }
        bool isRead = false;
        for (Operation *user : op->getUsers()) {
          if (isInside(user))
            continue;
          isRead = true;
          if (order.isBefore(user, before))
            before = user;
        }
        results += isRead;
      }
    if (static_cast<int64_t>(inputs.size()) + results > maxOperands)
      return;
    if (lastInput && !order.isBefore(lastInput, before))
      return;
    // `before` may be one of a run that belongs to another cluster: runs must stay whole.
    if (Cluster *other = clusterOf.lookup(before); other && other != consumer && other != producer)
      before = other->ops.front();
    if (lastInput && !order.isBefore(lastInput, before))
      return;
    while (isInside(before))
      before = before->getNextNode();
    for (Operation *op : consumer->ops)
      clusterOf[op] = producer;
    llvm::append_range(producer->ops, consumer->ops);
    consumer->ops.clear();
    order.moveBefore(producer->ops, before);
  }

  Block &block;
  int64_t maxOps, maxOperands;
  std::vector<std::unique_ptr<Cluster>> clusters;
  DenseMap<Operation *, Cluster *> clusterOf;
};

/// Makes scalar functions, one per structure.
class ScalarFunctions {
public:
  explicit ScalarFunctions(ProgramOp program) : program(program), symbols(program) {}

  /// Replaces the cluster by a map.
  void outline(const Cluster &cluster) {
    SmallVector<Operand> operands;
    SmallVector<Value> results;
    for (Operation *op : cluster.ops) {
      for (Value value : op->getOperands())
        if (!isLiteral(value) && !llvm::is_contained(cluster.ops, value.getDefiningOp()))
          if (Operand operand = lookThroughBroadcasts(value);
              !isLiteral(operand.value) && !llvm::is_contained(operands, operand))
            operands.push_back(operand);
      if (llvm::any_of(op->getUsers(), [&](Operation *user) { return !llvm::is_contained(cluster.ops, user); }))
        results.push_back(op->getResult(0));
    }
    if (results.empty()) {
      for (Operation *op : llvm::reverse(cluster.ops))
        op->erase();
      return;
    }

    func::FuncOp function = getFunction(cluster, operands, results);
    OpBuilder builder(cluster.ops.back());
    builder.setInsertionPointAfter(cluster.ops.back());
    SmallVector<Value> inputs;
    SmallVector<Attribute> dims;
    for (const Operand &operand : operands) {
      inputs.push_back(operand.value);
      dims.push_back(builder.getDenseI64ArrayAttr(operand.dims));
    }
    SmallVector<Location> locations;
    for (Operation *op : cluster.ops)
      locations.push_back(op->getLoc());
    auto map = MapOp::create(builder, builder.getFusedLoc(locations), TypeRange(ValueRange(results)),
                             FlatSymbolRefAttr::get(function), inputs, builder.getArrayAttr(dims));
    Operation *last = cluster.ops.back();
    for (StringRef name : {StringRef(plan::kRepeatAttr), StringRef(train::kIdAttr)})
      if (Attribute attribute = last->getAttr(name))
        map->setAttr(name, attribute);
    for (auto [old, result] : llvm::zip_equal(results, map.getResults()))
      old.replaceAllUsesWith(result);
    for (Operation *op : llvm::reverse(cluster.ops))
      op->erase();
  }

private:
  func::FuncOp getFunction(const Cluster &cluster, ArrayRef<Operand> operands, ArrayRef<Value> results) {
    auto builder = OpBuilder(program.getContext());
    auto elementOf = [](Value value) { return getElementTypeOrSelf(value); };
    SmallVector<Type> inputTypes, resultTypes;
    for (const Operand &operand : operands)
      inputTypes.push_back(elementOf(operand.value));
    for (Value result : results)
      resultTypes.push_back(elementOf(result));

    Location loc = UnknownLoc::get(program.getContext());
    auto function = func::FuncOp::create(loc, "fused", builder.getFunctionType(inputTypes, resultTypes));
    function.setPrivate();
    function->setAttr(kScalarFunctionAttr, builder.getUnitAttr());
    Block *body = function.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    DenseMap<Value, Value> scalars;
    DenseMap<Attribute, Value> literals;
    auto toScalar = [&](Value value) -> Value {
      if (Value scalar = scalars.lookup(value))
        return scalar;
      Operand operand = lookThroughBroadcasts(value);
      if (isLiteral(operand.value)) {
        auto elements = cast<DenseElementsAttr>(operand.value.getDefiningOp<train::ConstantOp>().getValue());
        auto attribute = cast<TypedAttr>(elements.getSplatValue<Attribute>());
        Value &literal = literals[attribute];
        if (!literal)
          literal = arith::ConstantOp::create(builder, loc, attribute);
        return literal;
      }
      return body->getArgument(llvm::find(operands, operand) - operands.begin());
    };
    for (Operation *op : cluster.ops) {
      SmallVector<Value> arguments;
      for (Value value : op->getOperands())
        arguments.push_back(toScalar(value));
      OperationState state(loc, op->getName(), arguments, {elementOf(op->getResult(0))});
      if (Attribute properties = op->getPropertiesAsAttribute())
        state.propertiesAttr = properties;
      scalars[op->getResult(0)] = builder.create(state)->getResult(0);
    }
    SmallVector<Value> returned;
    for (Value result : results)
      returned.push_back(scalars[result]);
    func::ReturnOp::create(builder, loc, returned);

    // The text without its name is the structure.
    std::string text;
    llvm::raw_string_ostream stream(text);
    function.print(stream, OpPrintingFlags().useLocalScope());
    auto [it, isNew] = known.try_emplace(text, function);
    if (!isNew) {
      function->erase();
      return it->second;
    }
    std::string name;
    do
      name = ("fused_" + Twine(next++)).str();
    while (symbols.lookup(name));
    function.setSymName(name);
    program.push_back(function);
    return function;
  }

  ProgramOp program;
  SymbolTable symbols;
  llvm::StringMap<func::FuncOp> known;
  unsigned next = 0;
};

struct FuseElementwise : sched::impl::FuseElementwiseBase<FuseElementwise> {
  using FuseElementwiseBase::FuseElementwiseBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    ScalarFunctions scalars(program);
    SmallVector<func::FuncOp> functions(program.getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      if (function.isExternal() || function->hasAttr(kScalarFunctionAttr))
        continue;
      expandArithmetic(function);
      splitLongSums(function);
      for (Block &block : function.getBody()) {
        FunctionFusion fusion(block, maxOps, maxOperands);
        if (fuse)
          fusion.recompute();
        fusion.collect();
        if (fuse)
          fusion.fuse();
        fusion.forEachCluster([&](const Cluster &cluster) { scalars.outline(cluster); });
        // Broadcasts and constants that became operand dims and literals.
        for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
          if (isa<train::BroadcastOp, train::ConstantOp>(op) && op.use_empty())
            op.erase();
      }
    }
  }
};

} // namespace
