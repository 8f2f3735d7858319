// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// Elements are mirrored at the borders, repeated, or taken from the other end.
// CHECK-LABEL: func.func @loss
// CHECK: %[[MIRROR:.*]] = train.constant dense<[2, 1, 0, 1, 2, 1]> : tensor<6xi64>
// CHECK: train.gather %{{.*}}, %[[MIRROR]] axis 1
// CHECK: %[[EDGE:.*]] = train.constant dense<[0, 0, 1, 1, 1]> : tensor<5xi64>
// CHECK: train.gather %{{.*}}, %[[EDGE]] axis 2
// CHECK: %[[WRAP:.*]] = train.constant dense<[0, 1, 2, 3, 4, 0, 1]> : tensor<7xi64>
// CHECK: train.gather %{{.*}}, %[[WRAP]] axis 1
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x2xf32>):
  %w = onnx.initializer "w" from <"", 0, 48> kind "parameter" : tensor<2x3x2xf32>
  %first = onnx.initializer "first" value dense<[0, 2, 0, 0, 1, 0]> : tensor<6xi64> : tensor<6xi64>
  %second = onnx.initializer "second" value dense<[0, 0, 1, 0, 0, 2]> : tensor<6xi64> : tensor<6xi64>
  %third = onnx.initializer "third" value dense<[0, -1, 0, 0, 2, 0]> : tensor<6xi64> : tensor<6xi64>
  %0 = onnx.node "Pad" since 19 (%w, %first) with {mode = "reflect"} : (tensor<2x3x2xf32>, tensor<6xi64>) -> !onnx.value
  %1 = onnx.node "Pad" since 19 (%0, %second) with {mode = "edge"} : (!onnx.value, tensor<6xi64>) -> !onnx.value
  %2 = onnx.node "Pad" since 19 (%1, %third) with {mode = "wrap"} : (!onnx.value, tensor<6xi64>) -> !onnx.value
  %3 = onnx.node "ReduceSum" since 13 (%2) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %3 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<3xf32>):
  %pads = onnx.initializer "pads" value dense<[1, 1]> : tensor<2xi64> : tensor<2xi64>
  // expected-error @below {{Pad has the mode 'mirror'; it must be constant, reflect, edge or wrap}}
  %0 = onnx.node "Pad" since 19 (%x, %pads) with {mode = "mirror"} : (tensor<3xf32>, tensor<2xi64>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<3xf32>):
  %pads = onnx.initializer "pads" value dense<[-3, 1]> : tensor<2xi64> : tensor<2xi64>
  // expected-error @below {{Pad repeats the elements of dimension 0, which has none}}
  %0 = onnx.node "Pad" since 19 (%x, %pads) with {mode = "edge"} : (tensor<3xf32>, tensor<2xi64>) -> !onnx.value
  onnx.return %0 : !onnx.value
}
