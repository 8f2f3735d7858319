// A model in two positions against the same in one: losses, parameters, gradients, checkpoints; tables that do not fit.
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/json.h"

#include "check_job.h"
#include "temporary_folder.h"
#include "test_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::HasSubstr;

namespace {

class Positions : public testing::Test {
protected:
  Positions() {
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += "a stitch in time saves nine; ";
    data = folder.write("text.txt", text);
  }

  run_result train(int positions, int groups, const std::string &name, std::vector<std::string> more) {
    std::vector<std::string> all = {"--data", data, "--bytes",     "--init",      "random", "--lr",
                                    "0.01",   "-o", folder / name, "--clip-norm", "0.5"};
    all.insert(all.end(), more.begin(), more.end());
    return run(pipeline_job(positions, groups), all);
  }

  /// A column of the metrics.
  std::vector<double> column(const std::string &name, const char *key) {
    std::vector<double> out;
    std::istringstream text(read_all(folder / (name + "/metrics.jsonl")));
    for (std::string line; std::getline(text, line);) {
      json row;
      EXPECT_TRUE(parse_json(line, row).is_ok()) << line;
      if (const json *value = row.find(key))
        out.push_back(value->kind == json::type::number ? value->number : NAN);
    }
    return out;
  }

  /// All values of a checkpoint, whatever ranks wrote them.
  std::string values(const std::string &name, const std::string &step) {
    const std::string merged = folder / (name + ".safetensors");
    const status done = export_checkpoint(folder / (name + "/checkpoints/" + step), merged, exported::all);
    EXPECT_TRUE(done.is_ok()) << done.message();
    return read_all(merged);
  }

  temporary_folder folder;
  std::string data;
};

} // namespace

TEST_F(Positions, TwoTrainAsOneDoes) {
  for (const int groups : {1, 2}) {
    const std::string one = "one" + std::to_string(groups), two = "two" + std::to_string(groups);
    for (const auto &[positions, name] : {std::pair(1, one), std::pair(2, two)}) {
      const run_result result = train(positions, groups, name,
                                      {"--steps", "6", "--eval-data", data, "--eval-every", "3", "--dump-gradients",
                                       folder / (name + ".gradients"), "--progress", "off"});
      ASSERT_EQ(result.code, 0) << result.err;
      EXPECT_EQ(result.err, "");
    }
    EXPECT_EQ(column(one, "loss").size(), 6u);
    for (const char *key : {"loss", "grad_norm", "eval_loss"})
      EXPECT_EQ(column(one, key), column(two, key)) << key;
    EXPECT_LT(column(two, "loss")[5], column(two, "loss")[0]);
    // As truth values: a difference would be printed in full.
    EXPECT_TRUE(read_all(folder / (one + ".gradients")) == read_all(folder / (two + ".gradients")));
    EXPECT_TRUE(values(one, "step-000006") == values(two, "step-000006"));
    json record;
    ASSERT_TRUE(parse_json(read_all(folder / (two + "/run.json")), record).is_ok());
    EXPECT_EQ(record.find("ranks")->integer, 2 * groups);
    EXPECT_EQ(record.find("positions")->items[1].find("first_rank")->integer, groups);
  }
}

