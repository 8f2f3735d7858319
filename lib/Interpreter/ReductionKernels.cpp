// Reductions, softmax and norms.
#include "KernelCall.h"

#include "windlass/Dialect/Train/IR/TrainEnums.h"
#include "windlass/rt/scalar.h"

#include <cmath>
#include <limits>
#include <vector>

using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using llvm::SmallVector;
using windlass::train::ReductionKind;

namespace {

template <class T> T combine(ReductionKind kind, T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return kind == ReductionKind::max ? a || b : a && b;
  else if (kind == ReductionKind::max)
    return windlass::scalar::max(a, b);
  else if (kind == ReductionKind::min)
    return windlass::scalar::min(a, b);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  else
    return a + b;
}

void reduce(KernelCall &call) {
  auto reduction = static_cast<ReductionKind>(call.integer("kind"));
  if (!call.requireCounts(1, 1))
    return;
  SmallVector<int64_t> dims;
  if (call.attributes.contains("reduced_rank")) {
    // In a command, the dims to reduce come last.
    for (int64_t count = call.integer("reduced_rank"), i = 0; i < count && i < call.inputs[0].getRank(); ++i)
      dims.push_back(call.inputs[0].getRank() - count + i);
  } else {
    dims = call.integers("dims");
  }
  if (call.isBad())
    return;
  const Tensor &input = call.inputs[0];
  Tensor &result = call.results[0];
  SmallVector<int64_t> order, kept;
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    if (!llvm::is_contained(dims, dim)) {
      order.push_back(dim);
      kept.push_back(input.getShape()[dim]);
    }
  int64_t reduced = 1;
  for (int64_t dim : dims) {
    if (!call.require(dim >= 0 && dim < input.getRank() && !llvm::is_contained(order, dim), "dims are no set of dims"))
      return;
    order.push_back(dim);
    reduced *= input.getShape()[dim];
  }
  if (!call.requireShape(result, kept, "the result") ||
      !call.require(input.getKind() == result.getKind(), "the result has another element type") ||
      !call.require(reduced > 0 || reduction == ReductionKind::sum, "reduces no elements") ||
      !call.require(input.getKind() != ElementKind::boolean || reduction != ReductionKind::sum, "cannot sum booleans"))
    return;
  int64_t bytes = bytesOf(input.getKind());
  SmallVector<int64_t, 4> strides = denseStrides(input.getShape(), bytes), from, shape;
  for (int64_t dim : order) {
    from.push_back(strides[dim]);
    shape.push_back(input.getShape()[dim]);
  }
  Tensor rows(input.getKind(), shape);
  copyElements(rows.mutableData(), denseStrides(shape, bytes), input.data(), from, shape, bytes);
  dispatch(input.getKind(), [&](auto zero) {
    using T = decltype(zero);
    using Sum = std::conditional_t<std::is_floating_point_v<T>, double, T>;
    ArrayRef<T> in = rows.values<T>();
    MutableArrayRef<T> out = result.mutableValues<T>();
    for (size_t row = 0; row < out.size(); ++row) {
      if (reduced == 0)
        continue;
      Sum sum = in[row * reduced];
      for (int64_t i = 1; i < reduced; ++i)
        sum = combine<Sum>(reduction, sum, in[row * reduced + i]);
      out[row] = static_cast<T>(sum);
    }
  });
}

/// Requires operands and result of one shape with a last dim; returns its size, or 0.
int64_t lastDim(KernelCall &call, const Tensor &tensor) {
  call.require(tensor.getRank() > 0 && tensor.getShape().back() > 0, "needs a last dim of at least one element");
  return call.isBad() ? 0 : tensor.getShape().back();
}

void softmax(KernelCall &call) {
  if (!call.requireCounts(1, 1) || !call.requireShape(call.inputs[0], call.results[0].getShape(), "the operand"))
    return;
  ElementKind kind = call.floats();
  int64_t size = lastDim(call, call.inputs[0]);
  if (call.isBad())
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> in = call.inputs[0].values<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    for (size_t row = 0; row < in.size(); row += size) {
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = 0; i < size; ++i)
        top = windlass::scalar::max<double>(in[row + i], top);
      for (int64_t i = 0; i < size; ++i)
        sum += std::exp(in[row + i] - top);
      for (int64_t i = 0; i < size; ++i)
        out[row + i] = static_cast<T>(std::exp(in[row + i] - top) / sum);
    }
  });
}

