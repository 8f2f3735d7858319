// The graph signature and the traced calls of an exporter.
#include "../../../lib/Frontend/Onnx/GraphSignature.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass;
using testing::HasSubstr;

namespace {

std::string errorOf(llvm::StringRef text) {
  auto entries = readGraphSignature(text);
  return entries ? "" : llvm::toString(entries.takeError());
}

TEST(GraphSignature, NamesTensorsInTheirOrder) {
  auto entries =
      readGraphSignature("\n# inputs\np_a_w: PARAMETER target='a.w'\nb_t: BUFFER target='it's' persistent=True\n"
                         "c_c: CONSTANT_TENSOR target='c'\nx: USER_INPUT\n\n# outputs\nloss: USER_OUTPUT\n");
  ASSERT_TRUE(bool(entries));
  ASSERT_EQ(entries->size(), 4u);
  EXPECT_EQ(entries->at(0).kind, "PARAMETER");
  EXPECT_EQ(entries->at(0).placeholder, "p_a_w");
  EXPECT_EQ(entries->at(0).target, "a.w");
  EXPECT_EQ(entries->at(1).target, "it's");
  EXPECT_EQ(entries->at(2).kind, "CONSTANT_TENSOR");
  EXPECT_EQ(entries->at(3).kind, "USER_INPUT");
  EXPECT_EQ(entries->at(3).placeholder, "x");
}

TEST(GraphSignature, RefusesOtherText) {
  EXPECT_THAT(errorOf(""), HasSubstr("names no parameter"));
  EXPECT_THAT(errorOf("p: PARAMETER target='a'\n"), HasSubstr("instead of its inputs"));
  EXPECT_THAT(errorOf("# inputs\n# inputs\n"), HasSubstr("lists its inputs twice"));
  EXPECT_THAT(errorOf("# inputs\np PARAMETER\n"), HasSubstr("which is no 'NAME: KIND'"));
  EXPECT_THAT(errorOf("# inputs\np: PARAMETER\n"), HasSubstr("lacks target="));
  EXPECT_THAT(errorOf("# inputs\np: PARAMETER target='\n"), HasSubstr("lacks target="));
  EXPECT_THAT(errorOf("# inputs\np: PARAMETER target='a'\nq: BUFFER target='a'\n"), HasSubstr("to two inputs"));
  EXPECT_THAT(errorOf(std::string(kGraphSignatureBytes + 1, '#')), HasSubstr("the limit is"));
}

TEST(TracedCall, HasResultTargetAndArguments) {
  auto call =
      readTracedCall("%linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, "
                     "%p_w), kwargs = {})");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->result, "linear");
  EXPECT_EQ(call->target, "aten.linear.default");
  EXPECT_EQ(call->arguments, "(%x, %p_w), kwargs = {}");
}

TEST(TracedCall, IsNothingForOtherText) {
  for (const char *text : {"", "%", "%x", "x : call_function[target=f](args = ())", "%x : = call_function[target=f",
                           "%x : = call_function[target=](args = ())", "%x : = call_function[target=f](kwargs = {})"})
    EXPECT_FALSE(readTracedCall(text)) << text;
}

} // namespace
