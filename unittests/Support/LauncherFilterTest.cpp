#include "windlass/Support/LauncherFilter.h"

#include <gtest/gtest.h>

using namespace windlass;

namespace {

const std::string kRule = std::string(74, '-') + "\n";

/// Returns the output of a filter for a text that comes in pieces of `size` bytes.
struct Filtered {
  std::string passed, own;
  bool hasPassed = false;
  Filtered(const std::string &text, size_t size) {
    LauncherFilter filter([&](llvm::StringRef piece) { passed += piece.str(); });
    for (size_t at = 0; at < text.size(); at += size)
      filter.add(llvm::StringRef(text).substr(at, size));
    filter.finish();
    own = filter.getOwnWords();
    hasPassed = filter.hasPassed();
  }
};

} // namespace

TEST(LauncherFilter, TakesMessagesOutHoweverTheyArrive) {
  const std::string text = "step 1\n" + kRule + "mpirun noticed that\nprocess rank 1 was killed.\n" + kRule +
                           "error: lost -- a rank\n" + kRule + "Primary job terminated\n" + kRule +
                           "\r\x1b[Kstep 2mpirun: Forwarding signal 10 to job\nmpirun: Forwards";
  for (size_t size : {1, 7, 74, 75, 4096}) {
    Filtered filtered(text, size);
    EXPECT_EQ(filtered.passed, "step 1\nerror: lost -- a rank\n\r\x1b[Kstep 2mpirun: Forwards") << size;
    EXPECT_EQ(filtered.own, "mpirun noticed that\nprocess rank 1 was killed.\nPrimary job terminated\n10 to job")
        << size;
  }
}

TEST(LauncherFilter, HandsOnWhatIsIncompleteAtOnce) {
  std::string passed;
  LauncherFilter filter([&](llvm::StringRef piece) { passed += piece.str(); });
  filter.add("step 3/9");
  EXPECT_EQ(passed, "step 3/9");
  filter.add(" --");
  EXPECT_EQ(passed, "step 3/9 "); // could begin a rule
  filter.add("bytes\n");
  EXPECT_EQ(passed, "step 3/9 --bytes\n");
}

TEST(LauncherFilter, KeepsShorterRulesOfTheRanks) {
  const std::string text = std::string(73, '-') + "\nmine\n" + std::string(10, '-');
  for (size_t size : {1, 4096})
    EXPECT_EQ(Filtered(text, size).passed, text) << size;
}

TEST(LauncherFilter, TellsWhetherTheRanksSaidAnything) {
  Filtered filtered(kRule + "There are not enough slots\n" + kRule, 10);
  EXPECT_FALSE(filtered.hasPassed);
  EXPECT_EQ(filtered.passed, "");
  // The text is cut off by the launcher's own end.
  EXPECT_EQ(Filtered(kRule + "There are", 10).own, "There are");
}

TEST(LauncherFilter, HoldsNoMoreBackThanALauncherSays) {
  const std::string text = kRule + std::string(1 << 17, 'x');
  Filtered filtered(text, 4096);
  EXPECT_EQ(filtered.passed, text);
  EXPECT_EQ(filtered.own, "");
}
