#include "options.h"

#include "windlass/rt/json.h"

#include "../one_job.h"
#include "temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::HasSubstr;

namespace {

const axis axes[] = {{"data", 2}};

one_job two_ranks(bool clips = false) {
  job p = {};
  p.model = "m";
  p.micro_batches = 4;
  p.kind = optimizer::adamw;
  p.clips = clips;
  p.precision = "bf16";
  return one_job({axes, 1}, {}, p);
}

status parse(std::vector<const char *> flags, options &o, bool clips = false) {
  flags.insert(flags.begin(), "train");
  return parse_options(two_ranks(clips), static_cast<int>(flags.size()), flags.data(), o);
}

} // namespace

TEST(Options, ReadsEveryKindOfValue) {
  options o;
  status s = parse({"--data",
                    "a,b",
                    "--data=c",
                    "-o",
                    "out",
                    "--steps",
                    "7",
                    "--lr",
                    "1e-2",
                    "--betas",
                    "0.8,0.95",
                    "--inputs",
                    "ids=tokens,labels=next",
                    "--normalize",
                    "x=0.5,-1:2,4",
                    "--lr-schedule",
                    "cosine",
                    "--resume",
                    "--seed",
                    "18446744073709551615",
                    "--on-nan",
                    "skip",
                    "--threads",
                    "3",
                    "-v"},
                   o);
  ASSERT_TRUE(s.is_ok()) << s.message();
  EXPECT_THAT(o.data, testing::ElementsAre("a", "b", "c"));
  EXPECT_EQ(o.run, "out");
  EXPECT_EQ(o.steps, 7);
  EXPECT_EQ(o.lr, 1e-2);
  EXPECT_EQ(o.betas.value()[1], 0.95);
  EXPECT_EQ(o.inputs[1].second, feed::next);
  ASSERT_EQ(o.normalize.size(), 1U);
  EXPECT_EQ(o.normalize[0].input, "x");
  EXPECT_THAT(o.normalize[0].means, testing::ElementsAre(0.5F, -1));
  EXPECT_THAT(o.normalize[0].deviations, testing::ElementsAre(2, 4));
  EXPECT_EQ(o.schedule, lr_schedule::cosine);
  EXPECT_TRUE(o.resumes && o.resume_from.empty());
  EXPECT_EQ(*o.seed, ~0ull);
  EXPECT_EQ(o.on_nan, nan_policy::skip);
  EXPECT_EQ(o.threads, 3);
  EXPECT_EQ(o.verbosity, 2);
}

TEST(Options, PatternsNameFilesInOrder) {
  temporary_folder folder;
  for (const char *name : {"b.bin", "a.bin", "c.txt", "[x]"})
    folder.write(name, "x");
  options o;
  const std::string pattern = folder / "*.bin," + folder / "[x]", none = folder / "*.npz";
  ASSERT_TRUE(parse({"--data", pattern.c_str()}, o).is_ok());
  // A file that is there is no pattern.
  EXPECT_THAT(o.data, testing::ElementsAre(folder / "a.bin", folder / "b.bin", folder / "[x]"));
  EXPECT_THAT(parse({"--data", none.c_str()}, o).message(), HasSubstr("--data: no file has a name like '"));
}

TEST(Options, ResumeTakesAFolderThatFollows) {
  options o;
  ASSERT_TRUE(parse({"--resume", "dir", "--data", "a"}, o).is_ok());
  EXPECT_EQ(o.resume_from, "dir");
}

