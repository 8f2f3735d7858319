#include "windlass/Profile/Profile.h"
#include "windlass/Profile/CostModel.h"
#include "windlass/Profile/Report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass;
using testing::HasSubstr;

namespace {

/// Makes a profile of matmuls that reach 10 GFLOP/s, and of all-reduces between two ranks that take 10 us and 1 ns for
/// each byte.
Profile makeProfile() {
  Profile profile;
  profile.machine = "a machine";
  profile.cluster = llvm::cantFail(findCluster("cpu:4", 1 << 30));
  for (double flops : {1e6, 1e7, 1e8, 1e9})
    profile.commands["matmul " + std::to_string(flops)] = {
        {flops, flops / 100, false, "matmul"}, {flops / 1e10, flops / 1e12, 10}, {flops / 2e10, 0, 10}};
  for (int64_t bytes : {1000, 10000, 100000})
    profile.collectives[{"all_reduce", 2, bytes}] = {10e-6 + static_cast<double>(bytes) * 1e-9, 1e-6, 10};
  return profile;
}

std::string getError(llvm::StringRef text) {
  llvm::Expected<Profile> profile = readProfile(text);
  return profile ? "" : llvm::toString(profile.takeError());
}

std::string replace(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ProfileTest, IsWrittenAndReadAsTheSame) {
  std::string text = writeProfile(makeProfile());
  llvm::Expected<Profile> profile = readProfile(text);
  ASSERT_TRUE(bool(profile)) << llvm::toString(profile.takeError());
  EXPECT_EQ(writeProfile(*profile), text);
  EXPECT_EQ(profile->commands.size(), 4u);
  EXPECT_EQ(profile->collectives.size(), 3u);
  EXPECT_EQ(findDifference(profile->cluster, makeProfile().cluster), "");
  EXPECT_FALSE(profile->device);
}

TEST(ProfileTest, MayHoldAModelOfTheDevice) {
  Profile written = makeProfile();
  written.device = {0.5, 1e9, 0.25, 3, 1e-3, 2e-3, 4e-3, 0.2};
  std::string text = writeProfile(written);
  llvm::Expected<Profile> profile = readProfile(text);
  ASSERT_TRUE(bool(profile)) << llvm::toString(profile.takeError());
  EXPECT_EQ(writeProfile(*profile), text);
  EXPECT_EQ(profile->device->productHalfFlops, 1e9);
  EXPECT_EQ(profile->device->updateIssueSeconds, 4e-3);
  EXPECT_THAT(getError(replace(text, "\"product_share\"", "\"product_shares\"")),
              HasSubstr("product_share is missing"));
  EXPECT_THAT(getError(replace(text, "\"memory_share\": 0.25", "\"memory_share\": 0")), HasSubstr("memory_share"));
  EXPECT_THAT(getError(replace(text, "\"memory_share\": 0.25", "\"memory_share\": 1.5")), HasSubstr("memory_share"));
  EXPECT_THAT(getError(replace(text, "\"launch_seconds\": ", "\"launch_seconds\": -")), HasSubstr("launch_seconds"));
}

TEST(ProfileTest, MayHoldHowProductsAreComputed) {
  Profile written = makeProfile();
  written.products = ProductChoices{
      "a device", "a library 1.2", {{"f32 NN f32 2x3x4", {{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1e-5, 2e-5}}}, {}};
  std::string text = writeProfile(written);
  llvm::Expected<Profile> profile = readProfile(text);
  ASSERT_TRUE(bool(profile)) << llvm::toString(profile.takeError());
  EXPECT_EQ(writeProfile(*profile), text);
  EXPECT_EQ(profile->products->choices.begin()->second.algorithm.back(), 9);
  EXPECT_THAT(getError(replace(text, "\"library\":", "\"libraries\":")), HasSubstr("products.library is missing"));
  EXPECT_THAT(getError(replace(text, "\"first_seconds\":", "\"first_seconds\":-")), HasSubstr("first_seconds"));
  for (const char *number : {"", "-1,", "2147483648,", "1.5,", "0,1,"})
    EXPECT_THAT(getError(replace(text, "1,2,3,4", std::string(number) + "2,3,4")),
                HasSubstr("algorithm must be 9 integers from 0 to 2147483647"));
}

TEST(ProfileTest, MayHoldWhatIsComputedWithProducts) {
  Profile written = makeProfile();
  written.products = ProductChoices{"a device", "a library 1.2", {}, {{"matmul_bias(f32[2x3])", {1e-5, 2e-5}}}};
  std::string text = writeProfile(written);
  llvm::Expected<Profile> profile = readProfile(text);
  ASSERT_TRUE(bool(profile)) << llvm::toString(profile.takeError());
  EXPECT_EQ(writeProfile(*profile), text);
  EXPECT_EQ(profile->products->epilogues.begin()->second.apartSeconds, 2e-5);
  EXPECT_THAT(getError(replace(text, "\"epilogues\": {", "\"epilogues\": [], \"_\": {")),
              HasSubstr("products.epilogues"));
  EXPECT_THAT(getError(replace(text, "\"apart_seconds\":", "\"apart_seconds\":-")), HasSubstr("apart_seconds"));
  EXPECT_THAT(getError(replace(text, "\"apart_seconds\":", "\"others_seconds\":")),
              HasSubstr("apart_seconds is missing"));
}

TEST(ProfileTest, MayHoldWhoComputesAttentions) {
  Profile written = makeProfile();
  written.attention =
      AttentionChoices{"a device", "a library 1.2", {{"attention(bf16[1x2x8x8])", {1e-5, 2e-5, 1 << 20}}}};
  std::string text = writeProfile(written);
  llvm::Expected<Profile> profile = readProfile(text);
  ASSERT_TRUE(bool(profile)) << llvm::toString(profile.takeError());
  EXPECT_EQ(writeProfile(*profile), text);
  EXPECT_EQ(profile->attention->choices.begin()->second.workspaceBytes, 1 << 20);
  EXPECT_THAT(getError(replace(text, "\"library\":", "\"libraries\":")), HasSubstr("attention.library is missing"));
  EXPECT_THAT(getError(replace(text, "\"choices\": {", "\"choices\": [], \"_\": {")), HasSubstr("attention"));
  EXPECT_THAT(getError(replace(text, "\"own_seconds\":", "\"own_seconds\":-")), HasSubstr("own_seconds"));
  EXPECT_THAT(getError(replace(text, "\"own_seconds\":", "\"others_seconds\":")), HasSubstr("own_seconds is missing"));
  for (const char *bytes : {"-1", "1.5", "1099511627777", "\"many\"", "null"})
    EXPECT_THAT(getError(replace(text, "\"workspace_bytes\":1048576", "\"workspace_bytes\":" + std::string(bytes))),
                HasSubstr("workspace_bytes"));
}

TEST(ProfileTest, RefusesWhatIsDoubtful) {
  std::string text = writeProfile(makeProfile());
  EXPECT_THAT(getError(replace(text, "\"version\": 1\n}", "\"version\": 2\n}")), HasSubstr("version"));
  EXPECT_THAT(getError(replace(text, "\"threads\"", "\"thread\"")), HasSubstr("threads"));
  EXPECT_THAT(getError(replace(text, "\"machine\":", "\"machines\": 1, \"machine\":")), HasSubstr("'machine'"));
  EXPECT_THAT(getError(replace(text, "\"machine\":", "\"machine\": \"a\", \"machine\":")), HasSubstr("machine"));
  EXPECT_THAT(getError(replace(text, "all_reduce", "all_reduces")), HasSubstr("kinds are"));
  EXPECT_THAT(getError(replace(text, "\"members\":2", "\"members\":1")), HasSubstr("members"));
  EXPECT_THAT(getError(replace(text, "\"bytes\":10000,", "\"bytes\":1000,")), HasSubstr("an earlier all_reduce"));
  EXPECT_THAT(getError(replace(text, "\"median_seconds\":1", "\"median_seconds\":-1")), HasSubstr("median_seconds"));
  EXPECT_THAT(getError(replace(text, "\"flops\":1", "\"flops\":-1")), HasSubstr("flops"));
  EXPECT_THAT(getError("[]"), HasSubstr("object"));
}

TEST(ProfileTest, SaysNothingAboutOtherDevices) {
  Profile profile = makeProfile();
  EXPECT_EQ(findMismatch(profile, llvm::cantFail(findCluster("cpu:4", 1 << 20))), "");
  EXPECT_THAT(findMismatch(profile, llvm::cantFail(findCluster("cpu:2", 1 << 30))),
              HasSubstr("4 ranks on a host, but the cluster's have 2"));
  EXPECT_THAT(findMismatch(profile, llvm::cantFail(findCluster("h200:4", 1 << 30))),
              HasSubstr("back end 'cpu', but the cluster's is 'cuda'"));
}

TEST(ProfileTest, CostsAreMeasuredElseFittedElseAnalytic) {
  Profile profile = makeProfile();
  CostModel costs(profile.cluster, &profile), analytic(profile.cluster);
  OperatorWork work{3e8, 3e6, false, "matmul"};
  Cost measured = costs.getCost("matmul " + std::to_string(1e8), work);
  EXPECT_EQ(measured.source, CostSource::Measured);
  EXPECT_EQ(measured.picoseconds, 10'000'000'000);
  EXPECT_NEAR(*measured.errorShare, 0.01, 1e-9);
  // Between entries of one rate: the rate.
  Cost fitted = costs.getCost("another", work);
  EXPECT_EQ(fitted.source, CostSource::Fitted);
  EXPECT_NEAR(static_cast<double>(fitted.picoseconds), 30e9, 3e9);
  EXPECT_LT(*fitted.errorShare, 0.5);
  work.family = "softmax";
  EXPECT_EQ(costs.getCost("another", work).source, CostSource::Analytic);
  EXPECT_FALSE(costs.getCost("another", work).errorShare) << "nothing was measured for it";
  EXPECT_EQ(costs.getPicoseconds(work), analytic.getPicoseconds(work));
}

static CollectiveWork makeWork(const char *kind, int64_t members, double bytes) {
  return {kind, GroupShape::ofNeighbours(members), bytes};
}

TEST(ProfileTest, CollectivesFollowTheirLaddersAndOtherGroupsTheirLaw) {
  Profile profile = makeProfile();
  CostModel costs(profile.cluster, &profile), analytic(profile.cluster);
  Cost between = costs.getCost(makeWork("all_reduce", 2, 55000));
  EXPECT_EQ(between.source, CostSource::Measured);
  EXPECT_NEAR(static_cast<double>(between.picoseconds), 65e6, 1e3);
  EXPECT_EQ(costs.getPicoseconds(makeWork("all_reduce", 2, 10)), 11'000'000);
  Cost beyond = costs.getCost(makeWork("all_reduce", 2, 200000));
  EXPECT_EQ(beyond.source, CostSource::Fitted);
  EXPECT_NEAR(static_cast<double>(beyond.picoseconds), 220e6, 1e3);
  // The cost of 2 (n-1) messages of 5 us each, and 2 (n-1)/n of the payload at 1 ns a byte.
  Cost wider = costs.getCost(makeWork("all_reduce", 4, 1000));
  EXPECT_EQ(wider.source, CostSource::Fitted);
  EXPECT_NEAR(static_cast<double>(wider.picoseconds), 31.5e6, 1e4);
  CollectiveWork gather = makeWork("all_gather", 2, 1000);
  EXPECT_EQ(costs.getPicoseconds(gather), analytic.getPicoseconds(gather));
  EXPECT_EQ(costs.getCost(gather).source, CostSource::Analytic);
}

TEST(ProfileTest, TheReportSaysHowFarModelsAreOff) {
  std::vector<FamilyReport> reports = reportProfile(makeProfile());
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].family, "all_reduce of 2");
  EXPECT_NEAR(reports[0].fitErrorShare, 0, 1e-6);
  EXPECT_EQ(reports[1].family, "matmul");
  EXPECT_EQ(reports[1].entries, 4);
  EXPECT_NEAR(reports[1].aloneSpeed, 2, 1e-9);
  EXPECT_NEAR(reports[1].spreadShare, 0.01, 1e-9);
  EXPECT_GT(reports[1].analyticErrorShare, 0.5);
}

} // namespace
