#include "windlass/Schedule/Pipeline.h"

#include "llvm/Support/raw_ostream.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::schedule;

namespace {

/// The step of a position with `chunks` chunks.
Schedule make(llvm::StringRef text, int64_t chunks = 1) {
  ActionTable table = llvm::cantFail(parseTable(text));
  return llvm::cantFail(expandPipeline(makeBlockedPlacement(1, chunks), table)).positions.front();
}

/// Such as `forward 0 in 0 first`, by action; the chunk where it is not 0.
std::vector<std::string> list(const Schedule &schedule) {
  std::vector<std::string> texts;
  for (const Action &action : schedule.actions) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << getName(action.kind);
    if (action.chunk)
      stream << ":" << action.chunk;
    stream << " " << action.microBatch << " in " << action.slot << (action.isFirst ? " first" : "")
           << (action.isLast ? " last" : "");
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(Schedule, MicroBatchesAreNumbered) {
  EXPECT_THAT(list(make("2x(forward backward) forward backward reduce update")),
              testing::ElementsAre("forward 0 in 0 first", "backward 0 in 0 first", "forward 1 in 0", "backward 1 in 0",
                                   "forward 2 in 0 last", "backward 2 in 0 last", "reduce 2 in 0 first last",
                                   "update 0 in 0 first last"));
  EXPECT_THAT(list(make("forward backward reduce update")),
              testing::ElementsAre("forward 0 in 0 first last", "backward 0 in 0 first last",
                                   "reduce 0 in 0 first last", "update 0 in 0 first last"));
  EXPECT_THAT(list(make("2x(forward:1 2x(forward))", 2)),
              testing::ElementsAre("forward:1 0 in 0 first", "forward 0 in 0 first", "forward 1 in 1",
                                   "forward:1 1 in 1 last", "forward 2 in 2", "forward 3 in 3 last"));
}

/// The second of three positions: two micro-batches are in flight.
TEST(Schedule, SlotsAreTakenAgain) {
  Schedule schedule = make("2x(forward) 2x(backward forward) 2x(backward) reduce update");
  EXPECT_THAT(list(schedule),
              testing::ElementsAre("forward 0 in 0 first", "forward 1 in 1", "backward 0 in 0 first", "forward 2 in 0",
                                   "backward 1 in 1", "forward 3 in 1 last", "backward 2 in 0", "backward 3 in 1 last",
                                   "reduce 3 in 0 first last", "update 0 in 0 first last"));
  EXPECT_EQ(schedule.getSlots(0), 2);
}

/// A reduction is of the last micro-batch whose backward it covers, however that is run.
TEST(Schedule, ReductionsNameTheirLastBackward) {
  EXPECT_EQ(make("2x(forward) backward@1 backward@0 reduce").actions.back().microBatch, 0);
  EXPECT_EQ(make("2x(forward input_gradient) 2x(weight_gradient) reduce").actions.back().microBatch, 1);
  EXPECT_EQ(make("3x(forward backward) forward:1 backward:1 reduce:1", 2).actions.back().microBatch, 0);
}

TEST(Schedule, TooManyActionsAreRefused) {
  EXPECT_EQ(make("2097151x(forward backward) reduce update").actions.size(), kMaxActions);
  for (const char *text : {"2097151x(forward backward) reduce 2x(update)", "9000000000000000000x(forward backward)",
                           "9000000000000000000x(9000000000000000000x(forward))"}) {
    llvm::Expected<Pipeline> pipeline = expandPipeline({}, llvm::cantFail(parseTable(text)));
    ASSERT_FALSE(static_cast<bool>(pipeline));
    EXPECT_EQ(llvm::toString(pipeline.takeError()), "position 0: has more than 4194304 actions");
  }
}

TEST(Schedule, CompressesRuns) {
  for (const char *text :
       {"", "forward backward reduce update", "2x(forward backward) reduce update", "forward forward", "3x(forward)",
        "500x(forward:1 forward:2 backward)", "forward 4x(forward backward) backward reduce update"})
    EXPECT_EQ(printTable(compress(make(text, 3))), text);
  EXPECT_EQ(printTable(compress(make("2x(forward backward) reduce update"))), "2x(forward backward) reduce update");
  EXPECT_EQ(printTable(compress(make("100000x(forward backward) forward backward reduce"))),
            "100001x(forward backward) reduce");
}

/// Such as `backward 0 in 0 first`, by row; `2 of 3:` is a repeat, `+2` how far a micro-batch moves in each turn.
std::vector<std::string> listRows(const Schedule &schedule) {
  std::vector<std::string> texts;
  for (const StepRow &row : makeRows(schedule)) {
    if (row.isRepeat())
      texts.push_back(std::to_string(row.count) + " of " + std::to_string(row.length) + ":");
    else
      texts.push_back(list({{row.action}}).front() + (row.perTurn ? " +" + std::to_string(row.perTurn) : ""));
  }
  return texts;
}

/// Every row says all that the actions that it stands for have in common; the first and the last ones stand alone.
TEST(Schedule, RowsSayAllOfTheirActions) {
  EXPECT_THAT(listRows(make("forward backward reduce update")),
              testing::ElementsAre("forward 0 in 0 first last", "backward 0 in 0 first last",
                                   "reduce 0 in 0 first last", "update 0 in 0 first last"));
  EXPECT_THAT(listRows(make("1000x(forward backward) reduce update")),
              testing::ElementsAre("forward 0 in 0 first", "backward 0 in 0 first", "998 of 2:", "forward 1 in 0 +1",
                                   "backward 1 in 0 +1", "forward 999 in 0 last", "backward 999 in 0 last",
                                   "reduce 999 in 0 first last", "update 0 in 0 first last"));
  // Two slots in turn: micro-batches move by two.
  EXPECT_THAT(listRows(make("2x(forward) 20x(backward forward) 2x(backward) reduce update")),
              testing::ElementsAre("forward 0 in 0 first", "forward 1 in 1", "backward 0 in 0 first", "9 of 4:",
                                   "forward 2 in 0 +2", "backward 1 in 1 +2", "forward 3 in 1 +2", "backward 2 in 0 +2",
                                   "forward 20 in 0", "backward 19 in 1", "forward 21 in 1 last", "backward 20 in 0",
                                   "backward 21 in 1 last", "reduce 21 in 0 first last", "update 0 in 0 first last"));
  // Micro-batches that do not move evenly are no repeat.
  Schedule uneven = make("5x(forward)");
  uneven.actions[3].microBatch = 7;
  for (size_t i = 0; i < uneven.actions.size(); ++i)
    uneven.actions[i].slot = 0;
  EXPECT_THAT(listRows(uneven), testing::ElementsAre("forward 0 in 0 first", "forward 1 in 0", "forward 2 in 0",
                                                     "forward 7 in 0", "forward 4 in 0 last"));
}

} // namespace
