// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// A whole number of copies of each element is a broadcast, other nearest elements are gathered. Two neighbours are weighed and added.
// Places beyond the region's ends have the value that the node says.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>
// CHECK: %[[R:.*]] = train.reshape %[[X]] : tensor<2x3x4xf32> -> tensor<2x3x4x1xf32>
// CHECK: %[[B:.*]] = train.broadcast %{{.*}} -> tensor<2x3x4x2xf32>
// CHECK: %[[UP:.*]] = train.reshape %[[B]] : tensor<2x3x4x2xf32> -> tensor<2x3x8xf32>
// CHECK: %[[I:.*]] = train.constant dense<[0, 2, 3, 5, 7]> : tensor<5xi64>
// CHECK: %[[DOWN:.*]] = train.gather %[[UP]], %[[I]] axis 2
// CHECK: %[[LOW:.*]] = train.gather %[[DOWN]], %{{.*}} axis 2
// CHECK: %[[A:.*]] = train.mul %[[LOW]]
// CHECK: %[[HIGH:.*]] = train.gather %[[DOWN]], %{{.*}} axis 2
// CHECK: %[[C:.*]] = train.mul %[[HIGH]]
// CHECK: %[[L:.*]] = train.add %[[A]], %[[C]] : tensor<2x3x10xf32>
// CHECK: train.select %{{.*}} : tensor<2x3x4xi1>, tensor<2x3x4xf32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x4xf32>):
  %w = onnx.initializer "w" from <"", 0, 12> kind "parameter" : tensor<3x1xf32>
  %a = onnx.absent : !onnx.absent
  %s = onnx.initializer "s" value dense<[1.0, 1.0, 2.0]> : tensor<3xf32> : tensor<3xf32>
  %n = onnx.initializer "n" value dense<5> : tensor<1xi64> : tensor<1xi64>
  %m = onnx.initializer "m" value dense<10> : tensor<1xi64> : tensor<1xi64>
  %r = onnx.initializer "r" value dense<[0.5, 1.5]> : tensor<2xf32> : tensor<2xf32>
  %f = onnx.initializer "f" value dense<4> : tensor<1xi64> : tensor<1xi64>
  %0 = onnx.node "Resize" since 19 (%x, %a, %s) with {nearest_mode = "floor", coordinate_transformation_mode = "asymmetric"} : (tensor<2x3x4xf32>, !onnx.absent, tensor<3xf32>) -> !onnx.value
  %1 = onnx.node "Resize" since 19 (%0, %a, %a, %n) with {axes = array<i64: -1>} : (!onnx.value, !onnx.absent, !onnx.absent, tensor<1xi64>) -> !onnx.value
  %2 = onnx.node "Resize" since 19 (%1, %a, %a, %m) with {mode = "linear", axes = array<i64: 2>} : (!onnx.value, !onnx.absent, !onnx.absent, tensor<1xi64>) -> !onnx.value
  %3 = onnx.node "Mul" since 14 (%2, %w) : (!onnx.value, tensor<3x1xf32>) -> !onnx.value
  %4 = onnx.node "Resize" since 19 (%3, %r, %a, %f) with {mode = "linear", axes = array<i64: 2>, coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 7.0 : f32} : (!onnx.value, tensor<2xf32>, !onnx.absent, tensor<1xi64>) -> !onnx.value
  %5 = onnx.node "ReduceSum" since 13 (%4) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %5 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4xf32>):
  %a = onnx.absent : !onnx.absent
  %s = onnx.initializer "s" value dense<[1.0, -2.0]> : tensor<2xf32> : tensor<2xf32>
  // expected-error @below {{Resize has a scale that is not above 0, or gives too many elements}}
  %0 = onnx.node "Resize" since 19 (%x, %a, %s) : (tensor<2x4xf32>, !onnx.absent, tensor<2xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4xf32>):
  %a = onnx.absent : !onnx.absent
  %n = onnx.initializer "n" value dense<5> : tensor<1xi64> : tensor<1xi64>
  // expected-error @below {{Resize has sizes that are not one positive number for each axis}}
  %0 = onnx.node "Resize" since 19 (%x, %a, %a, %n) : (tensor<2x4xf32>, !onnx.absent, !onnx.absent, tensor<1xi64>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4xf32>):
  %a = onnx.absent : !onnx.absent
  %n = onnx.initializer "n" value dense<[2, 5]> : tensor<2xi64> : tensor<2xi64>
  // expected-error @below {{Resize has a keep_aspect_ratio_policy that is none of stretch, not_larger and not_smaller}}
  %0 = onnx.node "Resize" since 19 (%x, %a, %a, %n) with {keep_aspect_ratio_policy = "no"} : (tensor<2x4xf32>, !onnx.absent, !onnx.absent, tensor<2xi64>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// Scales that train could be anything.
// expected-error @below {{1 node of 1 kind is not supported, the first is Resize at 'live'}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4xf32>):
  %a = onnx.absent : !onnx.absent
  %s = onnx.initializer "s" from <"", 0, 8> kind "parameter" : tensor<2xf32>
  %0 = onnx.node "Resize" since 19 (%x, %a, %s) : (tensor<2x4xf32>, !onnx.absent, tensor<2xf32>) -> !onnx.value loc("live")
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// Blocks become channels and channels blocks by two reshapes around a transposition.
// CHECK-LABEL: func.func @loss
// CHECK: train.reshape %{{.*}} : tensor<2x8x2x3xf32> -> tensor<2x2x2x2x2x3xf32>
// CHECK: train.transpose %{{.*}} [0, 3, 4, 1, 5, 2]
// CHECK: train.reshape %{{.*}} -> tensor<2x2x4x6xf32>
// CHECK: train.transpose %{{.*}} [0, 3, 5, 1, 2, 4]
// CHECK: train.reshape %{{.*}} -> tensor<2x8x2x3xf32>
// CHECK: train.transpose %{{.*}} [0, 1, 4, 2, 5, 3]
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x8x2x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 32> kind "parameter" : tensor<8x1x1xf32>
  %a = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x8x2x3xf32>, tensor<8x1x1xf32>) -> !onnx.value
  %0 = onnx.node "DepthToSpace" since 13 (%a) with {blocksize = 2 : i64} : (!onnx.value) -> !onnx.value
  %1 = onnx.node "SpaceToDepth" since 13 (%0) with {blocksize = 2 : i64} : (!onnx.value) -> !onnx.value
  %2 = onnx.node "DepthToSpace" since 13 (%1) with {blocksize = 2 : i64, mode = "CRD"} : (!onnx.value) -> !onnx.value
  %3 = onnx.node "ReduceSum" since 13 (%2) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %3 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x6x2x3xf32>):
  // expected-error @below {{DepthToSpace has an image that does not consist of blocks}}
  %0 = onnx.node "DepthToSpace" since 13 (%x) with {blocksize = 2 : i64} : (tensor<2x6x2x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x6x2x3xf32>):
  // expected-error @below {{SpaceToDepth needs an image [batch, channels, rows, columns] with elements, and a blocksize}}
  %0 = onnx.node "SpaceToDepth" since 13 (%x) with {blocksize = 0 : i64} : (tensor<2x6x2x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}
