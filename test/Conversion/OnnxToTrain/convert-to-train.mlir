// RUN: windlass-opt %s -onnx-convert-to-train | FileCheck %s

// One linear layer with a bias, ReLU and cross entropy: parameters in the order of the file, labels without a feed.
// CHECK-DAG: train.parameter weight @w0 "fc.weight" : tensor<10x8xf32> from <packed, "", 0, 320> {decays, trainable}
// CHECK-DAG: train.parameter weight @w1 "fc.bias" : tensor<10xf32> from <external, "m.data", 320, 40> {trainable}
// CHECK: func.func @loss(%[[X:.*]]: tensor<4x8xf32> {train.feed = "none", train.input = "x"},
// CHECK-SAME: %[[Y:.*]]: tensor<4xi64> {train.feed = "none", train.input = "labels", train.vocabulary = 10 : i64})
// CHECK: %[[W:.*]] = train.read @w0
// CHECK: %[[M:.*]] = train.matmul %[[X]], %[[W]] batch [] x [] contract [1] x [1]
// CHECK: %[[B:.*]] = train.broadcast %{{.*}} dims [1] : tensor<10xf32> -> tensor<4x10xf32>
// CHECK: %[[A:.*]] = train.add %[[M]], %[[B]]
// CHECK: %[[R:.*]] = train.relu %[[A]]
// CHECK: %[[S:.*]], %[[C:.*]], %{{.*}} = train.softmax_cross_entropy %[[R]], %[[Y]] ignore -100
// CHECK: %[[L:.*]] = train.loss %[[S]], %[[C]]
// CHECK: return %[[L]] : tensor<f32>
onnx.graph "g" inputs ["x", "labels"] outputs ["loss"] {
^bb0(%x: tensor<4x8xf32>, %labels: tensor<4xi64>):
  %w = onnx.initializer "fc.weight" from <"", 0, 320> kind "parameter" : tensor<10x8xf32>
  %b = onnx.initializer "fc.bias" from <"m.data", 320, 40> kind "parameter" : tensor<10xf32>
  %y = onnx.node "Gemm" since 13 (%x, %w, %b) with {transB = 1 : i64} scope "fc"
     : (tensor<4x8xf32>, tensor<10x8xf32>, tensor<10xf32>) -> !onnx.value
  %r = onnx.node "Relu" since 14 (%y) : (!onnx.value) -> !onnx.value
  %l = onnx.node "SoftmaxCrossEntropyLoss" since 13 (%r, %labels) with {ignore_index = -100 : i64, reduction = "mean"}
     : (!onnx.value, tensor<4xi64>) -> !onnx.value
  onnx.return %l : !onnx.value
}
