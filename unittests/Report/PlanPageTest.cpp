#include "windlass/Report/PlanPage.h"

#include "llvm/ADT/StringRef.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace windlass::report;
using testing::HasSubstr;
using testing::Not;

namespace {

size_t count(llvm::StringRef text, llvm::StringRef part) { return text.count(part); }

/// Two streams over a step of 2 s in four parts.
PlanPage makePage() {
  PlanPage page;
  page.title = "model.onnx";
  page.timeline.seconds = 2;
  page.timeline.occupations = {"forward", "collectives"};
  page.timeline.lanes = {{"compute", {{1, 0}, {1, 0}, {0.5, 0}, {0, 0}}},
                         {"over data", {{0, 0}, {0, 0.25}, {0, 1}, {0, 1}}}};
  page.windows = {"forward", "update"};
  page.shares = {{"compute", {0.5, 0.125}}, {"over data", {0, 0.5625}}};
  return page;
}

} // namespace

TEST(PlanPage, EqualNeighboursAreOneStretchOfAStream) {
  std::string html = writePlanPage(makePage());
  // Compute is busy for the whole of two parts and half of one; the collectives for a quarter of one and two whole
  // ones.
  EXPECT_THAT(html, HasSubstr("<rect class=\"part s0\" x=\"230.0\" y=\"0.0\" width=\"397.0\" height=\"18.0\"/>"));
  EXPECT_THAT(html, HasSubstr("<rect class=\"part s0\" x=\"627.0\" y=\"9.0\" width=\"198.5\" height=\"9.0\"/>"));
  EXPECT_THAT(html, HasSubstr("<rect class=\"part s1\" x=\"428.5\" y=\"37.5\" width=\"198.5\" height=\"4.5\"/>"));
  EXPECT_THAT(html, HasSubstr("<rect class=\"part s1\" x=\"627.0\" y=\"24.0\" width=\"397.0\" height=\"18.0\"/>"));
  EXPECT_THAT(html, HasSubstr("<th>compute</th><td class=\"number\">50.0 %</td><td class=\"number\">12.5 %</td>"
                              "<td class=\"number\">37.5 %</td>"));
  EXPECT_THAT(html, HasSubstr("<th>over data</th><td class=\"number\">0.0 %</td><td class=\"number\">56.2 %</td>"));
}

TEST(PlanPage, LayersOfMemoryLieOnEachOther) {
  PlanPage page = makePage();
  page.memory.layers = {{"weights", {1024, 1024, 1024}}, {"activations", {0, 3072, 1024}}};
  page.memory.functions = {{"forward", 0}, {"backward", 2}};
  page.memory.limit = 8192;
  std::string html = writePlanPage(page);
  // The height of 252 units stands for 4096 bytes; the weights take a quarter of it, up to 203.
  EXPECT_THAT(html, HasSubstr("<polygon class=\"part s0\" points=\"76.0,266.0 76.0,203.0 392.0,203.0 392.0,203.0 "
                              "708.0,203.0 708.0,203.0 1024.0,203.0 1024.0,266.0\"/>"));
  EXPECT_THAT(html, HasSubstr("<polygon class=\"part s1\" points=\"76.0,266.0 76.0,203.0 392.0,203.0 392.0,14.0 "
                              "708.0,14.0 708.0,140.0 1024.0,140.0 1024.0,266.0\"/>"));
  EXPECT_THAT(html, HasSubstr("At most 4.0 KiB of 8.0 KiB"));
  EXPECT_THAT(html, HasSubstr("activations 3.0 KiB"));
  EXPECT_THAT(html, HasSubstr(">backward</text>"));
}

TEST(PlanPage, LongCoursesKeepTheirHighestMoment) {
  PlanPage page;
  Layer layer{"values", std::vector<double>(100000, 1)};
  layer.values[77777] = 4096;
  page.memory.layers = {layer};
  std::string html = writePlanPage(page);
  EXPECT_LT(html.size(), 50000u);
  EXPECT_THAT(html, HasSubstr("At most 4.0 KiB"));
  EXPECT_THAT(html, HasSubstr(",14.0 "));
}

TEST(PlanPage, TextIsEscapedAndNothingIsLoaded) {
  PlanPage page = makePage();
  const std::string evil = "<script>\"'&";
  page.title = evil;
  page.facts = {{evil, evil}};
  page.stages = {{evil, {{evil, 2}}}};
  page.rows = {{evil, 1, {{evil, {evil}}}, evil}};
  page.timeline.occupations[0] = page.timeline.lanes[0].name = page.timeline.note = page.windows[0] =
      page.shares[0].first = evil;
  page.memory.layers = {{evil, {1}}};
  page.memory.functions = {{evil, 0}};
  std::string html = writePlanPage(page);
  EXPECT_EQ(count(html, "<script"), 0u);
  EXPECT_GE(count(html, "&lt;script&gt;"), 14u);
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, Not(HasSubstr("http://")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
}

TEST(PlanPage, AbsurdNumbersAreDrawnAsNothing) {
  PlanPage page = makePage();
  page.timeline.lanes[0].parts[0] = {NAN, INFINITY};
  page.memory.layers = {{"values", {NAN, INFINITY, -5}}};
  page.stages = {{"all", {{"data", int64_t(1) << 40}, {"model", int64_t(1) << 20}}}};
  std::string html = writePlanPage(page);
  EXPECT_THAT(html, Not(HasSubstr("\"nan")));
  EXPECT_THAT(html, Not(HasSubstr("\"inf")));
  EXPECT_THAT(html, HasSubstr("The device holds nothing."));
  // More devices than can be told apart are named by their numbers only.
  EXPECT_THAT(html, HasSubstr("data 1099511627776 × model 1048576"));
  EXPECT_THAT(writePlanPage(PlanPage()), HasSubstr("Nothing runs."));
}

TEST(PlanPage, DevicesAndSplitsShowTheirAxes) {
  PlanPage page = makePage();
  page.stages = {{"position 0", {{"data", 2}, {"model", 4}}}, {"position 1", {{"data", 2}, {"model", 4}}}};
  page.rows = {{"h.{0-11}.mlp", 12, {{"n0", {"model"}}, {"batch", {"data"}}}, "weight [16, 64:model]"},
               {"loss", 1, {}, ""}};
  page.moreRows = 3;
  std::string html = writePlanPage(page);
  size_t mesh = html.find("The devices by stage"), end = html.find("How operators");
  EXPECT_EQ(count(html.substr(mesh, end - mesh), "class=\"part s0\""), 8u);
  EXPECT_EQ(count(html.substr(mesh, end - mesh), "class=\"part s1\""), 8u);
  EXPECT_THAT(html, HasSubstr("<span class=\"chip s1\">n0: model</span> <span class=\"chip s0\">batch: data</span>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"split\">whole</td>"));
  EXPECT_THAT(html, HasSubstr("and 3 more"));
}
