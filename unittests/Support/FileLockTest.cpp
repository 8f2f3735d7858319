#include "windlass/Support/FileLock.h"

#include "llvm/Support/FileSystem.h"

#include "gtest/gtest.h"

#include <sys/file.h>
#include <unistd.h>

using namespace windlass;

namespace {

class FileLockTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("windlass-lock", folder)); }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }
  std::string file() const { return folder.str().str() + "/entry.lock"; }
  llvm::SmallString<128> folder;
};

TEST_F(FileLockTest, WaitsNoLongerThanItIsTold) {
  FileLock held, other;
  ASSERT_TRUE(held.tryFile(file()));
  std::string told;
  rt::status taken = other.take(file(), 0, [&](llvm::StringRef holder) { told = holder.str(); });
  EXPECT_FALSE(taken.is_ok());
  EXPECT_NE(taken.message().find("process " + std::to_string(getpid())), std::string::npos) << taken.message();
  taken = other.take(file(), 1, [&](llvm::StringRef holder) { told = holder.str(); });
  EXPECT_FALSE(taken.is_ok());
  EXPECT_EQ(told, "process " + std::to_string(getpid()));
  held.release();
  EXPECT_TRUE(other.take(file(), 0, [](llvm::StringRef) { FAIL() << "nobody holds it"; }).is_ok());
}

TEST_F(FileLockTest, FollowsNoLink) {
  ASSERT_EQ(symlink("/etc/passwd", file().c_str()), 0);
  FileLock lock;
  EXPECT_FALSE(lock.tryFile(file()));
  EXPECT_FALSE(lock.take(file(), 0, [](llvm::StringRef) {}).is_ok());
}

TEST_F(FileLockTest, SharesFolders) {
  std::string path = folder.str().str();
  FileLock one, two, alone;
  EXPECT_TRUE(one.tryFolder(path, /*shared=*/true));
  EXPECT_TRUE(two.tryFolder(path, /*shared=*/true));
  EXPECT_FALSE(alone.tryFolder(path, /*shared=*/false));
  one.release();
  two = FileLock();
  EXPECT_TRUE(alone.tryFolder(path, /*shared=*/false));
  EXPECT_FALSE(one.tryFolder(path, /*shared=*/true));
  EXPECT_FALSE(one.tryFolder(path + "/none", /*shared=*/true));
}

} // namespace
