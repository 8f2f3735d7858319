// Reference kernels against values worked out by hand.
#include "TestTensors.h"

#include "windlass/Interpreter/Interpreter.h"

#include <cmath>
#include <limits>

using namespace windlass::interpreter;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

namespace {

MATCHER_P(Near, bound, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= bound; }

TEST_F(KernelTest, EveryOperatorOfTheDialectIsSupported) {
  int count = 0;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperationsByDialect("train")) {
    EXPECT_TRUE(interpreterSupports(name.getStringRef())) << name.getStringRef().str();
    ++count;
  }
  EXPECT_GT(count, 60);
  EXPECT_FALSE(interpreterSupports("train.unheard_of"));
}

TEST(TensorTest, RoundsToTheNearestOfBf16) {
  mlir::MLIRContext context;
  // Ties go to even; what is beyond the largest becomes infinite; NaN stays NaN.
  float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {1.0f, 1.00390625f, 1.01171875f, -1.0039064f, 0x1p-133f * 1.1f, 3.4e38f, -infinity};
  Tensor tensor(ElementKind::f32, {static_cast<int64_t>(values.size()) + 1});
  llvm::copy(values, tensor.mutableValues<float>().begin());
  tensor.set(tensor.getElements() - 1, std::numeric_limits<double>::quiet_NaN());
  roundTo(mlir::BFloat16Type::get(&context), tensor);
  llvm::ArrayRef<float> rounded = tensor.values<float>();
  EXPECT_THAT(rounded.drop_back(), ElementsAre(1.0f, 1.0f, 1.015625f, -1.0078125f, 0x1p-133f, infinity, -infinity));
  EXPECT_TRUE(std::isnan(rounded.back()));
  Tensor wide = Tensor::filled(ElementKind::f64, {1}, 1.001);
  roundTo(mlir::BFloat16Type::get(&context), wide);
  EXPECT_EQ(wide.at(0), 1.001);
}

TEST(TensorTest, RoundsDoublesAsProgramsStoreThem) {
  mlir::MLIRContext context;
  auto rounded = [](mlir::Type type, double value) {
    Tensor tensor = Tensor::filled(ElementKind::f64, {1}, value);
    roundDoublesTo(type, tensor);
    EXPECT_EQ(tensor.getKind(), ElementKind::f64);
    return tensor.at(0);
  };
  EXPECT_EQ(rounded(mlir::BFloat16Type::get(&context), 1.01171875), 1.015625);
  EXPECT_EQ(rounded(mlir::Float16Type::get(&context), 1.0005), 1.0009765625);
  EXPECT_EQ(rounded(mlir::Float16Type::get(&context), -1e6), -std::numeric_limits<double>::infinity());
  // Above the middle of two numbers of bf16, by what f32 does not hold.
  EXPECT_EQ(rounded(mlir::BFloat16Type::get(&context), 1.00390625 + 0x1p-40), 1.0);
  EXPECT_EQ(rounded(mlir::Float32Type::get(&context), 0.1), double(0.1f));
  EXPECT_EQ(rounded(mlir::Float64Type::get(&context), 0.1), 0.1);
  Tensor whole = Tensor::filled(ElementKind::i64, {1}, (1 << 24) + 1);
  roundDoublesTo(mlir::IntegerType::get(&context, 64), whole);
  EXPECT_EQ(whole.at(0), (1 << 24) + 1);
}

TEST(TensorTest, RoundsToTenBitsOfMantissa) {
  std::vector<double> values = {1.0,          1 + 0x1p-10, 1 + 0x1p-11, 1 + 0x1.8p-10, -3 - 0x1.8p-10,
                                0x1.002p-100, 0.0,         1.0 / 3};
  Tensor tensor(ElementKind::f64, {static_cast<int64_t>(values.size())});
  llvm::copy(values, tensor.mutableValues<double>().begin());
  roundDoublesToTf32(tensor);
  EXPECT_THAT(tensor.values<double>(),
              ElementsAre(1.0, 1 + 0x1p-10, 1.0, 1 + 0x1p-9, -3 - 0x1p-9, 0x1p-100, 0.0, 0x1.554p-2));
}

