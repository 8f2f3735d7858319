#include "windlass/Schedule/DrawPipeline.h"
#include "windlass/Schedule/Generators.h"
#include "windlass/Schedule/TimesFile.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::schedule;
using testing::HasSubstr;
using testing::Not;

namespace {

TimedPipeline makeTimed(Pipeline pipeline, double hop = 0) {
  TimesInUnits times = makeEqualTimes(pipeline.placement);
  times.hop = hop;
  ScaledTimes scaled = llvm::cantFail(scaleTimes(pipeline.placement, times));
  PipelineTiming timing = llvm::cantFail(timePipeline(pipeline, scaled.times));
  return {std::move(pipeline), std::move(scaled.times), std::move(timing), scaled.ticksPerUnit};
}

std::vector<std::string> getLines(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, '\n');
  std::vector<std::string> lines;
  for (llvm::StringRef part : parts)
    lines.push_back(part.str());
  return lines;
}

TEST(DrawText, IsInProportionToTime) {
  std::string text = drawText(makeTimed(llvm::cantFail(make1F1B(2, 1, 2))), 61);
  // Nine units of time in 54 columns.
  EXPECT_EQ(text, "time   |0          |2          |4          |6          |8\n"
                  "rank 0 F0>>>>F1>>>>            BW0<<<<<<<<<      BW1<<<<<<<<<\n"
                  "rank 1       F0>>>>BW0<<<<<<<<<F1>>>>BW1<<<<<<<<<\n"
                  "F forward, BW whole backward, and the micro-batch where it fits\n");
}

TEST(DrawText, LongStepsHavePanels) {
  TimedPipeline step = makeTimed(llvm::cantFail(makeZeroBubbleV(8, 32)));
  std::string text = drawText(step, 120);
  std::vector<std::string> lines = getLines(text);
  for (const std::string &line : lines)
    EXPECT_LE(line.size(), 120u) << line;
  EXPECT_EQ(llvm::count(lines, ""), 6) << "between six panels, and at the end";
  // The first panel begins with the first forward, and each row goes on in the next panel.
  EXPECT_THAT(lines[1], testing::StartsWith("rank 0 F"));
  EXPECT_THAT(text, HasSubstr("small letters: further chunks"));
  EXPECT_THAT(text, HasSubstr("B input gradient, W weight gradient"));
}

TEST(DrawText, ManyRanksAreCounted) {
  std::string text = drawText(makeTimed(llvm::cantFail(make1F1B(70, 1, 1))), 120);
  EXPECT_THAT(text, HasSubstr("rank 63"));
  EXPECT_THAT(text, Not(HasSubstr("rank 64")));
  EXPECT_THAT(text, HasSubstr("and 6 more ranks\n"));
}

TEST(DrawText, NothingTakesTime) {
  TimedPipeline step = makeTimed(llvm::cantFail(make1F1B(1, 1, 1)));
  step.times.chunks = {{0, 0, 0}};
  step.timing = llvm::cantFail(timePipeline(step.pipeline, step.times));
  EXPECT_EQ(drawText(step, 120), "no action takes time\n");
  EXPECT_THAT(llvm::cantFail(drawSvg(step, "")), HasSubstr("rank 0"));
}

TEST(DrawSvg, EachBoxHasATitle) {
  std::string svg = llvm::cantFail(drawSvg(makeTimed(llvm::cantFail(makeZeroBubble1(2, 3)), 0.25), "two ranks"));
  EXPECT_THAT(svg, testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, HasSubstr("<title>two ranks</title>"));
  EXPECT_THAT(svg, HasSubstr("@media (prefers-color-scheme: dark)"));
  EXPECT_THAT(svg, HasSubstr("<title>forward of micro-batch 0 of chunk 1, 1.25 to 2.25</title>"));
  size_t count = 0;
  for (size_t at = 0; (at = svg.find("of micro-batch", at)) != std::string::npos; ++at)
    ++count;
  EXPECT_EQ(count, 2u * 3 * 3);
  for (const char *outside : {"<script", "href", "url(", "@import"})
    EXPECT_THAT(svg, Not(HasSubstr(outside)));
}

TEST(DrawSvg, HostileTextStaysText) {
  std::string svg = llvm::cantFail(drawSvg(makeTimed(llvm::cantFail(make1F1B(1, 1, 1))), "</title><script>\"'&\xff"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;/title&gt;&lt;script&gt;&quot;&#39;&amp;\xef\xbf\xbd"));
}

TEST(DrawSvg, RefusesTooManyBoxes) {
  EXPECT_EQ(llvm::toString(drawSvg(makeTimed(llvm::cantFail(make1F1B(4, 1, 8193))), "").takeError()),
            "has 65544 actions that take time; at most 65536 can be drawn");
}

TEST(ScaleTimes, ThirdsAndDecimalsAreWhole) {
  Placement placement = makeLoopedPlacement(2, 3);
  TimesInUnits times = makeEqualTimes(placement);
  times.hop = 0.1;
  ScaledTimes scaled = llvm::cantFail(scaleTimes(placement, times));
  EXPECT_EQ(3 * scaled.times.chunks[4].forward, static_cast<int64_t>(scaled.ticksPerUnit));
  EXPECT_EQ(10 * scaled.times.hop, static_cast<int64_t>(scaled.ticksPerUnit));
  EXPECT_GT(scaled.times.chunks[0].forward, 1'000'000'000);
  times.forward = {1, 2};
  EXPECT_EQ(llvm::toString(scaleTimes(placement, times).takeError()),
            "forward has 2 times, but the model has 6 chunks: give one for each, or one number for all");
}

TEST(ScaleTimes, BothDirectionsHaveTheSameTimes) {
  Placement placement = makeBidirectionalPlacement(2, 1);
  TimesInUnits times = makeEqualTimes(placement);
  times.forward = {1, 3};
  ScaledTimes scaled = llvm::cantFail(scaleTimes(placement, times));
  EXPECT_EQ(scaled.times.chunks[0].forward, scaled.times.chunks[2].forward);
  EXPECT_EQ(scaled.times.chunks[1].forward, scaled.times.chunks[3].forward);
  EXPECT_EQ(3 * scaled.times.chunks[0].forward, scaled.times.chunks[1].forward);
}

} // namespace
