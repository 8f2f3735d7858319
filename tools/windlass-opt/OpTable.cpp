#include "OpTable.h"

#include "Table.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Parser/Parser.h"
#include "windlass/Dialect/Sched/IR/Kernels.h"
#include "windlass/Dialect/Train/IR/Optimizers.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"
#include "windlass/Interpreter/Interpreter.h"

#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;
using namespace windlass;

namespace {

/// One of each operator, to ask for what depends on operands.
constexpr char kExamples[] = R"mlir(
train.parameter weight @w "w" : tensor<2x3xf32> from <none>
func.func @examples(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %n: tensor<f32>, %b: tensor<2x3xi1>, %ids: tensor<2xi64>,
                    %q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %l: tensor<1x4x5xf32>, %m: tensor<2xf32>,
                    %t: tensor<5x8xf32>, %columns: tensor<2x1xi64>,
                    %image: tensor<2x4x6x6xf32>, %kernel: tensor<6x2x3x3xf32>, %map: tensor<2x6x3x3xf32>,
                    %pooled: tensor<2x4x3x3xf32>, %up: tensor<4x6x3xf32>, %down: tensor<4x3x3xf32>) {
  %add = train.add %x, %x : tensor<2x3xf32>
  %sub = train.sub %x, %x : tensor<2x3xf32>
  %mul = train.mul %x, %x : tensor<2x3xf32>
  %div = train.div %x, %x : tensor<2x3xf32>
  %pow = train.pow %x, %x : tensor<2x3xf32>
  %max = train.max %x, %x : tensor<2x3xf32>
  %min = train.min %x, %x : tensor<2x3xf32>
)mlir"
#define WINDLASS_REAL_FUNCTION(Class, name, ...) "%" #name " = train." #name " %x : tensor<2x3xf32>\n"
#include "windlass/Dialect/Train/IR/RealFunctions.def"
#define WINDLASS_ACTIVATION(Class, name, ...) "%" #name "_grad = train." #name "_grad %x, %x : tensor<2x3xf32>\n"
#include "windlass/Dialect/Train/IR/RealFunctions.def"
                             R"mlir(
  %softmax_grad = train.softmax_grad %x, %x : tensor<2x3xf32>
  %neg = train.neg %x : tensor<2x3xf32>
  %abs = train.abs %x : tensor<2x3xf32>
  %and = train.and %b, %b : tensor<2x3xi1>
  %or = train.or %b, %b : tensor<2x3xi1>
  %not = train.not %b : tensor<2x3xi1>
  %is_nan = train.is_nan %x : tensor<2x3xf32> -> tensor<2x3xi1>
  %compare = train.compare less %x, %x : tensor<2x3xf32> -> tensor<2x3xi1>
  %select = train.select %b, %x, %x : tensor<2x3xi1>, tensor<2x3xf32>
  %cast = train.cast %x : tensor<2x3xf32> -> tensor<2x3xf64>
  %accumulate = train.accumulate %x, %x, %x : tensor<2x3xf32>
  %constant = train.constant dense<1.0> : tensor<2x3xf32>
  %iota = train.iota 0 start 0.0 step 1.0 : tensor<4xi64>
  %broadcast = train.broadcast %s dims [1] : tensor<3xf32> -> tensor<2x3xf32>
  %reshape = train.reshape %x : tensor<2x3xf32> -> tensor<6xf32>
  %transpose = train.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %slice = train.slice %x from [0, 1] sizes [2, 2] : tensor<2x3xf32> -> tensor<2x2xf32>
  %pad = train.pad %x low [0, 1] high [1, 0] value 0.0 : tensor<2x3xf32> -> tensor<3x4xf32>
  %concat = train.concat %x, %x axis 1 : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x6xf32>
  %split:2 = train.split %x axis 1 sizes [1, 2] : tensor<2x3xf32> -> tensor<2x1xf32>, tensor<2x2xf32>
  %matmul = train.matmul %x, %x batch [] x [] contract [1] x [1] : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x2xf32>
  %convolution = train.convolution %image, %kernel strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1]
    : (tensor<2x4x6x6xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x3x3xf32>
  %convolution_data_grad = train.convolution_data_grad %map, %kernel sizes [2, 4, 6, 6] strides [2, 2]
    dilations [1, 1] pads [1, 1, 1, 1] : (tensor<2x6x3x3xf32>, tensor<6x2x3x3xf32>) -> tensor<2x4x6x6xf32>
  %convolution_weight_grad = train.convolution_weight_grad %map, %image sizes [6, 2, 3, 3] strides [2, 2]
    dilations [1, 1] pads [1, 1, 1, 1] : (tensor<2x6x3x3xf32>, tensor<2x4x6x6xf32>) -> tensor<6x2x3x3xf32>
  %max_pool = train.max_pool %image window [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1]
    : tensor<2x4x6x6xf32> -> tensor<2x4x3x3xf32>
  %max_pool_grad = train.max_pool_grad %pooled, %image window [3, 3] strides [2, 2] dilations [1, 1]
    pads [1, 1, 1, 1] : (tensor<2x4x3x3xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %average_pool = train.average_pool %image window [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1] counts_pads
    : tensor<2x4x6x6xf32> -> tensor<2x4x3x3xf32>
  %average_pool_grad = train.average_pool_grad %pooled sizes [2, 4, 6, 6] window [3, 3] strides [2, 2]
    dilations [1, 1] pads [1, 1, 1, 1] counts_pads : tensor<2x4x3x3xf32> -> tensor<2x4x6x6xf32>
  %reduce = train.reduce sum %x dims [0] : tensor<2x3xf32> -> tensor<3xf32>
  %softmax = train.softmax %x : tensor<2x3xf32>
  %layer_norm:3 = train.layer_norm %x, %s epsilon 1.0e-5
    : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>
  %layer_norm_grad:3 = train.layer_norm_grad %x, %x, %s, %m, %m
    : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>)
    -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %rms_norm:2 = train.rms_norm %x, %s epsilon 1.0e-5 : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>, tensor<2xf32>
  %rms_norm_grad:2 = train.rms_norm_grad %x, %x, %s, %m
    : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  %embedding = train.embedding %x, %ids : tensor<2x3xf32>, tensor<2xi64> -> tensor<2x3xf32>
  %embedding_grad = train.embedding_grad %ids, %x rows 2 : tensor<2xi64>, tensor<2x3xf32> -> tensor<2x3xf32>
  %gather = train.gather %x, %ids axis 1 : tensor<2x3xf32>, tensor<2xi64> -> tensor<2x2xf32>
  %scatter_add = train.scatter_add %ids, %x axis 0 size 3 : tensor<2xi64>, tensor<2x3xf32> -> tensor<3x3xf32>
  %gather_elements = train.gather_elements %x, %columns axis 1 : tensor<2x3xf32>, tensor<2x1xi64> -> tensor<2x1xf32>
  %scatter_elements_add = train.scatter_elements_add %columns, %gather_elements axis 1 size 3
    : tensor<2x1xi64>, tensor<2x1xf32> -> tensor<2x3xf32>
  %experts = train.experts %x to %columns by %gather_elements through %up, %down silu gated
    : (tensor<2x3xf32>, tensor<2x1xi64>, tensor<2x1xf32>, tensor<4x6x3xf32>, tensor<4x3x3xf32>) -> tensor<2x3xf32>
  %experts_grad:4 = train.experts_grad %x, %x to %columns by %gather_elements through %up, %down silu gated
    : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x1xi64>, tensor<2x1xf32>, tensor<4x6x3xf32>, tensor<4x3x3xf32>)
    -> (tensor<2x3xf32>, tensor<2x1xf32>, tensor<4x6x3xf32>, tensor<4x3x3xf32>)
  %rotary = train.rotary %q, %t, %t : tensor<1x4x5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
  %dropout = train.dropout %x, %ids ratio 0.1 : tensor<2x3xf32>, tensor<2xi64>
  %attention:2 = train.attention %q, %k, %k scale 0.5
    : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  %attention_grad:3 = train.attention_grad %q, %q, %k, %k output %q, %l scale 0.5 causal
    : (tensor<1x4x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x5x8xf32>,
       tensor<1x4x5xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>)
  %cross_entropy:3 = train.softmax_cross_entropy %x, %ids ignore -100
    : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2xf32>)
  %cross_entropy_grad = train.softmax_cross_entropy_grad %n, %x, %ids, %m ignore -100
    : (tensor<f32>, tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x3xf32>
  %loss = train.loss %n, %n : tensor<f32>
  %square_sum = train.square_sum %x : tensor<2x3xf32> -> tensor<f32>
  %clip_factor = train.clip_factor %n, %n : tensor<f32>
  %adamw:3 = train.adamw %x, %x, %x, %x, %n, %n, %n, %n, %n, %n, %n, %n
    : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>,
       tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %lamb:3 = train.lamb %x, %x, %x, %x, %n, %n, %n, %n, %n, %n, %n
    : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>,
       tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %momentum:2 = train.momentum %x, %x, %n, %n
    : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %descend = train.descend %x, %x, %n, %n
    : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> tensor<2x3xf32>
  %ema = train.ema %x, %x, %n : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %lion:2 = train.lion %x, %x, %x, %n, %n, %n, %n, %n
    : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>,
       tensor<f32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %sgd:2 = train.sgd %x, %x, %x, %n, %n, %n, %n
    : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %average = train.average %x, %x rate 0.1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %read = train.read @w : tensor<2x3xf32>
  %track_statistic = train.track_statistic %x, %read correction 1.5 : tensor<2x3xf32>
  train.write @w, %read : tensor<2x3xf32>
  %hyperparameter = train.hyperparameter learning_rate : tensor<f32>
  %stash = train.stash %x : tensor<2x3xf32>
  return
}
)mlir";