TEST_F(KernelTest, ElementwiseFunctions) {
  auto t = type({2});
  Tensor x = tensor({2}, {0.5, -2}), y = tensor({2}, {4, -0.25});
  EXPECT_THAT(valuesOf("add", {x, y}, t), ElementsAre(4.5, -2.25));
  EXPECT_THAT(valuesOf("sub", {x, y}, t), ElementsAre(-3.5, -1.75));
  EXPECT_THAT(valuesOf("mul", {x, y}, t), ElementsAre(2, 0.5));
  EXPECT_THAT(valuesOf("div", {x, y}, t), ElementsAre(0.125, 8));
  EXPECT_THAT(valuesOf("max", {x, y}, t), ElementsAre(4, -0.25));
  EXPECT_THAT(valuesOf("min", {x, y}, t), ElementsAre(0.5, -2));
  EXPECT_THAT(valuesOf("pow", {tensor({2}, {3, 4}), tensor({2}, {2, 0.5})}, t), ElementsAre(9, 2));
  EXPECT_THAT(valuesOf("neg", {x}, t), ElementsAre(-0.5, 2));
  EXPECT_THAT(valuesOf("abs", {x}, t), ElementsAre(0.5, 2));
  EXPECT_THAT(valuesOf("relu", {x}, t), ElementsAre(0.5, 0));
  EXPECT_THAT(valuesOf("reciprocal", {x}, t), ElementsAre(2, -0.5));
  EXPECT_THAT(valuesOf("sqrt", {tensor({2}, {9, 0.25})}, t), ElementsAre(3, 0.5));
  EXPECT_THAT(valuesOf("rsqrt", {tensor({2}, {4, 0.25})}, t), ElementsAre(0.5, 2));
  for (auto [name, function] : std::initializer_list<std::pair<const char *, double (*)(double)>>{
           {"exp", std::exp},
           {"tanh", std::tanh},
           {"erf", std::erf},
           {"sin", std::sin},
           {"cos", std::cos},
           {"tan", std::tan},
           {"atan", std::atan},
           {"sinh", std::sinh},
           {"cosh", std::cosh},
           {"asinh", std::asinh},
           {"floor", std::floor},
           {"ceil", std::ceil},
           {"sign", [](double v) { return v < 0 ? -1.0 : 1.0; }},
           {"sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }},
           {"silu", [](double v) { return v / (1 + std::exp(-v)); }},
           {"gelu_erf", [](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); }},
           {"gelu_tanh",
            [](double v) { return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); }}})
    EXPECT_THAT(valuesOf(name, {x}, t), Pointwise(Near(1e-14), {function(0.5), function(-2)})) << name;
  EXPECT_THAT(valuesOf("log", {tensor({2}, {1, M_E})}, t), Pointwise(Near(1e-14), {0.0, 1.0}));
  EXPECT_THAT(valuesOf("asin", {tensor({2}, {0.5, -1})}, t), Pointwise(Near(1e-14), {M_PI / 6, -M_PI / 2}));
  EXPECT_THAT(valuesOf("acos", {tensor({2}, {0.5, -1})}, t), Pointwise(Near(1e-14), {M_PI / 3, M_PI}));
  EXPECT_THAT(valuesOf("acosh", {tensor({2}, {1, std::cosh(2)})}, t), Pointwise(Near(1e-14), {0.0, 2.0}));
  EXPECT_THAT(valuesOf("atanh", {tensor({2}, {0, std::tanh(0.5)})}, t), Pointwise(Near(1e-14), {0.0, 0.5}));
  EXPECT_THAT(valuesOf("round", {tensor({2}, {2.5, -0.6})}, t), ElementsAre(2, -1));
  EXPECT_THAT(valuesOf("round", {tensor({2}, {3.5, -0.5})}, t), ElementsAre(4, 0));
  EXPECT_THAT(valuesOf("sign", {tensor({2}, {0, -0.5})}, t), ElementsAre(0, -1));
  EXPECT_THAT(valuesOf("accumulate", {x, y, x}, t), ElementsAre(5, -4.25));
}

TEST_F(KernelTest, IntegersWrapAndDivideWithoutTraps) {
  auto t = type({3}, builder.getI64Type());
  double lowest = static_cast<double>(std::numeric_limits<int64_t>::min());
  Tensor x = integers({3}, {7, -7, lowest}), y = integers({3}, {2, 0, -1});
  EXPECT_THAT(valuesOf("div", {x, y}, t), ElementsAre(3, 0, lowest));
  EXPECT_THAT(valuesOf("mul", {x, y}, t), ElementsAre(14, 0, lowest));
  EXPECT_THAT(valuesOf("neg", {x}, t), ElementsAre(-7, 7, lowest));
  EXPECT_THAT(errorOf("exp", {x}, {t}), HasSubstr("is not defined for i64"));
}

