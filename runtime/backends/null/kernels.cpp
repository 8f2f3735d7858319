// The null back end: commands keep their order between streams and ranks, and touch no data.
#include "windlass/rt/kernels.h"
#include "windlass/rt/backend.h"
#include "windlass/rt/detail/backend.h"
#include "windlass/rt/null_backend.h"

#include <atomic>

namespace windlass::rt {

namespace {

std::atomic<null_observer> installed{nullptr};

status issue(stream &s, const char *kernel) {
  return s.submit([kernel, &s]() -> status {
    if (const null_observer observer = installed.load())
      observer(s, kernel);
    return {};
  });
}

} // namespace

std::int64_t detail::kernel_bytes(std::int32_t) { return 0; }
status detail::prepare_kernels(std::int32_t) { return {}; }

backend_facts describe_backend() { return {"null", "", {}}; }

void set_null_observer(null_observer observer) { installed.store(observer); }

status copy(stream &s, const view &, const view &) { return issue(s, "copy"); }
status fill(stream &s, const view &, double) { return issue(s, "fill"); }
status constant(stream &s, const view &, const void *) { return issue(s, "constant"); }
status iota(stream &s, const view &, std::int32_t, double, double) { return issue(s, "iota"); }

status matmul(stream &s, const view &, const view &, const view &, std::int32_t, std::int32_t, bool) {
  return issue(s, "matmul");
}

status convolution(stream &s, const view &, const view &, const view &, const windows &, bool) {
  return issue(s, "convolution");
}
status convolution_data_grad(stream &s, const view &, const view &, const view &, const windows &, bool) {
  return issue(s, "convolution_data_grad");
}
status convolution_weight_grad(stream &s, const view &, const view &, const view &, const windows &, bool) {
  return issue(s, "convolution_weight_grad");
}
status max_pool(stream &s, const view &, const view &, const windows &) { return issue(s, "max_pool"); }
status max_pool_grad(stream &s, const view &, const view &, const view &, const windows &, bool) {
  return issue(s, "max_pool_grad");
}
status average_pool(stream &s, const view &, const view &, const windows &, bool) { return issue(s, "average_pool"); }
status average_pool_grad(stream &s, const view &, const view &, const windows &, bool, bool) {
  return issue(s, "average_pool_grad");
}

status reduce(stream &s, const view &, const view &, std::int32_t, reduction, bool) { return issue(s, "reduce"); }
status softmax(stream &s, const view &, const view &) { return issue(s, "softmax"); }
status softmax_grad(stream &s, const view &, const view &, const view &) { return issue(s, "softmax_grad"); }

status layer_norm(stream &s, const view &, const view &, const view &, const view &, const view &, const view &,
                  double) {
  return issue(s, "layer_norm");
}
status layer_norm_grad(stream &s, const view &, const view &, const view &, const view &, const view &, const view &,
                       const view &, const view &, const view &, bool) {
  return issue(s, "layer_norm_grad");
}
status rms_norm(stream &s, const view &, const view &, const view &, const view &, double) {
  return issue(s, "rms_norm");
}
status rms_norm_grad(stream &s, const view &, const view &, const view &, const view &, const view &, const view &,
                     const view &, bool) {
  return issue(s, "rms_norm_grad");
}
status add_layer_norm(stream &s, const view &, const view &, const view &, const view &, const view &, const view &,
                      const view &, const view &, const view &, double) {
  return issue(s, "add_layer_norm");
}
status add_rms_norm(stream &s, const view &, const view &, const view &, const view &, const view &, const view &,
                    const view &, double) {
  return issue(s, "add_rms_norm");
}
status rotary(stream &s, const view &, const view &, const view &, const view &, bool) { return issue(s, "rotary"); }
status dropout(stream &s, const view &, const view &, const view &, double) { return issue(s, "dropout"); }

status attention(stream &s, const view &, const view &, const view &, const view &, const view &, const view &, double,
                 bool) {
  return issue(s, "attention");
}
status attention_grad(stream &s, const view &, const view &, const view &, const view &, const view &, const view &,
                      const view &, const view &, const view &, const view &, double, bool) {
  return issue(s, "attention_grad");
}

status softmax_cross_entropy(stream &s, const view &, const view &, const view &, const view &, const view &,
                             std::int64_t) {
  return issue(s, "softmax_cross_entropy");
}
status softmax_cross_entropy_grad(stream &s, const view &, const view &, const view &, const view &, const view &,
                                  std::int64_t) {
  return issue(s, "softmax_cross_entropy_grad");
}
status softmax_cross_entropy_with_grad(stream &s, const view &, const view &, const view &, const view &,
                                       std::int64_t) {
  return issue(s, "softmax_cross_entropy_with_grad");
}
status count_labels(stream &s, const view &, const view &, std::int64_t) { return issue(s, "count_labels"); }

status embedding(stream &s, const view &, const view &, const view &, const view &, std::int64_t) {
  return issue(s, "embedding");
}
status embedding_grad(stream &s, const view &, const view &, const view &, const view &, std::int64_t, bool) {
  return issue(s, "embedding_grad");
}
status experts(stream &s, const view &, const view &, const view &, const view &, const view &, const view &,
               const view &, const view &, const expert_layer &) {
  return issue(s, "experts");
}
status experts_grad(stream &s, const view &, const view &, const view &, const view &, const view &, const view &,
                    const view &, const view &, const view &, const view &, const view &, const view &, const view &,
                    const expert_layer &, bool) {
  return issue(s, "experts_grad");
}
status gather(stream &s, const view &, const view &, const view &, std::int32_t) { return issue(s, "gather"); }
status scatter_add(stream &s, const view &, const view &, const view &, std::int32_t, bool) {
  return issue(s, "scatter_add");
}
status gather_elements(stream &s, const view &, const view &, const view &, std::int32_t) {
  return issue(s, "gather_elements");
}
status scatter_elements_add(stream &s, const view &, const view &, const view &, std::int32_t, bool) {
  return issue(s, "scatter_elements_add");
}
status square_sum(stream &s, const view &, const view &, bool) { return issue(s, "square_sum"); }
status square_sum_list(stream &s, const view &, const squared_gradients &, bool) { return issue(s, "square_sum"); }

status adamw(stream &s, const view &, const view &, const view &, const view &, const view &, const view &,
             const view &, const view &, const view &, const view &, const view &, const view &, const view &,
             decay_mode) {
  return issue(s, "adamw");
}
status adamw_list(stream &s, const updated_parameters &, const view &, const view &, const view &, const view &,
                  const view &, const view &, const view &, const view &, decay_mode) {
  return issue(s, "adamw");
}
status lamb(stream &s, const view &, const view &, const view &, const view &, const view &, const view &, const view &,
            const view &, const view &, const view &, const view &, const view &, bool) {
  return issue(s, "lamb");
}
status momentum(stream &s, const view &, const view &, const view &, const view &, const view &) {
  return issue(s, "momentum");
}
status descend(stream &s, const view &, const view &, const view &, const view &, const view &) {
  return issue(s, "descend");
}
status ema(stream &s, const view &, const view &, const view &) { return issue(s, "ema"); }
status lion(stream &s, const view &, const view &, const view &, const view &, const view &, const view &, const view &,
            const view &, const view &, bool) {
  return issue(s, "lion");
}
status sgd(stream &s, const view &, const view &, const view &, const view &, const view &, const view &, const view &,
           const view &, bool) {
  return issue(s, "sgd");
}

} // namespace windlass::rt
