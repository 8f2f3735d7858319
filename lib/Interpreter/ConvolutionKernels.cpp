// Convolutions and pooling. Windows are turned into a list of the positions that they join, once for all channels.
#include "KernelCall.h"

#include <cmath>
#include <vector>

using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using llvm::SmallVector;

namespace {

/// An element of the input's plane, the element of the result's plane whose window has it, and its place in the window.
struct Tap {
  int64_t in, out, place;
};

/// The most taps of a call, to bound its memory.
constexpr int64_t kMostTaps = int64_t(1) << 28;

/// Returns the taps of all windows between an input and a result of those sizes [batch, channels, spatial..], ordered
/// by the result's elements and then by place. Nothing, and an error of the call, where the sizes do not fit.
std::vector<Tap> listTaps(KernelCall &call, ArrayRef<int64_t> input, ArrayRef<int64_t> result,
                          ArrayRef<int64_t> window) {
  SmallVector<int64_t> strides = call.integers("strides"), dilations = call.integers("dilations"),
                       pads = call.integers("pads");
  size_t spatial = window.size();
  if (call.isBad() ||
      !call.require(input.size() == spatial + 2 && result.size() == spatial + 2 && strides.size() == spatial &&
                        dilations.size() == spatial && pads.size() == 2 * spatial,
                    "strides, dilations and pads do not fit the operand's rank"))
    return {};
  std::vector<Tap> taps{{0, 0, 0}};
  for (size_t i = 0; i < spatial; ++i) {
    int64_t size = input[i + 2], count = result[i + 2];
    if (!call.require(static_cast<double>(taps.size()) * static_cast<double>(count) * static_cast<double>(window[i]) <
                          static_cast<double>(kMostTaps),
                      "has too many windows to interpret"))
      return {};
    std::vector<Tap> next;
    for (const Tap &tap : taps)
      for (int64_t out = 0; out < count; ++out)
        for (int64_t place = 0; place < window[i]; ++place)
          if (int64_t in = out * strides[i] + place * dilations[i] - pads[i]; in >= 0 && in < size)
            next.push_back({tap.in * size + in, tap.out * count + out, tap.place * window[i] + place});
    taps = std::move(next);
  }
  llvm::sort(taps, [](const Tap &a, const Tap &b) { return std::pair(a.out, a.place) < std::pair(b.out, b.place); });
  return taps;
}

/// The loops of a convolution.
struct Convolution {
  int64_t batch, groups, ins, outs, inPlane, outPlane, window;
  std::vector<Tap> taps;

  /// Calls f(element of the input, element of the weight, element of the result) for each product.
  template <class Function> void forEach(Function f) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t group = 0; group < groups; ++group)
        for (int64_t o = 0; o < outs; ++o)
          for (int64_t i = 0; i < ins; ++i) {
            int64_t out = group * outs + o, from = ((b * groups + group) * ins + i) * inPlane,
                    to = (b * groups * outs + out) * outPlane, weight = (out * ins + i) * window;
            for (const Tap &tap : taps)
              f(from + tap.in, weight + tap.place, to + tap.out);
          }
  }
};

std::optional<Convolution> describe(KernelCall &call, const Tensor &input, const Tensor &weight, const Tensor &result) {
  ArrayRef<int64_t> x = input.getShape(), w = weight.getShape(), y = result.getShape();
  if (!call.require(w.size() >= 3 && x.size() == w.size() && y.size() == w.size(),
                    "input, weight and result must have one rank, of at least 3") ||
      !call.require(w[1] > 0 && x[1] % w[1] == 0 && x[1] > 0 && w[0] % (x[1] / w[1]) == 0 && y[0] == x[0] &&
                        y[1] == w[0],
                    "channels of input, weight and result do not fit"))
    return std::nullopt;
  int64_t groups = x[1] / w[1];
  Convolution of{x[0],
                 groups,
                 w[1],
                 w[0] / groups,
                 elementsOf(x.drop_front(2)),
                 elementsOf(y.drop_front(2)),
                 elementsOf(w.drop_front(2)),
                 listTaps(call, x, y, w.drop_front(2))};
  return call.isBad() ? std::nullopt : std::optional(std::move(of));
}

/// Adds up the products of a convolution or of one of its gradients. `select` takes the elements of input, weight and
/// result that belong together, and returns those of the call's first operand, second operand and result.
template <class Select> void sumProducts(KernelCall &call, const std::optional<Convolution> &of, Select select) {
  ElementKind kind = call.floats();
  if (!of || call.isBad())
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> first = call.inputs[0].values<T>(), second = call.inputs[1].values<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    std::vector<double> sums(out.size(), 0);
    of->forEach([&](int64_t x, int64_t w, int64_t y) {
      auto [a, b, to] = select(x, w, y);
      sums[to] += static_cast<double>(first[a]) * second[b];
    });
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<T>(sums[i]);
  });
}

struct Places {
  int64_t first, second, result;
};

void convolution(KernelCall &call) {
  if (!call.requireCounts(2, 1))
    return;
  sumProducts(call, describe(call, call.inputs[0], call.inputs[1], call.results[0]),
              [](int64_t x, int64_t w, int64_t y) { return Places{x, w, y}; });
}

void convolutionDataGrad(KernelCall &call) {
  if (!call.requireCounts(2, 1))
    return;
  sumProducts(call, describe(call, call.results[0], call.inputs[1], call.inputs[0]),
              [](int64_t x, int64_t w, int64_t y) { return Places{y, w, x}; });
}

