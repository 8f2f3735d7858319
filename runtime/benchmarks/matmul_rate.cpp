// The rate of one large product of bf16 matrices on a device, against which the rates of whole programs are held.
//
//   windlass_matmul_rate [N] [REPEATS]     [N, N] times [N, N] (default 8192, 50 times after 10); prints operations/s
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

status measure(std::int64_t n, std::int64_t repeats, double &rate) {
  const std::int64_t bytes = n * n * 2, scratch_bytes = device_workspace_bytes;
  const std::vector<std::unique_ptr<transport>> world = make_local_transports(1);
  WINDLASS_TRY(detail::open_device(*world[0], 3 * bytes + scratch_bytes));
  arena matrices, scratch;
  WINDLASS_TRY(matrices.allocate(3 * bytes, "device"));
  WINDLASS_TRY(scratch.allocate(scratch_bytes, "scratch"));
  const std::unique_ptr<stream> s = make_worker_stream(1, scratch.at(0), scratch_bytes);
  // Random numbers: a device draws less power, and so runs faster, where all are alike.
  std::vector<detail::bf16> values(static_cast<std::size_t>(n * n));
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  view v[3];
  for (int i = 0; i < 3; ++i) {
    v[i].data = matrices.at(i * bytes);
    v[i].type = element_type::bf16;
    v[i].rank = 2;
    v[i].sizes[0] = v[i].sizes[1] = v[i].strides[0] = n;
    v[i].strides[1] = 1;
    for (detail::bf16 &x : values)
      x = detail::bf16(normal(engine));
    WINDLASS_TRY(detail::copy_to_device(*s, v[i].data, reinterpret_cast<const std::byte *>(values.data()), bytes));
    WINDLASS_TRY(s->synchronize());
  }
  double begin = 0;
  for (std::int64_t i = -repeats / 5; i < repeats; ++i) {
    if (i == 0) {
      WINDLASS_TRY(s->synchronize());
      begin = clock_seconds();
    }
    WINDLASS_TRY(matmul(*s, v[2], v[0], v[1], 0, 1, false));
  }
  WINDLASS_TRY(s->synchronize());
  rate = 2.0 * static_cast<double>(n * n * n) * static_cast<double>(repeats) / (clock_seconds() - begin);
  return {};
}

} // namespace
} // namespace windlass::rt

int main(int argc, char **argv) {
  const std::int64_t n = argc > 1 ? std::atoll(argv[1]) : 8192, repeats = argc > 2 ? std::atoll(argv[2]) : 50;
  if (n < 1 || n > 65536 || repeats < 1) {
    std::fprintf(stderr, "usage: windlass_matmul_rate [N, up to 65536] [REPEATS]\n");
    return 2;
  }
  double rate = 0;
  const windlass::rt::status result = windlass::rt::measure(n, repeats, rate);
  if (!result.is_ok()) {
    std::fprintf(stderr, "error: %s\n", result.message().c_str());
    return 1;
  }
  std::printf("%.4e\n", rate);
  return 0;
}
