#include "testing.h"

#include "windlass/rt/philox.h"

#include <set>

namespace windlass::rt::testing {
namespace {

TEST(Dropout, DropsByTheWordsOfTheKeys) {
  for (const std::vector<int> &order : {std::vector<int>(), std::vector<int>{1, 0, 2}, std::vector<int>{2, 1, 0}})
    for (const auto &[threads, columns] : {std::pair<std::int32_t, std::int64_t>{1, 67}, {3, 67}, {2, 72}}) {
      test_stream s(threads);
      const double ratio = 0.3;
      const std::int64_t size = 33 * columns;
      const tensor x({5, 33, columns}, order), y({5, 33, columns});
      const index_tensor keys({5}, -1000, 1000);
      std::vector<double> expected;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const std::int64_t element = i % size;
        const std::uint32_t word = dropout_words(keys[i / size], element / 4)[static_cast<std::size_t>(element % 4)];
        expected.push_back(word < dropout_threshold(ratio) ? 0.0 : double(x[i]) / (1 - ratio));
      }
      EXPECT_STATUS_OK(dropout(s, y, x, keys, ratio));
      expect_near(y, expected, 1e-6);
      EXPECT_STATUS_OK(dropout(s, x, x, keys, ratio));
      expect_near(x, expected, 1e-6);
    }
}

TEST(Dropout, TheRateIsTheRatio) {
  test_stream s;
  const tensor x({4, 50000}), y({4, 50000});
  index_tensor keys({4}, 0, 1);
  for (std::int64_t i = 0; i < 4; ++i)
    keys[i] = dropout_key(7, static_cast<std::uint64_t>(i), 2);
  EXPECT_STATUS_OK(dropout(s, y, x, keys, 0.1));
  std::int64_t dropped[4] = {}, both = 0;
  for (std::int64_t i = 0; i < y.elements(); ++i)
    dropped[i / 50000] += y[i] == 0.0f ? 1 : 0;
  for (std::int64_t i = 0; i < 50000; ++i)
    both += y[i] == 0.0f && y[50000 + i] == 0.0f ? 1 : 0;
  // Five standard deviations around the mean; samples are independent of one another.
  for (const std::int64_t count : dropped)
    EXPECT_NEAR(double(count), 5000.0, 335.0);
  EXPECT_NEAR(double(both), 500.0, 112.0);
}

TEST(Dropout, KeysDifferBySeedSampleAndMask) {
  std::set<std::int64_t> keys;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (std::uint64_t sample = 0; sample < 10; ++sample)
      for (std::uint64_t mask = 0; mask < 10; ++mask)
        keys.insert(dropout_key(seed, sample, mask));
  EXPECT_EQ(keys.size(), 1000u);
}

TEST(Dropout, RefusesKeysThatDoNotFit) {
  test_stream s;
  const tensor x({4, 8});
  const index_tensor keys({3}, 0, 9);
  EXPECT_EQ(dropout(s, x, x, keys, 0.1).code(), status_code::internal);
}

} // namespace
} // namespace windlass::rt::testing
