// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// The logarithm of a sum of exponentials takes the maximum out, unless it is infinite.
// CHECK-LABEL: func.func @loss
// CHECK: %[[W:.*]] = train.read
// CHECK: %[[TOP:.*]] = train.reduce max %[[W]] dims [1] : tensor<3x4xf32> -> tensor<3xf32> {train.full_precision}
// CHECK: %[[IS:.*]] = train.compare less
// CHECK: %[[SHIFT:.*]] = train.select %[[IS]]
// CHECK: %[[DIFFERENCE:.*]] = train.sub %[[W]], %{{.*}}
// CHECK: %[[E:.*]] = train.exp %[[DIFFERENCE]]
// CHECK: train.reduce sum %[[E]] dims [1]
// CHECK: %[[LOG:.*]] = train.log
// CHECK: train.add %[[LOG]], %[[SHIFT]]
// A log softmax that no loss takes in is a difference from it.
// CHECK: train.reduce max %{{.*}} dims [0]
// CHECK: train.sub %{{.*}} : tensor<3xf32> {train.full_precision}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<3x4xf32>):
  %w = onnx.initializer "w" from <"", 0, 48> kind "parameter" : tensor<3x4xf32>
  %axes = onnx.initializer "axes" value dense<1> : tensor<1xi64> : tensor<1xi64>
  %0 = onnx.node "ReduceLogSumExp" since 18 (%w, %axes) with {keepdims = 0 : i64} : (tensor<3x4xf32>, tensor<1xi64>) -> !onnx.value
  %1 = onnx.node "LogSoftmax" since 13 (%0) : (!onnx.value) -> !onnx.value
  %2 = onnx.node "ReduceSum" since 13 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %2 : !onnx.value
}

// -----

// A product halves its dim until one element is left.
// CHECK-LABEL: func.func @loss
// CHECK: %[[A:.*]] = train.slice %[[W:[0-9]+]] from [0] sizes [2]
// CHECK: %[[B:.*]] = train.slice %[[W]] from [3] sizes [2]
// CHECK: %[[P:.*]] = train.mul %[[A]], %[[B]]
// CHECK: %[[M:.*]] = train.slice %[[W]] from [2] sizes [1]
// CHECK: train.concat %[[P]], %[[M]] axis 0 : tensor<2xf32>, tensor<1xf32> -> tensor<3xf32>
// CHECK: train.concat
// CHECK: train.mul %{{.*}} : tensor<1xf32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<5xf32>):
  %w = onnx.initializer "w" from <"", 0, 20> kind "parameter" : tensor<5xf32>
  %0 = onnx.node "ReduceProd" since 18 (%w) with {keepdims = 0 : i64} : (tensor<5xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

// The root of 0 is taken of 1 instead, so that its gradient is 0.
// CHECK-LABEL: func.func @loss
// CHECK: %[[SUM:.*]] = train.reduce sum %{{.*}} dims [0]
// CHECK: %[[ZERO:.*]] = train.compare equal %[[SUM]]
// CHECK: %[[SAFE:.*]] = train.select %[[ZERO]], %{{.*}}, %[[SUM]]
// CHECK: %[[ROOT:.*]] = train.sqrt %[[SAFE]]
// CHECK: train.select %[[ZERO]], %{{.*}}, %[[ROOT]]
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<5xf32>):
  %w = onnx.initializer "w" from <"", 0, 20> kind "parameter" : tensor<5xf32>
  %0 = onnx.node "ReduceL2" since 18 (%w) with {keepdims = 0 : i64} : (tensor<5xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

// expected-error @below {{1 node of 1 kind is not supported, the first is ReduceL2 at 'whole'}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<5xi64>):
  %0 = onnx.node "ReduceL2" since 18 (%x) with {keepdims = 0 : i64} : (tensor<5xi64>) -> !onnx.value loc("whole")
  onnx.return %0 : !onnx.value
}
