#include "windlass/Schedule/Generators.h"
#include "windlass/Schedule/NamedSchedules.h"
#include "windlass/Schedule/PipelineTiming.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::schedule;

namespace {

/// The timing where a rank's forward, input gradient and weight gradient take one unit each over all of its chunks;
/// times are in units, activations in micro-batches.
struct Figures {
  double makespan, idleShare;
  std::vector<double> peaks;
};

Figures measure(const Pipeline &pipeline, bool fusesPairs = false) {
  const Placement &placement = pipeline.placement;
  int64_t chains = placement.chains.size(), perRank = placement.countChunks() / placement.positions / chains;
  PipelineTimes times;
  times.chunks.resize(placement.countChunks());
  times.fusesPairs = fusesPairs;
  PipelineTiming timing = llvm::cantFail(timePipeline(pipeline, times));
  Figures figures = {static_cast<double>(timing.makespan) / perRank, timing.getIdleShare(), {}};
  for (int64_t peak : timing.peaks)
    figures.peaks.push_back(static_cast<double>(peak) / perRank);
  return figures;
}

double getPeak(const Figures &figures) { return *std::max_element(figures.peaks.begin(), figures.peaks.end()); }

TEST(NamedSchedules, AreLegalWhateverTheSizes) {
  for (const NamedSchedule &each : getNamedSchedules()) {
    EXPECT_EQ(findNamedSchedule(each.name), &each);
    int64_t made = 0;
    for (int64_t p : {1, 2, 3, 4, 7})
      for (int64_t v : {each.chunksPerPosition, each.chunksPerPosition * 2})
        for (int64_t m : {1, 2, 3, 4, 8, 14}) {
          if (v > each.chunksPerPosition && !each.takesMoreChunks)
            continue;
          std::string what = (each.name + " " + llvm::Twine(p) + " " + llvm::Twine(v) + " " + llvm::Twine(m)).str();
          llvm::Expected<Pipeline> pipeline = each.make(p, v, m);
          if (!pipeline) {
            // Only these need some number of micro-batches.
            EXPECT_TRUE(each.name.starts_with("dualpipe") || each.name.starts_with("interleaved"))
                << what << ": " << llvm::toString(pipeline.takeError());
            llvm::consumeError(pipeline.takeError());
            continue;
          }
          ++made;
          EXPECT_EQ(llvm::toString(checkPipeline(*pipeline)), "") << what;
          EXPECT_TRUE(pipeline->placement == makePlacement(each.placement, p, v)) << what;
          bool splits = llvm::any_of(pipeline->positions, [](const Schedule &schedule) {
            return llvm::any_of(schedule.actions,
                                [](const Action &action) { return action.kind == ActionKind::WeightGradient; });
          });
          EXPECT_EQ(splits, each.isSplit) << what;
        }
    EXPECT_GE(made, 8) << each.name.str();
  }
  EXPECT_EQ(findNamedSchedule("2f2b"), nullptr);
}

TEST(NamedSchedules, PlacementsHaveNames) {
  for (PlacementKind kind : kPlacementKinds)
    EXPECT_EQ(findPlacementKind(getName(kind)), kind);
  EXPECT_EQ(findPlacementKind("zigzag"), std::nullopt);
}

/// The formulae of the papers, with p positions and m micro-batches: makespans and the most activations of a position.
TEST(NamedSchedules, TakeWhatTheirPapersSay) {
  for (int64_t p : {2, 3, 4, 8, 16})
    for (int64_t m : p == 16 ? std::vector{2 * p} : std::vector{2 * p, 2 * p + 1, 4 * p}) {
      SCOPED_TRACE(("p " + llvm::Twine(p) + ", m " + llvm::Twine(m)).str());
      double work = 3.0 * m;
      Figures oneForward = measure(llvm::cantFail(make1F1B(p, 1, m)));
      EXPECT_EQ(oneForward.makespan, 3.0 * (m + p - 1));
      EXPECT_EQ(getPeak(oneForward), p);
      EXPECT_EQ(measure(llvm::cantFail(makeGPipe(p, 1, m))).makespan, 3.0 * (m + p - 1));
      Figures zeroBubble = measure(llvm::cantFail(makeZeroBubble1(p, m)));
      EXPECT_EQ(zeroBubble.makespan, work + p - 1);
      EXPECT_EQ(getPeak(zeroBubble), p);
      EXPECT_EQ(measure(llvm::cantFail(makeZeroBubble2(p, m))).makespan, work + p - 1);
      Figures zeroBubbleV = measure(llvm::cantFail(makeZeroBubbleV(p, m)));
      EXPECT_EQ(zeroBubbleV.makespan, work + (p - 1) / 2.0);
      EXPECT_THAT(zeroBubbleV.peaks, testing::Each(testing::Le(p)));
      Figures dualPipeV = measure(llvm::cantFail(makeDualPipeV(p, m)));
      EXPECT_EQ(dualPipeV.makespan, work + (p - 1) / 2.0);
      EXPECT_THAT(dualPipeV.peaks, testing::Each(p + 0.5));
      if (m % p == 0)
        for (int64_t v : {2, 3, 4}) {
          EXPECT_NEAR(measure(llvm::cantFail(makeInterleaved1F1B(p, v, m))).makespan, work + 3.0 * (p - 1) / v, 1e-9);
          EXPECT_NEAR(measure(llvm::cantFail(makeBreadthFirst(p, v, m))).makespan, work + 3.0 * (p - 1) / v, 1e-9);
        }
    }
}

TEST(NamedSchedules, VHalfAndVMinKeepPartOfTheActivations) {
  // By p: what the steps take beside 3 m, and the peaks.
  struct Row {
    int64_t p;
    double half, min, minPeak;
  };
  for (Row row : {Row{4, 2.5, 5.5, 2}, Row{8, 8.5, 13.5, 4}})
    for (int64_t m = 2 * row.p; m <= 4 * row.p; ++m) {
      Figures half = measure(llvm::cantFail(makeVHalf(row.p, m))), min = measure(llvm::cantFail(makeVMin(row.p, m)));
      EXPECT_EQ(half.makespan, 3 * m + row.half);
      EXPECT_EQ(getPeak(half), row.p / 2 + 1);
      EXPECT_EQ(min.makespan, 3 * m + row.min);
      EXPECT_EQ(getPeak(min), row.minPeak);
    }
}

/// DualPipe's idle time is (p/2 - 1)(FB + B - 3W), where a pair takes FB = F + B.
TEST(NamedSchedules, DualPipeWaitsAsItsReportSays) {
  for (int64_t p : {2, 4, 6, 8, 16})
    for (int64_t m : {p, p + 1, 2 * p}) { // of each direction
      Figures figures = measure(llvm::cantFail(makeDualPipe(p, m)), /*fusesPairs=*/true);
      EXPECT_EQ(figures.makespan - 3 * 2 * m, (p / 2 - 1) * (3 + 2 - 3 * 1));
      EXPECT_EQ(getPeak(figures), p + 1);
    }
}

/// The idle shares are (2P - 2)/(3PW + P - 1) of Hanayo's paper with m = P, and (D - 2)/(3N/2 + D - 2) of Chimera's
/// with N = D.
TEST(NamedSchedules, WavesAndDirectionsWaitNoLongerThanTheirPapersSay) {
  for (int64_t p : {2, 4, 8, 16}) {
    for (int64_t waves : {1, 2})
      EXPECT_LE(measure(llvm::cantFail(makeHanayo(p, 2 * waves, p))).idleShare,
                (2.0 * p - 2) / (3 * p * waves + p - 1));
    EXPECT_LE(measure(llvm::cantFail(makeChimera(p, p / 2))).idleShare, (p - 2) / (1.5 * p + p - 2) + 1e-12);
  }
}

/// The computation of a position, such as "F0.1" for the forward of micro-batch 1 of chunk 0; BW is a whole backward.
std::string listComputation(const Schedule &schedule) {
  std::string text;
  for (const Action &action : schedule.actions) {
    const char *word = action.kind == ActionKind::Forward          ? "F"
                       : action.kind == ActionKind::Backward       ? "BW"
                       : action.kind == ActionKind::InputGradient  ? "B"
                       : action.kind == ActionKind::WeightGradient ? "W"
                                                                   : nullptr;
    if (word)
      text += (llvm::Twine(text.empty() ? "" : " ") + word + llvm::Twine(action.chunk) + "." +
               llvm::Twine(action.microBatch))
                  .str();
  }
  return text;
}

std::vector<std::string> listComputation(llvm::Expected<Pipeline> pipeline) {
  std::vector<std::string> texts;
  for (const Schedule &schedule : llvm::cantFail(std::move(pipeline)).positions)
    texts.push_back(listComputation(schedule));
  return texts;
}

TEST(NamedSchedules, SmallOrders) {
  using testing::ElementsAre;
  EXPECT_THAT(listComputation(makeBreadthFirst(2, 2, 2)), ElementsAre("F0.0 F0.1 F2.0 F2.1 BW2.1 BW2.0 BW0.1 BW0.0",
                                                                      "F1.0 F1.1 F3.0 F3.1 BW3.1 BW3.0 BW1.1 BW1.0"));
  // Two activations fill position 0, so that it frees one before each further forward; position 1 catches up with
  // weight gradients where its next forward has not come.
  EXPECT_THAT(listComputation(makeZeroBubble1(2, 4)), ElementsAre("F0.0 F0.1 B0.0 W0.0 F0.2 B0.1 W0.1 F0.3 B0.2 W0.2 "
                                                                  "B0.3 W0.3",
                                                                  "F1.0 B1.0 F1.1 B1.1 W1.0 F1.2 B1.2 W1.1 F1.3 B1.3 "
                                                                  "W1.2 W1.3"));
  // Four have room.
  EXPECT_THAT(listComputation(makeZeroBubble2(2, 4)),
              ElementsAre("F0.0 F0.1 F0.2 B0.0 F0.3 W0.0 B0.1 W0.1 B0.2 W0.2 B0.3 W0.3",
                          "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3 W1.0 W1.1 W1.2 W1.3"));
  // The same with the weight gradients one step late on position 1.
  EXPECT_THAT(
      listComputation(makeInterleavedZeroBubble(2, 1, 3)),
      ElementsAre("F0.0 F0.1 B0.0 W0.0 F0.2 B0.1 W0.1 B0.2 W0.2", "F1.0 B1.0 F1.1 B1.1 W1.0 F1.2 B1.2 W1.1 W1.2"));
  EXPECT_THAT(listComputation(makeZeroBubbleV(2, 3)),
              ElementsAre("F0.0 F0.1 F0.2 F3.0 B3.0 W3.0 F3.1 B3.1 W3.1 B0.0 W0.0 F3.2 B3.2 W3.2 B0.1 W0.1 B0.2 W0.2",
                          "F1.0 F2.0 F1.1 F2.1 B2.0 W2.0 F1.2 B1.0 W1.0 F2.2 B2.1 W2.1 B1.1 B2.2 B1.2 W1.1 W2.2 "
                          "W1.2"));
  EXPECT_THAT(listComputation(makeDualPipeV(1, 2)), ElementsAre("F0.0 F1.0 F0.1 BW1.0 F1.1 BW0.0 BW1.1 B0.1 W0.1"));
  EXPECT_THAT(listComputation(makeDualPipe(2, 2)), ElementsAre("F0.0 F3.0 F0.1 BW3.0 F3.1 BW0.0 BW3.1 B0.1 W0.1",
                                                               "F2.0 F1.0 F2.1 BW1.0 F1.1 BW2.0 BW1.1 B2.1 W2.1"));
  // A V of one position is a pipeline without waits.
  EXPECT_THAT(listComputation(makeVMin(1, 2)), ElementsAre("F0.0 F1.0 B1.0 B0.0 W1.0 W0.0 F0.1 F1.1 B1.1 B0.1 W1.1 "
                                                           "W0.1"));
}

TEST(NamedSchedules, WrongSizesAreRefused) {
  auto refusal = [](llvm::Expected<Pipeline> pipeline) { return pipeline ? "" : llvm::toString(pipeline.takeError()); };
  for (const NamedSchedule &each : getNamedSchedules()) {
    EXPECT_THAT(refusal(each.make(0, each.chunksPerPosition, 1)), testing::HasSubstr("at least one of each is needed"));
    EXPECT_THAT(refusal(each.make(64, each.chunksPerPosition, int64_t(1) << 40)),
                testing::HasSubstr("has too many actions"));
  }
  EXPECT_EQ(refusal(makeDualPipe(3, 9)),
            "DualPipe of 3 positions with 9 micro-batches in each direction; it needs an even number of positions and "
            "at least as many micro-batches in each direction");
  EXPECT_THAT(refusal(makeDualPipe(4, 3)), testing::HasSubstr("DualPipe of 4 positions with 3 micro-batches"));
  EXPECT_EQ(refusal(makeDualPipeV(4, 7)), "DualPipeV of 4 positions with 7 micro-batches; it needs at least 8");
  EXPECT_EQ(refusal(makeHanayo(4, 3, 4)), "waves of 3 chunks per position; each wave has two chunks on every position");
}

TEST(PipelineTiming, HopsAndPeaks) {
  Pipeline pipeline = llvm::cantFail(make1F1B(2, 1, 2));
  PipelineTimes times;
  times.chunks = {{10, 20, 5}, {11, 21, 6}};
  times.hop = 3;
  PipelineTiming timing = llvm::cantFail(timePipeline(pipeline, times));
  // Position 1: forward 13 to 24, backward to 51, forward and backward to 89; then a hop and the last backward.
  EXPECT_EQ(timing.makespan, 89 + 3 + 25);
  EXPECT_THAT(timing.peaks, testing::ElementsAre(2, 1));
  EXPECT_THAT(timing.busy, testing::ElementsAre(70, 76));
  EXPECT_DOUBLE_EQ(timing.getIdleShare(), 1 - 146.0 / (2 * 117));
  auto refusal = [&] { return llvm::toString(timePipeline(pipeline, times).takeError()); };
  times.hop = -1;
  EXPECT_EQ(refusal(), "has a hop of -1; 0 to 1099511627776 are possible");
  times.hop = 0;
  times.chunks[1].forward = kMaxTicks + 1;
  EXPECT_EQ(refusal(), "has a time of chunk 1 that is not from 0 to 1099511627776");
  times.chunks.pop_back();
  EXPECT_EQ(refusal(), "has times of 1 chunks for 2");
  Pipeline stuck = llvm::cantFail(parsePipeline("positions 2\nchunks 0 1\nposition 0: backward forward\n"
                                                "position 1: forward:1 backward:1\n"));
  times.chunks = {{}, {}};
  EXPECT_EQ(llvm::toString(timePipeline(stuck, times).takeError()),
            "position 0 waits for ever at the backward of micro-batch 0 of chunk 0, at action 0");
}

} // namespace
