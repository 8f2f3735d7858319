// Operators of `@update`.
#include "KernelCall.h"

#include <cmath>

using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::MutableArrayRef;

namespace {

void squareSum(KernelCall &call) {
  if (!call.requireCounts(1, 1) || !call.requireShape(call.results[0], {}, "the result"))
    return;
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    if (call.isBad())
      return;
    double sum = 0;
    for (double value : call.inputs[0].values<T>())
      sum += value * value;
    call.results[0].mutableValues<T>()[0] = static_cast<T>(sum);
  });
}

/// Requires the first `tensors` of the operands and the results to have one shape, the other operands to be scalars.
bool requireUpdate(KernelCall &call, size_t operands, size_t tensors, size_t results) {
  if (!call.requireCounts(operands, results))
    return false;
  for (auto [i, input] : llvm::enumerate(call.inputs))
    if (!call.requireShape(input, i < tensors ? call.inputs[0].getShape() : ArrayRef<int64_t>(), "an operand"))
      return false;
  for (const Tensor &result : call.results)
    if (!call.requireShape(result, call.inputs[0].getShape(), "a result"))
      return false;
  call.floats();
  return !call.isBad();
}

void clipFactor(KernelCall &call) {
  if (!requireUpdate(call, 2, 2, 1))
    return;
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    T factor = call.inputs[1].values<T>()[0] / (call.inputs[0].values<T>()[0] + T(1e-6));
    // A NaN norm stays visible.
    call.results[0].mutableValues<T>()[0] = factor > T(1) ? T(1) : factor;
  });
}

/// Leaves weight and state as they are, because the gradient has overflowed.
void keepAll(KernelCall &call) {
  for (auto [i, result] : llvm::enumerate(call.results))
    result = call.inputs[i];
}

void adamw(KernelCall &call) {
  if (!requireUpdate(call, 12, 4, 3))
    return;
  const bool decays = call.flag("decays"), coupled = call.flag("coupled");
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    auto scalar = [&](size_t i) { return call.inputs[i].values<T>()[0]; };
    const T rate = scalar(4), share1 = scalar(5), share2 = scalar(6), epsilon = scalar(7), decay = scalar(8);
    const T correction1 = scalar(9), correction2 = scalar(10), scale = scalar(11);
    ArrayRef<T> weight = call.inputs[0].values<T>(), mean = call.inputs[1].values<T>();
    ArrayRef<T> square = call.inputs[2].values<T>(), gradient = call.inputs[3].values<T>();
    MutableArrayRef<T> newWeight = call.results[0].mutableValues<T>(), newMean = call.results[1].mutableValues<T>();
    MutableArrayRef<T> newSquare = call.results[2].mutableValues<T>();
    if (std::isnan(scale)) {
      keepAll(call);
      return;
    }
    for (size_t i = 0; i < weight.size(); ++i) {
      const T g = gradient[i] * scale + (decays && coupled ? decay * weight[i] : T(0));
      const T w = decays && !coupled ? weight[i] * (T(1) - rate * decay) : weight[i];
      newMean[i] = mean[i] + share1 * (g - mean[i]);
      newSquare[i] = square[i] + share2 * (g * g - square[i]);
      newWeight[i] = w - rate * (newMean[i] / correction1) / (std::sqrt(newSquare[i] / correction2) + epsilon);
    }
  });
}

void lamb(KernelCall &call) {
  if (!requireUpdate(call, 11, 4, 3))
    return;
  const bool decays = call.flag("decays");
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    auto scalar = [&](size_t i) { return call.inputs[i].values<T>()[0]; };
    const T share1 = scalar(4), share2 = scalar(5), epsilon = scalar(6), decay = scalar(7), correction1 = scalar(8),
            correction2 = scalar(9), scale = scalar(10);
    ArrayRef<T> weight = call.inputs[0].values<T>(), mean = call.inputs[1].values<T>();
    ArrayRef<T> square = call.inputs[2].values<T>(), gradient = call.inputs[3].values<T>();
    MutableArrayRef<T> direction = call.results[0].mutableValues<T>(), newMean = call.results[1].mutableValues<T>();
    MutableArrayRef<T> newSquare = call.results[2].mutableValues<T>();
    for (size_t i = 0; i < weight.size(); ++i) {
      if (std::isnan(scale)) {
        direction[i] = T(0);
        newMean[i] = mean[i];
        newSquare[i] = square[i];
        continue;
      }
      const T g = gradient[i] * scale;
      newMean[i] = mean[i] + share1 * (g - mean[i]);
      newSquare[i] = square[i] + share2 * (g * g - square[i]);
      direction[i] = (newMean[i] / correction1) / (std::sqrt(newSquare[i] / correction2) + epsilon) +
                     (decays ? decay * weight[i] : T(0));
    }
  });
}

