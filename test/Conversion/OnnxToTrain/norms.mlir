// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// PyTorch's exporters write a group norm as a reshape, an instance norm that scales nothing, and a product and a sum for each channel.
// CHECK-LABEL: func.func @loss
// CHECK: %[[X:.*]] = train.reshape %{{.*}} : tensor<2x6x4x5xf32> -> tensor<2x3x40xf32>
// CHECK: %[[SUM:.*]] = train.reduce sum %[[X]] dims [2] : tensor<2x3x40xf32> -> tensor<2x3xf32> {train.full_precision}
// CHECK: %[[CENTERED:.*]] = train.sub %[[X]], %{{.*}} : tensor<2x3x40xf32> {train.full_precision}
// CHECK: %[[SQUARES:.*]] = train.mul %[[CENTERED]], %[[CENTERED]] : tensor<2x3x40xf32> {train.full_precision}
// CHECK: train.reduce sum %[[SQUARES]] dims [2]
// CHECK: %[[ROOT:.*]] = train.sqrt
// CHECK: %[[FACTOR:.*]] = train.div %{{.*}}, %[[ROOT]]
// CHECK: %[[Y:.*]] = train.mul %[[CENTERED]]
// CHECK-NOT: train.add
// CHECK: train.reshape %[[Y]] : tensor<2x3x40xf32> -> tensor<2x6x4x5xf32>
// CHECK: train.broadcast %{{.*}} dims [1] : tensor<6xf32> -> tensor<2x6x4x5xf32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x6x4x5xf32>):
  %s = onnx.initializer "s" from <"", 0, 24> kind "parameter" : tensor<6x1x1xf32>
  %b = onnx.initializer "b" from <"", 24, 24> kind "parameter" : tensor<6x1x1xf32>
  %groups = onnx.initializer "groups" value dense<[0, 3, -1]> : tensor<3xi64> : tensor<3xi64>
  %shape = onnx.initializer "shape" value dense<[2, 6, 4, 5]> : tensor<4xi64> : tensor<4xi64>
  %ones = onnx.initializer "ones" value dense<1.0> : tensor<3xf32> : tensor<3xf32>
  %zeros = onnx.initializer "zeros" value dense<0.0> : tensor<3xf32> : tensor<3xf32>
  %0 = onnx.node "Reshape" since 14 (%x, %groups) : (tensor<2x6x4x5xf32>, tensor<3xi64>) -> !onnx.value
  %1 = onnx.node "InstanceNormalization" since 6 (%0, %ones, %zeros) : (!onnx.value, tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  %2 = onnx.node "Reshape" since 14 (%1, %shape) : (!onnx.value, tensor<4xi64>) -> !onnx.value
  %3 = onnx.node "Mul" since 14 (%2, %s) : (!onnx.value, tensor<6x1x1xf32>) -> !onnx.value
  %4 = onnx.node "Add" since 14 (%3, %b) : (!onnx.value, tensor<6x1x1xf32>) -> !onnx.value
  %5 = onnx.node "ReduceSum" since 13 (%4) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %5 : !onnx.value
}

// -----

// From opset 21 on each channel has a scale, before it each group.
// CHECK-LABEL: func.func @loss
// CHECK: train.reshape %{{.*}} : tensor<2x6x5xf32> -> tensor<2x3x2x5xf32>
// The scale is read behind the statistics: between the two a pipeline may cut.
// CHECK: train.sqrt
// CHECK-NEXT: train.reshape %{{.*}} : tensor<6xf32> -> tensor<3x2x1xf32>
// CHECK: train.reshape %{{.*}} : tensor<2x3x2x5xf32> -> tensor<2x6x5xf32>
// CHECK: train.reshape %{{.*}} : tensor<3xf32> -> tensor<3x1x1xf32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x6x5xf32>):
  %s = onnx.initializer "s" from <"", 0, 24> kind "parameter" : tensor<6xf32>
  %g = onnx.initializer "g" from <"", 24, 12> kind "parameter" : tensor<3xf32>
  %0 = onnx.node "GroupNormalization" since 21 (%x, %s, %s) with {num_groups = 3 : i64} : (tensor<2x6x5xf32>, tensor<6xf32>, tensor<6xf32>) -> !onnx.value
  %1 = onnx.node "GroupNormalization" since 18 (%0, %g, %g) with {num_groups = 3 : i64} : (!onnx.value, tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  %2 = onnx.node "ReduceSum" since 13 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %2 : !onnx.value
}

// -----

