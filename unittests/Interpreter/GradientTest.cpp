// Backward kernels against central differences of their forward kernels, in f64.
#include "TestTensors.h"

#include <functional>

using namespace windlass::interpreter;

namespace {

/// Returns the sum of `tensor` weighed by `weights`.
double dot(const Tensor &tensor, const Tensor &weights) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.getElements(); ++i)
    sum += tensor.at(i) * weights.at(i);
  return sum;
}

class GradientTest : public KernelTest {
protected:
  /// Checks that `gradient` is the slope of `loss` in every element of `at`.
  void check(Tensor at, const Tensor &gradient, const std::function<double(const Tensor &)> &loss) {
    ASSERT_EQ(at.getElements(), gradient.getElements());
    const double step = 1e-5;
    for (int64_t i = 0; i < at.getElements(); ++i) {
      Tensor above = at, below = at;
      above.set(i, at.at(i) + step);
      below.set(i, at.at(i) - step);
      EXPECT_NEAR(gradient.at(i), (loss(above) - loss(below)) / (2 * step), 1e-8) << "element " << i;
    }
  }
};

TEST_F(GradientTest, Activations) {
  Tensor x = varied({9}), dy = varied({9}, 1);
  for (llvm::StringRef name : {"relu", "gelu_erf", "gelu_tanh", "silu"}) {
    SCOPED_TRACE(name.str());
    Tensor dx = call((name + "_grad").str(), {x, dy}, {type({9})}).front();
    check(x, dx, [&](const Tensor &v) { return dot(call(name, {v}, {type({9})}).front(), dy); });
  }
  for (llvm::StringRef name : {"sigmoid", "tanh"}) {
    SCOPED_TRACE(name.str());
    Tensor dx = call((name + "_grad").str(), {call(name, {x}, {type({9})}).front(), dy}, {type({9})}).front();
    check(x, dx, [&](const Tensor &v) { return dot(call(name, {v}, {type({9})}).front(), dy); });
  }
}

TEST_F(GradientTest, Softmax) {
  Tensor x = varied({2, 4}), dy = varied({2, 4}, 1);
  Tensor dx = call("softmax_grad", {call("softmax", {x}, {type({2, 4})}).front(), dy}, {type({2, 4})}).front();
  check(x, dx, [&](const Tensor &v) { return dot(call("softmax", {v}, {type({2, 4})}).front(), dy); });
}

TEST_F(GradientTest, Convolution) {
  // Groups of three channels for two kernels each; a stride, a dilation and pads on one side.
  Tensor x = varied({2, 6, 4, 5}), w = varied({4, 3, 2, 2}, 2), dy = varied({2, 4, 2, 4}, 1);
  std::vector<mlir::NamedAttribute> windows = {list("strides", {2, 1}), list("dilations", {1, 2}),
                                               list("pads", {0, 1, 0, 0})};
  auto forward = [&](const Tensor &input, const Tensor &weight) {
    return dot(call("convolution", {input, weight}, {type({2, 4, 2, 4})}, windows).front(), dy);
  };
  Tensor dx = call("convolution_data_grad", {dy, w}, {type({2, 6, 4, 5})}, windows).front();
  check(x, dx, [&](const Tensor &v) { return forward(v, w); });
  Tensor dw = call("convolution_weight_grad", {dy, x}, {type({4, 3, 2, 2})}, windows).front();
  check(w, dw, [&](const Tensor &v) { return forward(x, v); });
}

TEST_F(GradientTest, Pooling) {
  Tensor x = varied({2, 2, 5, 4}), dy = varied({2, 2, 3, 2}, 1);
  std::vector<mlir::NamedAttribute> windows = {list("window", {3, 2}), list("strides", {2, 2}),
                                               list("dilations", {1, 1}), list("pads", {1, 0, 1, 0})};
  Tensor dx = call("max_pool_grad", {dy, x}, {type({2, 2, 5, 4})}, windows).front();
  check(x, dx, [&](const Tensor &v) { return dot(call("max_pool", {v}, {type({2, 2, 3, 2})}, windows).front(), dy); });
  for (bool countsPads : {false, true}) {
    if (countsPads)
      windows.push_back(unit("counts_pads"));
    dx = call("average_pool_grad", {dy}, {type({2, 2, 5, 4})}, windows).front();
    check(x, dx,
          [&](const Tensor &v) { return dot(call("average_pool", {v}, {type({2, 2, 3, 2})}, windows).front(), dy); });
  }
}

