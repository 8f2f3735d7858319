#include "testing.h"

namespace windlass::rt::testing {
namespace {

TEST(Embedding, ReadsRows) {
  for (const std::int32_t threads : {1, 3}) {
    test_stream s(threads);
    const tensor table({41, 13}, {}, 2), out({3, 50, 13}, {1, 0, 2});
    const index_tensor ids({3, 50}, 0, 41, {1, 0});
    EXPECT_STATUS_OK(embedding(s, out, table, ids, {}, 0));
    std::vector<double> expected;
    for (std::int64_t i = 0; i < 150; ++i)
      for (std::int64_t d = 0; d < 13; ++d)
        expected.push_back(static_cast<double>(table[ids[i] * 13 + d]));
    expect_near(out, expected, 0);
  }
}

TEST(Embedding, RefusesIdsOutsideOfTheTable) {
  test_stream s;
  const tensor table({5, 3}), out({2, 3});
  index_tensor ids({2}, 0, 5);
  ids[1] = 5;
  EXPECT_EQ(embedding(s, out, table, ids, {}, 0).code(), status_code::bad_input);
  ids[1] = -1;
  EXPECT_EQ(embedding(s, out, table, ids, {}, 0).code(), status_code::bad_input);
  EXPECT_EQ(embedding_grad(s, table, ids, out, {}, 0, true).code(), status_code::bad_input);
}

TEST(EmbeddingGrad, AddsRows) {
  for (const bool accumulate : {false, true})
    for (const std::int32_t threads : {1, 3}) {
      test_stream s(threads);
      const tensor dtable({7, 130}), dout({400, 130});
      const index_tensor ids({400}, 0, 7);
      std::vector<double> expected(7 * 130);
      if (accumulate)
        expected = dtable.values();
      for (std::int64_t i = 0; i < 400; ++i)
        for (std::int64_t d = 0; d < 130; ++d)
          expected[static_cast<std::size_t>(ids[i] * 130 + d)] += static_cast<double>(dout[i * 130 + d]);
      EXPECT_STATUS_OK(embedding_grad(s, dtable, ids, dout, {}, 0, accumulate));
      expect_near(dtable, expected, 1e-5);
    }
}

/// Few rows are the sums of many; where there is little scratch, of some at a time.
TEST(EmbeddingGrad, OfAnyNumberOfRows) {
  for (const std::int64_t rows : {1, 7, 300, 70000})
    for (const std::int64_t columns : {9, 136})
      for (const std::int64_t scratch : {1 << 21, 1 << 16}) {
        test_stream s(2, scratch);
        const tensor dtable({rows, columns}), dout({30, 41, columns}, {1, 0, 2});
        const index_tensor ids({30, 41}, 0, rows);
        std::vector<double> expected = dtable.values();
        for (std::int64_t i = 0; i < 30 * 41; ++i)
          for (std::int64_t d = 0; d < columns; ++d)
            expected[static_cast<std::size_t>(ids[i] * columns + d)] += static_cast<double>(dout[i * columns + d]);
        EXPECT_STATUS_OK(embedding_grad(s, dtable, ids, dout, {}, 0, true));
        expect_near(dtable, expected, 1e-5);
      }
}

/// Rows [3, 5) and [9, 11) of twelve.
class PartsOfATable : public ::testing::Test {
protected:
  PartsOfATable() {
    first[0] = 3;
    first[1] = 9;
    const std::int64_t values[] = {2, 3, 4, 5, 8, 9, 10, 11, 4};
    for (std::int64_t i = 0; i < 9; ++i)
      ids[i] = values[i];
  }
  index_tensor first{{2}, 0, 1}, ids{{9}, 0, 1};
  const std::int64_t places[9] = {-1, 0, 1, -1, -1, 2, 3, -1, 1};
};

TEST_F(PartsOfATable, GivesZerosForRowsThatItHasNot) {
  for (const std::vector<int> &order : {std::vector<int>{0, 1}, std::vector<int>{1, 0}}) {
    test_stream s;
    const tensor table({4, 5}), out({9, 5}, order, 2);
    EXPECT_STATUS_OK(embedding(s, out, table, ids, first, 12));
    std::vector<double> expected;
    for (const std::int64_t place : places)
      for (std::int64_t d = 0; d < 5; ++d)
        expected.push_back(place < 0 ? 0 : static_cast<double>(table[place * 5 + d]));
    expect_near(out, expected, 0);
  }
}

TEST_F(PartsOfATable, AddsOnlyRowsThatItHas) {
  for (const bool accumulate : {false, true}) {
    test_stream s;
    const tensor dtable({4, 5}), dout({9, 5});
    std::vector<double> expected(4 * 5);
    if (accumulate)
      expected = dtable.values();
    for (std::int64_t i = 0; i < 9; ++i)
      for (std::int64_t d = 0; d < 5 && places[i] >= 0; ++d)
        expected[static_cast<std::size_t>(places[i] * 5 + d)] += static_cast<double>(dout[i * 5 + d]);
    EXPECT_STATUS_OK(embedding_grad(s, dtable, ids, dout, first, 12, accumulate));
    expect_near(dtable, expected, 1e-6);
  }
}

TEST_F(PartsOfATable, RefusesIdsOfNoRowAtAll) {
  test_stream s;
  const tensor table({4, 5}), out({9, 5});
  EXPECT_EQ(embedding(s, out, table, ids, first, 11).code(), status_code::bad_input);
  EXPECT_EQ(embedding_grad(s, table, ids, out, first, 11, true).code(), status_code::bad_input);
  ids[0] = -1;
  EXPECT_EQ(embedding(s, out, table, ids, first, 12).code(), status_code::bad_input);
}

TEST_F(PartsOfATable, RefusesPartsThatAreNone) {
  test_stream s;
  const tensor table({5, 5}), out({9, 5});
  EXPECT_EQ(embedding(s, out, table, ids, first, 12).code(), status_code::internal);
  EXPECT_EQ(embedding_grad(s, table, ids, out, first, 4, false).code(), status_code::internal);
}

TEST(Gather, AlongEachAxis) {
  for (int axis = 0; axis < 3; ++axis) {
    test_stream s;
    const sizes shape = {4, 5, 6};
    const tensor in(shape, {2, 0, 1}, 1);
    const std::int64_t limit = shape[static_cast<std::size_t>(axis)];
    const index_tensor indices({2, 3}, -limit, limit);
    sizes result_shape(shape.begin(), shape.begin() + axis);
    result_shape.insert(result_shape.end(), {2, 3});
    result_shape.insert(result_shape.end(), shape.begin() + axis + 1, shape.end());
    const tensor out(result_shape), back(shape, {1, 2, 0});
    EXPECT_STATUS_OK(gather(s, out, in, indices, axis));
    std::int64_t pre = 1, post = 1;
    for (int d = 0; d < 3; ++d)
      (d < axis ? pre : post) *= d == axis ? 1 : shape[static_cast<std::size_t>(d)];
    std::vector<double> expected, sums = back.values();
    for (std::int64_t a = 0; a < pre; ++a)
      for (std::int64_t i = 0; i < 6; ++i)
        for (std::int64_t b = 0; b < post; ++b) {
          const std::int64_t index = indices[i] < 0 ? indices[i] + limit : indices[i];
          expected.push_back(static_cast<double>(in[(a * limit + index) * post + b]));
          sums[static_cast<std::size_t>((a * limit + index) * post + b)] += expected.back();
        }
    expect_near(out, expected, 0);
    EXPECT_STATUS_OK(scatter_add(s, back, indices, out, axis, true));
    expect_near(back, sums, 1e-6);
  }
}

TEST(Gather, OfIndicesAndBytes) {
  test_stream s;
  const index_tensor in({6, 2}, 0, 1000), out({3, 2}, 0, 1);
  index_tensor indices({3}, 0, 6);
  indices[0] = -1;
  EXPECT_STATUS_OK(gather(s, out, in, indices, 0));
  EXPECT_EQ(out[0], in[10]);
  EXPECT_EQ(out[1], in[11]);
  indices[2] = -7;
  EXPECT_EQ(gather(s, out, in, indices, 0).code(), status_code::bad_input);
}

TEST(ScatterAdd, OverwritesWithoutAccumulate) {
  test_stream s;
  const tensor out({4, 3}), in({2, 3});
  index_tensor indices({2}, 0, 1);
  indices[0] = indices[1] = 2;
  EXPECT_STATUS_OK(scatter_add(s, out, indices, in, 0, false));
  for (std::int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(out[i], i / 3 == 2 ? in[i % 3] + in[3 + i % 3] : 0.0f);
}

TEST(GatherElements, AlongEachAxis) {
  for (int axis = 0; axis < 3; ++axis)
    for (const std::int32_t threads : {1, 3}) {
      test_stream s(threads);
      const sizes shape = {40, 5, 60};
      sizes part = shape;
      part[static_cast<std::size_t>(axis)] = 7;
      const std::int64_t limit = shape[static_cast<std::size_t>(axis)];
      const tensor in(shape, {2, 0, 1}, 1), out(part, {1, 0, 2}), back(shape, {1, 2, 0});
      const index_tensor indices(part, -limit, limit, {0, 2, 1});
      EXPECT_STATUS_OK(gather_elements(s, out, in, indices, axis));
      std::int64_t post = 1;
      for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < 3; ++d)
        post *= shape[d];
      std::vector<double> expected, sums = back.values();
      for (std::int64_t i = 0; i < out.elements(); ++i) {
        const std::int64_t index = indices[i] < 0 ? indices[i] + limit : indices[i];
        const std::int64_t place = (i / (7 * post) * limit + index) * post + i % post;
        expected.push_back(static_cast<double>(in[place]));
        sums[static_cast<std::size_t>(place)] += expected.back();
      }
      expect_near(out, expected, 0);
      EXPECT_STATUS_OK(scatter_elements_add(s, back, indices, out, axis, true));
      expect_near(back, sums, 1e-6);
    }
}

TEST(GatherElements, OfIndicesAndOutOfRange) {
  test_stream s;
  const index_tensor in({2, 4}, 0, 1000), out({2, 1}, 0, 1);
  index_tensor indices({2, 1}, 0, 1);
  indices[1] = -1;
  EXPECT_STATUS_OK(gather_elements(s, out, in, indices, 1));
  EXPECT_EQ(out[0], in[0]);
  EXPECT_EQ(out[1], in[7]);
  indices[1] = 4;
  EXPECT_EQ(gather_elements(s, out, in, indices, 1).code(), status_code::bad_input);
  indices[1] = -5;
  EXPECT_EQ(gather_elements(s, out, in, indices, 1).code(), status_code::bad_input);
  EXPECT_EQ(gather_elements(s, out, in, indices, 0).code(), status_code::internal);
}

TEST(ScatterElementsAdd, OverwritesWithoutAccumulate) {
  test_stream s;
  const tensor out({2, 4}), in({2, 3});
  index_tensor indices({2, 3}, 0, 1);
  indices[5] = 3;
  EXPECT_STATUS_OK(scatter_elements_add(s, out, indices, in, 1, false));
  expect_near(
      out, {double(in[0]) + double(in[1]) + double(in[2]), 0, 0, 0, double(in[3]) + double(in[4]), 0, 0, double(in[5])},
      1e-6);
}

/// What a timeline shows under one operator's name, also where a table is cleared first.
TEST(Scatters, AreOneCommandEach) {
  for (const bool accumulate : {false, true}) {
    test_stream s;
    kernel_times times;
    times.keep_commands(true);
    static_cast<stream &>(s).count_times(&times);
    const tensor table({5, 3}), rows({4, 3}), elements({4, 3});
    const index_tensor ids({4}, 0, 5), places({4, 3}, 0, 5);
    EXPECT_STATUS_OK(embedding_grad(s, table, ids, rows, {}, 0, accumulate));
    EXPECT_STATUS_OK(scatter_add(s, table, ids, rows, 0, accumulate));
    EXPECT_STATUS_OK(scatter_elements_add(s, table, places, elements, 0, accumulate));
    static_cast<stream &>(s).count_times(nullptr);
    std::vector<std::string> names;
    for (const kernel_times::command &command : times.commands())
      names.push_back(command.what.name);
    EXPECT_EQ(names, (std::vector<std::string>{"embedding_grad", "scatter_add", "scatter_elements_add"}));
  }
}

} // namespace
} // namespace windlass::rt::testing
