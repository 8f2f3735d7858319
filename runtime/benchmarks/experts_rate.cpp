// The rate of a layer of experts against that of a dense product of as many rows, in turns.
//
// usage: windlass_experts_rate [THREADS]
//
// A layer of eight gated experts, 512 inputs and 1792 values wide, of which a token takes two. Loads: the same for all
// experts, and log-normal (sigma 1). The dense product is that of all rows with one expert's first matrix; a rate is
// FLOPs by time, and the gradient's FLOPs include the hidden values that it computes again.
#include "float_operands.h"
#include "windlass/rt/backend.h"

#include "windlass/rt/kernels.h"
#include "windlass/rt/streams.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

using namespace windlass::rt;

namespace {

constexpr std::int64_t experts_count = 8, chosen = 2, width = 512, hidden = 1792;
constexpr int turns = 5;

class operands : public float_operands {
public:
  /// Choices of two different experts for each token, by shares of the experts.
  view choices(std::int64_t tokens, double sigma) {
    std::mt19937 engine(1);
    std::normal_distribution<double> normal;
    std::vector<double> shares;
    for (std::int64_t e = 0; e < experts_count; ++e)
      shares.push_back(std::exp(sigma * normal(engine)));
    std::discrete_distribution<std::int64_t> pick(shares.begin(), shares.end());
    ids_.resize(static_cast<std::size_t>(tokens * chosen));
    for (std::int64_t t = 0; t < tokens; ++t) {
      auto *const pair = &ids_[static_cast<std::size_t>(2 * t)];
      pair[0] = sigma > 0 ? pick(engine) : t % experts_count;
      do
        pair[1] = sigma > 0 ? pick(engine) : (t + 1 + t / experts_count % (experts_count - 1)) % experts_count;
      while (pair[1] == pair[0]);
    }
    return dense_view(reinterpret_cast<std::byte *>(ids_.data()), element_type::i64, {tokens, chosen});
  }

private:
  std::vector<std::int64_t> ids_;
};

template <class F> double seconds_of(F f) {
  const auto begin = std::chrono::steady_clock::now();
  if (const status result = f(); !result.is_ok()) {
    std::fprintf(stderr, "%s\n", result.message().c_str());
    std::exit(1);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void compare(std::int64_t tokens, double sigma, std::int32_t threads) {
  operands o;
  const std::int64_t rows = tokens * chosen;
  const expert_layer of = {expert_activation::silu, true, false, 0};
  const view x = o.f32({tokens, width}), weights = o.f32({tokens, chosen}), choices = o.choices(tokens, sigma),
             up = o.f32({experts_count, 2 * hidden, width}), down = o.f32({experts_count, width, hidden}),
             y = o.f32({tokens, width}), dy = o.f32({tokens, width}), dx = o.f32({tokens, width}),
             dweights = o.f32({tokens, chosen}), dup = o.f32({experts_count, 2 * hidden, width}),
             ddown = o.f32({experts_count, width, hidden});
  const view a = o.f32({rows, width}), b = o.f32({width, 2 * hidden}), c = o.f32({rows, 2 * hidden});
  std::vector<std::byte> scratch(
      static_cast<std::size_t>(experts_grad_scratch_bytes(x, choices, up, down, {}, of, threads)) + (1 << 20));
  const std::unique_ptr<stream> s =
      make_inline_stream(threads, scratch.data(), static_cast<std::int64_t>(scratch.size()));
  double dense = 1e9, forward = 1e9, gradient = 1e9;
  for (int turn = 0; turn < turns; ++turn) {
    dense = std::min(dense, seconds_of([&] { return matmul(*s, c, a, b, 0, 1, false); }));
    forward = std::min(forward, seconds_of([&] { return experts(*s, y, x, choices, weights, up, down, {}, {}, of); }));
    gradient = std::min(gradient, seconds_of([&] {
                          return experts_grad(*s, dx, dweights, dup, ddown, {}, dy, x, choices, weights, up, down, {},
                                              {}, of, true);
                        }));
  }
  const auto work = [&](std::int64_t ups, std::int64_t downs) {
    return 2e-9 * static_cast<double>(rows * width * hidden * (2 * ups + downs));
  };
  const double rate = work(1, 0) / dense;
  std::printf("%8lld  %-10s %9.1f %9.1f %6.2f %9.1f %6.2f\n", static_cast<long long>(rows / experts_count),
              sigma > 0 ? "log-normal" : "equal", rate, work(1, 1) / forward, work(1, 1) / forward / rate,
              work(3, 2) / gradient, work(3, 2) / gradient / rate);
}

} // namespace

int main(int argc, char **argv) {
  const auto threads = static_cast<std::int32_t>(argc > 1 ? std::atoi(argv[1]) : 1);
  if (threads < 1 || threads > 1024)
    return std::fprintf(stderr, "usage: windlass_experts_rate [THREADS]\n"), 2;
  std::printf("%d threads, %s; GFLOP/s, and the ratio to the dense product\n%8s  %-10s %9s %9s %6s %9s %6s\n", threads,
              describe_backend().gemm.c_str(), "rows", "load", "dense", "forward", "ratio", "gradient", "ratio");
  for (const std::int64_t rows : {32, 256, 1024})
    for (const double sigma : {0.0, 1.0})
      compare(rows * experts_count / chosen, sigma, threads);
  return 0;
}