TEST_F(GradientTest, LayerNorm) {
  Tensor x = varied({3, 4}), scale = varied({4}, 2), bias = varied({4}, 3), dy = varied({3, 4}, 1);
  auto forward = [&](const Tensor &input, const Tensor &weight, const Tensor &offset) {
    return call("layer_norm", {input, weight, offset}, {type({3, 4}), type({3}), type({3})}, {number("epsilon", 1e-2)});
  };
  auto normed = forward(x, scale, bias);
  auto gradients = call("layer_norm_grad", {dy, x, scale, normed[1], normed[2]}, {type({3, 4}), type({4}), type({4})});
  check(x, gradients[0], [&](const Tensor &v) { return dot(forward(v, scale, bias)[0], dy); });
  check(scale, gradients[1], [&](const Tensor &v) { return dot(forward(x, v, bias)[0], dy); });
  check(bias, gradients[2], [&](const Tensor &v) { return dot(forward(x, scale, v)[0], dy); });
}

TEST_F(GradientTest, RmsNorm) {
  Tensor x = varied({3, 4}), scale = varied({4}, 2), dy = varied({3, 4}, 1);
  auto forward = [&](const Tensor &input, const Tensor &weight) {
    return call("rms_norm", {input, weight}, {type({3, 4}), type({3})}, {number("epsilon", 1e-2)});
  };
  auto gradients = call("rms_norm_grad", {dy, x, scale, forward(x, scale)[1]}, {type({3, 4}), type({4})});
  check(x, gradients[0], [&](const Tensor &v) { return dot(forward(v, scale)[0], dy); });
  check(scale, gradients[1], [&](const Tensor &v) { return dot(forward(x, v)[0], dy); });
}

TEST_F(GradientTest, GatherElements) {
  Tensor x = varied({2, 4}), indices = integers({2, 3}, {1, 1, -1, 0, 3, 2}), dy = varied({2, 3}, 1);
  Tensor dx =
      call("scatter_elements_add", {indices, dy}, {type({2, 4})}, {integer("axis", 1), integer("size", 4)}).front();
  check(x, dx, [&](const Tensor &v) {
    return dot(call("gather_elements", {v, indices}, {type({2, 3})}, {integer("axis", 1)}).front(), dy);
  });
}

TEST_F(GradientTest, Experts) {
  // The experts 1 and 2 of four; a token chooses one of them twice, and an expert that is elsewhere.
  Tensor x = varied({3, 4}), choices = integers({3, 2}, {2, 1, 0, 2, 1, 1}), weights = varied({3, 2}, 4),
         down = varied({2, 5, 3}, 3), gate = varied({2, 3, 4}, 5), dy = varied({3, 5}, 1), first = integers({1}, {1});
  for (int64_t activation = 0; activation < 4; ++activation)
    for (bool gated : {false, true}) {
      Tensor up = varied({2, gated ? 6 : 3, 4}, 2);
      std::vector<mlir::NamedAttribute> layer = {integer("activation", activation), integer("all_rows", 4)};
      if (gated)
        layer.push_back(unit("gated"));
      auto forward = [&](const Tensor &input, const Tensor &by, const Tensor &into, const Tensor &out) {
        return dot(call("experts", {input, choices, by, into, out, first}, {type({3, 5})}, layer).front(), dy);
      };
      auto gradients = call("experts_grad", {dy, x, choices, weights, up, down, first},
                            {type({3, 4}), type({3, 2}), type(up.getShape()), type(down.getShape())}, layer);
      check(x, gradients[0], [&](const Tensor &v) { return forward(v, weights, up, down); });
      check(weights, gradients[1], [&](const Tensor &v) { return forward(x, v, up, down); });
      check(up, gradients[2], [&](const Tensor &v) { return forward(x, weights, v, down); });
      check(down, gradients[3], [&](const Tensor &v) { return forward(x, weights, up, v); });
    }
  // Matrices of the gate's own.
  Tensor up = varied({2, 3, 4}, 2);
  std::vector<mlir::NamedAttribute> layer = {integer("activation", 3), integer("all_rows", 4)};
  auto forward = [&](const Tensor &input, const Tensor &into, const Tensor &by) {
    return dot(call("experts", {input, choices, weights, into, down, by, first}, {type({3, 5})}, layer).front(), dy);
  };
  auto gradients = call("experts_grad", {dy, x, choices, weights, up, down, gate, first},
                        {type({3, 4}), type({3, 2}), type({2, 3, 4}), type({2, 5, 3}), type({2, 3, 4})}, layer);
  check(x, gradients[0], [&](const Tensor &v) { return forward(v, up, gate); });
  check(up, gradients[2], [&](const Tensor &v) { return forward(x, v, gate); });
  check(gate, gradients[4], [&](const Tensor &v) { return forward(x, up, v); });
}