void convolutionWeightGrad(KernelCall &call) {
  if (!call.requireCounts(2, 1))
    return;
  sumProducts(call, describe(call, call.inputs[1], call.results[0], call.inputs[0]),
              [](int64_t x, int64_t w, int64_t y) { return Places{y, x, w}; });
}

/// The loops of a pooling.
struct Pooling {
  int64_t planes, inPlane, outPlane;
  std::vector<Tap> taps;

  /// Calls f(offset of the input's plane, offset of the result's plane).
  template <class Function> void forEachPlane(Function f) const {
    for (int64_t plane = 0; plane < planes; ++plane)
      f(plane * inPlane, plane * outPlane);
  }
};

std::optional<Pooling> describePooling(KernelCall &call, const Tensor &input, const Tensor &result) {
  ArrayRef<int64_t> x = input.getShape(), y = result.getShape();
  SmallVector<int64_t> window = call.integers("window");
  if (call.isBad() || !call.require(x.size() >= 3 && y.size() == x.size() && x.take_front(2) == y.take_front(2),
                                    "input and result do not fit"))
    return std::nullopt;
  Pooling of{x[0] * x[1], elementsOf(x.drop_front(2)), elementsOf(y.drop_front(2)), listTaps(call, x, y, window)};
  return call.isBad() ? std::nullopt : std::optional(std::move(of));
}

/// Returns for each element of a result's plane the element of the input's plane that is the largest of its window.
template <class T> std::vector<int64_t> findLargest(const Pooling &of, const T *plane) {
  std::vector<int64_t> largest(of.outPlane, -1);
  for (const Tap &tap : of.taps)
    if (int64_t &best = largest[tap.out];
        best < 0 || plane[tap.in] > plane[best] || (std::isnan(plane[tap.in]) && !std::isnan(plane[best])))
      best = tap.in;
  return largest;
}

void maxPool(KernelCall &call) {
  if (!call.requireCounts(1, 1))
    return;
  ElementKind kind = call.floats();
  std::optional<Pooling> of = describePooling(call, call.inputs[0], call.results[0]);
  if (!of || call.isBad())
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    const T *in = call.inputs[0].values<T>().data();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    of->forEachPlane([&](int64_t from, int64_t to) {
      for (auto [i, at] : llvm::enumerate(findLargest(*of, in + from)))
        if (call.require(at >= 0, "has a window without an element of the operand"))
          out[to + i] = in[from + at];
    });
  });
}

void maxPoolGrad(KernelCall &call) {
  if (!call.requireCounts(2, 1) || !call.requireShape(call.results[0], call.inputs[1].getShape(), "the result"))
    return;
  ElementKind kind = call.floats();
  std::optional<Pooling> of = describePooling(call, call.inputs[1], call.inputs[0]);
  if (!of || call.isBad())
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> dy = call.inputs[0].values<T>();
    const T *in = call.inputs[1].values<T>().data();
    MutableArrayRef<T> dx = call.results[0].mutableValues<T>();
    std::vector<double> sums(of->inPlane);
    of->forEachPlane([&](int64_t from, int64_t to) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (auto [i, at] : llvm::enumerate(findLargest(*of, in + from)))
        if (call.require(at >= 0, "has a window without an element of the operand"))
          sums[at] += dy[to + i];
      for (int64_t i = 0; i < of->inPlane; ++i)
        dx[from + i] = static_cast<T>(sums[i]);
    });
  });
}

/// Returns the number by which the sum of each window is divided.
std::vector<double> listDivisors(KernelCall &call, const Pooling &of) {
  double whole = 1;
  for (int64_t size : call.integers("window"))
    whole *= static_cast<double>(size);
  if (call.flag("counts_pads"))
    return std::vector<double>(of.outPlane, whole);
  std::vector<double> divisors(of.outPlane, 0);
  for (const Tap &tap : of.taps)
    divisors[tap.out] += 1;
  return divisors;
}

/// Computes an average pooling, or with `isGradient` its adjoint.
void poolAverages(KernelCall &call, bool isGradient) {
  if (!call.requireCounts(1, 1))
    return;
  ElementKind kind = call.floats();
  const Tensor &input = isGradient ? call.results[0] : call.inputs[0],
               &result = isGradient ? call.inputs[0] : call.results[0];
  std::optional<Pooling> of = describePooling(call, input, result);
  if (!of || call.isBad())
    return;
  std::vector<double> divisors = listDivisors(call, *of);
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> in = call.inputs[0].values<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    std::vector<double> sums(isGradient ? of->inPlane : of->outPlane);
    of->forEachPlane([&](int64_t x, int64_t y) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (const Tap &tap : of->taps)
        if (isGradient)
          sums[tap.in] += in[y + tap.out] / divisors[tap.out];
        else
          sums[tap.out] += in[x + tap.in] / divisors[tap.out];
      for (auto [i, sum] : llvm::enumerate(sums))
        out[(isGradient ? x : y) + i] = static_cast<T>(sum);
    });
  });
}

void averagePool(KernelCall &call) { poolAverages(call, false); }
void averagePoolGrad(KernelCall &call) { poolAverages(call, true); }

} // namespace

void windlass::interpreter::addConvolutionKernels(KernelTable &table) {
  table["train.convolution"] = convolution;
  table["train.convolution_data_grad"] = convolutionDataGrad;
  table["train.convolution_weight_grad"] = convolutionWeightGrad;
  table["train.max_pool"] = maxPool;
  table["train.max_pool_grad"] = maxPoolGrad;
  table["train.average_pool"] = averagePool;
  table["train.average_pool_grad"] = averagePoolGrad;
}
