// Plain loops in place of the device's library.
#include "../gemm.h"
#include "../kernel.h"

#include "windlass/rt/detail/half.h"

#include <cmath>
#include <vector>

namespace windlass::rt::cuda {

namespace {

/// The nearest number with 10 bits of mantissa.
float to_tf32(float x) {
  const std::uint32_t bits = detail::bits_from_float(x);
  return std::isfinite(x) ? detail::float_from_bits((bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu) : x;
}

void multiply(const column_gemm &call) {
  const auto element = [](const column_gemm::matrix &of, std::int64_t batch, std::int64_t row, std::int64_t column) {
    if (of.is_transposed)
      std::swap(row, column);
    return batch * of.batch_stride + row + column * of.leading;
  };
  const operand x(call.x.data, call.x.type), y(call.y.data, call.y.type), d(call.d.data, call.d.type);
  const operand vector(call.vector, call.d.type), added(call.added == nullptr ? call.d.data : call.added, call.d.type);
  const operand input(call.input, call.d.type);
  const auto rounded = [&](float value) { return call.rounds_to_tf32 ? to_tf32(value) : value; };
  // Rows of x and a column of y, each in a row.
  std::vector<float> rows(static_cast<std::size_t>(call.m * call.k)), line(static_cast<std::size_t>(call.k));
  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    for (std::int64_t row = 0; row < call.m; ++row)
      for (std::int64_t i = 0; i < call.k; ++i)
        rows[static_cast<std::size_t>(row * call.k + i)] = rounded(x.get(element(call.x, batch, row, i)));
    for (std::int64_t column = 0; column < call.n; ++column) {
      for (std::int64_t i = 0; i < call.k; ++i)
        line[static_cast<std::size_t>(i)] = rounded(y.get(element(call.y, batch, i, column)));
      for (std::int64_t row = 0; row < call.m; ++row) {
        const float *const from = rows.data() + row * call.k;
        double sum = 0;
        for (std::size_t i = 0; i < line.size(); ++i)
          sum += double(from[i]) * double(line[i]);
        const std::int64_t at = element(call.d, batch, row, column);
        if (call.beta != 0)
          sum += double(call.beta) * double(added.get(at));
        const bool has_bias =
            call.also == epilogue::bias || call.also == epilogue::bias_gelu || call.also == epilogue::bias_gelu_input;
        if (has_bias)
          sum += double(vector.get(row));
        if (call.also == epilogue::bias_gelu_input)
          input.set(at, static_cast<float>(sum));
        if (has_bias && call.also != epilogue::bias)
          sum = scalar::gelu_tanh(sum);
        if (call.also == epilogue::gelu_grad)
          sum = scalar::gelu_tanh_grad(double(input.get(at)), sum);
        d.set(at, static_cast<float>(sum));
      }
    }
  }
  const bool sums_x = call.also == epilogue::sum_x;
  for (std::int64_t i = 0; i < (sums_x ? call.m : call.also == epilogue::sum_y ? call.n : 0); ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < call.k; ++k)
      sum += double(sums_x ? x.get(element(call.x, 0, i, k)) : y.get(element(call.y, 0, k, i)));
    vector.set(i, static_cast<float>(sum));
  }
}

/// Has several algorithms in name, which all do the same; the last of its guesses it can not have again.
class emulated_gemm final : public prepared_gemm {
public:
  status guess(std::size_t most, std::vector<product_algorithm> &out) override {
    for (std::int32_t id = 1; id <= usable + 1 && out.size() < most; ++id)
      out.push_back({{id, 0, 0, 0, 0, 0, 0, 0, 0}});
    return {};
  }
  bool use(const product_algorithm &algorithm) override {
    return algorithm.numbers[0] >= 1 && algorithm.numbers[0] <= usable;
  }
  void use_first() override {}
  status run(stream &s, const column_gemm &call, std::byte *, std::int64_t) override {
    return launch(s, 1, 1, multiply, call);
  }

private:
  static constexpr std::int32_t usable = 3;
};

class emulated_library final : public gemm_library {
public:
  std::string version() const override { return "plain loops"; }
  status prepare(const column_gemm &, int, std::int64_t, std::unique_ptr<prepared_gemm> &out) override {
    out = std::make_unique<emulated_gemm>();
    return {};
  }
};

} // namespace

std::unique_ptr<gemm_library> make_gemm_library() { return std::make_unique<emulated_library>(); }

} // namespace windlass::rt::cuda
