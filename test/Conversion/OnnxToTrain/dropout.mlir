// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// Each dropout in training has a column of keys, one for each sample; what all samples share has the mask of the first.
// CHECK: func.func @loss(%[[X:.*]]: tensor<4x3xf32> {{.*}}, %[[KEYS:.*]]: tensor<4x3xi64> {train.feed = "random", train.input = "dropout keys"})
// CHECK: %[[W:.*]] = train.read
// CHECK: %[[C0:.*]] = train.slice %[[KEYS]] from [0, 0] sizes [4, 1]
// CHECK: %[[K0:.*]] = train.reshape %[[C0]] : tensor<4x1xi64> -> tensor<4xi64>
// CHECK: %[[FIRST:.*]] = train.slice %[[K0]] from [0] sizes [1]
// CHECK: %[[ROW:.*]] = train.reshape %[[W]] : tensor<3xf32> -> tensor<1x3xf32>
// CHECK: %[[D0:.*]] = train.dropout %[[ROW]], %[[FIRST]] ratio 2.500000e-01
// CHECK: train.slice %[[KEYS]] from [0, 1] sizes [4, 1]
// CHECK: train.dropout %{{.*}}, %{{.*}} ratio 5.000000e-01 : tensor<4x3xf32>
// CHECK: train.slice %[[KEYS]] from [0, 2] sizes [4, 1]
// CHECK: train.dropout %{{.*}}, %{{.*}} ratio 5.000000e-01 : tensor<4x2x3xf32>
// CHECK-NOT: train.dropout
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 12> kind "parameter" : tensor<3xf32>
  %quarter = onnx.initializer "quarter" value dense<0.25> : tensor<f32> : tensor<f32>
  %half = onnx.initializer "half" value dense<0.5> : tensor<f32> : tensor<f32>
  %yes = onnx.initializer "yes" value dense<true> : tensor<i1> : tensor<i1>
  %no = onnx.initializer "no" value dense<false> : tensor<i1> : tensor<i1>
  %shape = onnx.initializer "shape" value dense<[8, 3]> : tensor<2xi64> : tensor<2xi64>
  %a = onnx.node "Dropout" since 13 (%w, %quarter, %yes) : (tensor<3xf32>, tensor<f32>, tensor<i1>) -> !onnx.value
  %b = onnx.node "Mul" since 14 (%x, %a) : (tensor<4x3xf32>, !onnx.value) -> !onnx.value
  %c = onnx.node "Dropout" since 13 (%b, %half, %yes) : (!onnx.value, tensor<f32>, tensor<i1>) -> !onnx.value
  %d = onnx.node "Concat" since 13 (%c, %c) with {axis = 1 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  %e = onnx.node "Reshape" since 14 (%d, %shape) : (!onnx.value, tensor<2xi64>) -> !onnx.value
  %f = onnx.node "Dropout" since 13 (%e, %half, %yes) : (!onnx.value, tensor<f32>, tensor<i1>) -> !onnx.value
  %g = onnx.node "Dropout" since 13 (%f, %half, %no) : (!onnx.value, tensor<f32>, tensor<i1>) -> !onnx.value
  %h = onnx.node "Dropout" since 13 (%g) : (!onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%h) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 12> kind "parameter" : tensor<3xf32>
  %one = onnx.initializer "one" value dense<1.0> : tensor<f32> : tensor<f32>
  %yes = onnx.initializer "yes" value dense<true> : tensor<i1> : tensor<i1>
  // expected-error @below {{Dropout has a ratio that is not at least 0 and below 1}}
  %a = onnx.node "Dropout" since 13 (%w, %one, %yes) : (tensor<3xf32>, tensor<f32>, tensor<i1>) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%a) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
