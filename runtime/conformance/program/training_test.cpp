// Whole runs through run_program: training, resuming, evaluating, stopping, and everything that can be wrong.
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/communicator.h"
#include "windlass/rt/file.h"
#include "windlass/rt/json.h"

#include "run_lock.h"
#include "temporary_folder.h"
#include "test_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>

#include <sys/wait.h>
#include <unistd.h>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::HasSubstr;

namespace {

/// A file of `count` explicit batches of the bigram model, no two alike.
std::string explicit_batches(int count) {
  std::string entries, data;
  for (int k = 0; k < count; ++k)
    for (int shift : {0, 1}) {
      std::vector<std::int32_t> ids(bigram_batch * bigram_tokens);
      for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] =
            static_cast<std::int32_t>((i + static_cast<std::size_t>(shift)) * (static_cast<std::size_t>(k) + 3) % 97);
      const std::int64_t at = static_cast<std::int64_t>(data.size());
      data += bytes_of(ids);
      entries += (entries.empty() ? "\"" : ",\"") + std::string(shift == 0 ? "ids." : "labels.") + std::to_string(k) +
                 "\":{\"dtype\":\"I32\",\"shape\":[4,8],\"data_offsets\":[" + std::to_string(at) + "," +
                 std::to_string(data.size()) + "]}";
    }
  return safetensors_bytes("{" + entries + "}", data);
}

class Training : public testing::Test {
protected:
  Training() {
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += "a stitch in time saves nine; ";
    data = folder.write("text.txt", text);
    flags = {"--data", data, "--bytes", "--init", "random", "--lr", "0.01"};
  }

  run_result train(int groups, const std::string &name, std::vector<std::string> more) {
    std::vector<std::string> all = flags;
    all.insert(all.end(), {"-o", folder / name});
    all.insert(all.end(), more.begin(), more.end());
    return run(bigram_program(groups), all);
  }

  std::vector<json> rows(const std::string &name) {
    std::vector<json> out;
    std::istringstream text(read_all(folder / (name + "/metrics.jsonl")));
    for (std::string line; std::getline(text, line);) {
      out.emplace_back();
      EXPECT_TRUE(parse_json(line, out.back()).is_ok()) << line;
    }
    return out;
  }

  std::vector<double> losses(const std::string &name, const char *key = "loss") {
    std::vector<double> out;
    for (const json &row : rows(name))
      if (const json *value = row.find(key))
        out.push_back(value->kind == json::type::number ? value->number : NAN);
    return out;
  }

  std::string parameters(const std::string &name, const std::string &step) {
    return read_all(folder / (name + "/checkpoints/" + step + "/parameters-00000.safetensors"));
  }

  std::vector<std::string> checkpoints(const std::string &name) {
    std::vector<std::string> out;
    for (const auto &entry : std::filesystem::directory_iterator(folder / (name + "/checkpoints")))
      out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }

  temporary_folder folder;
  std::string data;
  std::vector<std::string> flags;
};

} // namespace

