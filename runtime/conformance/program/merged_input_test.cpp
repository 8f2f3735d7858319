// Inputs of several micro-batches that ranks compute at once.
#include "merged_input.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace windlass::rt;

namespace {

constexpr std::int64_t sizes[] = {2, 3};
constexpr std::int32_t merge = 3;

/// Element i of micro-batch k is 100 * k + i.
class numbered : public data_source {
public:
  status read(std::size_t, std::int64_t k, const tensor_part &local, std::byte *out) override {
    std::vector<std::int64_t> values(6);
    std::iota(values.begin(), values.end(), 100 * k);
    copy_overlap(whole_box({2, 3}), reinterpret_cast<const std::byte *>(values.data()), local, out, 8);
    return ok_status();
  }
  status check(std::int64_t, std::int64_t) const override { return ok_status(); }
  status check_values(std::int64_t) override { return ok_status(); }
  std::int64_t micro_batches() const override { return 100; }
  std::string describe() const override { return "numbers"; }
};

class MergedInput : public testing::Test {
protected:
  MergedInput() {
    j.merge = merge;
    j.inputs = {inputs, 2};
  }

  /// The part that member `rank` of two reads, where `splits` cut the merged input.
  std::vector<std::int64_t> read(std::int32_t input, std::vector<split> splits, std::int32_t rank,
                                 const micro_batch_range &which) {
    const axis axes[] = {{"batch", 2}};
    const span<split> cuts = {splits.data(), static_cast<std::int64_t>(splits.size())};
    merged_input its(j, input, local_part(merged_sizes(j, inputs[input]), cuts, {axes, 1}, rank));
    std::vector<std::int64_t> values(static_cast<std::size_t>(its.elements()), -1);
    numbered data;
    EXPECT_TRUE(its.read(data, 7, which, reinterpret_cast<std::byte *>(values.data())).is_ok());
    return values;
  }

  const input_entry inputs[2] = {{"x", element_type::i64, {sizes, 2}, feed::none, 0},
                                 {"keys", element_type::i64, {sizes, 2}, feed::random, 0}};
  job j;
};

using values = std::vector<std::int64_t>;

TEST_F(MergedInput, MicroBatchesFollowOneAnother) {
  EXPECT_EQ(read(0, {}, 0, {6}),
            (values{600, 601, 602, 603, 604, 605, 700, 701, 702, 703, 704, 705, 800, 801, 802, 803, 804, 805}));
}

TEST_F(MergedInput, RanksCutThroughAMicroBatch) {
  EXPECT_EQ(read(0, {{0, 0, 1}}, 0, {6}), (values{600, 601, 602, 603, 604, 605, 700, 701, 702}));
  EXPECT_EQ(read(0, {{0, 0, 1}}, 1, {6}), (values{703, 704, 705, 800, 801, 802, 803, 804, 805}));
}

TEST_F(MergedInput, RanksHoldRowsOfEachMicroBatch) {
  EXPECT_EQ(read(0, {{0, 0, 3}}, 1, {6}), (values{603, 604, 605, 703, 704, 705, 803, 804, 805}));
}

TEST_F(MergedInput, WhatTheDataLacksIsTheFirstMicroBatch) {
  EXPECT_EQ(read(0, {{0, 0, 3}}, 0, {6, 7}), (values{600, 601, 602, 0, 1, 2, 0, 1, 2}));
}

TEST_F(MergedInput, KeysAreThoseOfEachSample) {
  values one(6), all = read(1, {}, 0, {6});
  for (std::int64_t part = 0; part < merge; ++part) {
    write_dropout_keys(inputs[1], 7, 6 + part, part_of(whole_box({2, 3})), reinterpret_cast<std::byte *>(one.data()));
    EXPECT_EQ(values(all.begin() + part * 6, all.begin() + part * 6 + 6), one);
  }
}

} // namespace
