// The choice of the library's algorithm for each product.
#ifndef WINDLASS_BACKENDS_CUDA_PRODUCTS_H
#define WINDLASS_BACKENDS_CUDA_PRODUCTS_H

#include "gemm.h"

#include "windlass/rt/detail/backend.h"

#include <array>
#include <map>

namespace windlass::rt::cuda {

/// Runs products of one stream, each shape by the algorithm that a profile chose, or that was the fastest of some, or
/// that the library guesses. Used by one thread.
class products {
public:
  explicit products(std::unique_ptr<gemm_library> library) : library_(std::move(library)) {}
  /// Sets the choices for shapes that come from now on. The choices outlive this object.
  void choose(const span<product_choice> &choices) { choices_ = choices; }
  void tune() { tunes_ = true; }

  /// Prepares the call of this shape; fails where the library cannot compute it.
  status prepare(stream &s, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes);
  status run(stream &s, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes);

  /// The key that calls have in common that are computed alike.
  using shape = std::array<std::int64_t, 18>;
  static shape shape_of(const column_gemm &call);

  std::string library() const { return library_->version(); }
  const std::vector<detail::tuned_product> &tuned() const { return tuned_; }
  std::size_t shapes() const { return prepared_.size(); }
  std::size_t chosen() const { return chosen_; }

private:
  /// Returns a name for people and profiles.
  static std::string name_of(const column_gemm &call, int alignment);
  status find(stream &s, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes,
              prepared_gemm *&out);
  status find_fastest(stream &s, const column_gemm &call, const std::string &name, std::byte *workspace,
                      std::int64_t workspace_bytes, prepared_gemm &of);

  std::unique_ptr<gemm_library> library_;
  std::map<shape, std::unique_ptr<prepared_gemm>> prepared_;
  span<product_choice> choices_;
  bool tunes_ = false;
  std::vector<detail::tuned_product> tuned_;
  std::size_t chosen_ = 0;
};

} // namespace windlass::rt::cuda

#endif
