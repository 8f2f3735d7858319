// RUN: windlass-opt %s -onnx-convert-to-train | FileCheck %s

// What a rotation leaves of a head of which it takes all dims: nothing, which joins the rest without a trace.
// CHECK-NOT: train.slice
// CHECK-NOT: train.concat
// CHECK: train.mul
// CHECK-NEXT: train.reduce {{ *}}sum
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x6xf32>):
  %w = onnx.initializer "w" from <"", 0, 24> : tensor<6xf32>
  %begin = onnx.initializer "begin" value dense<6> : tensor<1xi64> : tensor<1xi64>
  %end = onnx.initializer "end" value dense<9> : tensor<1xi64> : tensor<1xi64>
  %axis = onnx.initializer "axis" value dense<1> : tensor<1xi64> : tensor<1xi64>
  %turned = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x6xf32>, tensor<6xf32>) -> !onnx.value
  %passed = onnx.node "Slice" since 13 (%x, %begin, %end, %axis) : (tensor<2x6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  %all = onnx.node "Concat" since 13 (%turned, %passed) with {axis = -1 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%all) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
