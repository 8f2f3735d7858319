#include "PlacementFacts.h"

#include "windlass/Dialect/Plan/IR/ChunkCounter.h"
#include "windlass/Dialect/Plan/IR/PlanText.h"
#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/TensorBytes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace windlass;

static std::string toText(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << type.getElementType() << '[';
  llvm::interleaveComma(type.getShape(), os);
  os << ']';
  return text;
}

static std::string getName(plan::ReshardStep::Kind kind) {
  switch (kind) {
  case plan::ReshardStep::Kind::AllReduce:
    return "all-reduce";
  case plan::ReshardStep::Kind::ReduceScatter:
    return "reduce-scatter";
  case plan::ReshardStep::Kind::AllGather:
    return "all-gather";
  case plan::ReshardStep::Kind::AllToAll:
    return "all-to-all";
  case plan::ReshardStep::Kind::Slice:
    return "slice";
  case plan::ReshardStep::Kind::Permute:
    return "permute";
  case plan::ReshardStep::Kind::Pad:
    return "pad";
  case plan::ReshardStep::Kind::Trim:
    return "trim";
  }
  return "";
}

static std::string getName(train::FactorKind kind) {
  switch (kind) {
  case train::FactorKind::Parallel:
    return "parallel";
  case train::FactorKind::Reduction:
    return "reduction";
  case train::FactorKind::Inner:
    return "inner reduction";
  case train::FactorKind::Replicated:
    return "replicated only";
  case train::FactorKind::Flat:
    return "flat";
  }
  return "";
}

static std::string join(ArrayRef<StringAttr> axes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(axes, os, [&](StringAttr axis) { os << axis.getValue(); }, "+");
  return text;
}

static std::string getId(Operation *op) {
  auto id = op->getAttrOfType<StringAttr>(train::kIdAttr);
  return id ? id.str() : op->getName().getStringRef().str();
}

static std::string getLogicalName(Operation *op, FlatSymbolRefAttr symbol) {
  auto parameter = SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(op, symbol);
  return printable(parameter ? parameter.getLogicalName() : symbol.getValue());
}

/// Returns the maker of a value, looking through reshards and stashes.
static std::string getOrigin(Value value) {
  if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
    auto function = llvm::cast<func::FuncOp>(argument.getOwner()->getParentOp());
    unsigned i = argument.getArgNumber();
    if (auto input = function.getArgAttrOfType<StringAttr>(i, train::kInputAttr))
      return "input " + printable(input.getValue());
    if (auto weight = function.getArgAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr))
      return "gradient of " + getLogicalName(function, weight);
    return "argument " + std::to_string(i) + " of @" + function.getName().str();
  }
  Operation *op = value.getDefiningOp();
  if (llvm::isa<plan::ReshardOp, train::StashOp>(op))
    return getOrigin(op->getOperand(0));
  if (auto read = llvm::dyn_cast<train::ReadOp>(op))
    return "parameter " + getLogicalName(op, read.getParameterAttr());
  std::string text = getId(op);
  return op->getNumResults() > 1 ? text + " result " + std::to_string(llvm::cast<OpResult>(value).getResultNumber())
                                 : text;
}

static bool isIn(const train::OpFactors &factors, const train::ValueFactors &value, unsigned factor) {
  if (factors.factors[factor].kind == train::FactorKind::Flat)
    return !value.empty();
  return llvm::any_of(value, [&](const train::DimFactors &dim) { return llvm::is_contained(dim, factor); });
}

static std::string getList(ArrayRef<unsigned> numbers) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(numbers, os);
  return text;
}

PlacementFacts::PlacementFacts(ModuleOp module, int64_t accumulationSteps)
    : module(module), mesh(module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr)),
      accumulationSteps(accumulationSteps) {
  for (func::FuncOp function : plan::getPlannedFunctions(module))
    for (Operation &op : function.front()) {
      if (auto id = op.getAttrOfType<StringAttr>(train::kIdAttr)) {
        SmallVector<Operation *, 2> &same = operators[id.getValue()];
        if (same.empty())
          ids.push_back(id.str());
        same.push_back(&op);
      }
      if (auto forward = op.getAttrOfType<StringAttr>(train::kForwardAttr))
        adjoints[forward.getValue()].push_back(getId(&op));
    }
}

