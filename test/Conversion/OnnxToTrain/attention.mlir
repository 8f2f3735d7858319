// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// A window, the causal mask and a mask of booleans are one sum with 0 and -inf.
// CHECK-LABEL: func.func @loss
// CHECK: %[[SCORES:.*]] = train.matmul
// CHECK: train.constant dense<{{\[\[}}0.000000e+00, 0xFF800000, 0xFF800000], [0.000000e+00, 0.000000e+00, 0xFF800000], [0xFF800000, 0.000000e+00, 0.000000e+00{{\]\]}}> : tensor<3x3xf32>
// CHECK: train.add
// CHECK-NOT: train.add
// CHECK: train.softmax
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<1x2x3x4xf32>):
  %k = onnx.initializer "k" from <"", 0, 96> kind "parameter" : tensor<1x2x3x4xf32>
  %m = onnx.initializer "m" value dense<true> : tensor<3x3xi1> : tensor<3x3xi1>
  %0 = onnx.node "Attention" since 25 (%x, %k, %k, %m) with {is_causal = 1 : i64, left_window_size = 1 : i64, right_window_size = 2 : i64} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<3x3xi1>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<1x2x3x4xf32>):
  // expected-error @below {{Attention has a window of -2 keys; it must be -1, for all keys, or 0 or more}}
  %0 = onnx.node "Attention" since 25 (%x, %x, %x) with {left_window_size = -2 : i64} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}
