// Rules that take an operator apart along a factor: the operators that they build compute what the operator computes,
// by the reference kernels in f64.
#include "TestTensors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"

#include <limits>

using namespace mlir;
using namespace windlass;
using interpreter::ElementKind;
using interpreter::Precision;
using interpreter::Tensor;

namespace {

struct Case {
  const char *op; ///< the operator that the case is about, the last of the body
  int64_t parts;
  const char *arguments, *body;
};

void PrintTo(const Case &test, std::ostream *out) { *out << test.op; }

// Integers count from 0 to 5, with the ignored label -1 as the last; the rest are varied numbers.
const Case kCases[] = {
    {"train.softmax", 3, "%x: tensor<2x6xf64>", "%r = train.softmax %x : tensor<2x6xf64>"},
    {"train.softmax_grad", 2, "%y: tensor<2x2x4xf64>, %g: tensor<2x2x4xf64>",
     "%r = train.softmax_grad %y, %g : tensor<2x2x4xf64>"},
    {"train.layer_norm", 2, "%x: tensor<3x4xf64>, %s: tensor<4xf64>, %b: tensor<4xf64>",
     "%r:3 = train.layer_norm %x, %s, %b epsilon 0.1 : tensor<3x4xf64>, tensor<4xf64>, tensor<4xf64> -> "
     "tensor<3x4xf64>, "
     "tensor<3xf64>, tensor<3xf64>"},
    {"train.layer_norm", 2, "%x: tensor<4xf64>, %s: tensor<4xf64>",
     "%r:3 = train.layer_norm %x, %s epsilon 0.1 : tensor<4xf64>, tensor<4xf64> -> tensor<4xf64>, tensor<f64>, "
     "tensor<f64>"},
    {"train.layer_norm_grad", 2,
     "%g: tensor<2x3x4xf64>, %x: tensor<2x3x4xf64>, %s: tensor<4xf64>, %m: tensor<2x3xf64>, %d: tensor<2x3xf64>",
     "%r:3 = train.layer_norm_grad %g, %x, %s, %m, %d : (tensor<2x3x4xf64>, tensor<2x3x4xf64>, tensor<4xf64>, "
     "tensor<2x3xf64>, tensor<2x3xf64>) -> (tensor<2x3x4xf64>, tensor<4xf64>, tensor<4xf64>)"},
    {"train.layer_norm_grad", 2,
     "%g: tensor<4xf64>, %x: tensor<4xf64>, %s: tensor<4xf64>, %m: tensor<f64>, %d: tensor<f64>",
     "%r:3 = train.layer_norm_grad %g, %x, %s, %m, %d : (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<f64>, "
     "tensor<f64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>)"},
    {"train.rms_norm", 2, "%x: tensor<3x4xf64>, %s: tensor<4xf64>",
     "%r:2 = train.rms_norm %x, %s epsilon 0.1 : tensor<3x4xf64>, tensor<4xf64> -> tensor<3x4xf64>, tensor<3xf64>"},
    {"train.rms_norm_grad", 2, "%g: tensor<3x4xf64>, %x: tensor<3x4xf64>, %s: tensor<4xf64>, %d: tensor<3xf64>",
     "%r:2 = train.rms_norm_grad %g, %x, %s, %d : (tensor<3x4xf64>, tensor<3x4xf64>, tensor<4xf64>, tensor<3xf64>) -> "
     "(tensor<3x4xf64>, tensor<4xf64>)"},
    // Classes in parts of three: labels of each part, and an ignored one.
    {"train.softmax_cross_entropy", 2, "%x: tensor<1x7x6xf64>, %l: tensor<1x7xi64>",
     "%r:3 = train.softmax_cross_entropy %x, %l ignore -1 : (tensor<1x7x6xf64>, tensor<1x7xi64>) -> (tensor<f64>, "
     "tensor<f64>, tensor<1x7xf64>)"},
    // The ignored label is a class here, and the first of a part. Label -1 is left out of the data.
    {"train.softmax_cross_entropy", 3, "%x: tensor<6x6xf64>, %l: tensor<6xi32>",
     "%r:3 = train.softmax_cross_entropy %x, %l ignore 2 : (tensor<6x6xf64>, tensor<6xi32>) -> (tensor<f64>, "
     "tensor<f64>, "
     "tensor<6xf64>)"},
    // A whole part of the classes is out of reach.
    {"train.softmax_cross_entropy", 2, "%x: tensor<3x6xf64>, %l: tensor<3xi64>",
     "%low = train.constant dense<0xFFF0000000000000> : tensor<3x3xf64>\n"
     "%near = train.slice %x from [0, 0] sizes [3, 3] : tensor<3x6xf64> -> tensor<3x3xf64>\n"
     "%y = train.concat %near, %low axis 1 : tensor<3x3xf64>, tensor<3x3xf64> -> tensor<3x6xf64>\n"
     "%r:3 = train.softmax_cross_entropy %y, %l ignore -1 : (tensor<3x6xf64>, tensor<3xi64>) -> (tensor<f64>, "
     "tensor<f64>, tensor<3xf64>)"},
    {"train.softmax_cross_entropy_grad", 2,
     "%g: tensor<f64>, %x: tensor<7x6xf64>, %l: tensor<7xi64>, %s: tensor<7xf64>",
     "%r = train.softmax_cross_entropy_grad %g, %x, %l, %s ignore -1 : (tensor<f64>, tensor<7x6xf64>, tensor<7xi64>, "
     "tensor<7xf64>) -> tensor<7x6xf64>"},
    {"train.embedding", 3, "%t: tensor<6x2xf64>, %i: tensor<2x3xi64>",
     "%r = train.embedding %t, %i : tensor<6x2xf64>, tensor<2x3xi64> -> tensor<2x3x2xf64>"},
    {"train.embedding_grad", 2, "%i: tensor<6xi32>, %g: tensor<6x2xf64>",
     "%r = train.embedding_grad %i, %g rows 8 : tensor<6xi32>, tensor<6x2xf64> -> tensor<8x2xf64>"},
    {"train.experts", 3,
     "%x: tensor<3x4xf64>, %c: tensor<3x2xi64>, %w: tensor<3x2xf64>, %u: tensor<6x6x4xf64>, %d: tensor<6x5x3xf64>",
     "%r = train.experts %x to %c by %w through %u, %d silu gated : (tensor<3x4xf64>, tensor<3x2xi64>, "
     "tensor<3x2xf64>, "
     "tensor<6x6x4xf64>, tensor<6x5x3xf64>) -> tensor<3x5xf64>"},
    {"train.experts_grad", 2,
     "%g: tensor<3x5xf64>, %x: tensor<3x4xf64>, %c: tensor<3x2xi64>, %w: tensor<3x2xf64>, %u: tensor<6x4x3xf64>, "
     "%d: tensor<6x3x5xf64>",
     "%r:4 = train.experts_grad %g, %x to %c by %w through %u, %d gelu_erf inputs_first : (tensor<3x5xf64>, "
     "tensor<3x4xf64>, tensor<3x2xi64>, tensor<3x2xf64>, tensor<6x4x3xf64>, tensor<6x3x5xf64>) -> (tensor<3x4xf64>, "
     "tensor<3x2xf64>, tensor<6x4x3xf64>, tensor<6x3x5xf64>)"},
    {"train.experts", 2,
     "%x: tensor<3x4xf64>, %c: tensor<3x2xi64>, %w: tensor<3x2xf64>, %u: tensor<6x3x4xf64>, %d: tensor<6x5x3xf64>, "
     "%g: tensor<6x3x4xf64>",
     "%r = train.experts %x to %c by %w through %u, %d gate %g silu : (tensor<3x4xf64>, tensor<3x2xi64>, "
     "tensor<3x2xf64>, tensor<6x3x4xf64>, tensor<6x5x3xf64>, tensor<6x3x4xf64>) -> tensor<3x5xf64>"},
    {"train.experts_grad", 2,
     "%y: tensor<3x5xf64>, %x: tensor<3x4xf64>, %c: tensor<3x2xi64>, %w: tensor<3x2xf64>, %u: tensor<6x4x3xf64>, "
     "%d: tensor<6x3x5xf64>, %g: tensor<6x4x3xf64>",
     "%r:5 = train.experts_grad %y, %x to %c by %w through %u, %d gate %g silu inputs_first : (tensor<3x5xf64>, "
     "tensor<3x4xf64>, tensor<3x2xi64>, tensor<3x2xf64>, tensor<6x4x3xf64>, tensor<6x3x5xf64>, tensor<6x4x3xf64>) -> "
     "(tensor<3x4xf64>, tensor<3x2xf64>, tensor<6x4x3xf64>, tensor<6x3x5xf64>, tensor<6x4x3xf64>)"},
    {"train.attention", 2, "%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x4x2xf64>, %v: tensor<2x2x4x3xf64>",
     "%r:2 = train.attention %q, %k, %v scale 0.7 : (tensor<2x4x3x2xf64>, tensor<2x2x4x2xf64>, tensor<2x2x4x3xf64>) -> "
     "(tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)"},
    // More tokens than keys: the first have none.
    {"train.attention", 2, "%q: tensor<2x2x6x2xf64>, %k: tensor<2x2x4x2xf64>, %v: tensor<2x2x4x2xf64>",
     "%r:2 = train.attention %q, %k, %v scale 0.7 causal : (tensor<2x2x6x2xf64>, tensor<2x2x4x2xf64>, "
     "tensor<2x2x4x2xf64>) -> (tensor<2x2x6x2xf64>, tensor<2x2x6xf64>)"},
    {"train.attention", 3, "%q: tensor<2x1x5x2xf64>, %k: tensor<2x1x6x2xf64>, %m: tensor<2x1x5x6xf64>",
     "%r:2 = train.attention %q, %k, %k mask %m scale 0.7 causal : (tensor<2x1x5x2xf64>, tensor<2x1x6x2xf64>, "
     "tensor<2x1x6x2xf64>, tensor<2x1x5x6xf64>) -> (tensor<2x1x5x2xf64>, tensor<2x1x5xf64>)"},
    {"train.attention_grad", 2,
     "%g: tensor<2x4x6x3xf64>, %q: tensor<2x4x6x2xf64>, %k: tensor<2x2x4x2xf64>, %v: tensor<2x2x4x3xf64>, "
     "%s: tensor<2x4x6xf64>",
     "%r:3 = train.attention_grad %g, %q, %k, %v output %g, %s scale 0.7 causal : (tensor<2x4x6x3xf64>, "
     "tensor<2x4x6x2xf64>, tensor<2x2x4x2xf64>, tensor<2x2x4x3xf64>, tensor<2x4x6x3xf64>, tensor<2x4x6xf64>) -> "
     "(tensor<2x4x6x2xf64>, tensor<2x2x4x2xf64>, tensor<2x2x4x3xf64>)"},
    {"train.attention_grad", 2,
     "%g: tensor<1x2x3x2xf64>, %k: tensor<1x2x4x2xf64>, %m: tensor<1x2x3x4xf64>, %s: tensor<1x2x3xf64>",
     "%r:3 = train.attention_grad %g, %g, %k, %k mask %m output %g, %s scale 0.7 causal : (tensor<1x2x3x2xf64>, "
     "tensor<1x2x3x2xf64>, tensor<1x2x4x2xf64>, tensor<1x2x4x2xf64>, tensor<1x2x3x4xf64>, tensor<1x2x3x2xf64>, "
     "tensor<1x2x3xf64>) -> (tensor<1x2x3x2xf64>, tensor<1x2x4x2xf64>, tensor<1x2x4x2xf64>)"},
    // Windows that reach into the parts beside theirs: on both sides, on one, farther, and with gaps between them.
    {"train.convolution", 3, "%x: tensor<2x4x6x5xf64>, %w: tensor<6x2x3x3xf64>",
     "%r = train.convolution %x, %w strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] : (tensor<2x4x6x5xf64>, "
     "tensor<6x2x3x3xf64>) -> tensor<2x6x6x5xf64>"},
    {"train.convolution_data_grad", 3, "%g: tensor<2x6x6x5xf64>, %w: tensor<6x2x3x3xf64>",
     "%r = train.convolution_data_grad %g, %w sizes [2, 4, 6, 5] strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] : "
     "(tensor<2x6x6x5xf64>, tensor<6x2x3x3xf64>) -> tensor<2x4x6x5xf64>"},
    {"train.convolution_weight_grad", 3, "%g: tensor<2x6x6x5xf64>, %x: tensor<2x4x6x5xf64>",
     "%r = train.convolution_weight_grad %g, %x sizes [6, 2, 3, 3] strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] : "
     "(tensor<2x6x6x5xf64>, tensor<2x4x6x5xf64>) -> tensor<6x2x3x3xf64>"},
    {"train.convolution", 2, "%x: tensor<2x2x8xf64>, %w: tensor<3x2x3xf64>",
     "%r = train.convolution %x, %w strides [2] dilations [1] pads [1, 1] : (tensor<2x2x8xf64>, tensor<3x2x3xf64>) -> "
     "tensor<2x3x4xf64>"},
    {"train.convolution_data_grad", 2, "%g: tensor<2x3x4xf64>, %w: tensor<3x2x3xf64>",
     "%r = train.convolution_data_grad %g, %w sizes [2, 2, 8] strides [2] dilations [1] pads [1, 1] : "
     "(tensor<2x3x4xf64>, tensor<3x2x3xf64>) -> tensor<2x2x8xf64>"},
    {"train.convolution_weight_grad", 2, "%g: tensor<2x3x4xf64>, %x: tensor<2x2x8xf64>",
     "%r = train.convolution_weight_grad %g, %x sizes [3, 2, 3] strides [2] dilations [1] pads [1, 1] : "
     "(tensor<2x3x4xf64>, tensor<2x2x8xf64>) -> tensor<3x2x3xf64>"},
    {"train.convolution", 3, "%x: tensor<1x2x18xf64>, %w: tensor<2x2x4xf64>",
     "%r = train.convolution %x, %w strides [1] dilations [2] pads [2, 4] : (tensor<1x2x18xf64>, tensor<2x2x4xf64>) -> "
     "tensor<1x2x18xf64>"},
    {"train.convolution_data_grad", 3, "%g: tensor<1x2x18xf64>, %w: tensor<2x2x4xf64>",
     "%r = train.convolution_data_grad %g, %w sizes [1, 2, 18] strides [1] dilations [2] pads [2, 4] : "
     "(tensor<1x2x18xf64>, tensor<2x2x4xf64>) -> tensor<1x2x18xf64>"},
    {"train.convolution_weight_grad", 3, "%g: tensor<1x2x18xf64>, %x: tensor<1x2x18xf64>",
     "%r = train.convolution_weight_grad %g, %x sizes [2, 2, 4] strides [1] dilations [2] pads [2, 4] : "
     "(tensor<1x2x18xf64>, tensor<1x2x18xf64>) -> tensor<2x2x4xf64>"},
    {"train.convolution", 3, "%x: tensor<2x1x9xf64>, %w: tensor<2x1x2xf64>",
     "%r = train.convolution %x, %w strides [3] dilations [1] pads [1, 0] : (tensor<2x1x9xf64>, tensor<2x1x2xf64>) -> "
     "tensor<2x2x3xf64>"},
    {"train.convolution_data_grad", 3, "%g: tensor<2x2x3xf64>, %w: tensor<2x1x2xf64>",
     "%r = train.convolution_data_grad %g, %w sizes [2, 1, 9] strides [3] dilations [1] pads [1, 0] : "
     "(tensor<2x2x3xf64>, tensor<2x1x2xf64>) -> tensor<2x1x9xf64>"},
    {"train.convolution_weight_grad", 3, "%g: tensor<2x2x3xf64>, %x: tensor<2x1x9xf64>",
     "%r = train.convolution_weight_grad %g, %x sizes [2, 1, 2] strides [3] dilations [1] pads [1, 0] : "
     "(tensor<2x2x3xf64>, tensor<2x1x9xf64>) -> tensor<2x1x2xf64>"},
    // The elements around the input lose against all others, and count as zeros.
    {"train.max_pool", 2, "%x: tensor<2x3x8x6xf64>",
     "%r = train.max_pool %x window [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1] : tensor<2x3x8x6xf64> -> "
     "tensor<2x3x4x3xf64>"},
    {"train.max_pool_grad", 2, "%g: tensor<2x3x4x3xf64>, %x: tensor<2x3x8x6xf64>",
     "%r = train.max_pool_grad %g, %x window [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1] : "
     "(tensor<2x3x4x3xf64>, tensor<2x3x8x6xf64>) -> tensor<2x3x8x6xf64>"},
    {"train.average_pool", 2, "%x: tensor<2x3x8x6xf64>",
     "%r = train.average_pool %x window [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1, 1, 1] counts_pads : "
     "tensor<2x3x8x6xf64> -> tensor<2x3x4x3xf64>"},
    {"train.average_pool_grad", 2, "%g: tensor<2x3x4x3xf64>",
     "%r = train.average_pool_grad %g sizes [2, 3, 8, 6] window [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1, 1, "
     "1] counts_pads : tensor<2x3x4x3xf64> -> tensor<2x3x8x6xf64>"},
};

class SplitRules : public testing::TestWithParam<Case> {
protected:
  SplitRules() { context.loadDialect<train::TrainDialect, func::FuncDialect>(); }

