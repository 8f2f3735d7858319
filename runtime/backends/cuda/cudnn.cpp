// Attention by cuDNN, as graphs of its frontend. The frontend is headers only, and they are large: nothing else is in
// this file, and nothing of them anywhere else. The library is opened at run time, so that programs start where it is
// not.
#include "attention_library.h"

#include "windlass/rt/detail/cuda_stream.h"

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>

#include <dlfcn.h>

#include <exception>
#include <unordered_map>

/// Which the frontend calls through; null until the library is open.
void *cudnn_frontend::cudnn_dlhandle = nullptr;

namespace windlass::rt::cuda {

namespace {

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;
using tensor = std::shared_ptr<Tensor_attributes>;

status check_cudnn(fe::error_t result) {
  if (result.is_good())
    return {};
  std::string text = result.get_message(); // of several lines
  return internal_error("cuDNN says: " + text.substr(0, text.find('\n')));
}

/// The frontend throws where the library lacks a function.
template <class F> status guarded(F f) {
  try {
    return f();
  } catch (const std::exception &error) {
    return internal_error(std::string("cuDNN's frontend says: ") + error.what());
  }
}

std::int64_t number_of(int operand) { return operand + 1; }
constexpr std::int64_t lse_number = attention_shape::operands + 1;

class cudnn_attention final : public prepared_attention {
public:
  cudnn_attention(cudnnHandle_t handle, const attention_shape &shape) : handle_(handle), shape_(shape) {}

  status prepare(int architecture) {
    graph_.set_io_data_type(shape_.type == element_type::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT)
        .set_sm_version(architecture);
    if (shape_.is_gradient)
      backward();
    else
      forward();
    WINDLASS_TRY(check_cudnn(graph_.build(handle_, {fe::HeurMode_t::A})));
    return check_cudnn(graph_.get_workspace_size(workspace_bytes_));
  }

  std::int64_t workspace_bytes() const override { return workspace_bytes_; }

  status run(const attention_memory &memory, std::byte *workspace) override {
    std::unordered_map<std::int64_t, void *> addresses = {{lse_number, memory.lse}};
    for (int i = 0; i < (shape_.is_gradient ? attention_shape::operands : attention_shape::dout); ++i)
      addresses[number_of(i)] = memory.operands[i];
    return guarded([&] { return check_cudnn(graph_.execute(handle_, addresses, workspace)); });
  }

private:
  /// As it lies in memory.
  void lay_out(Tensor_attributes &of, int operand) const {
    const std::array<std::int64_t, 4> sizes = sizes_of(shape_, operand);
    const std::int64_t *strides = shape_.strides[operand];
    of.set_uid(number_of(operand))
        .set_dim({sizes.begin(), sizes.end()})
        .set_stride({strides[0], strides[1], strides[2], 1});
  }
  void lay_out_lse(Tensor_attributes &of) const {
    of.set_uid(lse_number)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({shape_.batch, shape_.heads, shape_.queries, 1})
        .set_stride({shape_.heads * shape_.queries, shape_.queries, 1, 1});
  }
  tensor input(int operand) {
    Tensor_attributes made;
    lay_out(made, operand);
    return graph_.tensor(made);
  }
  void output(const tensor &of, int operand) const {
    of->set_output(true);
    lay_out(*of, operand);
  }
  /// The last query sees the last key.
  template <class Attributes> void mask(Attributes &attributes) const {
    if (shape_.is_causal)
      attributes
          .set_diagonal_alignment(shape_.queries == shape_.keys ? fe::DiagonalAlignment_t::TOP_LEFT
                                                                : fe::DiagonalAlignment_t::BOTTOM_RIGHT)
          .set_diagonal_band_right_bound(0);
  }

  void forward() {
    auto attributes = fe::graph::SDPA_attributes()
                          .set_name("attention")
                          .set_generate_stats(true)
                          .set_attn_scale(static_cast<float>(shape_.scale));
    mask(attributes);
    const auto [out, lse] = graph_.sdpa(input(attention_shape::q), input(attention_shape::k), input(attention_shape::v),
                                        std::move(attributes));
    output(out, attention_shape::out);
    lse->set_output(true);
    lay_out_lse(*lse);
  }

