// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// The bias is a broadcast and an addition. Kernels that tile the image stay a product of patches.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8x9xf32>
// CHECK: %[[W:.*]] = train.read
// CHECK: %[[C:.*]] = train.convolution %[[X]], %{{.*}} strides [2, 1] dilations [1, 1] pads [1, 0, 2, 0] : (tensor<2x3x8x9xf32>, tensor<4x3x3x2xf32>) -> tensor<2x4x5x8xf32>
// CHECK: %[[B:.*]] = train.broadcast %{{.*}} dims [1] : tensor<4xf32> -> tensor<2x4x5x8xf32>
// CHECK: train.add %[[C]], %[[B]]
// CHECK: train.convolution %{{.*}} strides [1, 1] dilations [2, 1] pads [0, 0, 0, 0] : (tensor<2x4x5x8xf32>, tensor<6x2x2x1xf32>) -> tensor<2x6x3x8xf32>
// CHECK-NOT: train.convolution
// CHECK: train.matmul
// CHECK-NOT: train.convolution
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x9xf32>):
  %w = onnx.initializer "w" from <"", 0, 288> kind "parameter" : tensor<4x3x3x2xf32>
  %b = onnx.initializer "b" from <"", 288, 16> kind "parameter" : tensor<4xf32>
  %g = onnx.initializer "g" from <"", 304, 96> kind "parameter" : tensor<6x2x2x1xf32>
  %p = onnx.initializer "p" from <"", 400, 288> kind "parameter" : tensor<1x6x3x4xf32>
  %0 = onnx.node "Conv" since 11 (%x, %w, %b) with {strides = array<i64: 2, 1>, pads = array<i64: 1, 0, 2, 0>, kernel_shape = array<i64: 3, 2>} : (tensor<2x3x8x9xf32>, tensor<4x3x3x2xf32>, tensor<4xf32>) -> !onnx.value
  %1 = onnx.node "Conv" since 11 (%0, %g) with {dilations = array<i64: 2, 1>, group = 2 : i64, auto_pad = "VALID"} : (!onnx.value, tensor<6x2x2x1xf32>) -> !onnx.value
  %2 = onnx.node "Conv" since 11 (%1, %p) with {strides = array<i64: 3, 4>} : (!onnx.value, tensor<1x6x3x4xf32>) -> !onnx.value
  %3 = onnx.node "ReduceSum" since 13 (%2) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %3 : !onnx.value
}

// -----

// An odd pad is behind the image for SAME_UPPER, before it for SAME_LOWER; where strides pass over the rest there is none.
// CHECK-LABEL: func.func @loss
// CHECK: train.convolution %{{.*}} strides [1] dilations [1] pads [1, 2] : (tensor<2x1x10xf32>, tensor<1x1x4xf32>) -> tensor<2x1x10xf32>
// CHECK: train.convolution %{{.*}} strides [1] dilations [1] pads [2, 1] : (tensor<2x1x10xf32>, tensor<1x1x4xf32>) -> tensor<2x1x10xf32>
// CHECK: train.convolution %{{.*}} strides [5] dilations [1] pads [0, 0] : (tensor<2x1x10xf32>, tensor<1x1x4xf32>) -> tensor<2x1x2xf32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x1x10xf32>):
  %w = onnx.initializer "w" from <"", 0, 16> kind "parameter" : tensor<1x1x4xf32>
  %0 = onnx.node "Conv" since 11 (%x, %w) with {auto_pad = "SAME_UPPER"} : (tensor<2x1x10xf32>, tensor<1x1x4xf32>) -> !onnx.value
  %1 = onnx.node "Conv" since 11 (%0, %w) with {auto_pad = "SAME_LOWER"} : (!onnx.value, tensor<1x1x4xf32>) -> !onnx.value
  %2 = onnx.node "Conv" since 11 (%1, %w) with {auto_pad = "SAME_UPPER", strides = array<i64: 5>} : (!onnx.value, tensor<1x1x4xf32>) -> !onnx.value
  %3 = onnx.node "ReduceSum" since 13 (%2) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %3 : !onnx.value
}

// -----

