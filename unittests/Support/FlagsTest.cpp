#include "windlass/Support/Flags.h"

#include <gtest/gtest.h>

#include <optional>

using namespace windlass;

namespace {

std::optional<int64_t> read(llvm::StringRef text, int64_t least = 1) {
  int64_t bytes = -1;
  return parseBytes(text, bytes, least) ? std::optional(bytes) : std::nullopt;
}

constexpr int64_t kGib = int64_t(1) << 30;

TEST(Sizes, HaveUnits) {
  EXPECT_EQ(read("1048577"), (1 << 20) + 1);
  EXPECT_EQ(read("3KiB"), 3 << 10);
  EXPECT_EQ(read("512 MiB"), 512 << 20);
  EXPECT_EQ(read("40GiB"), 40 * kGib);
}

TEST(Sizes, HavePartsOfUnits) {
  EXPECT_EQ(read("1.5GiB"), kGib * 3 / 2);
  EXPECT_EQ(read("0.25KiB"), 256);
  EXPECT_EQ(read("0.001KiB"), 1) << "1.024 bytes";
  EXPECT_EQ(read("1.000000000GiB"), kGib);
  for (llvm::StringRef text : {"1.5", "1.GiB", ".5GiB", "1.-5GiB", "1.5.5GiB", "1.0000000001GiB", "1e3KiB"})
    EXPECT_EQ(read(text), std::nullopt) << text.str();
}

TEST(Sizes, HaveLimits) {
  EXPECT_EQ(read("0"), std::nullopt);
  EXPECT_EQ(read("0", /*least=*/0), 0);
  EXPECT_EQ(read("0GiB", /*least=*/0), 0);
  EXPECT_EQ(read("0.0001KiB"), std::nullopt) << "no whole byte";
  EXPECT_EQ(read("-1", /*least=*/0), std::nullopt);
  EXPECT_EQ(read("1073741824GiB"), int64_t(1) << 60);
  EXPECT_EQ(read("1073741824.5GiB"), std::nullopt);
  EXPECT_EQ(read("1073741825GiB"), std::nullopt);
  EXPECT_EQ(read("9223372036854775807"), std::nullopt);
  EXPECT_EQ(read("99999999999999999999"), std::nullopt);
  EXPECT_EQ(read(""), std::nullopt);
  EXPECT_EQ(read("GiB"), std::nullopt);
}

} // namespace
