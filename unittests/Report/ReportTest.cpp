#include "windlass/Report/Overview.h"
#include "windlass/Report/Page.h"
#include "windlass/Support/Markup.h"
#include "windlass/Support/OutputFile.h"

#include "llvm/Support/FileSystem.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace windlass;
using namespace windlass::report;
using testing::HasSubstr;
using testing::Not;

namespace {

class RunFolder : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("windlass-report", path)); }
  void TearDown() override { llvm::sys::fs::remove_directories(path); }
  void write(const std::string &name, llvm::StringRef text) {
    ASSERT_EQ(writeFile((path + "/" + name).str(), text), "");
  }
  report::Run read() {
    llvm::Expected<report::Run> run = readRun(path.str().str());
    EXPECT_TRUE(bool(run)) << llvm::toString(run.takeError());
    if (!run)
      return report::Run();
    run->lastStep = readLastStep(path.str().str());
    return *run;
  }
  std::string failure() {
    llvm::Expected<report::Run> run = readRun(path.str().str());
    return run ? "" : llvm::toString(run.takeError());
  }
  llvm::SmallString<128> path;
};

size_t count(llvm::StringRef text, llvm::StringRef part) { return text.count(part); }

} // namespace

TEST_F(RunFolder, RowsAndEvaluationsAreTakenApart) {
  write("metrics.jsonl", "{\"step\": 1, \"loss\": 2.5, \"grad_norm\": null, \"lr\": 0.1, \"seconds\": 0.5, "
                         "\"tokens_per_s\": 100}\n"
                         "{\"step\": 1, \"eval_loss\": 2.25, \"eval_batches\": 3}\n"
                         "{\"step\": 2, \"lo");
  report::Run run = read();
  ASSERT_EQ(run.steps.size(), 1u);
  EXPECT_EQ(run.steps[0].loss, 2.5);
  EXPECT_TRUE(std::isnan(run.steps[0].gradNorm));
  EXPECT_EQ(run.steps[0].tokensPerSecond, 100);
  ASSERT_EQ(run.evaluations.size(), 1u);
  EXPECT_EQ(run.evaluations[0].loss, 2.25);
  EXPECT_EQ(run.badLines, 1);
  EXPECT_FALSE(run.isFinished);
}

TEST_F(RunFolder, ThroughputIsOfTokensElseOfSamples) {
  const char *row = "{\"step\": 1, \"loss\": 2.5, \"seconds\": 0.5, \"tokens_per_s\": %s, \"samples_per_s\": 7.5}\n";
  for (bool hasTokens : {true, false}) {
    std::string text = row;
    write("metrics.jsonl", text.replace(text.find("%s"), 2, hasTokens ? "960" : "null"));
    report::Run run = read();
    ASSERT_EQ(run.steps.size(), 1u);
    EXPECT_EQ(run.steps[0].samplesPerSecond, 7.5);
    std::string page = writePage(run);
    EXPECT_EQ(count(page, "Tokens per second"), hasTokens ? 1u : 0u);
    EXPECT_EQ(count(page, "Samples per second"), hasTokens ? 0u : 1u);
    EXPECT_THAT(page, HasSubstr("7.50 (median)"));
  }
}

TEST_F(RunFolder, AFewLinesSayHowFarItIs) {
  report::Run fresh;
  fresh.folder = "r";
  fresh.model = "m";
  EXPECT_THAT(describeRun(fresh, 80), testing::ElementsAre("'m' in 'r'", "step      none yet"));
  std::string rows;
  for (int step = 1; step <= 40; ++step)
    rows += "{\"step\": " + std::to_string(step) + ", \"loss\": " + std::to_string(9 - step / 5) +
            ", \"grad_norm\": 0.5, \"lr\": 0.001, \"seconds\": 2, \"tokens_per_s\": null, \"samples_per_s\": 8}\n";
  write("metrics.jsonl", rows + "{\"step\": 40, \"eval_loss\": 1.5, \"eval_batches\": 1}\n");
  write("run.json", R"({"version": 1, "model": "a\u001bb", "settings": {"steps": 100}})");
  report::Run run = read();
  EXPECT_EQ(countPlannedSteps(run), 100);
  EXPECT_EQ(estimateSecondsLeft(run), 120);
  std::vector<std::string> lines = describeRun(run, 14);
  // A foreign name reaches no terminal as it is.
  EXPECT_THAT(lines[0], testing::StartsWith("'a\\x1bb' in '"));
  lines.erase(lines.begin());
  EXPECT_THAT(lines,
              testing::ElementsAre("step      40 of 100, 40 %, 2 min 0 s left", "loss      1.0000, 9.0000 at step 1",
                                   "          █▆▃▁", "norm      0.5000, learning rate 0.001",
                                   "speed     8.0 samples/s, 2.0000 s a step", "eval loss 1.5000 at step 40"));
}

