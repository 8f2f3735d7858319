// RUN: windlass-opt %s | windlass-opt | FileCheck %s
// RUN: windlass-opt %s --emit-bytecode | windlass-opt | FileCheck %s

// CHECK: train.parameter weight @w "fc.weight" : tensor<8x4xf32> from <packed> {trainable}
train.parameter weight @w "fc.weight" : tensor<8x4xf32> from <packed> {trainable}
// CHECK: train.parameter state @w.exp_avg "fc.weight/exp_avg" : tensor<8x4xf32> from <none> {of = @w}
train.parameter state @w.exp_avg "fc.weight/exp_avg" : tensor<8x4xf32> from <none> {of = @w}
// CHECK: train.parameter buffer @b "mask" : tensor<4xf32> from <external, "model.data", 64, 16>
train.parameter buffer @b "mask" : tensor<4xf32> from <external, "model.data", 64, 16>
// CHECK: train.parameter buffer @h "half" : tensor<4xf32> from <external, "model.data", 80, 8, bf16>
train.parameter buffer @h "half" : tensor<4xf32> from <external, "model.data", 80, 8, bf16>
// CHECK: train.parameter buffer @c "first" : tensor<4xf32> from <external, "model \22data\22", 0, 16>
train.parameter buffer @c "first" : tensor<4xf32> from <external, "model \22data\22", 0, 16>

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: train.add %{{.*}}, %{{.*}} : tensor<2x3xf32> {train.id = "sum"}
  %0 = train.add %x, %y : tensor<2x3xf32> {train.id = "sum"}
  // CHECK: train.gelu_tanh
  %1 = train.gelu_tanh %0 : tensor<2x3xf32>
  // CHECK: train.compare less %{{.*}}, %{{.*}} : tensor<2x3xf32> -> tensor<2x3xi1>
  %2 = train.compare less %0, %1 : tensor<2x3xf32> -> tensor<2x3xi1>
  // CHECK: train.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x3xi1>, tensor<2x3xf32>
  %3 = train.select %2, %0, %1 : tensor<2x3xi1>, tensor<2x3xf32>
  // CHECK: train.cast %{{.*}} : tensor<2x3xf32> -> tensor<2x3xi64>
  %4 = train.cast %3 : tensor<2x3xf32> -> tensor<2x3xi64>
  // CHECK: train.accumulate %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x3xf32>
  %5 = train.accumulate %x, %y, %3 : tensor<2x3xf32>
  return %5 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @structural
func.func @structural(%x: tensor<2x3xf32>) {
  // CHECK: train.constant dense<1.000000e+00> : tensor<4xf32>
  %0 = train.constant dense<1.0> : tensor<4xf32>
  // CHECK: train.iota 0 start 0.000000e+00 step 1.000000e+00 : tensor<4xi64>
  %1 = train.iota 0 start 0.0 step 1.0 : tensor<4xi64>
  // CHECK: train.broadcast %{{.*}} dims [1] : tensor<4xf32> -> tensor<3x4xf32>
  %2 = train.broadcast %0 dims [1] : tensor<4xf32> -> tensor<3x4xf32>
  // CHECK: train.reshape %{{.*}} : tensor<2x3xf32> -> tensor<6xf32>
  %3 = train.reshape %x : tensor<2x3xf32> -> tensor<6xf32>
  // CHECK: train.transpose %{{.*}} [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %4 = train.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  // CHECK: train.slice %{{.*}} from [0, 1] sizes [2, 2] : tensor<2x3xf32> -> tensor<2x2xf32>
  %5 = train.slice %x from [0, 1] sizes [2, 2] : tensor<2x3xf32> -> tensor<2x2xf32>
  // CHECK: train.pad %{{.*}} low [0, 1] high [1, 0] value 0.000000e+00 : tensor<2x3xf32> -> tensor<3x4xf32>
  %6 = train.pad %x low [0, 1] high [1, 0] value 0.0 : tensor<2x3xf32> -> tensor<3x4xf32>
  // CHECK: train.concat %{{.*}}, %{{.*}} axis 1 : tensor<2x3xf32>, tensor<2x2xf32> -> tensor<2x5xf32>
  %7 = train.concat %x, %5 axis 1 : tensor<2x3xf32>, tensor<2x2xf32> -> tensor<2x5xf32>
  // CHECK: train.split %{{.*}} axis 1 sizes [1, 2] : tensor<2x3xf32> -> tensor<2x1xf32>, tensor<2x2xf32>
  %8:2 = train.split %x axis 1 sizes [1, 2] : tensor<2x3xf32> -> tensor<2x1xf32>, tensor<2x2xf32>
  return
}