constexpr StringRef kTitles[] = {"op",      "type inference",        "verifier",     "gradient",
                                 "factors", "inner reduction split", "unreduced",    "precision",
                                 "cost",    "interpreter",           "runtime entry"};

bool isModuleOp(Operation *op) {
  return isa<train::ParameterOp, train::ReadOp, train::TrackStatisticOp, train::WriteOp, train::HyperparameterOp,
             train::StashOp>(op);
}

Cell getTypes(Operation *op) {
  if (isa<InferTypeOpInterface>(op))
    return {"inferred"};
  if (isa<train::BroadcastOp, train::ReshapeOp, train::IotaOp, train::ConstantOp, train::CastOp, train::CompareOp,
          train::IsNanOp, train::SelectOp>(op))
    return {"the result's type says what the operator does", true};
  if (isModuleOp(op))
    return {"the symbol or the operand has the type", true};
  if (isa<train::DropoutOp, train::RotaryOp>(op))
    return {"that of the first operand"};
  if (op->hasTrait<OpTrait::SameOperandsAndResultType>() || isa<train::SquareSumOp>(op))
    return {"the result is a scalar", true};
  return {};
}

Cell getVerifier(Operation *op) {
  // Every operator checks the kinds of its operands and attributes; a trait or its own code relates them.
  if (isa<train::ScalarOpInterface, train::LossOp, train::ClipFactorOp>(op))
    return {"traits"};
  if (isa<train::ConstantOp, train::StashOp>(op))
    return {"traits"};
  if (isa<SymbolUserOpInterface>(op))
    return {"symbol"};
  if (isa<train::SquareSumOp, train::HyperparameterOp>(op))
    return {"operand kinds"};
  return {"own"};
}

