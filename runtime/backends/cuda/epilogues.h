// Which products the library computes with their bias, GELU or bias gradient in one pass.
#ifndef WINDLASS_BACKENDS_CUDA_EPILOGUES_H
#define WINDLASS_BACKENDS_CUDA_EPILOGUES_H

#include "products.h"

#include "windlass/rt/detail/backend.h"
#include "windlass/rt/detail/fused_product.h"

#include <functional>
#include <map>
#include <optional>

namespace windlass::rt::cuda {

/// A fused product as one call of the library, and what is left to do after it.
struct fused_call {
  column_gemm call;
  /// What the call's vector, which is the first bytes of scratch then, is added to; the library only overwrites.
  view adds_to;
  status run(stream &s, products &by) const;
  std::int64_t vector_bytes() const;
};
/// False where it is no single call, or the vector does not lie as libraries want it.
bool as_one_call(const stream &s, const detail::fused_product &of, fused_call &out);

/// Runs fused products of one stream: as two kernels, unless a profile or its own measurement says that the library
/// takes less time for both. Used by one thread.
class epilogues {
public:
  explicit epilogues(products &by) : by_(by) {}
  /// From now on what the library can do.
  void use() { uses_ = true; }
  /// From now on what is faster.
  void tune() { uses_ = tunes_ = true; }
  status run(stream &s, const detail::fused_product &of, const std::function<status()> &apart);

  /// Shapes that the library computes.
  std::size_t fused() const;
  /// Of the last that was run while tuning, if the library can compute it.
  std::optional<detail::tuned_epilogue> take_tuned();

private:
  struct entry {
    bool is_fused = false;
    std::optional<detail::tuned_epilogue> times;
  };
  status decide(stream &s, const fused_call &fused, const std::function<status()> &apart, entry &of);

  products &by_;
  std::map<products::shape, entry> entries_;
  bool uses_ = false, tunes_ = false;
  std::optional<detail::tuned_epilogue> last_;
};

} // namespace windlass::rt::cuda

#endif
