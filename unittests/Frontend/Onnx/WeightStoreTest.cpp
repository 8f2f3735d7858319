// The places that the bytes of weights may come from.
#include "windlass/Frontend/Onnx/WeightStore.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass;
using testing::HasSubstr;
namespace fs = llvm::sys::fs;

namespace {

struct WeightStoreTest : testing::Test {
  void SetUp() override { ASSERT_FALSE(fs::createUniqueDirectory("windlass-weights", folder)); }
  void TearDown() override { (void)fs::remove_directories(folder); }

  std::string at(llvm::StringRef name) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return std::string(path);
  }
  void write(llvm::StringRef name, llvm::StringRef text) {
    (void)fs::create_directories(llvm::sys::path::parent_path(at(name)));
    std::error_code code;
    llvm::raw_fd_ostream out(at(name), code);
    ASSERT_FALSE(code);
    out << text;
  }
  std::string refusal(llvm::StringRef location) {
    auto resolved = resolveExternalData(folder, location);
    return resolved ? "accepted" : llvm::toString(resolved.takeError());
  }
  WeightStore store(llvm::StringRef message) {
    return WeightStore(llvm::MemoryBuffer::getMemBufferCopy(message), std::string(folder));
  }
  llvm::SmallString<128> folder;
};

TEST_F(WeightStoreTest, ReadsTheMessageAndWhatWasAppended) {
  WeightStore weights = store("0123456789");
  int64_t offset = weights.append(llvm::ArrayRef<char>{'a', 'b', 'c'});
  EXPECT_EQ(offset, 10);
  auto inside = weights.getMessageBytes(2, 3);
  ASSERT_TRUE(bool(inside));
  EXPECT_EQ(std::string(inside->begin(), inside->end()), "234");
  auto appended = weights.getMessageBytes(offset + 1, 2);
  ASSERT_TRUE(bool(appended));
  EXPECT_EQ(std::string(appended->begin(), appended->end()), "bc");
}

TEST_F(WeightStoreTest, RefusesRangesThatAreNotThere) {
  WeightStore weights = store("0123456789");
  weights.append(llvm::ArrayRef<char>{'a'});
  // Over the end of the message into what was appended is not contiguous.
  for (auto [offset, length] : {std::pair<int64_t, int64_t>(8, 3), {11, 1}, {-1, 1}, {0, -1}, {INT64_MAX, INT64_MAX}}) {
    auto bytes = weights.getMessageBytes(offset, length);
    EXPECT_FALSE(bool(bytes));
    llvm::consumeError(bytes.takeError());
  }
}

TEST_F(WeightStoreTest, ReadsExternalFilesWithinTheirSize) {
  write("w.bin", "0123456789");
  WeightStore weights = store("");
  auto bytes = weights.read("w.bin", 4, 3);
  ASSERT_TRUE(bool(bytes));
  EXPECT_EQ(std::string(bytes->begin(), bytes->end()), "456");
  auto beyond = weights.read("w.bin", 8, 3);
  ASSERT_FALSE(bool(beyond));
  EXPECT_THAT(llvm::toString(beyond.takeError()), HasSubstr("has 10 bytes but a tensor needs 3 from byte 8"));
  auto missing = weights.read("none.bin", 0, 1);
  ASSERT_FALSE(bool(missing));
  EXPECT_THAT(llvm::toString(missing.takeError()), HasSubstr("is missing"));
  EXPECT_FALSE(weights.isPresent("none.bin"));
  EXPECT_TRUE(weights.isPresent("w.bin"));
}

TEST_F(WeightStoreTest, StaysBelowTheFolder) {
  EXPECT_THAT(refusal("/etc/passwd"), HasSubstr("absolute"));
  EXPECT_THAT(refusal("../w.bin"), HasSubstr("'..'"));
  EXPECT_THAT(refusal("a/../../w.bin"), HasSubstr("'..'"));
  EXPECT_THAT(refusal(""), HasSubstr("not a relative path"));
  EXPECT_THAT(refusal("a\\b"), HasSubstr("not a relative path"));
  EXPECT_EQ(refusal("missing.bin"), "accepted");
  ASSERT_FALSE(fs::create_link("/etc/passwd", at("link.bin")));
  EXPECT_THAT(refusal("link.bin"), HasSubstr("symbolic link"));
  ASSERT_FALSE(fs::create_link("nowhere", at("dangling.bin")));
  EXPECT_THAT(refusal("dangling.bin"), HasSubstr("symbolic link to nothing"));
  write("sub/w.bin", "x");
  EXPECT_EQ(refusal("sub/w.bin"), "accepted");
  EXPECT_THAT(refusal("sub"), HasSubstr("not a regular file"));
}

TEST_F(WeightStoreTest, FollowsLinksIntoTheBlobsOfACache) {
  write("models/blobs/1a", "x");
  write("models/other/1a", "x");
  write("models/snapshots/main/here", "");
  llvm::SmallString<128> snapshot(at("models/snapshots/main"));
  ASSERT_FALSE(fs::create_link("../../blobs/1a", at("models/snapshots/main/good.bin")));
  ASSERT_FALSE(fs::create_link("../../other/1a", at("models/snapshots/main/bad.bin")));
  auto good = resolveExternalData(snapshot, "good.bin");
  EXPECT_TRUE(bool(good));
  llvm::consumeError(good.takeError());
  auto bad = resolveExternalData(snapshot, "bad.bin");
  EXPECT_FALSE(bool(bad));
  llvm::consumeError(bad.takeError());
}

} // namespace