TEST(Options, CompiledInSettingsMustAgree) {
  options o;
  EXPECT_TRUE(parse({"--data", "a", "--micro-batches", "4", "--optimizer=adamw", "-n", "2"}, o).is_ok());
  status s = parse({"--data", "a", "--micro-batches", "8"}, o);
  EXPECT_EQ(s.code(), status_code::bad_input);
  EXPECT_THAT(s.message(), HasSubstr("--micro-batches is '8', but this program is compiled for '4'"));
  EXPECT_EQ(parse({"--data", "a", "--optimizer", "sgd"}, o).code(), status_code::bad_input);
  EXPECT_TRUE(parse({"--data", "a", "--precision", "bf16"}, o).is_ok());
  EXPECT_THAT(parse({"--data", "a", "--precision", "f16"}, o).message(),
              HasSubstr("--precision is 'f16', but this program is compiled for 'bf16'"));
  EXPECT_TRUE(parse({"--data", "a", "--average", "micro-batches"}, o).is_ok());
  EXPECT_THAT(parse({"--data", "a", "--average", "tokens"}, o).message(),
              HasSubstr("--average is 'tokens', but this program is compiled for 'micro-batches'"));
  EXPECT_EQ(parse({"--data", "a", "--loss", "x"}, o).code(), status_code::bad_input);
  s = parse({"--data", "a", "--clip-norm", "1"}, o);
  EXPECT_EQ(s.code(), status_code::bad_input);
  EXPECT_THAT(s.message(), HasSubstr("compiled without clipping"));
  EXPECT_TRUE(parse({"--data", "a", "--clip-norm", "0.5"}, o, true).is_ok());
  EXPECT_EQ(o.clip_norm, 0.5);
  for (const char *flag : {"--ema", "--ema-decay=0.5"})
    EXPECT_THAT(parse({"--data", "a", flag}, o).message(), HasSubstr("keeps no moving average"));
}

TEST(Options, WrongFlagsNameTheCause) {
  struct {
    std::vector<const char *> flags;
    status_code code;
    const char *message;
  } cases[] = {
      {{"--stpes", "3"}, status_code::usage, "did you mean --steps?"},
      {{"data.bin"}, status_code::usage, "unexpected argument 'data.bin'"},
      {{"--steps"}, status_code::usage, "--steps needs a value"},
      {{"--data", "F", "--no-checkpoint", "--checkpoint-every", "2"},
       status_code::usage,
       "--checkpoint-every saves checkpoints, --no-checkpoint saves none; give one of them"},
      {{"--data", "F", "--async-save"}, status_code::usage, "none is wanted then; give --checkpoint-every"},
      {{"--steps", "many"}, status_code::usage, "--steps needs an integer, not 'many'"},
      {{"--steps", "-1"}, status_code::bad_input, "it has to be from 0"},
      {{"--lr", "1e-3x"}, status_code::usage, "--lr needs a number"},
      {{"--lr", "nan"}, status_code::usage, "--lr needs a number"},
      {{"--lr", "-1"}, status_code::bad_input, "it has to be at least 0"},
      {{"--betas", "0.9"}, status_code::usage, "two numbers"},
      {{"--betas", "0.9,1"}, status_code::bad_input, "below 1"},
      {{"--lr-schedule", "step"}, status_code::usage, "constant|linear|cosine"},
      {{"--inputs", "a=words"}, status_code::usage, "tokens|next"},
      {{"--inputs", "a=next,a=tokens"}, status_code::bad_input, "both"},
      {{"--normalize", "x=1"}, status_code::usage, "needs NAME=MEANS:DEVIATIONS, not 'x=1'"},
      {{"--normalize", "x=1,2:3"}, status_code::usage, "gives 2 means and 1 deviation for 'x'"},
      {{"--normalize", "x=1:0"}, status_code::bad_input, "of 'x' is 0; it has to be at least"},
      {{"--normalize", "x=1:1", "--normalize", "x=2:2"}, status_code::usage, "names 'x' twice"},
      {{"--bytes=1"}, status_code::usage, "takes no value"},
      {{"--threads", "0"}, status_code::bad_input, "from 1 to 1024"},
      {{"--communicator", "nccl"}, status_code::bad_input, "cuda"},
      {{"--seed", "-4"}, status_code::usage, "natural number"},
      {{"--data", "a,,b"}, status_code::usage, "empty file name"},
      {{"--steps", "3"}, status_code::usage, "--data is missing"},
      {{"--data", "a", "--eval-every", "3"}, status_code::usage, "--eval-data"},
  };
  for (const auto &c : cases) {
    options o;
    status s = parse(c.flags, o);
    EXPECT_EQ(s.code(), c.code) << c.message << ": " << s.message();
    EXPECT_THAT(s.message(), HasSubstr(c.message));
  }
}