void softmaxGrad(KernelCall &call) {
  if (!call.requireCounts(2, 1) || !call.requireShape(call.inputs[0], call.results[0].getShape(), "the output") ||
      !call.requireShape(call.inputs[1], call.results[0].getShape(), "the gradient"))
    return;
  ElementKind kind = call.floats();
  int64_t size = lastDim(call, call.inputs[0]);
  if (call.isBad())
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> y = call.inputs[0].values<T>(), dy = call.inputs[1].values<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    for (size_t row = 0; row < y.size(); row += size) {
      double dot = 0;
      for (int64_t i = 0; i < size; ++i)
        dot += static_cast<double>(y[row + i]) * dy[row + i];
      for (int64_t i = 0; i < size; ++i)
        out[row + i] = static_cast<T>(y[row + i] * (dy[row + i] - dot));
    }
  });
}

void layerNorm(KernelCall &call) {
  double epsilon = call.number("epsilon");
  bool hasBias = call.inputs.size() == 3;
  if (call.isBad() || !call.requireCounts(hasBias ? 3 : 2, 3))
    return;
  ElementKind kind = call.floats();
  const Tensor &input = call.inputs[0];
  int64_t size = lastDim(call, input);
  if (call.isBad())
    return;
  SmallVector<int64_t> rows(input.getShape().drop_back());
  if (!call.requireShape(call.inputs[1], {size}, "scale") ||
      (hasBias && !call.requireShape(call.inputs[2], {size}, "bias")) ||
      !call.requireShape(call.results[0], input.getShape(), "the result") ||
      !call.requireShape(call.results[1], rows, "mean") || !call.requireShape(call.results[2], rows, "rstd"))
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> in = input.values<T>(), scale = call.inputs[1].values<T>();
    ArrayRef<T> bias = hasBias ? call.inputs[2].values<T>() : ArrayRef<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    MutableArrayRef<T> means = call.results[1].mutableValues<T>(), rstds = call.results[2].mutableValues<T>();
    for (size_t row = 0; row < means.size(); ++row) {
      const T *x = in.data() + row * size;
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < size; ++i)
        mean += x[i];
      mean /= size;
      for (int64_t i = 0; i < size; ++i)
        variance += (x[i] - mean) * (x[i] - mean);
      double rstd = 1 / std::sqrt(variance / size + epsilon);
      for (int64_t i = 0; i < size; ++i)
        out[row * size + i] = static_cast<T>((x[i] - mean) * rstd * scale[i] + (hasBias ? bias[i] : T(0)));
      means[row] = static_cast<T>(mean);
      rstds[row] = static_cast<T>(rstd);
    }
  });
}

/// With n = (x - mean) rstd and g = dy scale: dx = rstd (g - mean(g) - n mean(g n)).
void layerNormGrad(KernelCall &call) {
  if (!call.requireCounts(5, 3))
    return;
  ElementKind kind = call.floats();
  const Tensor &input = call.inputs[1];
  int64_t size = lastDim(call, input);
  if (call.isBad())
    return;
  SmallVector<int64_t> rows(input.getShape().drop_back());
  if (!call.requireShape(call.inputs[0], input.getShape(), "the gradient") ||
      !call.requireShape(call.inputs[2], {size}, "scale") || !call.requireShape(call.inputs[3], rows, "mean") ||
      !call.requireShape(call.inputs[4], rows, "rstd") ||
      !call.requireShape(call.results[0], input.getShape(), "the operand's gradient") ||
      !call.requireShape(call.results[1], {size}, "scale's gradient") ||
      !call.requireShape(call.results[2], {size}, "bias's gradient"))
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> gradient = call.inputs[0].values<T>(), in = input.values<T>(), scale = call.inputs[2].values<T>();
    ArrayRef<T> means = call.inputs[3].values<T>(), rstds = call.inputs[4].values<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    std::vector<double> scaleSums(size, 0), biasSums(size, 0);
    for (size_t row = 0; row < means.size(); ++row) {
      const T *x = in.data() + row * size, *dy = gradient.data() + row * size;
      double mean = means[row], rstd = rstds[row], sum = 0, dot = 0;
      for (int64_t i = 0; i < size; ++i) {
        double normal = (x[i] - mean) * rstd, g = static_cast<double>(dy[i]) * scale[i];
        sum += g;
        dot += g * normal;
        scaleSums[i] += dy[i] * normal;
        biasSums[i] += dy[i];
      }
      for (int64_t i = 0; i < size; ++i) {
        double normal = (x[i] - mean) * rstd, g = static_cast<double>(dy[i]) * scale[i];
        out[row * size + i] = static_cast<T>(rstd * (g - sum / size - normal * dot / size));
      }
    }
    MutableArrayRef<T> scaleOut = call.results[1].mutableValues<T>(), biasOut = call.results[2].mutableValues<T>();
    for (int64_t i = 0; i < size; ++i) {
      scaleOut[i] = static_cast<T>(scaleSums[i]);
      biasOut[i] = static_cast<T>(biasSums[i]);
    }
  });
}