  static Tensor makeInput(RankedTensorType type, double start) {
    bool isFloat = type.getElementType().isF64();
    Tensor tensor(isFloat                               ? ElementKind::f64
                  : type.getElementType().isInteger(32) ? ElementKind::i32
                                                        : ElementKind::i64,
                  type.getShape());
    for (int64_t i = 0; i < tensor.getElements(); ++i)
      tensor.set(i, isFloat ? std::sin(start + 1.7 * i) : i < 6 ? i : -1);
    return tensor;
  }

  /// Evaluates everything in the function.
  llvm::DenseMap<Value, Tensor> evaluate(func::FuncOp function) {
    llvm::DenseMap<Value, Tensor> values;
    for (BlockArgument argument : function.getArguments())
      values[argument] = makeInput(cast<RankedTensorType>(argument.getType()), 0.3 + argument.getArgNumber());
    for (Operation &op : function.front().without_terminator()) {
      SmallVector<Tensor> operands;
      for (Value operand : op.getOperands())
        operands.push_back(values.lookup(operand));
      SmallVector<RankedTensorType> types;
      for (Type type : op.getResultTypes())
        types.push_back(cast<RankedTensorType>(type));
      auto results =
          interpreter::evaluate(op.getName().getStringRef(), op.getAttrDictionary(), operands, types, Precision::f64);
      if (!results) {
        ADD_FAILURE() << op.getName().getStringRef().str() << ": " << llvm::toString(results.takeError());
        return llvm::DenseMap<Value, Tensor>();
      }
      for (auto [value, result] : llvm::zip(op.getResults(), *results))
        values[value] = result;
    }
    return values;
  }