ValueFacts PlacementFacts::describeValue(Value value, plan::LayoutAttr layout) {
  auto type = llvm::cast<RankedTensorType>(value.getType());
  RankedTensorType local = layout.getLocalType(type, mesh);
  ValueFacts facts;
  facts.name = getOrigin(value);
  facts.type = toText(type);
  facts.localType = toText(local);
  facts.layout = plan::toText(layout);
  facts.bytes = getTensorBytes(local);
  return facts;
}

ReshardFacts PlacementFacts::describeReshard(RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to,
                                             int64_t runsPerStep) {
  ReshardFacts facts;
  facts.from = plan::toText(from);
  facts.to = plan::toText(to);
  llvm::Expected<plan::ReshardPlan> plan = plan::planReshard(type.getShape(), from, to, mesh);
  if (!plan) { // Verified before; a plan without steps would be a wrong answer.
    facts.steps.push_back({llvm::toString(plan.takeError()), "", 1});
    return facts;
  }
  for (const plan::ReshardStep &step : plan->steps)
    facts.steps.push_back({getName(step.kind), join(step.axes), step.members});
  facts.bytesPerStep = std::llround(plan->sentElements * double(getElementBytes(type.getElementType()))) * runsPerStep;
  return facts;
}

std::vector<AxisFacts> PlacementFacts::describeAxes(Operation &op, StringRef function) {
  std::vector<AxisFacts> all;
  auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
  train::OpFactors factors = compute ? compute.getFactors() : train::OpFactors();
  auto strategy = op.getAttrOfType<plan::StrategyAttr>(plan::kStrategyAttr);
  for (plan::AxisAttr axis : mesh.getAxes()) {
    std::string role;
    llvm::raw_string_ostream os(role);
    bool isInGroup = function == train::kMicrobatchFunction || function == train::kEvaluateFunction;
    auto split = llvm::find_if(factors.factors, [&](const train::Factor &factor) {
      return strategy && llvm::is_contained(strategy.axesOf(factor.name), axis.getName());
    });
    if (axis.getRole() == plan::AxisRole::replica && isInGroup) {
      os << "carries the replicas: each works on micro-batches of its own";
    } else if (split != factors.factors.end()) {
      unsigned index = split - factors.factors.begin();
      os << "splits " << split->name;
      SmallVector<unsigned> arrive, brought, partial;
      for (OpOperand &operand : op.getOpOperands()) {
        unsigned i = operand.getOperandNumber();
        if (i >= factors.operands.size() || !isIn(factors, factors.operands[i], index))
          continue;
        auto reshard = operand.get().getDefiningOp<plan::ReshardOp>();
        plan::LayoutAttr before = reshard ? reshard.getFrom() : plan::getLayout(operand.get());
        (plan::usesAxis(before, axis.getName()) ? arrive : brought).push_back(i);
      }
      for (OpResult result : op.getResults())
        if (llvm::any_of(plan::getLayout(result).getUnreduced(),
                         [&](plan::UnreducedAttr unreduced) { return unreduced.getAxis() == axis.getName(); }))
          partial.push_back(result.getResultNumber());
      if (!arrive.empty())
        os << "; arriving so: operand " << getList(arrive);
      if (!brought.empty())
        os << "; resharded for it: operand " << getList(brought);
      if (!partial.empty())
        os << "; left partial over it: result " << getList(partial);
    } else if (llvm::any_of(op.getResults(), [&](Value result) {
                 plan::LayoutAttr layout = plan::getLayout(result);
                 return layout && llvm::any_of(layout.getUnreduced(), [&](plan::UnreducedAttr unreduced) {
                          return unreduced.getAxis() == axis.getName();
                        });
               })) {
      os << "hands partial sums on: they are reduced later, where it costs less or only once";
    } else if (!compute) {
      os << "moves parts only, as the layouts say";
    } else {
      SmallVector<StringRef> possible;
      for (const train::Factor &factor : factors.factors)
        if (factor.kind == train::FactorKind::Flat ||
            ((factor.kind == train::FactorKind::Parallel || factor.kind == train::FactorKind::Reduction) &&
             factor.size % axis.getSize() == 0 && factor.size > 1))
          possible.push_back(factor.name);
      os << "splits nothing: its " << axis.getSize() << " members do the same work; ";
      if (possible.empty())
        os << "no factor that may be split is a multiple of " << axis.getSize();
      else
        os << "it could split " << llvm::join(possible, ", ");
    }
    all.push_back({axis.getName().str(), axis.getSize(), role});
  }
  return all;
}

