#include "windlass/Schedule/Generators.h"

#include "llvm/ADT/STLExtras.h"

#include "gtest/gtest.h"

using namespace windlass::schedule;

namespace {

using Actions = std::vector<Action>;

// 1F1B of two positions and three micro-batches, with the numbers of actions:
//   position 0:  0 forward 0     1 send 0        2 forward 1     3 receive 0   4 send 1      5 backward 0
//                6 forward 2     7 receive 1     8 send 2        9 backward 1  10 receive 2  11 backward 2
//                12 reduce       13 update
//   position 1:  0 receive 0     1 forward 0     2 backward 0    3 send 0      4 receive 1   5 forward 1
//                6 backward 1    7 send 1        8 receive 2     9 forward 2   10 backward 2 11 send 2
//                12 reduce       13 update
std::string checkWith(llvm::function_ref<void(Actions &first, Actions &second)> change, int64_t capacity = 0) {
  Pipeline pipeline = llvm::cantFail(make1F1B(2, 1, 3));
  change(pipeline.positions[0].actions, pipeline.positions[1].actions);
  return llvm::toString(checkPipeline(pipeline, capacity));
}

void erase(Actions &actions, size_t index) { actions.erase(actions.begin() + index); }

TEST(CheckPipeline, TheOrderThatIsChanged) {
  EXPECT_EQ(checkWith([](Actions &, Actions &) {}), "");
}

TEST(CheckPipeline, Transfers) {
  EXPECT_EQ(
      checkWith([](Actions &, Actions &second) { erase(second, 4); }),
      "position 1 runs the forward of micro-batch 1 of chunk 1 before it receives the activation from chunk 0, at "
      "action 4");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { erase(first, 3); }),
            "position 0 runs the backward of micro-batch 0 of chunk 0 before it receives the gradient from chunk 1, at "
            "action 4");
  EXPECT_EQ(
      checkWith([](Actions &first, Actions &) { erase(first, 4); }),
      "position 1 receives the activation of micro-batch 1 from chunk 0 to chunk 1, which position 0 never sends, "
      "at action 4");
  // Without its last send and receive the first position has nothing to wait for.
  EXPECT_EQ(checkWith([](Actions &first, Actions &second) {
              erase(second, 8);
              erase(second, 8);
              erase(second, 8);
              erase(second, 8);
              second[5].isLast = second[6].isLast = true;
            }),
            "position 1 runs 2 micro-batches of chunk 1, but position 0 runs 3 of chunk 0");
  EXPECT_EQ(checkWith([](Actions &first, Actions &second) { second.insert(second.begin() + 4, second[3]); }),
            "position 1 sends the gradient of micro-batch 0 from chunk 1 to chunk 0 twice, at action 4");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first.insert(first.begin() + 4, first[3]); }),
            "position 0 receives the gradient of micro-batch 0 from chunk 1 to chunk 0 twice, at action 4");
  // Two activations come in the other order.
  EXPECT_EQ(checkWith([](Actions &first, Actions &) {
              std::swap(first[1], first[4]);
              std::swap(first[1], first[2]);
            }),
            "position 1 receives the activation of micro-batch 0 from chunk 0 to chunk 1, at action 0, when position 0 "
            "sends the activation of micro-batch 1 from chunk 0 to chunk 1, at action 2");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { std::swap(first[3], first[7]); }),
            "position 0 runs the backward of micro-batch 0 of chunk 0 before it receives the gradient from chunk 1, at "
            "action 5");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { std::swap(first[0], first[1]); }),
            "position 0 sends the activation of micro-batch 0 from chunk 0 to chunk 1 before it is computed, at action "
            "0");
  EXPECT_EQ(
      checkWith([](Actions &, Actions &second) { std::swap(second[2], second[3]); }),
      "position 1 sends the gradient of micro-batch 0 from chunk 1 to chunk 0 before it is computed, at action 2");
  EXPECT_EQ(
      checkWith([](Actions &, Actions &second) { std::swap(second[0], second[1]); }),
      "position 1 runs the forward of micro-batch 0 of chunk 1 before it receives the activation from chunk 0, at "
      "action 0");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { std::rotate(&first[0], &first[3], &first[4]); }),
            "position 0 receives the gradient of micro-batch 0 from chunk 1 to chunk 0 before the micro-batch's "
            "forward, at action 0");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) {
              std::rotate(&first[1], &first[2], &first[6]); // sent behind its own backward
            }),
            "position 0 sends the activation of micro-batch 0 from chunk 0 to chunk 1 after its backward has freed the "
            "slot, at action 5");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first[1].peer = 0; }),
            "position 0 sends the activation of micro-batch 0 from chunk 0 to chunk 1 at position 0, but chunk 1 is on "
            "position 1, at action 1");
}

