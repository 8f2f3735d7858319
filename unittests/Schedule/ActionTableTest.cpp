#include "windlass/Schedule/ActionTable.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <limits>
#include <random>

using namespace windlass::schedule;

namespace {

constexpr std::optional<ActionKind> kRepeat = std::nullopt;
const TableRow kForward = {ActionKind::Forward}, kBackward = {ActionKind::Backward}, kReduce = {ActionKind::Reduce},
               kUpdate = {ActionKind::Update};

std::string print(llvm::Expected<ActionTable> table) {
  return table ? printTable(*table) : llvm::toString(table.takeError());
}

std::string printRows(llvm::ArrayRef<TableRow> rows) { return print(readRows(rows)); }

TEST(ActionTable, RowsAreRead) {
  EXPECT_EQ(printRows({}), "");
  EXPECT_EQ(printRows({kForward, kBackward, kReduce, kUpdate}), "forward backward reduce update");
  EXPECT_EQ(printRows({{kRepeat, 0, 3, 2}, kForward, {ActionKind::Backward, 2}, kUpdate}),
            "3x(forward backward:2) update");
  // The rows of a repeat count in the length of that around it.
  EXPECT_EQ(printRows({{kRepeat, 0, 2, 4}, {kRepeat, 0, 5, 2}, kForward, kBackward, kReduce, kUpdate}),
            "2x(5x(forward backward) reduce) update");
  EXPECT_EQ(printRows({{ActionKind::Send, 1, 1, 0, 2},
                       {ActionKind::Receive, 0, 1, 0, 1, 7},
                       {ActionKind::InputGradient, 0, 1, 0, -1, 5},
                       {ActionKind::WeightGradient}}),
            "send:1>2 receive:0>1@7 input_gradient@5 weight_gradient");
}

TEST(ActionTable, WrongRowsAreRefused) {
  EXPECT_EQ(printRows({{kRepeat, 0, 2, 3}, kForward, kBackward}), "repeats 3 actions 2 times, but only 2 follow");
  EXPECT_EQ(printRows({{kRepeat, 0, 2, std::numeric_limits<int64_t>::max()}, kForward}),
            "repeats 9223372036854775807 actions 2 times, but only 1 follow");
  EXPECT_EQ(printRows({{kRepeat, 0, 2, 2}, {kRepeat, 0, 2, 2}, kForward, kBackward}),
            "repeats 2 actions 2 times, but only 1 follow");
  EXPECT_EQ(printRows({{kRepeat, 0, 0, 1}, kForward}), "repeats 1 actions 0 times, but both must be at least 1");
  EXPECT_EQ(printRows({{kRepeat, 0, 2, 0}, kForward}), "repeats 0 actions 2 times, but both must be at least 1");
  EXPECT_EQ(printRows({{kRepeat, 1, 2, 1}, kForward}), "repeats chunk 1, but only an action has a chunk");
  EXPECT_EQ(printRows({{ActionKind::Forward, 0, 3, 0}}),
            "gives forward a count of 3 and a length of 0, which only a repeat has");
  EXPECT_EQ(printRows({{ActionKind::Forward, 0, 1, 1}, kBackward}),
            "gives forward a count of 1 and a length of 1, which only a repeat has");
  EXPECT_EQ(printRows({{ActionKind::Update, -1}}), "runs chunk -1, but chunks count from 0");
  EXPECT_EQ(printRows({{ActionKind::Send, 0}}),
            "gives send the peer chunk -1; a send or receive has one, and nothing else");
  EXPECT_EQ(printRows({{ActionKind::Forward, 0, 1, 0, 1}}),
            "gives forward the peer chunk 1; a send or receive has one, and nothing else");
  EXPECT_EQ(printRows({{ActionKind::Forward, 0, 1, 0, -1, kMaxMicroBatches}}),
            "gives forward the micro-batch 1048576 of at most 1048576");
  EXPECT_EQ(printRows({{ActionKind::Forward, 0, 1, 0, -1, -2}}), "gives forward the micro-batch -2 of at most 1048576");
  EXPECT_EQ(printRows({{kRepeat, 0, 2, 1, 3}, kForward}),
            "repeats 1 actions 2 times, but only an action has a peer chunk or a micro-batch");
  EXPECT_EQ(printRows({{kRepeat, 0, 2, 1, -1, 3}, kForward}),
            "repeats 1 actions 2 times, but only an action has a peer chunk or a micro-batch");
}

TEST(ActionTable, NestingIsBounded) {
  std::vector<TableRow> rows = {kForward};
  for (int depth = 1; depth <= kMaxNesting; ++depth)
    rows.insert(rows.begin(), {kRepeat, 0, 2, depth});
  llvm::Expected<ActionTable> table = readRows(rows);
  ASSERT_TRUE(static_cast<bool>(table));
  EXPECT_EQ(writeRows(*table), rows);
  EXPECT_EQ(print(parseTable(printTable(*table))), printTable(*table));
  rows.insert(rows.begin(), {kRepeat, 0, 2, kMaxNesting + 1});
  EXPECT_EQ(printRows(rows), "nests repeats more than 8 deep");
  EXPECT_EQ(print(parseTable("1x(" + printTable(*table) + ")")),
            "expected repeats at most 8 deep at character 28 of the schedule '1x(" + printTable(*table) + ")'");
}

TEST(ActionTable, WrongTextsAreRefused) {
  EXPECT_EQ(print(parseTable("")), "");
  EXPECT_EQ(print(parseTable(" 2x( forward backward:1 )  reduce ")), "2x(forward backward:1) reduce");
  EXPECT_EQ(print(parseTable("forward back")),
            "expected an action or a repeat at character 9 of the schedule 'forward back'");
  EXPECT_EQ(print(parseTable("forward)")), "expected an action or a repeat at character 8 of the schedule 'forward)'");
  EXPECT_EQ(print(parseTable("2x()")), "expected an action or a repeat at character 4 of the schedule '2x()'");
  EXPECT_EQ(print(parseTable("2x(forward")), "expected ')' at character 11 of the schedule '2x(forward'");
  EXPECT_EQ(print(parseTable("2(forward)")),
            "expected 'x(' behind a count at character 2 of the schedule '2(forward)'");
  EXPECT_EQ(print(parseTable("0x(forward)")),
            "expected a count of at least 1 at character 1 of the schedule '0x(forward)'");
  EXPECT_EQ(print(parseTable("99999999999999999999x(forward)")),
            "expected a count of at least 1 at character 1 of the schedule '99999999999999999999x(forward)'");
  EXPECT_EQ(print(parseTable("forward:-1")),
            "expected the number of a chunk at character 9 of the schedule 'forward:-1'");
  EXPECT_EQ(print(parseTable("send:1")),
            "expected '>' and the number of the chunk at the other end at character 7 of the schedule 'send:1'");
  EXPECT_EQ(print(parseTable("forward>1")),
            "expected an action or a repeat at character 8 of the schedule 'forward>1'");
  EXPECT_EQ(print(parseTable("forward@99999999999999999999")),
            "expected the number of a micro-batch below 1048576 at character 9 of the schedule "
            "'forward@99999999999999999999'");
}

TEST(ActionTable, SequentialSteps) {
  EXPECT_EQ(printTable(makeSequentialStep(1)), "forward backward reduce update");
  EXPECT_EQ(printTable(makeSequentialStep(2)), "2x(forward backward) reduce update");
  EXPECT_EQ(printTable(makeSequentialStep(1000000000000)), "1000000000000x(forward backward) reduce update");
}

ActionTable makeRandomTable(std::mt19937 &random, int depth) {
  auto below = [&](unsigned limit) { return static_cast<int64_t>(random() % limit); };
  ActionTable table(1 + below(4));
  for (TableItem &item : table) {
    if (depth < kMaxNesting && below(3) == 0) {
      item.count = 1 + below(3);
      item.body = makeRandomTable(random, depth + 1);
    } else {
      item.kind = kActionKinds[below(std::size(kActionKinds))];
      item.chunk = below(3);
      item.peerChunk = isTransfer(item.kind) ? below(3) : -1;
      item.microBatch = below(3) - 1;
    }
  }
  return table;
}

TEST(ActionTable, RowsAndTextSayTheSame) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    ActionTable table = makeRandomTable(random, 0);
    llvm::Expected<ActionTable> fromRows = readRows(writeRows(table)), fromText = parseTable(printTable(table));
    ASSERT_TRUE(static_cast<bool>(fromRows));
    ASSERT_TRUE(static_cast<bool>(fromText));
    EXPECT_TRUE(*fromRows == table) << printTable(table);
    EXPECT_TRUE(*fromText == table) << printTable(table);
  }
}

} // namespace
