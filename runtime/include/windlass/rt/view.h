// Typed, strided windows onto arena memory: the only way that emitted code names data.
#ifndef WINDLASS_RT_VIEW_H
#define WINDLASS_RT_VIEW_H

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace windlass::rt {

enum class element_type : std::int32_t { f32, f64, bf16, f16, i64, i32, u16, u8, boolean };

/// Returns the bytes of one element; a boolean takes one byte that is 0 or 1.
constexpr std::int64_t size_of(element_type type) {
  switch (type) {
  case element_type::f64:
  case element_type::i64:
    return 8;
  case element_type::f32:
  case element_type::i32:
    return 4;
  case element_type::bf16:
  case element_type::f16:
  case element_type::u16:
    return 2;
  case element_type::u8:
  case element_type::boolean:
    return 1;
  }
  return 0;
}

constexpr int max_rank = 8;

/// A window onto memory that somebody else owns. Sizes and strides count elements; a stride of 0 repeats one element.
struct view {
  std::byte *data = nullptr;
  element_type type = element_type::f32;
  std::int32_t rank = 0;
  std::int64_t sizes[max_rank] = {};
  std::int64_t strides[max_rank] = {};

  template <class T> T *as() const { return reinterpret_cast<T *>(data); }
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i)
      n *= sizes[i];
    return n;
  }
  /// Returns whether elements follow each other in row-major order without holes.
  bool is_contiguous() const {
    std::int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (sizes[i] != 1 && strides[i] != expected)
        return false;
      expected *= sizes[i];
    }
    return true;
  }
  bool is_absent() const { return data == nullptr; }
};

/// Returns a row-major window of the given sizes that starts at `data`.
constexpr view dense_view(std::byte *data, element_type type, std::initializer_list<std::int64_t> sizes) {
  view v;
  v.data = data;
  v.type = type;
  for (std::int64_t size : sizes)
    v.sizes[v.rank++] = size;
  std::int64_t stride = 1;
  for (int i = v.rank - 1; i >= 0; --i) {
    v.strides[i] = stride;
    stride *= v.sizes[i];
  }
  return v;
}

/// Returns a window with explicit strides (elements) that starts at `data`.
constexpr view strided_view(std::byte *data, element_type type, std::initializer_list<std::int64_t> sizes,
                            std::initializer_list<std::int64_t> strides) {
  view v;
  v.data = data;
  v.type = type;
  for (std::int64_t size : sizes)
    v.sizes[v.rank++] = size;
  int i = 0;
  for (std::int64_t stride : strides)
    v.strides[i++] = stride;
  return v;
}

/// Returns whether both have the same leading `rank` dims.
inline bool has_same_dims(const view &a, const view &b, int rank) {
  bool same = a.rank >= rank && b.rank >= rank;
  for (int d = 0; d < rank && same; ++d)
    same = a.sizes[d] == b.sizes[d];
  return same;
}
/// Returns whether both have the same dims.
inline bool has_same_sizes(const view &a, const view &b) { return a.rank == b.rank && has_same_dims(a, b, a.rank); }

} // namespace windlass::rt

#endif
