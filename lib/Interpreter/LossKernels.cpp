// Cross entropy as (sum, count), and the loss made of them.
#include "KernelCall.h"

#include <cmath>
#include <limits>

using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using llvm::SmallVector;
using llvm::Twine;

namespace {

/// Returns labels as i64, each the ignored value or below `classes`.
SmallVector<int64_t> labelsOf(KernelCall &call, const Tensor &tensor, int64_t classes, int64_t ignored) {
  SmallVector<int64_t> labels;
  if (!call.require(tensor.getKind() == ElementKind::i64 || tensor.getKind() == ElementKind::i32,
                    "labels must be integers"))
    return labels;
  const Tensor wide = tensor.cast(ElementKind::i64);
  for (int64_t label : wide.values<int64_t>()) {
    if (!call.require(label == ignored || (label >= 0 && label < classes),
                      "label " + Twine(label) + " lies outside the " + Twine(classes) + " classes"))
      return labels;
    labels.push_back(label);
  }
  return labels;
}

void crossEntropy(KernelCall &call) {
  int64_t ignored = call.integer("ignore_index");
  if (call.isBad() || !call.requireCounts(2, 3))
    return;
  ElementKind kind = call.floats();
  const Tensor &logits = call.inputs[0];
  if (!call.require(logits.getRank() > 0 && logits.getShape().back() > 0, "logits need classes"))
    return;
  SmallVector<int64_t> rows(logits.getShape().drop_back());
  int64_t classes = logits.getShape().back();
  if (!call.requireShape(call.inputs[1], rows, "labels") || !call.requireShape(call.results[0], {}, "the sum") ||
      !call.requireShape(call.results[1], {}, "the count") || !call.requireShape(call.results[2], rows, "log_sum"))
    return;
  SmallVector<int64_t> labels = labelsOf(call, call.inputs[1], classes, ignored);
  if (call.isBad())
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> in = logits.values<T>();
    MutableArrayRef<T> logs = call.results[2].mutableValues<T>();
    double total = 0;
    int64_t count = 0;
    for (size_t row = 0; row < labels.size(); ++row) {
      const T *x = in.data() + row * classes;
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = 0; i < classes; ++i)
        top = x[i] > top || std::isnan(x[i]) ? x[i] : top;
      // The difference of two infinities would be NaN.
      top = std::isinf(top) ? 0 : top;
      for (int64_t i = 0; i < classes; ++i)
        sum += std::exp(x[i] - top);
      double log = top + std::log(sum);
      logs[row] = static_cast<T>(log);
      if (labels[row] == ignored)
        continue;
      total += log - x[labels[row]];
      ++count;
    }
    call.results[0].mutableValues<T>()[0] = static_cast<T>(total);
    call.results[1].mutableValues<T>()[0] = static_cast<T>(count);
  });
}

void crossEntropyGrad(KernelCall &call) {
  int64_t ignored = call.integer("ignore_index");
  if (call.isBad() || !call.requireCounts(4, 1))
    return;
  ElementKind kind = call.floats();
  const Tensor &logits = call.inputs[1];
  if (!call.require(logits.getRank() > 0 && logits.getShape().back() > 0, "logits need classes"))
    return;
  SmallVector<int64_t> rows(logits.getShape().drop_back());
  int64_t classes = logits.getShape().back();
  if (!call.requireShape(call.inputs[0], {}, "the gradient") || !call.requireShape(call.inputs[2], rows, "labels") ||
      !call.requireShape(call.inputs[3], rows, "log_sum") ||
      !call.requireShape(call.results[0], logits.getShape(), "the result"))
    return;
  SmallVector<int64_t> labels = labelsOf(call, call.inputs[2], classes, ignored);
  if (call.isBad())
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    double gradient = call.inputs[0].at(0);
    ArrayRef<T> in = logits.values<T>(), logs = call.inputs[3].values<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    for (size_t row = 0; row < labels.size(); ++row) {
      if (labels[row] == ignored)
        continue;
      for (int64_t i = 0; i < classes; ++i) {
        double hot = i == labels[row] ? 1 : 0;
        double log = logs[row];
        out[row * classes + i] = static_cast<T>(gradient * (std::exp(in[row * classes + i] - log) - hot));
      }
    }
  });
}

void loss(KernelCall &call) {
  if (!call.requireCounts(2, 1))
    return;
  ElementKind kind = call.floats();
  for (const Tensor *tensor : {&call.inputs[0], &call.inputs[1], static_cast<const Tensor *>(&call.results[0])})
    if (!call.requireShape(*tensor, {}, "sum, count or loss"))
      return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    call.results[0].mutableValues<T>()[0] = call.inputs[0].values<T>()[0] / call.inputs[1].values<T>()[0];
  });
}

} // namespace

void windlass::interpreter::addLossKernels(KernelTable &table) {
  table["train.softmax_cross_entropy"] = crossEntropy;
  table["train.softmax_cross_entropy_grad"] = crossEntropyGrad;
  table["train.loss"] = loss;
}
