// Plain loops in place of the device's library of attentions.
#include "../attention_library.h"
#include "../kernel.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace windlass::rt::cuda {

namespace {

using values = std::vector<double>;

/// One head of one sample.
struct head {
  const attention_shape &of;
  const attention_memory &memory;
  std::int64_t batch, number;

  /// A row of an operand, of keys and values that of the group's head.
  values row(int which, std::int64_t i, std::int64_t columns) const {
    values out;
    for (std::int64_t c = 0; c < columns; ++c)
      out.push_back(double(place(which).get(at(which, i) + c)));
    return out;
  }
  void store(int which, std::int64_t i, const double *from, std::int64_t columns) const {
    for (std::int64_t c = 0; c < columns; ++c)
      place(which).set(at(which, i) + c, static_cast<float>(from[c]));
  }
  float &lse(std::int64_t query) const {
    return reinterpret_cast<float *>(memory.lse)[(batch * of.heads + number) * of.queries + query];
  }
  std::int64_t keys_of(std::int64_t query) const {
    return of.is_causal ? std::min(of.keys, query + of.keys - of.queries + 1) : of.keys;
  }
  double score(const values &query, std::int64_t key) const {
    return of.scale * dot(query, row(attention_shape::k, key, of.depth));
  }
  static double dot(const values &a, const values &b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      sum += a[i] * b[i];
    return sum;
  }

private:
  operand place(int which) const { return {memory.operands[which], of.type}; }
  std::int64_t at(int which, std::int64_t i) const {
    const bool is_shared = which == attention_shape::k || which == attention_shape::v || which == attention_shape::dk ||
                           which == attention_shape::dv;
    const std::int64_t *strides = of.strides[which];
    return batch * strides[0] + (is_shared ? number * of.kv_heads / of.heads : number) * strides[1] + i * strides[2];
  }
};

void add(double *to, double factor, const values &row) {
  for (std::size_t i = 0; i < row.size(); ++i)
    to[i] += factor * row[i];
}

/// `most` is the workspace: the largest score of each query.
void compute(const head &h, float *most) {
  for (std::int64_t t = 0; t < h.of.queries; ++t) {
    const values query = h.row(attention_shape::q, t, h.of.depth);
    values weights, sum(static_cast<std::size_t>(h.of.value_depth));
    for (std::int64_t j = 0; j < h.keys_of(t); ++j)
      weights.push_back(h.score(query, j));
    most[t] = static_cast<float>(*std::max_element(weights.begin(), weights.end()));
    double total = 0;
    for (double &weight : weights) {
      weight = std::exp(weight - double(most[t]));
      total += weight;
    }
    for (std::int64_t j = 0; j < h.keys_of(t); ++j)
      add(sum.data(), weights[static_cast<std::size_t>(j)] / total, h.row(attention_shape::v, j, h.of.value_depth));
    h.store(attention_shape::out, t, sum.data(), h.of.value_depth);
    h.lse(t) = static_cast<float>(double(most[t]) + std::log(total));
  }
}

/// Adds to the sums of the group's keys and values. `delta` is the workspace: each result times its gradient.
void differentiate(const head &h, float *delta, values &dk, values &dv) {
  const std::int64_t depth = h.of.depth, value_depth = h.of.value_depth;
  for (std::int64_t t = 0; t < h.of.queries; ++t) {
    const values query = h.row(attention_shape::q, t, depth), dout = h.row(attention_shape::dout, t, value_depth);
    delta[t] = static_cast<float>(head::dot(h.row(attention_shape::out, t, value_depth), dout));
    values dq(query.size());
    for (std::int64_t j = 0; j < h.keys_of(t); ++j) {
      const double weight = std::exp(h.score(query, j) - double(h.lse(t)));
      const double slope = head::dot(h.row(attention_shape::v, j, value_depth), dout) - double(delta[t]);
      const double score = h.of.scale * weight * slope;
      add(dq.data(), score, h.row(attention_shape::k, j, depth));
      add(dk.data() + j * depth, score, query);
      add(dv.data() + j * value_depth, weight, dout);
    }
    h.store(attention_shape::dq, t, dq.data(), depth);
  }
}

class emulated_attention final : public prepared_attention {
public:
  emulated_attention(stream &s, const attention_shape &shape) : stream_(s), of_(shape) {}
  std::int64_t workspace_bytes() const override { return of_.batch * of_.heads * of_.queries * std::int64_t(4); }
  status run(const attention_memory &memory, std::byte *workspace) override {
    const auto all = [of = of_, memory, kept = reinterpret_cast<float *>(workspace)] {
      const auto kept_of = [&](const head &h) { return kept + (h.batch * of.heads + h.number) * of.queries; };
      const std::int64_t group = of.heads / of.kv_heads;
      for (std::int64_t batch = 0; batch < of.batch; ++batch)
        for (std::int64_t shared = 0; shared < of.kv_heads; ++shared) {
          values dk(static_cast<std::size_t>(of.keys * of.depth)),
              dv(static_cast<std::size_t>(of.keys * of.value_depth));
          for (std::int64_t number = shared * group; number < (shared + 1) * group; ++number) {
            const head h = {of, memory, batch, number};
            if (of.is_gradient)
              differentiate(h, kept_of(h), dk, dv);
            else
              compute(h, kept_of(h));
          }
          const head first = {of, memory, batch, shared * group};
          for (std::int64_t j = 0; j < of.keys && of.is_gradient; ++j) {
            first.store(attention_shape::dk, j, dk.data() + j * of.depth, of.depth);
            first.store(attention_shape::dv, j, dv.data() + j * of.value_depth, of.value_depth);
          }
        }
    };
    return check(static_cast<cudaError_t>(emulation::launch(native(stream_), 1, 1, all)), "the launch of a kernel");
  }

private:
  stream &stream_;
  attention_shape of_;
};

class emulated_library final : public attention_library {
public:
  explicit emulated_library(stream &s) : stream_(s) {}
  std::string version() const override { return "plain loops"; }
  status prepare(const attention_shape &shape, std::unique_ptr<prepared_attention> &out) override {
    out = std::make_unique<emulated_attention>(stream_, shape);
    return {};
  }

private:
  stream &stream_;
};

} // namespace

status open_attention_library(stream &s, std::unique_ptr<attention_library> &out) {
  out = std::make_unique<emulated_library>(s);
  return {};
}

} // namespace windlass::rt::cuda
