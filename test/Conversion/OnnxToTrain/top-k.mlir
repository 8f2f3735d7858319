// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// Each round takes the first of the greatest that are left: its place is the least of those where the maximum stands, and
// its value goes through a select, by which gradients find it.
// CHECK-LABEL: func.func @loss
// CHECK: %[[W:.*]] = train.read
// CHECK: %[[MAX:.*]] = train.reduce max %[[W]] dims [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK: %[[HIT:.*]] = train.compare equal %[[W]],
// CHECK: %[[FOUND:.*]] = train.select %[[HIT]], %{{.*}}, %{{.*}} : tensor<4x8xi1>, tensor<4x8xf32>
// CHECK: %[[PLACE:.*]] = train.reduce min %[[FOUND]] dims [1]
// CHECK: %[[TAKEN:.*]] = train.compare equal
// CHECK: %[[VALUE:.*]] = train.select %[[TAKEN]], %[[W]], %{{.*}} : tensor<4x8xi1>, tensor<4x8xf32>
// CHECK: train.reduce sum %[[VALUE]] dims [1]
// CHECK: %[[LEFT:.*]] = train.not %[[TAKEN]]
// CHECK: %[[REST:.*]] = train.select %[[LEFT]], %[[W]], %{{.*}} : tensor<4x8xi1>, tensor<4x8xf32>
// CHECK: train.reduce max %[[REST]] dims [1]
// CHECK: train.and %{{.*}}, %[[LEFT]]
// CHECK: train.concat
// CHECK-NOT: train.reduce max
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x2xf32>):
  %w = onnx.initializer "w" from <"", 0, 128> kind "parameter" : tensor<4x8xf32>
  %k = onnx.initializer "k" value dense<2> : tensor<1xi64> : tensor<1xi64>
  %values, %places = onnx.node "TopK" since 11 (%w, %k) with {axis = -1 : i64} : (tensor<4x8xf32>, tensor<1xi64>) -> (!onnx.value, !onnx.value)
  %y = onnx.node "Mul" since 14 (%x, %values) : (tensor<4x2xf32>, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%y) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

// expected-error @below {{1 node of 1 kind is not supported, the first is TopK at 'many'}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x65xf32>):
  %w = onnx.initializer "w" from <"", 0, 1040> kind "parameter" : tensor<4x65xf32>
  %k = onnx.initializer "k" value dense<65> : tensor<1xi64> : tensor<1xi64>
  %values, %places = onnx.node "TopK" since 11 (%w, %k) : (tensor<4x65xf32>, tensor<1xi64>) -> (!onnx.value, !onnx.value) loc("many")
  %y = onnx.node "Mul" since 14 (%x, %values) : (tensor<4x65xf32>, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%y) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 128> kind "parameter" : tensor<4x8xf32>
  %k = onnx.initializer "k" value dense<9> : tensor<1xi64> : tensor<1xi64>
  // expected-error @below {{takes a count that is not in [0, 8]}}
  %values, %places = onnx.node "TopK" since 11 (%w, %k) : (tensor<4x8xf32>, tensor<1xi64>) -> (!onnx.value, !onnx.value)
  %y = onnx.node "Mul" since 14 (%x, %values) : (tensor<4x8xf32>, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%y) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
