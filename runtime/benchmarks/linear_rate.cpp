// The rates of the three products of a linear layer on a device, in bf16, as training programs compute them: rows of
// odd extents lie at multiples of 16 bytes, and the gradient of the weight is f32.
//
//   windlass_linear_rate TOKENS OUTPUTS INPUTS     prints milliseconds and TFLOP/s of output, input and weight gradient
#include "windlass/rt/context.h"
#include "windlass/rt/detail/backend.h"
#include "windlass/rt/detail/half.h"
#include "windlass/rt/kernel_times.h"
#include "windlass/rt/kernels.h"
#include "windlass/rt/reserve.h"
#include "windlass/rt/streams.h"
#include "windlass/rt/transport.h"

#include <cstdio>
#include <cstdlib>
#include <random>

namespace windlass::rt {
namespace {

constexpr int warm_up = 3, repeats = 10;

view matrix(std::byte *data, element_type type, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
            std::int64_t column_stride) {
  view v;
  v.data = data;
  v.type = type;
  v.rank = 2;
  v.sizes[0] = rows;
  v.sizes[1] = columns;
  v.strides[0] = row_stride;
  v.strides[1] = column_stride;
  return v;
}

status time(stream &s, const char *name, const view &out, const view &a, const view &b) {
  double begin = 0;
  for (int i = -warm_up; i < repeats; ++i) {
    if (i == 0) {
      WINDLASS_TRY(s.synchronize());
      begin = clock_seconds();
    }
    WINDLASS_TRY(matmul(s, out, a, b, 0, 1, false));
  }
  WINDLASS_TRY(s.synchronize());
  const double seconds = (clock_seconds() - begin) / repeats;
  const double flops = 2.0 * static_cast<double>(out.sizes[0] * out.sizes[1] * a.sizes[1]);
  std::printf("%s %.3f ms %.0f TFLOP/s\n", name, seconds * 1e3, flops / seconds * 1e-12);
  return {};
}

status measure(std::int64_t tokens, std::int64_t outputs, std::int64_t inputs) {
  const std::int64_t row = (outputs + 7) / 8 * 8; // of outputs
  const std::int64_t sizes[] = {tokens * inputs * 2, outputs * inputs * 2, tokens * row * 2, outputs * inputs * 4};
  std::int64_t offsets[5] = {};
  for (int i = 0; i < 4; ++i)
    offsets[i + 1] = offsets[i] + (sizes[i] + 255) / 256 * 256;
  const std::int64_t scratch_bytes = device_workspace_bytes;
  const std::vector<std::unique_ptr<transport>> world = make_local_transports(1);
  WINDLASS_TRY(detail::open_device(*world[0], offsets[4] + scratch_bytes));
  arena memory, scratch;
  WINDLASS_TRY(memory.allocate(offsets[4], "device"));
  WINDLASS_TRY(scratch.allocate(scratch_bytes, "scratch"));
  const std::unique_ptr<stream> s = make_worker_stream(1, scratch.at(0), scratch_bytes);
  // Random numbers: a device draws less power, and so runs faster, where all are alike.
  std::vector<detail::bf16> values(1 << 20);
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  for (detail::bf16 &x : values)
    x = detail::bf16(normal(engine));
  const std::int64_t block = static_cast<std::int64_t>(values.size()) * 2;
  for (std::int64_t at = 0; at < offsets[3]; at += block)
    WINDLASS_TRY(detail::copy_to_device(*s, memory.at(at), reinterpret_cast<const std::byte *>(values.data()),
                                        std::min(block, offsets[3] - at)));
  const element_type type = element_type::bf16;
  std::byte *const x = memory.at(offsets[0]), *const w = memory.at(offsets[1]), *const y = memory.at(offsets[2]);
  WINDLASS_TRY(time(*s, "output", matrix(y, type, tokens, outputs, row, 1), matrix(x, type, tokens, inputs, inputs, 1),
                    matrix(w, type, inputs, outputs, 1, inputs)));
  WINDLASS_TRY(time(*s, "input_grad", matrix(x, type, tokens, inputs, inputs, 1),
                    matrix(y, type, tokens, outputs, row, 1), matrix(w, type, outputs, inputs, inputs, 1)));
  return time(*s, "weight_grad", matrix(memory.at(offsets[3]), element_type::f32, outputs, inputs, inputs, 1),
              matrix(y, type, outputs, tokens, 1, row), matrix(x, type, tokens, inputs, inputs, 1));
}

} // namespace
} // namespace windlass::rt

int main(int argc, char **argv) {
  std::int64_t sizes[3] = {};
  for (int i = 0; i < 3 && argc == 4; ++i)
    sizes[i] = std::atoll(argv[i + 1]);
  for (const std::int64_t size : sizes)
    if (size < 1 || size > 1 << 20) {
      std::fprintf(stderr, "usage: windlass_linear_rate TOKENS OUTPUTS INPUTS, each up to 1048576\n");
      return 2;
    }
  const windlass::rt::status result = windlass::rt::measure(sizes[0], sizes[1], sizes[2]);
  if (!result.is_ok()) {
    std::fprintf(stderr, "error: %s\n", result.message().c_str());
    return 1;
  }
  return 0;
}
