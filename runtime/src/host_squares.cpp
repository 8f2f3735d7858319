// Sums of squares as the host's threads compute them, in programs for devices too.
#include "windlass/rt/detail/host_squares.h"

#include "windlass/rt/detail/half.h"
#include "windlass/rt/detail/reduce_all.h"
#include "windlass/rt/detail/squares.h"

namespace windlass::rt::detail {

namespace {

struct squares_of {
  using value = double;
  static constexpr double start = 0;
  static double add(double r, float x) { return r + static_cast<double>(x) * static_cast<double>(x); }
  static double join(double a, double b) { return a + b; }
};

bool has_floats(const view &v) { return v.type == element_type::f32; }

/// Sums what is f32 or bf16.
void sum_squares(float &out, const std::byte *data, element_type type, const sequence &elements, bool accumulate,
                 std::int32_t threads) {
  if (type == element_type::bf16)
    reduce_all<squares_of>(out, reinterpret_cast<const bf16 *>(data), elements, accumulate, threads);
  else
    reduce_all<squares_of>(out, reinterpret_cast<const float *>(data), elements, accumulate, threads);
}

} // namespace

status square_sum_on_host(stream &s, const view &out, const view &in, bool accumulate) {
  if (!has_floats(out) || (!has_floats(in) && in.type != element_type::bf16))
    return internal_error("square_sum sums f32 or bf16 in f32");
  return s.submit({"square_sum", 0, bytes_of({in}), {in.elements()}}, [=, threads = s.threads()]() -> status {
    sum_squares(*out.as<float>(), in.data, in.type, sequence(in, 0, in.rank), accumulate, threads);
    return {};
  });
}

/// Each gradient's sum is added by itself, so that the bits are those of a command for each.
status square_sum_list_on_host(stream &s, const view &out, const squared_gradients &gradients, bool accumulate) {
  if (!has_floats(out))
    return internal_error("square_sum sums in f32");
  return s.submit(work_of(gradients),
                  [sum = out.as<float>(), gradients, accumulate, threads = s.threads()]() -> status {
                    for (std::int32_t i = 0; i < gradients.count; ++i) {
                      const squared_gradients::gradient &g = gradients.of[i];
                      view elements; // in place, because a step allocates nothing
                      elements.rank = 1;
                      elements.sizes[0] = g.elements;
                      elements.strides[0] = 1;
                      sum_squares(*sum, g.data, gradients.type, sequence(elements, 0, 1), accumulate || i > 0, threads);
                    }
                    return {};
                  });
}

} // namespace windlass::rt::detail
