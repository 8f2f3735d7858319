//===- ParameterPlanner.cpp - what trains ---------------------------------===//

#include "ParameterPlanner.h"
#include "Match.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace windlass;

ParameterPlanner::ParameterPlanner(func::FuncOp function, llvm::ArrayRef<UsedParameter> used,
                                   const ExportedModel &exported, OnnxToTrainReport &report)
    : function(function), exported(exported), report(report), parameters(used.begin(), used.end()) {
  // The order is that of the file, whatever the order of use.
  llvm::sort(parameters, [](const UsedParameter &a, const UsedParameter &b) {
    return const_cast<UsedParameter &>(a).op->isBeforeInBlock(const_cast<UsedParameter &>(b).op);
  });
}

/// Walks against the order of the ops: a float operand of a differentiable op with a reached result is reached.
void ParameterPlanner::markDifferentiable() {
  Block &block = function.getBody().front();
  reached.insert(block.getTerminator()->getOperand(0));
  for (Operation &op : llvm::reverse(block)) {
    if (!isa<train::DifferentiableOpInterface>(op) ||
        llvm::none_of(op.getResults(), [&](Value result) { return reached.contains(result); }))
      continue;
    for (Value operand : op.getOperands())
      if (isa<FloatType>(getElementTypeOrSelf(operand.getType())))
        reached.insert(operand);
  }
}

/// Whether the value is only added to the scores of a softmax.
bool ParameterPlanner::isOnlyMask(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<train::BroadcastOp, train::ReshapeOp, train::SliceOp>(user))
      return isOnlyMask(user->getResult(0));
    return isa<train::AddOp>(user) && llvm::all_of(user->getResult(0).getUsers(), llvm::IsaPred<train::SoftmaxOp>);
  });
}

/// Whether the value is only broadcast and multiplied as the cosines or sines of a rotary embedding, which an exporter
/// has folded into a constant.
bool ParameterPlanner::isOnlyRotaryTable(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<train::BroadcastOp, train::ReshapeOp>(user))
      return isOnlyRotaryTable(user->getResult(0));
    return isa<train::MulOp>(user) && llvm::all_of(user->getResult(0).getUsers(), [&](Operation *sum) {
             auto add = dyn_cast<train::AddOp>(sum);
             Rotary found = add ? matchRotary(add) : Rotary();
             return found.input && found.input != value;
           });
  });
}

/// Whether the value is one number that is only added to the operand of a root or to a divisor.
bool ParameterPlanner::isOnlyEpsilon(Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<train::BroadcastOp, train::ReshapeOp>(user))
      return isOnlyEpsilon(user->getResult(0));
    return isa<train::AddOp>(user) && llvm::all_of(user->getResult(0).getUses(), [](OpOperand &use) {
             return isa<train::SqrtOp, train::RsqrtOp>(use.getOwner()) ||
                    (isa<train::DivOp>(use.getOwner()) && use.getOperandNumber() == 1);
           });
  });
}

/// Returns "used by 'a', 'b' and 3 more modules" where nodes of several modules read the initializer, else nothing.
static std::string describeModules(onnx::InitializerOp op) {
  llvm::SmallSetVector<llvm::StringRef, 4> scopes;
  for (Operation *user : op->getUsers())
    if (auto node = dyn_cast<onnx::NodeOp>(user); node && node.getScope())
      scopes.insert(*node.getScope());
  if (scopes.size() < 2)
    return "";
  std::string text = "used by the modules " + printable(scopes[0], 80);
  text += (scopes.size() > 2 ? ", " : " and ") + printable(scopes[1], 80);
  return scopes.size() > 2 ? text + " and " + std::to_string(scopes.size() - 2) + " more" : text;
}