// CHECK-LABEL: func.func @contraction
func.func @contraction(%x: tensor<5x2x3xf32>, %w: tensor<5x4x3xf32>) -> tensor<5x2x4xf32> {
  // CHECK: train.matmul %{{.*}}, %{{.*}} batch [0] x [0] contract [2] x [2] : tensor<5x2x3xf32>, tensor<5x4x3xf32> -> tensor<5x2x4xf32>
  %0 = train.matmul %x, %w batch [0] x [0] contract [2] x [2] : tensor<5x2x3xf32>, tensor<5x4x3xf32> -> tensor<5x2x4xf32>
  return %0 : tensor<5x2x4xf32>
}

// CHECK-LABEL: func.func @convolutions
func.func @convolutions(%x: tensor<2x4x5x6xf32>, %w: tensor<6x2x3x1xf32>, %s: tensor<2x4x9xf32>, %k: tensor<4x1x3xf32>, %v: tensor<1x2x4x4x4xbf16>, %f: tensor<3x2x2x2x2xbf16>) {
  // CHECK: train.convolution %{{.*}}, %{{.*}} strides [2, 1] dilations [1, 2] pads [1, 0, 1, 0] : (tensor<2x4x5x6xf32>, tensor<6x2x3x1xf32>) -> tensor<2x6x3x6xf32>
  %0 = train.convolution %x, %w strides [2, 1] dilations [1, 2] pads [1, 0, 1, 0] : (tensor<2x4x5x6xf32>, tensor<6x2x3x1xf32>) -> tensor<2x6x3x6xf32>
  // CHECK: train.convolution_data_grad %{{.*}}, %{{.*}} sizes [2, 4, 5, 6] strides [2, 1] dilations [1, 2] pads [1, 0, 1, 0] : (tensor<2x6x3x6xf32>, tensor<6x2x3x1xf32>) -> tensor<2x4x5x6xf32>
  %1 = train.convolution_data_grad %0, %w sizes [2, 4, 5, 6] strides [2, 1] dilations [1, 2] pads [1, 0, 1, 0] : (tensor<2x6x3x6xf32>, tensor<6x2x3x1xf32>) -> tensor<2x4x5x6xf32>
  // CHECK: train.convolution_weight_grad %{{.*}}, %{{.*}} sizes [6, 2, 3, 1] strides [2, 1] dilations [1, 2] pads [1, 0, 1, 0] : (tensor<2x6x3x6xf32>, tensor<2x4x5x6xf32>) -> tensor<6x2x3x1xf32>
  %2 = train.convolution_weight_grad %0, %x sizes [6, 2, 3, 1] strides [2, 1] dilations [1, 2] pads [1, 0, 1, 0] : (tensor<2x6x3x6xf32>, tensor<2x4x5x6xf32>) -> tensor<6x2x3x1xf32>
  // CHECK: train.convolution %{{.*}} -> tensor<2x4x7xf32>
  %3 = train.convolution %s, %k strides [1] dilations [2] pads [0, 2] : (tensor<2x4x9xf32>, tensor<4x1x3xf32>) -> tensor<2x4x7xf32>
  // CHECK: train.convolution %{{.*}} -> tensor<1x3x3x3x3xbf16>
  %4 = train.convolution %v, %f strides [1, 1, 1] dilations [1, 1, 1] pads [0, 0, 0, 0, 0, 0] : (tensor<1x2x4x4x4xbf16>, tensor<3x2x2x2x2xbf16>) -> tensor<1x3x3x3x3xbf16>
  // The gradient of a weight is a wide sum.
  // CHECK: train.convolution_weight_grad %{{.*}} -> tensor<3x2x2x2x2xf32>
  %5 = train.convolution_weight_grad %4, %v sizes [3, 2, 2, 2, 2] strides [1, 1, 1] dilations [1, 1, 1] pads [0, 0, 0, 0, 0, 0] : (tensor<1x3x3x3x3xbf16>, tensor<1x2x4x4x4xbf16>) -> tensor<3x2x2x2x2xf32>
  return
}

