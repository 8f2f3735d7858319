#include "windlass/rt/detail/combine.h"

#include "windlass/rt/detail/half.h"
#include "windlass/rt/detail/team.h"

#include <type_traits>

namespace windlass::rt::detail {

namespace {

template <class A> A apply(A a, A b, reduction kind) {
  switch (kind) {
  case reduction::sum:
    return static_cast<A>(a + b);
  case reduction::max: // the second test keeps a NaN
    return (a > b || a != a) ? a : b;
  case reduction::min:
    return (a < b || a != a) ? a : b;
  }
  return a;
}

/// T is the stored type, A the type of the sums.
template <class T, class A, reduction kind>
void combine_as(std::byte *const *outputs, std::int32_t output_count, const std::byte *const *parts,
                std::int32_t members, std::int64_t elements) {
  if (members == 2 && output_count <= 2) { // in one pass, so that all memory is read and written at once
    const T *a = reinterpret_cast<const T *>(parts[0]), *b = reinterpret_cast<const T *>(parts[1]);
    T *x = reinterpret_cast<T *>(outputs[0]), *y = reinterpret_cast<T *>(outputs[output_count - 1]);
    WINDLASS_SIMD
    for (std::int64_t i = 0; i < elements; ++i)
      x[i] = y[i] = static_cast<T>(apply<A>(static_cast<A>(a[i]), static_cast<A>(b[i]), kind));
    return;
  }
  constexpr std::int64_t block = 1024;
  A sums[block];
  for (std::int64_t begin = 0; begin < elements; begin += block) {
    const std::int64_t n = std::min(block, elements - begin);
    const T *first = reinterpret_cast<const T *>(parts[0]) + begin;
    WINDLASS_SIMD
    for (std::int64_t i = 0; i < n; ++i)
      sums[i] = static_cast<A>(first[i]);
    for (std::int32_t m = 1; m < members; ++m) {
      const T *next = reinterpret_cast<const T *>(parts[m]) + begin;
      WINDLASS_SIMD
      for (std::int64_t i = 0; i < n; ++i)
        sums[i] = apply<A>(sums[i], static_cast<A>(next[i]), kind);
    }
    for (std::int32_t o = 0; o < output_count; ++o) {
      T *out = reinterpret_cast<T *>(outputs[o]) + begin;
      WINDLASS_SIMD
      for (std::int64_t i = 0; i < n; ++i)
        out[i] = static_cast<T>(sums[i]);
    }
  }
}

} // namespace

status combine(std::byte *const *outputs, std::int32_t output_count, const std::byte *const *parts,
               std::int32_t members, std::int64_t elements, element_type type, reduction kind) {
  const auto run = [&](auto stored, auto sum) {
    using T = decltype(stored);
    using A = decltype(sum);
    switch (kind) {
    case reduction::sum:
      return combine_as<T, A, reduction::sum>(outputs, output_count, parts, members, elements);
    case reduction::max:
      return combine_as<T, A, reduction::max>(outputs, output_count, parts, members, elements);
    case reduction::min:
      return combine_as<T, A, reduction::min>(outputs, output_count, parts, members, elements);
    }
  };
  switch (type) {
  case element_type::f32:
    run(float(), float());
    return {};
  case element_type::f64:
    run(double(), double());
    return {};
  case element_type::bf16:
    run(bf16(), float());
    return {};
  case element_type::f16:
    run(f16(), float());
    return {};
  case element_type::i64:
    run(std::int64_t(), std::int64_t());
    return {};
  case element_type::i32:
    run(std::int32_t(), std::int32_t());
    return {};
  case element_type::u16:
    run(std::uint16_t(), std::uint16_t());
    return {};
  case element_type::u8:
    run(std::uint8_t(), std::uint8_t());
    return {};
  case element_type::boolean:
    if (kind == reduction::sum)
      kind = reduction::max;
    run(std::uint8_t(), std::uint8_t());
    return {};
  }
  return internal_error("unknown element type in a reduction between ranks");
}

std::int64_t part_begin(std::int64_t elements, std::int32_t parts, std::int32_t part) {
  const std::int64_t blocks = (elements + 15) / 16;
  const std::int64_t block = blocks / parts * part + std::min<std::int64_t>(part, blocks % parts);
  return std::min(elements, block * 16);
}

} // namespace windlass::rt::detail
