// Conversions between element types, and the functors that copy and fill views by them.
#ifndef WINDLASS_RT_DETAIL_CONVERT_H
#define WINDLASS_RT_DETAIL_CONVERT_H

#include "windlass/rt/detail/half.h"
#include "windlass/rt/map.h"

#include <type_traits>

namespace windlass::rt::detail {

template <class T> constexpr bool is_half = std::is_same_v<T, bf16> || std::is_same_v<T, f16>;

template <class To, class From> WINDLASS_FN To convert(From x) {
  if constexpr (is_half<From>)
    return convert<To>(static_cast<float>(x));
  else if constexpr (is_half<To>)
    return To(static_cast<float>(x));
  else if constexpr (std::is_same_v<To, bool>)
    return x != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    // Through the widest integer, with values that do not fit made 0: the plain conversion is undefined for them.
    return x > From(-9.2e18) && x < From(9.2e18) ? static_cast<To>(static_cast<std::int64_t>(x)) : To(0);
  else
    return static_cast<To>(x);
}

template <class To, class From> struct converter {
  using outputs = type_list<To>;
  using inputs = type_list<From>;
  WINDLASS_FN static void apply(To &r, From x) { r = convert<To>(x); }
};

template <class T> struct filler {
  using outputs = type_list<T>;
  using inputs = type_list<>;
  T value;
  WINDLASS_FN void apply(T &r) const { r = value; }
};

template <int N> loop_nest<N> nest_of(const view *const (&operands)[N]) {
  loop_nest<N> nest;
  nest.rank = operands[0]->rank;
  for (int d = 0; d < nest.rank; ++d)
    nest.sizes[d] = operands[0]->sizes[d];
  for (int k = 0; k < N; ++k) {
    nest.data[k] = operands[k]->data;
    for (int d = 0; d < nest.rank; ++d)
      nest.strides[k][d] = operands[k]->strides[d];
  }
  nest.simplify();
  return nest;
}

} // namespace windlass::rt::detail

#endif
