// The experts of a mixture, one token after another.
#include "TableParts.h"

#include "windlass/rt/detail/expert_plan.h"

#include <vector>

using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using llvm::SmallVector;

namespace {

using windlass::rt::expert_activation;

double activate(expert_activation activation, double x) {
  return windlass::rt::detail::with_activation(
      activation, [&](auto constant) { return windlass::rt::detail::activate<constant.value>(x); });
}

double activateGrad(expert_activation activation, double x, double dy) {
  return windlass::rt::detail::with_activation(
      activation, [&](auto constant) { return windlass::rt::detail::activate_grad<constant.value>(x, dy); });
}

/// A layer of experts: its sizes, and where the matrices of each token's choices are. The first `gate` of the hidden
/// values, and `up` more, come from two matrices; without a gate of its own all come from the second.
struct Layer {
  int64_t tokens, in, chosen, stored, gate, up, hidden, width, out;
  expert_activation activation;
  bool inputsFirst;
  SmallVector<int64_t> places;

  bool isGated() const { return hidden != width; }
  /// Calls f(whether it is the gate's matrix, where its element for a hidden value and an input is).
  template <class F> auto visit(int64_t expert, int64_t h, int64_t i, F f) const {
    bool isGate = h < gate;
    int64_t row = isGate ? h : h - gate;
    return f(isGate, inputsFirst ? (expert * in + i) * up + row : (expert * up + row) * in + i);
  }
  int64_t downAt(int64_t expert, int64_t o, int64_t f) const {
    return inputsFirst ? (expert * width + f) * out + o : (expert * out + o) * width + f;
  }
};

/// Describes the layer of a call whose operands begin with the input at `at`.
std::optional<Layer> describe(KernelCall &call, size_t at) {
  int64_t all = call.integer("all_rows", 0);
  size_t others = call.inputs.size() - std::min(call.inputs.size(), at + 5), parts = all > 0 ? 1 : 0;
  if (!call.require(call.inputs.size() >= at + 5 && (others == parts || others == parts + 1),
                    "takes an input, choices, weights and two or three matrices"))
    return std::nullopt;
  const Tensor &input = call.inputs[at], &choices = call.inputs[at + 1], &up = call.inputs[at + 3],
               &down = call.inputs[at + 4];
  if (!call.require(input.getRank() == 2 && choices.getRank() == 2 && up.getRank() == 3 && down.getRank() == 3,
                    "operands have other ranks"))
    return std::nullopt;
  Layer layer;
  layer.inputsFirst = call.flag("inputs_first");
  layer.activation = static_cast<expert_activation>(call.integer("activation"));
  layer.tokens = input.getShape()[0];
  layer.in = input.getShape()[1];
  layer.chosen = choices.getShape()[1];
  layer.stored = up.getShape()[0];
  layer.up = up.getShape()[layer.inputsFirst ? 2 : 1];
  layer.gate = others > parts ? layer.up : 0;
  layer.hidden = layer.gate + layer.up;
  layer.width = layer.gate > 0 || call.flag("gated") ? layer.hidden / 2 : layer.hidden;
  layer.out = down.getShape()[layer.inputsFirst ? 2 : 1];
  SmallVector<int64_t> upShape = {layer.stored, layer.up, layer.in}, downShape = {layer.stored, layer.out, layer.width};
  if (layer.inputsFirst) {
    std::swap(upShape[1], upShape[2]);
    std::swap(downShape[1], downShape[2]);
  }
  if (!call.requireShape(choices, {layer.tokens, layer.chosen}, "choices") ||
      !call.requireShape(call.inputs[at + 2], {layer.tokens, layer.chosen}, "weights") ||
      !call.requireShape(up, upShape, "up") || !call.requireShape(down, downShape, "down") ||
      (layer.gate > 0 && !call.requireShape(call.inputs[at + 5], upShape, "gate")))
    return std::nullopt;
  layer.places = parts > 0 ? placesOfIds(call, choices, call.inputs.back(), layer.stored, all)
                           : indicesOf(call, choices, layer.stored, false);
  return call.isBad() ? std::nullopt : std::optional(std::move(layer));
}

/// The values of one expert for one token.
struct Hidden {
  std::vector<double> before, after;
};

/// The matrices of a layer.
template <class T> struct Matrices {
  ArrayRef<T> up, down, gate;

  Matrices(const Layer &layer, KernelCall &call, size_t at)
      : up(call.inputs[at + 3].values<T>()), down(call.inputs[at + 4].values<T>()) {
    if (layer.gate > 0)
      gate = call.inputs[at + 5].values<T>();
  }
};

template <class T> Hidden computeHidden(const Layer &layer, int64_t expert, const Matrices<T> &matrices, const T *x) {
  Hidden hidden{std::vector<double>(layer.hidden), std::vector<double>(layer.width)};
  for (int64_t h = 0; h < layer.hidden; ++h)
    for (int64_t i = 0; i < layer.in; ++i)
      hidden.before[h] += layer.visit(expert, h, i, [&](bool isGate, int64_t place) {
        return static_cast<double>((isGate ? matrices.gate : matrices.up)[place]) * x[i];
      });
  for (int64_t f = 0; f < layer.width; ++f)
    hidden.after[f] =
        activate(layer.activation, hidden.before[f]) * (layer.isGated() ? hidden.before[layer.width + f] : 1);
  return hidden;
}

void experts(KernelCall &call) {
  std::optional<Layer> layer = describe(call, 0);
  ElementKind kind = call.floats();
  if (!layer || call.isBad() || !call.requireShape(call.results[0], {layer->tokens, layer->out}, "the result"))
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    const T *x = call.inputs[0].values<T>().data();
    ArrayRef<T> weights = call.inputs[2].values<T>();
    Matrices<T> matrices(*layer, call, 0);
    MutableArrayRef<T> y = call.results[0].mutableValues<T>();
    for (int64_t t = 0; t < layer->tokens; ++t) {
      std::vector<double> sums(layer->out);
      for (int64_t c = 0; c < layer->chosen; ++c) {
        int64_t at = t * layer->chosen + c, expert = layer->places[at];
        if (expert == kNoPlace)
          continue;
        Hidden hidden = computeHidden(*layer, expert, matrices, x + t * layer->in);
        for (int64_t o = 0; o < layer->out; ++o)
          for (int64_t f = 0; f < layer->width; ++f)
            sums[o] += weights[at] * (matrices.down[layer->downAt(expert, o, f)] * hidden.after[f]);
      }
      for (int64_t o = 0; o < layer->out; ++o)
        y[t * layer->out + o] = static_cast<T>(sums[o]);
    }
  });
}