TEST_F(Training, LearnsAndLeavesWhatItShould) {
  run_result result = train(1, "r", {"--steps", "60", "--lr", "0.1", "--warmup", "5", "--progress", "off"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, testing::AllOf(HasSubstr("trained 'bigram' on 1 rank, steps 1 to 60"), HasSubstr("tokens/s"),
                                         HasSubstr("step-000060")));
  std::vector<double> loss = losses("r");
  ASSERT_EQ(loss.size(), 60u);
  EXPECT_NEAR(loss[0], std::log(256.0), 0.05);
  EXPECT_LT(loss[59], 2.6);
  const json first = rows("r")[0];
  EXPECT_EQ(first.find("step")->integer, 1);
  EXPECT_NEAR(first.find("lr")->number, 0.02, 1e-12);
  EXPECT_GT(first.find("grad_norm")->number, 0);
  EXPECT_GT(first.find("tokens_per_s")->number, 0);
  EXPECT_EQ(first.find("predicted_seconds")->kind, json::type::null);
  EXPECT_THAT(checkpoints("r"), testing::ElementsAre("step-000060"));
  EXPECT_THAT(read_all(folder / "r/logs/rank_00000.log"), HasSubstr("step 60 loss"));
}

TEST_F(Training, TwoRanksTrainAsOneDoes) {
  ASSERT_EQ(train(1, "one", {"--steps", "12"}).code, 0);
  run_result two = train(2, "two", {"--steps", "12"});
  ASSERT_EQ(two.code, 0) << two.err;
  std::vector<double> a = losses("one"), b = losses("two");
  ASSERT_EQ(b.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_NEAR(a[i], b[i], 1e-5 * a[i]);
  auto p = read_floats(folder / "one/checkpoints/step-000012/parameters-00000.safetensors"),
       q = read_floats(folder / "two/checkpoints/step-000012/parameters-00000.safetensors");
  ASSERT_EQ(p["table"].size(), 65536u);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < p["table"].size(); ++i) {
    difference += std::pow(p["table"][i] - q["table"][i], 2.0);
    size += std::pow(p["table"][i], 2.0);
  }
  EXPECT_LT(difference, 1e-8 * size);
  EXPECT_TRUE(std::filesystem::exists(folder / "two/logs/rank_00001.log"));
}

TEST_F(Training, ResumingGivesTheSameBytes) {
  for (int groups : {1, 2}) {
    std::string whole = "whole" + std::to_string(groups), parts = "parts" + std::to_string(groups);
    std::vector<std::string> schedule = {"--lr-schedule", "cosine", "--schedule-steps", "20"};
    auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), schedule.begin(), schedule.end());
      return more;
    };
    ASSERT_EQ(train(groups, whole, with({"--steps", "20"})).code, 0);
    ASSERT_EQ(train(groups, parts, with({"--steps", "10"})).code, 0);
    run_result resumed = train(groups, parts, with({"--steps", "20", "--resume"}));
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_THAT(resumed.err, HasSubstr("after step 10"));
    EXPECT_EQ(parameters(whole, "step-000020"), parameters(parts, "step-000020"));
    EXPECT_EQ(read_all(folder / (whole + "/checkpoints/step-000020/state-00000.safetensors")),
              read_all(folder / (parts + "/checkpoints/step-000020/state-00000.safetensors")));
    EXPECT_EQ(losses(whole), losses(parts));
  }
}

