// Products of matrices by the device's library.
#ifndef WINDLASS_BACKENDS_CUDA_GEMM_H
#define WINDLASS_BACKENDS_CUDA_GEMM_H

#include "windlass/rt/products.h"
#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"
#include "windlass/rt/view.h"

#include <memory>
#include <string>
#include <vector>

namespace windlass::rt::cuda {

/// The work that a library does in the same pass as a product d = op(x) op(y), with contiguous columns. `vector` has
/// d's type.
enum class epilogue : std::int32_t {
  none,
  bias,            ///< adds the vector to each column of d
  bias_gelu,       ///< then applies the tanh approximation of GELU
  bias_gelu_input, ///< and keeps what that is applied to
  gelu_grad,       ///< multiplies each element by the derivative of that approximation at the input's
  sum_x,           ///< the vector becomes the sum of op(x) over what is contracted
  sum_y
};

/// c[i] = a[i] b[i] + beta c[i] for `batch` products of [m, k] and [k, n]. Strides count elements; in each matrix one
/// of the two is 1 (or its dimension is 1), and the other at least the size of the first's dimension.
struct gemm_call {
  struct matrix {
    std::byte *data;
    element_type type; ///< of a and b the same
    std::int64_t row_stride, column_stride, batch_stride;
  };
  matrix a, b, c;
  std::int64_t m, n, k, batch = 1;
  float beta = 0;
  bool rounds_to_tf32 = false; ///< operands of f32, whose products then run on tensor cores
};

/// A product without a batch that is a single call; false where it is several, or operands have to be packed for it.
bool as_one_call(const view &out, const view &a, const view &b, std::int32_t contract_rank, bool accumulate,
                 gemm_call &call);

/// The call as libraries with columns in a row want it: d = op(x) op(y), all with a leading dimension.
struct column_gemm {
  struct matrix {
    std::byte *data;
    element_type type;
    bool is_transposed;
    std::int64_t rows, columns, leading, batch_stride; ///< as stored, before it is transposed
  };
  matrix x, y, d;
  std::int64_t m, n, k, batch;
  float beta;
  bool rounds_to_tf32;
  epilogue also = epilogue::none; ///< of one product only
  std::byte *vector = nullptr;    ///< read or written by the epilogue
  std::byte *input = nullptr;     ///< of GELU, of d's type and layout; read for `gelu_grad`, else written
  std::byte *added = nullptr;     ///< times beta, of d's type and layout; null: d itself
};
column_gemm as_columns(const gemm_call &call);
/// Returns whether the call's columns are the transpose of its rows: x is then b, y is a, and rows of d are columns of
/// c.
bool is_transposed(const gemm_call &call);

/// The library's preparation for calls that differ only in their addresses.
class prepared_gemm {
public:
  virtual ~prepared_gemm() = default;
  /// Returns the library's guesses, the best first, and no more than `most`.
  virtual status guess(std::size_t most, std::vector<product_algorithm> &out) = 0;
  /// Uses this algorithm from now on; false, with nothing changed, where this version of the library cannot.
  virtual bool use(const product_algorithm &algorithm) = 0;
  /// Uses the first guess from now on, as a newly prepared call does.
  virtual void use_first() = 0;
  virtual status run(stream &s, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes) = 0;
};

/// A library's handle. Used by one thread.
class gemm_library {
public:
  virtual ~gemm_library() = default;
  /// Returns the library's name and version: algorithms mean something to the same version only.
  virtual std::string version() const = 0;
  /// Prepares a call for operands whose addresses are multiples of `alignment`.
  virtual status prepare(const column_gemm &call, int alignment, std::int64_t workspace_bytes,
                         std::unique_ptr<prepared_gemm> &out) = 0;
};
std::unique_ptr<gemm_library> make_gemm_library();

} // namespace windlass::rt::cuda

#endif