/// The gradients of a layer's matrices.
struct MatrixGradients {
  std::vector<double> up, down, gate;
};

/// Adds what one choice of one token brings to the gradients of the input's row and of the matrices; returns the
/// gradient of its weight.
template <class T>
double addGradients(const Layer &layer, int64_t expert, const T *dy, const T *x, double weight,
                    const Matrices<T> &matrices, MutableArrayRef<double> dx, MatrixGradients &gradients) {
  Hidden hidden = computeHidden(layer, expert, matrices, x);
  std::vector<double> dBefore(layer.hidden);
  double dWeight = 0;
  for (int64_t f = 0; f < layer.width; ++f) {
    double dAfter = 0;
    for (int64_t o = 0; o < layer.out; ++o) {
      dAfter += static_cast<double>(matrices.down[layer.downAt(expert, o, f)]) * dy[o];
      gradients.down[layer.downAt(expert, o, f)] += weight * dy[o] * hidden.after[f];
    }
    dWeight += dAfter * hidden.after[f];
    dAfter *= weight;
    double gate = layer.isGated() ? hidden.before[layer.width + f] : 1;
    dBefore[f] = activateGrad(layer.activation, hidden.before[f], dAfter * gate);
    if (layer.isGated())
      dBefore[layer.width + f] = dAfter * activate(layer.activation, hidden.before[f]);
  }
  for (int64_t h = 0; h < layer.hidden; ++h)
    for (int64_t i = 0; i < layer.in; ++i)
      layer.visit(expert, h, i, [&](bool isGate, int64_t place) {
        dx[i] += (isGate ? matrices.gate : matrices.up)[place] * dBefore[h];
        (isGate ? gradients.gate : gradients.up)[place] += x[i] * dBefore[h];
      });
  return dWeight;
}

void expertsGrad(KernelCall &call) {
  std::optional<Layer> layer = describe(call, 1);
  ElementKind kind = call.floats();
  if (!layer || call.isBad() ||
      !call.require(call.results.size() == (layer->gate > 0 ? 5 : 4), "gives a gradient for each float operand") ||
      !call.requireShape(call.inputs[0], {layer->tokens, layer->out}, "the gradient") ||
      !call.requireShape(call.results[0], call.inputs[1].getShape(), "the input's gradient") ||
      !call.requireShape(call.results[1], call.inputs[3].getShape(), "the weights' gradient") ||
      !call.requireShape(call.results[2], call.inputs[4].getShape(), "the first matrix's gradient") ||
      !call.requireShape(call.results[3], call.inputs[5].getShape(), "the second matrix's gradient") ||
      (layer->gate > 0 && !call.requireShape(call.results[4], call.inputs[6].getShape(), "the gate's gradient")))
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    const T *dy = call.inputs[0].values<T>().data(), *x = call.inputs[1].values<T>().data();
    ArrayRef<T> weights = call.inputs[3].values<T>();
    Matrices<T> matrices(*layer, call, 1);
    std::vector<double> dx(layer->tokens * layer->in);
    MatrixGradients gradients = {std::vector<double>(matrices.up.size()), std::vector<double>(matrices.down.size()),
                                 std::vector<double>(matrices.gate.size())};
    MutableArrayRef<T> dWeights = call.results[1].mutableValues<T>();
    for (int64_t at = 0; at < layer->tokens * layer->chosen; ++at)
      if (int64_t expert = layer->places[at], t = at / layer->chosen; expert != kNoPlace)
        dWeights[at] = static_cast<T>(
            addGradients<T>(*layer, expert, dy + t * layer->out, x + t * layer->in, weights[at], matrices,
                            MutableArrayRef<double>(dx).slice(t * layer->in, layer->in), gradients));
    auto store = [](ArrayRef<double> sums, Tensor &to) {
      llvm::transform(sums, to.mutableValues<T>().begin(), [](double sum) { return static_cast<T>(sum); });
    };
    store(dx, call.results[0]);
    store(gradients.up, call.results[2]);
    store(gradients.down, call.results[3]);
    if (layer->gate > 0)
      store(gradients.gate, call.results[4]);
  });
}

} // namespace

void windlass::interpreter::addExpertKernels(KernelTable &table) {
  table["train.experts"] = experts;
  table["train.experts_grad"] = expertsGrad;
}
