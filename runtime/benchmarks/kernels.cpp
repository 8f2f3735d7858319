// Each kernel of a training step of GPT-2 124M, at its shapes (4 x 256 tokens), against what bounds it.
//
// usage: windlass_kernels [THREADS [PART]]     (PART: of the names of the kernels to be run)
//
// The bound is the larger of two times: that of the arithmetic at the rate of f32 multiply-adds from registers, and
// that of the operands' bytes, each once, at the rate of memory or, where they are less than 64 MiB and the kernel
// finds them in the last-level cache when it is called again and again, of the cache. Rates are measured between the
// kernels, in turns; the best of each counts.
#include "float_operands.h"

#include "windlass/rt/backend.h"
#include "windlass/rt/kernel_times.h"
#include "windlass/rt/kernels.h"
#include "windlass/rt/map.h"
#include "windlass/rt/streams.h"

#include "windlass/rt/detail/machine_rates.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using namespace windlass::rt;

namespace {

struct adds {
  using outputs = type_list<float>;
  using inputs = type_list<float, float>;
  static constexpr const char *name = "add";
  static void apply(float &r, float a, float b) { r = a + b; }
};
struct gelus {
  using outputs = type_list<float>;
  using inputs = type_list<float>;
  static constexpr const char *name = "gelu_tanh";
  static void apply(float &r, float a) { r = windlass::scalar::gelu_tanh(a); }
};
struct gelu_grads {
  using outputs = type_list<float>;
  using inputs = type_list<float, float>;
  static constexpr const char *name = "gelu_tanh_grad";
  static void apply(float &r, float a, float d) { r = windlass::scalar::gelu_tanh_grad(a, d); }
};

constexpr std::int64_t batch = 4, tokens = 256, rows = batch * tokens, width = 768, heads = 12, head = width / heads,
                       hidden = 4 * width, classes = 50257, cached_bytes = 64 << 20;

class operands : public float_operands {
public:
  view scalar(float value) {
    const view v = f32({});
    *v.as<float>() = value;
    return v;
  }
  view ids(std::initializer_list<std::int64_t> sizes, std::int64_t count) {
    std::vector<std::int64_t> &v = ids_.emplace_back(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = static_cast<std::int64_t>(i * 7919 % classes);
    return dense_view(reinterpret_cast<std::byte *>(v.data()), element_type::i64, sizes);
  }

private:
  std::vector<std::vector<std::int64_t>> ids_;
};

view transposed(view v) {
  std::swap(v.sizes[0], v.sizes[1]);
  std::swap(v.strides[0], v.strides[1]);
  return v;
}

struct kernel {
  std::string name;
  int calls; ///< in a step
  std::function<status(stream &)> run;
  work what = {};
  double seconds = 1e9;
};

/// The three products of a layer's linear operator [in, out], which is called `calls` times.
void add_products(std::vector<kernel> &kernels, operands &o, std::int64_t in, std::int64_t out, int calls) {
  const view a = o.f32({rows, in}), w = o.f32({in, out}), c = o.f32({rows, out}), wg = o.f32({in, out});
  const std::string size = std::to_string(in) + " to " + std::to_string(out);
  kernels.push_back({"matmul " + size, calls, [=](stream &s) { return matmul(s, c, a, w, 0, 1, false); }});
  kernels.push_back({"matmul " + size + ", of its input", calls,
                     [=](stream &s) { return matmul(s, a, c, transposed(w), 0, 1, false); }});
  kernels.push_back({"matmul " + size + ", of its weight", calls,
                     [=](stream &s) { return matmul(s, wg, transposed(a), c, 0, 1, false); }});
}

void add_attention(std::vector<kernel> &kernels, operands &o) {
  // A head's rows lie within rows of q, k and v side by side, as the products leave them.
  const view qkv = o.f32({rows, 3 * width}), qkv_grad = o.f32({rows, 3 * width}), lse = o.f32({batch, heads, tokens});
  const auto part = [](const view &all, std::int64_t which) {
    return strided_view(all.data + which * width * 4, element_type::f32, {batch, heads, tokens, head},
                        {tokens * 3 * width, head, 3 * width, 1});
  };
  const auto by_heads = [](const view &v) {
    return strided_view(v.data, element_type::f32, {batch, heads, tokens, head}, {tokens * width, head, width, 1});
  };
  const view out = by_heads(o.f32({rows, width})), out_grad = by_heads(o.f32({rows, width}));
  const view q = part(qkv, 0), k = part(qkv, 1), v = part(qkv, 2);
  const view dq = part(qkv_grad, 0), dk = part(qkv_grad, 1), dv = part(qkv_grad, 2);
  kernels.push_back({"attention", 12, [=](stream &s) { return attention(s, out, lse, q, k, v, view(), 0.125, true); }});
  kernels.push_back({"attention_grad", 12, [=](stream &s) {
                       return attention_grad(s, dq, dk, dv, out_grad, q, k, v, view(), out, lse, 0.125, true);
                     }});
}

/// What works on the activations of a layer, element by element or row by row.
void add_activations(std::vector<kernel> &kernels, operands &o) {
  const view x = o.f32({rows, width}), y = o.f32({rows, width}), dx = o.f32({rows, width}), gain = o.f32({width}),
             bias = o.f32({width}), mean = o.f32({rows}), rstd = o.f32({rows});
  const view wide = o.f32({rows, hidden}), wide_grad = o.f32({rows, hidden}), wide_out = o.f32({rows, hidden});
  const view column_sums = o.f32({hidden});
  kernels.push_back({"gelu_tanh", 12, [=](stream &s) { return map(s, gelus(), {wide_out}, {wide}); }});
  kernels.push_back(
      {"gelu_tanh_grad", 12, [=](stream &s) { return map(s, gelu_grads(), {wide_out}, {wide, wide_grad}); }});
  kernels.push_back({"add", 24, [=](stream &s) { return map(s, adds(), {dx}, {x, y}); }});
  kernels.push_back({"layer_norm", 25, [=](stream &s) { return layer_norm(s, y, mean, rstd, x, gain, bias, 1e-5); }});
  kernels.push_back({"layer_norm_grad", 25,
                     [=](stream &s) { return layer_norm_grad(s, dx, gain, bias, y, x, gain, mean, rstd, {}, false); }});
  kernels.push_back({"reduce to a bias", 12,
                     [=](stream &s) { return reduce(s, column_sums, transposed(wide), 1, reduction::sum, false); }});
}

/// The ends of the model, which hold the table of the tokens: the embedding, the logits and the loss.
void add_vocabulary(std::vector<kernel> &kernels, operands &o) {
  const view x = o.f32({rows, width}), y = o.f32({rows, width}), dx = o.f32({rows, width}), row_values = o.f32({rows});
  const view logits = o.f32({rows, classes}), table = o.f32({classes, width}), labels = o.ids({rows}, rows);
  const view table_grad = o.f32({classes, width}), sum = o.scalar(0), count = o.scalar(0), small = o.scalar(1e-3f);
  kernels.push_back(
      {"matmul logits", 1, [=](stream &s) { return matmul(s, logits, x, transposed(table), 0, 1, false); }});
  kernels.push_back(
      {"matmul logits, of its input", 1, [=](stream &s) { return matmul(s, dx, logits, table, 0, 1, false); }});
  kernels.push_back({"matmul logits, of its weight", 1,
                     [=](stream &s) { return matmul(s, table_grad, transposed(logits), x, 0, 1, false); }});
  kernels.push_back({"embedding", 1, [=](stream &s) { return embedding(s, y, table, labels, view(), 0); }});
  kernels.push_back(
      {"embedding_grad", 1, [=](stream &s) { return embedding_grad(s, table_grad, labels, y, view(), 0, true); }});
  kernels.push_back({"softmax_cross_entropy", 1, [=](stream &s) {
                       return softmax_cross_entropy(s, sum, count, row_values, logits, labels, -100);
                     }});
  kernels.push_back({"softmax_cross_entropy_grad", 1, [=](stream &s) {
                       return softmax_cross_entropy_grad(s, logits, small, logits, labels, row_values, -100);
                     }});
  kernels.push_back({"softmax_cross_entropy_with_grad", 1,
                     [=](stream &s) { return softmax_cross_entropy_with_grad(s, sum, logits, small, labels, -100); }});
}

void add_update(std::vector<kernel> &kernels, operands &o) {
  const view weight = o.f32({classes, width}), grad = o.f32({classes, width}), first = o.f32({classes, width}),
             second = o.f32({classes, width});
  const view sum = o.scalar(0), one = o.scalar(1), small = o.scalar(1e-3f);
  kernels.push_back({"square_sum", 3, [=](stream &s) { return square_sum(s, sum, grad, false); }});
  kernels.push_back({"adamw", 3, [=](stream &s) {
                       return adamw(s, weight, first, second, view(), grad, small, one, one, one, small, one, one, one,
                                    decay_mode::decoupled);
                     }});
}

/// FLOPs and bytes per second; the best of all measurements.
struct machine_rates {
  double peak = 0, memory = 0, cache = 0;
};

/// Measures the machine and raises `rates` where it was faster than before; `small_add` are three operands of 4 MiB.
status measure_machine(stream &s, std::int32_t threads, const view (&small_add)[3], machine_rates &rates) {
  rates.peak = std::max(rates.peak, detail::multiply_add_rate(threads, false, 2));
  rates.memory = std::max(rates.memory, detail::memory_rate(threads, 1));
  for (int again = 0; again < 5; ++again) {
    const double start = clock_seconds();
    WINDLASS_TRY(map(s, adds(), {small_add[0]}, {small_add[1], small_add[2]}));
    rates.cache = std::max(rates.cache, static_cast<double>(12 << 20) / (clock_seconds() - start));
  }
  return {};
}

/// Runs the kernel twice and keeps the shorter time.
status measure(stream &s, kernel &k) {
  for (int again = 0; again < 2; ++again) {
    kernel_times times;
    s.count_times(&times);
    const status result = k.run(s);
    s.count_times(nullptr);
    WINDLASS_TRY(result);
    k.what = times.rows().front().what;
    k.seconds = std::min(k.seconds, times.rows().front().seconds);
  }
  return {};
}

/// Prints a row for each kernel, that with the most time in a step first.
void print(std::vector<kernel> kernels, const machine_rates &rates, std::int32_t threads) {
  std::sort(kernels.begin(), kernels.end(),
            [](const kernel &a, const kernel &b) { return a.seconds * a.calls > b.seconds * b.calls; });
  std::printf("%d threads, %s; multiply-adds %.0f GFLOP/s, memory %.1f GB/s, cache %.1f GB/s\n"
              "%10s %6s %10s %9s %7s %7s  %s\n",
              threads, describe_backend().gemm.c_str(), rates.peak * 1e-9, rates.memory * 1e-9, rates.cache * 1e-9,
              "ms/step", "calls", "ms/call", "GFLOP/s", "GB/s", "bound", "kernel");
  for (const kernel &k : kernels) {
    const auto flops = static_cast<double>(k.what.flops), bytes = static_cast<double>(k.what.bytes);
    const double bound =
        std::max(flops / rates.peak, bytes / (k.what.bytes < cached_bytes ? rates.cache : rates.memory));
    std::printf("%10.3f %6d %10.3f %9.1f %7.1f %6.0f%%  %s\n", k.seconds * k.calls * 1e3, k.calls, k.seconds * 1e3,
                flops / k.seconds * 1e-9, bytes / k.seconds * 1e-9, 100 * bound / k.seconds, k.name.c_str());
  }
}

} // namespace

int main(int argc, char **argv) {
  const auto threads = static_cast<std::int32_t>(argc > 1 ? std::atoi(argv[1]) : 1);
  if (threads < 1 || threads > 1024)
    return std::fprintf(stderr, "usage: windlass_kernels [THREADS [PART]]\n"), 2;
  std::vector<std::byte> scratch(static_cast<std::size_t>(threads) << 23);
  const std::unique_ptr<stream> s =
      make_inline_stream(threads, scratch.data(), static_cast<std::int64_t>(scratch.size()));
  operands o;
  std::vector<kernel> kernels;
  add_products(kernels, o, width, 3 * width, 12);
  add_products(kernels, o, width, width, 12);
  add_products(kernels, o, width, hidden, 12);
  add_products(kernels, o, hidden, width, 12);
  add_attention(kernels, o);
  add_activations(kernels, o);
  add_vocabulary(kernels, o);
  add_update(kernels, o);

  const std::string wanted = argc > 2 ? argv[2] : "";
  kernels.erase(std::remove_if(kernels.begin(), kernels.end(),
                               [&](const kernel &k) { return k.name.find(wanted) == std::string::npos; }),
                kernels.end());

  machine_rates rates;
  const view small_add[] = {o.f32({1 << 20}), o.f32({1 << 20}), o.f32({1 << 20})};
  constexpr int turns = 5;
  for (int turn = 0; turn < turns; ++turn) {
    if (const status result = measure_machine(*s, threads, small_add, rates); !result.is_ok())
      return std::fprintf(stderr, "%s\n", result.message().c_str()), 1;
    for (kernel &k : kernels)
      if (const status result = measure(*s, k); !result.is_ok())
        return std::fprintf(stderr, "%s: %s\n", k.name.c_str(), result.message().c_str()), 1;
  }
  print(std::move(kernels), rates, threads);
  return 0;
}