  void backward() {
    auto attributes = fe::graph::SDPA_backward_attributes()
                          .set_name("attention_grad")
                          .set_attn_scale(static_cast<float>(shape_.scale))
                          .set_deterministic_algorithm(true); // as all of the own kernels are
    mask(attributes);
    Tensor_attributes sums;
    lay_out_lse(sums);
    const tensor lse = graph_.tensor(sums);
    const auto [dq, dk, dv] =
        graph_.sdpa_backward(input(attention_shape::q), input(attention_shape::k), input(attention_shape::v),
                             input(attention_shape::out), input(attention_shape::dout), lse, std::move(attributes));
    output(dq, attention_shape::dq);
    output(dk, attention_shape::dk);
    output(dv, attention_shape::dv);
  }

  cudnnHandle_t handle_;
  attention_shape shape_;
  fe::graph::Graph graph_;
  std::int64_t workspace_bytes_ = 0;
};

class cudnn_library final : public attention_library {
public:
  ~cudnn_library() override {
    if (handle_ != nullptr)
      fe::detail::destroy_handle(handle_);
  }

  status open(const stream &s) {
    // Once for the process, whose ranks may be threads.
    static void *const file = open_file(name, WINDLASS_CUDNN_FOLDER);
    if (file == nullptr)
      return bad_input(std::string(name) + " cannot be opened; install cuDNN or name its folder in LD_LIBRARY_PATH");
    // The frontend clears workspaces by this library, which it opens by its name.
    static void *const runtime = open_file(runtime_name, WINDLASS_CUDART_FOLDER);
    if (runtime == nullptr)
      return bad_input(std::string(runtime_name) + " cannot be opened; name its folder in LD_LIBRARY_PATH");
    static const bool is_set = (fe::cudnn_dlhandle = file) != nullptr;
    static_cast<void>(is_set);
    int device = 0, major = 0, minor = 0;
    WINDLASS_TRY(check(cudaGetDevice(&device), "asking for the device"));
    WINDLASS_TRY(check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for it"));
    WINDLASS_TRY(check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "asking for it"));
    architecture_ = 10 * major + minor;
    return guarded([&]() -> status {
      version_ = "cuDNN " + fe::detail::get_backend_version_string();
      WINDLASS_TRY(check_handle(fe::detail::create_handle(&handle_)));
      return check_handle(fe::detail::set_stream(handle_, native(s)));
    });
  }

  std::string version() const override { return version_; }

  status prepare(const attention_shape &shape, std::unique_ptr<prepared_attention> &out) override {
    auto made = std::make_unique<cudnn_attention>(handle_, shape);
    WINDLASS_TRY(guarded([&] { return made->prepare(architecture_); }));
    out = std::move(made);
    return {};
  }

private:
  static constexpr const char *name = "libcudnn.so.9";
  static_assert(CUDNN_MAJOR == 9, "the name of the library has its major version");
  static constexpr const char *runtime_name = CUDART_VERSION >= 13000 ? "libcudart.so.13" : "libcudart.so.12";

  /// Opens a library where the loader finds it, or else in the folder where it was when this was compiled.
  static void *open_file(const std::string &file, const std::string &folder) {
    void *found = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    return found != nullptr ? found : dlopen((folder + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  }

  static status check_handle(cudnnStatus_t result) {
    if (result == CUDNN_STATUS_SUCCESS)
      return {};
    return bad_input(std::string("cuDNN does not start: ") + fe::detail::get_error_string(result));
  }

  cudnnHandle_t handle_ = nullptr;
  int architecture_ = 0;
  std::string version_;
};

} // namespace

status open_attention_library(stream &s, std::unique_ptr<attention_library> &out) {
  auto made = std::make_unique<cudnn_library>();
  WINDLASS_TRY(made->open(s));
  out = std::move(made);
  return {};
}

} // namespace windlass::rt::cuda
