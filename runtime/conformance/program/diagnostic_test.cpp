// Codes of errors: what a status carries, and that ranks agree on it.
#include "windlass/rt/context.h"
#include "windlass/rt/status.h"

#include "control.h"
#include "windlass/rt/transport.h"

#include <gmock/gmock.h>

#include <thread>

using namespace windlass::rt;

TEST(Diagnostics, TheFirstKindStays) {
  status s = bad_input("x").as(diagnostic::data_value).as(diagnostic::data_file);
  EXPECT_EQ(s.kind(), diagnostic::data_value);
  EXPECT_EQ(s.code(), status_code::bad_input);
  EXPECT_EQ(ok_status().as(diagnostic::data_file).kind(), diagnostic::none);
}

TEST(Diagnostics, EveryExitCodeHasAKindOfItsOwn) {
  EXPECT_EQ(bad_input("x").kind(), diagnostic::input);
  EXPECT_EQ(internal_error("x").kind(), diagnostic::internal);
  EXPECT_EQ(status(status_code::usage, "x").kind(), diagnostic::usage);
  EXPECT_EQ(status(status_code::stopped, "x").kind(), diagnostic::rank_lost);
  EXPECT_EQ(status(status_code::interrupted, "x").kind(), diagnostic::interrupted);
}

TEST(Diagnostics, CodesHaveFourDigits) {
  EXPECT_EQ(diagnostic_code(diagnostic::usage), "WL0001");
  EXPECT_EQ(diagnostic_code(diagnostic::internal), "WL0999");
}

TEST(Diagnostics, AnArenaThatCannotBe) {
  arena a;
  EXPECT_EQ(a.allocate(std::int64_t(1) << 55, "test").kind(), diagnostic::allocation);
}

TEST(Diagnostics, RanksAgreeOnTheKindToo) {
  auto worlds = make_local_transports(2);
  status seen[2];
  auto run = [&](std::size_t rank) {
    control ranks;
    ASSERT_TRUE(ranks.create(*worlds[rank]).is_ok());
    seen[rank] = ranks.agree(rank == 1 ? bad_input("short").as(diagnostic::data_short) : ok_status());
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  for (const status &each : seen) {
    EXPECT_EQ(each.kind(), diagnostic::data_short);
    EXPECT_EQ(each.message(), "short");
  }
}
