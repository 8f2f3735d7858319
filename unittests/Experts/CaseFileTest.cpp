#include "windlass/Experts/CaseFile.h"

#include "windlass/Support/StrictJson.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass;
using namespace windlass::experts;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

llvm::Expected<CaseFile> parse(const std::string &text, bool readsPlacements = false) {
  llvm::Expected<llvm::json::Value> document = parseStrictJson(text);
  if (!document)
    return document.takeError();
  return parseCases(*document, readsPlacements);
}

std::string errorOf(const std::string &text, bool readsPlacements = false) {
  llvm::Expected<CaseFile> file = parse(text, readsPlacements);
  return file ? "" : llvm::toString(file.takeError());
}

/// A case whose keys besides `weight` are `rest`.
std::string makeText(const std::string &weight, const std::string &rest) {
  return "{\"weight\": " + weight + ", " + rest + "}";
}

const std::string kRest = R"("replicas": 4, "groups": 1, "nodes": 1, "gpus": 2)";

TEST(CaseFile, ReadsOneCaseOrAList) {
  std::string text = makeText("[[1, 2.5, 0], [3, 4, 5]]", kRest + R"(, "phy2log": null, "logcnt": "what")");
  llvm::Expected<CaseFile> one = parse(text), list = parse("[" + text + ", " + text + "]");
  ASSERT_TRUE(bool(one) && bool(list));
  EXPECT_FALSE(one->isList);
  EXPECT_TRUE(list->isList);
  ASSERT_EQ(one->cases.size(), 1u);
  ASSERT_EQ(list->cases.size(), 2u);
  EXPECT_EQ(one->cases[0].shape.experts, 3);
  EXPECT_EQ(one->cases[0].shape.replicas, 4);
  EXPECT_THAT(list->cases[1].loads, ElementsAre(ElementsAre(1, 2.5, 0), ElementsAre(3, 4, 5)));
}

TEST(CaseFile, ReadsWhatItWrites) {
  llvm::Expected<CaseFile> file = parse(makeText("[[1, 2.5, 0], [3, 4, 5]]", kRest));
  ASSERT_TRUE(bool(file));
  const Case &given = file->cases.front();
  CaseAnswer answer;
  for (const std::vector<double> &loads : given.loads) {
    answer.layers.emplace_back();
    static_cast<LayerAnswer &>(answer.layers.back()) = placeLayer(given.shape, loads);
  }
  llvm::Expected<CaseFile> again = parseCases(llvm::json::Value(toJson(given, answer)), true);
  ASSERT_TRUE(bool(again));
  EXPECT_EQ(again->cases.front().loads, given.loads);
  EXPECT_EQ(again->placements.front()[0], answer.layers[0].placement);
  EXPECT_EQ(again->placements.front()[1], answer.layers[1].placement);
}

TEST(CaseFile, RefusesWhatIsNoCase) {
  EXPECT_THAT(errorOf("3"), HasSubstr("neither a case nor a list"));
  EXPECT_THAT(errorOf("[]"), HasSubstr("empty list"));
  EXPECT_THAT(errorOf("[3]"), HasSubstr("[0] is no object"));
  EXPECT_THAT(errorOf("{" + kRest + "}"), HasSubstr("weight is missing"));
  EXPECT_THAT(errorOf(makeText("[[1]]", kRest + ", \"wieght\": 1")), HasSubstr("wieght is no known key"));
  EXPECT_THAT(errorOf(makeText("[[1]]", kRest + ", \"gpus\": 2")), HasSubstr("twice"));
  EXPECT_THAT(errorOf(std::string(100'000, '[')), HasSubstr("nests deeper"));
}

TEST(CaseFile, RefusesWrongLoads) {
  EXPECT_THAT(errorOf(makeText("[]", kRest)), HasSubstr("weight must be a list of 1 to 4096 layers"));
  EXPECT_THAT(errorOf(makeText("[1]", kRest)), HasSubstr("weight [0] must be a list"));
  EXPECT_THAT(errorOf(makeText("[[]]", kRest)), HasSubstr("weight [0] has 0 experts"));
  EXPECT_THAT(errorOf(makeText("[[1, 2], [1]]", kRest)), HasSubstr("weight [1] has 1 experts, but weight[0] has 2"));
  for (const char *load : {"-1", "1e999", "-1e999", "1e16", "null", "\"1\"", "[]"})
    EXPECT_THAT(errorOf(makeText("[[1, " + std::string(load) + "]]", kRest)), HasSubstr("weight [0][1] must be a load"))
        << load;
  EXPECT_NE(errorOf(makeText("[[NaN]]", kRest)), "");
}

TEST(CaseFile, RefusesWrongShapes) {
  EXPECT_THAT(errorOf(makeText("[[1, 2, 3, 4, 5]]", kRest)), HasSubstr("5 experts have 4 replicas"));
  EXPECT_THAT(errorOf(makeText("[[1]]", R"("replicas": 5, "groups": 1, "nodes": 1, "gpus": 2)")),
              HasSubstr("5 replicas do not divide over 2 gpus"));
  for (const char *value : {"0", "-1", "65537", "1e300", "2.5", "null"})
    EXPECT_THAT(errorOf(makeText("[[1]]", R"("groups": 1, "nodes": 1, "gpus": 2, "replicas": )" + std::string(value))),
                HasSubstr("replicas must be an integer from 1 to 65536"))
        << value;
  std::string layers = "[[1]";
  for (int more = 0; more < 16; ++more)
    layers += ", [1]";
  EXPECT_THAT(errorOf(makeText(layers + "]", R"("replicas": 65536, "groups": 1, "nodes": 1, "gpus": 2)")),
              HasSubstr("17 layers of 65536 replicas"));
}

TEST(CaseFile, RefusesWrongPlacements) {
  auto error = [&](const std::string &placement) {
    return errorOf(makeText("[[1, 2]]", kRest + ", \"phy2log\": " + placement), true);
  };
  EXPECT_EQ(error("[[0, 1, 1, 1]]"), "");
  EXPECT_THAT(errorOf(makeText("[[1, 2]]", kRest), true), HasSubstr("phy2log is missing"));
  EXPECT_THAT(error("[[0, 1, 1, 1], [0, 1, 1, 1]]"), HasSubstr("phy2log has 2 layers, but weight has 1"));
  EXPECT_THAT(error("[[0, 1, 1]]"), HasSubstr("phy2log [0] places 3 replicas, but there are 4 slots"));
  for (const char *expert : {"2", "-1", "4294967296", "1.5", "\"0\""})
    EXPECT_THAT(error("[[0, 1, 1, " + std::string(expert) + "]]"), HasSubstr("but there are experts 0 to 1")) << expert;
}

} // namespace