TEST_F(RunFolder, TheRecordGivesSettingsMachineAndMemory) {
  write("run.json", R"({"version": 1, "model": "m", "ranks": 2, "mesh": {"data": 2}, "settings": {"lr": 0.5},
    "machine": {"host": "h", "nested": {"a": 1}, "memory_bytes": 2048}, "device_memory": {"arena": 1000, "parameters": 600, "pinned": 5},
    "reserve": {"program": 3000, "total": 4096}, "last_step": 3,
    "processes": [{"host": "h", "peak_bytes": 2048}, {"host": 4}, 7]})");
  report::Run run = read();
  EXPECT_EQ(run.model, "m");
  EXPECT_THAT(run.settings, testing::ElementsAre(testing::Pair("model", "m"), testing::Pair("ranks", "2"),
                                                 testing::Pair("axis data", "2"), testing::Pair("lr", "0.5")));
  EXPECT_THAT(run.machine, testing::ElementsAre(testing::Pair("host", "h"), testing::Pair("memory", "2.0 KiB")));
  EXPECT_EQ(run.memory.arena, 1000);
  EXPECT_EQ(run.memory.reserve, 4096);
  EXPECT_THAT(writePage(run), HasSubstr("for the program itself: 4.0 KiB."));
  EXPECT_THAT(run.memory.parts, testing::ElementsAre(testing::Pair("parameters", 600)));
  EXPECT_THAT(run.memory.processes, testing::ElementsAre(testing::Pair("h", 2048)));
  EXPECT_TRUE(run.isFinished);
}

TEST_F(RunFolder, CollectivesAreThoseOfTheLastStep) {
  write("metrics.jsonl", "{\"step\": 1, \"loss\": 2, \"collective_bytes\": {\"all_reduce\": 7, \"<i>\": 1}}\n"
                         "{\"step\": 2, \"loss\": 2, \"collective_bytes\": {\"all_reduce\": 2048, \"all_to_all\": 0, "
                         "\"<b>\": 3, \"scalars\": -4}}\n"
                         "{\"step\": 2, \"eval_loss\": 2}\n");
  report::Run run = read();
  EXPECT_THAT(run.collectives, testing::ElementsAre(testing::Pair("all_reduce", 2048), testing::Pair("all_to_all", 0),
                                                    testing::Pair("<b>", 3), testing::Pair("scalars", 0)));
  std::string page = writePage(run);
  EXPECT_THAT(page, HasSubstr("<th>all reduce</th><td>2.0 KiB</td>"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("all to all")));
  write("metrics.jsonl", "{\"step\": 1, \"loss\": 2}\n");
  EXPECT_THAT(writePage(read()), HasSubstr("<h2>Collectives</h2>\n<p class=\"none\">Not recorded.</p>"));
}

