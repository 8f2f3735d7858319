// Tensors for tests: f32 data behind a strided view, random values, and the comparison with expected doubles.
#ifndef WINDLASS_CONFORMANCE_TESTING_H
#define WINDLASS_CONFORMANCE_TESTING_H

#include "windlass/rt/kernels.h"
#include "windlass/rt/streams.h"
#include "windlass/rt/view.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace windlass::rt::testing {

#define EXPECT_STATUS_OK(expression)                                                                                   \
  do {                                                                                                                 \
    const ::windlass::rt::status result_ = (expression);                                                               \
    EXPECT_TRUE(result_.is_ok()) << result_.message();                                                                 \
  } while (false)

using sizes = std::vector<std::int64_t>;

/// Storage of `T` with a view on it. The view covers a part of the storage where the layout leaves gaps.
template <class T> class basic_tensor {
public:
  /// `order` lists the dims from the slowest in memory to the fastest (empty: row-major); `gap` elements are left after
  /// every run of the fastest dim; dims in `repeated` have stride 0.
  basic_tensor(const sizes &shape, element_type type, std::vector<int> order = {}, std::int64_t gap = 0,
               std::vector<int> repeated = {}) {
    if (order.empty())
      for (std::size_t i = 0; i < shape.size(); ++i)
        order.push_back(static_cast<int>(i));
    view_.type = type;
    view_.rank = static_cast<std::int32_t>(shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
      const int d = order[i];
      view_.sizes[d] = shape[static_cast<std::size_t>(d)];
      bool repeats = false;
      for (const int r : repeated)
        repeats = repeats || r == d;
      view_.strides[d] = repeats ? 0 : stride;
      if (!repeats)
        stride *= view_.sizes[d];
      if (i + 1 == order.size())
        stride += gap;
    }
    values_.reset(new T[static_cast<std::size_t>(stride + 64)]());
    count_ = stride + 64;
    view_.data = reinterpret_cast<std::byte *>(values_.get());
  }

  const view &v() const { return view_; }
  operator const view &() const { return view_; }
  std::int64_t elements() const { return view_.elements(); }

  /// Element at the row-major position i.
  T &operator[](std::int64_t i) const {
    std::int64_t offset = 0;
    for (int d = view_.rank - 1; d >= 0; --d) {
      offset += i % view_.sizes[d] * view_.strides[d];
      i /= view_.sizes[d];
    }
    return values_[static_cast<std::size_t>(offset)];
  }

  basic_tensor &fill_with(const std::function<T(std::int64_t)> &f) {
    for (std::int64_t i = 0; i < count_; ++i)
      values_[static_cast<std::size_t>(i)] = f(i);
    return *this;
  }

private:
  std::unique_ptr<T[]> values_;
  std::int64_t count_ = 0;
  view view_;
};

/// f32 with random normal values.
class tensor : public basic_tensor<float> {
public:
  explicit tensor(const sizes &shape, std::vector<int> order = {}, std::int64_t gap = 0, std::vector<int> repeated = {})
      : basic_tensor<float>(shape, element_type::f32, std::move(order), gap, std::move(repeated)) {
    static std::mt19937 engine(7);
    std::normal_distribution<float> normal;
    fill_with([&](std::int64_t) { return normal(engine); });
  }
  std::vector<double> values() const {
    std::vector<double> result;
    for (std::int64_t i = 0; i < elements(); ++i)
      result.push_back(static_cast<double>((*this)[i]));
    return result;
  }
};

/// i64 with values in [low, high).
class index_tensor : public basic_tensor<std::int64_t> {
public:
  index_tensor(const sizes &shape, std::int64_t low, std::int64_t high, std::vector<int> order = {})
      : basic_tensor<std::int64_t>(shape, element_type::i64, std::move(order)) {
    static std::mt19937 engine(11);
    std::uniform_int_distribution<std::int64_t> uniform(low, high - 1);
    fill_with([&](std::int64_t) { return uniform(engine); });
  }
};

/// Largest difference over the largest expected magnitude must stay below `tolerance`; NaN and infinities must agree.
inline void expect_near(const tensor &actual, const std::vector<double> &expected, double tolerance) {
  ASSERT_EQ(actual.elements(), static_cast<std::int64_t>(expected.size()));
  double largest = 1e-30;
  for (const double e : expected)
    if (std::isfinite(e))
      largest = std::max(largest, std::fabs(e));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = static_cast<double>(actual[static_cast<std::int64_t>(i)]), e = expected[i];
    if (std::isnan(e))
      ASSERT_TRUE(std::isnan(a)) << "element " << i << " is " << a;
    else if (std::isinf(e))
      ASSERT_EQ(a, e) << "element " << i;
    else
      ASSERT_LE(std::fabs(a - e), tolerance * largest) << "element " << i << " is " << a << ", expected " << e;
  }
}

/// A stream on this thread with scratch.
class test_stream {
public:
  explicit test_stream(std::int32_t threads = 2) : scratch_(1 << 18) {
    stream_ = make_inline_stream(threads, reinterpret_cast<std::byte *>(scratch_.data()),
                                 static_cast<std::int64_t>(scratch_.size() * sizeof(double)));
  }
  operator stream &() { return *stream_; }

private:
  std::vector<double> scratch_;
  std::unique_ptr<stream> stream_;
};

} // namespace windlass::rt::testing

#endif
