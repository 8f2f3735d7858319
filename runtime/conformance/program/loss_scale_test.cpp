// The loss scale: how it moves, what a step that overflows leaves as it was, and what a run keeps of it.
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/json.h"
#include "windlass/rt/loss_scale.h"

#include "temporary_folder.h"
#include "test_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(LossScale, RisesAfterAWindowAndFallsFromTheHysteresisOn) {
  const loss_scale_settings settings = {16, 3, 2, 4};
  loss_scale scale = loss_scale::start(settings);
  auto after = [&](std::initializer_list<bool> steps) {
    for (bool is_finite : steps)
      EXPECT_TRUE(scale.advance(is_finite, settings));
    return scale.value;
  };
  EXPECT_EQ(after({true, true}), 16);
  EXPECT_EQ(after({false}), 16); // the first overflow is let pass, and begins the window anew
  EXPECT_EQ(after({true, true}), 16);
  EXPECT_EQ(after({false}), 8);
  EXPECT_EQ(after({true, true, true}), 16);
  EXPECT_EQ(after({false}), 16); // doubling has forgotten the overflows
  EXPECT_EQ(after({false, false}), 4);
  EXPECT_FALSE(scale.advance(false, settings));
  EXPECT_EQ(scale.value, 4);
}

TEST(LossScale, DoesNotRiseForEver) {
  const loss_scale_settings settings = {65536, 1, 1, 1};
  loss_scale scale = loss_scale::start(settings);
  for (int i = 0; i < 200; ++i)
    EXPECT_TRUE(scale.advance(true, settings));
  EXPECT_EQ(scale.value, std::ldexp(1.0, 32));
  EXPECT_TRUE(is_loss_scale(0.25));
  for (double x : {0.0, -2.0, 3.0, 1e300, double(INFINITY), double(NAN)})
    EXPECT_FALSE(is_loss_scale(x)) << x;
}

namespace {

class ScaledTraining : public testing::Test {
protected:
  ScaledTraining() {
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += "a stitch in time saves nine; ";
    data = folder.write("text.txt", text);
  }

  run_result train(const job &p, const std::string &name, std::vector<std::string> more) {
    std::vector<std::string> all = {"--data", data, "--bytes", "--init", "random", "--lr", "0.01", "-o", folder / name};
    all.insert(all.end(), more.begin(), more.end());
    return run(p, all);
  }

  /// Returns the value of `key` in each step; NaN stands for null and for what a row does not have.
  std::vector<double> column(const std::string &name, const char *key) {
    std::vector<double> out;
    std::istringstream text(read_all(folder / (name + "/metrics.jsonl")));
    for (std::string line; std::getline(text, line);) {
      json row;
      EXPECT_TRUE(parse_json(line, row).is_ok()) << line;
      const json *value = row.find(key);
      out.push_back(value && value->kind == json::type::number ? value->number : NAN);
    }
    return out;
  }

  std::string values(const std::string &name, const std::string &step) {
    const std::string at = folder / (name + "/checkpoints/" + step);
    return read_all(at + "/parameters-00000.safetensors") + read_all(at + "/state-00000.safetensors");
  }

  temporary_folder folder;
  std::string data;
};

/// 2^24 overflows until it has become 2^21.
const std::vector<std::string> overflowing = {"--loss-scale",
                                              "16777216",
                                              "--loss-scale-window",
                                              "3",
                                              "--steps",
                                              "12",
                                              "--checkpoint-every",
                                              "1",
                                              "--on-nan",
                                              "stop",
                                              "--loss-scale-hysteresis",
                                              "2",
                                              "--checkpoint-initial"};

} // namespace

TEST_F(ScaledTraining, IsTheSameAsWithoutAScale) {
  ASSERT_EQ(train(bigram_program(1), "plain", {"--steps", "8", "--dump-gradients", folder / "plain.st"}).code, 0);
  run_result scaled = train(scaled_bigram_program(1), "scaled",
                            {"--steps", "8", "--loss-scale", "1024", "--dump-gradients", folder / "scaled.st"});
  ASSERT_EQ(scaled.code, 0) << scaled.err;
  // Powers of two round nothing.
  EXPECT_EQ(values("plain", "step-000008"), values("scaled", "step-000008"));
  EXPECT_EQ(column("plain", "loss"), column("scaled", "loss"));
  EXPECT_EQ(column("plain", "grad_norm"), column("scaled", "grad_norm"));
  EXPECT_EQ(read_all(folder / "plain.st"), read_all(folder / "scaled.st"));
  EXPECT_THAT(read_all(folder / "plain/metrics.jsonl"), testing::Not(HasSubstr("loss_scale")));
  EXPECT_EQ(column("scaled", "loss_scale"), std::vector<double>(8, 1024));
}

