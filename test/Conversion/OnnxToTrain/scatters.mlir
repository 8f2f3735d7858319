// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// At constant places each row of the result is an old one or its last update: one gather of both. What is added is scattered, which has a
// gradient too.
// CHECK-LABEL: func.func @loss
// CHECK: %[[U:.*]] = train.read @w0
// CHECK: %[[BOTH:.*]] = train.concat %{{.*}}, %[[U]] axis 0 : tensor<4x3xf32>, tensor<3x3xf32> -> tensor<7x3xf32>
// CHECK: %[[FROM:.*]] = train.constant dense<[0, 6, 2, 5]> : tensor<4xi64>
// CHECK: train.embedding %[[BOTH]], %[[FROM]]
// CHECK: %[[PLACES:.*]] = train.constant dense<[3, 1]> : tensor<2xi64>
// CHECK: %[[SUMS:.*]] = train.scatter_add %[[PLACES]], %{{.*}} axis 0 size 12 : tensor<2xi64>, tensor<2xf32> -> tensor<12xf32>
// CHECK: train.add %{{.*}}, %[[SUMS]]
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %u = onnx.initializer "u" from <"", 0, 36> kind "parameter" : tensor<3x3xf32>
  %v = onnx.initializer "v" from <"", 36, 8> kind "parameter" : tensor<1x2xf32>
  %i = onnx.initializer "i" value dense<[[1], [-1], [1]]> : tensor<3x1xi64> : tensor<3x1xi64>
  %j = onnx.initializer "j" value dense<[[1, 0]]> : tensor<1x2xi64> : tensor<1x2xi64>
  %0 = onnx.node "ScatterND" since 18 (%x, %i, %u) : (tensor<4x3xf32>, tensor<3x1xi64>, tensor<3x3xf32>) -> !onnx.value
  %1 = onnx.node "ScatterElements" since 18 (%0, %j, %v) with {axis = 0 : i64, reduction = "add"} : (!onnx.value, tensor<1x2xi64>, tensor<1x2xf32>) -> !onnx.value
  %2 = onnx.node "ReduceSum" since 13 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %2 : !onnx.value
}

// -----

// At places that are known in training only, elements with an update are those that a one was added to.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: (%[[X:.*]]: tensor<4x3xf32> {{.*}}, %[[I:.*]]: tensor<4x1xi64>
// CHECK: %[[U:.*]] = train.read
// CHECK: %[[S:.*]] = train.scatter_elements_add %[[I]], %[[U]] axis 1 size 3
// CHECK: %[[ONES:.*]] = train.constant dense<1.000000e+00> : tensor<4x1xf32>
// CHECK: %[[N:.*]] = train.scatter_elements_add %[[I]], %[[ONES]] axis 1 size 3
// CHECK: %[[HIT:.*]] = train.compare greater %[[N]]
// CHECK: train.select %[[HIT]], %[[S]], %[[X]]
onnx.graph "g" inputs ["x", "i"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>, %i: tensor<4x1xi64>):
  %u = onnx.initializer "u" from <"", 0, 16> kind "parameter" : tensor<4x1xf32>
  %0 = onnx.node "ScatterElements" since 18 (%x, %i, %u) with {axis = 1 : i64} : (tensor<4x3xf32>, tensor<4x1xi64>, tensor<4x1xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// Indices into several dims become places in the merged ones; one that is outside of its dim becomes a place outside of all.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: (%[[I:.*]]: tensor<2x5x2xi64>
// CHECK: train.constant dense<24> : tensor<2x5xi64>
// CHECK: %[[P:.*]] = train.select %{{.*}} : tensor<2x5xi1>, tensor<2x5xi64>
// CHECK: train.gather %{{.*}}, %[[P]] axis 0 : tensor<24xf32>, tensor<2x5xi64> -> tensor<2x5xf32>
onnx.graph "g" inputs ["i"] outputs ["loss"] {
^bb0(%i: tensor<2x5x2xi64>):
  %w = onnx.initializer "w" from <"", 0, 96> kind "parameter" : tensor<2x3x4xf32>
  %0 = onnx.node "GatherND" since 13 (%w, %i) with {batch_dims = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x5x2xi64>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %u = onnx.initializer "u" from <"", 0, 12> kind "parameter" : tensor<1x3xf32>
  %i = onnx.initializer "i" value dense<[[4]]> : tensor<1x1xi64> : tensor<1x1xi64>
  // expected-error @below {{ScatterND names an element outside of its tensor}}
  %0 = onnx.node "ScatterND" since 18 (%x, %i, %u) : (tensor<4x3xf32>, tensor<1x1xi64>, tensor<1x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %u = onnx.initializer "u" from <"", 0, 8> kind "parameter" : tensor<1x2xf32>
  %i = onnx.initializer "i" value dense<[[1]]> : tensor<1x1xi64> : tensor<1x1xi64>
  // expected-error @below {{ScatterND has updates that do not fit its indices and its tensor}}
  %0 = onnx.node "ScatterND" since 18 (%x, %i, %u) : (tensor<4x3xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// expected-error @below {{1 node of 1 kind is not supported, the first is ScatterElements at 'product'}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %u = onnx.initializer "u" from <"", 0, 4> kind "parameter" : tensor<1x1xf32>
  %i = onnx.initializer "i" value dense<[[1]]> : tensor<1x1xi64> : tensor<1x1xi64>
  %0 = onnx.node "ScatterElements" since 18 (%x, %i, %u) with {reduction = "mul"} : (tensor<4x3xf32>, tensor<1x1xi64>, tensor<1x1xf32>) -> !onnx.value loc("product")
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}
