// Checkpoints that are written beside the steps.
#include "windlass/rt/file.h"

#include "temporary_folder.h"
#include "test_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

using namespace windlass::rt;
using namespace windlass::rt::test;

namespace {

class AsyncSave : public testing::Test {
protected:
  AsyncSave() {
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += "a stitch in time saves nine; ";
    data = folder.write("text.txt", text);
  }

  run_result train(int ranks, const std::string &name, std::vector<std::string> more) {
    std::vector<std::string> flags = {"--data", data, "--bytes", "--init", "random", "-o", folder / name};
    flags.insert(flags.end(), more.begin(), more.end());
    return run(bigram_program(ranks), flags);
  }

  /// Returns the bytes of all files of a run's checkpoints, by path.
  std::map<std::string, std::string> saved_files(const std::string &name) {
    std::map<std::string, std::string> out;
    const std::string root = folder / (name + "/checkpoints");
    for (const auto &entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.is_regular_file())
        out[std::filesystem::relative(entry.path(), root).string()] = read_all(entry.path().string());
    return out;
  }

  temporary_folder folder;
  std::string data;
};

} // namespace

TEST_F(AsyncSave, LeavesTheFilesOfSavesInTurn) {
  for (const int ranks : {1, 2}) {
    const std::string in_turn = "in-turn-" + std::to_string(ranks), beside = "beside-" + std::to_string(ranks);
    std::vector<std::string> more = {"--steps", "7", "--checkpoint-every", "2", "--checkpoint-initial", "--keep", "3"};
    ASSERT_EQ(train(ranks, in_turn, more).code, 0);
    more.push_back("--async-save");
    const run_result result = train(ranks, beside, more);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err, testing::HasSubstr("--async-save keeps a copy of"));
    const std::map<std::string, std::string> files = saved_files(beside);
    EXPECT_EQ(files, saved_files(in_turn));
    EXPECT_EQ(files.count("step-000004/manifest.json") + files.count("step-000007/manifest.json"), 2u);
  }
}

TEST_F(AsyncSave, OutlivesALossThatIsNotFinite) {
  const run_result result = train(1, "r", {"--steps", "9", "--checkpoint-initial", "--async-save", "--lr", "1e38"});
  EXPECT_EQ(result.code, 6) << result.err;
  EXPECT_EQ(saved_files("r").count("step-000000/manifest.json"), 1u);
}
