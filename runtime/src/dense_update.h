// An optimizer's step on dense operands, in one pass over memory.
//
// The step takes blocks of as many elements as fill a line of the cache in 16 bits. The arithmetic is that of the
// step's `apply` for all blocks and vectors, so all versions leave the same bits. New weights are rounded while they
// are in registers or L1.
#ifndef WINDLASS_SRC_DENSE_UPDATE_H
#define WINDLASS_SRC_DENSE_UPDATE_H

#include "rounded_block.h"

#include "windlass/rt/map.h"

#include <type_traits>
#include <utility>

namespace windlass::rt::detail {

/// The operands of one parameter's step, all dense: `states` tensors of state, and no rounded weight where `rounded` is
/// null.
template <int states> struct dense_parameter {
  std::int64_t elements;
  float *weight, *state[states];
  const std::byte *gradient;
  std::byte *rounded;
};

/// Stands for the type of the rounded weight where there is none.
struct unrounded {};

/// The tensors of state that a step has: its results without the weight.
template <class Step> constexpr int states_of = Step::outputs::size - 1;

/// A step on elements of one parameter, whose rounded weight is of type H and whose gradient is of type G.
template <class Step, class H, class G, class States = std::make_index_sequence<states_of<Step>>> class dense_update;
template <class Step, class H, class G, std::size_t... S> class dense_update<Step, H, G, std::index_sequence<S...>> {
  static constexpr bool rounds = !std::is_same_v<H, unrounded>;
  /// The distance at which an element is fetched before its use. From 512 on large updates were 5 to 10 % slower.
  static constexpr std::int64_t fetched_ahead = 128;
  static constexpr std::int64_t line_bytes = 64, line_floats = line_bytes / 4;

  const Step step;
  float *const weight, *const state[sizeof...(S)];
  const G *const gradient;
  std::byte *const rounded;
  const bool streams;

  /// Returns the new weight.
  WINDLASS_INLINE float update_element(std::int64_t i) const {
    float updated;
    const auto apply = [&](auto... old) {
      step.apply(updated, state[S][i]..., weight[i], old..., static_cast<float>(gradient[i]));
    };
    apply(state[S][i]...);
    return weight[i] = updated;
  }

  WINDLASS_INLINE void update_some(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i) {
      [[maybe_unused]] const float updated = update_element(i);
      if constexpr (rounds)
        reinterpret_cast<H *>(rounded)[i] = H(updated);
    }
  }

  WINDLASS_INLINE void update_block(std::int64_t begin) const {
    for (std::int64_t i = begin + fetched_ahead; i < begin + fetched_ahead + block_elements; i += line_floats) {
      __builtin_prefetch(weight + i, 1);
      (__builtin_prefetch(state[S] + i, 1), ...);
      __builtin_prefetch(gradient + i);
    }
    alignas(line_bytes) float updated[block_elements];
    WINDLASS_SIMD
    for (std::int64_t k = 0; k < block_elements; ++k)
      updated[k] = update_element(begin + k);
    if constexpr (rounds)
      round_block(reinterpret_cast<H *>(rounded) + begin, updated, streams);
  }

  /// Returns the elements from `begin` to where a line of the rounded weight or, without it, of the weight begins.
  std::int64_t count_before_line(std::int64_t begin) const {
    if constexpr (rounds)
      return static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(rounded + begin * sizeof(H)) % line_bytes /
                                       sizeof(H));
    else
      return static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(weight + begin) % line_bytes / sizeof(float));
  }

public:
  /// With `streams` rounded weights are not kept in caches.
  dense_update(const Step &step, const dense_parameter<sizeof...(S)> &p, bool streams)
      : step(step), weight(p.weight), state{p.state[S]...}, gradient(reinterpret_cast<const G *>(p.gradient)),
        rounded(p.rounded), streams(streams) {}

  WINDLASS_INLINE void update(std::int64_t begin, std::int64_t end) const {
    std::int64_t at = std::min(end, begin + count_before_line(begin));
    update_some(begin, at);
    for (; at + block_elements <= end; at += block_elements)
      update_block(at);
    update_some(at, end);
  }
};

/// Runs a step on `count` parameters, of which `parameter_at(i)` returns the operands. The threads divide the elements
/// of all parameters, laid end to end, among them.
template <class H, class G, class Step, class ParameterAt>
void update_dense(const Step &step, std::int32_t count, ParameterAt parameter_at, std::int32_t threads) {
  // Threads are worth their start from this number of elements each.
  constexpr std::int64_t grain = 8192;
  // What a command of more bytes leaves in the caches is gone before it is read.
  constexpr std::int64_t cached_bytes = std::int64_t(32) << 20;
  std::int64_t elements = 0;
  for (std::int32_t i = 0; i < count; ++i)
    elements += parameter_at(i).elements;
  const bool streams = elements * (2 * states_of<Step> + 3) * 4 > cached_bytes;
  parallel(threads, elements, grain, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    for (std::int32_t i = 0; i < count && end > 0; ++i) {
      const dense_parameter<states_of<Step>> p = parameter_at(i);
      if (begin < p.elements)
        dense_update<Step, H, G>(step, p, streams).update(begin, std::min(end, p.elements));
      begin = std::max<std::int64_t>(0, begin - p.elements);
      end -= p.elements;
    }
    if (streams)
      end_streaming();
  });
}

} // namespace windlass::rt::detail

#endif