// Two micro-batches a step: with 5 of them an epoch ends in the middle of step 3.
TEST_F(Training, ResumingInAnEpochOfBatchesGivesTheSameBytes) {
  const std::string batches = folder.write("batches.safetensors", explicit_batches(5));
  flags = {"--data", batches, "--init", "random", "--lr", "0.01"};
  for (int groups : {1, 2})
    for (const char *order : {"--epochs=4", "--shuffle"}) {
      auto with = [&](std::vector<std::string> more) {
        more.insert(more.end(), {"--epochs", "4", order});
        return more;
      };
      std::string name = order + std::to_string(groups), whole = "whole" + name, parts = "parts" + name;
      run_result result = train(groups, whole, with({}));
      ASSERT_EQ(result.code, 0) << result.err;
      ASSERT_EQ(train(groups, parts, with({"--steps", "3"})).code, 0);
      // Where a run is resumed, its order stays.
      run_result resumed = train(groups, parts, {"--epochs", "4", "--resume"});
      ASSERT_EQ(resumed.code, 0) << resumed.err;
      EXPECT_EQ(losses(whole).size(), 10u);
      EXPECT_EQ(losses(whole), losses(parts));
      EXPECT_EQ(parameters(whole, "step-000010"), parameters(parts, "step-000010"));
    }
  EXPECT_NE(losses("whole--epochs=41"), losses("whole--shuffle1"));
  run_result other = train(1, "parts--epochs=41", {"--epochs", "5", "--shuffle", "--resume"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("was made without; leave it out"));
  other = train(1, "parts--epochs=41", {"--epochs", "3", "--resume"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("is of step 10, but --epochs 3 ends the run after step 7"));
}

TEST_F(Training, BatchesAreTakenOnceUnlessEpochsSayOtherwise) {
  flags = {"--data", folder.write("batches.safetensors", explicit_batches(4)), "--init", "random"};
  run_result result = train(1, "few", {"--steps", "3"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("lacks 'ids.4': it holds micro-batches 0 to 3; give more data, fewer --steps, or "
                                    "--epochs"));
  EXPECT_EQ(train(1, "shuffled", {"--steps", "3", "--shuffle"}).code, 1);
  EXPECT_EQ(train(1, "twice", {"--steps", "3", "--epochs", "2"}).code, 0);
  result = train(1, "beyond", {"--steps", "5", "--epochs", "2"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("--epochs 2 gives 8, but the run takes 10"));
}

TEST_F(Training, ResumingAnEarlierStepCutsWhatFollowed) {
  ASSERT_EQ(train(1, "r", {"--steps", "6", "--checkpoint-every", "2", "--checkpoint-initial"}).code, 0);
  EXPECT_THAT(checkpoints("r"), testing::ElementsAre("step-000000", "step-000002", "step-000004", "step-000006"));
  std::string last = parameters("r", "step-000006");
  run_result again = train(1, "r", {"--steps", "6", "--resume", folder / "r/checkpoints/step-000002"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("later than the resumed one"));
  EXPECT_EQ(parameters("r", "step-000006"), last);
  EXPECT_EQ(losses("r").size(), 6u);
}

TEST_F(Training, ARunThatOnlyMeasuresSavesNothing) {
  ASSERT_EQ(train(1, "r", {"--steps", "3", "--no-checkpoint"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "r/checkpoints/step-000003"));
  EXPECT_EQ(losses("r").size(), 3u);
}

TEST_F(Training, DamagedCheckpointsAreSkippedAloud) {
  ASSERT_EQ(train(1, "r", {"--steps", "4", "--checkpoint-every", "2"}).code, 0);
  folder.write("r/checkpoints/step-000004/state-00000.safetensors", "cut");
  run_result result = train(1, "r", {"--steps", "5", "--resume"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, testing::AllOf(HasSubstr("skipping checkpoint"), HasSubstr("step-000004"), HasSubstr("bytes"),
                                         HasSubstr("after step 2")));
  EXPECT_EQ(losses("r").size(), 5u);
}

TEST_F(Training, ARunFolderIsNotOverwritten) {
  ASSERT_EQ(train(1, "r", {"--steps", "2"}).code, 0);
  run_result result = train(1, "r", {"--steps", "3"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err,
              testing::AllOf(HasSubstr("already holds a checkpoint, 'step-000002'"), HasSubstr("--resume")));
  EXPECT_EQ(train(1, "empty", {"--steps", "3", "--resume"}).code, 1);
  result = train(1, "r", {"--steps", "1", "--resume"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("is of step 2, but --steps is 1"));
  result = train(1, "r", {"--steps", "3", "--resume", "--seed", "4"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("was made with 0"));
  result = train(1, "r", {"--steps", "2", "--resume"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("nothing to do: step 2 is reached"));
}

TEST_F(Training, AFolderInUseIsRefusedUntilItsHolderEnds) {
  std::filesystem::create_directory(folder / "run");
  {
    run_lock held;
    ASSERT_TRUE(held.take(folder / "run").is_ok());
    const run_result result = train(1, "run", {"--steps", "1"});
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.err, HasSubstr(quote(folder / "run") + " is in use by 'process " + std::to_string(getpid())));
    EXPECT_THAT(result.err, HasSubstr("[WL0801]"));
    EXPECT_FALSE(std::filesystem::exists(folder / "run/metrics.jsonl"));
  }
  EXPECT_EQ(train(1, "run", {"--steps", "1"}).code, 0);
}

TEST_F(Training, KeepsTheNewestCheckpoints) {
  ASSERT_EQ(train(2, "r", {"--steps", "7", "--checkpoint-every", "1", "--keep", "2"}).code, 0);
  EXPECT_THAT(checkpoints("r"), testing::ElementsAre("step-000006", "step-000007"));
}

TEST_F(Training, EvaluatesOnOtherData) {
  std::string eval = folder.write("eval.txt", std::string(read_all(data), 0, 4 * 8 * 3 + 1));
  std::vector<double> values[2];
  for (int groups : {1, 2}) {
    std::string name = "r" + std::to_string(groups);
    run_result result = train(groups, name, {"--steps", "4", "--eval-data", eval, "--eval-every", "2", "--json"});
    ASSERT_EQ(result.code, 0) << result.err;
    json summary;
    ASSERT_TRUE(parse_json(result.out, summary).is_ok()) << result.out;
    values[groups - 1] = losses(name, "eval_loss");
    ASSERT_EQ(values[groups - 1].size(), 2u);
    EXPECT_EQ(summary.find("eval_loss")->number, values[groups - 1][1]);
    EXPECT_EQ(losses(name, "eval_batches")[0], 3);
    EXPECT_LT(values[groups - 1][1], values[groups - 1][0]);
  }
  EXPECT_NEAR(values[0][1], values[1][1], 1e-5);
}

TEST_F(Training, DumpsTheFirstStepsGradients) {
  for (int groups : {1, 2}) {
    std::string name = "r" + std::to_string(groups), file = folder / (name + ".safetensors");
    ASSERT_EQ(train(groups, name, {"--steps", "2", "--dump-gradients", file, "--clip-norm", "1e-3"}).code, 0);
    auto gradients = read_floats(file);
    ASSERT_EQ(gradients.size(), 2u);
    double squares = 0;
    for (const auto &[key, values] : gradients)
      for (float g : values)
        squares += static_cast<double>(g) * g;
    EXPECT_NEAR(std::sqrt(squares), losses(name, "grad_norm")[0], 1e-6); // before clipping
  }
}

TEST_F(Training, StopsAtNanWithoutSavingIt) {
  run_result result = train(1, "r", {"--steps", "9", "--lr", "1e38", "--checkpoint-every", "1"});
  EXPECT_EQ(result.code, 6);
  EXPECT_THAT(result.err, testing::AllOf(HasSubstr("error: step "), HasSubstr("--on-nan skip")));
  std::vector<double> loss = losses("r");
  ASSERT_LT(loss.size(), 9u);
  EXPECT_FALSE(std::isfinite(loss.back()) && std::isfinite(losses("r", "grad_norm").back()));
  EXPECT_EQ(checkpoints("r").size(), loss.size() - 1);
}

TEST_F(Training, SkipsUpdatesAtNan) {
  for (int groups : {1, 2}) {
    std::string name = "r" + std::to_string(groups);
    run_result result = train(groups, name, {"--steps", "6", "--lr", "1e38", "--on-nan", "skip", "--json"});
    ASSERT_EQ(result.code, 0) << result.err;
    json summary;
    ASSERT_TRUE(parse_json(result.out, summary).is_ok());
    EXPECT_GT(summary.find("skipped_updates")->integer, 0);
    EXPECT_THAT(result.err, HasSubstr("left its update out"));
  }
}

TEST_F(Training, ASignalSavesAndLeaves) {
  // The evaluation of step 1 is over when the file of its row exists; from then on the signal may come at any time.
  std::signal(SIGUSR1, SIG_IGN);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::vector<std::string> all = flags;
    all.insert(all.end(), {"-o", folder / "r", "--steps", "100000000", "--threads", "1", "-q"});
    all.insert(all.begin(), "train");
    std::vector<char *> argv;
    for (std::string &flag : all)
      argv.push_back(flag.data());
    _exit(run_program(bigram_program(2), static_cast<int>(argv.size()), argv.data()));
  }
  for (int i = 0; i < 2000 && read_all(folder / "r/metrics.jsonl").empty(); ++i)
    usleep(10000);
  kill(child, SIGUSR1);
  int code = 0;
  ASSERT_EQ(waitpid(child, &code, 0), child);
  ASSERT_TRUE(WIFEXITED(code));
  EXPECT_EQ(WEXITSTATUS(code), 7);
  std::size_t steps = losses("r").size();
  ASSERT_GT(steps, 0u);
  EXPECT_THAT(checkpoints("r"), testing::ElementsAre(checkpoint_name(static_cast<std::int64_t>(steps))));
  run_result resumed = train(2, "r", {"--steps", std::to_string(steps + 1), "--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(losses("r").size(), steps + 1);
}

TEST_F(Training, AKilledRunLosesOnlyTheStepsSinceItsCheckpoint) {
  ASSERT_EQ(train(2, "whole", {"--steps", "40"}).code, 0);
  for (int kills = 0; kills < 3; ++kills) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::vector<std::string> all = flags;
      all.insert(all.begin(), {"train", "-o", folder / "r", "--steps", "40", "--checkpoint-every", "1", "--keep", "2",
                               "--threads", "1", "-q"});
      if (kills > 0)
        all.push_back("--resume");
      std::vector<char *> argv;
      for (std::string &flag : all)
        argv.push_back(flag.data());
      _exit(run_program(bigram_program(2), static_cast<int>(argv.size()), argv.data()));
    }
    // Wait for a checkpoint, then kill at some moment of the steps that follow.
    std::string first = folder / ("r/checkpoints/" + checkpoint_name(1));
    for (int i = 0; i < 2000 && kills == 0 && !std::filesystem::exists(first); ++i)
      usleep(1000);
    usleep(static_cast<unsigned>(20000 + 17000 * kills));
    kill(child, SIGKILL);
    int code = 0;
    ASSERT_EQ(waitpid(child, &code, 0), child);
  }
  run_result last = train(2, "r", {"--steps", "40", "--resume"});
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(parameters("whole", "step-000040"), parameters("r", "step-000040"));
  EXPECT_EQ(losses("whole"), losses("r"));
}

TEST_F(Training, ErrorsOfOneRankEndAllWithOneMessage) {
  // Windows of micro-batch 1 go to rank 1; in order, without shuffling by a seed, some rank meets the bad id.
  std::vector<std::uint16_t> tokens(4 * 8 * 4 + 1, 7);
  tokens[70] = 999;
  flags = {"--data", folder.write("bad.bin", bytes_of(tokens)), "--init", "random"};
  run_result result = train(2, "r", {"--steps", "50"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("holds the id 999 at position 70"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
}

TEST_F(Training, WrongUseGivesOneLineAndItsCode) {
  struct {
    std::vector<std::string> more;
    int code;
    const char *message;
  } cases[] = {
      {{"--stepz", "3"}, 2, "did you mean --steps?"},
      {{"--lr", "x"}, 2, "--lr needs a number"},
      {{"--micro-batches", "3"}, 1, "compiled for '2'"},
      {{"--data", "/nonexistent"}, 1, "No such file"},
      {{"--init", "file"}, 1, "params.safetensors"},
      {{"--init", "file", "--parameters", data}, 1, "is not a safetensors file"},
      {{"--eval-data", "/nonexistent"}, 1, "No such file"},
      {{"-o", "/proc/nowhere"}, 1, "cannot create the folder"},
      {{"--resume", "/nonexistent"}, 1, "cannot open the folder '/nonexistent'"},
  };
  for (int groups : {1, 2})
    for (const auto &c : cases) {
      run_result result = train(groups, "wrong", c.more);
      EXPECT_EQ(result.code, c.code) << c.message;
      EXPECT_THAT(result.err, HasSubstr(c.message));
      EXPECT_EQ(result.out, "");
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
}

TEST_F(Training, HelpAndVersionNeedNoData) {
  EXPECT_THAT(run(bigram_program(2), {"--help"}).out, HasSubstr("Compiled in: 2 ranks"));
  EXPECT_THAT(run(bigram_program(2), {"--version"}).out, HasSubstr("of 'bigram', plan 0123"));
}

TEST_F(Training, RowsCountTheBytesOfEachKindOfCollective) {
  for (int groups : {1, 2}) {
    std::string name = "r" + std::to_string(groups);
    ASSERT_EQ(train(groups, name, {"--steps", "3"}).code, 0);
    for (const json &row : rows(name)) {
      const json &sent = *row.find("collective_bytes");
      ASSERT_EQ(sent.keys.size(), collective_kinds);
      // Gradients and loss are one buffer; of 2 ranks each sends it once.
      const std::int64_t reduced = bigram_vocabulary * bigram_vocabulary + bigram_vocabulary + 1;
      EXPECT_EQ(sent.find("all_reduce")->integer, groups == 1 ? 0 : reduced * 4);
      for (const char *other : {"all_gather", "reduce_scatter", "all_to_all", "permute", "scalars", "send", "rows"})
        EXPECT_EQ(sent.find(other)->integer, 0) << other;
    }
  }
}

TEST_F(Training, ProfilesByKindOfAction) {
  ASSERT_EQ(train(2, "r", {"--steps", "3", "--profile"}).code, 0);
  json profile;
  ASSERT_TRUE(parse_json(read_all(folder / "r/profile.json"), profile).is_ok());
  ASSERT_EQ(profile.find("ranks")->items.size(), 2u);
  EXPECT_GT(profile.find("ranks")->items[1].find("reduce")->number, 0);
}

TEST_F(Training, ProfilesByKernel) {
  ASSERT_EQ(train(2, "r", {"--steps", "4", "--profile"}).code, 0);
  json report;
  ASSERT_TRUE(parse_json(read_all(folder / "r/kernels.json"), report).is_ok());
  EXPECT_EQ(report.find("steps")->integer, 3); // the first warms up
  EXPECT_GT(report.find("flops_per_second")->number, 1e8);
  EXPECT_GT(report.find("peak_flops_per_second")->number, 1e8);
  EXPECT_GT(report.find("bytes_per_second")->number, 1e7);
  double sum = 0;
  std::map<std::string, std::int64_t> calls;
  for (const json &kernel : report.find("kernels")->items) {
    sum += kernel.find("seconds")->number;
    calls[kernel.find("name")->string] += kernel.find("calls")->integer;
    EXPECT_GT(kernel.find("roof_seconds")->number, 0) << kernel.find("name")->string;
  }
  EXPECT_GT(sum, 0);
  // Two streams may work at the same time.
  EXPECT_LT(sum, 2 * report.find("step_seconds")->number);
  EXPECT_EQ(calls["all_reduce"] % 3, 0);
  EXPECT_GT(calls["all_reduce"], 0);
}

namespace {

/// Files for the sharded program: 20 batches, external values 0..47 after 4 bytes, packed ones.
class Sharded : public testing::Test {
protected:
  Sharded() {
    std::string header, values;
    for (int k = 0; k < 20; ++k) {
      header += (k ? "," : "{") + ("\"x." + std::to_string(k)) +
                "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" + std::to_string(4 * k) + "," +
                std::to_string(4 * k + 4) + "]}";
      values += bytes_of<float>({static_cast<float>(k)});
    }
    data = folder.write("x.safetensors", safetensors_bytes(header + "}", values));
    std::vector<float> split(48);
    for (std::size_t i = 0; i < 48; ++i)
      split[i] = static_cast<float>(i);
    folder.write("values.bin", "head" + bytes_of(split));
    packed = folder.write("p.safetensors",
                          safetensors_bytes(R"({"whole":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
                                            bytes_of<float>({5, 6, 7, 8})));
  }

  run_result train(cut layout, const std::string &name, std::vector<std::string> more) {
    std::vector<std::string> all = {"--data",      data,           "--lr", "0.5", "--weights",
                                    folder.path(), "--parameters", packed, "-o",  folder / name};
    all.insert(all.end(), more.begin(), more.end());
    return run(sharded_program(layout), all);
  }

  temporary_folder folder;
  std::string data, packed;
};

} // namespace

TEST_F(Sharded, PiecesComeFromFilesAndMergeAgain) {
  for (cut layout : all_cuts) {
    std::string name = "r" + std::to_string(static_cast<int>(layout));
    run_result result = train(layout, name, {"--steps", "2", "--dump-gradients", folder / "g.safetensors"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(std::filesystem::exists(folder / (name + "/checkpoints/step-000002/parameters-00001.safetensors")),
              layout != cut::whole);
    status s = export_checkpoint(folder / name, folder / "all.safetensors", exported::all);
    ASSERT_TRUE(s.is_ok()) << s.message();
    auto all = read_floats(folder / "all.safetensors"), gradients = read_floats(folder / "g.safetensors");
    ASSERT_EQ(all["split"].size(), 48u);
    ASSERT_EQ(gradients["split"].size(), 48u);
    for (std::size_t i = 0; i < 48; ++i) {
      EXPECT_EQ(all["split"][i], static_cast<float>(i) + 1) << name;
      EXPECT_EQ(gradients["split"][i], static_cast<float>(i) * 10) << name;
      EXPECT_EQ(all["split/momentum_buffer"][i], 2) << name;
    }
    EXPECT_THAT(all["whole"], testing::ElementsAre(6, 7, 8, 9));
  }
}

TEST_F(Sharded, PiecesAreTheBoxesOfTheMaster) {
  auto pieces = [&](cut layout, const char *name) {
    EXPECT_EQ(train(layout, name, {"--steps", "1"}).code, 0);
    checkpoint_manifest manifest;
    EXPECT_TRUE(read_manifest(folder / (std::string(name) + "/checkpoints/step-000001"), manifest).is_ok());
    std::vector<std::string> keys;
    const checkpoint_tensor &split = *manifest.find("split");
    for (std::int64_t piece = 0; piece < split.pieces(); ++piece)
      keys.push_back(split.key_of(piece));
    return keys;
  };
  EXPECT_THAT(pieces(cut::whole, "whole"), testing::ElementsAre("split"));
  EXPECT_THAT(pieces(cut::heads, "heads"), testing::ElementsAre("split@[0, 0]", "split@[0, 4]", "split@[0, 8]",
                                                                "split@[0, 2]", "split@[0, 6]", "split@[0, 10]"));
  EXPECT_EQ(pieces(cut::own_master, "own").size(), 12u);
  // Ranges of ten elements in rows of twelve.
  EXPECT_THAT(pieces(cut::flat, "flat"),
              testing::ElementsAre("split@[0, 0]", "split@[0, 10]", "split@[1, 0]", "split@[1, 8]", "split@[2, 0]",
                                   "split@[2, 6]", "split@[3, 0]", "split@[3, 4]"));
}

TEST_F(Sharded, AnyLayoutResumesAnyOther) {
  std::string expected, expected_gradients;
  for (cut from : all_cuts) {
    std::string first = "from" + std::to_string(static_cast<int>(from));
    ASSERT_EQ(train(from, first, {"--steps", "2"}).code, 0);
    for (cut to : all_cuts) {
      std::string second = first + "to" + std::to_string(static_cast<int>(to));
      run_result result = train(to, second,
                                {"--steps", "4", "--resume", folder / (first + "/checkpoints/step-000002"),
                                 "--dump-gradients", folder / "g.safetensors"});
      ASSERT_EQ(result.code, 0) << result.err;
      ASSERT_TRUE(export_checkpoint(folder / second, folder / "all.safetensors", exported::all).is_ok());
      if (expected.empty())
        expected = read_all(folder / "all.safetensors"), expected_gradients = read_all(folder / "g.safetensors");
      EXPECT_EQ(read_all(folder / "all.safetensors"), expected) << second;
      EXPECT_EQ(read_all(folder / "g.safetensors"), expected_gradients) << second;
    }
  }
  auto all = read_floats(folder / "all.safetensors"), gradients = read_floats(folder / "g.safetensors");
  for (std::size_t i = 0; i < 48; ++i) {
    EXPECT_EQ(all["split"][i], static_cast<float>(i) + 2);
    EXPECT_EQ(gradients["split"][i], (static_cast<float>(i) + 1) * 10);
    EXPECT_EQ(all["split/momentum_buffer"][i], 4);
  }
}

TEST_F(Sharded, RandomValuesDoNotDependOnThePlan) {
  std::string expected, expected_gradients;
  for (cut layout : all_cuts) {
    std::string name = "r" + std::to_string(static_cast<int>(layout));
    ASSERT_EQ(train(layout, name,
                    {"--steps", "1", "--init", "random", "--seed", "3", "--checkpoint-initial", "--dump-gradients",
                     folder / "g.safetensors"})
                  .code,
              0);
    ASSERT_TRUE(export_checkpoint(folder / (name + "/checkpoints/step-000000"), folder / "all.safetensors",
                                  exported::parameters)
                    .is_ok());
    if (expected.empty())
      expected = read_all(folder / "all.safetensors"), expected_gradients = read_all(folder / "g.safetensors");
    EXPECT_EQ(read_all(folder / "all.safetensors"), expected) << name;
    EXPECT_EQ(read_all(folder / "g.safetensors"), expected_gradients) << name;
  }
  auto values = read_floats(folder / "all.safetensors");
  EXPECT_THAT(values["whole"], testing::ElementsAre(1, 1, 1, 1));
  double squares = 0;
  for (float v : values["split"])
    squares += static_cast<double>(v) * v;
  EXPECT_NEAR(std::sqrt(squares / 48), 0.02, 0.01);
}

TEST_F(Sharded, TheRecordCountsAPartOfEachBuffer) {
  ASSERT_EQ(train(cut::own_master, "r", {"--steps", "1"}).code, 0);
  json record;
  ASSERT_TRUE(parse_json(read_all(folder / "r/run.json"), record).is_ok());
  const json &memory = *record.find("device_memory");
  EXPECT_EQ(memory.find("parameters")->integer, 96 + 16);
  EXPECT_EQ(memory.find("master_parameters")->integer, 48);
  EXPECT_EQ(memory.find("gradients")->integer, 96);
  EXPECT_EQ(memory.find("optimizer_state")->integer, 48);
}

TEST_F(Sharded, TablesThatDisagreeAreRefused) {
  one_job p = sharded_program(cut::own_master);
  std::vector<parameter_placement> rows(p.p.parameters.begin(), p.p.parameters.end());
  p.p.parameters = {rows.data(), 2};
  rows[0].master = rows[0].at;
  EXPECT_THAT(run(p, {"--data", data, "-o", folder / "r"}).err, HasSubstr("but are cut differently"));
  rows[0].master.offset = p.p.arenas[0].bytes - 44; // of 48
  EXPECT_THAT(run(p, {"--data", data, "-o", folder / "r"}).err, HasSubstr("'split' lies outside the arena"));
}

TEST_F(Sharded, WeightsMayLieInAHuggingFaceCache) {
  std::filesystem::create_directories(folder / "models--x/snapshots/1");
  std::filesystem::create_directories(folder / "models--x/blobs");
  std::filesystem::rename(folder / "values.bin", folder / "models--x/blobs/abc");
  std::filesystem::create_symlink("../../blobs/abc", folder / "models--x/snapshots/1/values.bin");
  run_result result = train(cut::columns, "r", {"--steps", "1", "--weights", folder / "models--x/snapshots/1"});
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST_F(Sharded, HalfWrittenCheckpointsAreClearedAway) {
  std::filesystem::create_directories(folder / "r/checkpoints/.step-000001.partial");
  folder.write("r/checkpoints/.step-000001.partial/parameters-00000.safetensors", "half");
  ASSERT_EQ(train(cut::columns, "r", {"--steps", "2"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "r/checkpoints/.step-000001.partial"));
}

TEST_F(Sharded, WhatGivesWayToACheckpointIsClearedAway) {
  ASSERT_EQ(train(cut::columns, "r", {"--steps", "4", "--checkpoint-every", "1"}).code, 0);
  const std::string held = folder / "r/checkpoints";
  // A killed save leaves the one; the other is set aside by a run that continues an earlier step.
  std::filesystem::create_directories(held + "/.step-000002.old");
  run_result result = train(cut::columns, "r", {"--steps", "3", "--resume", held + "/step-000002"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_FALSE(std::filesystem::exists(held + "/.step-000002.old"));
  EXPECT_TRUE(std::filesystem::exists(held + "/.step-000004.aside"));
  ASSERT_EQ(train(cut::columns, "r", {"--steps", "4", "--resume"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(held + "/.step-000004.aside"));
}

TEST_F(Sharded, ASaveThatIsKilledBetweenItsRenamesLosesNothing) {
  ASSERT_EQ(train(cut::columns, "r", {"--steps", "2"}).code, 0);
  std::filesystem::rename(folder / "r/checkpoints/step-000002", folder / "r/checkpoints/.step-000002.old");
  run_result result = train(cut::columns, "r", {"--steps", "3", "--resume"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("steps 3 to 3"));
}

TEST_F(Sharded, LinksInItsFolderLeadARunNowhere) {
  ASSERT_EQ(train(cut::columns, "r", {"--steps", "2"}).code, 0);
  std::filesystem::create_directories(folder / "outside");
  const std::string victim = folder.write("outside/victim", "kept");
  for (const char *name : {"checkpoints/.step-000003.partial", "checkpoints/.step-000009.partial",
                           "checkpoints/.step-000003.old", "checkpoints/.step-000009.aside", "checkpoints/step-000003"})
    std::filesystem::create_directory_symlink(folder / "outside", folder / (std::string("r/") + name));
  for (const char *name :
       {"logs/rank_00000.log", "logs/rank_00001.log", "run.json", ".run.json.partial", ".metrics.jsonl.partial"}) {
    std::filesystem::remove(folder / (std::string("r/") + name));
    std::filesystem::create_symlink(victim, folder / (std::string("r/") + name));
  }
  std::filesystem::remove(folder / "r/.lock");
  std::filesystem::create_hard_link(victim, folder / "r/.lock");
  run_result result = train(cut::columns, "r", {"--steps", "3", "--resume"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(read_all(victim), "kept");
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(folder / "outside"), std::filesystem::directory_iterator()), 1);
  EXPECT_TRUE(
      export_checkpoint(folder / "r/checkpoints/step-000003", folder / "all.safetensors", exported::all).is_ok());
}

TEST_F(Sharded, WrongSourcesSaySo) {
  run_result result = train(cut::columns, "r", {"--steps", "21"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("lacks 'x.20'"));
  result = train(cut::whole, "r", {"--steps", "1", "--weights", folder / "none"});
  EXPECT_THAT(result.err, HasSubstr("does not exist"));
  folder.write("values.bin", "short");
  result = train(cut::columns, "r", {"--steps", "1"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("'split' lies at 4 with 192"));
  std::filesystem::remove(folder / "values.bin");
  std::filesystem::create_symlink("/etc/passwd", folder / "values.bin");
  result = train(cut::whole, "r", {"--steps", "1"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("leaves --weights"));
}
