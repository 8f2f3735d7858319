// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// At 0 the gradient is that of the slope, as in PyTorch: only what is greater passes as it is.
// CHECK-LABEL: func.func @loss
// CHECK: %[[W:.*]] = train.read
// CHECK: %[[IS:.*]] = train.compare greater %[[W]], %{{.*}}
// CHECK: %[[C:.*]] = train.constant dense<2.500000e-01>
// CHECK: %[[L:.*]] = train.mul %[[W]], %[[C]]
// CHECK: %[[LEAKY:.*]] = train.select %[[IS]], %[[W]], %[[L]]
// CHECK: %[[S:.*]] = train.broadcast %{{.*}} dims [0] : tensor<3xf32> -> tensor<3x2xf32>
// CHECK: %[[P:.*]] = train.mul %[[LEAKY]], %[[S]]
// CHECK: train.select %{{.*}}, %[[LEAKY]], %[[P]]
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<3x2xf32>):
  %w = onnx.initializer "w" from <"", 0, 24> kind "parameter" : tensor<3x2xf32>
  %s = onnx.initializer "s" from <"", 24, 12> kind "parameter" : tensor<3x1xf32>
  %0 = onnx.node "LeakyRelu" since 16 (%w) with {alpha = 2.5e-1 : f32} : (tensor<3x2xf32>) -> !onnx.value
  %1 = onnx.node "PRelu" since 16 (%0, %s) : (!onnx.value, tensor<3x1xf32>) -> !onnx.value
  %2 = onnx.node "ReduceSum" since 13 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %2 : !onnx.value
}

// -----

// The exponential is a hyperbolic tangent of elements up to 0, in f32.
// CHECK-LABEL: func.func @loss
// CHECK: %[[IS:.*]] = train.compare greater %[[W:[0-9]+]], %{{.*}} {train.full_precision}
// CHECK: %[[REST:.*]] = train.select %[[IS]], %{{.*}}, %[[W]]
// CHECK: %[[HALF:.*]] = train.mul %[[REST]], %{{.*}}
// CHECK: train.tanh %[[HALF]] {{.*}}train.full_precision
// CHECK: train.div
// CHECK: train.select %[[IS]], %[[W]], %{{.*}} {train.full_precision}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2xf32>):
  %w = onnx.initializer "w" from <"", 0, 8> kind "parameter" : tensor<2xf32>
  %0 = onnx.node "Elu" since 6 (%w) : (tensor<2xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// CHECK-LABEL: func.func @loss
// CHECK: %[[A:.*]] = train.abs %[[W:[0-9]+]] : tensor<2xf32> {train.full_precision}
// CHECK: %[[N:.*]] = train.neg %[[A]]
// CHECK: %[[E:.*]] = train.exp %[[N]]
// CHECK: %[[S:.*]] = train.add %[[E]], %{{.*}}
// CHECK: %[[T:.*]] = train.log %[[S]]
// CHECK: %[[M:.*]] = train.max %[[W]], %{{.*}}
// CHECK: train.add %[[M]], %[[T]]
// CHECK: train.tanh
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2xf32>):
  %w = onnx.initializer "w" from <"", 0, 8> kind "parameter" : tensor<2xf32>
  %0 = onnx.node "Mish" since 18 (%w) : (tensor<2xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// Elements at the bounds of a gate are clipped, and so have no gradient.
// CHECK-LABEL: func.func @loss
// CHECK: %[[FULL:.*]] = train.compare greater_equal %[[LINE:[0-9]+]], %{{.*}}
// CHECK: %[[EMPTY:.*]] = train.compare less_equal %[[LINE]], %{{.*}}
// CHECK: %[[UP:.*]] = train.select %[[FULL]], %{{.*}}, %[[LINE]]
// CHECK: %[[GATE:.*]] = train.select %[[EMPTY]], %{{.*}}, %[[UP]]
// CHECK: train.mul %{{.*}}, %[[GATE]]
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2xf32>):
  %w = onnx.initializer "w" from <"", 0, 8> kind "parameter" : tensor<2xf32>
  %0 = onnx.node "HardSwish" since 14 (%w) : (tensor<2xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2xf32>):
  %w = onnx.initializer "w" from <"", 0, 8> kind "parameter" : tensor<2xf32>
  // expected-error @below {{Celu has an alpha of 0.000000; it must be more than 0}}
  %0 = onnx.node "Celu" since 12 (%w) with {alpha = 0.0 : f32} : (tensor<2xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2xf32>):
  %w = onnx.initializer "w" from <"", 0, 24> kind "parameter" : tensor<3x2xf32>
  // expected-error @below {{PRelu has slopes that do not broadcast to its operand}}
  %0 = onnx.node "PRelu" since 16 (%x, %w) : (tensor<2xf32>, tensor<3x2xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2xi64>):
  // expected-error @below {{Elu has an operand that is not float}}
  %0 = onnx.node "Elu" since 6 (%x) : (tensor<2xi64>) -> !onnx.value
  onnx.return %0 : !onnx.value
}
