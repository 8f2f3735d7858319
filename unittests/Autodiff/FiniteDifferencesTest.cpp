// Gradients of every differentiable operator against central differences of its reference kernel, in f64.
#include "windlass/Autodiff/Passes.h"
#include "windlass/Interpreter/Kernels.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace windlass;
using interpreter::ElementKind;
using interpreter::Tensor;

namespace {

struct Variable {
  const char *name;
  std::vector<int64_t> shape;
  double low = -1, high = 1;
};

/// An operator between trainable parameters and the loss, the sum of `%r` times fixed random weights.
struct Case {
  const char *op; ///< the operator that the case is about
  std::vector<Variable> parameters;
  std::vector<int64_t> result;
  std::string body; ///< defines %r; may use %ids : tensor<2x3xi64> (values 0 to 3), %mask : tensor<2x3xi1>
};

/// Prints the name of a failing test.
void PrintTo(const Case &test, std::ostream *out) { *out << test.op; }

std::string getType(llvm::ArrayRef<int64_t> shape) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f64>";
}

/// Makes a case of an element-wise operator of one or two operands, away from kinks.
Case makeUnary(const char *op, double low, double high) {
  return {op, {{"x", {2, 3}, low, high}}, {2, 3}, std::string("%r = ") + op + " %x : tensor<2x3xf64>\n"};
}

Case makeBinary(const char *op, double low, double high) {
  return {op,
          {{"x", {2, 3}, low, high}, {"y", {2, 3}, low, high}},
          {2, 3},
          std::string("%r = ") + op + " %x, %y : tensor<2x3xf64>\n"};
}