TEST_F(KernelTest, ComparisonsLogicAndCasts) {
  auto boolean = type({3}, builder.getI1Type());
  Tensor x = tensor({3}, {1, 2, 3}), y = tensor({3}, {2, 2, 2});
  auto compared = [&](int64_t predicate) {
    return valuesOf("compare", {x, y}, boolean, {integer("predicate", predicate)});
  };
  EXPECT_THAT(compared(0), ElementsAre(0, 1, 0));
  EXPECT_THAT(compared(1), ElementsAre(1, 0, 1));
  EXPECT_THAT(compared(2), ElementsAre(1, 0, 0));
  EXPECT_THAT(compared(3), ElementsAre(1, 1, 0));
  EXPECT_THAT(compared(4), ElementsAre(0, 0, 1));
  EXPECT_THAT(compared(5), ElementsAre(0, 1, 1));
  EXPECT_THAT(errorOf("compare", {x, y}, {boolean}, {integer("predicate", 6)}), HasSubstr("predicate"));
  Tensor p = booleans({3}, {1, 1, 0}), q = booleans({3}, {1, 0, 0});
  EXPECT_THAT(valuesOf("and", {p, q}, boolean), ElementsAre(1, 0, 0));
  EXPECT_THAT(valuesOf("or", {p, q}, boolean), ElementsAre(1, 1, 0));
  EXPECT_THAT(valuesOf("not", {p}, boolean), ElementsAre(0, 0, 1));
  EXPECT_THAT(valuesOf("select", {p, x, y}, type({3})), ElementsAre(1, 2, 2));
  double nan = std::nan("");
  EXPECT_THAT(valuesOf("is_nan", {tensor({3}, {0, nan, 1})}, boolean), ElementsAre(0, 1, 0));
  EXPECT_THAT(valuesOf("cast", {tensor({3}, {-1.7, nan, 1e30})}, type({3}, builder.getI32Type())),
              ElementsAre(-1, 0, 2147483647));
  EXPECT_THAT(valuesOf("cast", {tensor({3}, {0, -0.5, nan})}, boolean), ElementsAre(0, 1, 1));
}

