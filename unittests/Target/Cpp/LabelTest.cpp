#include "windlass/Target/Cpp/Label.h"
#include "windlass/Target/Cpp/CppBuilder.h"

#include "gtest/gtest.h"

using namespace windlass::cpp;

TEST(Label, KeepsLettersDigitsUnderscoresAndDots) {
  EXPECT_EQ(Label::ofName("model.h_0.attn.Matmul.1").getText(), "model.h_0.attn.Matmul.1");
  EXPECT_EQ(Label::ofName("").getText(), "");
}

TEST(Label, OfAnyBytesEndsNoCommentAndContinuesNoLine) {
  EXPECT_EQ(Label::ofName("a*/b").getText(), "a__b");
  EXPECT_EQ(Label::ofName("a\\\nint x;").getText(), "a__int_x_");
  EXPECT_EQ(Label::ofName("a\r\n#pragma").getText(), "a___pragma");
  // The trigraph of a backslash, which would continue the line.
  EXPECT_EQ(Label::ofName("a?\?/").getText(), "a___");
  EXPECT_EQ(Label::ofName("\xe6\xbc\xa2\xff").getText(), "____");
  std::string all;
  for (int c = 0; c < 256; ++c)
    all = Label::ofName(std::string(1, static_cast<char>(c))).getText() + all;
  EXPECT_EQ(all.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_."),
            std::string::npos);
  EXPECT_EQ(all.size(), 256u);
}

TEST(Label, KeepsTheEndOfALongName) {
  const std::string longest(Label::kLongestName, 'x');
  EXPECT_EQ(Label::ofName(longest).getText(), longest);
  EXPECT_EQ(Label::ofName("layers" + longest + ".weight").getText(),
            "..." + std::string(Label::kLongestName - 3 - 7, 'x') + ".weight");
}

TEST(Label, JoinsWordsAndNames) {
  EXPECT_EQ(("gradient of " + Label::ofName("a b") + " and " + Label::ofNumber(2) + " more").getText(),
            "gradient of a_b and 2 more");
}

TEST(CppBuilder, WritesOneLineForEachStatement) {
  std::vector<std::string> lines;
  RuntimeCalls calls(lines);
  const Stream compute = calls.declareStream("compute", Context("c"), 0);
  calls.setLabel(Label::ofName("fc.bias */"));
  calls.fill(compute, View("at(v0)"), 0);
  calls.beginIf(Expr<bool>("is_last"));
  calls.recordEvent(compute, RuntimeCalls::eventOf(Context("c"), 3));
  calls.endIf();
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "  stream &compute = stream_of(c, 0);",
                       "  WINDLASS_TRY(fill(compute, at(v0), 0.0000000000000000e+00)); // fc.bias___",
                       "  if (is_last) {", "    WINDLASS_TRY(record_event(compute, event_of(c, 3)));", "  }"}));
}

TEST(Signature, MarksParametersThatGoUnused) {
  Signature signature("block_0", /*isStatic=*/true);
  signature.add<windlass::rt::context &>("c");
  signature.add<bool>("adds");
  EXPECT_EQ(signature.getText([](llvm::StringRef name) { return name == "c"; }),
            "static status block_0(context &c, [[maybe_unused]] bool adds)");
}