TEST_F(RunFolder, KernelsComeByTime) {
  write("metrics.jsonl", "");
  std::string rows;
  for (int i = 0; i < 30; ++i)
    rows += ", {\"name\": \"k" + std::to_string(i) + "\", \"sizes\": [2, 3], \"calls\": 4, \"seconds\": 0.01}";
  write("kernels.json",
        "{\"steps\": 2, \"step_seconds\": 1, \"kernels\": [{\"name\": 4}, {\"name\": \"<i>\", \"calls\": "
        "8, \"seconds\": 0.5}" +
            rows + "]}");
  report::Run run = read();
  ASSERT_EQ(run.kernels.size(), 31u);
  EXPECT_EQ(run.kernels[0].name, "<i>");
  EXPECT_EQ(run.kernels[1].sizes, "2 × 3");
  std::string page = writePage(run);
  EXPECT_THAT(
      page,
      HasSubstr(
          "<td>&lt;i&gt;</td><td class=\"sizes\"></td><td class=\"number\">4.0</td><td class=\"number\">250.000</td>"
          "<td class=\"number\">50.0 %</td>"));
  EXPECT_THAT(
      page,
      HasSubstr(
          "<td>all others</td><td class=\"sizes\"></td><td class=\"number\">22.0</td><td class=\"number\">55.000</td>"
          "<td class=\"number\">11.0 %</td>"));
  EXPECT_THAT(page, Not(HasSubstr(">k9<")));
  // Rates and a roof that nobody recorded are neither shown nor drawn.
  EXPECT_THAT(page, HasSubstr("<td class=\"number\"></td></tr>"));
  EXPECT_THAT(page, Not(HasSubstr("roofline")));
}

TEST_F(RunFolder, KernelsStandUnderTheRoof) {
  write("metrics.jsonl", "");
  std::string rows;
  for (int i = 0; i < 30; ++i)
    rows += ", {\"name\": \"k" + std::to_string(i) +
            "\", \"calls\": 1, \"seconds\": 0.01, \"flops_per_call\": 1e7, \"bytes_per_call\": 1e7}";
  // 50 of 100 GFLOP/s at 100 operations per byte; a kernel that only moves bytes, and absurd ones.
  write("kernels.json",
        "{\"steps\": 1, \"step_seconds\": 1, \"flops_per_second\": 1e11, \"bytes_per_second\": 1e10, \"kernels\": ["
        "{\"name\": \"matmul\", \"calls\": 10, \"seconds\": 0.2, \"flops_per_call\": 1e9, \"bytes_per_call\": 1e7, "
        "\"roof_seconds\": 0.1}, "
        "{\"name\": \"copy\", \"calls\": 10, \"seconds\": 0.1, \"flops_per_call\": 0, \"bytes_per_call\": 5e7}, "
        "{\"name\": \"<b>\", \"calls\": 1, \"seconds\": 1e-9, \"flops_per_call\": 1e300, \"bytes_per_call\": 1}, "
        "{\"name\": \"<u>\", \"calls\": 1, \"seconds\": -1, \"flops_per_call\": -1, \"bytes_per_call\": \"x\"}" +
            rows + "]}");
  std::string page = writePage(read());
  EXPECT_THAT(page, HasSubstr("<td class=\"number\">50.0</td><td class=\"number\">0.5</td>"
                              "<td class=\"number\">50.0 %</td></tr>"));
  EXPECT_THAT(page,
              HasSubstr("<td class=\"number\"></td><td class=\"number\">5.0</td><td class=\"number\"></td></tr>"));
  // From 1 to 100 operations per byte, from 1 to 100 GFLOP/s.
  EXPECT_THAT(page, HasSubstr("<polyline class=\"roof\" points=\"64.0,149.0 382.0,12.0 700.0,12.0\"/>"));
  EXPECT_THAT(page, HasSubstr("<circle class=\"dot s0\" cx=\"700.0\" cy=\"53.2\" r=\"10.7\"/>"));
  EXPECT_THAT(page, HasSubstr("10 GB/s of memory, then 100 GFLOP/s"));
  EXPECT_EQ(count(page, "<circle class=\"dot s"), 31u);
  EXPECT_THAT(page, HasSubstr(">others</span>"));
  for (const char *tag : {"<b>", "<u>", "\"nan", "\"inf"})
    EXPECT_THAT(page, Not(HasSubstr(tag)));
}

