// Operands of measured kernels.
#ifndef WINDLASS_BENCHMARKS_FLOAT_OPERANDS_H
#define WINDLASS_BENCHMARKS_FLOAT_OPERANDS_H

#include "windlass/rt/view.h"

#include <vector>

namespace windlass::rt {

/// Makes views of memory that is taken once and filled with small numbers.
class float_operands {
public:
  view f32(std::initializer_list<std::int64_t> sizes) {
    std::int64_t n = 1;
    for (const std::int64_t size : sizes)
      n *= size;
    std::vector<float> &v = floats_.emplace_back(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = static_cast<float>(static_cast<int>(i * 7919 % 1009) - 504) * 1e-3f;
    return dense_view(reinterpret_cast<std::byte *>(v.data()), element_type::f32, sizes);
  }

private:
  std::vector<std::vector<float>> floats_;
};

} // namespace windlass::rt

#endif
