#include "windlass/Interpreter/Interpreter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace windlass::interpreter;
using testing::HasSubstr;

namespace {

Tensor vector(std::vector<double> values) {
  Tensor result(ElementKind::f64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    result.set(i, values[i]);
  return result;
}

std::vector<Deviation> deviations(const TensorMap &a, const TensorMap &b) {
  auto result = compare(a, b);
  if (result)
    return *result;
  ADD_FAILURE() << llvm::toString(result.takeError());
  return {};
}

std::string errorOf(const TensorMap &a, const TensorMap &b) {
  auto result = compare(a, b);
  return result ? "no error" : llvm::toString(result.takeError());
}

TEST(CompareTest, TheNormOfTheTensorIsTheScale) {
  auto found = deviations({{"loss.0", vector({3, 4})}}, {{"loss.0", vector({3, 4.5})}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "loss");
  EXPECT_NEAR(found[0].value, 0.1, 1e-15);
}

TEST(CompareTest, SmallTensorsAreMeasuredAgainstTheirKind) {
  // 1e-3 of the norm over the kind, 1000, is 1: more than the small tensor's own norm.
  auto found = deviations({{"gradient.a", vector({1000})}, {"gradient.b", vector({1e-6})}},
                          {{"gradient.a", vector({1000})}, {"gradient.b", vector({0.5})}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].worst, "gradient.b");
  EXPECT_NEAR(found[0].value, 0.5, 1e-5);
}

TEST(CompareTest, NanAgreesWithNanOnly) {
  EXPECT_EQ(deviations({{"loss.0", vector({NAN})}}, {{"loss.0", vector({NAN})}})[0].value, 0);
  EXPECT_TRUE(std::isinf(deviations({{"loss.0", vector({1})}}, {{"loss.0", vector({NAN})}})[0].value));
}

TEST(CompareTest, KindsMustConsistOfTheSameTensors) {
  TensorMap one = {{"loss.0", vector({1})}}, two = {{"loss.0", vector({1})}, {"loss.1", vector({1})}};
  EXPECT_THAT(errorOf(one, two), HasSubstr("only the second has the tensor loss.1"));
  EXPECT_THAT(errorOf(two, one), HasSubstr("only the first has the tensor loss.1"));
  EXPECT_THAT(errorOf(one, {{"loss.0", vector({1, 2})}}), HasSubstr("differs in shape"));
  // A kind that only one of them has is not compared: L1 has no gradients.
  EXPECT_EQ(deviations(one, {{"loss.0", vector({1})}, {"gradient.0.w", vector({1})}}).size(), 1u);
}

} // namespace
