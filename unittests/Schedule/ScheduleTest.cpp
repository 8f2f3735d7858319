#include "windlass/Schedule/Schedule.h"

#include "llvm/Support/raw_ostream.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::schedule;

namespace {

Schedule make(llvm::StringRef text) { return llvm::cantFail(expand(llvm::cantFail(parseTable(text)))); }

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

std::string check(const Schedule &schedule) { return llvm::toString(checkOrder(schedule)); }
std::string check(llvm::StringRef text) { return check(make(text)); }

TEST(Schedule, MicroBatchesAreNumbered) {
  EXPECT_THAT(list(make("2x(forward backward) forward backward reduce update")),
              testing::ElementsAre("forward 0 in 0 first", "backward 0 in 0 first", "forward 1 in 0", "backward 1 in 0",
                                   "forward 2 in 0 last", "backward 2 in 0 last", "reduce 2 in 0 first last",
                                   "update 0 in 0 first last"));
  EXPECT_THAT(list(make("forward backward reduce update")),
              testing::ElementsAre("forward 0 in 0 first last", "backward 0 in 0 first last",
                                   "reduce 0 in 0 first last", "update 0 in 0 first last"));
  EXPECT_THAT(list(make("2x(forward:1 2x(forward))")),
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
  EXPECT_EQ(schedule.getSlots(), 2);
  EXPECT_EQ(check(schedule), "");
}

TEST(Schedule, TooManyActionsAreRefused) {
  EXPECT_EQ(make("2097151x(forward backward) reduce update").actions.size(), kMaxActions);
  for (const char *text : {"2097151x(forward backward) reduce 2x(update)", "9000000000000000000x(forward backward)",
                           "9000000000000000000x(9000000000000000000x(forward))"}) {
    llvm::Expected<Schedule> schedule = expand(llvm::cantFail(parseTable(text)));
    ASSERT_FALSE(static_cast<bool>(schedule));
    EXPECT_EQ(llvm::toString(schedule.takeError()), "has more than 4194304 actions");
  }
}

TEST(Schedule, PipelinesAreNotOfOnePosition) {
  for (const char *text : {"forward input_gradient", "2x(send:0>1)", "forward@3 backward"}) {
    llvm::Expected<Schedule> schedule = expand(llvm::cantFail(parseTable(text)));
    ASSERT_FALSE(static_cast<bool>(schedule));
    EXPECT_EQ(llvm::toString(schedule.takeError()), "has actions of a pipeline");
  }
  Schedule schedule = make("forward backward reduce update");
  schedule.actions[1].kind = ActionKind::InputGradient;
  EXPECT_EQ(check(schedule), "runs input_gradient, which only a pipeline does, at action 1");
}

TEST(Schedule, CompressesRuns) {
  for (const char *text :
       {"", "forward backward reduce update", "2x(forward backward) reduce update", "forward forward", "3x(forward)",
        "500x(forward:1 forward:2 backward)", "forward 4x(forward backward) backward reduce update"})
    EXPECT_EQ(printTable(compress(make(text))), text);
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

TEST(CheckOrder, LegalOrders) {
  for (const char *text :
       {"forward backward reduce update", "3x(forward backward) reduce update",
        "forward 3x(forward backward) backward reduce update", "4x(forward) 4x(backward) reduce update",
        // Interleaved 1F1B of two chunks; their numbers are those of the model's chunks.
        "forward:1 forward:5 2x(forward:1 backward:5 forward:5 backward:1) backward:5 backward:1 reduce:5 reduce:1 "
        "update:1 update:5"})
    EXPECT_EQ(check(text), "") << text;
}

TEST(CheckOrder, IllegalOrders) {
  EXPECT_EQ(check(""), "has no actions");
  EXPECT_EQ(check("backward reduce update"),
            "runs the backward of micro-batch 0 of chunk 0, but the chunk's number of micro-batches is 0, at action 0");
  EXPECT_EQ(check("reduce update"), "runs no micro-batch of chunk 0");
  EXPECT_EQ(check("backward forward reduce update"),
            "runs the backward of micro-batch 0 of chunk 0 before its forward, at action 0");
  EXPECT_EQ(check("forward backward backward reduce update"),
            "runs the backward of micro-batch 1 of chunk 0, but the chunk's number of micro-batches is 1, at action 2");
  EXPECT_EQ(check("2x(forward) backward reduce update"),
            "reduces chunk 0 before the backward of micro-batch 1, at action 3");
  EXPECT_EQ(check("forward reduce backward update"),
            "reduces chunk 0 before the backward of micro-batch 0, at action 1");
  EXPECT_EQ(check("2x(forward backward reduce) update"),
            "reduces chunk 0 before the backward of micro-batch 1, at action 2");
  EXPECT_EQ(check("forward backward 2x(reduce) update"), "reduces chunk 0 twice, at action 3");
  EXPECT_EQ(check("forward backward update"), "updates chunk 0 before chunk 0 is reduced, at action 2");
  EXPECT_EQ(check("forward forward:1 backward:1 reduce:1 update:1 backward reduce update"),
            "updates chunk 1 before chunk 0 is reduced, at action 4");
  EXPECT_EQ(check("forward backward reduce 2x(update)"), "updates chunk 0 twice, at action 4");
  EXPECT_EQ(check("forward backward reduce"), "does not update chunk 0");
  EXPECT_EQ(check("forward backward"), "does not reduce chunk 0");
  EXPECT_EQ(check("forward forward:1 backward:1 backward forward backward reduce reduce:1 update update:1"),
            "runs 2 micro-batches of chunk 0 but 1 of chunk 1");
}

/// What no table says, as numbers and slots follow from it.
TEST(CheckOrder, IllegalNumbersAndSlots) {
  const Schedule legal = make("2x(forward) 2x(backward forward) 2x(backward) reduce update");
  auto checkWith = [&](auto change) {
    Schedule schedule = legal;
    change(schedule.actions);
    return check(schedule);
  };
  using Actions = std::vector<Action>;
  EXPECT_EQ(checkWith([](Actions &actions) {}), "");
  EXPECT_EQ(checkWith([](Actions &actions) { actions[1].slot = 0; }),
            "runs the forward of micro-batch 1 of chunk 0 in slot 0, which micro-batch 0 needs until its backward, at "
            "action 1");
  EXPECT_EQ(checkWith([](Actions &actions) { actions[0].slot = -1; }),
            "runs the forward of micro-batch 0 of chunk 0 in slot -1, but slots count from 0, at action 0");
  EXPECT_EQ(checkWith([](Actions &actions) { actions[2].slot = 1; }),
            "runs the backward of micro-batch 0 of chunk 0 in slot 1, but its forward filled slot 0, at action 2");
  EXPECT_EQ(checkWith([](Actions &actions) { actions[3].microBatch = 1; }),
            "runs the forward of micro-batch 1 of chunk 0 twice, at action 3");
  EXPECT_EQ(checkWith([](Actions &actions) { actions[4] = actions[2], actions[4].isFirst = false; }),
            "runs the backward of micro-batch 0 of chunk 0 twice, at action 4");
  EXPECT_EQ(checkWith([](Actions &actions) { actions[5].microBatch = 4; }),
            "runs the forward of micro-batch 4 of chunk 0, but the chunk's number of micro-batches is 4, at action 5");
  EXPECT_EQ(checkWith([](Actions &actions) { actions[0].microBatch = -1; }),
            "runs the forward of micro-batch -1 of chunk 0, but the chunk's number of micro-batches is 4, at action 0");
  EXPECT_EQ(checkWith([](Actions &actions) { actions[2].isFirst = false; }),
            "marks the backward of micro-batch 0 of chunk 0 wrongly as the first or last of its kind or as none, at "
            "action 2");
  EXPECT_EQ(checkWith([](Actions &actions) { actions[6].isLast = true; }),
            "marks the backward of micro-batch 2 of chunk 0 wrongly as the first or last of its kind or as none, at "
            "action 6");
  // Micro-batches may end in another order than they began.
  EXPECT_EQ(checkWith([](Actions &actions) {
              std::swap(actions[6].microBatch, actions[7].microBatch);
              std::swap(actions[6].slot, actions[7].slot);
            }),
            "");
}

TEST(CheckOrder, NothingRunsAfterTheReduction) {
  Schedule schedule = make("2x(forward backward) reduce update");
  std::swap(schedule.actions[3], schedule.actions[4]);
  EXPECT_EQ(check(schedule), "reduces chunk 0 before the backward of micro-batch 1, at action 3");
  schedule = make("forward backward reduce update");
  schedule.actions.insert(schedule.actions.begin() + 3, schedule.actions[1]);
  schedule.actions[1].isLast = schedule.actions[3].isFirst = false;
  EXPECT_EQ(check(schedule), "runs the backward of micro-batch 0 of chunk 0 after the chunk's reduction, at action 3");
}

} // namespace