// A last window that reaches beyond the pads has more of them, unless it begins behind the image.
// CHECK-LABEL: func.func @loss
// CHECK: train.max_pool %{{.*}} window [3, 3] strides [2, 2] dilations [1, 1] pads [1, 0, 1, 1] : tensor<2x3x9x8xf32> -> tensor<2x3x5x4xf32>
// CHECK: train.max_pool %{{.*}} window [2, 1] strides [2, 3] dilations [1, 1] pads [0, 0, 1, 0] : tensor<2x3x5x4xf32> -> tensor<2x3x3x2xf32>
// CHECK: train.average_pool %{{.*}} window [2, 2] strides [1, 1] dilations [1, 1] pads [1, 1, 0, 0] counts_pads : tensor<2x3x3x2xf32> -> tensor<2x3x3x2xf32>
// CHECK: train.average_pool %{{.*}} window [3, 2] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] : tensor<2x3x3x2xf32> -> tensor<2x3x1x1xf32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x9x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 12> kind "parameter" : tensor<3x1x1xf32>
  %a = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x3x9x8xf32>, tensor<3x1x1xf32>) -> !onnx.value
  %0 = onnx.node "MaxPool" since 12 (%a) with {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = array<i64: 1, 0, 1, 1>} : (!onnx.value) -> !onnx.value
  %1 = onnx.node "MaxPool" since 12 (%0) with {kernel_shape = array<i64: 2, 1>, strides = array<i64: 2, 3>, ceil_mode = 1 : i64} : (!onnx.value) -> !onnx.value
  %2 = onnx.node "AveragePool" since 11 (%1) with {kernel_shape = array<i64: 2, 2>, pads = array<i64: 1, 1, 0, 0>, count_include_pad = 1 : i64} : (!onnx.value) -> !onnx.value
  %3 = onnx.node "AveragePool" since 11 (%2) with {kernel_shape = array<i64: 3, 2>} : (!onnx.value) -> !onnx.value
  %4 = onnx.node "ReduceSum" since 13 (%3) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %4 : !onnx.value
}

// -----

// A mean of all is a reduction, a maximum of all one window.
// CHECK-LABEL: func.func @loss
// CHECK: train.max_pool %{{.*}} window [9] strides [1] dilations [1] pads [0, 0] : tensor<2x3x9xf32> -> tensor<2x3x1xf32>
// CHECK: train.reduce sum %{{.*}} dims [2] : tensor<2x3x9xf32> -> tensor<2x3xf32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x9xf32>):
  %w = onnx.initializer "w" from <"", 0, 12> kind "parameter" : tensor<3x1xf32>
  %a = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x3x9xf32>, tensor<3x1xf32>) -> !onnx.value
  %0 = onnx.node "GlobalMaxPool" since 1 (%a) : (!onnx.value) -> !onnx.value
  %1 = onnx.node "GlobalAveragePool" since 1 (%a) : (!onnx.value) -> !onnx.value
  %2 = onnx.node "Add" since 14 (%0, %1) : (!onnx.value, !onnx.value) -> !onnx.value
  %3 = onnx.node "ReduceSum" since 13 (%2) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %3 : !onnx.value
}

// -----