ParameterPlanner::Decision ParameterPlanner::decide(const UsedParameter &parameter) {
  onnx::InitializerOp op = const_cast<UsedParameter &>(parameter).op;
  Decision decision{&parameter, false, ""};
  if (!isa<FloatType>(getElementTypeOrSelf(op.getType())))
    return decision;
  if (parameter.momentum)
    return decision;
  llvm::StringRef kind = op.getKind().value_or(""), name = op.getInitializerName();
  bool hasGradient = reached.contains(parameter.read);
  if (!kind.empty()) {
    decision.trains = hasGradient && kind == "parameter";
    if (kind == "parameter" && !hasGradient)
      decision.reason = "marked as a parameter, but no gradient of the loss reaches it";
  } else if (!hasGradient) {
    decision.reason = "unmarked; no gradient of the loss reaches it";
  } else if (isOnlyMask(parameter.read)) {
    decision.reason = "unmarked; only added to the scores of a softmax";
  } else if (parameter.isRotaryTable || isOnlyRotaryTable(parameter.read)) {
    decision.reason = "unmarked; only a table of a rotary embedding";
  } else if (parameter.isStoredStatistic) {
    decision.reason = "unmarked; a running statistic of a batch norm";
  } else if (parameter.isClassWeights) {
    decision.reason = "unmarked; the class weights of a loss";
  } else if (cast<RankedTensorType>(op.getType()).getNumElements() == 1 && isOnlyEpsilon(parameter.read)) {
    decision.reason = "unmarked; only added to what a root or quotient is taken of";
  } else if (auto copy = exported.bufferCopies.find(name); copy != exported.bufferCopies.end()) {
    decision.reason = "unmarked; stands for the buffer " + printable(copy->second);
  } else if (auto weight = exported.parameterCopies.find(name); weight != exported.parameterCopies.end()) {
    decision.trains = true;
    decision.reason = "unmarked; stands for the parameter " + printable(weight->second);
  } else if (exported.hasSignature && exported.vanished.empty()) {
    decision.reason = "unmarked; the graph signature names all parameters, and this is none of them";
  } else {
    decision.trains = true;
    decision.reason = "unmarked; a float on a differentiable path";
    if (std::string modules = describeModules(op); !exported.hasSignature && !modules.empty())
      decision.reason += ", " + modules + ": tied there, or merged from parameters of equal value";
  }
  return decision;
}

/// Whether the initializer is the result of looking rows of a table up, each row once, so that training it is training
/// the table. Two equal rows may be one row looked up twice, whose gradient is the sum of both.
static bool isWholeTable(onnx::InitializerOp op, const WeightStore *weights) {
  llvm::StringRef name = op.getInitializerName();
  auto type = cast<RankedTensorType>(op.getType());
  // The name that a traced program gives the result of torch.nn.functional.embedding.
  if (!name.consume_front("embedding") || !(name.empty() || name.consume_front("_")) ||
      name.find_first_not_of("0123456789") != llvm::StringRef::npos || type.getRank() < 2)
    return false;
  onnx::SourceAttr source = *op.getSource();
  if (!weights || !weights->isPresent(source.getFile()))
    return true;
  llvm::Expected<std::vector<char>> bytes = weights->read(source.getFile(), source.getOffset(), source.getLength());
  if (!bytes) {
    llvm::consumeError(bytes.takeError());
    return false;
  }
  size_t rows = static_cast<size_t>(type.getNumElements() / type.getShape().back()), width = bytes->size() / rows;
  llvm::StringSet<> seen;
  for (size_t row = 0; row < rows; ++row)
    if (!seen.insert(llvm::StringRef(bytes->data() + row * width, width)).second)
      return false;
  return true;
}

/// Explains parameters that the file does not mention, which became part of constants. One that became a whole table
/// alone trains as it did; anything else is another model.
void ParameterPlanner::explainVanished(llvm::ArrayRef<size_t> unexplained, const WeightStore *weights) {
  if (exported.vanished.size() == 1 && unexplained.size() == 1 && report.alterations.empty()) {
    Decision &decision = decisions[unexplained.front()];
    onnx::InitializerOp op = const_cast<UsedParameter *>(decision.parameter)->op;
    if (isWholeTable(op, weights)) {
      decision.reason = "unmarked; holds the rows of the parameter " + printable(exported.vanished.front());
      report.warnings.push_back("parameter " + printable(exported.vanished.front()) +
                                " is not in the file: the rows of it that are used train as " +
                                printable(op.getInitializerName()) + "; export with optimize=False to keep its name");
      return;
    }
  }
  for (const std::string &target : exported.vanished)
    report.alterations.push_back({target, Alteration::Fate::folded, ""});
}

