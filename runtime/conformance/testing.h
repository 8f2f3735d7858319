// Tensors for tests: f32 data behind a strided view, random values, and the comparison with expected doubles.
#ifndef WINDLASS_CONFORMANCE_TESTING_H
#define WINDLASS_CONFORMANCE_TESTING_H

#include "windlass/rt/detail/backend.h"
#include "windlass/rt/kernels.h"
#include "windlass/rt/streams.h"
#include "windlass/rt/view.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <vector>

namespace windlass::rt::testing {

#define EXPECT_STATUS_OK(expression)                                                                                   \
  do {                                                                                                                 \
    const ::windlass::rt::status result_ = (expression);                                                               \
    EXPECT_TRUE(result_.is_ok()) << result_.message();                                                                 \
  } while (false)

using sizes = std::vector<std::int64_t>;

/// Returns the number of elements of a tensor of these sizes.
inline std::int64_t product(const sizes &s) {
  std::int64_t n = 1;
  for (const std::int64_t size : s)
    n *= size;
  return n;
}

/// Memory that both the test and the kernels reach: pinned where kernels run on a device.
struct memory_deleter {
  void operator()(std::byte *memory) const {
    if constexpr (detail::backend_has_device)
      detail::free_memory(memory_kind::pinned, memory);
    else
      ::operator delete[](memory, std::align_val_t(64));
  }
};
using test_memory = std::unique_ptr<std::byte[], memory_deleter>;
inline test_memory allocate_zeros(std::int64_t bytes) {
  std::byte *memory = nullptr;
  if constexpr (detail::backend_has_device)
    EXPECT_STATUS_OK(detail::allocate_memory(memory_kind::pinned, bytes, "test", memory));
  else
    memory = static_cast<std::byte *>(::operator new[](static_cast<std::size_t>(bytes), std::align_val_t(64)));
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
  return test_memory(memory);
}

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
    count_ = stride + 64;
    memory_ = allocate_zeros(count_ * static_cast<std::int64_t>(sizeof(T)));
    view_.data = memory_.get();
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
    return view_.as<T>()[offset];
  }

  basic_tensor &fill_with(const std::function<T(std::int64_t)> &f) {
    for (std::int64_t i = 0; i < count_; ++i)
      view_.as<T>()[i] = f(i);
    return *this;
  }

private:
  test_memory memory_;
  std::int64_t count_ = 0;
  view view_;
};

/// f32 with random normal values.
class tensor : public basic_tensor<float> {
public:
  explicit tensor(const sizes &shape, std::vector<int> order = {}, std::int64_t gap = 0, std::vector<int> repeated = {})
      : basic_tensor<float>(shape, element_type::f32, std::move(order), gap, std::move(repeated)) {
    static thread_local std::mt19937 engine(7);
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
  explicit test_stream(std::int32_t threads = 2, std::int64_t scratch_bytes = 1 << 21)
      : scratch_(allocate_zeros(scratch_bytes)) {
    stream_ = make_inline_stream(threads, scratch_.get(), scratch_bytes);
  }
  operator stream &() { return *stream_; }

private:
  test_memory scratch_;
  std::unique_ptr<stream> stream_;
};

} // namespace windlass::rt::testing

#endif
