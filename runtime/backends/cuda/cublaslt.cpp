// Products of matrices by cuBLASLt.
#include "gemm.h"
#include "stream.h"

#include <cublasLt.h>

#include <map>
#include <tuple>

namespace windlass::rt::cuda {

namespace {

status check_blas(cublasStatus_t result, const char *what) {
  if (result == CUBLAS_STATUS_SUCCESS)
    return {};
  return internal_error(std::string("cublasLt: ") + what + " failed with status " + std::to_string(result));
}

cudaDataType_t type_of(element_type type) {
  return type == element_type::bf16 ? CUDA_R_16BF : type == element_type::f16 ? CUDA_R_16F : CUDA_R_32F;
}

/// What the library needs to know of a call: everything but where it works.
using shape_key =
    std::tuple<element_type, element_type, bool, bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
               std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, bool, int>;

/// The largest power of two up to 256 that divides all addresses.
int alignment_of(const column_gemm &call) {
  std::uintptr_t all = 256;
  for (const column_gemm::matrix *m : {&call.x, &call.y, &call.d})
    all |= reinterpret_cast<std::uintptr_t>(m->data);
  return static_cast<int>(all & (~all + 1));
}

/// Descriptors and the algorithm that the library's heuristics rank first, for one shape.
class prepared_gemm {
public:
  prepared_gemm() = default;
  prepared_gemm(const prepared_gemm &) = delete;
  prepared_gemm &operator=(const prepared_gemm &) = delete;
  ~prepared_gemm() {
    for (cublasLtMatrixLayout_t layout : {x_, y_, d_})
      if (layout != nullptr)
        cublasLtMatrixLayoutDestroy(layout);
    if (operation_ != nullptr)
      cublasLtMatmulDescDestroy(operation_);
  }

  status prepare(cublasLtHandle_t handle, const column_gemm &call, int alignment, std::int64_t workspace_bytes) {
    const cublasComputeType_t type = call.rounds_to_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    WINDLASS_TRY(check_blas(cublasLtMatmulDescCreate(&operation_, type, CUDA_R_32F), "a descriptor"));
    WINDLASS_TRY(transpose(CUBLASLT_MATMUL_DESC_TRANSA, call.x.is_transposed));
    WINDLASS_TRY(transpose(CUBLASLT_MATMUL_DESC_TRANSB, call.y.is_transposed));
    WINDLASS_TRY(layout(x_, call.x, call.batch));
    WINDLASS_TRY(layout(y_, call.y, call.batch));
    WINDLASS_TRY(layout(d_, call.d, call.batch));
    cublasLtMatmulPreference_t preference = nullptr;
    WINDLASS_TRY(check_blas(cublasLtMatmulPreferenceCreate(&preference), "a preference"));
    const auto most = static_cast<std::size_t>(workspace_bytes);
    const auto aligned = static_cast<std::uint32_t>(alignment);
    // Parts of a sum are joined in f32, not in the type of the result.
    const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                         sizeof schemes);
    for (const cublasLtMatmulPreferenceAttributes_t which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      cublasLtMatmulPreferenceSetAttribute(preference, which, &aligned, sizeof aligned);
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    const cublasStatus_t result =
        cublasLtMatmulAlgoGetHeuristic(handle, operation_, x_, y_, d_, d_, preference, 1, &found, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    WINDLASS_TRY(check_blas(result, "choosing an algorithm"));
    if (count == 0)
      return internal_error("cublasLt has no algorithm for a product of " + std::to_string(call.m) + " x " +
                            std::to_string(call.k) + " and " + std::to_string(call.k) + " x " + std::to_string(call.n));
    algorithm_ = found.algo;
    return {};
  }

  status run(cublasLtHandle_t handle, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes,
             cudaStream_t on) const {
    const float alpha = 1;
    return check_blas(cublasLtMatmul(handle, operation_, &alpha, call.x.data, x_, call.y.data, y_, &call.beta,
                                     call.d.data, d_, call.d.data, d_, &algorithm_, workspace,
                                     static_cast<std::size_t>(workspace_bytes), on),
                      "a product");
  }

private:
  status transpose(cublasLtMatmulDescAttributes_t which, bool is_transposed) {
    const cublasOperation_t operation = is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    return check_blas(cublasLtMatmulDescSetAttribute(operation_, which, &operation, sizeof operation), "a transpose");
  }
  static status layout(cublasLtMatrixLayout_t &out, const column_gemm::matrix &of, std::int64_t batch) {
    WINDLASS_TRY(check_blas(cublasLtMatrixLayoutCreate(&out, type_of(of.type), static_cast<std::uint64_t>(of.rows),
                                                       static_cast<std::uint64_t>(of.columns), of.leading),
                            "a layout"));
    if (batch == 1)
      return {};
    const auto count = static_cast<std::int32_t>(batch);
    WINDLASS_TRY(check_blas(
        cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "a batch"));
    return check_blas(cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                       &of.batch_stride, sizeof of.batch_stride),
                      "a batch");
  }

  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t x_ = nullptr, y_ = nullptr, d_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

class cublaslt_library final : public gemm_library {
public:
  cublaslt_library() { made_ = check_blas(cublasLtCreate(&handle_), "its start"); }
  ~cublaslt_library() override {
    prepared_.clear();
    if (handle_ != nullptr)
      cublasLtDestroy(handle_);
  }

  status run(stream &s, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes) override {
    WINDLASS_TRY(made_);
    const int alignment = alignment_of(call);
    const shape_key key = {call.x.type,
                           call.d.type,
                           call.x.is_transposed,
                           call.y.is_transposed,
                           call.m,
                           call.n,
                           call.k,
                           call.batch,
                           call.x.leading,
                           call.y.leading,
                           call.d.leading,
                           call.x.batch_stride,
                           call.y.batch_stride,
                           call.d.batch_stride,
                           call.beta != 0,
                           call.rounds_to_tf32,
                           alignment};
    std::unique_ptr<prepared_gemm> &entry = prepared_[key];
    if (entry == nullptr) {
      auto made = std::make_unique<prepared_gemm>();
      WINDLASS_TRY(made->prepare(handle_, call, alignment, workspace_bytes));
      entry = std::move(made);
    }
    return entry->run(handle_, call, workspace, workspace_bytes, native(s));
  }

private:
  cublasLtHandle_t handle_ = nullptr;
  status made_;
  std::map<shape_key, std::unique_ptr<prepared_gemm>> prepared_;
};

} // namespace

std::unique_ptr<gemm_library> make_gemm_library() { return std::make_unique<cublaslt_library>(); }

} // namespace windlass::rt::cuda