TEST(CheckPipeline, Peers) {
  auto checkThree = [](llvm::function_ref<void(Pipeline &)> change) {
    Pipeline pipeline = llvm::cantFail(make1F1B(3, 1, 1));
    change(pipeline);
    return llvm::toString(checkPipeline(pipeline));
  };
  EXPECT_EQ(checkThree([](Pipeline &) {}), "");
  EXPECT_EQ(checkThree([](Pipeline &pipeline) { pipeline.positions[0].actions[1].peerChunk = 2; }),
            "position 0 sends the activation of micro-batch 0 from chunk 0 to chunk 2, which are no neighbours, at "
            "action 1");
  EXPECT_EQ(checkThree([](Pipeline &pipeline) { pipeline.positions[0].actions[0].chunk = 1; }),
            "position 0 runs forward of chunk 1, which is on position 1, at action 0");
  EXPECT_EQ(checkThree([](Pipeline &pipeline) { pipeline.positions[0].actions[0].chunk = 7; }),
            "position 0 runs forward of chunk 7 of 3, at action 0");
  EXPECT_EQ(checkThree([](Pipeline &pipeline) { pipeline.positions.pop_back(); }), "has 2 schedules for 3 positions");
  EXPECT_EQ(checkThree([](Pipeline &pipeline) { pipeline.positions[2].actions.clear(); }),
            "position 2 does not reduce chunk 2");
  Pipeline alone = llvm::cantFail(make1F1B(1, 2, 1));
  Action send;
  send.kind = ActionKind::Send;
  send.peerChunk = 1;
  send.peer = 0;
  Actions &actions = alone.positions[0].actions;
  actions.insert(actions.begin() + 1, send);
  EXPECT_EQ(
      llvm::toString(checkPipeline(alone)),
      "position 0 sends the activation of micro-batch 0 from chunk 0 to chunk 1, which are both on this position, "
      "at action 1");
  erase(actions, 1);
  std::swap(actions[0], actions[1]);
  EXPECT_EQ(llvm::toString(checkPipeline(alone)),
            "position 0 runs the forward of micro-batch 0 of chunk 1 before that of chunk 0, at action 0");
  std::swap(actions[0], actions[1]);
  std::swap(actions[2], actions[3]);
  EXPECT_EQ(llvm::toString(checkPipeline(alone)),
            "position 0 runs the backward of micro-batch 0 of chunk 0 before that of chunk 1, at action 2");
}

std::string checkText(llvm::StringRef text, int64_t capacity) {
  return llvm::toString(checkPipeline(llvm::cantFail(parsePipeline(text)), capacity));
}

TEST(CheckPipeline, Deadlocks) {
  // Both send before they receive: one message needs room.
  auto bothSend = [](Actions &first, Actions &) { std::swap(first[3], first[4]); };
  EXPECT_EQ(
      checkWith(bothSend),
      "never ends: position 0 waits for position 1 to receive the activation of micro-batch 1 from chunk 0 to "
      "chunk 1, at action 3; position 1 waits for position 0 to receive the gradient of micro-batch 0 from chunk 1 "
      "to chunk 0, at action 3");
  EXPECT_EQ(checkWith(bothSend, 1), "");
  // All forwards first, of which the second position takes one at a time.
  const char *const ahead = "positions 2\nchunks 0 1\n"
                            "position 0: 4x(forward send:0>1) 4x(receive:0>1 backward) reduce update\n"
                            "position 1: 4x(receive:1>0 forward:1 backward:1 send:1>0) reduce:1 update:1";
  EXPECT_EQ(checkText(ahead, 1),
            "never ends with room for 1 messages between two positions: position 0 waits for position 1 to receive the "
            "activation of micro-batch 3 from chunk 0 to chunk 1, at action 7; position 1 waits for position 0 to "
            "receive the gradient of micro-batch 1 from chunk 1 to chunk 0, at action 7");
  EXPECT_EQ(checkText(ahead, 2), "");
  // Each of three begins with what another one sends later; no room helps, and the first position only waits for them.
  const char *const never =
      "positions 4\nchunks 1 2 0 | 2 3 0 | 3 1 0\n"
      "position 0: receive:2>1 forward:2 backward:2 send:2>1 receive:5>4 forward:5 backward:5 send:5>4 receive:8>7 "
      "forward:8 backward:8 send:8>7 reduce:2 reduce:5 reduce:8 update:2 update:5 update:8\n"
      "position 1: receive:7>6 forward:7 send:7>8 receive:7>8 backward:7 send:7>6 forward send:0>1 receive:0>1 "
      "backward "
      "reduce:7 reduce update:7 update\n"
      "position 2: receive:1>0 forward:1 send:1>2 receive:1>2 backward:1 send:1>0 forward:3 send:3>4 receive:3>4 "
      "backward:3 reduce:1 reduce:3 update:1 update:3\n"
      "position 3: receive:4>3 forward:4 send:4>5 receive:4>5 backward:4 send:4>3 forward:6 send:6>7 receive:6>7 "
      "backward:6 reduce:4 reduce:6 update:4 update:6\n";
  for (int64_t capacity : {0, 9})
    EXPECT_EQ(
        checkText(never, capacity),
        (capacity ? std::string("never ends with room for 9 messages between two positions") : "never ends") +
            ": position 2 waits for position 1 to send the activation of micro-batch 0 from chunk 0 to chunk 1, at "
            "action 0; position 1 waits for position 3 to send the activation of micro-batch 0 from chunk 6 to "
            "chunk 7, at action 0; position 3 waits for position 2 to send the activation of micro-batch 0 from "
            "chunk 3 to chunk 4, at action 0");
}