// CHECK-LABEL: func.func @pooling
func.func @pooling(%x: tensor<2x4x5x6xf32>) {
  // CHECK: train.max_pool %{{.*}} window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0, 1, 0] : tensor<2x4x5x6xf32> -> tensor<2x4x3x3xf32>
  %0 = train.max_pool %x window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0, 1, 0] : tensor<2x4x5x6xf32> -> tensor<2x4x3x3xf32>
  // CHECK: train.max_pool_grad %{{.*}}, %{{.*}} window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0, 1, 0] : (tensor<2x4x3x3xf32>, tensor<2x4x5x6xf32>) -> tensor<2x4x5x6xf32>
  %1 = train.max_pool_grad %0, %x window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0, 1, 0] : (tensor<2x4x3x3xf32>, tensor<2x4x5x6xf32>) -> tensor<2x4x5x6xf32>
  // CHECK: train.average_pool %{{.*}} window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0, 1, 0] : tensor<2x4x5x6xf32> -> tensor<2x4x3x3xf32>
  %2 = train.average_pool %x window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0, 1, 0] : tensor<2x4x5x6xf32> -> tensor<2x4x3x3xf32>
  // CHECK: train.average_pool %{{.*}} pads [1, 0, 1, 0] counts_pads : tensor<2x4x5x6xf32> -> tensor<2x4x3x3xf32>
  %3 = train.average_pool %x window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0, 1, 0] counts_pads : tensor<2x4x5x6xf32> -> tensor<2x4x3x3xf32>
  // CHECK: train.average_pool_grad %{{.*}} sizes [2, 4, 5, 6] window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0, 1, 0] counts_pads : tensor<2x4x3x3xf32> -> tensor<2x4x5x6xf32>
  %4 = train.average_pool_grad %3 sizes [2, 4, 5, 6] window [3, 2] strides [2, 2] dilations [1, 1] pads [1, 0, 1, 0] counts_pads : tensor<2x4x3x3xf32> -> tensor<2x4x5x6xf32>
  return
}

// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // CHECK: train.reduce sum %{{.*}} dims [0] : tensor<2x3xf32> -> tensor<3xf32>
  %0 = train.reduce sum %x dims [0] : tensor<2x3xf32> -> tensor<3xf32>
  // CHECK: train.softmax %{{.*}} : tensor<2x3xf32>
  %1 = train.softmax %x : tensor<2x3xf32>
  // CHECK: train.softmax_grad %{{.*}}, %{{.*}} : tensor<2x3xf32>
  %2 = train.softmax_grad %1, %x : tensor<2x3xf32>
  // CHECK: train.layer_norm %{{.*}}, %{{.*}} epsilon 1.000000e-05 : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>
  %3:3 = train.layer_norm %x, %s epsilon 1.0e-5 : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>
  // CHECK: train.layer_norm_grad
  %4:3 = train.layer_norm_grad %x, %x, %s, %3#1, %3#2 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: train.rms_norm %{{.*}}, %{{.*}} epsilon 1.000000e-05 : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>, tensor<2xf32>
  %5:2 = train.rms_norm %x, %s epsilon 1.0e-5 : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>, tensor<2xf32>
  // CHECK: train.rms_norm_grad
  %6:2 = train.rms_norm_grad %x, %x, %s, %5#1 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return
}

// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<5x4xf32>, %c: tensor<5x2xi64>, %w: tensor<5x2xf32>, %up: tensor<4x6x4xf32>, %down: tensor<4x7x3xf32>,
                   %in: tensor<4x4x6xf32>, %out: tensor<4x6x7xf32>, %gate: tensor<4x6x4xf32>, %wide: tensor<4x7x6xf32>, %first: tensor<2xi64>) {
  // CHECK: train.experts %{{.*}} to %{{.*}} by %{{.*}} through %{{.*}}, %{{.*}} silu gated :
  %0 = train.experts %x to %c by %w through %up, %down silu gated
    : (tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x3xf32>) -> tensor<5x7xf32>
  // CHECK: train.experts %{{.*}} to %{{.*}} by %{{.*}} through %{{.*}}, %{{.*}} first %{{.*}} of 12 gelu_tanh inputs_first :
  %1 = train.experts %x to %c by %w through %in, %out first %first of 12 gelu_tanh inputs_first
    : (tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x4x6xf32>, tensor<4x6x7xf32>, tensor<2xi64>) -> tensor<5x7xf32>
  // CHECK: train.experts_grad %{{.*}}, %{{.*}} to %{{.*}} by %{{.*}} through %{{.*}}, %{{.*}} silu gated :
  %2:4 = train.experts_grad %0, %x to %c by %w through %up, %down silu gated
    : (tensor<5x7xf32>, tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x3xf32>)
    -> (tensor<5x4xf32>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x3xf32>)
  // CHECK: train.experts %{{.*}} to %{{.*}} by %{{.*}} through %{{.*}}, %{{.*}} gate %{{.*}} first %{{.*}} of 12 silu :
  %3 = train.experts %x to %c by %w through %up, %wide gate %gate first %first of 12 silu
    : (tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x6xf32>, tensor<4x6x4xf32>, tensor<2xi64>) -> tensor<5x7xf32>
  // CHECK: train.experts_grad %{{.*}}, %{{.*}} to %{{.*}} by %{{.*}} through %{{.*}}, %{{.*}} gate %{{.*}} silu :
  %4:5 = train.experts_grad %0, %x to %c by %w through %up, %wide gate %gate silu
    : (tensor<5x7xf32>, tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x6xf32>, tensor<4x6x4xf32>)
    -> (tensor<5x4xf32>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x6xf32>, tensor<4x6x4xf32>)
  return
}

