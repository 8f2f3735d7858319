#ifndef WINDLASS_RT_SPAN_H
#define WINDLASS_RT_SPAN_H

#include <cstdint>

namespace windlass::rt {

/// A pointer and a length of constant data.
template <class T> struct span {
  const T *data = nullptr;
  std::int64_t size = 0;
  const T *begin() const { return data; }
  const T *end() const { return data + size; }
  const T &operator[](std::int64_t i) const { return data[i]; }
};

} // namespace windlass::rt

#endif