TEST(CheckPipeline, Slots) {
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first[2].slot = 0; }),
            "position 0 runs the forward of micro-batch 1 of chunk 0 in slot 0, which micro-batch 0 needs until its "
            "backward, at action 2");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first[5].slot = 1; }),
            "position 0 runs the backward of micro-batch 0 of chunk 0 in slot 1, but its micro-batch is in slot 0, at "
            "action 5");
  EXPECT_EQ(checkWith([](Actions &, Actions &second) { second[1].slot = 1; }),
            "position 1 runs the forward of micro-batch 0 of chunk 1 in slot 1, but its micro-batch is in slot 0, at "
            "action 1");
  EXPECT_EQ(
      checkWith([](Actions &first, Actions &) { first[1].slot = 1; }),
      "position 0 sends the activation of micro-batch 0 from chunk 0 to chunk 1 in slot 1, but its micro-batch is "
      "in slot 0, at action 1");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first[3].slot = 1; }),
            "position 0 receives the gradient of micro-batch 0 from chunk 1 to chunk 0 in slot 1, but its micro-batch "
            "is in slot 0, at action 3");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first[0].slot = -1; }),
            "position 0 runs the forward of micro-batch 0 of chunk 0 in slot -1, but slots count from 0, at action 0");
  // The next activation comes before the gradient has gone from the slot.
  EXPECT_EQ(
      checkWith([](Actions &, Actions &second) { std::swap(second[3], second[4]); }),
      "position 1 receives the activation of micro-batch 1 from chunk 0 to chunk 1 in slot 0, which micro-batch 0 "
      "needs until its gradient is sent, at action 3");
}

TEST(CheckPipeline, Computation) {
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first[2].microBatch = 0; }),
            "position 0 runs the forward of micro-batch 0 of chunk 0 twice, at action 2");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first[6].microBatch = 3; }),
            "position 0 runs the forward of micro-batch 3 of chunk 0, but the chunk's number of micro-batches is 3, at "
            "action 6");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first[0].isFirst = false; }),
            "position 0 marks the forward of micro-batch 0 of chunk 0 wrongly as the first or last of its kind or as "
            "none, at action 0");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first[5].isLast = true; }),
            "position 0 marks the backward of micro-batch 0 of chunk 0 wrongly as the first or last of its kind or as "
            "none, at action 5");
  EXPECT_EQ(checkWith([](Actions &, Actions &second) { std::swap(second[1], second[2]); }),
            "position 1 runs the backward of micro-batch 0 of chunk 1 before its forward, at action 1");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first[9].microBatch = 0; }),
            "position 0 runs the backward of micro-batch 0 of chunk 0 twice, at action 9");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { std::swap(first[11], first[12]); }),
            "position 0 reduces chunk 0 before the backward of micro-batch 2, at action 11");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { std::swap(first[12], first[13]); }),
            "position 0 updates chunk 0 before chunk 0 is reduced, at action 12");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { erase(first, 13); }), "position 0 does not update chunk 0");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first.pop_back(), first.pop_back(); }),
            "position 0 does not reduce chunk 0");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first.push_back(first[12]); }),
            "position 0 reduces chunk 0 twice, at action 14");
  EXPECT_EQ(checkWith([](Actions &first, Actions &) { first.push_back(first[13]); }),
            "position 0 updates chunk 0 twice, at action 14");
}

/// A step of one position with `chunks` chunks.
Pipeline makeAlone(llvm::StringRef table, int64_t chunks = 1) {
  ActionTable parsed = llvm::cantFail(parseTable(table));
  return llvm::cantFail(expandPipeline(makeBlockedPlacement(1, chunks), parsed));
}