Cell getGradient(Operation *op) {
  if (isa<train::DifferentiableOpInterface>(op))
    return {"yes"};
  StringRef name = op->getName().stripDialect();
  if (name.ends_with("_grad") || isa<train::AccumulateOp, train::ScatterAddOp, train::ScatterElementsAddOp>(op))
    return {"part of a gradient; second derivatives are not built", true};
  if (isa<train::AndOp, train::OrOp, train::NotOp, train::CompareOp, train::IsNanOp>(op))
    return {"truth values", true};
  if (isa<train::ConstantOp, train::IotaOp>(op))
    return {"no operand", true};
  if (train::isOptimizerStep(op) || isa<train::AverageOp, train::SquareSumOp, train::ClipFactorOp>(op))
    return {"in @update only", true};
  if (isModuleOp(op))
    return {"a source or a sink of values", true};
  return {};
}

Cell getFactors(Operation *op) {
  auto compute = dyn_cast<train::TrainOpInterface>(op);
  if (!compute)
    return {"computes nothing; split as its value is", true};
  train::OpFactors factors = compute.getFactors();
  if (factors.operands.size() != op->getNumOperands() || factors.results.size() != op->getNumResults())
    return {};
  if (factors.factors.empty())
    return {"scalars", true};
  std::string text;
  for (const train::Factor &factor : factors.factors) {
    constexpr StringRef marks[] = {"", "+", "*", "!", "~"};
    text += (text.empty() ? "" : " ") + factor.name + marks[static_cast<unsigned>(factor.kind)].str();
  }
  return {text};
}