TEST_F(Positions, ACheckpointOfOneIsReadByTheOther) {
  ASSERT_EQ(train(1, 1, "whole", {"--steps", "6"}).code, 0);
  for (const int first : {1, 2}) {
    const std::string name = "parts" + std::to_string(first);
    ASSERT_EQ(train(first, 1, name, {"--steps", "3"}).code, 0);
    const run_result result = train(3 - first, 1, name, {"--steps", "6", "--resume"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(values("whole", "step-000006") == values(name, "step-000006"));
  }
}

TEST_F(Positions, AllSkipWhatOneFindsNotFinite) {
  for (const int positions : {1, 2}) {
    const std::string name = "r" + std::to_string(positions);
    const run_result result = train(positions, 1, name, {"--steps", "4", "--lr", "1e38", "--on-nan", "skip", "--json"});
    ASSERT_EQ(result.code, 0) << result.err;
    json summary;
    ASSERT_TRUE(parse_json(result.out, summary).is_ok()) << result.out;
    EXPECT_EQ(summary.find("skipped_updates")->integer, 3);
    const run_result stopped = train(positions, 1, "stopped" + name, {"--steps", "4", "--lr", "1e38"});
    EXPECT_EQ(stopped.code, 6);
    EXPECT_THAT(stopped.err, HasSubstr("step 2 gave loss"));
  }
}

TEST_F(Positions, AProfileTellsMessagesApart) {
  ASSERT_EQ(train(2, 1, "r", {"--steps", "2", "--profile", "-q"}).code, 0);
  json profile;
  ASSERT_TRUE(parse_json(read_all(folder / "r/profile.json"), profile).is_ok());
  for (const json &rank : profile.find("ranks")->items)
    EXPECT_GT(rank.find("receive")->number, 0);
  ASSERT_EQ(train(1, 1, "s", {"--steps", "2", "--profile", "-q"}).code, 0);
  ASSERT_TRUE(parse_json(read_all(folder / "s/profile.json"), profile).is_ok());
  EXPECT_EQ(profile.find("ranks")->items[0].find("receive"), nullptr);
}

namespace {

/// A copy of the job of two positions that a test may spoil.
struct spoilt_job {
  spoilt_job() : j(pipeline_job(2, 1)) {
    for (std::size_t i : {0, 1}) {
      const position_entry &from = pipeline_job(2, 1).positions[static_cast<std::int64_t>(i)];
      programs[i] = *from.runs;
      positions[i] = from;
      positions[i].runs = &programs[i];
      actions[i].assign(from.runs->actions.begin(), from.runs->actions.end());
      messages[i].assign(from.runs->messages.begin(), from.runs->messages.end());
      parameters[i].assign(from.runs->parameters.begin(), from.runs->parameters.end());
    }
  }
  std::string check() {
    for (std::size_t i : {0, 1}) {
      programs[i].actions = {actions[i].data(), static_cast<std::int64_t>(actions[i].size())};
      programs[i].messages = {messages[i].data(), static_cast<std::int64_t>(messages[i].size())};
      programs[i].parameters = {parameters[i].data(), static_cast<std::int64_t>(parameters[i].size())};
    }
    j.positions = {positions, 2};
    const status result = check_job(j);
    EXPECT_TRUE(result.is_ok() || result.code() == status_code::internal);
    return result.message();
  }

  job j;
  program programs[2];
  position_entry positions[2];
  std::vector<action> actions[2];
  std::vector<message_entry> messages[2];
  std::vector<parameter_placement> parameters[2];
};

} // namespace

TEST(PositionTables, ThatFitTogetherAreTaken) { EXPECT_EQ(spoilt_job().check(), ""); }

TEST(PositionTables, ThatDoNotAreRefused) {
  const auto refused = [](auto spoil, const char *why) {
    spoilt_job s;
    spoil(s);
    EXPECT_THAT(s.check(), HasSubstr(why));
  };
  refused([](spoilt_job &s) { s.j.version = 1; }, "version 1, the runtime reads 7");
  refused([](spoilt_job &s) { s.j.merge = 0; }, "merged by 0");
  refused([](spoilt_job &s) { s.j.merge = s.j.micro_batches + 1; }, "merged by");
  refused([](spoilt_job &s) { s.positions[1].first_rank = 2; }, "whose ranks are not those of its mesh");
  refused([](spoilt_job &s) { s.programs[0].loss = s.programs[0].evaluated = s.programs[1].loss; },
          "the loss of a step is in 2 positions");
  refused([](spoilt_job &s) { s.programs[0].evaluation = {}; }, "evaluation that only some positions have");
  refused(
      [](spoilt_job &s) {
        static const std::vector<action> twice(2, s.programs[0].evaluation[0]);
        s.programs[0].evaluation = {twice.data(), 2};
      },
      "of chunk 0 that is none, or is not its only one");
  refused([](spoilt_job &s) { s.programs[0].evaluation.size = 1; }, "position 1 waits for ever at the receive");
  refused([](spoilt_job &s) { s.programs[1].communicators.size = 1; }, "communicators over positions that differ");
  static const std::int32_t names[] = {0, 2, 1, 1};
  const auto renamed = [&](std::int64_t first, std::int64_t count) {
    return [first, count](spoilt_job &s) {
      static std::vector<communicator_entry> rows;
      rows.assign(s.programs[0].communicators.begin(), s.programs[0].communicators.end());
      rows[1].positions = {names + first, count};
      s.programs[0].communicators = {rows.data(), 2};
    };
  };
  refused(renamed(0, 2), "a communicator over positions that are none, or in no order");
  refused(renamed(2, 2), "a communicator over positions that are none, or in no order");
  refused(renamed(0, 1), "communicators over positions that differ");
  refused(renamed(2, 1), "a communicator over other positions than its own");
  refused([](spoilt_job &s) { s.parameters[0][0].master = no_place; }, "'table' lies outside the arena in position 0");
  refused([](spoilt_job &s) { s.parameters[0][0].at.arena = 1; }, "'table' lies outside the arena in position 0");
  refused([](spoilt_job &s) { s.programs[0].peers.size = 0; }, "a message of no chunk, or to no peer in position 0");
  refused([](spoilt_job &s) { s.messages[1][0].slot_stride = 64; }, "the slots of 'message of chunk 1' overlap");
  refused([](spoilt_job &s) { s.messages[1].pop_back(); },
          "messages between chunk 0 and chunk 1 that only one of them");
  refused([](spoilt_job &s) { s.messages[1][0].type = element_type::i32; }, "of other types, sizes or parts");
  // Rows of the first position: f0 s0 f1 s1 r0 b0 ...
  refused([](spoilt_job &s) { s.actions[0].erase(s.actions[0].begin()); },
          "micro-batch 0 has not one forward, and behind it each part of its backward in position 0");
  refused([](spoilt_job &s) { s.actions[0][0].slot = 2; }, "micro-batch 0 of 4 in slot 2 of 2 in position 0");
  refused([](spoilt_job &s) { s.actions[0][1].chunk = 1; }, "an action of chunk 1, which the position lacks");
  refused([](spoilt_job &s) { s.actions[0][1].peer_chunk = 5; },
          "the send of micro-batch 0 from chunk 0 to chunk 5 has no message in position 0");
  refused([](spoilt_job &s) { s.actions[0].pop_back(); },
          "chunk 0 has not all micro-batches of a step, or is not reduced and updated once in position 0");
  refused([](spoilt_job &s) { std::swap(s.actions[0][3], s.actions[0][4]); },
          "position 0 waits for ever at the receive of micro-batch 0 from chunk 1 to chunk 0");
  refused([](spoilt_job &s) { std::swap(s.actions[1][3], s.actions[1][4]); },
          "position 0 waits for ever at the send of micro-batch 1 from chunk 0 to chunk 1");
  refused(
      [](spoilt_job &s) {
        action repeat;
        repeat.count = 2;
        repeat.length = 1;
        s.actions[0].push_back(repeat);
      },
      "the action table repeats past its end in position 0");
}