TEST_F(RunFolder, MemoryOverAStepIsDrawnByPosition) {
  write("metrics.jsonl", "");
  llvm::Expected<std::vector<MemoryPicture>> memory = readStepMemory(path.str().str());
  ASSERT_TRUE(bool(memory));
  EXPECT_TRUE(memory->empty());
  const std::string position = R"({"commands": 4, "functions": [["forward", 0], ["<b>", 2]], "layers": [
    {"content": "weights", "bytes": [[0, 1024]]}, {"content": "<i>", "bytes": [[1, 2048], [3, 1024]]}]})";
  write("memory.json", R"({"version": 1, "positions": [)" + position + "]}");
  memory = readStepMemory(path.str().str());
  ASSERT_TRUE(bool(memory)) << llvm::toString(memory.takeError());
  ASSERT_EQ(memory->size(), 1u);
  EXPECT_THAT((*memory)[0].layers[0].values, testing::ElementsAre(1024, 1024, 1024, 1024));
  EXPECT_THAT((*memory)[0].layers[1].values, testing::ElementsAre(0, 2048, 2048, 1024));
  report::Run run = read();
  run.stepMemory = *memory;
  std::string page = writePage(run);
  EXPECT_THAT(page, HasSubstr("Planned over a step:"));
  EXPECT_THAT(page, HasSubstr("At most 3.0 KiB, command"));
  EXPECT_THAT(page, HasSubstr("&lt;i&gt; 2.0 KiB"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  run.stepMemory.assign(10, memory->front());
  page = writePage(run);
  EXPECT_EQ(count(page, "Device memory over"), 8u);
  EXPECT_THAT(page, HasSubstr("Planned over a step, position 7:"));
  EXPECT_THAT(page, HasSubstr("2 more positions"));
}

TEST_F(RunFolder, MemoryThatNoProgramWroteIsRefused) {
  auto layer = [](const std::string &bytes) { return R"({"content": "c", "bytes": )" + bytes + "}"; };
  auto position = [](const std::string &commands, const std::string &functions, const std::string &layers) {
    return R"({"positions": [{"commands": )" + commands + R"(, "functions": )" + functions + R"(, "layers": )" +
           layers + "}]}";
  };
  std::string nine = layer("[]");
  for (int i = 0; i < 8; ++i)
    nine += "," + layer("[]");
  for (const std::string &text :
       {std::string("{}"), std::string(R"({"positions": 1})"), std::string(R"({"positions": [1]})"),
        position("-1", "[]", "[]"), position("1048577", "[]", "[]"), position("1", "[[\"f\", 2]]", "[]"),
        position("1", "[[\"f\"]]", "[]"), position("1", "[[0, 0]]", "[]"), position("1", "[]", "1"),
        position("1", "[]", "[" + nine + "]"), position("4", "[]", "[" + layer("[[2, 1], [1, 1]]") + "]"),
        position("4", "[]", "[" + layer("[[0, -1]]") + "]"), position("4", "[]", "[" + layer("[[0, 1e300]]") + "]"),
        position("4", "[]", "[" + layer("[[5, 1]]") + "]"), position("4", "[]", "[" + layer("[5]") + "]")}) {
    write("memory.json", text);
    llvm::Expected<std::vector<MemoryPicture>> memory = readStepMemory(path.str().str());
    EXPECT_FALSE(bool(memory)) << text;
    EXPECT_THAT(llvm::toString(memory.takeError()), HasSubstr("is not as programs write it"));
  }
  write("memory.json", "{");
  EXPECT_THAT(llvm::toString(readStepMemory(path.str().str()).takeError()), HasSubstr("memory.json' is "));
}

TEST_F(RunFolder, WhatIsNoRunIsNamed) {
  EXPECT_THAT(failure(), HasSubstr("holds neither metrics.jsonl nor run.json"));
  write("run.json", "{");
  EXPECT_THAT(failure(), HasSubstr("run.json"));
}

TEST_F(RunFolder, HostileTextStaysText) {
  const std::string hostile = "</title><script>alert(1)</script>\" onload='x' &";
  write("run.json", "{\"model\": \"" + std::string("</title><script>alert(1)</script>\\\" onload='x' &") +
                        "\", \"settings\": {\"<b>\": \"<img src=x>\"}, \"machine\": {\"host\": \"<i>\"}, "
                        "\"device_memory\": {\"arena\": 10, \"<u>\": 4}, "
                        "\"processes\": [{\"host\": \"<s>\", \"peak_bytes\": 1}]}");
  std::string page = writePage(read());
  for (const char *tag : {"<script", "<img", "<b>", "<i>", "<u>", "<s>", "onload='"})
    EXPECT_THAT(page, Not(HasSubstr(tag)));
  EXPECT_THAT(page, HasSubstr(escapeMarkup(hostile)));
}

TEST_F(RunFolder, ThePageLoadsNothing) {
  write("metrics.jsonl", "{\"step\": 1, \"loss\": 2.5}\n");
  std::string page = writePage(read());
  for (const char *text : {"http:", "https:", "src=", "href=", "url(", "@import", "<script"})
    EXPECT_THAT(page, Not(HasSubstr(text)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(Chart, LeavesOutWhatIsNotFinite) {
  Series series = {"a", {{1, 2.0}, {2, NAN}, {3, INFINITY}, {4, 3.0}}, true};
  EXPECT_EQ(count(drawChart("t", {series}), "<circle"), 2u);
  EXPECT_THAT(drawChart("t", {Series{"a", {{1, NAN}}, false}}), HasSubstr("nothing was recorded"));
}

TEST(Chart, OneValueIsDrawnInsideTheFrame) {
  std::string svg = drawChart("t", {Series{"a", {{7, 0.0}}, false}});
  EXPECT_EQ(count(svg, "<circle"), 1u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Chart, AbsurdNumbersEnd) {
  Series series = {"a", {{0, 1e308}, {1, -1e308}, {2, 1e149}, {3, -1e149}, {1e18, 1e-300}, {1e18 + 1024, 0}}, false};
  std::string svg = drawChart("t", {series});
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_LE(count(svg, "<text"), 45u);
  EXPECT_LE(count(drawChart("t", {Series{"a", {{9e15, 1}, {9e15, 2}}, false}}), "<text"), 45u);
}

TEST_F(RunFolder, StepsThatNoRunHasAreUnreadable) {
  write("metrics.jsonl", "{\"step\": 9000000000000000000, \"loss\": 1}\n{\"step\": -1, \"loss\": 1}\n");
  report::Run run = read();
  EXPECT_TRUE(run.steps.empty());
  EXPECT_EQ(run.badLines, 2);
  EXPECT_THAT(writePage(run), HasSubstr("nothing was recorded"));
}

TEST(Chart, LongSeriesAreDrawnByMeans) {
  Series series = {"a", {}, true};
  for (int i = 0; i < 100000; ++i)
    series.points.emplace_back(i, i % 2);
  std::string svg = drawChart("t", {series});
  EXPECT_LE(count(svg, "<circle"), 700u);
  EXPECT_GE(count(svg, "<circle"), 300u);
}

TEST(Bar, PartsBeyondTheWholeStayInside) {
  std::string svg = drawBar({{"a", 60}, {"b", 70}, {"c", 0}}, 100);
  EXPECT_EQ(count(svg, "<rect"), 2u);
  EXPECT_THAT(svg, HasSubstr("width=\"288.0\""));
}

TEST(Bytes, HaveUnits) {
  EXPECT_EQ(formatBytes(12), "12 B");
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(int64_t(3) << 30), "3.00 GiB");
}

/// Returns a trace of commands on the streams "compute" and "over data".
static std::string traceOf(llvm::StringRef commands) {
  return ("{\"traceEvents\": [{\"name\": \"thread_name\", \"ph\": \"M\", \"tid\": 0, \"args\": {\"name\": "
          "\"compute\"}},"
          "{\"name\": \"thread_name\", \"ph\": \"M\", \"tid\": 1, \"args\": {\"name\": \"over data\"}}" +
          commands + "]}")
      .str();
}

TEST_F(RunFolder, TracesAreTheLastStepAsItWasMeasured) {
  write("metrics.jsonl", "");
  EXPECT_TRUE(read().lastStep.lanes.empty());
  EXPECT_THAT(writePage(read()), HasSubstr("Not recorded: train with --profile."));
  ASSERT_FALSE(llvm::sys::fs::create_directory(path + "/traces"));
  write("traces/rank_00000.json",
        traceOf(", {\"name\": \"matmul\", \"ph\": \"X\", \"tid\": 0, \"ts\": 100, \"dur\": 720}"
                ", {\"name\": \"all_gather\", \"ph\": \"X\", \"tid\": 1, \"ts\": 1180, \"dur\": 360}"));
  write("traces/rank_00001.json",
        traceOf(", {\"name\": \"matmul\", \"ph\": \"X\", \"tid\": 0, \"ts\": 100.5, \"dur\": 1}"));
  Timeline step = read().lastStep;
  EXPECT_NEAR(step.seconds, 1440e-6, 1e-12);
  EXPECT_THAT(step.occupations, testing::ElementsAre("matmul", "all_gather"));
  ASSERT_EQ(step.lanes.size(), 3u);
  EXPECT_EQ(step.lanes[0].name, "rank 0, compute");
  EXPECT_EQ(step.lanes[1].name, "rank 0, over data");
  EXPECT_EQ(step.lanes[2].name, "rank 1, compute");
  for (size_t i = 0; i < step.lanes[0].parts.size(); ++i) {
    EXPECT_NEAR(step.lanes[0].parts[i][0], i < 720, 1e-9) << i;
    EXPECT_NEAR(step.lanes[1].parts[i][1], i >= 1080, 1e-9) << i;
    EXPECT_NEAR(step.lanes[2].parts[i][0], i < 2 ? 0.5 : 0, 1e-9) << i;
  }
  // A predicted step beside it.
  write("predicted.json", traceOf(", {\"name\": \"matmul\", \"ph\": \"X\", \"tid\": 0, \"ts\": 100, \"dur\": 700}"));
  Timeline both = readLastStep(path.str().str(), (path + "/predicted.json").str());
  ASSERT_EQ(both.lanes.size(), 4u);
  EXPECT_EQ(both.lanes[0].name, "predicted, compute");
  EXPECT_THAT(readLastStep(path.str().str(), (path + "/none.json").str()).note, HasSubstr("none.json"));
  std::string html = writePage(read());
  EXPECT_THAT(html, HasSubstr(">rank 0, over data</text>"));
  EXPECT_THAT(html, HasSubstr(">all_gather</span>"));
}

TEST_F(RunFolder, TracesAreReadWithoutTrust) {
  write("metrics.jsonl", "");
  ASSERT_FALSE(llvm::sys::fs::create_directory(path + "/traces"));
  for (const char *bad : {"", "{", "[]", "{\"traceEvents\": 1}", "{\"traceEvents\": [1, null, {}, {\"ph\": \"X\"}]}",
                          "{\"traceEvents\": [{\"name\": \"a\", \"ph\": \"X\", \"tid\": 0, \"ts\": -1, \"dur\": 1},"
                          "{\"name\": \"a\", \"ph\": \"X\", \"tid\": 0, \"ts\": 1, \"dur\": 1e300},"
                          "{\"name\": \"a\", \"ph\": \"X\", \"tid\": 0.5, \"ts\": 1, \"dur\": 1},"
                          "{\"name\": \"a\", \"ph\": \"X\", \"tid\": 0, \"ts\": \"1\", \"dur\": 1}]}"}) {
    write("traces/rank_00000.json", bad);
    EXPECT_TRUE(read().lastStep.lanes.empty()) << bad;
    EXPECT_THAT(writePage(read()), Not(HasSubstr("What each stream does"))) << bad;
  }
  write("traces/rank_00000.json", "{");
  EXPECT_THAT(read().lastStep.note, HasSubstr("rank_00000.json' is "));
  // Many streams and kernels, with names that would be markup.
  std::string many;
  for (int i = 0; i < 1000; ++i)
    many += ", {\"name\": \"<b>" + std::to_string(i) + "\", \"ph\": \"X\", \"tid\": " + std::to_string(i) +
            ", \"ts\": " + std::to_string(i) + ", \"dur\": 5}";
  write("traces/rank_00000.json", traceOf(many));
  Timeline step = read().lastStep;
  EXPECT_EQ(step.lanes.size(), kMostLanes);
  EXPECT_EQ(step.occupations.size(), 8u);
  EXPECT_EQ(step.occupations.back(), "all others");
  EXPECT_THAT(step.note, HasSubstr("There is more than"));
  EXPECT_THAT(writePage(read()), Not(HasSubstr("<b>")));
}
