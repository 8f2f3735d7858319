// Factors of operators: reshapes map them, and they always multiply to the dimensions.
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace windlass::train;

namespace {

class FactorsTest : public testing::Test {
protected:
  FactorsTest() { context.loadDialect<TrainDialect, func::FuncDialect>(); }

  /// Returns the factors of the last operator of a function with the given arguments and body.
  OpFactors getFactors(llvm::StringRef arguments, llvm::StringRef body) {
    module =
        parseSourceString<ModuleOp>(("func.func @f(" + arguments + ") {\n" + body + "\nreturn\n}\n").str(), &context);
    EXPECT_TRUE(module);
    Operation &op = *std::prev(module->lookupSymbol<func::FuncOp>("f").front().getTerminator()->getIterator());
    OpFactors factors = cast<TrainOpInterface>(op).getFactors();
    check(factors, op.getOperandTypes(), factors.operands);
    check(factors, op.getResultTypes(), factors.results);
    return factors;
  }

  static void check(const OpFactors &factors, TypeRange types, llvm::ArrayRef<ValueFactors> values) {
    ASSERT_EQ(types.size(), values.size());
    for (auto [type, dims] : llvm::zip(types, values)) {
      auto shape = cast<RankedTensorType>(type).getShape();
      ASSERT_EQ(shape.size(), dims.size());
      for (auto [size, dim] : llvm::zip(shape, dims)) {
        int64_t product = 1;
        for (unsigned factor : dim)
          product *= factors.factors[factor].size;
        EXPECT_EQ(product, size);
      }
    }
  }

  /// Returns factors as text, "2 3! | 4": sizes per dimension, with an exclamation mark on factors that may not be
  /// split.
  static std::string print(const OpFactors &factors, const ValueFactors &dims) {
    std::string text;
    for (const auto &[position, dim] : llvm::enumerate(dims)) {
      text += position == 0 ? "" : " | ";
      for (unsigned index : dim)
        text += (index == dim.front() ? "" : " ") + std::to_string(factors.factors[index].size) +
                (factors.factors[index].kind == FactorKind::Replicated ? "!" : "");
    }
    return text;
  }