void momentum(KernelCall &call) {
  if (!requireUpdate(call, 4, 2, 2))
    return;
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> buffer = call.inputs[0].values<T>(), gradient = call.inputs[1].values<T>();
    const T share = call.inputs[2].values<T>()[0], scale = call.inputs[3].values<T>()[0];
    MutableArrayRef<T> newBuffer = call.results[0].mutableValues<T>(), direction = call.results[1].mutableValues<T>();
    for (size_t i = 0; i < buffer.size(); ++i) {
      const T g = gradient[i] * scale;
      newBuffer[i] = std::isnan(scale) ? buffer[i] : buffer[i] + (T(1) - share) * (g - buffer[i]);
      direction[i] = std::isnan(scale) ? T(0) : g + share * (newBuffer[i] - g);
    }
  });
}

void descend(KernelCall &call) {
  if (!requireUpdate(call, 4, 2, 1))
    return;
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> weight = call.inputs[0].values<T>(), direction = call.inputs[1].values<T>();
    const T rate = call.inputs[2].values<T>()[0], decay = call.inputs[3].values<T>()[0];
    MutableArrayRef<T> result = call.results[0].mutableValues<T>();
    for (size_t i = 0; i < weight.size(); ++i)
      result[i] = weight[i] * (T(1) - decay) - rate * direction[i];
  });
}

void lion(KernelCall &call) {
  if (!requireUpdate(call, 8, 3, 2))
    return;
  const bool decays = call.flag("decays");
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    auto scalar = [&](size_t i) { return call.inputs[i].values<T>()[0]; };
    const T rate = scalar(3), share1 = scalar(4), share2 = scalar(5), decay = scalar(6), scale = scalar(7);
    ArrayRef<T> weight = call.inputs[0].values<T>(), mean = call.inputs[1].values<T>();
    ArrayRef<T> gradient = call.inputs[2].values<T>();
    MutableArrayRef<T> newWeight = call.results[0].mutableValues<T>(), newMean = call.results[1].mutableValues<T>();
    if (std::isnan(scale)) {
      keepAll(call);
      return;
    }
    for (size_t i = 0; i < weight.size(); ++i) {
      const T g = gradient[i] * scale;
      const T w = decays ? weight[i] * (T(1) - rate * decay) : weight[i];
      const T direction = mean[i] + share1 * (g - mean[i]);
      // A NaN stays visible, and 0 stays 0.
      const T sign = direction > T(0) ? T(1) : direction < T(0) ? T(-1) : direction;
      newWeight[i] = w - rate * sign;
      newMean[i] = mean[i] + share2 * (g - mean[i]);
    }
  });
}

void sgd(KernelCall &call) {
  if (!requireUpdate(call, 7, 3, 2))
    return;
  bool decays = call.flag("decays");
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    auto scalar = [&](size_t i) { return call.inputs[i].values<T>()[0]; };
    const T rate = scalar(3), momentum = scalar(4), decay = scalar(5), scale = scalar(6);
    ArrayRef<T> weight = call.inputs[0].values<T>(), velocity = call.inputs[1].values<T>();
    ArrayRef<T> gradient = call.inputs[2].values<T>();
    MutableArrayRef<T> newWeight = call.results[0].mutableValues<T>();
    MutableArrayRef<T> newVelocity = call.results[1].mutableValues<T>();
    if (std::isnan(scale)) {
      keepAll(call);
      return;
    }
    for (size_t i = 0; i < weight.size(); ++i) {
      const T g = gradient[i] * scale + (decays ? decay * weight[i] : T(0));
      newVelocity[i] = momentum * velocity[i] + g;
      newWeight[i] = weight[i] - rate * newVelocity[i];
    }
  });
}

void ema(KernelCall &call) {
  if (!requireUpdate(call, 3, 2, 1))
    return;
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> average = call.inputs[0].values<T>(), weight = call.inputs[1].values<T>();
    const T rate = call.inputs[2].values<T>()[0];
    MutableArrayRef<T> result = call.results[0].mutableValues<T>();
    for (size_t i = 0; i < average.size(); ++i)
      result[i] = average[i] + rate * (weight[i] - average[i]);
  });
}

void average(KernelCall &call) {
  if (!requireUpdate(call, 2, 2, 1))
    return;
  const double rate = call.number("rate");
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> running = call.inputs[0].values<T>(), gradient = call.inputs[1].values<T>();
    MutableArrayRef<T> result = call.results[0].mutableValues<T>();
    for (size_t i = 0; i < running.size(); ++i)
      result[i] = running[i] - gradient[i] * static_cast<T>(rate);
  });
}

} // namespace

void windlass::interpreter::addOptimizerKernels(KernelTable &table) {
  table["train.square_sum"] = squareSum;
  table["train.clip_factor"] = clipFactor;
  table["train.adamw"] = adamw;
  table["train.lion"] = lion;
  table["train.sgd"] = sgd;
  table["train.descend"] = descend;
  table["train.ema"] = ema;
  table["train.lamb"] = lamb;
  table["train.momentum"] = momentum;
  table["train.average"] = average;
}