/// The factor that is reduced or looked up inside and has a rule to split it.
Cell getInner(Operation *op) {
  auto compute = dyn_cast<train::TrainOpInterface>(op);
  if (!compute)
    return {"computes nothing", true};
  std::string text;
  for (const train::Factor &factor : compute.getFactors().factors)
    if (factor.isTakenApart())
      text += (text.empty() ? "" : " ") + factor.name;
  if (text.empty())
    return {"reduces nothing inside", true};
  return isa<train::InnerReductionOpInterface>(op) ? Cell{text} : Cell();
}

Cell getUnreduced(Operation *op) {
  auto compute = dyn_cast<train::TrainOpInterface>(op);
  if (!compute)
    return {"computes nothing", true};
  std::string text;
  for (ArrayRef<unsigned> set : compute.getFactors().unreducedTogether) {
    std::string names;
    for (unsigned index : set)
      names += (names.empty() ? "" : ",") + std::to_string(index);
    text += "{" + names + "}";
  }
  if (!text.empty())
    return {text};
  return op->getNumOperands() == 0 ? Cell{"no operand", true} : Cell{"not linear", true};
}

Cell getPrecision(Operation *op) {
  auto compute = dyn_cast<train::TrainOpInterface>(op);
  if (!compute)
    return {"computes nothing", true};
  constexpr StringRef names[] = {"any", "contraction", "full", "index"};
  return {names[static_cast<unsigned>(compute.getPrecisionClass())].str()};
}

Cell getCost(Operation *op) {
  auto compute = dyn_cast<train::TrainOpInterface>(op);
  if (!compute)
    return {"computes nothing", true};
  train::OpCost cost = compute.getCost();
  if (cost.flops == 0 && cost.bytes == 0)
    return isa<train::ReshapeOp>(op) ? Cell{"a view: no work", true} : Cell();
  return {llvm::formatv("{0:F0} FLOP, {1:F0} B", cost.flops, cost.bytes).str()};
}

Cell getInterpreter(Operation *op) {
  return interpreter::interpreterSupports(op->getName().getStringRef()) ? Cell{"yes"} : Cell();
}

Cell getRuntime(Operation *op) {
  if (auto scalar = dyn_cast<train::ScalarOpInterface>(op))
    return {"scalar::" + scalar.getScalarFunction().str()};
  if (const sched::KernelRow *row = sched::findRow(op))
    return {row->entry.str()};
  if (isa<train::LossOp, train::ClipFactorOp, train::AverageOp>(op))
    return {"fused from scalar functions", true};
  if (isa<train::ConstantOp>(op))
    return {"fill, or bytes of the program", true};
  if (isa<train::ReshapeOp, train::TransposeOp, train::BroadcastOp, train::SliceOp, train::SplitOp>(op))
    return {"a view, at most a copy", true};
  if (isa<train::PadOp, train::ConcatOp>(op))
    return {"fill and copies into views", true};
  if (isa<train::TrackStatisticOp>(op))
    return {"differentiation replaces it", true};
  if (isModuleOp(op))
    return {"a buffer of an arena", true};
  return {};
}

std::vector<Cell> makeCells(Operation *op) {
  return {getTypes(op),     getVerifier(op),  getGradient(op), getFactors(op),     getInner(op),
          getUnreduced(op), getPrecision(op), getCost(op),     getInterpreter(op), getRuntime(op)};
}

} // namespace

bool windlass::printOpTable(raw_ostream &out, raw_ostream &errors) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect, train::TrainDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kExamples, &context);
  if (!module)
    return false;
  std::map<std::string, std::vector<Cell>> cells;
  module->walk([&](Operation *op) {
    if (isa_and_nonnull<train::TrainDialect>(op->getDialect()))
      cells[op->getName().getStringRef().str()] = makeCells(op);
  });

  bool isComplete = true;
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("train"))
    if (!cells.count(name.getStringRef().str())) {
      errors << "the table has no example of " << name.getStringRef() << '\n';
      isComplete = false;
    }
  std::vector<TableRow> rows;
  for (auto &[name, ofOp] : cells)
    rows.push_back({name, std::move(ofOp)});
  out << "Factors: + summed over, * reduced inside, ! unsplit, ~ all elements. In parentheses: why there is nothing.\n";
  return printTable(kTitles, rows, out, errors) && isComplete;
}
