#include "windlass/Report/Comparison.h"

#include "llvm/ADT/StringRef.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace windlass::report;
using testing::HasSubstr;
using testing::Not;

namespace {

size_t count(llvm::StringRef text, llvm::StringRef part) { return text.count(part); }

windlass::report::Run makeRun(const std::string &folder, double loss, const std::string &rate) {
  windlass::report::Run run;
  run.folder = folder;
  for (int64_t step = 1; step <= 3; ++step)
    run.steps.push_back({step, loss / double(step), 1, 0.1, 0.5, 100, NAN});
  run.settings = {{"lr", rate}, {"optimizer", "adamw"}};
  return run;
}

} // namespace

TEST(Comparison, EachRunIsALineOfItsColour) {
  std::string html = writeComparison({makeRun("slow", 3, "0.1"), makeRun("fast", 6, "0.2")});
  // Loss, throughput, norm and rate, each of two runs.
  EXPECT_EQ(count(html, "<polyline class=\"line s0\""), 4u);
  EXPECT_EQ(count(html, "<polyline class=\"line s1\""), 4u);
  EXPECT_THAT(html, HasSubstr("<tr><th>loss</th><td>1.0000</td><td>2.0000</td></tr>"));
  EXPECT_THAT(html, HasSubstr("<tr><th>tokens per second (median)</th><td>100</td><td>100</td></tr>"));
  EXPECT_THAT(html, Not(HasSubstr("samples per second")));
  EXPECT_THAT(html, Not(HasSubstr("Evaluation loss")));
}

TEST(Comparison, SettingsThatDifferAreListed) {
  windlass::report::Run one = makeRun("a", 3, "0.1"), two = makeRun("b", 3, "0.2"), three = makeRun("c", 3, "0.1");
  three.settings.emplace_back("clip_norm", "1");
  std::string html = writeComparison({one, two, three});
  EXPECT_THAT(html, HasSubstr("<tr><th>lr</th><td>0.1</td><td>0.2</td><td>0.1</td></tr>"));
  EXPECT_THAT(html, HasSubstr("<tr><th>clip_norm</th><td>–</td><td>–</td><td>1</td></tr>"));
  EXPECT_THAT(html, Not(HasSubstr("<th>optimizer</th>")));
  EXPECT_THAT(html, HasSubstr("<h2>Environments that differ</h2>\n<p class=\"none\">None.</p>"));
}

TEST(Comparison, RunsMayHaveNothingAndForeignNames) {
  windlass::report::Run evil = makeRun("<script>", NAN, "<b>");
  evil.evaluations = {{2, 1.5}};
  std::string html = writeComparison({evil, windlass::report::Run()});
  EXPECT_EQ(count(html, "<script"), 0u);
  EXPECT_THAT(html, HasSubstr("<td>not finite</td><td></td>"));
  EXPECT_THAT(html, HasSubstr("<h2>Evaluation loss</h2>"));
  EXPECT_THAT(writeComparison({windlass::report::Run(), windlass::report::Run()}),
              HasSubstr("Loss: nothing was recorded."));
}
