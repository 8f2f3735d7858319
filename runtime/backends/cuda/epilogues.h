// The choice of products that the library computes with their bias, GELU or bias gradient in one pass.
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
  /// The view that the call's vector, then the first bytes of scratch, is added to; the library only overwrites.
  view adds_to;
  status run(stream &s, products &by) const;
  std::int64_t vector_bytes() const;
};
/// Makes the call; false where it is no single call, or the vector's layout is not one that libraries take.
bool as_one_call(const stream &s, const detail::fused_product &of, fused_call &out);

/// Runs fused products of one stream: by the library where it can compute them, unless its own measurement says that
/// two kernels take less time. Used by one thread.
class epilogues {
public:
  explicit epilogues(products &by) : by_(by) {}
  /// Uses the faster way from now on.
  void tune() { tunes_ = true; }
  status run(stream &s, const detail::fused_product &of, const std::function<status()> &apart);

  /// Returns the number of shapes that the library computes.
  std::size_t fused() const;
  /// Takes the times of the last product run while tuning, if the library can compute it.
  std::optional<detail::tuned_epilogue> take_tuned();

private:
  struct entry {
    bool is_fused = false;
    std::optional<detail::tuned_epilogue> times;
  };
  status decide(stream &s, const fused_call &fused, const std::function<status()> &apart, entry &of);

  products &by_;
  std::map<products::shape, entry> entries_;
  bool tunes_ = false;
  std::optional<detail::tuned_epilogue> last_;
};

} // namespace windlass::rt::cuda

#endif