TEST_F(ScaledTraining, StepsThatOverflowChangeNothing) {
  for (int groups : {1, 2}) {
    const std::string name = "r" + std::to_string(groups);
    run_result result = train(scaled_bigram_program(groups), name, overflowing);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("step 2 left its update out: its loss is "));
    EXPECT_THAT(result.err, HasSubstr(", its gradient is not finite; the loss scale is now 8388608"));
    const std::vector<double> scales = column(name, "loss_scale"), norms = column(name, "grad_norm");
    ASSERT_EQ(scales.size(), 12u);
    // The first overflow is let pass; then each one halves the scale, until three updates in a row double it again.
    std::vector<double> want;
    loss_scale_settings settings = {16777216, 3, 2, 1};
    loss_scale scale = loss_scale::start(settings);
    std::int64_t skipped = 0;
    for (std::size_t i = 0; i < norms.size(); ++i) {
      want.push_back(scale.value);
      const std::string before = values(name, checkpoint_name(static_cast<std::int64_t>(i)));
      const std::string after = values(name, checkpoint_name(static_cast<std::int64_t>(i) + 1));
      EXPECT_EQ(std::isnan(norms[i]), before == after) << i;
      skipped += std::isnan(norms[i]);
      ASSERT_TRUE(scale.advance(!std::isnan(norms[i]), settings));
    }
    EXPECT_EQ(scales, want);
    EXPECT_GE(skipped, 4);
    EXPECT_LE(skipped, 8);
    checkpoint_manifest manifest;
    ASSERT_TRUE(read_manifest(folder / (name + "/checkpoints/step-000012"), manifest).is_ok());
    EXPECT_EQ(manifest.skipped_updates, skipped);
    ASSERT_TRUE(manifest.scale);
    EXPECT_EQ(manifest.scale->value, scale.value);
    EXPECT_EQ(manifest.scale->clean_steps, scale.clean_steps);
    EXPECT_EQ(manifest.scale->overflows, scale.overflows);
  }
}

TEST_F(ScaledTraining, ResumesWithItsScaleAndCount) {
  ASSERT_EQ(train(scaled_bigram_program(1), "whole", overflowing).code, 0);
  std::vector<std::string> half = overflowing, rest = overflowing;
  half[5] = "6";
  ASSERT_EQ(train(scaled_bigram_program(1), "parts", half).code, 0);
  rest.push_back("--resume");
  run_result result = train(scaled_bigram_program(1), "parts", rest);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(values("parts", "step-000012"), values("whole", "step-000012"));
  EXPECT_EQ(column("parts", "loss_scale"), column("whole", "loss_scale"));
}

TEST_F(ScaledTraining, StopsAtTheFloor) {
  run_result result = train(scaled_bigram_program(1), "r",
                            {"--steps", "9", "--loss-scale", "16777216", "--loss-scale-floor", "8388608",
                             "--loss-scale-hysteresis", "1", "--checkpoint-every", "1"});
  EXPECT_EQ(result.code, 6);
  EXPECT_THAT(result.err,
              HasSubstr("error: step 2 gave a gradient that is not finite with the loss scale 8388608, which "
                        "--loss-scale-floor 8388608 does not let fall; "));
  EXPECT_EQ(column("r", "loss_scale").size(), 2u);
}

TEST_F(ScaledTraining, ALossThatIsNotFiniteIsNotTheScalesFault) {
  run_result result = train(scaled_bigram_program(1), "r", {"--steps", "9", "--lr", "1e38", "--loss-scale", "1"});
  EXPECT_EQ(result.code, 6);
  EXPECT_THAT(result.err, testing::AllOf(HasSubstr(" gave loss "), HasSubstr("--on-nan skip")));
  result =
      train(scaled_bigram_program(1), "s", {"--steps", "9", "--lr", "1e38", "--loss-scale", "1", "--on-nan", "skip"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(column("s", "loss_scale").back(), 1);
}

TEST_F(ScaledTraining, FlagsAreChecked) {
  EXPECT_THAT(
      train(bigram_program(1), "r", {"--steps", "1", "--loss-scale-window", "5"}).err,
      HasSubstr("--loss-scale-window is given, but this program computes in f32, which needs no loss scale; emit "
                "it with --precision f16"));
  EXPECT_THAT(train(scaled_bigram_program(1), "r", {"--steps", "1", "--loss-scale", "3"}).err,
              HasSubstr("--loss-scale is 3; it has to be a power of two"));
  EXPECT_THAT(
      train(scaled_bigram_program(1), "r", {"--steps", "1", "--loss-scale", "2", "--loss-scale-floor", "4"}).err,
      HasSubstr("--loss-scale is 2, below --loss-scale-floor 4"));
}
