// RUN: windlass-opt %s -onnx-convert-to-train | FileCheck %s

// Unmarked floats: what scales a row trains, the tables of a rotary embedding, which an exporter has folded, do not.
// CHECK-DAG: train.parameter weight @{{.*}} "scale" : tensor<6xf32> {{.*}}trainable
// CHECK-DAG: train.parameter buffer @{{.*}} "cosine" : tensor<1x1x3x6xf32> {{.*}}reason = "unmarked; only a table of a rotary embedding"
// CHECK-DAG: train.parameter buffer @{{.*}} "sine" : tensor<1x1x3x6xf32> {{.*}}reason = "unmarked; only a table of a rotary embedding"
onnx.graph "g" inputs ["a"] outputs ["loss"] {
^bb0(%a: tensor<2x2x3x6xf32>):
  %scale = onnx.initializer "scale" from <"", 0, 24> : tensor<6xf32>
  %cosine = onnx.initializer "cosine" from <"", 24, 72> : tensor<1x1x3x6xf32>
  %sine = onnx.initializer "sine" from <"", 96, 72> : tensor<1x1x3x6xf32>
  %zero = onnx.initializer "zero" value dense<0> : tensor<1xi64> : tensor<1xi64>
  %half = onnx.initializer "half" value dense<3> : tensor<1xi64> : tensor<1xi64>
  %end = onnx.initializer "end" value dense<6> : tensor<1xi64> : tensor<1xi64>
  %last = onnx.initializer "last" value dense<3> : tensor<1xi64> : tensor<1xi64>
  %x = onnx.node "Mul" since 14 (%a, %scale) : (tensor<2x2x3x6xf32>, tensor<6xf32>) -> !onnx.value
  %first = onnx.node "Slice" since 13 (%x, %zero, %half, %last) : (!onnx.value, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  %second = onnx.node "Slice" since 13 (%x, %half, %end, %last) : (!onnx.value, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  %negated = onnx.node "Neg" since 13 (%second) : (!onnx.value) -> !onnx.value
  %turned = onnx.node "Concat" since 13 (%negated, %first) with {axis = -1 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  %kept = onnx.node "Mul" since 14 (%x, %cosine) : (!onnx.value, tensor<1x1x3x6xf32>) -> !onnx.value
  %moved = onnx.node "Mul" since 14 (%turned, %sine) : (!onnx.value, tensor<1x1x3x6xf32>) -> !onnx.value
  %sum = onnx.node "Add" since 14 (%kept, %moved) : (!onnx.value, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%sum) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