/// Returns the chunk of an operator of `@microbatch` that has a name in the forward pass.
static std::optional<int64_t> findChunk(Operation &op) {
  auto pipeline = op.getParentOfType<ModuleOp>()->getAttrOfType<plan::PipelineAttr>(plan::kPipelineAttr);
  Attribute id = op.hasAttr(train::kForwardAttr) ? op.getAttr(train::kForwardAttr) : op.getAttr(train::kIdAttr);
  if (!pipeline || !id)
    return std::nullopt;
  plan::ChunkCounter chunks(pipeline);
  for (Operation &other : *op.getBlock()) {
    int64_t chunk = chunks.advance(other);
    if (other.getAttr(train::kIdAttr) == id)
      return chunk;
  }
  return std::nullopt;
}

OperatorFacts PlacementFacts::describe(Operation &op, StringRef function) {
  OperatorFacts facts;
  facts.id = getId(&op);
  facts.kind = op.getName().stripDialect().str();
  facts.function = function.str();
  if (auto forward = op.getAttrOfType<StringAttr>(train::kForwardAttr))
    facts.forward = forward.str();
  if (auto repeat = op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr)) {
    facts.repeatClass = repeat.getClassName().str();
    facts.repeat = repeat.getIndex();
  }
  facts.runsPerStep = function == train::kMicrobatchFunction ? accumulationSteps
                      : function == train::kUpdateFunction   ? 1
                                                             : 0;
  if (function == train::kMicrobatchFunction && llvm::isa<train::TrainOpInterface>(op))
    facts.chunk = findChunk(op);
  facts.axes = describeAxes(op, function);
  if (auto compute = llvm::dyn_cast<train::TrainOpInterface>(op)) {
    auto strategy = op.getAttrOfType<plan::StrategyAttr>(plan::kStrategyAttr);
    int64_t parts = 1;
    for (const train::Factor &factor : compute.getFactors().factors) {
      FactorFacts row{factor.name, getName(factor.kind), factor.size, factor.size, 1, {}};
      if (factor.kind == train::FactorKind::Flat) // of what the dims leave
        row.localSize /= parts;
      if (plan::FactorAxesAttr split = strategy ? strategy.splitOf(factor.name) : plan::FactorAxesAttr()) {
        row.blocks = split.getBlocks();
        for (StringAttr axis : split.getAxes()) {
          row.axes.push_back(axis.str());
          row.localSize = llvm::divideCeil(row.localSize, mesh.sizeOf(axis.getValue()));
          parts *= mesh.sizeOf(axis.getValue());
        }
      }
      facts.factors.push_back(std::move(row));
    }
  }
  for (Value operand : op.getOperands()) {
    ValueFacts value = describeValue(operand, plan::getLayout(operand));
    if (auto reshard = operand.getDefiningOp<plan::ReshardOp>())
      value.reshards.push_back(
          describeReshard(reshard.getType(), reshard.getFrom(), reshard.getTo(), facts.runsPerStep));
    facts.operands.push_back(std::move(value));
  }
  for (OpResult result : op.getResults()) {
    ValueFacts value = describeValue(result, plan::getLayout(result));
    for (Operation *user : result.getUsers()) {
      auto reshard = llvm::dyn_cast<plan::ReshardOp>(user);
      if (reshard)
        value.reshards.push_back(
            describeReshard(reshard.getType(), reshard.getFrom(), reshard.getTo(), facts.runsPerStep));
      value.isStashed |= llvm::isa<train::StashOp>(user) ||
                         (reshard && llvm::any_of(reshard->getUsers(), llvm::IsaPred<train::StashOp>));
    }
    facts.results.push_back(std::move(value));
  }
  if (facts.forward.empty() && op.hasAttr(train::kIdAttr))
    facts.adjoints = adjoints.lookup(facts.id);
  return facts;
}

