// Products of matrices by cuBLASLt.
#include "gemm.h"
#include "stream.h"

#include <cublasLt.h>

#include <limits>
#include <utility>

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

cublasLtEpilogue_t epilogue_of(epilogue also) {
  switch (also) {
  case epilogue::none:
    break;
  case epilogue::bias:
    return CUBLASLT_EPILOGUE_BIAS;
  case epilogue::bias_gelu:
    return CUBLASLT_EPILOGUE_GELU_BIAS;
  case epilogue::bias_gelu_input:
    return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  case epilogue::gelu_grad:
    return CUBLASLT_EPILOGUE_DGELU;
  case epilogue::sum_x:
    return CUBLASLT_EPILOGUE_BGRADA;
  case epilogue::sum_y:
    return CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

/// What makes an algorithm, in the order of its numbers, and how wide each is; the first is set when it is begun.
struct algorithm_part {
  cublasLtMatmulAlgoConfigAttributes_t attribute;
  std::size_t bytes;
};
constexpr algorithm_part parts[product_algorithm::count] = {
    {CUBLASLT_ALGO_CONFIG_ID, 4},
    {CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
    {CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
    {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
    {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
    {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
    {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
    {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
    {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2},
};
constexpr int reduction_part = 4;

bool read_numbers(const cublasLtMatmulAlgo_t &from, product_algorithm &out) {
  for (int i = 0; i < product_algorithm::count; ++i) {
    std::uint32_t word = 0; // of the processor, on which the lower bytes come first
    std::size_t written = 0;
    if (cublasLtMatmulAlgoConfigGetAttribute(&from, parts[i].attribute, &word, parts[i].bytes, &written) !=
            CUBLAS_STATUS_SUCCESS ||
        word > std::numeric_limits<std::int32_t>::max())
      return false;
    out.numbers[i] = static_cast<std::int32_t>(word);
  }
  return true;
}

/// How parts of a sum may be joined: in f32, which is also the type of some results.
std::uint32_t exact_reductions(cudaDataType_t result) {
  return CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | (result == CUDA_R_32F ? CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE : 0);
}

/// Descriptors and the algorithm for one shape.
class cublaslt_gemm final : public prepared_gemm {
public:
  cublaslt_gemm(cublasLtHandle_t handle, int alignment, std::int64_t workspace_bytes)
      : handle_(handle), alignment_(static_cast<std::uint32_t>(alignment)),
        workspace_bytes_(static_cast<std::size_t>(workspace_bytes)) {}
  cublaslt_gemm(const cublaslt_gemm &) = delete;
  cublaslt_gemm &operator=(const cublaslt_gemm &) = delete;
  ~cublaslt_gemm() override {
    for (cublasLtMatrixLayout_t layout : {x_, y_, d_})
      if (layout != nullptr)
        cublasLtMatrixLayoutDestroy(layout);
    if (operation_ != nullptr)
      cublasLtMatmulDescDestroy(operation_);
  }

  status prepare(const column_gemm &call) {
    types_ = {type_of(call.x.type), type_of(call.d.type)};
    compute_ = call.rounds_to_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    WINDLASS_TRY(check_blas(cublasLtMatmulDescCreate(&operation_, compute_, CUDA_R_32F), "a descriptor"));
    WINDLASS_TRY(transpose(CUBLASLT_MATMUL_DESC_TRANSA, call.x.is_transposed));
    WINDLASS_TRY(transpose(CUBLASLT_MATMUL_DESC_TRANSB, call.y.is_transposed));
    WINDLASS_TRY(layout(x_, call.x, call.batch));
    WINDLASS_TRY(layout(y_, call.y, call.batch));
    WINDLASS_TRY(layout(d_, call.d, call.batch));
    if (call.also != epilogue::none) {
      WINDLASS_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(call.also)));
      WINDLASS_TRY(place(call)); // the heuristics look at how the addresses are aligned
    }
    std::vector<cublasLtMatmulHeuristicResult_t> found;
    WINDLASS_TRY(ask(1, found));
    if (found.empty())
      return internal_error("cublasLt has no algorithm for a product of " + std::to_string(call.m) + " x " +
                            std::to_string(call.k) + " and " + std::to_string(call.k) + " x " + std::to_string(call.n));
    first_ = algorithm_ = found.front().algo;
    return {};
  }

  status guess(std::size_t most, std::vector<product_algorithm> &out) override {
    std::vector<cublasLtMatmulHeuristicResult_t> found;
    WINDLASS_TRY(ask(most, found));
    for (const cublasLtMatmulHeuristicResult_t &each : found)
      if (product_algorithm numbers; each.state == CUBLAS_STATUS_SUCCESS && read_numbers(each.algo, numbers))
        out.push_back(numbers);
    return {};
  }

  bool use(const product_algorithm &algorithm) override {
    const auto scheme = static_cast<std::uint32_t>(algorithm.numbers[reduction_part]);
    if ((scheme & ~exact_reductions(types_.second)) != 0)
      return false;
    cublasLtMatmulAlgo_t made;
    if (cublasLtMatmulAlgoInit(handle_, compute_, CUDA_R_32F, types_.first, types_.first, types_.second, types_.second,
                               algorithm.numbers[0], &made) != CUBLAS_STATUS_SUCCESS)
      return false;
    for (int i = 1; i < product_algorithm::count; ++i) {
      const auto word = static_cast<std::uint32_t>(algorithm.numbers[i]);
      if (parts[i].bytes == 2 && word > std::numeric_limits<std::uint16_t>::max())
        return false;
      if (cublasLtMatmulAlgoConfigSetAttribute(&made, parts[i].attribute, &word, parts[i].bytes) !=
          CUBLAS_STATUS_SUCCESS)
        return false;
    }
    cublasLtMatmulHeuristicResult_t checked;
    if (cublasLtMatmulAlgoCheck(handle_, operation_, x_, y_, d_, d_, &made, &checked) != CUBLAS_STATUS_SUCCESS ||
        checked.workspaceSize > workspace_bytes_)
      return false;
    algorithm_ = made;
    return true;
  }

  void use_first() override { algorithm_ = first_; }

  status run(stream &s, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes) override {
    const float alpha = 1;
    if (call.also != epilogue::none)
      WINDLASS_TRY(place(call));
    const std::byte *added = call.added == nullptr ? call.d.data : call.added;
    return check_blas(cublasLtMatmul(handle_, operation_, &alpha, call.x.data, x_, call.y.data, y_, &call.beta, added,
                                     d_, call.d.data, d_, &algorithm_, workspace,
                                     static_cast<std::size_t>(workspace_bytes), native(s)),
                      "a product");
  }

private:
  template <class T> status set(cublasLtMatmulDescAttributes_t which, T value) {
    return check_blas(cublasLtMatmulDescSetAttribute(operation_, which, &value, sizeof value), "a description");
  }
  status transpose(cublasLtMatmulDescAttributes_t which, bool is_transposed) {
    return set(which, is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  }
  /// Where the epilogue works.
  status place(const column_gemm &call) {
    if (call.vector != nullptr)
      WINDLASS_TRY(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.vector));
    if (call.input == nullptr)
      return {};
    WINDLASS_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, call.input));
    return set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, call.d.leading);
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

  /// What the heuristics rank first; none where they know nothing.
  status ask(std::size_t most, std::vector<cublasLtMatmulHeuristicResult_t> &out) {
    cublasLtMatmulPreference_t preference = nullptr;
    WINDLASS_TRY(check_blas(cublasLtMatmulPreferenceCreate(&preference), "a preference"));
    const std::uint32_t schemes = exact_reductions(types_.second);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes_,
                                         sizeof workspace_bytes_);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                         sizeof schemes);
    for (const cublasLtMatmulPreferenceAttributes_t which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      cublasLtMatmulPreferenceSetAttribute(preference, which, &alignment_, sizeof alignment_);
    out.resize(most);
    int count = 0;
    const cublasStatus_t result = cublasLtMatmulAlgoGetHeuristic(handle_, operation_, x_, y_, d_, d_, preference,
                                                                 static_cast<int>(most), out.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    out.resize(static_cast<std::size_t>(count));
    return check_blas(result, "choosing an algorithm");
  }

  cublasLtHandle_t handle_;
  std::uint32_t alignment_;
  std::size_t workspace_bytes_;
  cublasComputeType_t compute_ = CUBLAS_COMPUTE_32F;
  std::pair<cudaDataType_t, cudaDataType_t> types_; ///< of the operands and of the result
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t x_ = nullptr, y_ = nullptr, d_ = nullptr;
  cublasLtMatmulAlgo_t first_ = {}, algorithm_ = {};
};

class cublaslt_library final : public gemm_library {
public:
  cublaslt_library() { made_ = check_blas(cublasLtCreate(&handle_), "its start"); }
  ~cublaslt_library() override {
    if (handle_ != nullptr)
      cublasLtDestroy(handle_);
  }

  std::string version() const override { return "cuBLASLt " + std::to_string(cublasLtGetVersion()); }

  status prepare(const column_gemm &call, int alignment, std::int64_t workspace_bytes,
                 std::unique_ptr<prepared_gemm> &out) override {
    WINDLASS_TRY(made_);
    auto made = std::make_unique<cublaslt_gemm>(handle_, alignment, workspace_bytes);
    WINDLASS_TRY(made->prepare(call));
    out = std::move(made);
    return {};
  }

private:
  cublasLtHandle_t handle_ = nullptr;
  status made_;
};

} // namespace

std::unique_ptr<gemm_library> make_gemm_library() { return std::make_unique<cublaslt_library>(); }

} // namespace windlass::rt::cuda