  MLIRContext context;
};

TEST_P(SplitRules, GiveTheSame) {
  const Case &test = GetParam();
  auto module = parseSourceString<ModuleOp>(
      "func.func @f(" + std::string(test.arguments) + ") {\n" + test.body + "\nreturn\n}\n", &context);
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<func::FuncOp>("f");
  auto op = cast<train::InnerReductionOpInterface>(*std::prev(function.front().getTerminator()->getIterator()));
  ASSERT_EQ(op->getName().getStringRef(), test.op);
  OpBuilder builder(op);
  SmallVector<Value> results;
  ASSERT_TRUE(succeeded(op.buildSplit(builder, test.parts, results)));
  ASSERT_EQ(results.size(), op->getNumResults());
  auto values = evaluate(function);
  for (auto [result, value] : llvm::zip(op->getResults(), results)) {
    EXPECT_EQ(result.getType(), value.getType());
    EXPECT_TRUE(value.getDefiningOp()) << "a value of its own, so that it may have a layout of its own";
    const Tensor &expected = values[result], &found = values[value];
    for (int64_t i = 0; i < expected.getElements(); ++i)
      if (std::isfinite(expected.at(i)))
        EXPECT_NEAR(found.at(i), expected.at(i), 1e-13) << "result " << result.getResultNumber() << " element " << i;
      else
        EXPECT_EQ(found.at(i), expected.at(i)) << "result " << result.getResultNumber() << " element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, SplitRules, testing::ValuesIn(kCases), [](const auto &info) {
  return std::string(info.param.op).substr(6) + "_" + std::to_string(info.index);
});

TEST(SplitRulesCoverage, EveryRuleHasACase) {
  MLIRContext context;
  context.loadDialect<train::TrainDialect>();
  llvm::StringSet<> tested;
  for (const Case &test : kCases)
    tested.insert(test.op);
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("train"))
    if (name.hasInterface<train::InnerReductionOpInterface>()) {
      EXPECT_TRUE(tested.contains(name.getStringRef())) << name.getStringRef().str();
    }
}

} // namespace
