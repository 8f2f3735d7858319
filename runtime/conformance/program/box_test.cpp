// Parts of tensors: which elements a rank holds under any splits, and where.
#include "box.h"

#include "windlass/rt/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

using namespace windlass::rt;
using testing::HasSubstr;

namespace {

struct layout_case {
  const char *name;
  std::vector<std::int64_t> sizes;
  std::vector<axis> axes;
  std::vector<split> splits;
};

span<split> splits_of(const layout_case &c) { return {c.splits.data(), static_cast<std::int64_t>(c.splits.size())}; }
span<axis> axes_of(const layout_case &c) { return {c.axes.data(), static_cast<std::int64_t>(c.axes.size())}; }

status check(const layout_case &c) {
  return check_splits("w", {c.sizes.data(), static_cast<std::int64_t>(c.sizes.size())}, splits_of(c), axes_of(c));
}

/// Whether the splits of dims leave the rank the element, by the definition of `split`.
bool holds(const layout_case &c, std::int32_t rank, std::int64_t element) {
  std::vector<std::int64_t> index(c.sizes.size());
  for (std::size_t i = index.size(); i-- > 0; element /= c.sizes[i])
    index[i] = element % c.sizes[i];
  std::vector<std::int32_t> coordinates = mesh_coordinates(axes_of(c), rank);
  for (const split &cut : c.splits) {
    const std::size_t dim = static_cast<std::size_t>(cut.dim), which = static_cast<std::size_t>(cut.axis);
    if (cut.dim != flat_dim &&
        index[dim] / (c.sizes[dim] / (cut.blocks * c.axes[which].size)) % c.axes[which].size != coordinates[which])
      return false;
  }
  return true;
}

/// The rank's range of what the splits of dims leave, filled up with zeros.
std::vector<float> range_of(const layout_case &c, std::int32_t rank, std::vector<float> left) {
  std::vector<std::int32_t> coordinates = mesh_coordinates(axes_of(c), rank);
  std::size_t range = 0, ranges = 1;
  for (const split &cut : c.splits) // the cases name outer axes first
    if (cut.dim == flat_dim) {
      const std::size_t which = static_cast<std::size_t>(cut.axis),
                        members = static_cast<std::size_t>(c.axes[which].size);
      range = range * members + static_cast<std::size_t>(coordinates[which]);
      ranges *= members;
    }
  const std::size_t length = (left.size() + ranges - 1) / ranges;
  left.resize(length * ranges, 0);
  const auto begin = left.begin() + static_cast<std::ptrdiff_t>(range * length);
  return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

} // namespace

TEST(Box, ReadsAPartThroughASmallWindow) {
  const box whole = whole_box({3, 200003});
  std::vector<double> file(static_cast<std::size_t>(whole.elements()));
  std::iota(file.begin(), file.end(), 0.0);
  std::int64_t most = 0;
  const auto read = [&](std::int64_t offset, std::int64_t bytes, void *out) {
    EXPECT_LE(offset + bytes, whole.elements() * 8);
    most = std::max(most, bytes);
    std::memcpy(out, reinterpret_cast<const std::byte *>(file.data()) + offset, static_cast<std::size_t>(bytes));
    return ok_status();
  };
  for (const box &held : {whole, box{{1, 7}, {2, 199000}}, box{{0, 200002}, {3, 1}}, box{{2, 0}, {1, 3}}}) {
    std::vector<float> out(static_cast<std::size_t>(held.elements()), -1);
    bool fits = false;
    ASSERT_TRUE(read_overlap(whole, element_type::f64, read, part_of(held), element_type::f32,
                             reinterpret_cast<std::byte *>(out.data()), fits)
                    .is_ok());
    EXPECT_TRUE(fits);
    for (std::int64_t i = 0; i < held.elements(); ++i) {
      const std::int64_t row = held.begin[0] + i / held.sizes[1], column = held.begin[1] + i % held.sizes[1];
      ASSERT_EQ(out[static_cast<std::size_t>(i)], static_cast<float>(row * 200003 + column));
    }
  }
  EXPECT_LE(most, 1 << 20);
  std::int64_t id = 0;
  bool fits = true;
  EXPECT_TRUE(read_overlap(whole, element_type::f64, read, part_of({{0, 0}, {1, 1}}), element_type::i64,
                           reinterpret_cast<std::byte *>(&id), fits)
                  .is_ok());
  EXPECT_FALSE(fits);
  const auto fails = [](std::int64_t, std::int64_t, void *) { return bad_input("gone"); };
  std::vector<float> out(3);
  EXPECT_EQ(read_overlap(whole, element_type::f64, fails, part_of({{0, 0}, {3, 1}}), element_type::f32,
                         reinterpret_cast<std::byte *>(out.data()), fits)
                .message(),
            "gone");
}

TEST(Box, RunsCoverWhatTwoBoxesShare) {
  box a = {{0, 1, 0}, {2, 3, 4}}, b = {{1, 0, 0}, {2, 3, 4}};
  std::vector<std::int64_t> counts, from, to;
  for_each_run(a, part_of(b), [&](std::int64_t x, std::int64_t y, std::int64_t n) {
    from.push_back(x), to.push_back(y), counts.push_back(n);
  });
  // Shared: index 1 of dim 0, indices 1 and 2 of dim 1, all of dim 2.
  EXPECT_THAT(from, testing::ElementsAre(12));
  EXPECT_THAT(to, testing::ElementsAre(4));
  EXPECT_THAT(counts, testing::ElementsAre(8));
  int runs = 0;
  for_each_run(box{{}, {}}, part_of({{}, {}}),
               [&](std::int64_t, std::int64_t, std::int64_t n) { runs += static_cast<int>(n); });
  EXPECT_EQ(runs, 1); // a scalar
  for_each_run(box{{0}, {2}}, part_of({{2}, {2}}), [&](std::int64_t, std::int64_t, std::int64_t) { ++runs; });
  EXPECT_EQ(runs, 1); // neighbours share nothing
  for_each_run(box{{0}, {0}}, part_of({{0}, {0}}), [&](std::int64_t, std::int64_t, std::int64_t) { ++runs; });
  EXPECT_EQ(runs, 1); // nor do empty boxes
}

TEST(Box, PartsAreWhatTheDefinitionOfASplitSays) {
  const std::vector<axis> two = {{"a", 2}, {"b", 3}}, three = {{"a", 2}, {"one", 1}, {"b", 2}};
  const layout_case cases[] = {
      {"scalar", {}, two, {}},
      {"whole", {4, 6}, two, {}},
      {"columns", {4, 6}, two, {{1, 1, 1}}},
      {"a row-major mesh on one dim", {12}, two, {{0, 0, 1}, {0, 1, 2}}},
      {"the other order", {12}, two, {{0, 1, 1}, {0, 0, 3}}},
      {"an inner factor", {2, 24}, two, {{1, 0, 3}}},
      {"an inner factor, rows too", {6, 24}, two, {{1, 0, 3}, {0, 1, 1}}},
      {"two inner factors, listed minor first", {5, 36}, two, {{1, 1, 12}, {1, 0, 3}}},
      {"outermost and innermost", {36, 2}, two, {{0, 1, 1}, {0, 0, 18}}},
      {"an axis of one member cuts nothing", {7, 8}, three, {{0, 1, 7}, {1, 0, 1}, {1, 2, 4}}},
      {"inner factors of several dims", {8, 6, 12}, three, {{0, 0, 2}, {2, 2, 3}}},
      {"flat", {12}, two, {{flat_dim, 0, 1}}},
      {"flat and filled up", {257}, two, {{flat_dim, 0, 1}, {flat_dim, 1, 2}}},
      {"flat in the other order", {7, 5}, two, {{flat_dim, 1, 1}, {flat_dim, 0, 3}}},
      {"flat with ranges that hold nothing", {2}, two, {{flat_dim, 0, 1}, {flat_dim, 1, 2}}},
      {"flat within a row", {3, 11}, two, {{flat_dim, 1, 1}}},
      {"flat through three dims", {3, 5, 7}, two, {{flat_dim, 0, 1}, {flat_dim, 1, 2}}},
      {"flat columns", {5, 6}, two, {{1, 0, 1}, {flat_dim, 1, 1}}},
      {"flat inner factors", {5, 12}, two, {{1, 0, 3}, {flat_dim, 1, 1}}},
      {"flat over an axis of one member", {5, 3}, three, {{flat_dim, 1, 1}, {flat_dim, 0, 1}}},
  };
  for (const layout_case &c : cases) {
    ASSERT_TRUE(check(c).is_ok()) << c.name << ": " << check(c).message();
    const box whole = whole_box(c.sizes);
    std::vector<float> all(static_cast<std::size_t>(whole.elements())), merged(all.size(), -1);
    std::iota(all.begin(), all.end(), 0.0f);
    for (std::int32_t rank = 0; rank < mesh_size(axes_of(c)); ++rank) {
      std::vector<float> expected;
      for (std::size_t i = 0; i < all.size(); ++i)
        if (holds(c, rank, static_cast<std::int64_t>(i)))
          expected.push_back(all[i]);
      expected = range_of(c, rank, expected);
      tensor_part part = local_part(c.sizes, splits_of(c), axes_of(c), rank);
      ASSERT_EQ(part.elements(), static_cast<std::int64_t>(expected.size())) << c.name;
      EXPECT_EQ(part.elements(), whole_box(part.sizes).elements());
      std::vector<float> local(expected.size(), -1);
      copy_overlap(whole, reinterpret_cast<const std::byte *>(all.data()), part,
                   reinterpret_cast<std::byte *>(local.data()), 4);
      fill_up(part, reinterpret_cast<std::byte *>(local.data()), 4);
      EXPECT_EQ(local, expected) << c.name << ", rank " << rank;
      copy_overlap(part, reinterpret_cast<const std::byte *>(local.data()), whole,
                   reinterpret_cast<std::byte *>(merged.data()), 4);
      for (const local_box &each : part.boxes)
        EXPECT_TRUE(part.boxes.size() > 1 || each.held == each.frame || c.splits.back().dim == flat_dim);
    }
    EXPECT_EQ(merged, all) << c.name;
  }
}

TEST(Box, ARangeIsAFewBoxes) {
  const layout_case flat = {"table", {5, 6, 7}, {{"data", 4}}, {{flat_dim, 0, 1}}};
  tensor_part part = local_part(flat.sizes, splits_of(flat), axes_of(flat), 1); // elements 53 to 105
  ASSERT_EQ(part.boxes.size(), 4u);
  EXPECT_THAT(part.sizes, testing::ElementsAre(53));
  EXPECT_THAT(part.boxes[0].held.begin, testing::ElementsAre(1, 1, 4));
  EXPECT_THAT(part.boxes[0].held.sizes, testing::ElementsAre(1, 1, 3));
  EXPECT_THAT(part.boxes[1].held.begin, testing::ElementsAre(1, 2, 0));
  EXPECT_THAT(part.boxes[1].held.sizes, testing::ElementsAre(1, 4, 7));
  EXPECT_THAT(part.boxes[2].held.begin, testing::ElementsAre(2, 0, 0));
  EXPECT_THAT(part.boxes[2].held.sizes, testing::ElementsAre(1, 3, 7));
  EXPECT_THAT(part.boxes[3].held.begin, testing::ElementsAre(2, 3, 0));
  EXPECT_THAT(part.boxes[3].held.sizes, testing::ElementsAre(1, 1, 1));
}

TEST(Box, AFusedWeightHasOneBoxForEachBlock) {
  const layout_case qkv = {"qkv", {768, 3 * 12 * 64}, {{"model", 4}}, {{1, 0, 3}}};
  tensor_part part = local_part(qkv.sizes, splits_of(qkv), axes_of(qkv), 1);
  ASSERT_EQ(part.boxes.size(), 3u);
  EXPECT_THAT(part.sizes, testing::ElementsAre(768, 3 * 3 * 64));
  EXPECT_THAT(part.boxes[2].held.begin, testing::ElementsAre(0, 2 * 768 + 3 * 64));
  EXPECT_THAT(part.boxes[2].held.sizes, testing::ElementsAre(768, 3 * 64));
}

TEST(Box, ReplicasAreNumberedOverAllTheirAxes) {
  const std::vector<axis> axes = {{"hosts", 2, axis_role::replica}, {"a", 3}, {"inside", 4, axis_role::replica}};
  const span<axis> mesh = {axes.data(), 3};
  EXPECT_EQ(count_replicas(mesh), 8);
  for (std::int32_t rank = 0; rank < mesh_size(mesh); ++rank)
    EXPECT_EQ(replica_of(mesh, rank), rank / 12 * 4 + rank % 4) << rank;
  EXPECT_EQ(count_replicas({axes.data() + 1, 1}), 1);
  EXPECT_EQ(replica_of({axes.data() + 1, 1}, 2), 0);
}

TEST(Box, SplitsThatCannotBeAreFound) {
  const std::vector<axis> two = {{"a", 2}, {"b", 3}};
  const struct {
    layout_case layout;
    const char *message;
  } cases[] = {
      {{"", {4, 6}, two, {{2, 0, 1}}}, "dimension or axis it lacks"},
      {{"", {4, 6}, two, {{-2, 0, 1}}}, "dimension or axis it lacks"},
      {{"", {}, two, {{flat_dim, 0, 1}}}, "dimension or axis it lacks"},
      {{"", {4, 6}, two, {{1, 0, 1}, {flat_dim, 0, 1}}}, "twice over axis 'a'"},
      {{"", {4, 6}, two, {{flat_dim, 0, 2}}}, "flat as 2 blocks, after a cut into 1"},
      {{"", {4, 6}, two, {{flat_dim, 0, 1}, {flat_dim, 1, 1}}}, "flat as 1 blocks, after a cut into 2"},
      {{"", {9, 9}, {{"a", 2000}}, {{flat_dim, 0, 1}}}, "more than 4096 pieces"},
      {{"", {4, 6}, two, {{0, 2, 1}}}, "dimension or axis it lacks"},
      {{"", {4, 6}, two, {{0, 0, 1}, {1, 0, 1}}}, "twice over axis 'a'"},
      {{"", {5, 6}, two, {{0, 0, 1}}}, "uneven parts: 1 blocks of 2"},
      {{"", {4, 6}, two, {{1, 0, 2}}}, "uneven parts: 2 blocks of 2"},
      {{"", {4, 6}, two, {{1, 0, 0}}}, "as 0 blocks"},
      {{"", {4, 6}, two, {{1, 0, -3}}}, "as -3 blocks"},
      {{"", {4, 6}, two, {{1, 0, 1}, {1, 1, 1}}}, "as 1 blocks, after a cut into"},
      {{"", {36}, two, {{0, 0, 1}, {0, 1, 3}}}, "as 3 blocks, after a cut into 2"},
      {{"", {4, 6}, two, {{1, 0, INT64_MAX}}}, "uneven parts"},
      {{"", {1 << 20}, two, {{0, 0, 4096}}}, "more than 4096 pieces"},
      {{"", {256, 256}, two, {{0, 0, 128}, {1, 1, 64}}}, "uneven parts"},
      {{"", {256, 192}, two, {{0, 0, 128}, {1, 1, 64}}}, "more than 4096 pieces"},
  };
  for (const auto &c : cases) {
    EXPECT_EQ(check(c.layout).code(), status_code::internal) << c.message;
    EXPECT_THAT(check(c.layout).message(), HasSubstr(c.message));
  }
}