// CHECK-LABEL: func.func @indexing
func.func @indexing(%table: tensor<7x3xf32>, %ids: tensor<2x4xi64>) {
  // CHECK: train.embedding %{{.*}}, %{{.*}} : tensor<7x3xf32>, tensor<2x4xi64> -> tensor<2x4x3xf32>
  %0 = train.embedding %table, %ids : tensor<7x3xf32>, tensor<2x4xi64> -> tensor<2x4x3xf32>
  // CHECK: train.embedding_grad %{{.*}}, %{{.*}} rows 7 : tensor<2x4xi64>, tensor<2x4x3xf32> -> tensor<7x3xf32>
  %1 = train.embedding_grad %ids, %0 rows 7 : tensor<2x4xi64>, tensor<2x4x3xf32> -> tensor<7x3xf32>
  %first = train.iota 0 start 0.0 step 2.0 : tensor<7xi64>
  // CHECK: train.embedding %{{.*}}, %{{.*}} first %[[FIRST:.*]] of 14 : tensor<7x3xf32>, tensor<2x4xi64>, tensor<7xi64> -> tensor<2x4x3xf32>
  %parts = train.embedding %table, %ids first %first of 14 : tensor<7x3xf32>, tensor<2x4xi64>, tensor<7xi64> -> tensor<2x4x3xf32>
  // CHECK: train.embedding_grad %{{.*}}, %{{.*}} rows 7 first %[[FIRST]] of 14 : tensor<2x4xi64>, tensor<2x4x3xf32>, tensor<7xi64> -> tensor<7x3xf32>
  %parts_grad = train.embedding_grad %ids, %0 rows 7 first %first of 14 : tensor<2x4xi64>, tensor<2x4x3xf32>, tensor<7xi64> -> tensor<7x3xf32>
  // CHECK: train.gather %{{.*}}, %{{.*}} axis 1 : tensor<7x3xf32>, tensor<2x4xi64> -> tensor<7x2x4xf32>
  %2 = train.gather %table, %ids axis 1 : tensor<7x3xf32>, tensor<2x4xi64> -> tensor<7x2x4xf32>
  // CHECK: train.scatter_add %{{.*}}, %{{.*}} axis 1 size 3 : tensor<2x4xi64>, tensor<7x2x4xf32> -> tensor<7x3xf32>
  %3 = train.scatter_add %ids, %2 axis 1 size 3 : tensor<2x4xi64>, tensor<7x2x4xf32> -> tensor<7x3xf32>
  // CHECK: train.gather_elements %{{.*}}, %{{.*}} axis 1 : tensor<2x4x3xf32>, tensor<2x1x3xi64> -> tensor<2x1x3xf32>
  %columns = train.constant dense<2> : tensor<2x1x3xi64>
  %4 = train.gather_elements %0, %columns axis 1 : tensor<2x4x3xf32>, tensor<2x1x3xi64> -> tensor<2x1x3xf32>
  // CHECK: train.scatter_elements_add %{{.*}}, %{{.*}} axis 1 size 4 : tensor<2x1x3xi64>, tensor<2x1x3xf32> -> tensor<2x4x3xf32>
  %5 = train.scatter_elements_add %columns, %4 axis 1 size 4 : tensor<2x1x3xi64>, tensor<2x1x3xf32> -> tensor<2x4x3xf32>
  return
}