void rmsNorm(KernelCall &call) {
  double epsilon = call.number("epsilon");
  if (call.isBad() || !call.requireCounts(2, 2))
    return;
  ElementKind kind = call.floats();
  const Tensor &input = call.inputs[0];
  int64_t size = lastDim(call, input);
  if (call.isBad() || !call.requireShape(call.inputs[1], {size}, "scale") ||
      !call.requireShape(call.results[0], input.getShape(), "the result") ||
      !call.requireShape(call.results[1], input.getShape().drop_back(), "rstd"))
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> in = input.values<T>(), scale = call.inputs[1].values<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>(), rstds = call.results[1].mutableValues<T>();
    for (size_t row = 0; row < rstds.size(); ++row) {
      const T *x = in.data() + row * size;
      double squares = 0;
      for (int64_t i = 0; i < size; ++i)
        squares += static_cast<double>(x[i]) * x[i];
      double rstd = 1 / std::sqrt(squares / size + epsilon);
      for (int64_t i = 0; i < size; ++i)
        out[row * size + i] = static_cast<T>(x[i] * rstd * scale[i]);
      rstds[row] = static_cast<T>(rstd);
    }
  });
}

/// With n = x rstd and g = dy scale: dx = rstd (g - n mean(g n)).
void rmsNormGrad(KernelCall &call) {
  if (!call.requireCounts(4, 2))
    return;
  ElementKind kind = call.floats();
  const Tensor &input = call.inputs[1];
  int64_t size = lastDim(call, input);
  if (call.isBad() || !call.requireShape(call.inputs[0], input.getShape(), "the gradient") ||
      !call.requireShape(call.inputs[2], {size}, "scale") ||
      !call.requireShape(call.inputs[3], input.getShape().drop_back(), "rstd") ||
      !call.requireShape(call.results[0], input.getShape(), "the operand's gradient") ||
      !call.requireShape(call.results[1], {size}, "scale's gradient"))
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> gradient = call.inputs[0].values<T>(), in = input.values<T>(), scale = call.inputs[2].values<T>();
    ArrayRef<T> rstds = call.inputs[3].values<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>(), scaleOut = call.results[1].mutableValues<T>();
    std::vector<double> scaleSums(size, 0);
    for (size_t row = 0; row < rstds.size(); ++row) {
      const T *x = in.data() + row * size, *dy = gradient.data() + row * size;
      double rstd = rstds[row], dot = 0;
      for (int64_t i = 0; i < size; ++i) {
        double normal = x[i] * rstd;
        dot += static_cast<double>(dy[i]) * scale[i] * normal;
        scaleSums[i] += dy[i] * normal;
      }
      for (int64_t i = 0; i < size; ++i)
        out[row * size + i] = static_cast<T>(rstd * (static_cast<double>(dy[i]) * scale[i] - x[i] * rstd * dot / size));
    }
    for (int64_t i = 0; i < size; ++i)
      scaleOut[i] = static_cast<T>(scaleSums[i]);
  });
}

} // namespace

void windlass::interpreter::addReductionKernels(KernelTable &table) {
  table["train.reduce"] = reduce;
  table["train.softmax"] = softmax;
  table["train.softmax_grad"] = softmaxGrad;
  table["train.layer_norm"] = layerNorm;
  table["train.layer_norm_grad"] = layerNormGrad;
  table["train.rms_norm"] = rmsNorm;
  table["train.rms_norm_grad"] = rmsNormGrad;
}