  void expectReshape(llvm::StringRef from, llvm::StringRef to, llvm::StringRef source, llvm::StringRef target) {
    OpFactors factors =
        getFactors(("%x: tensor<" + from + "xf32>").str(),
                   ("%0 = train.reshape %x : tensor<" + from + "xf32> -> tensor<" + to + "xf32>").str());
    EXPECT_EQ(print(factors, factors.operands[0]), source) << from.str() << " -> " << to.str();
    EXPECT_EQ(print(factors, factors.results[0]), target) << from.str() << " -> " << to.str();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(FactorsTest, ReshapeSplitsAndJoinsDims) {
  expectReshape("4x64x96", "256x96", "4 | 64 | 96", "4 64 | 96");
  expectReshape("4x64x96", "4x64x3x8x4", "4 | 64 | 3 8 4", "4 | 64 | 3 | 8 | 4");
  expectReshape("8x6", "4x12", "4 2 | 6", "4 | 2 6");
  expectReshape("2x1x3", "1x2x3x1", "2 |  | 3", " | 2 | 3 | ");
}

TEST_F(FactorsTest, ReshapeKeepsWholeWhatHasNoCommonFactor) {
  expectReshape("6x4x5", "4x6x5", "2 3! | 4! | 5", "2 2! | 6! | 5");
  expectReshape("2x3", "3x2", "2! | 3!", "3! | 2!");
  expectReshape("4x6", "8x3", "4 | 2 3", "4 2 | 3");
}

TEST_F(FactorsTest, MatmulContractsOverAReduction) {
  OpFactors factors = getFactors("%x: tensor<5x2x3xf32>, %w: tensor<5x3x4xf32>",
                                 "%0 = train.matmul %x, %w batch [0] x [0] contract [2] x [1] : tensor<5x2x3xf32>, "
                                 "tensor<5x3x4xf32> -> tensor<5x2x4xf32>");
  ASSERT_EQ(factors.factors.size(), 4u);
  EXPECT_EQ(factors.factors[3].name, "k0");
  EXPECT_EQ(factors.factors[3].kind, FactorKind::Reduction);
  EXPECT_EQ(factors.factors[3].padding, 0.0);
  EXPECT_EQ(factors.unreducedTogether.size(), 2u);
}

TEST_F(FactorsTest, ConvolutionsSplitTheBatchTheGroupsTheChannelsAndTheFirstSpatialDim) {
  constexpr const char *arguments = "%x: tensor<5x4x8x9xf32>, %w: tensor<6x2x3x3xf32>, %y: tensor<5x6x8x9xf32>";
  constexpr const char *windows = " strides [1, 1] dilations [1, 1] pads [1, 1, 1, 1] : ";
  OpFactors factors = getFactors(arguments, std::string("%0 = train.convolution %x, %w") + windows +
                                                "(tensor<5x4x8x9xf32>, tensor<6x2x3x3xf32>) -> tensor<5x6x8x9xf32>");
  EXPECT_EQ(print(factors, factors.operands[0]), "5 | 2 2 | 8 | 9!");
  EXPECT_EQ(print(factors, factors.operands[1]), "2 3 | 2 | 3! | 3!");
  EXPECT_EQ(print(factors, factors.results[0]), "5 | 2 3 | 8 | 9!");
  auto namesOfSums = [](const OpFactors &of) {
    std::string names;
    for (const Factor &factor : of.factors)
      if (factor.kind == FactorKind::Reduction)
        names += factor.name + " ";
    return names;
  };
  EXPECT_EQ(namesOfSums(factors), "in ");
  // A part reads a row of each neighbour, which are different rows where it has two.
  const Factor &space = factors.factors[factors.results[0][2].front()];
  EXPECT_EQ(space.name, "space");
  EXPECT_EQ(space.halo, 2);
  EXPECT_EQ(space.leastPart, 2);
  EXPECT_EQ(factors.unreducedTogether.size(), 2u);
  factors = getFactors(arguments, std::string("%0 = train.convolution_data_grad %y, %w sizes [5, 4, 8, 9]") + windows +
                                      "(tensor<5x6x8x9xf32>, tensor<6x2x3x3xf32>) -> tensor<5x4x8x9xf32>");
  EXPECT_EQ(print(factors, factors.results[0]), "5 | 2 2 | 8 | 9!");
  EXPECT_EQ(namesOfSums(factors), "out ");
  factors = getFactors(arguments, std::string("%0 = train.convolution_weight_grad %y, %x sizes [6, 2, 3, 3]") +
                                      windows + "(tensor<5x6x8x9xf32>, tensor<5x4x8x9xf32>) -> tensor<6x2x3x3xf32>");
  EXPECT_EQ(print(factors, factors.results[0]), "2 3 | 2 | 3! | 3!");
  EXPECT_EQ(namesOfSums(factors), "batch space ");
}

TEST_F(FactorsTest, PoolingSplitsTheBatchTheChannelsAndTheFirstSpatialDim) {
  OpFactors factors =
      getFactors("%x: tensor<5x4x8xf32>", "%0 = train.max_pool %x window [2] strides [2] dilations [1] pads [0, 0] : "
                                          "tensor<5x4x8xf32> -> tensor<5x4x4xf32>");
  EXPECT_EQ(print(factors, factors.operands[0]), "5 | 4 | 4 2!");
  EXPECT_EQ(print(factors, factors.results[0]), "5 | 4 | 4");
  EXPECT_EQ(factors.factors[factors.results[0][2].front()].halo, 0);
  // Means leave out the pads, of which only the border has some.
  factors = getFactors("%x: tensor<5x4x8xf32>",
                       "%0 = train.average_pool %x window [3] strides [1] dilations [1] pads [1, 1] : "
                       "tensor<5x4x8xf32> -> tensor<5x4x8xf32>");
  EXPECT_EQ(print(factors, factors.results[0]), "5 | 4 | 8!");
}

TEST_F(FactorsTest, GroupedQueriesAreTwoFactorsOfTheHeads) {
  OpFactors factors =
      getFactors("%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>",
                 "%0, %1 = train.attention %q, %k, %k scale 0.5 causal : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, "
                 "tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)");
  EXPECT_EQ(print(factors, factors.operands[0]), "1 | 2 2 | 5! | 8!");
  EXPECT_EQ(print(factors, factors.operands[1]), "1 | 2 | 5 | 8!");
}

TEST_F(FactorsTest, RowsOfANormAreSummedForItsScale) {
  OpFactors factors =
      getFactors("%x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<2xf32>",
                 "%0:3 = train.layer_norm_grad %x, %x, %s, %m, %m : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, "
                 "tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)");
  EXPECT_EQ(factors.factors[0].kind, FactorKind::Reduction);
  EXPECT_EQ(factors.factors[1].kind, FactorKind::Inner);
}

TEST_F(FactorsTest, OptimizersTakeElementsInAnyOrder) {
  auto squares = [&](llvm::StringRef type) {
    return getFactors(("%x: " + type).str(), ("%0 = train.square_sum %x : " + type + " -> tensor<f32>").str());
  };
  OpFactors factors = squares("tensor<5x3xf32>");
  std::optional<unsigned> flat = factors.findFlat();
  ASSERT_TRUE(flat);
  EXPECT_EQ(factors.factors[*flat].size, 15);
  EXPECT_EQ(factors.factors[*flat].padding, 0.0);
  EXPECT_FALSE(squares("tensor<f32>").findFlat());
}

TEST_F(FactorsTest, KeysAreReducedInsideButInAGradientWithoutACausalMask) {
  auto kindOfKeys = [&](llvm::StringRef causal) {
    OpFactors factors = getFactors(
        "%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %l: tensor<1x4x5xf32>",
        ("%0:3 = train.attention_grad %q, %q, %k, %k output %q, %l scale 0.5" + causal +
         " : (tensor<1x4x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, "
         "tensor<1x4x5x8xf32>, tensor<1x4x5xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>)")
            .str());
    return factors.factors[4].kind;
  };
  EXPECT_EQ(kindOfKeys(""), FactorKind::Reduction);
  EXPECT_EQ(kindOfKeys(" causal"), FactorKind::Inner);
}

TEST_F(FactorsTest, RowsOfATableAreLookedUpUntilPartsKnowWhereTheyBegin) {
  auto getRows = [&](llvm::StringRef first, llvm::StringRef type) {
    return getFactors(
        "%t: tensor<6x2xf32>, %i: tensor<5xi64>, %f: tensor<3xi64>",
        ("%0 = train.embedding %t, %i" + first + " : tensor<6x2xf32>, tensor<5xi64>" + type + " -> tensor<5x2xf32>")
            .str());
  };
  OpFactors whole = getRows("", ""), parts = getRows(" first %f of 12", ", tensor<3xi64>");
  EXPECT_EQ(print(whole, whole.operands[0]), "6 | 2");
  EXPECT_EQ(whole.factors[0].kind, FactorKind::Reduction);
  EXPECT_TRUE(whole.factors[0].isTakenApart());
  EXPECT_EQ(print(parts, parts.operands[0]), "3 2! | 2");
  EXPECT_EQ(print(parts, parts.operands[2]), "3");
  EXPECT_TRUE(llvm::none_of(parts.factors, [](const Factor &factor) { return factor.isTakenApart(); }));
}

TEST_F(FactorsTest, OnlySamplesOfADropoutAreSplit) {
  OpFactors factors = getFactors("%x: tensor<4x3x2xf32>, %k: tensor<4xi64>",
                                 "%0 = train.dropout %x, %k ratio 0.1 : tensor<4x3x2xf32>, tensor<4xi64>");
  EXPECT_EQ(print(factors, factors.operands[0]), "4 | 3! | 2!");
  EXPECT_EQ(print(factors, factors.operands[1]), "4");
}

TEST_F(FactorsTest, HalvesOfARotatedRowStayTogether) {
  OpFactors factors = getFactors("%x: tensor<2x4x5x8xf32>, %t: tensor<5x8xf32>",
                                 "%0 = train.rotary %x, %t, %t : tensor<2x4x5x8xf32>, tensor<5x8xf32>, "
                                 "tensor<5x8xf32>");
  EXPECT_EQ(print(factors, factors.operands[0]), "2 | 4 | 5 | 8!");
  EXPECT_EQ(print(factors, factors.operands[1]), "5 | 8!");
}

TEST_F(FactorsTest, MaximumPadsWithMinusInfinity) {
  OpFactors factors =
      getFactors("%x: tensor<2x3xf32>", "%0 = train.reduce max %x dims [1] : tensor<2x3xf32> -> tensor<2xf32>");
  EXPECT_EQ(factors.factors[1].reduction, ReductionKind::max);
  EXPECT_EQ(factors.factors[1].padding, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(factors.unreducedTogether.empty());
}

} // namespace
