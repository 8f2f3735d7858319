// Folders that are ours: what somebody else put under the names that we use is never followed, and never written
// through.
#include "windlass/rt/file.h"
#include "windlass/rt/folder.h"

#include "temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

/// A folder of ours, and outside of it a folder with a file.
class Folder : public testing::Test {
protected:
  Folder() {
    fs::create_directories(root / "own");
    fs::create_directories(root / "outside");
    victim = root.write("outside/victim", "kept");
    EXPECT_TRUE(own.open(root / "own").is_ok());
  }

  void expect_untouched() {
    EXPECT_EQ(read_all(victim), "kept");
    EXPECT_EQ(std::distance(fs::directory_iterator(root / "outside"), fs::directory_iterator()), 1);
  }

  temporary_folder root;
  std::string victim;
  folder own;
};

} // namespace

TEST_F(Folder, RemovingALinkLeavesItsTarget) {
  fs::create_directory_symlink(root / "outside", root / "own/.step-000009.partial");
  ASSERT_TRUE(own.remove(".step-000009.partial").is_ok());
  EXPECT_FALSE(fs::exists(fs::symlink_status(root / "own/.step-000009.partial")));
  expect_untouched();
}

TEST_F(Folder, RemovingAFolderRemovesLinksInIt) {
  fs::create_directories(root / "own/inner");
  fs::create_symlink(victim, root / "own/inner/file");
  fs::create_directory_symlink(root / "outside", root / "own/inner/folder");
  ASSERT_TRUE(own.remove("inner").is_ok());
  EXPECT_FALSE(own.holds("inner"));
  EXPECT_TRUE(own.remove("inner").is_ok()) << "a missing one is no error";
  expect_untouched();
}

TEST_F(Folder, FilesAreNotWrittenThroughLinks) {
  for (bool is_hard : {false, true})
    for (auto start : {&output_file::create, &output_file::append, &output_file::replace}) {
      fs::remove(root / "own/log");
      is_hard ? fs::create_hard_link(victim, root / "own/log") : fs::create_symlink(victim, root / "own/log");
      output_file file;
      ASSERT_TRUE((file.*start)(own, "log").is_ok());
      ASSERT_TRUE(file.write("new").is_ok());
      ASSERT_TRUE(file.finish().is_ok());
      EXPECT_EQ(read_all(root / "own/log"), "new");
      EXPECT_TRUE(own.holds_file("log"));
      expect_untouched();
    }
}

TEST_F(Folder, ANamedPipeIsReplaced) {
  for (auto start : {&output_file::create, &output_file::append}) {
    fs::remove(root / "own/log");
    ASSERT_EQ(mkfifo((root / "own/log").c_str(), 0600), 0);
    output_file file;
    ASSERT_TRUE((file.*start)(own, "log").is_ok());
    EXPECT_TRUE(own.holds_file("log"));
  }
}

TEST_F(Folder, AFileOfOursIsContinued) {
  root.write("own/log", "one ");
  output_file file;
  ASSERT_TRUE(file.append(own, "log").is_ok());
  ASSERT_TRUE(file.write("two").is_ok());
  ASSERT_TRUE(file.finish().is_ok());
  EXPECT_EQ(read_all(root / "own/log"), "one two");
}

TEST_F(Folder, LinksAreNotEnteredOrRead) {
  fs::create_directory_symlink(root / "outside", root / "own/logs");
  fs::create_symlink(victim, root / "own/manifest.json");
  folder inner;
  EXPECT_THAT(own.enter("logs", inner).message(), HasSubstr("is a symbolic link"));
  EXPECT_THAT(own.make("logs", inner).message(), HasSubstr("is a symbolic link"));
  input_file file;
  EXPECT_FALSE(file.open(own, "manifest.json").is_ok());
  EXPECT_TRUE(file.open(root / "own/manifest.json").is_ok()) << "a path is the user's";
}

TEST_F(Folder, TheUserMayReachItByALink) {
  fs::create_directory_symlink(root / "own", root / "shortcut");
  folder again;
  ASSERT_TRUE(again.make(root / "shortcut").is_ok());
  ASSERT_TRUE(replace_file(again, "a", "text").is_ok());
  EXPECT_EQ(read_all(root / "own/a"), "text");
  ASSERT_TRUE(replace_file(root / "shortcut/b", "text").is_ok());
  EXPECT_EQ(read_all(root / "own/b"), "text");
}

TEST_F(Folder, WhatIsNotFinishedLeavesNothing) {
  root.write("own/a", "before");
  {
    output_file file;
    ASSERT_TRUE(file.replace(own, "a").is_ok());
    ASSERT_TRUE(file.write("after").is_ok());
  }
  std::vector<std::string> names;
  ASSERT_TRUE(own.list(names).is_ok());
  EXPECT_THAT(names, testing::ElementsAre("a"));
  EXPECT_EQ(read_all(root / "own/a"), "before");
}

TEST_F(Folder, TemporaryNamesAreNotGuessedAndAreSwept) {
  std::vector<std::string> names;
  {
    output_file first, second;
    ASSERT_TRUE(first.replace(own, "a").is_ok());
    ASSERT_TRUE(second.replace(own, "a").is_ok());
    ASSERT_TRUE(own.list(names).is_ok());
    ASSERT_EQ(names.size(), 2u);
  }
  for (const std::string &name : names) {
    EXPECT_TRUE(is_temporary_name(name)) << name;
    fs::create_symlink(victim, root / ("own/" + name));
  }
  for (const char *name : {".a.partial", ".step-000009.partial", "a.0123456789abcdef.partial",
                           ".0123456789abcdef.partial", ".a.0123456789abcdeg.partial"}) {
    EXPECT_FALSE(is_temporary_name(name)) << name;
    root.write(std::string("own/") + name, "");
  }
  ASSERT_TRUE(own.remove_temporaries().is_ok());
  for (const std::string &name : names)
    EXPECT_FALSE(own.holds(name)) << name;
  ASSERT_TRUE(own.list(names).is_ok());
  EXPECT_EQ(names.size(), 5u);
  expect_untouched();
}

TEST_F(Folder, LongNamesAndDeepFoldersAreMade) {
  folder deep;
  ASSERT_TRUE(deep.make(root / "a/b/../c/").is_ok());
  const std::string name(255, 'x');
  const status wrote = replace_file(deep, name, "text");
  ASSERT_TRUE(wrote.is_ok()) << wrote.message();
  EXPECT_EQ(read_all(root / ("a/c/" + name)), "text");
  EXPECT_THAT(deep.make(victim).message(), HasSubstr("a file of that name exists"));
}

TEST_F(Folder, LinesComeOneByOne) {
  std::string text = "one\n\n" + std::string(100, 'l') + "\n" + std::string((1 << 20) - 8, 'w') + "\nlast";
  input_file file;
  ASSERT_TRUE(file.open(root.write("lines", text)).is_ok());
  std::vector<std::string> lines;
  auto keep = [&](std::string_view line) {
    lines.emplace_back(line);
    return ok_status();
  };
  ASSERT_TRUE(for_each_line(file, 100, keep).is_ok());
  EXPECT_THAT(lines, testing::ElementsAre("one", "", std::string(100, 'l'), "", "last"));
  lines.clear();
  ASSERT_TRUE(for_each_line(file, 99, keep).is_ok());
  EXPECT_THAT(lines, testing::ElementsAre("one", "", "", "", "last"));
}