TEST(Options, AConfigHoldsAnyOfThemAndFlagsWin) {
  temporary_folder folder;
  std::string path =
      folder.write("c.json", R"({"data": ["a", "b"], "lr": 0.5, "steps": 9, "bytes": true, "profile": false, "o": "out",
                    "seed": 18446744073709551615, "inputs": "x=next", "betas": [0.5, 0.75], "micro-batches": 4})");
  options o;
  status s = parse({"--lr", "0.25", "--config", path.c_str(), "--inputs", "y=tokens"}, o);
  ASSERT_TRUE(s.is_ok()) << s.message();
  EXPECT_THAT(o.data, testing::ElementsAre("a", "b"));
  EXPECT_EQ(o.lr, 0.25);
  EXPECT_EQ(o.steps, 9);
  EXPECT_TRUE(o.bytes && !o.profile);
  EXPECT_EQ(o.run, "out");
  EXPECT_EQ(*o.seed, ~0ull);
  EXPECT_EQ(o.betas.value()[1], 0.75);
  ASSERT_EQ(o.inputs.size(), 1u);
  EXPECT_EQ(o.inputs[0].first, "y");
  ASSERT_TRUE(parse({"--data", "c", "--config", path.c_str()}, o).is_ok());
  EXPECT_THAT(o.data, testing::ElementsAre("c"));
}

TEST(Options, WrongConfigsNameFileAndSetting) {
  temporary_folder folder;
  const std::pair<const char *, const char *> cases[] = {{"{\"stpes\": 1}", "did you mean --steps?"},
                                                         {"{\"lr\": \"fast\"}", "--lr needs a number"},
                                                         {"{\"lr\": {}}", "is no text, number"},
                                                         {"[]", "not a JSON object"},
                                                         {"{", "not JSON"},
                                                         {"{\"micro-batches\": 3}", "compiled for '4'"},
                                                         {"{\"config\": \"x\"}", "no setting"},
                                                         {"{\"--lr\": 1}", "no setting"},
                                                         {"{\"bytes\": 1}", "takes no value"},
                                                         {"{\"data\": [[1]]}", "is no text"},
                                                         {"{\"data\": []}", "is no text"}};
  for (const auto &[text, message] : cases) {
    options o;
    std::string path = folder.write("c.json", text);
    status s = parse({"--data", "a", "--config", path.c_str()}, o);
    EXPECT_EQ(s.code(), status_code::bad_input) << text;
    EXPECT_THAT(s.message(), testing::AllOf(HasSubstr("c.json"), HasSubstr(message)));
  }
}

// The schema is of `windlass train`, which takes what is fixed at emission too.
TEST(Options, TheSchemaNamesEverySetting) {
  json schema;
  status s = parse_json(read_all(WINDLASS_TRAIN_SCHEMA), schema);
  ASSERT_TRUE(s.is_ok()) << s.message();
  std::vector<std::string> ours;
  for (const std::string &key : schema.find("properties")->keys) {
    options o;
    if (status read = parse({("--" + key + "=1").c_str()}, o);
        read.message().find("is fixed when") == std::string::npos)
      ours.push_back(key);
  }
  std::sort(ours.begin(), ours.end());
  EXPECT_EQ(ours, setting_names());
}

TEST(Options, HelpListsEveryFlagWithDefaults) {
  std::string help = help_text(two_ranks());
  for (const char *text : {"--data", "--resume [DIR]", "(default 0.9,0.999)", "2 ranks", "--micro-batches 4"})
    EXPECT_THAT(help, HasSubstr(text));
}
