// Entry points of the compute kernels, the same for every back end.
//
// Every kernel takes the stream that it runs on, then the views it writes, then the views it reads, then constants.
// Views may have any strides unless a kernel says otherwise; types are f32 for data, i64 for indices, boolean for
// masks. Written views never overlap read ones except where a kernel says "in place". `accumulate` adds to what the
// written views hold instead of overwriting it. Kernels take no memory: scratch comes from the stream's planned scratch
// area, whose size for a call is given by the matching `*_scratch_bytes`, which the compiler evaluates too.
#ifndef WINDLASS_RT_KERNELS_H
#define WINDLASS_RT_KERNELS_H

#include "windlass/rt/status.h"
#include "windlass/rt/stream.h"
#include "windlass/rt/view.h"

namespace windlass::rt {

enum class reduction : std::int32_t { sum, max, min };

/// out <- in, element by element, converting the type where they differ (float to integer truncates, x != 0 for
/// boolean). Between dense views of one type it only moves bytes, from any arena to any other, so that streams of the
/// kinds h2d and d2h can copy to a device's memory and back.
status copy(stream &s, const view &out, const view &in);
/// Sets every element of `out` to `value` (rounded to its type).
status fill(stream &s, const view &out, double value);
/// out <- the elements at `values`, dense and of the type of `out`. The program keeps them: a stream may read them any
/// time later. `out` is dense.
status constant(stream &s, const view &out, const void *values);
/// out[..., i_dim, ...] = start + step * i_dim.
status iota(stream &s, const view &out, std::int32_t dim, double start, double step);

/// out[b.., m.., n..] (+)= sum over k of a[b.., m.., k..] * b[b.., k.., n..].
/// The `batch_rank` leading dims of all three are the batch; the last `contract_rank` dims of `a` and the dims of `b`
/// that follow its batch are contracted. A transpose is a view with permuted strides; kernels pass it to GEMM unpacked
/// whenever dims collapse to (batch, rows, columns) with one unit stride, else pack into scratch.
status matmul(stream &s, const view &out, const view &a, const view &b, std::int32_t batch_rank,
              std::int32_t contract_rank, bool accumulate);
std::int64_t matmul_scratch_bytes(const view &out, const view &a, const view &b, std::int32_t batch_rank,
                                  std::int32_t contract_rank);

// A product without a batch, and what often follows it. A device's library may compute both in one pass, which then
// rounds once where two kernels round twice.

/// out = a b + bias + added. The bias has the sizes of `out` and strides of 0 over all of its dims but the last;
/// `added`, which may be absent, has the sizes of `out`.
status matmul_bias(stream &s, const view &out, const view &a, const view &b, const view &bias, const view &added,
                   std::int32_t contract_rank);
/// out = gelu(a b + bias), with the tanh approximation of GELU. `input`, which may be absent, keeps a b + bias.
status matmul_bias_gelu(stream &s, const view &out, const view &input, const view &a, const view &b, const view &bias,
                        std::int32_t contract_rank);
/// dx = the gradient of gelu(x), with the tanh approximation of GELU, where a b is that of its result.
status matmul_gelu_grad(stream &s, const view &dx, const view &a, const view &b, const view &x,
                        std::int32_t contract_rank);
/// out (+)= a b, and dbias (+)= the sum of a, or of b with `sums_b`, over the contracted dims.
status matmul_bias_grad(stream &s, const view &out, const view &dbias, const view &a, const view &b,
                        std::int32_t contract_rank, bool sums_b, bool accumulate);

// Convolutions and pooling over one to three spatial dims, the last ones of [batch, channels, spatial..].

/// Where windows lie, by spatial dim; entries beyond the spatial dims are not read. Element k of the window of output p
/// is element p * stride + k * dilation - pad of the input.
struct windows {
  std::int64_t sizes[3], strides[3], dilations[3], pads[3];
};

/// y[b, g outs + o, p..] (+)= sum over c and k of x[b, g ins + c, (element k of the window of p)..] w[g outs + o, c,
/// k..] with x [batch, groups * ins, spatial..] and w [groups * outs, ins, window..]; elements outside of x are 0.
status convolution(stream &s, const view &y, const view &x, const view &w, const windows &of, bool accumulate);
/// The gradient of x from that of y.
status convolution_data_grad(stream &s, const view &dx, const view &dy, const view &w, const windows &of,
                             bool accumulate);
/// The gradient of w from that of y.
status convolution_weight_grad(stream &s, const view &dw, const view &dy, const view &x, const windows &of,
                               bool accumulate);
/// Returns the scratch of each of the three, in bytes, for `y` (or dy) and `w` (or dw).
std::int64_t convolution_scratch_bytes(const view &y, const view &w, std::int32_t threads);

/// y = the largest element of each window that is inside x; a NaN is larger than any number. Every window has an
/// element inside.
status max_pool(stream &s, const view &y, const view &x, const windows &of);
/// dx (+)= the gradient dy of each window at the first of its largest elements.
status max_pool_grad(stream &s, const view &dx, const view &dy, const view &x, const windows &of, bool accumulate);
/// y = the sum of the elements of each window that are inside x, divided by their number, or with `counts_pads` by
/// that of the whole window.
status average_pool(stream &s, const view &y, const view &x, const windows &of, bool counts_pads);
/// The gradient of x from that of y.
status average_pool_grad(stream &s, const view &dx, const view &dy, const windows &of, bool counts_pads,
                         bool accumulate);

/// out[kept..] (+)= reduction over the last `reduced_rank` dims of in[kept.., reduced..]. max and min do not
/// accumulate.
status reduce(stream &s, const view &out, const view &in, std::int32_t reduced_rank, reduction kind, bool accumulate);

/// Softmax over the last dim, and its gradient dx = y * (dy - sum(y * dy)). May run in place (out == in, dx == dy).
status softmax(stream &s, const view &out, const view &in);
status softmax_grad(stream &s, const view &dx, const view &y, const view &dy);

/// y = (x - mean) * rstd * scale + bias over the last dim; mean and rstd have the leading dims of x. bias may be
/// absent.
status layer_norm(stream &s, const view &y, const view &mean, const view &rstd, const view &x, const view &scale,
                  const view &bias, double epsilon);
/// Computes dx, dscale and dbias from dy; dscale and dbias sum over all rows, and add to what they hold with
/// `accumulate`. dbias may be absent. `added` (of x's sizes, may be absent, may be dx) is added to dx as its type holds
/// it.
status layer_norm_grad(stream &s, const view &dx, const view &dscale, const view &dbias, const view &dy, const view &x,
                       const view &scale, const view &mean, const view &rstd, const view &added, bool accumulate);
/// RMS norm: as layer_norm, without mean and bias, with rstd = 1 / sqrt(mean(x²) + epsilon).
status rms_norm(stream &s, const view &y, const view &rstd, const view &x, const view &scale, double epsilon);
status rms_norm_grad(stream &s, const view &dx, const view &dscale, const view &dy, const view &x, const view &scale,
                     const view &rstd, const view &added, bool accumulate);
/// sum = a + b + c, in this order, and the norm of `sum` as its type holds it. c may be absent; strides of 0 repeat a
/// vector. sum and y may each be the same view as a, b or c.
status add_layer_norm(stream &s, const view &sum, const view &y, const view &mean, const view &rstd, const view &a,
                      const view &b, const view &c, const view &scale, const view &bias, double epsilon);
status add_rms_norm(stream &s, const view &sum, const view &y, const view &rstd, const view &a, const view &b,
                    const view &c, const view &scale, double epsilon);
/// Returns the scratch of layer_norm_grad and of rms_norm_grad, in bytes.
std::int64_t norm_grad_scratch_bytes(const view &x, std::int32_t threads);

/// Rotary position embedding of rows x[.., t, :] of 2 h elements by tables [t, 2 h]: y = x * cosine + (-x₂, x₁) * sine,
/// where x₁ and x₂ are the halves of the row. With `transposed` it computes the transpose of that map, which is its
/// gradient.
status rotary(stream &s, const view &y, const view &x, const view &cosine, const view &sine, bool transposed);

/// Dropout of samples x[b, ..] with keys[b] (`windlass/rt/philox.h`): element i of a sample becomes 0 where its word of
/// dropout_words is below dropout_threshold(ratio), else x / (1 - ratio). The gradient is the same map applied to dy.
/// In place allowed.
status dropout(stream &s, const view &y, const view &x, const view &keys, double ratio);

/// out[b,h,t,e] = softmax_s(scale * q[b,h,t,:].k[b,h/g,s,:] + mask[b,h,t,s]) v[b,h/g,s,e] with g = heads of q over
/// heads of k and v; lse[b,h,t] is the logarithm of the softmax's denominator. With `causal`, s > t + (S - T) is left
/// out. mask (f32, added; broadcast by 0 strides) may be absent. A row whose every key is masked gives zeros, lse =
/// -inf.
status attention(stream &s, const view &out, const view &lse, const view &q, const view &k, const view &v,
                 const view &mask, double scale, bool causal);
std::int64_t attention_scratch_bytes(const view &q, const view &k, std::int32_t threads);
status attention_grad(stream &s, const view &dq, const view &dk, const view &dv, const view &dout, const view &q,
                      const view &k, const view &v, const view &mask, const view &out, const view &lse, double scale,
                      bool causal);
std::int64_t attention_grad_scratch_bytes(const view &q, const view &k, std::int32_t threads);

/// Over rows of logits[rows.., classes] with labels[rows..]: sum = sum of -log softmax(logits)[label], count = number
/// of rows whose label is not `ignore_index` (both scalars, f32), lse[rows..]. A label outside [0, classes) that is not
/// ignore_index is bad_input.
status softmax_cross_entropy(stream &s, const view &sum, const view &count, const view &lse, const view &logits,
                             const view &labels, std::int64_t ignore_index);
/// dlogits = dsum * (softmax(logits) - onehot(label)), 0 for ignored rows. dsum is a scalar view. In place allowed.
status softmax_cross_entropy_grad(stream &s, const view &dlogits, const view &dsum, const view &logits,
                                  const view &labels, const view &lse, std::int64_t ignore_index);
/// Computes both, with the same bits; the gradient replaces the logits. Each row is read from memory once.
status softmax_cross_entropy_with_grad(stream &s, const view &sum, const view &logits, const view &dsum,
                                       const view &labels, std::int64_t ignore_index);
/// count = number of labels that are not `ignore_index` (a scalar, f32).
status count_labels(stream &s, const view &count, const view &labels, std::int64_t ignore_index);

/// out[ids.., d] = table[id, d]; an id outside the table is bad_input (negative ids are too). Where `first` is not
/// absent, the table has only some of `all_rows` rows: as many equal parts as `first` (i64) has elements, where part p
/// begins with row first[p]; a row that is in no part gives zeros. Without `first`, all_rows is not read.
status embedding(stream &s, const view &out, const view &table, const view &ids, const view &first,
                 std::int64_t all_rows);
/// dtable[id, :] (+)= sum of dout rows of that id, in row order (deterministic); a table of parts gets the sums of the
/// rows that it has.
status embedding_grad(stream &s, const view &dtable, const view &ids, const view &dout, const view &first,
                      std::int64_t all_rows, bool accumulate);

/// The function between the two matrices of an expert.
enum class expert_activation : std::int32_t { relu, gelu_erf, gelu_tanh, silu };

/// The settings that all experts of a layer share. `gated`: the hidden values of `up` are two halves, and the
/// activation of the first is multiplied by the second. `inputs_first`: matrices are [experts, inputs, outputs] and not
/// [experts, outputs, inputs]. `all_rows` is the number of experts of which the matrices have some, where `first` is
/// not absent.
struct expert_layer {
  expert_activation activation;
  bool gated, inputs_first;
  std::int64_t all_rows;
};

/// y[t] = sum over c of weights[t, c] down[e] activation(up[e] x[t]) with e = choices[t, c] (i64), an index of `up` and
/// `down`, or with `first` of one of their parts as in `embedding`; experts that are in no part give zeros. Where
/// `gate`, of the shape of `up`, is not absent, it is down[e] (activation(gate[e] x[t]) * up[e] x[t]). A choice outside
/// of the experts is bad_input. The scratch, of `experts_scratch_bytes`, holds the hidden values of a limited number of
/// rows.
status experts(stream &s, const view &y, const view &x, const view &choices, const view &weights, const view &up,
               const view &down, const view &gate, const view &first, const expert_layer &of);
std::int64_t experts_scratch_bytes(const view &x, const view &choices, const view &up, const view &down,
                                   const view &gate, const expert_layer &of, std::int32_t threads);
/// The gradients of x, weights, up, down and gate from that of y, of which the last three are (+)=. Rows are added up
/// in the order of experts and then of tokens.
status experts_grad(stream &s, const view &dx, const view &dweights, const view &dup, const view &ddown,
                    const view &dgate, const view &dy, const view &x, const view &choices, const view &weights,
                    const view &up, const view &down, const view &gate, const view &first, const expert_layer &of,
                    bool accumulate);
std::int64_t experts_grad_scratch_bytes(const view &x, const view &choices, const view &up, const view &down,
                                        const view &gate, const expert_layer &of, std::int32_t threads);

/// ONNX Gather along `axis`: out[pre.., idx.., post..] = in[pre.., index, post..]; negative indices count from the end.
status gather(stream &s, const view &out, const view &in, const view &indices, std::int32_t axis);
/// The adjoint of gather: out (+)= in scattered along `axis`.
status scatter_add(stream &s, const view &out, const view &indices, const view &in, std::int32_t axis, bool accumulate);

/// ONNX GatherElements along `axis`: out[.., i, ..] = in[.., indices[.., i, ..], ..]; all other dims are equal;
/// negative indices count from the end.
status gather_elements(stream &s, const view &out, const view &in, const view &indices, std::int32_t axis);
/// The adjoint of gather_elements: adds each element of `in` to `out` where gather_elements read it.
status scatter_elements_add(stream &s, const view &out, const view &indices, const view &in, std::int32_t axis,
                            bool accumulate);

/// out (+)= sum of squares of `in`, which is f32 or bf16; `out` is a scalar in f32.
status square_sum(stream &s, const view &out, const view &in, bool accumulate);
/// The gradients whose squares one command sums, all dense, by value: a device takes them as the arguments of one
/// launch, which may have 4 KiB, as a command in a worker's ring may.
struct squared_gradients {
  struct gradient {
    std::int64_t elements;
    const std::byte *data;
  };
  /// What a command has besides them takes less than 512 bytes.
  static constexpr std::int32_t most = (stream::slot_bytes - 512) / sizeof(gradient);
  element_type type = element_type::f32; ///< of all elements: f32 or bf16
  std::int32_t count = 0;
  gradient of[most];
};
/// out (+)= sum of squares of all of the gradients (scalar, f32). The order of the additions depends on the gradients'
/// sizes only, and on how much scratch a device's stream has.
status square_sum_list(stream &s, const view &out, const squared_gradients &gradients, bool accumulate);

/// Where weight decay acts: nowhere, on the weight (AdamW), or on the gradient (Adam).
enum class decay_mode : std::int32_t { none, decoupled, coupled };
/// Updates in place by AdamW or Adam, as PyTorch does in f32. The gradient is f32 or bf16. All operands after it are
/// f32 scalars: learning rate, 1 - beta1, 1 - beta2, epsilon, weight decay, 1 - beta1^t, 1 - beta2^t, and the factor on
/// the gradient, which combines clipping and the loss scale; where it is NaN, weight and state stay as they are.
/// `rounded`, which may be absent, becomes the new weight as bf16 or f16.
status adamw(stream &s, const view &weight, const view &exp_avg, const view &exp_avg_sq, const view &rounded,
             const view &gradient, const view &learning_rate, const view &one_minus_beta1, const view &one_minus_beta2,
             const view &epsilon, const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
             const view &gradient_scale, decay_mode decay);
/// The parameters that one command updates, all dense, and f32 but for gradients, by value: a device takes them as the
/// arguments of one launch, which may have 4 KiB.
struct updated_parameters {
  static constexpr std::int32_t most = 64;
  struct parameter {
    std::int64_t elements;
    float *weight, *exp_avg, *exp_avg_sq;
    const std::byte *gradient;
    std::byte *rounded;
  };
  element_type gradients = element_type::f32; ///< the type of the gradients, f32 or bf16
  element_type rounded = element_type::f32;   ///< the type of the rounded weights, bf16 or f16; f32: there are none
  std::int32_t count = 0;
  parameter of[most];
};
/// Runs `adamw` on each of the parameters.
status adamw_list(stream &s, const updated_parameters &parameters, const view &learning_rate,
                  const view &one_minus_beta1, const view &one_minus_beta2, const view &epsilon,
                  const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
                  const view &gradient_scale, decay_mode decay);
/// Computes the direction of a step of LAMB from weight and gradient, and updates the state in place. The scalars are
/// as in adamw. Where gradient_scale is NaN, the direction becomes 0 and the state stays.
status lamb(stream &s, const view &direction, const view &weight, const view &exp_avg, const view &exp_avg_sq,
            const view &gradient, const view &one_minus_beta1, const view &one_minus_beta2, const view &epsilon,
            const view &weight_decay, const view &bias_correction1, const view &bias_correction2,
            const view &gradient_scale, bool decays);
/// Updates the buffer of Muon's momentum in place, buffer <- buffer + (1 - momentum) (g - buffer), where g is scaled,
/// and computes the direction g + momentum (buffer - g). Where gradient_scale is NaN, the direction becomes 0 and the
/// buffer stays.
status momentum(stream &s, const view &direction, const view &buffer, const view &gradient, const view &momentum,
                const view &gradient_scale);
/// Lets a weight shrink and moves it along a direction, in place: weight <- weight (1 - decay) - rate direction. All
/// are f32, `rate` and `decay` scalars. `rounded` is as in adamw.
status descend(stream &s, const view &weight, const view &rounded, const view &direction, const view &rate,
               const view &decay);
/// Moves an average towards a weight, in place: average <- average + rate (weight - average). All are f32; `rate` is a
/// scalar.
status ema(stream &s, const view &average, const view &weight, const view &rate);
/// Updates in place by Lion: w <- w (1 - learning_rate decay) - learning_rate sign(m + (1 - beta1) (g - m)), then m <-
/// m + (1 - beta2) (g - m), where g is scaled; without the decay where `decays` is false. Weight and state stay as they
/// are where gradient_scale is NaN. `rounded` is as in adamw.
status lion(stream &s, const view &weight, const view &exp_avg, const view &rounded, const view &gradient,
            const view &learning_rate, const view &one_minus_beta1, const view &one_minus_beta2,
            const view &weight_decay, const view &gradient_scale, bool decays);
/// Updates in place: v = momentum * v + (g * gradient_scale + decay * w), w -= learning_rate * v; weight and state stay
/// as they are where gradient_scale is NaN. `rounded` is as in adamw.
status sgd(stream &s, const view &weight, const view &momentum_buffer, const view &rounded, const view &gradient,
           const view &learning_rate, const view &momentum, const view &weight_decay, const view &gradient_scale,
           bool decays);

} // namespace windlass::rt

#endif