std::vector<OperatorFacts> PlacementFacts::describeOperator(StringRef id) {
  std::vector<OperatorFacts> all;
  for (Operation *op : operators.lookup(id)) {
    StringRef function = op->getParentOfType<func::FuncOp>().getName();
    if (function != train::kEvaluateFunction || all.empty())
      all.push_back(describe(*op, function));
  }
  return all;
}

ParameterFacts PlacementFacts::describeParameter(StringRef logicalName) {
  ParameterFacts facts;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    if (parameter.getRole() == train::Role::state || parameter.getLogicalName() != logicalName)
      continue;
    RankedTensorType type = parameter.getTensorType();
    facts.name = logicalName.str();
    facts.type = toText(type);
    facts.trains = parameter.isOptimized();
    auto layoutOf = [&](StringRef attribute) { return parameter->getAttrOfType<plan::LayoutAttr>(attribute); };
    plan::LayoutAttr compute = layoutOf(plan::kLayoutAttr), gradient = layoutOf(plan::kGradientLayoutAttr),
                     master = layoutOf(plan::kMasterLayoutAttr);
    for (auto [name, attribute] : {std::pair("compute", plan::kLayoutAttr),
                                   {"gradient", plan::kGradientLayoutAttr},
                                   {"master", plan::kMasterLayoutAttr}}) {
      plan::LayoutAttr layout = plan::getCopyLayout(parameter, attribute);
      if (!layout)
        continue;
      RankedTensorType local = layout.getLocalType(type, mesh);
      ValueFacts copy;
      copy.type = facts.type;
      copy.localType = toText(local);
      copy.layout = plan::toText(layout);
      copy.bytes = getTensorBytes(local);
      facts.copies.push_back({name, std::move(copy)});
    }
    RankedTensorType read = parameter.getComputeTensorType(), sent = train::getSentGradientType(parameter);
    auto add = [&](std::string what, RankedTensorType moved, plan::LayoutAttr from, plan::LayoutAttr to, int64_t runs) {
      if (!plan::haveSameParts(from, to, mesh))
        facts.reshards.push_back({std::move(what), describeReshard(moved, from, to, runs)});
    };
    auto function = train::getMicrobatchFunction(module);
    auto symbol = parameter.getSymNameAttr();
    for (auto op : function.getOps<train::ReadOp>())
      if (op.getParameterAttr().getAttr() == symbol)
        for (Operation *user : op->getUsers())
          if (auto reshard = llvm::dyn_cast<plan::ReshardOp>(user))
            add(op->hasAttr(train::kForwardAttr) ? "compute copy to the backward pass"
                                                 : "compute copy to the forward pass",
                read, reshard.getFrom(), reshard.getTo(), accumulationSteps);
    for (unsigned i = 0; gradient && i < function.getNumResults(); ++i)
      if (auto name = function.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr);
          name && name.getAttr() == symbol)
        add("gradient as it is made to accumulated gradient", sent,
            plan::addReplicaSum(function.getResultAttrOfType<plan::LayoutAttr>(i, plan::kLayoutAttr), module), gradient,
            accumulationSteps);
    if (gradient)
      add("accumulated gradient to master copy", sent, gradient, master, 1);
    if (facts.trains)
      add("master copy to compute copy", read, master, compute, 1);
  }
  return facts;
}

std::vector<std::string> PlacementFacts::getParameterNames() {
  std::vector<std::string> names;
  for (auto parameter : module.getOps<train::ParameterOp>())
    if (parameter.getRole() != train::Role::state)
      names.push_back(parameter.getLogicalName().str());
  return names;
}