TEST_F(GradientTest, Rotary) {
  Tensor x = varied({2, 3, 4}), cosine = varied({3, 4}, 1), sine = varied({3, 4}, 2), dy = varied({2, 3, 4}, 3);
  auto forward = [&](const Tensor &v, const std::vector<mlir::NamedAttribute> &attributes) {
    return call("rotary", {v, cosine, sine}, {type({2, 3, 4})}, attributes).front();
  };
  check(x, forward(dy, {unit("transposed")}), [&](const Tensor &v) { return dot(forward(v, {}), dy); });
  check(x, forward(dy, {}), [&](const Tensor &v) { return dot(forward(v, {unit("transposed")}), dy); });
}

TEST_F(GradientTest, CrossEntropy) {
  Tensor logits = varied({3, 4}), labels = integers({3}, {1, -100, 3});
  auto forward = [&](const Tensor &v) {
    return call("softmax_cross_entropy", {v, labels}, {type({}), type({}), type({3})}, {integer("ignore_index", -100)});
  };
  Tensor gradient = call("softmax_cross_entropy_grad", {tensor({}, {0.7}), logits, labels, forward(logits)[2]},
                         {type({3, 4})}, {integer("ignore_index", -100)})
                        .front();
  check(logits, gradient, [&](const Tensor &v) { return 0.7 * forward(v)[0].at(0); });
}

TEST_F(GradientTest, Attention) {
  for (bool causal : {false, true})
    for (bool masks : {false, true}) {
      SCOPED_TRACE(testing::Message() << "causal " << causal << " mask " << masks);
      Tensor query = varied({2, 4, 3, 2}), key = varied({2, 2, 5, 2}, 1), value = varied({2, 2, 5, 3}, 2);
      Tensor mask = varied({2, 4, 3, 5}, 4), dy = varied({2, 4, 3, 3}, 3);
      std::vector<mlir::NamedAttribute> attributes = {number("scale", 0.7)};
      if (causal)
        attributes.push_back(unit("causal"));
      auto forward = [&](const Tensor &q, const Tensor &k, const Tensor &v) {
        std::vector<Tensor> inputs = {q, k, v};
        if (masks)
          inputs.push_back(mask);
        return call("attention", inputs, {type({2, 4, 3, 3}), type({2, 4, 3})}, attributes);
      };
      auto results = forward(query, key, value);
      std::vector<Tensor> inputs = {dy, query, key, value};
      if (masks)
        inputs.push_back(mask);
      inputs.push_back(results[0]);
      inputs.push_back(results[1]);
      auto gradients =
          call("attention_grad", inputs, {type({2, 4, 3, 2}), type({2, 2, 5, 2}), type({2, 2, 5, 3})}, attributes);
      check(query, gradients[0], [&](const Tensor &v) { return dot(forward(v, key, value)[0], dy); });
      check(key, gradients[1], [&](const Tensor &v) { return dot(forward(query, v, value)[0], dy); });
      check(value, gradients[2], [&](const Tensor &v) { return dot(forward(query, key, v)[0], dy); });
    }
}

} // namespace