// CHECK-LABEL: func.func @loss
// CHECK: train.reduce sum %{{.*}} dims [0, 2, 3]
// CHECK: train.reduce sum %{{.*}} dims [0, 2, 3]
// CHECK: %[[POWERS:.*]] = train.abs
// CHECK: train.reduce sum %[[POWERS]] dims [1]
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x6x4x5xf32>):
  %w = onnx.initializer "w" from <"", 0, 20> kind "parameter" : tensor<5xf32>
  %0 = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x6x4x5xf32>, tensor<5xf32>) -> !onnx.value
  %1 = onnx.node "MeanVarianceNormalization" since 13 (%0) : (!onnx.value) -> !onnx.value
  %2 = onnx.node "LpNormalization" since 1 (%1) with {axis = 1 : i64, p = 1 : i64} : (!onnx.value) -> !onnx.value
  %3 = onnx.node "ReduceSum" since 13 (%2) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %3 : !onnx.value
}

// -----

// A layer norm whose statistics lead to the loss is made of primitives, because the operator has no gradient for them.
// CHECK-LABEL: func.func @loss
// CHECK-NOT: train.layer_norm
// CHECK: train.reduce sum %{{.*}} dims [1]
// CHECK: train.reciprocal
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x5xf32>):
  %w = onnx.initializer "w" from <"", 0, 20> kind "parameter" : tensor<5xf32>
  %0:3 = onnx.node "LayerNormalization" since 17 (%x, %w) : (tensor<2x5xf32>, tensor<5xf32>) -> (!onnx.value, !onnx.value, !onnx.value)
  %1 = onnx.node "Mul" since 14 (%0#0, %0#2) : (!onnx.value, !onnx.value) -> !onnx.value
  %2 = onnx.node "ReduceSum" since 13 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %2 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x6x5xf32>):
  %s = onnx.initializer "s" from <"", 0, 24> kind "parameter" : tensor<6xf32>
  // expected-error @below {{GroupNormalization has num_groups 4, which does not divide its 6 channels}}
  %0 = onnx.node "GroupNormalization" since 21 (%x, %s, %s) with {num_groups = 4 : i64} : (tensor<2x6x5xf32>, tensor<6xf32>, tensor<6xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x6x5xf32>):
  %s = onnx.initializer "s" from <"", 0, 24> kind "parameter" : tensor<6xf32>
  // expected-error @below {{GroupNormalization has a scale or bias that does not fit its 3 groups}}
  %0 = onnx.node "GroupNormalization" since 18 (%x, %s, %s) with {num_groups = 3 : i64} : (tensor<2x6x5xf32>, tensor<6xf32>, tensor<6xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x6x5xf32>):
  %s = onnx.initializer "s" from <"", 0, 12> kind "parameter" : tensor<3xf32>
  // expected-error @below {{GroupNormalization has a scale or bias that does not fit its 6 channels}}
  %0 = onnx.node "GroupNormalization" since 21 (%x, %s, %s) with {num_groups = 3 : i64} : (tensor<2x6x5xf32>, tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<6x5xf32>):
  %s = onnx.initializer "s" from <"", 0, 20> kind "parameter" : tensor<5xf32>
  // expected-error @below {{InstanceNormalization needs a float tensor of samples with channels of one dim or more}}
  %0 = onnx.node "InstanceNormalization" since 6 (%x, %s, %s) : (tensor<6x5xf32>, tensor<5xf32>, tensor<5xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x6x5xf32>):
  %s = onnx.initializer "s" from <"", 0, 20> kind "parameter" : tensor<5xf32>
  // expected-error @below {{InstanceNormalization has a scale or bias that does not fit its 6 channels}}
  %0 = onnx.node "InstanceNormalization" since 6 (%x, %s, %s) : (tensor<2x6x5xf32>, tensor<5xf32>, tensor<5xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x5x5xf32>):
  %s = onnx.initializer "s" from <"", 0, 20> kind "parameter" : tensor<5xf32>
  // expected-error @below {{InstanceNormalization has an epsilon of -1.000000; it must be 0 or more}}
  %0 = onnx.node "InstanceNormalization" since 6 (%x, %s, %s) with {epsilon = -1.0 : f32} : (tensor<2x5x5xf32>, tensor<5xf32>, tensor<5xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x5x5xf32>):
  // expected-error @below {{MeanVarianceNormalization needs the attribute axes for a tensor of rank 3}}
  %0 = onnx.node "MeanVarianceNormalization" since 13 (%x) : (tensor<2x5x5xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x5x5xf32>):
  // expected-error @below {{LpNormalization has p = 3; it must be 1 or 2}}
  %0 = onnx.node "LpNormalization" since 1 (%x) with {p = 3 : i64} : (tensor<2x5x5xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}