// In training, batch norm takes the statistics of the micro-batch: over the batch and the image. The running ones keep
// their averages, that of the variance unbiased: times 120 / 119.
// CHECK: train.parameter weight @w0 "scale" {{.*}} {train.norm_scale, trainable}
// CHECK: train.parameter weight @w1 "bias" {{.*}} {trainable}
// CHECK: train.parameter weight @w2 "m" {{.*}} {momentum = 0.8{{.*}} : f64, trainable}
// CHECK: train.parameter weight @w3 "v" {{.*}} {momentum = 0.8{{.*}} : f64, train.norm_scale, trainable}
// CHECK: func.func @loss(%[[X:.*]]: tensor<4x3x5x6xf32>
// CHECK: %[[SUM:.*]] = train.reduce sum %[[X]] dims [0, 2, 3] : tensor<4x3x5x6xf32> -> tensor<3xf32>
// CHECK: %[[MEAN:.*]] = train.mul %[[SUM]]
// CHECK: %[[KEPT:.*]] = train.reshape %[[MEAN]]
// CHECK: %[[VECTOR:.*]] = train.reshape %[[KEPT]]
// CHECK: train.track_statistic %[[VECTOR]], %{{.*}} correction 1.000000e+00
// CHECK: %[[CENTERED:.*]] = train.sub %[[X]]
// CHECK: %[[SQUARES:.*]] = train.mul %[[CENTERED]], %[[CENTERED]]
// CHECK: train.reduce sum %[[SQUARES]] dims [0, 2, 3] : tensor<4x3x5x6xf32> -> tensor<3xf32>
// CHECK: train.track_statistic %{{.*}}, %{{.*}} correction 1.0084033613445378
// CHECK: train.sqrt
onnx.graph "g" inputs ["x"] outputs ["loss", "m.next", "v.next"] {
^bb0(%x: tensor<4x3x5x6xf32>):
  %s = onnx.initializer "scale" from <"", 0, 12> kind "parameter" : tensor<3xf32>
  %b = onnx.initializer "bias" from <"", 12, 12> kind "parameter" : tensor<3xf32>
  %m = onnx.initializer "m" from <"", 24, 12> kind "buffer" : tensor<3xf32>
  %v = onnx.initializer "v" from <"", 36, 12> kind "buffer" : tensor<3xf32>
  %0:3 = onnx.node "BatchNormalization" since 15 (%x, %s, %b, %m, %v) with {training_mode = 1 : i64, epsilon = 1.0e-3 : f32, momentum = 0.8 : f32} : (tensor<4x3x5x6xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (!onnx.value, !onnx.value, !onnx.value)
  %1 = onnx.node "ReduceSum" since 13 (%0#0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1, %0#1, %0#2 : !onnx.value, !onnx.value, !onnx.value
}

// -----

// Two norms that have a running mean in common, but neither scale nor bias, are two modules: an exporter has merged
// parameters of equal value. An average over both would be of neither.
// CHECK: train.parameter weight @w0 "scale"
// CHECK: train.parameter weight @w1 "other"
// CHECK-NOT: train.parameter
// CHECK-NOT: train.track_statistic
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %s = onnx.initializer "scale" from <"", 0, 12> kind "parameter" : tensor<3xf32>
  %t = onnx.initializer "other" from <"", 12, 12> kind "parameter" : tensor<3xf32>
  %m = onnx.initializer "m" from <"", 24, 12> kind "buffer" : tensor<3xf32>
  %v = onnx.initializer "v" from <"", 36, 12> kind "buffer" : tensor<3xf32>
  %0 = onnx.node "BatchNormalization" since 15 (%x, %s, %s, %m, %v) with {training_mode = 1 : i64} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  %1 = onnx.node "BatchNormalization" since 15 (%0, %t, %t, %m, %v) with {training_mode = 1 : i64} : (!onnx.value, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  %2 = onnx.node "ReduceSum" since 13 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %2 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %s = onnx.initializer "scale" from <"", 0, 12> kind "parameter" : tensor<3xf32>
  // expected-error @below {{has a momentum of 1.500000; it must be between 0 and 1}}
  %0 = onnx.node "BatchNormalization" since 15 (%x, %s, %s, %s, %s) with {training_mode = 1 : i64, momentum = 1.5 : f32} : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// In inference form the stored statistics stay as they are, marked or not.
// CHECK: train.parameter weight @w0 "scale" {{.*}} {train.norm_scale, trainable}
// CHECK: train.parameter weight @w1 "bias" {{.*}} {trainable}
// CHECK: train.parameter buffer @b2 "m"
// CHECK: train.parameter buffer @b3 "v"
// CHECK-NOT: train.reduce sum %{{.*}} dims [0] :
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %s = onnx.initializer "scale" from <"", 0, 12> kind "parameter" : tensor<3xf32>
  %b = onnx.initializer "bias" from <"", 12, 12> kind "parameter" : tensor<3xf32>
  %m = onnx.initializer "m" from <"", 24, 12> : tensor<3xf32>
  %v = onnx.initializer "v" from <"", 36, 12> kind "buffer" : tensor<3xf32>
  %a = onnx.node "Mul" since 14 (%x, %s) : (tensor<4x3xf32>, tensor<3xf32>) -> !onnx.value
  %0 = onnx.node "BatchNormalization" since 15 (%a, %s, %b, %m, %v) : (!onnx.value, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{Conv has 4 kernels of 3 channels for an image of 3 in 2 groups}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {group = 2 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{Conv has 4 kernels of 3 channels for an image of 3 in -1 groups}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {group = -1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{Conv has a kernel_shape that is not that of its kernels}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {kernel_shape = array<i64: 3, 2>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{Conv has along spatial dim 1 of 8 elements a window of 3 with stride 0, dilation 1 and pads 0 and 0; pads are at least 0, the others at least 1, and all below 2^31}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {strides = array<i64: 1, 0>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{Conv has along spatial dim 0 of 8 elements a window of 3 with stride 1, dilation 4611686018427387904}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {dilations = array<i64: 4611686018427387904, 1>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{and pads 9223372036854775807 and 0}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {pads = array<i64: 9223372036854775807, 0, 0, 0>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{and pads -1 and 0}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {pads = array<i64: 0, -1, 0, 0>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{Conv has window [3, 3], strides [1], dilations [1, 1] and pads [0, 0, 0, 0] for 2 spatial dims}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {strides = array<i64: 1>, auto_pad = "SAME_UPPER"} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{Conv has along spatial dim 0 a window that spans 9 elements, but only 8 with the pads}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {dilations = array<i64: 4, 1>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{Conv has an auto_pad that is none of NOTSET, VALID, SAME_UPPER and SAME_LOWER}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {auto_pad = "SAME"} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{Conv gives more than 2^44 elements}}
  %0 = onnx.node "Conv" since 11 (%x, %w) with {pads = array<i64: 2000000000, 2000000000, 0, 0>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 4> kind "parameter" : tensor<1xf32>
  %a = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x3x8x8xf32>, tensor<1xf32>) -> !onnx.value
  // expected-error @below {{MaxPool has along spatial dim 0 of 8 elements windows that span 2 with dilation 1, the first from -2 and the last from 6; one may have no element inside}}
  %0 = onnx.node "MaxPool" since 12 (%a) with {kernel_shape = array<i64: 2, 2>, pads = array<i64: 2, 0, 0, 0>} : (!onnx.value) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 4> kind "parameter" : tensor<1xf32>
  %a = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x3x8x8xf32>, tensor<1xf32>) -> !onnx.value
  // expected-error @below {{AveragePool needs an image with elements and a kernel_shape}}
  %0 = onnx.node "AveragePool" since 12 (%a) with {strides = array<i64: 2, 2>} : (!onnx.value) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// expected-error @below {{1 node of 1 kind is not supported, the first is AveragePool at 'pool'}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x7x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 4> kind "parameter" : tensor<1xf32>
  %a = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x3x7x8xf32>, tensor<1xf32>) -> !onnx.value
  %0 = onnx.node "AveragePool" since 12 (%a) with {kernel_shape = array<i64: 2, 2>, strides = array<i64: 3, 2>, ceil_mode = 1 : i64, count_include_pad = 1 : i64} : (!onnx.value) -> !onnx.value loc("pool")
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// expected-error @below {{1 node of 1 kind is not supported, the first is MaxPool at 'pool'}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x4x4x4x4xf32>):
  %w = onnx.initializer "w" from <"", 0, 4> kind "parameter" : tensor<1xf32>
  %a = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x3x4x4x4x4xf32>, tensor<1xf32>) -> !onnx.value
  %0 = onnx.node "MaxPool" since 12 (%a) with {kernel_shape = array<i64: 2, 2, 2, 2>} : (!onnx.value) -> !onnx.value loc("pool")
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// A bias of zeros that nothing trains is none, even in the shape that PyTorch's exporter gives it in three dimensions.
// CHECK: train.parameter weight @w0 "w" : tensor<1x2x2x2x2xf32>
// CHECK: %[[LAST:.*]] = train.convolution
// CHECK-NEXT: train.reduce {{ *}}sum %[[LAST]]
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<1x2x3x3x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 64> kind "parameter" : tensor<1x2x2x2x2xf32>
  %shape = onnx.initializer "shape" value dense<[1, 2]> : tensor<2xi64> : tensor<2xi64>
  %zero = onnx.initializer "zero" value dense<0.0> : tensor<f32> : tensor<f32>
  %none = onnx.node "Expand" since 13 (%zero, %shape) : (tensor<f32>, tensor<2xi64>) -> !onnx.value
  %0 = onnx.node "Conv" since 11 (%x, %w, %none) : (tensor<1x2x3x3x3xf32>, tensor<1x2x2x2x2xf32>, !onnx.value) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}