// CHECK-LABEL: func.func @random
func.func @random(%x: tensor<2x3xf32>, %keys: tensor<2xi64>) {
  // CHECK: train.dropout %{{.*}}, %{{.*}} ratio 1.000000e-01 : tensor<2x3xf32>, tensor<2xi64>
  %0 = train.dropout %x, %keys ratio 0.1 : tensor<2x3xf32>, tensor<2xi64>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %m: tensor<1x4x5x5xf32>) {
  // CHECK: train.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 causal
  %0:2 = train.attention %q, %k, %k scale 0.5 causal : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  // CHECK: train.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale 5.000000e-01
  %1:2 = train.attention %q, %k, %k mask %m scale 0.5 : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x5x5xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  // CHECK: train.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} output %{{.*}}, %{{.*}} scale 5.000000e-01 causal
  %2:3 = train.attention_grad %q, %q, %k, %k output %0#0, %0#1 scale 0.5 causal : (tensor<1x4x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x4x5xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>)
  %t = train.constant dense<1.0> : tensor<5x8xf32>
  // CHECK: train.rotary %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x4x5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
  %3 = train.rotary %q, %t, %t : tensor<1x4x5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
  // CHECK: train.rotary %{{.*}}, %{{.*}}, %{{.*}} transposed : tensor<1x4x5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
  %4 = train.rotary %q, %t, %t transposed : tensor<1x4x5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
  return
}

// CHECK-LABEL: func.func @losses
func.func @losses(%logits: tensor<4x7xf32>, %labels: tensor<4xi64>) -> tensor<f32> {
  // CHECK: train.softmax_cross_entropy %{{.*}}, %{{.*}} ignore -100
  %0:3 = train.softmax_cross_entropy %logits, %labels ignore -100 : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
  // CHECK: train.loss %{{.*}}, %{{.*}} : tensor<f32>
  %1 = train.loss %0#0, %0#1 : tensor<f32>
  // CHECK: train.softmax_cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} ignore -100
  %2 = train.softmax_cross_entropy_grad %1, %logits, %labels, %0#2 ignore -100 : (tensor<f32>, tensor<4x7xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<4x7xf32>
  return %1 : tensor<f32>
}

// CHECK-LABEL: func.func @optimizer
func.func @optimizer(%g: tensor<8x4xf32>) {
  // CHECK: train.read @w : tensor<8x4xf32>
  %w = train.read @w : tensor<8x4xf32>
  %m = train.read @w.exp_avg : tensor<8x4xf32>
  // CHECK: train.hyperparameter learning_rate : tensor<f32>
  %h = train.hyperparameter learning_rate : tensor<f32>
  // CHECK: train.square_sum %{{.*}} : tensor<8x4xf32> -> tensor<f32>
  %n = train.square_sum %g : tensor<8x4xf32> -> tensor<f32>
  // CHECK: train.clip_factor %{{.*}}, %{{.*}} : tensor<f32>
  %c = train.clip_factor %n, %h : tensor<f32>
  // CHECK: train.adamw {{.*}} decays :
  %0:3 = train.adamw %w, %m, %m, %g, %h, %h, %h, %h, %h, %h, %h, %c decays : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
  // CHECK: train.adamw {{.*}} decays coupled :
  %4:3 = train.adamw %w, %m, %m, %g, %h, %h, %h, %h, %h, %h, %h, %c decays coupled : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
  // CHECK: train.lamb {{.*}} decays :
  %7:3 = train.lamb %w, %m, %m, %g, %h, %h, %h, %h, %h, %h, %c decays : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
  // CHECK: train.momentum %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %9:2 = train.momentum %m, %g, %h, %c : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  // CHECK: train.descend %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>) -> tensor<8x4xf32>
  %8 = train.descend %w, %7#0, %h, %h : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>) -> tensor<8x4xf32>
  // CHECK: train.lion {{.*}} decays :
  %5:2 = train.lion %w, %m, %g, %h, %h, %h, %h, %c decays : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  // CHECK: train.ema %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %6 = train.ema %m, %w, %h : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  // CHECK: train.sgd
  %1:2 = train.sgd %w, %m, %g, %h, %h, %h, %c : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  // CHECK: train.average %{{.*}}, %{{.*}} rate 1.000000e-01 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = train.average %w, %g rate 0.1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: train.track_statistic %{{.*}}, %{{.*}} correction 1.500000e+00 : tensor<8x4xf32>
  %3 = train.track_statistic %g, %w correction 1.5 : tensor<8x4xf32>
  // CHECK: train.write @w, %{{.*}} : tensor<8x4xf32>
  train.write @w, %0#0 : tensor<8x4xf32>
  // CHECK: train.stash %{{.*}} : tensor<8x4xf32>
  %s = train.stash %g : tensor<8x4xf32>
  return
}
