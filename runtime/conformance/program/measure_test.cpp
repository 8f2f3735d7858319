// What repeated measurements say; a measuring program of one command.
#include "windlass/rt/emitted.h"
#include "windlass/rt/json.h"
#include "windlass/rt/measure.h"

#include "temporary_folder.h"
#include "windlass/rt/detail/sample.h"

#include "gtest/gtest.h"

using namespace windlass::rt;
using namespace windlass::rt::test;

namespace {

TEST(Measure, TheMedianAndTheDistanceOfTheQuartiles) {
  const sample result = summarize({{5}, {1}, {2}, {4}, {3}}, 5);
  EXPECT_EQ(result.median, 3);
  EXPECT_EQ(result.spread, 2);
  EXPECT_EQ(result.turns, 5);
  EXPECT_EQ(summarize({}, 5).turns, 0);
}

TEST(Measure, InterruptedTurnsCountOnlyWhereThereAreTooFewOthers) {
  EXPECT_EQ(summarize({{9, 3}, {1, 0}, {2, 0}, {3, 0}}, 3).median, 2);
  EXPECT_EQ(summarize({{9, 3}, {1, 0}, {2, 0}, {3, 0}}, 3).turns, 3);
  // Equal ones all count.
  EXPECT_EQ(summarize({{9, 1}, {1, 0}, {3, 1}, {8, 2}}, 2).turns, 3);
}

std::int64_t calls = 0;

status run_gather(context &c, const std::int64_t *offsets, bool) {
  ++calls;
  // Fails for an index outside: those that the driver writes are inside.
  constexpr row_buffer from({0, 0}, element_type::f32, {4, 2}), indices({0, 1}, element_type::i64, {8}),
      to({0, 2}, element_type::f32, {8, 2});
  const buffer_views at(c, offsets);
  return gather(c.get_stream(0), at(to), at(from), at(indices), 0);
}

TEST(Measure, WritesWhatItMeasured) {
  temporary_folder folder;
  const measured_operand operands[] = {
      {element_type::f32, 8, 0, true}, {element_type::i64, 8, 4, true}, {element_type::f32, 16, 0, false}};
  const measured_command commands[] = {{false, {operands, 3}, run_gather, "gather(x)", "gather", 0, 64, false}};
  const measuring m = {1, true, 4096, 0, {commands, 1}, "f32", nullptr};
  std::string out = folder / "out.json", name = "measure", flag = "-o", threads = "--threads", one = "1";
  char *words[] = {name.data(), flag.data(), out.data(), threads.data(), one.data()};
  ASSERT_EQ(run_measuring(m, 5, words), 0);
  EXPECT_GE(calls, 7);
  json written;
  ASSERT_TRUE(parse_json(read_all(out), written).is_ok());
  EXPECT_EQ(written.find("threads")->integer, 1);
  char unknown[] = "--frobnicate";
  words[1] = unknown;
  EXPECT_EQ(run_measuring(m, 3, words), 2);
}

} // namespace
