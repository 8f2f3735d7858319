// Scaled dot-product attention, one row of scores at a time.
#include "KernelCall.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::MutableArrayRef;

namespace {

struct Sizes {
  int64_t batch, heads, keyHeads, tokens, keys, depth, width;
  /// Returns the number of keys that token t sees with a causal mask: [0, t + keys - tokens].
  int64_t visible(int64_t token, bool causal) const {
    return causal ? std::max<int64_t>(0, std::min(keys, token + keys - tokens + 1)) : keys;
  }
};

std::optional<Sizes> sizesOf(KernelCall &call, const Tensor &query, const Tensor &key, const Tensor &value,
                             const Tensor *mask) {
  if (!call.require(query.getRank() == 4 && key.getRank() == 4 && value.getRank() == 4,
                    "query, key and value must have rank 4"))
    return std::nullopt;
  Sizes s{query.getShape()[0], query.getShape()[1], key.getShape()[1],  query.getShape()[2],
          key.getShape()[2],   query.getShape()[3], value.getShape()[3]};
  if (!call.requireShape(key, {s.batch, s.keyHeads, s.keys, s.depth}, "key") ||
      !call.requireShape(value, {s.batch, s.keyHeads, s.keys, s.width}, "value") ||
      !call.require(s.keyHeads > 0 && s.heads % s.keyHeads == 0, "heads must be a multiple of key heads") ||
      (mask && !call.requireShape(*mask, {s.batch, s.heads, s.tokens, s.keys}, "mask")))
    return std::nullopt;
  return s;
}

/// Calls `row(query row, first key row, first value row, mask row, result row)` with element offsets, for every row.
template <class Function> void forEachRow(const Sizes &s, Function row) {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t t = 0; t < s.tokens; ++t) {
        int64_t keyHead = b * s.keyHeads + h / (s.heads / s.keyHeads);
        row((b * s.heads + h) * s.tokens + t, t, keyHead * s.keys);
      }
}

/// scores[k] = scale q.k + mask for the first `count` keys.
template <class T>
void scoresOf(std::vector<double> &scores, const T *q, const T *keys, const T *mask, int64_t count, int64_t depth,
              double scale) {
  for (int64_t k = 0; k < count; ++k) {
    double dot = 0;
    for (int64_t i = 0; i < depth; ++i)
      dot += static_cast<double>(q[i]) * keys[k * depth + i];
    scores[k] = scale * dot + (mask ? mask[k] : T(0));
  }
}

void attention(KernelCall &call) {
  double scale = call.number("scale");
  bool causal = call.flag("causal"), hasMask = call.inputs.size() == 4;
  if (call.isBad() || !call.requireCounts(hasMask ? 4 : 3, 2))
    return;
  ElementKind kind = call.floats();
  std::optional<Sizes> sizes =
      sizesOf(call, call.inputs[0], call.inputs[1], call.inputs[2], hasMask ? &call.inputs[3] : nullptr);
  if (!sizes || call.isBad() ||
      !call.requireShape(call.results[0], {sizes->batch, sizes->heads, sizes->tokens, sizes->width}, "the result") ||
      !call.requireShape(call.results[1], {sizes->batch, sizes->heads, sizes->tokens}, "the row logarithms"))
    return;
  const Sizes s = *sizes;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> query = call.inputs[0].values<T>(), key = call.inputs[1].values<T>(),
                value = call.inputs[2].values<T>();
    const T *mask = hasMask ? call.inputs[3].values<T>().data() : nullptr;
    MutableArrayRef<T> out = call.results[0].mutableValues<T>(), logs = call.results[1].mutableValues<T>();
    std::vector<double> scores(s.keys), sums(s.width);
    forEachRow(s, [&](int64_t row, int64_t token, int64_t firstKey) {
      int64_t count = s.visible(token, causal);
      scoresOf(scores, query.data() + row * s.depth, key.data() + firstKey * s.depth, mask ? mask + row * s.keys : mask,
               count, s.depth, scale);
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t k = 0; k < count; ++k)
        top = scores[k] > top || std::isnan(scores[k]) ? scores[k] : top;
      if (top == -std::numeric_limits<double>::infinity()) {
        logs[row] = static_cast<T>(top); // No key is left; the result stays zero.
        return;
      }
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t k = 0; k < count; ++k) {
        double weight = std::exp(scores[k] - top);
        sum += weight;
        for (int64_t i = 0; i < s.width; ++i)
          sums[i] += weight * value[(firstKey + k) * s.width + i];
      }
      for (int64_t i = 0; i < s.width; ++i)
        out[row * s.width + i] = static_cast<T>(sums[i] / sum);
      logs[row] = static_cast<T>(top + std::log(sum));
    });
  });
}

