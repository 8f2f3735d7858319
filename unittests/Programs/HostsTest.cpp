#include "windlass/Programs/Hosts.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass;
using testing::HasSubstr;

/// Returns the list that `text` is read as, or the error.
static std::string read(llvm::StringRef text) {
  auto hosts = readHosts(text);
  return hosts ? listOf(*hosts) : llvm::toString(hosts.takeError());
}

/// Reads a host file of that content.
static std::string readFile(llvm::StringRef content) {
  llvm::SmallString<64> path;
  int file = -1;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("hosts", "", file, path));
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << content;
  std::string result = read(path);
  EXPECT_FALSE(llvm::sys::fs::remove(path));
  return result;
}

TEST(Hosts, AListNamesRanks) {
  EXPECT_EQ(read("node1:4,node2:2"), "node1:4,node2:2");
  EXPECT_EQ(read("a,10.0.0.7"), "a:1,10.0.0.7:1");
}

TEST(Hosts, AFileHasALineForEach) {
  EXPECT_EQ(readFile("# rack 7\n\nnode1 slots=4 # the fast one\nnode2\t slots=2\r\nnode3\n"),
            "node1:4,node2:2,node3:1");
  EXPECT_THAT(readFile("# none\n"), HasSubstr("names no host"));
  EXPECT_THAT(readFile("a slots=2\nb max_slots=4\n"), HasSubstr("line 2: has 'max_slots=4' behind the host 'b'"));
  EXPECT_THAT(read("./none"), HasSubstr("cannot read the host file './none'"));
}

TEST(Hosts, ANameIsNoCommand) {
  for (const char *text : {"", ",", "a,", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a\nb", "::1", "user@a"})
    EXPECT_THAT(read(text), HasSubstr("is no name or IPv4 address of a host")) << text;
  EXPECT_THAT(readFile("-v slots=2\n"), HasSubstr("line 1: '-v' is no name or IPv4 address of a host"));
}

TEST(Hosts, RanksAreCounted) {
  for (const char *text : {"a:0", "a:", "a:-1", "a:x", "a:1:2", "a:65537", "a:99999999999999999999"})
    EXPECT_THAT(read(text), HasSubstr("which is no number from 1 to 65536")) << text;
  EXPECT_THAT(read("a:2,b:2,a:1"), HasSubstr("the host 'a' is named twice"));
  EXPECT_THAT(read("a:65536,b:1"), HasSubstr("more than 65536 ranks"));
}

TEST(Hosts, ThisMachineIsNotAsked) {
  EXPECT_TRUE(checkHosts({{"localhost", 2}}).is_ok());
  EXPECT_TRUE(checkHostsSee({{"127.0.0.1", 2}}, "/none").is_ok());
}