TEST_F(KernelTest, StructuralOperators) {
  Tensor x = tensor({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(valuesOf("iota", {}, type({2, 3}), {integer("dim", 1), number("start", 1), number("step", 0.5)}),
              ElementsAre(1, 1.5, 2, 1, 1.5, 2));
  EXPECT_THAT(valuesOf("broadcast", {tensor({2}, {1, 2})}, type({2, 2}), {list("dims", {0})}), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(valuesOf("broadcast", {tensor({2}, {1, 2})}, type({2, 2}), {list("dims", {1})}), ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(valuesOf("reshape", {x}, type({3, 2})), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(valuesOf("transpose", {x}, type({3, 2}), {list("permutation", {1, 0})}), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(valuesOf("slice", {x}, type({2, 2}), {list("starts", {0, 1})}), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(valuesOf("pad", {x}, type({2, 5}), {list("low", {0, 1}), number("value", 9)}),
              ElementsAre(9, 0, 1, 2, 9, 9, 3, 4, 5, 9));
  EXPECT_THAT(valuesOf("concat", {x, tensor({2, 1}, {6, 7})}, type({2, 4}), {integer("axis", 1)}),
              ElementsAre(0, 1, 2, 6, 3, 4, 5, 7));
  auto parts = call("split", {x}, {type({2, 1}), type({2, 2})}, {integer("axis", 1)});
  EXPECT_THAT(values(parts[0]), ElementsAre(0, 3));
  EXPECT_THAT(values(parts[1]), ElementsAre(1, 2, 4, 5));
  auto constant = mlir::DenseElementsAttr::get(type({2}), llvm::ArrayRef<float>{1.5f, 2.5f});
  EXPECT_THAT(valuesOf("constant", {}, type({2}), {builder.getNamedAttr("value", constant)}), ElementsAre(1.5, 2.5));
  EXPECT_THAT(errorOf("slice", {x}, {type({2, 3})}, {list("starts", {0, 1})}), HasSubstr("leaves the operand"));
  EXPECT_THAT(errorOf("broadcast", {x}, {type({2, 3})}, {list("dims", {0, 7})}), HasSubstr("another size"));
}

TEST_F(KernelTest, MatmulOverAnyDims) {
  Tensor a = tensor({2, 3}, {1, 2, 3, 4, 5, 6}), b = tensor({3, 2}, {1, 0, 0, 1, 1, 1});
  auto dims = [&](std::vector<int64_t> lb, std::vector<int64_t> rb, std::vector<int64_t> lc, std::vector<int64_t> rc) {
    return std::vector<mlir::NamedAttribute>{list("lhs_batch", lb), list("rhs_batch", rb), list("lhs_contract", lc),
                                             list("rhs_contract", rc)};
  };
  EXPECT_THAT(valuesOf("matmul", {a, b}, type({2, 2}), dims({}, {}, {1}, {0})), ElementsAre(4, 5, 10, 11));
  EXPECT_THAT(valuesOf("matmul", {a, a}, type({2, 2}), dims({}, {}, {1}, {1})), ElementsAre(14, 32, 32, 77));
  EXPECT_THAT(valuesOf("matmul", {a, a}, type({}), dims({}, {}, {0, 1}, {0, 1})), ElementsAre(91));
  // Batch over the last dim of one and the first of the other.
  EXPECT_THAT(valuesOf("matmul", {a, b}, type({3}), dims({1}, {0}, {0}, {1})), ElementsAre(1, 5, 9));
  EXPECT_THAT(valuesOf("matmul", {a, b}, type({2, 2}), {integer("batch_rank", 0), integer("contract_rank", 1)}),
              ElementsAre(4, 5, 10, 11));
  EXPECT_THAT(errorOf("matmul", {a, b}, {type({2, 2})}, dims({}, {}, {0}, {0})), HasSubstr("paired dims"));
  // More rows than one pass takes.
  Tensor tall = varied({9, 4}), wide = varied({4, 3}, 2);
  std::vector<double> expected(27, 0);
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k)
        expected[i * 3 + j] += tall.at(i * 4 + k) * wide.at(k * 3 + j);
  EXPECT_THAT(valuesOf("matmul", {tall, wide}, type({9, 3}), dims({}, {}, {1}, {0})), Pointwise(Near(1e-15), expected));
}

TEST_F(KernelTest, ReductionsAndSoftmax) {
  Tensor x = tensor({2, 3}, {0, 5, 2, 3, 4, 1});
  EXPECT_THAT(valuesOf("reduce", {x}, type({3}), {integer("kind", 0), list("dims", {0})}), ElementsAre(3, 9, 3));
  EXPECT_THAT(valuesOf("reduce", {x}, type({2}), {integer("kind", 1), list("dims", {1})}), ElementsAre(5, 4));
  EXPECT_THAT(valuesOf("reduce", {x}, type({}), {integer("kind", 2), list("dims", {0, 1})}), ElementsAre(0));
  EXPECT_THAT(valuesOf("reduce", {x}, type({2}), {integer("kind", 0), integer("reduced_rank", 1)}), ElementsAre(7, 8));
  double log3 = std::log(3.0);
  EXPECT_THAT(valuesOf("softmax", {tensor({1, 2}, {0, log3})}, type({1, 2})), Pointwise(Near(1e-15), {0.25, 0.75}));
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(valuesOf("softmax", {tensor({1, 1}, {-infinity})}, type({1, 1})).front()));
  EXPECT_THAT(valuesOf("square_sum", {x}, type({})), ElementsAre(55));
}

TEST_F(KernelTest, Convolution) {
  std::vector<mlir::NamedAttribute> padded = {list("strides", {2}), list("dilations", {1}), list("pads", {1, 1})};
  // Windows (-, 1), (2, 3) and (4, -) of both channels.
  Tensor x = tensor({1, 2, 4}, {1, 2, 3, 4, 10, 20, 30, 40}), w = tensor({1, 2, 2}, {1, 10, 2, 3});
  EXPECT_THAT(valuesOf("convolution", {x, w}, type({1, 1, 3}), padded), ElementsAre(10 + 30, 2 + 30 + 40 + 90, 4 + 80));
  // The same kernels in two groups.
  Tensor each = tensor({2, 1, 2}, {1, 10, 2, 3});
  EXPECT_THAT(valuesOf("convolution", {x, each}, type({1, 2, 3}), padded), ElementsAre(10, 32, 4, 30, 130, 80));
  EXPECT_THAT(valuesOf("convolution_data_grad", {tensor({1, 1, 3}, {1, 2, 3}), w}, type({1, 2, 4}), padded),
              ElementsAre(10, 2, 20, 3, 3, 4, 6, 6));
  EXPECT_THAT(valuesOf("convolution_weight_grad", {tensor({1, 1, 3}, {1, 2, 3}), x}, type({1, 2, 2}), padded),
              ElementsAre(2 * 2 + 3 * 4, 1 + 2 * 3, 2 * 20 + 3 * 40, 10 + 2 * 30));
  EXPECT_THAT(errorOf("convolution", {x, tensor({1, 3, 1}, {1, 1, 1})}, {type({1, 1, 4})}, padded),
              HasSubstr("channels of input, weight and result do not fit"));
  EXPECT_THAT(errorOf("convolution", {x, w}, {type({1, 1, 3})}, {list("strides", {2, 2})}), HasSubstr("dilations"));
}

TEST_F(KernelTest, Pooling) {
  std::vector<mlir::NamedAttribute> windows = {list("window", {2}), list("strides", {2}), list("dilations", {1}),
                                               list("pads", {1, 1})};
  // Windows (-, 1), (5, 5) and (4, -).
  Tensor x = tensor({1, 1, 4}, {1, 5, 5, 4}), dy = tensor({1, 1, 3}, {10, 20, 30});
  EXPECT_THAT(valuesOf("max_pool", {x}, type({1, 1, 3}), windows), ElementsAre(1, 5, 4));
  EXPECT_THAT(valuesOf("max_pool_grad", {dy, x}, type({1, 1, 4}), windows), ElementsAre(10, 20, 0, 30));
  EXPECT_THAT(valuesOf("average_pool", {x}, type({1, 1, 3}), windows), ElementsAre(1, 5, 4));
  EXPECT_THAT(valuesOf("average_pool_grad", {dy}, type({1, 1, 4}), windows), ElementsAre(10, 10, 10, 30));
  windows.push_back(unit("counts_pads"));
  EXPECT_THAT(valuesOf("average_pool", {x}, type({1, 1, 3}), windows), ElementsAre(0.5, 5, 2));
  EXPECT_THAT(valuesOf("average_pool_grad", {dy}, type({1, 1, 4}), windows), ElementsAre(5, 10, 10, 15));
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(valuesOf("max_pool", {tensor({1, 1, 4}, {1, nan, 5, 4})}, type({1, 1, 3}), windows)[1]));
}

TEST_F(KernelTest, LayerNorm) {
  // Rows (1, 3) and (2, 2): means 2, variances 1 and 0, epsilon 3 makes the deviations 2 and sqrt 3.
  auto results = call("layer_norm", {tensor({2, 2}, {1, 3, 2, 2}), tensor({2}, {2, 4}), tensor({2}, {10, 20})},
                      {type({2, 2}), type({2}), type({2})}, {number("epsilon", 3)});
  EXPECT_THAT(values(results[0]), Pointwise(Near(1e-15), {9.0, 22.0, 10.0, 20.0}));
  EXPECT_THAT(values(results[1]), ElementsAre(2, 2));
  EXPECT_THAT(values(results[2]), Pointwise(Near(1e-15), {0.5, 1 / std::sqrt(3.0)}));
}

TEST_F(KernelTest, RmsNorm) {
  // Mean squares 5 and 4 with epsilon 4 and 0 make the roots 3 and 2.
  auto results = call("rms_norm", {tensor({1, 2}, {1, 3}), tensor({2}, {3, 6})}, {type({1, 2}), type({1})},
                      {number("epsilon", 4)});
  EXPECT_THAT(values(results[0]), Pointwise(Near(1e-15), {1.0, 6.0}));
  EXPECT_THAT(values(results[1]), Pointwise(Near(1e-15), {1.0 / 3}));
  EXPECT_THAT(errorOf("rms_norm", {varied({2, 3}), varied({2})}, {type({2, 3}), type({2})}, {number("epsilon", 1)}),
              HasSubstr("scale has the shape [2] but must have [3]"));
}

TEST_F(KernelTest, RotaryTurnsHalves) {
  // Row 0 by the tables' row 0, rows of the second block by the same tables.
  Tensor x = tensor({2, 1, 2}, {3, 5, 7, 11}), cosine = tensor({1, 2}, {2, 10}), sine = tensor({1, 2}, {100, 1000});
  EXPECT_THAT(valuesOf("rotary", {x, cosine, sine}, type({2, 1, 2})),
              ElementsAre(3 * 2 - 5 * 100, 5 * 10 + 3 * 1000, 7 * 2 - 11 * 100, 11 * 10 + 7 * 1000));
  EXPECT_THAT(valuesOf("rotary", {x, cosine, sine}, type({2, 1, 2}), {unit("transposed")}),
              ElementsAre(3 * 2 + 5 * 1000, 5 * 10 - 3 * 100, 7 * 2 + 11 * 1000, 11 * 10 - 7 * 100));
  EXPECT_THAT(errorOf("rotary", {varied({2, 3}), varied({2, 3}), varied({2, 3})}, {type({2, 3})}),
              HasSubstr("needs rows of two halves"));
}

TEST_F(KernelTest, DropoutDependsOnKeyAndElement) {
  std::vector<double> ones(2 * 4096, 1);
  Tensor x = tensor({2, 4096}, ones);
  auto drop = [&](double first, double second) {
    return valuesOf("dropout", {x, integers({2}, {first, second})}, type({2, 4096}), {number("ratio", 0.25)});
  };
  std::vector<double> both = drop(5, 6), turned = drop(6, 5);
  // What a sample loses goes with its key, not with its place.
  EXPECT_TRUE(std::equal(both.begin(), both.begin() + 4096, turned.begin() + 4096));
  EXPECT_FALSE(std::equal(both.begin(), both.begin() + 4096, both.begin() + 4096));
  EXPECT_NEAR(static_cast<double>(std::count(both.begin(), both.end(), 0.0)), 2048, 200);
  for (double value : both)
    EXPECT_TRUE(value == 0 || std::abs(value - 4.0 / 3) < 1e-15);
  EXPECT_THAT(errorOf("dropout", {varied({2, 3}), integers({3}, {0, 1, 2})}, {type({2, 3})}, {number("ratio", 0.5)}),
              HasSubstr("keys has the shape [3] but must have [2]"));
}

TEST_F(KernelTest, IndexingOperators) {
  Tensor grid = tensor({2, 3}, {0, 1, 2, 10, 11, 12});
  EXPECT_THAT(valuesOf("gather_elements", {grid, integers({2, 2}, {-1, 0, 1, 1})}, type({2, 2}), {integer("axis", 1)}),
              ElementsAre(2, 0, 11, 11));
  EXPECT_THAT(valuesOf("gather_elements", {grid, integers({1, 3}, {1, 0, -1})}, type({1, 3}), {integer("axis", 0)}),
              ElementsAre(10, 1, 12));
  EXPECT_THAT(valuesOf("scatter_elements_add", {integers({2, 2}, {-1, 0, 1, 1}), tensor({2, 2}, {3, 4, 5, 6})},
                       type({2, 3}), {integer("axis", 1)}),
              ElementsAre(4, 0, 3, 0, 11, 0));
  EXPECT_THAT(errorOf("gather_elements", {grid, integers({2, 1}, {3, 0})}, {type({2, 1})}, {integer("axis", 1)}),
              HasSubstr("index 3 lies outside the 3"));
  Tensor table = tensor({3, 2}, {0, 1, 10, 11, 20, 21});
  EXPECT_THAT(valuesOf("embedding", {table, integers({2}, {2, 0})}, type({2, 2})), ElementsAre(20, 21, 0, 1));
  EXPECT_THAT(valuesOf("embedding", {table, tensor({2}, {2, 0}, ElementKind::i32)}, type({2, 2})),
              ElementsAre(20, 21, 0, 1));
  EXPECT_THAT(errorOf("embedding", {table, integers({1}, {3})}, {type({1, 2})}),
              HasSubstr("index 3 lies outside the 3"));
  EXPECT_THAT(errorOf("embedding", {table, integers({1}, {-1})}, {type({1, 2})}), HasSubstr("index -1"));
  // Rows [1, 2) and [4, 5) of six, with those of others as zeros.
  auto rows = tensor({2, 2}, {10, 11, 40, 41});
  EXPECT_THAT(valuesOf("embedding", {rows, integers({4}, {4, 0, 1, 5}), integers({2}, {1, 4})}, type({4, 2}),
                       {integer("all_rows", 6)}),
              ElementsAre(40, 41, 0, 0, 10, 11, 0, 0));
  EXPECT_THAT(valuesOf("embedding_grad",
                       {integers({4}, {4, 0, 4, 1}), tensor({4, 1}, {1, 2, 3, 4}), integers({2}, {1, 4})}, type({2, 1}),
                       {integer("rows", 2), integer("all_rows", 6)}),
              ElementsAre(4, 4));
  EXPECT_THAT(
      errorOf("embedding", {rows, integers({1}, {6}), integers({2}, {1, 4})}, {type({1, 2})}, {integer("all_rows", 6)}),
      HasSubstr("index 6 lies outside the 6 rows"));
  EXPECT_THAT(errorOf("embedding", {rows, integers({1}, {0}), integers({3}, {0, 1, 4})}, {type({1, 2})},
                      {integer("all_rows", 6)}),
              HasSubstr("the table has other rows than its parts"));
  EXPECT_THAT(valuesOf("embedding_grad", {integers({3}, {1, 1, 0}), tensor({3, 2}, {1, 2, 3, 4, 5, 6})}, type({3, 2})),
              ElementsAre(5, 6, 4, 6, 0, 0));
  EXPECT_THAT(valuesOf("gather", {table, integers({2}, {-1, 0})}, type({3, 2}), {integer("axis", 1)}),
              ElementsAre(1, 0, 11, 10, 21, 20));
  EXPECT_THAT(
      valuesOf("scatter_add", {integers({2}, {-1, -1}), tensor({1, 2}, {3, 4})}, type({1, 2}), {integer("axis", 1)}),
      ElementsAre(0, 7));
}

TEST_F(KernelTest, AttentionLeavesOutWhatMasksSay) {
  // One head, two tokens; keys are zero, so that every visible key has the same weight.
  Tensor query = varied({1, 1, 2, 2}), key(ElementKind::f64, {1, 1, 2, 2}), value = tensor({1, 1, 2, 1}, {2, 6});
  auto types = std::vector{type({1, 1, 2, 1}), type({1, 1, 2})};
  auto causal = call("attention", {query, key, value}, types, {number("scale", 1), unit("causal")});
  EXPECT_THAT(values(causal[0]), Pointwise(Near(1e-15), {2.0, 4.0}));
  EXPECT_THAT(values(causal[1]), Pointwise(Near(1e-15), {0.0, std::log(2.0)}));
  double infinity = std::numeric_limits<double>::infinity();
  Tensor mask = tensor({1, 1, 2, 2}, {-infinity, 0, -infinity, -infinity});
  auto masked = call("attention", {query, key, value, mask}, types, {number("scale", 1)});
  EXPECT_THAT(values(masked[0]), ElementsAre(6, 0));
  EXPECT_EQ(values(masked[1])[1], -infinity);
}

TEST_F(KernelTest, AttentionOfGroupedQueries) {
  // Heads 0 and 1 use key head 0, heads 2 and 3 key head 1.
  Tensor query(ElementKind::f64, {1, 4, 1, 1}), key(ElementKind::f64, {1, 2, 1, 1}),
      value = tensor({1, 2, 1, 1}, {5, 7});
  auto results = call("attention", {query, key, value}, {type({1, 4, 1, 1}), type({1, 4, 1})}, {number("scale", 1)});
  EXPECT_THAT(values(results[0]), ElementsAre(5, 5, 7, 7));
}

TEST_F(KernelTest, CrossEntropyCountsWhatIsNotIgnored) {
  Tensor logits = tensor({3, 2}, {0, 0, 0, std::log(3.0), 8, 9});
  auto results = call("softmax_cross_entropy", {logits, integers({3}, {0, 0, -100})}, {type({}), type({}), type({3})},
                      {integer("ignore_index", -100)});
  EXPECT_NEAR(results[0].at(0), std::log(2.0) + std::log(4.0), 1e-14);
  EXPECT_EQ(results[1].at(0), 2);
  EXPECT_TRUE(std::isnan(valuesOf("loss", {tensor({}, {0}), tensor({}, {0})}, type({})).front()));
  EXPECT_THAT(errorOf("softmax_cross_entropy", {logits, integers({3}, {0, 2, 0})}, {type({}), type({}), type({3})},
                      {integer("ignore_index", -100)}),
              HasSubstr("label 2 lies outside the 2 classes"));
  // A row of -inf adds up to nothing.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  results =
      call("softmax_cross_entropy", {tensor({1, 2}, {-infinity, -infinity}), tensor({1}, {-100}, ElementKind::i32)},
           {type({}), type({}), type({1})}, {integer("ignore_index", -100)});
  EXPECT_THAT(values(results[2]), ElementsAre(-infinity));
}

TEST_F(KernelTest, Optimizers) {
  auto scalar = [&](double value) { return tensor({}, {value}); };
  EXPECT_THAT(valuesOf("clip_factor", {scalar(2), scalar(1)}, type({})), Pointwise(Near(1e-15), {1 / (2 + 1e-6)}));
  EXPECT_THAT(valuesOf("clip_factor", {scalar(0.5), scalar(1)}, type({})), ElementsAre(1));
  // The first step of AdamW with gradient 2 · 0.5 = 1: m/(1-β1) = v/(1-β2) = 1.
  auto adam = call("adamw",
                   {tensor({1}, {3}), tensor({1}, {0}), tensor({1}, {0}), tensor({1}, {2}), scalar(0.1), scalar(0.1),
                    scalar(0.01), scalar(1), scalar(0.5), scalar(0.1), scalar(0.01), scalar(0.5)},
                   {type({1}), type({1}), type({1})}, {unit("decays")});
  EXPECT_NEAR(adam[0].at(0), 3 * 0.95 - 0.1 * 1 / 2, 1e-14);
  EXPECT_NEAR(adam[1].at(0), 0.1, 1e-15);
  EXPECT_NEAR(adam[2].at(0), 0.01, 1e-15);
  // Adam: the decay makes the gradient 1 + 0.5 · 3 = 2.5, and the weight is not shrunk.
  adam = call("adamw",
              {tensor({1}, {3}), tensor({1}, {0}), tensor({1}, {0}), tensor({1}, {2}), scalar(0.1), scalar(0.1),
               scalar(0.01), scalar(1), scalar(0.5), scalar(0.1), scalar(0.01), scalar(0.5)},
              {type({1}), type({1}), type({1})}, {unit("decays"), unit("coupled")});
  EXPECT_NEAR(adam[0].at(0), 3 - 0.1 * 2.5 / 3.5, 1e-14);
  EXPECT_NEAR(adam[1].at(0), 0.25, 1e-15);
  EXPECT_NEAR(adam[2].at(0), 0.0625, 1e-15);
  // Lion: gradients 1, 1, 0 and averages -3, 30, 0 give directions -2.6, 27.1 and 0.
  auto lion = call("lion",
                   {tensor({3}, {3, 3, 3}), tensor({3}, {-3, 30, 0}), tensor({3}, {2, 2, 0}), scalar(0.1), scalar(0.1),
                    scalar(0.01), scalar(0.5), scalar(0.5)},
                   {type({3}), type({3})}, {unit("decays")});
  EXPECT_THAT(values(lion[0]), Pointwise(Near(1e-14), {2.85 + 0.1, 2.85 - 0.1, 2.85}));
  EXPECT_THAT(values(lion[1]), Pointwise(Near(1e-14), {-2.96, 29.71, 0.0}));
  // The direction of LAMB with gradient 2 · 0.5 = 1: 1 / (1 + 1) and the decay 0.5 · 3; a weight that moves along it.
  std::vector<Tensor> lamb = {tensor({1}, {3}), tensor({1}, {0}), tensor({1}, {0}), tensor({1}, {2}),
                              scalar(0.1),      scalar(0.01),     scalar(1),        scalar(0.5),
                              scalar(0.1),      scalar(0.01),     scalar(0.5)};
  auto direction = call("lamb", lamb, {type({1}), type({1}), type({1})}, {unit("decays")});
  EXPECT_NEAR(direction[0].at(0), 0.5 + 1.5, 1e-14);
  EXPECT_NEAR(direction[1].at(0), 0.1, 1e-15);
  EXPECT_NEAR(direction[2].at(0), 0.01, 1e-15);
  lamb.back() = scalar(NAN);
  EXPECT_EQ(call("lamb", lamb, {type({1}), type({1}), type({1})}, {unit("decays")})[0].at(0), 0);
  // Momentum with gradient 2 · 0.5 = 1: the buffer moves from 3 to 2.5, and the direction a share of 0.75 towards it.
  std::vector<Tensor> momentum = {tensor({1}, {3}), tensor({1}, {2}), scalar(0.75), scalar(0.5)};
  auto nesterov = call("momentum", momentum, {type({1}), type({1})});
  EXPECT_NEAR(nesterov[0].at(0), 2.5, 1e-15);
  EXPECT_NEAR(nesterov[1].at(0), 1 + 0.75 * 1.5, 1e-15);
  momentum.back() = scalar(NAN);
  EXPECT_EQ(call("momentum", momentum, {type({1}), type({1})})[1].at(0), 0);
  EXPECT_NEAR(call("descend", {tensor({1}, {3}), direction[0], scalar(0.25), scalar(0.5)}, {type({1})})[0].at(0), 1,
              1e-14);
  // A share of 0.25 of the distance from 1, -2 and 4 to 5, -2 and 0.
  auto average = call("ema", {tensor({3}, {1, -2, 4}), tensor({3}, {5, -2, 0}), tensor({}, {0.25})}, {type({3})});
  EXPECT_THAT(values(average[0]), ElementsAre(2, -2, 3));
  // SGD: g = 2 · 0.5 + 0.5 · 3 = 2.5, v = 0.9 · 1 + 2.5 = 3.4; without decay g = 1.
  std::vector<Tensor> inputs = {tensor({1}, {3}), tensor({1}, {1}), tensor({1}, {2}), scalar(0.1),
                                scalar(0.9),      scalar(0.5),      scalar(0.5)};
  auto decayed = call("sgd", inputs, {type({1}), type({1})}, {unit("decays")});
  EXPECT_NEAR(decayed[1].at(0), 3.4, 1e-15);
  EXPECT_NEAR(decayed[0].at(0), 2.66, 1e-15);
  EXPECT_NEAR(call("sgd", inputs, {type({1}), type({1})})[1].at(0), 1.9, 1e-15);
  // A factor that is no number: the gradient has overflowed, and all stays.
  inputs.back() = scalar(NAN);
  auto kept = call("sgd", inputs, {type({1}), type({1})}, {unit("decays")});
  EXPECT_EQ(kept[0].at(0), 3);
  EXPECT_EQ(kept[1].at(0), 1);
}

TEST_F(KernelTest, BothPrecisionsComputeTheSame) {
  for (llvm::StringRef name : {"exp", "tanh", "erf", "gelu_tanh", "sigmoid"}) {
    Tensor x = varied({64});
    Tensor wide = call(name, {x}, {type({64})}).front();
    Tensor narrow = call(name, {x.cast(ElementKind::f32)}, {type({64})}, {}, Precision::f32).front();
    EXPECT_EQ(narrow.getKind(), ElementKind::f32);
    EXPECT_THAT(values(narrow), Pointwise(Near(1e-6), values(wide))) << name.str();
  }
}

TEST_F(KernelTest, BadCallsAreErrors) {
  EXPECT_THAT(errorOf("unheard_of", {}, {type({})}), HasSubstr("has no reference kernel"));
  EXPECT_THAT(errorOf("add", {varied({2})}, {type({2})}), HasSubstr("takes 2 operands and 1 results but has 1 and 1"));
  EXPECT_THAT(errorOf("add", {varied({2}), varied({3})}, {type({2})}),
              HasSubstr("has the shape [3] but must have [2]"));
  EXPECT_THAT(errorOf("reduce", {varied({2})}, {type({})}), HasSubstr("needs the integer attribute 'kind'"));
  EXPECT_THAT(errorOf("add", {varied({2}), varied({2})}, {type({2}, builder.getIntegerType(16))}),
              HasSubstr("computes with"));
}

} // namespace
