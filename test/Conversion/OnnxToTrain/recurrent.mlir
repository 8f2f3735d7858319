// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// All tokens are multiplied at once; then each step adds the state's part of the gates. The first step has no state.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x3xf32>
// CHECK: %[[ALL:.*]] = train.matmul %[[X]], %{{.*}} contract [2] x [1] : tensor<2x4x3xf32>, tensor<20x3xf32> -> tensor<2x4x20xf32>
// CHECK: train.slice %{{.*}} from [0, 0, 0] sizes [1, 4, 20]
// CHECK-NOT: train.matmul
// CHECK: train.sigmoid
// CHECK: train.slice %{{.*}} from [1, 0, 0] sizes [1, 4, 20]
// CHECK: train.matmul %{{.*}} contract [1] x [1] : tensor<4x5xf32>, tensor<20x5xf32> -> tensor<4x20xf32>
// CHECK: train.concat %{{.*}} axis 0 : tensor<1x1x4x5xf32>, tensor<1x1x4x5xf32> -> tensor<2x1x4x5xf32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 240> kind "parameter" : tensor<1x20x3xf32>
  %r = onnx.initializer "r" from <"", 240, 400> kind "parameter" : tensor<1x20x5xf32>
  %b = onnx.initializer "b" from <"", 640, 160> kind "parameter" : tensor<1x40xf32>
  %0:3 = onnx.node "LSTM" since 14 (%x, %w, %r, %b) with {hidden_size = 5 : i64} : (tensor<2x4x3xf32>, tensor<1x20x3xf32>, tensor<1x20x5xf32>, tensor<1x40xf32>) -> (!onnx.value, !onnx.value, !onnx.value)
  %1 = onnx.node "ReduceSum" since 13 (%0#0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  %2 = onnx.node "ReduceSum" since 13 (%0#2) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  %3 = onnx.node "Add" since 14 (%1, %2) : (!onnx.value, !onnx.value) -> !onnx.value
  onnx.return %3 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 180> kind "parameter" : tensor<1x15x3xf32>
  %r = onnx.initializer "r" from <"", 240, 400> kind "parameter" : tensor<1x20x5xf32>
  // expected-error @below {{GRU has an operand 1 that does not fit its sequence and weights}}
  %0 = onnx.node "GRU" since 14 (%x, %r, %r) : (tensor<2x4x3xf32>, tensor<1x20x5xf32>, tensor<1x20x5xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 60> kind "parameter" : tensor<1x5x3xf32>
  %r = onnx.initializer "r" from <"", 60, 100> kind "parameter" : tensor<1x5x5xf32>
  // expected-error @below {{RNN has a direction that is none of forward, reverse and bidirectional}}
  %0 = onnx.node "RNN" since 14 (%x, %w, %r) with {direction = "up"} : (tensor<2x4x3xf32>, tensor<1x5x3xf32>, tensor<1x5x5xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// expected-error @below {{1 node of 1 kind is not supported, the first is RNN at 'clipped'}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 60> kind "parameter" : tensor<1x5x3xf32>
  %r = onnx.initializer "r" from <"", 60, 100> kind "parameter" : tensor<1x5x5xf32>
  %0 = onnx.node "RNN" since 14 (%x, %w, %r) with {clip = 1.0 : f32} : (tensor<2x4x3xf32>, tensor<1x5x3xf32>, tensor<1x5x5xf32>) -> !onnx.value loc("clipped")
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}