void ParameterPlanner::decide(const WeightStore *weights) {
  markDifferentiable();
  llvm::SmallVector<size_t> unexplained;
  for (const UsedParameter &parameter : parameters) {
    if (mlir::Value(parameter.read).use_empty())
      continue;
    decisions.push_back(decide(parameter));
    onnx::InitializerOp op = const_cast<UsedParameter &>(parameter).op;
    if (decisions.back().trains && !op.getKind() && !exported.parameterCopies.contains(op.getInitializerName()))
      unexplained.push_back(decisions.size() - 1);
  }
  if (!exported.vanished.empty())
    explainVanished(unexplained, weights);
  for (const Decision &decision : decisions)
    if (!decision.reason.empty())
      report.guesses.push_back({const_cast<UsedParameter *>(decision.parameter)->op.getInitializerName().str(),
                                decision.trains, decision.reason});
}

LogicalResult ParameterPlanner::writeSymbols(OpBuilder &builder) {
  for (UsedParameter &parameter : parameters)
    if (parameter.read.use_empty())
      parameter.read.getDefiningOp()->erase();
  int64_t ordinal = 0;
  bool anyTrains = false;
  for (const Decision &decision : decisions) {
    onnx::InitializerOp initializer = const_cast<UsedParameter *>(decision.parameter)->op;
    auto read = mlir::Value(decision.parameter->read).getDefiningOp<train::ReadOp>();
    auto type = cast<RankedTensorType>(read.getType());
    anyTrains |= decision.trains;
    // An initializer that is marked as a parameter is a weight even where nothing trains it; unmarked constants are
    // buffers.
    std::optional<double> momentum = decision.parameter->momentum;
    bool isWeight = decision.trains || momentum || initializer.getKind() == llvm::StringRef("parameter");
    onnx::SourceAttr from = *initializer.getSource();
    Type stored = getElementTypeOrSelf(initializer.getType());
    auto source = train::SourceAttr::get(
        builder.getContext(), from.getFile().empty() ? train::SourceKind::packed : train::SourceKind::external,
        from.getFile().getValue(), from.getOffset(), from.getLength(),
        stored == type.getElementType() ? Type() : stored);
    bool decays = decision.trains && type.getRank() >= 2;
    std::string symbol = (isWeight ? "w" : "b") + std::to_string(ordinal++);
    auto op = train::ParameterOp::create(
        builder, initializer.getLoc(), builder.getStringAttr(symbol), initializer.getInitializerNameAttr(),
        TypeAttr::get(type),
        train::RoleAttr::get(builder.getContext(), isWeight ? train::Role::weight : train::Role::buffer), source,
        decision.trains || momentum ? builder.getUnitAttr() : UnitAttr(), decays ? builder.getUnitAttr() : UnitAttr(),
        FlatSymbolRefAttr(), decision.reason.empty() ? StringAttr() : builder.getStringAttr(decision.reason),
        /*compute_type=*/TypeAttr(), momentum ? builder.getF64FloatAttr(*momentum) : FloatAttr());
    if (decision.parameter->startsAtOne)
      op->setAttr(train::kNormScaleAttr, builder.getUnitAttr());
    read.setParameterAttr(FlatSymbolRefAttr::get(op.getSymNameAttr()));
  }
  if (!anyTrains)
    return emitError(function.getLoc(), Code::loss)
           << "the loss " << printable(report.loss) << " depends on no trainable parameter; "
           << (decisions.empty() ? "the model has none that it reads" : "none of those it reads can be trained");
  return success();
}