std::vector<Case> getCases() {
  std::vector<Case> cases = {
      makeBinary("train.add", -1, 1),    makeBinary("train.sub", -1, 1), makeBinary("train.mul", -1, 1),
      makeBinary("train.div", 0.5, 2),   makeBinary("train.max", -1, 1), makeBinary("train.min", -1, 1),
      makeUnary("train.neg", -1, 1),     makeUnary("train.abs", 0.2, 1), makeUnary("train.abs", -1, -0.2),
      makeUnary("train.softmax", -1, 1),
  };
#define WINDLASS_REAL_FUNCTION(Class, name, onnx, flops, low, high, gradient)                                          \
  cases.push_back(makeUnary("train." #name, low, high));
#include "windlass/Dialect/Train/IR/RealFunctions.def"
  // One operand twice: the two contributions add up.
  cases.push_back({"train.mul", {{"x", {2, 3}}}, {2, 3}, "%r = train.mul %x, %x : tensor<2x3xf64>\n"});
  // A tie halves the gradient; the central difference of max(x, x) is that of x.
  cases.push_back({"train.max", {{"x", {2, 3}}}, {2, 3}, "%r = train.max %x, %x : tensor<2x3xf64>\n"});
  cases.push_back({"train.pow",
                   {{"x", {2, 3}, 0.5, 2}},
                   {2, 3},
                   "%c = train.constant dense<2.5> : tensor<2x3xf64>\n%r = train.pow %x, %c : tensor<2x3xf64>\n"});
  cases.push_back(
      {"train.pow", {{"x", {2, 3}, 0.5, 2}, {"y", {2, 3}}}, {2, 3}, "%r = train.pow %x, %y : tensor<2x3xf64>\n"});
  cases.push_back({"train.select",
                   {{"x", {2, 3}}, {"y", {2, 3}}},
                   {2, 3},
                   "%r = train.select %mask, %x, %y : tensor<2x3xi1>, tensor<2x3xf64>\n"});
  cases.push_back({"train.cast", {{"x", {2, 3}}}, {2, 3}, "%r = train.cast %x : tensor<2x3xf64> -> tensor<2x3xf64>\n"});
  cases.push_back({"train.broadcast",
                   {{"x", {3}}},
                   {2, 3, 2},
                   "%r = train.broadcast %x dims [1] : tensor<3xf64> -> tensor<2x3x2xf64>\n"});
  cases.push_back(
      {"train.reshape", {{"x", {2, 6}}}, {4, 3}, "%r = train.reshape %x : tensor<2x6xf64> -> tensor<4x3xf64>\n"});
  cases.push_back({"train.transpose",
                   {{"x", {2, 3, 4}}},
                   {4, 2, 3},
                   "%r = train.transpose %x [2, 0, 1] : tensor<2x3x4xf64> -> tensor<4x2x3xf64>\n"});
  cases.push_back({"train.slice",
                   {{"x", {3, 4}}},
                   {2, 2},
                   "%r = train.slice %x from [1, 2] sizes [2, 2] : tensor<3x4xf64> -> tensor<2x2xf64>\n"});
  cases.push_back({"train.pad",
                   {{"x", {2, 3}}},
                   {4, 4},
                   "%r = train.pad %x low [1, 0] high [1, 1] value 0.5 : tensor<2x3xf64> -> tensor<4x4xf64>\n"});
  cases.push_back({"train.concat",
                   {{"x", {2, 1}}, {"y", {2, 3}}},
                   {2, 4},
                   "%r = train.concat %x, %y axis 1 : tensor<2x1xf64>, tensor<2x3xf64> -> tensor<2x4xf64>\n"});
  // The middle part has no gradient.
  cases.push_back({"train.split",
                   {{"x", {2, 5}}},
                   {2, 2},
                   "%a, %b, %c = train.split %x axis 1 sizes [2, 1, 2] : tensor<2x5xf64> -> tensor<2x2xf64>, "
                   "tensor<2x1xf64>, tensor<2x2xf64>\n%r = train.mul %a, %c : tensor<2x2xf64>\n"});
  cases.push_back({"train.matmul",
                   {{"x", {2, 3}}, {"y", {3, 4}}},
                   {2, 4},
                   "%r = train.matmul %x, %y batch [] x [] contract [1] x [0] : tensor<2x3xf64>, tensor<3x4xf64> -> "
                   "tensor<2x4xf64>\n"});
  // Two batch dims in another order, two contracted dims in another order, free dims between.
  cases.push_back({"train.matmul",
                   {{"x", {2, 3, 4, 2, 3}}, {"y", {3, 2, 2, 3, 4}}},
                   {2, 2, 4, 4},
                   "%r = train.matmul %x, %y batch [3, 0] x [1, 2] contract [4, 1] x [0, 3] : tensor<2x3x4x2x3xf64>, "
                   "tensor<3x2x2x3x4xf64> -> tensor<2x2x4x4xf64>\n"});
  cases.push_back({"train.matmul",
                   {{"x", {2, 3}}, {"y", {4, 3}}},
                   {2, 4},
                   "%r = train.matmul %x, %y batch [] x [] contract [1] x [1] : tensor<2x3xf64>, tensor<4x3xf64> -> "
                   "tensor<2x4xf64>\n"});
  // Four experts, of which a token has three: gated, and plain with the inputs first.
  cases.push_back({"train.experts",
                   {{"x", {2, 4}}, {"w", {2, 3}}, {"up", {4, 6, 4}}, {"down", {4, 5, 3}}},
                   {2, 5},
                   "%r = train.experts %x to %ids by %w through %up, %down silu gated : (tensor<2x4xf64>, "
                   "tensor<2x3xi64>, tensor<2x3xf64>, tensor<4x6x4xf64>, tensor<4x5x3xf64>) -> tensor<2x5xf64>\n"});
  cases.push_back({"train.experts",
                   {{"x", {2, 4}}, {"w", {2, 3}}, {"up", {4, 4, 3}}, {"down", {4, 3, 5}}},
                   {2, 5},
                   "%r = train.experts %x to %ids by %w through %up, %down gelu_erf inputs_first : (tensor<2x4xf64>, "
                   "tensor<2x3xi64>, tensor<2x3xf64>, tensor<4x4x3xf64>, tensor<4x3x5xf64>) -> tensor<2x5xf64>\n"});
  cases.push_back({"train.experts",
                   {{"x", {2, 4}}, {"w", {2, 3}}, {"up", {4, 3, 4}}, {"down", {4, 5, 3}}, {"gate", {4, 3, 4}}},
                   {2, 5},
                   "%r = train.experts %x to %ids by %w through %up, %down gate %gate silu : (tensor<2x4xf64>, "
                   "tensor<2x3xi64>, tensor<2x3xf64>, tensor<4x3x4xf64>, tensor<4x5x3xf64>, tensor<4x3x4xf64>) -> "
                   "tensor<2x5xf64>\n"});
  // Two groups of two channels, one stride, dilation and pad on each side that differs from the others.
  cases.push_back({"train.convolution",
                   {{"x", {2, 4, 4, 3}}, {"w", {2, 2, 2, 2}}},
                   {2, 2, 3, 3},
                   "%r = train.convolution %x, %w strides [2, 1] dilations [1, 2] pads [1, 1, 1, 1] : "
                   "(tensor<2x4x4x3xf64>, tensor<2x2x2x2xf64>) -> tensor<2x2x3x3xf64>\n"});
  cases.push_back({"train.convolution",
                   {{"x", {1, 2, 5}}, {"w", {3, 2, 2}}},
                   {1, 3, 4},
                   "%r = train.convolution %x, %w strides [1] dilations [1] pads [0, 0] : "
                   "(tensor<1x2x5xf64>, tensor<3x2x2xf64>) -> tensor<1x3x4xf64>\n"});
  // Windows that leave a row of the result out, as a transposed convolution with output padding does.
  cases.push_back({"train.convolution_data_grad",
                   {{"x", {2, 4, 2, 3}}, {"w", {4, 1, 2, 2}}},
                   {2, 2, 5, 3},
                   "%r = train.convolution_data_grad %x, %w sizes [2, 2, 5, 3] strides [2, 1] dilations [1, 2] "
                   "pads [0, 1, 0, 1] : (tensor<2x4x2x3xf64>, tensor<4x1x2x2xf64>) -> tensor<2x2x5x3xf64>\n"});
  cases.push_back({"train.max_pool",
                   {{"x", {2, 2, 4, 3}}},
                   {2, 2, 2, 3},
                   "%r = train.max_pool %x window [3, 2] strides [2, 1] dilations [1, 1] pads [1, 1, 0, 0] : "
                   "tensor<2x2x4x3xf64> -> tensor<2x2x2x3xf64>\n"});
  for (const char *counts : {"", " counts_pads"})
    cases.push_back({"train.average_pool",
                     {{"x", {2, 2, 4, 3}}},
                     {2, 2, 2, 3},
                     std::string("%r = train.average_pool %x window [3, 2] strides [2, 1] dilations [1, 1] pads "
                                 "[1, 1, 0, 0]") +
                         counts + " : tensor<2x2x4x3xf64> -> tensor<2x2x2x3xf64>\n"});
  cases.push_back({"train.reduce",
                   {{"x", {2, 3, 2}}},
                   {3},
                   "%r = train.reduce sum %x dims [0, 2] : tensor<2x3x2xf64> -> tensor<3xf64>\n"});
  cases.push_back({"train.reduce",
                   {{"x", {2, 3, 2}}},
                   {3},
                   "%r = train.reduce min %x dims [0, 2] : tensor<2x3x2xf64> -> tensor<3xf64>\n"});
  cases.push_back(
      {"train.layer_norm",
       {{"x", {2, 3}}, {"s", {3}, 0.5, 2}, {"b", {3}}},
       {2, 3},
       "%r, %m, %d = train.layer_norm %x, %s, %b epsilon 0.1 : tensor<2x3xf64>, tensor<3xf64>, tensor<3xf64> "
       "-> tensor<2x3xf64>, tensor<2xf64>, tensor<2xf64>\n"});
  cases.push_back({"train.layer_norm",
                   {{"x", {2, 3}}, {"s", {3}, 0.5, 2}},
                   {2, 3},
                   "%r, %m, %d = train.layer_norm %x, %s epsilon 0.1 : tensor<2x3xf64>, tensor<3xf64> -> "
                   "tensor<2x3xf64>, tensor<2xf64>, tensor<2xf64>\n"});
  cases.push_back({"train.embedding",
                   {{"x", {4, 2}}},
                   {2, 3, 2},
                   "%r = train.embedding %x, %ids : tensor<4x2xf64>, tensor<2x3xi64> -> tensor<2x3x2xf64>\n"});
  cases.push_back({"train.gather",
                   {{"x", {2, 4, 2}}},
                   {2, 2, 3, 2},
                   "%r = train.gather %x, %ids axis 1 : tensor<2x4x2xf64>, tensor<2x3xi64> -> tensor<2x2x3x2xf64>\n"});
  cases.push_back({"train.rms_norm",
                   {{"x", {2, 3}}, {"s", {3}, 0.5, 2}},
                   {2, 3},
                   "%r, %d = train.rms_norm %x, %s epsilon 0.1 : tensor<2x3xf64>, tensor<3xf64> -> tensor<2x3xf64>, "
                   "tensor<2xf64>\n"});
  // Row 0 reads one element twice.
  cases.push_back({"train.gather_elements",
                   {{"x", {2, 4}}},
                   {2, 3},
                   "%r = train.gather_elements %x, %ids axis 1 : tensor<2x4xf64>, tensor<2x3xi64> -> "
                   "tensor<2x3xf64>\n"});
  cases.push_back({"train.scatter_add",
                   {{"x", {2, 2, 3, 2}}},
                   {2, 5, 2},
                   "%r = train.scatter_add %ids, %x axis 1 size 5 : tensor<2x3xi64>, tensor<2x2x3x2xf64> -> "
                   "tensor<2x5x2xf64>\n"});
  cases.push_back({"train.scatter_elements_add",
                   {{"x", {2, 3}}},
                   {2, 4},
                   "%r = train.scatter_elements_add %ids, %x axis 1 size 4 : tensor<2x3xi64>, tensor<2x3xf64> -> "
                   "tensor<2x4xf64>\n"});
  for (const char *transposed : {"", " transposed"})
    cases.push_back({"train.rotary",
                     {{"x", {3, 2, 2}}},
                     {3, 2, 2},
                     std::string("%a = train.slice %ids from [0, 0] sizes [2, 2] : tensor<2x3xi64> -> tensor<2x2xi64>\n"
                                 "%f = train.cast %a : tensor<2x2xi64> -> tensor<2x2xf64>\n"
                                 "%c = train.cos %f : tensor<2x2xf64>\n%s = train.exp %f : tensor<2x2xf64>\n"
                                 "%r = train.rotary %x, %c, %s") +
                         transposed + " : tensor<3x2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>\n"});
  cases.push_back({"train.dropout",
                   {{"x", {2, 3}}},
                   {2, 3},
                   "%two = train.slice %ids from [0, 0] sizes [2, 1] : tensor<2x3xi64> -> tensor<2x1xi64>\n"
                   "%keys = train.reshape %two : tensor<2x1xi64> -> tensor<2xi64>\n"
                   "%r = train.dropout %x, %keys ratio 0.4 : tensor<2x3xf64>, tensor<2xi64>\n"});
  for (const char *causal : {"", " causal"})
    cases.push_back({"train.attention",
                     {{"q", {1, 4, 3, 2}}, {"k", {1, 2, 3, 2}}, {"v", {1, 2, 3, 3}}},
                     {1, 4, 3, 3},
                     std::string("%r, %l = train.attention %q, %k, %v scale 0.7") + causal +
                         " : (tensor<1x4x3x2xf64>, tensor<1x2x3x2xf64>, tensor<1x2x3x3xf64>) -> (tensor<1x4x3x3xf64>, "
                         "tensor<1x4x3xf64>)\n"});
  // Label 3 is ignored.
  cases.push_back(
      {"train.softmax_cross_entropy",
       {{"x", {2, 3, 4}}},
       {},
       "%r, %c, %l = train.softmax_cross_entropy %x, %ids ignore 3 : (tensor<2x3x4xf64>, tensor<2x3xi64>) -> "
       "(tensor<f64>, tensor<f64>, tensor<2x3xf64>)\n"});
  cases.push_back({"train.track_statistic",
                   {{"x", {2, 3}}},
                   {2, 3},
                   "%r = train.track_statistic %x, %weights correction 1.5 : tensor<2x3xf64>\n"});
  cases.push_back({"train.loss",
                   {{"x", {}}},
                   {},
                   "%c = train.constant dense<3.0> : tensor<f64>\n%r = train.loss %x, %c : tensor<f64>\n"});
  return cases;
}

/// Evaluates `@microbatch` by the reference kernels.
class Evaluator {
public:
  Evaluator(func::FuncOp function, llvm::StringMap<Tensor> &parameters, llvm::ArrayRef<Tensor> inputs)
      : function(function), parameters(parameters), inputs(inputs) {}

  llvm::Expected<std::vector<Tensor>> run() {
    llvm::DenseMap<Value, Tensor> values;
    for (auto [argument, input] : llvm::zip(function.getArguments(), inputs))
      values[argument] = input;
    for (Operation &op : function.front().without_terminator()) {
      if (auto read = dyn_cast<train::ReadOp>(op)) {
        values[read.getResult()] = parameters[read.getParameter()];
        continue;
      }
      if (auto stash = dyn_cast<train::StashOp>(op)) {
        values[stash.getResult()] = values.lookup(stash.getValue());
        continue;
      }
      llvm::SmallVector<Tensor> operands;
      for (Value operand : op.getOperands())
        operands.push_back(values.lookup(operand));
      llvm::SmallVector<RankedTensorType> types;
      for (Type type : op.getResultTypes())
        types.push_back(cast<RankedTensorType>(type));
      auto results = interpreter::evaluate(op.getName().getStringRef(), op.getAttrDictionary(), operands, types,
                                           interpreter::Precision::f64);
      if (!results)
        return results.takeError();
      for (auto [value, result] : llvm::zip(op.getResults(), *results))
        values[value] = result;
    }
    std::vector<Tensor> results;
    for (Value value : function.front().getTerminator()->getOperands())
      results.push_back(values.lookup(value));
    return results;
  }

private:
  func::FuncOp function;
  llvm::StringMap<Tensor> &parameters;
  llvm::ArrayRef<Tensor> inputs;
};

class FiniteDifferences : public testing::TestWithParam<Case> {
protected:
  FiniteDifferences() { context.loadDialect<train::TrainDialect, func::FuncDialect>(); }

  OwningOpRef<ModuleOp> differentiate(const Case &test) {
    std::string text;
    for (const Variable &variable : test.parameters)
      text += std::string("train.parameter weight @") + variable.name + " \"" + variable.name +
              "\" : " + getType(variable.shape) + " from <none> {trainable}\n";
    std::string type = getType(test.result);
    text += "func.func @loss(%weights: " + type + ", %ids: tensor<2x3xi64>, %mask: tensor<2x3xi1>) -> tensor<f64> {\n";
    for (const Variable &variable : test.parameters)
      text +=
          std::string("%") + variable.name + " = train.read @" + variable.name + " : " + getType(variable.shape) + "\n";
    text += test.body + "%weighted = train.mul %r, %weights : " + type + "\n";
    std::string dims;
    for (size_t dim = 0; dim < test.result.size(); ++dim)
      dims += (dim ? ", " : "") + std::to_string(dim);
    text += "%sum = train.reduce sum %weighted dims [" + dims + "] : " + type + " -> tensor<f64>\n";
    text += "return %sum : tensor<f64>\n}\n";
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return nullptr;
    PassManager passes(&context);
    passes.addPass(train::createDifferentiatePass(train::DifferentiatePassOptions{2}));
    return succeeded(passes.run(*module)) ? std::move(module) : nullptr;
  }

  static Tensor makeRandom(llvm::ArrayRef<int64_t> shape, double low, double high, std::mt19937 &random) {
    Tensor tensor(ElementKind::f64, shape);
    for (double &value : tensor.mutableValues<double>())
      value = low + (high - low) * (random() / 4294967296.0);
    return tensor;
  }

  MLIRContext context;
};

TEST_P(FiniteDifferences, AgreeWithTheAdjoint) {
  const Case &test = GetParam();
  OwningOpRef<ModuleOp> module = differentiate(test);
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<func::FuncOp>(train::kMicrobatchFunction);

  // Steps are flat wherever they have a slope.
  bool isStep = llvm::is_contained(
      llvm::ArrayRef<llvm::StringRef>{"train.floor", "train.ceil", "train.round", "train.sign"}, test.op);
  std::mt19937 random(7);
  Tensor ids(ElementKind::i64, {2, 3}), mask(ElementKind::boolean, {2, 3});
  for (int64_t i = 0; i < 6; ++i) {
    ids.set(i, (i * 5 + 2) % 4);
    mask.set(i, i % 2);
  }
  std::vector<Tensor> inputs{makeRandom(test.result, -1, 1, random), ids, mask};
  llvm::StringMap<Tensor> parameters;
  for (const Variable &variable : test.parameters)
    parameters[variable.name] = makeRandom(variable.shape, variable.low, variable.high, random);

  auto evaluate = [&] { return llvm::cantFail(Evaluator(function, parameters, inputs).run()); };
  std::vector<Tensor> results = evaluate();
  ASSERT_EQ(results.size(), test.parameters.size() + 1);
  for (auto [index, variable] : llvm::enumerate(test.parameters)) {
    const Tensor &gradient = results[index + 1];
    Tensor whole = parameters[variable.name];
    ASSERT_EQ(gradient.getShape(), whole.getShape());
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < whole.getElements(); ++i) {
      constexpr double step = 1e-5;
      double losses[2];
      for (int side : {0, 1}) {
        Tensor moved = whole;
        moved.set(i, whole.at(i) + (side ? step : -step));
        parameters[variable.name] = moved;
        losses[side] = evaluate().front().at(0);
      }
      double slope = (losses[1] - losses[0]) / (2 * step);
      difference += (slope - gradient.at(i)) * (slope - gradient.at(i));
      norm += slope * slope;
    }
    parameters[variable.name] = whole;
    EXPECT_EQ(norm > 0, !isStep) << variable.name;
    EXPECT_LE(std::sqrt(difference), 1e-8 * std::max(1.0, std::sqrt(norm))) << variable.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, FiniteDifferences, testing::ValuesIn(getCases()), [](const auto &info) {
  return std::string(info.param.op).substr(6) + "_" + std::to_string(info.index);
});

TEST(FiniteDifferencesCoverage, EveryDifferentiableOperatorHasACase) {
  MLIRContext context;
  context.loadDialect<train::TrainDialect>();
  llvm::StringSet<> tested;
  for (const Case &test : getCases())
    tested.insert(test.op);
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("train"))
    if (name.hasInterface<train::DifferentiableOpInterface>()) {
      EXPECT_TRUE(tested.contains(name.getStringRef())) << name.getStringRef().str();
    }
}

} // namespace