std::string checkAlone(llvm::StringRef table, int64_t chunks = 1) {
  return llvm::toString(checkPipeline(makeAlone(table, chunks)));
}

TEST(CheckPipeline, LegalOrdersOfOnePosition) {
  for (const char *text :
       {"forward backward reduce update", "3x(forward backward) reduce update",
        "forward 3x(forward backward) backward reduce update", "4x(forward) 4x(backward) reduce update",
        "2x(forward) 2x(backward forward) 2x(backward) reduce update",
        // Micro-batches may end in another order than they began.
        "2x(forward) backward@1 backward@0 reduce update"})
    EXPECT_EQ(checkAlone(text), "") << text;
  EXPECT_EQ(checkAlone("2x(forward forward:1) backward:1 backward forward forward:1 2x(backward:1 backward) reduce:1 "
                       "reduce update update:1",
                       2),
            "");
}

TEST(CheckPipeline, IllegalOrdersOfOnePosition) {
  EXPECT_EQ(checkAlone(""), "position 0 does not reduce chunk 0");
  EXPECT_EQ(
      checkAlone("backward reduce update"),
      "position 0 runs the backward of micro-batch 0 of chunk 0, but the chunk's number of micro-batches is 0, at "
      "action 0");
  EXPECT_EQ(checkAlone("backward forward reduce update"),
            "position 0 runs the backward of micro-batch 0 of chunk 0 before its forward, at action 0");
  EXPECT_EQ(checkAlone("2x(forward) backward reduce update"),
            "position 0 reduces chunk 0 before the backward of micro-batch 1, at action 3");
  EXPECT_EQ(checkAlone("2x(forward backward reduce) update"),
            "position 0 reduces chunk 0 before the backward of micro-batch 1, at action 2");
  EXPECT_EQ(checkAlone("forward forward:1 backward:1 reduce:1 update:1 backward reduce update", 2),
            "position 0 updates chunk 1 before chunk 0 is reduced, at action 4");
  EXPECT_EQ(checkAlone("forward forward:1 backward:1 backward forward backward@0 reduce reduce:1 update update:1", 2),
            "position 0 runs the backward of micro-batch 0 of chunk 0 twice, at action 5");
  EXPECT_EQ(checkAlone("forward forward:1 backward:1 backward reduce:1 update:1", 2),
            "position 0 updates chunk 1 before chunk 0 is reduced, at action 5");
  Pipeline negative = makeAlone("forward backward reduce update");
  negative.positions[0].actions[0].microBatch = -1;
  EXPECT_EQ(
      llvm::toString(checkPipeline(negative)),
      "position 0 runs the forward of micro-batch -1 of chunk 0, but the chunk's number of micro-batches is 1, at "
      "action 0");
  Pipeline late = makeAlone("forward backward reduce backward@0 update");
  EXPECT_EQ(llvm::toString(checkPipeline(late)),
            "position 0 runs the backward of micro-batch 0 of chunk 0 after the chunk's reduction, at action 3");
}

TEST(CheckPipeline, SplitBackwards) {
  EXPECT_EQ(checkAlone("forward input_gradient weight_gradient reduce update"), "");
  // The second micro-batch has its backward in one.
  EXPECT_EQ(checkAlone("2x(forward) input_gradient backward@1 weight_gradient reduce update"), "");
  EXPECT_EQ(checkAlone("forward weight_gradient input_gradient reduce update"),
            "position 0 runs the weight gradient of micro-batch 0 of chunk 0 before its input gradient, at action 1");
  EXPECT_EQ(checkAlone("forward input_gradient backward reduce update"),
            "position 0 runs the backward of micro-batch 0 of chunk 0, whose input gradient has run, at action 2");
  EXPECT_EQ(checkAlone("forward backward weight_gradient reduce update"),
            "position 0 runs the weight gradient of micro-batch 0 of chunk 0 twice, at action 2");
  EXPECT_EQ(checkAlone("forward input_gradient reduce weight_gradient update"),
            "position 0 reduces chunk 0 before the backward of micro-batch 0, at action 2");
  EXPECT_EQ(checkAlone("forward backward reduce input_gradient update"),
            "position 0 runs the input gradient of micro-batch 0 of chunk 0 after the chunk's reduction, at action 3");
  EXPECT_EQ(
      checkText("positions 1\nchunks 0 | 0\nposition 0: 2x(forward backward) forward:1 backward:1 reduce reduce:1 "
                "update update:1",
                0),
      ""); // each chain has its own micro-batches
  EXPECT_EQ(checkAlone("reduce update"), "position 0 runs no micro-batch of chunk 0");
}

} // namespace
