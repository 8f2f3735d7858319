// Products of matrices whose rows lie so far apart that their elements are not counted in 32 bits, as the scores of
// many tokens and words do.
#include "testing.h"

#include "windlass/rt/detail/half.h"

namespace windlass::rt::testing {
namespace {

using detail::bf16;

/// Rows of a matrix on the device, `stride` elements apart. What is between them is never touched.
class wide_rows {
public:
  wide_rows(std::int64_t rows, std::int64_t columns, std::int64_t stride) : columns_(columns), stride_(stride) {
    EXPECT_STATUS_OK(detail::allocate_memory(memory_kind::device, ((rows - 1) * stride + columns) * 2, "test", data_));
    view_ = dense_view(data_, element_type::bf16, {rows, columns});
    view_.strides[0] = stride;
  }
  ~wide_rows() { detail::free_memory(memory_kind::device, data_); }
  wide_rows(const wide_rows &) = delete;
  wide_rows &operator=(const wide_rows &) = delete;

  operator const view &() const { return view_; }
  view transposed() const {
    view turned = view_;
    std::swap(turned.sizes[0], turned.sizes[1]);
    std::swap(turned.strides[0], turned.strides[1]);
    return turned;
  }
  void write(stream &s, const std::vector<bf16> &values) const {
    for (std::int64_t row = 0; row < view_.sizes[0]; ++row)
      EXPECT_STATUS_OK(detail::copy_to_device(
          s, data_ + row * stride_ * 2, reinterpret_cast<const std::byte *>(&values[row * columns_]), columns_ * 2));
  }
  std::vector<float> read(stream &s) const {
    std::vector<float> all;
    std::vector<bf16> row(static_cast<std::size_t>(columns_));
    for (std::int64_t i = 0; i < view_.sizes[0]; ++i) {
      EXPECT_STATUS_OK(
          detail::copy_to_host(s, reinterpret_cast<std::byte *>(row.data()), data_ + i * stride_ * 2, columns_ * 2));
      for (const bf16 x : row)
        all.push_back(static_cast<float>(x));
    }
    return all;
  }

private:
  std::int64_t columns_, stride_;
  std::byte *data_ = nullptr;
  view view_;
};

/// Small whole numbers, whose products and sums bf16 holds exactly.
std::vector<bf16> whole_numbers(std::int64_t count, int step) {
  std::vector<bf16> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(bf16(static_cast<float>(i * step % 5 - 2)));
  return values;
}

TEST(WideProducts, OfRowsFarApart) {
  constexpr std::int64_t rows = 20, inner = 4, columns = 3, stride = std::int64_t(1) << 27;
  static_assert((rows - 1) * stride > std::int64_t(1) << 31);
  test_stream s;
  const std::vector<bf16> of_x = whole_numbers(rows * inner, 3), of_w = whole_numbers(columns * inner, 7);
  const auto x = [&](std::int64_t row, std::int64_t i) { return static_cast<float>(of_x[row * inner + i]); };
  const auto w = [&](std::int64_t column, std::int64_t i) { return static_cast<float>(of_w[column * inner + i]); };
  const wide_rows near(rows, inner, inner), weight(columns, inner, inner), far(rows, columns, stride);
  near.write(s, of_x);
  weight.write(s, of_w);
  // A result with its rows far apart.
  EXPECT_STATUS_OK(matmul(s, far, near, weight.transposed(), 0, 1, false));
  std::vector<float> scores;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      scores.push_back(0);
      for (std::int64_t i = 0; i < inner; ++i)
        scores.back() += x(row, i) * w(column, i);
    }
  EXPECT_EQ(far.read(s), scores);
  // An operand with its rows far apart, kept and contracted.
  const wide_rows back(rows, inner, inner);
  EXPECT_STATUS_OK(matmul(s, back, far, weight, 0, 1, false));
  const tensor gradient({columns, inner});
  EXPECT_STATUS_OK(matmul(s, gradient, far.transposed(), near, 0, 1, false));
  EXPECT_STATUS_OK(static_cast<stream &>(s).synchronize());
  std::vector<float> of_rows(rows * inner), of_columns(columns * inner);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      for (std::int64_t i = 0; i < inner; ++i) {
        of_rows[row * inner + i] += scores[row * columns + column] * w(column, i);
        of_columns[column * inner + i] += scores[row * columns + column] * x(row, i);
      }
  EXPECT_EQ(back.read(s), of_rows);
  for (std::int64_t i = 0; i < columns * inner; ++i)
    EXPECT_EQ(gradient[i], of_columns[i]);
}

} // namespace
} // namespace windlass::rt::testing