/// With p = exp(score - log_sum), dp = dy.v and d = dy.y: dscore = p (dp - d).
void attentionGrad(KernelCall &call) {
  double scale = call.number("scale");
  bool causal = call.flag("causal"), hasMask = call.inputs.size() == 7;
  if (call.isBad() || !call.requireCounts(hasMask ? 7 : 6, 3))
    return;
  ElementKind kind = call.floats();
  const Tensor &gradient = call.inputs[0], &query = call.inputs[1], &key = call.inputs[2], &value = call.inputs[3];
  const Tensor &output = call.inputs[hasMask ? 5 : 4], &logSum = call.inputs[hasMask ? 6 : 5];
  std::optional<Sizes> sizes = sizesOf(call, query, key, value, hasMask ? &call.inputs[4] : nullptr);
  if (!sizes || call.isBad())
    return;
  const Sizes s = *sizes;
  if (!call.requireShape(gradient, {s.batch, s.heads, s.tokens, s.width}, "the gradient") ||
      !call.requireShape(output, gradient.getShape(), "the output") ||
      !call.requireShape(logSum, {s.batch, s.heads, s.tokens}, "the row logarithms") ||
      !call.requireShape(call.results[0], query.getShape(), "query's gradient") ||
      !call.requireShape(call.results[1], key.getShape(), "key's gradient") ||
      !call.requireShape(call.results[2], value.getShape(), "value's gradient"))
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> dy = gradient.values<T>(), q = query.values<T>(), k = key.values<T>(), v = value.values<T>();
    ArrayRef<T> y = output.values<T>(), logs = logSum.values<T>();
    const T *mask = hasMask ? call.inputs[4].values<T>().data() : nullptr;
    std::vector<double> dq(q.size(), 0), dk(k.size(), 0), dv(v.size(), 0), scores(s.keys);
    forEachRow(s, [&](int64_t row, int64_t token, int64_t firstKey) {
      int64_t count = s.visible(token, causal);
      double log = logs[row];
      if (log == -std::numeric_limits<double>::infinity())
        return;
      scoresOf(scores, q.data() + row * s.depth, k.data() + firstKey * s.depth, mask ? mask + row * s.keys : mask,
               count, s.depth, scale);
      double delta = 0;
      for (int64_t i = 0; i < s.width; ++i)
        delta += static_cast<double>(dy[row * s.width + i]) * y[row * s.width + i];
      for (int64_t n = 0; n < count; ++n) {
        double weight = std::exp(scores[n] - log), dot = 0;
        const int64_t at = firstKey + n;
        for (int64_t i = 0; i < s.width; ++i) {
          double dyi = dy[row * s.width + i];
          dot += dyi * v[at * s.width + i];
          dv[at * s.width + i] += weight * dyi;
        }
        double dscore = scale * weight * (dot - delta);
        for (int64_t i = 0; i < s.depth; ++i) {
          dq[row * s.depth + i] += dscore * k[at * s.depth + i];
          dk[at * s.depth + i] += dscore * q[row * s.depth + i];
        }
      }
    });
    const std::array<std::vector<double> *, 3> gradients = {&dq, &dk, &dv};
    for (auto [sums, result] : llvm::zip_equal(gradients, call.results)) {
      MutableArrayRef<T> out = result.template mutableValues<T>();
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<T>((*sums)[i]);
    }
  });
}

/// Turns rows [x1, x2] into x cosine + [-x2, x1] sine, or the transpose of that.
void rotary(KernelCall &call) {
  if (!call.requireCounts(3, 1))
    return;
  ElementKind kind = call.floats();
  const Tensor &input = call.inputs[0];
  if (!call.require(input.getRank() >= 2 && input.getShape().back() % 2 == 0, "needs rows of two halves") ||
      !call.requireShape(call.inputs[1], input.getShape().take_back(2), "cosine") ||
      !call.requireShape(call.inputs[2], input.getShape().take_back(2), "sine") ||
      !call.requireShape(call.results[0], input.getShape(), "the result"))
    return;
  bool transposed = call.flag("transposed");
  int64_t table = elementsOf(input.getShape().take_back(2)), depth = input.getShape().back(), half = depth / 2;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> in = input.values<T>(), cosine = call.inputs[1].values<T>(), sine = call.inputs[2].values<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    for (int64_t i = 0; i < int64_t(in.size()); ++i) {
      bool isFirst = i % depth < half;
      int64_t other = isFirst ? i + half : i - half;
      double across = transposed ? double(in[other]) * sine[other % table] : double(in[other]) * sine[i % table];
      out[i] = static_cast<T>(double(in[i]) * cosine[i % table] + (isFirst == transposed ? across : -across));
    }
  });
}

} // namespace

void windlass::interpreter::addAttentionKernels(KernelTable &table) {
  table["train.attention"] = attention;
  table["train.attention_grad"] = attentionGrad;
  table["train.rotary"] = rotary;
}
